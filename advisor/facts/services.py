"""systemd services: placement as systemd has it loaded, and where the main process may run in fact."""

from __future__ import annotations

import re

import msgspec

from advisor.facts.allowed import Resource, parse_allowed
from advisor.facts.cpulist import format_list
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing
from advisor.host.unit_text import shown_cpus

_PROPERTIES = ("Id", "LoadState", "MainPID", "NUMAPolicy", "NUMAMask", "CPUAffinity", "CPUAffinityFromNUMA")


class Service(msgspec.Struct, frozen=True):
    """A loaded service unit; ``main_pid`` is None where it does not run.

    ``cpus_allowed``/``mems_allowed`` are the main process' own (/proc/PID/status); ``numa_policy``, ``numa_mask`` and
    ``cpu_affinity`` what systemd has loaded, None where it has no such property (NUMA: before 243) or none is set.
    ``cpu_affinity`` is ``numa`` where it follows the mask.
    """

    unit: str
    main_pid: int | None
    numa_policy: str | None
    numa_mask: str | None
    cpu_affinity: str | None
    cpus_allowed: str | None
    mems_allowed: str | None
    devices: tuple[str, ...] = ()
    """Links and mount points that it was seen to use (facts.service_devices)."""
    lacks: tuple[str, ...] = ()
    """Of NUMAPolicy and CPUAffinityFromNUMA what ``systemctl show`` does not print: this systemd has no such property.
    Versions 243 and 244 brought them; RHEL 8 has them in its 239."""
    memory_policy: str | None = None
    """The policy that its process has by whatever set it, numactl for instance, as /proc/PID/numa_maps has it
    (``default``, ``bind:1``); None where it was not asked for or could not be read."""


def read_memory_policy(host: Host, service: Service) -> Service:
    """The service with its process' own policy: that of its first mapping, its program. Left alone where its unit sets
    one, as the file costs the kernel a walk through all pages."""
    if service.main_pid is None or service.numa_policy not in (None, "default"):
        return service
    text = host.read(f"/proc/{service.main_pid}/numa_maps")
    found = None if isinstance(text, Missing) else re.match(r"[0-9a-f]+ ([a-z]+(?:[=:][\w,:-]+)?)", text, re.ASCII)
    return msgspec.structs.replace(service, memory_policy=found[1]) if found else service


def read_services(host: Host, units: tuple[str, ...], unknown: Unknowns) -> tuple[Service, ...]:
    """The named units; one that systemd does not know is noted as unknown and left out.

    All are asked for with one ``systemctl show`` (systemctl(1)); no command is run for no units.
    """
    if not units:
        return ()
    done = host.run(show_command(units))
    if isinstance(done, Missing):
        unknown.note("services", done)
        return ()
    if not done.ok:
        unknown.note("services", done.failure("systemctl"))
        return ()
    loaded = [block for block in parse_show(done.stdout) if _is_loaded(block, unknown)]
    return tuple(_make_service(host, block, unknown) for block in loaded)


def show_command(units: tuple[str, ...]) -> tuple[str, ...]:
    """The command that asks systemd for some units; the same units give the same words, so that it can be replayed."""
    return ("systemctl", "show", f"--property={','.join(_PROPERTIES)}", "--", *units)


def parse_show(text: str) -> tuple[dict[str, str], ...]:
    """Properties of each unit that ``systemctl show`` prints; an empty line stands between two units."""
    blocks = (re.findall(r"^([A-Za-z]\w*)=(.*?)\r?$", block, re.MULTILINE) for block in re.split(r"\n[ \t\r]*\n", text))
    return tuple(dict(block) for block in blocks if block)


def _is_loaded(block: dict[str, str], unknown: Unknowns) -> bool:
    if block.get("LoadState") == "loaded" and block.get("Id"):
        return True
    unknown.note(f"services.{block.get('Id', '?')}", f"systemd says {block.get('LoadState', 'nothing of its state')}")
    return False


def _make_service(host: Host, block: dict[str, str], unknown: Unknowns) -> Service:
    unit = block["Id"]
    pid = int(block["MainPID"]) if re.fullmatch(r"[1-9]\d{0,9}", block.get("MainPID", ""), re.ASCII) else None
    policy, affinity = block.get("NUMAPolicy", ""), block.get("CPUAffinity", "")
    # systemd puts blanks between the ranges where the kernel has commas.
    return Service(
        unit=unit,
        main_pid=pid,
        numa_policy=None if policy in ("", "n/a") else policy,
        numa_mask=",".join(block.get("NUMAMask", "").split()) or None,
        cpu_affinity="numa" if block.get("CPUAffinityFromNUMA") == "yes" else shown_cpus(affinity) or None,
        cpus_allowed=_read_allowed(host, pid, "cpus", f"services.{unit}.cpus_allowed", unknown),
        mems_allowed=_read_allowed(host, pid, "mems", f"services.{unit}.mems_allowed", unknown),
        lacks=tuple(name for name in ("NUMAPolicy", "CPUAffinityFromNUMA") if name not in block),
    )


def _read_allowed(host: Host, pid: int | None, resource: Resource, fact: str, unknown: Unknowns) -> str | None:
    if pid is None:
        return None
    text = host.read(f"/proc/{pid}/status")
    found = text if isinstance(text, Missing) else parse_allowed(text, resource)
    if isinstance(found, Missing):
        unknown.note(fact, found)
        return None
    return format_list(found)
