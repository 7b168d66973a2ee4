"""One host's facts as what a fleet compares: attributes with stable dotted names, and what is unknown of them.

A value is a text or a number that two hosts must share to be alike. What is a host's own (its name, its addresses,
serial numbers, counters) is no attribute. What the kernel derives from the machine stands as ``derived from memory`` or
the like as long as no file of the host sets it, so that two sizes of memory are not twenty outliers.

The names: ``host.kernel``, ``cpu.model``, ``memory.installed``, ``numa.distances``, ``sysctl.KEY``, ``cmdline.WORD``,
``link.ROLE.mtu``, ``disk.MODEL.scheduler``, ``array.ROLE.chunk_bytes``, ``filesystem.MOUNTPOINT.options``,
``llt.flow.highwater``, ``iscsi.…``, ``beegfs.…``, ``iris.…``, ``infoscale.…``, ``controller.…``, ``owner.…``,
``file.PATH.KEY``, ``advisor.profiles``. An object (a link, a model of disk, an array, a file system) that is there has
``NAME.present``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from advisor.errors import AdvisorError
from advisor.facts.host_facts import Facts
from advisor.facts.processors.cpulist import format_list
from advisor.facts.settings import find_setting
from advisor.facts.settings.record import Setting
from advisor.facts.settings.sysctl import KEYS
from advisor.facts.settings.value import value_of
from advisor.fleet.compare.collected import (
    Collected,
    Membership,
    Value,
    collect_links,
    collect_services,
    collect_storage,
    link_roles,
    llt_cluster,
    llt_node,
    memberships_of,
)
from advisor.host import Host
from advisor.rules.queries import split_ids
from advisor.rules.settings.sysctls import machine_of
from advisor.snapshot.remote.store import CapturedStore
from advisor.transaction.journal import STATE_DIRECTORY
from advisor.transaction.status import find_drift


class AdvisorState(msgspec.Struct, frozen=True):
    """Active ``profiles``, by name; ``drifted`` the tunables and files that drifted, None where unknown;
    ``unfinished`` the transactions that were interrupted and are not rolled back."""

    profiles: tuple[str, ...] = ()
    drifted: tuple[str, ...] | None = ()
    unfinished: tuple[str, ...] = ()


def read_standing(host: Host, *, has_looked: bool) -> AdvisorState | None:
    """By the journals in a capture; None where nothing is known.

    That is so where the capture was not made by root, or holds no journal and was made by something that does not look
    for one: ``advisor snapshot`` (then ``has_looked`` is False).
    """
    if not has_looked and not host.is_dir(f"{STATE_DIRECTORY}/transactions"):
        return None
    try:
        records = CapturedStore(host).read_records()
    except AdvisorError:
        return None
    in_force = [record for record in records if record.is_active]
    profiles = sorted({name for record in in_force for name in record.plan.profiles})
    unfinished = tuple(record.id for record in records if record.is_unfinished)
    # What differs for certain; None where nothing does and something could not be read.
    drift = find_drift(host, in_force)
    certain = tuple(sorted({one.what for one in drift if one.live is not None}))
    return AdvisorState(tuple(profiles), None if drift and not certain else certain, unfinished)


TYPE_ATTRIBUTES = (
    *("host.product", "host.architecture", "host.virtualization", "host.instance_type"),
    *("cpu.model", "cpu.packages", "cpu.cores", "cpu.threads", "memory.installed", "numa.nodes"),
)
"""What makes the type of a host's hardware."""
HardwareType = tuple[tuple[str, Value], ...]

_GIB = 1 << 30
_TUNING_WORDS = frozenset(
    {
        *("transparent_hugepage", "elevator", "isolcpus", "nohz_full", "rcu_nocbs", "rcu_nocb_poll"),
        *("mitigations", "spectre_v2", "nopti", "pti"),
        *("intel_pstate", "amd_pstate", "idle", "numa_balancing", "numa", "default_hugepagesz"),
        *("hugepagesz", "hugepages", "iommu", "intel_iommu"),
        *("amd_iommu", "skew_tick", "tsc", "clocksource", "audit", "selinux"),
        *("nosmt", "maxcpus", "nr_cpus", "mem", "pcie_aspm", "pci"),
        *("threadirqs"),
        *("irqaffinity", "preempt", "swapaccount", "net.ifnames", "biosdevname", "nowatchdog"),
        *("nosoftlockup", "nmi_watchdog", "noibrs"),
    }
)
_NO_MODULE = ("rd.", "systemd.", "inst.", "luks.", "vconsole.")
_MAX_WORDS = 200


class CaptureSource(msgspec.Struct, frozen=True):
    """A capture to read. ``name`` is what the fleet calls the host, ``group`` what it is compared within, None where
    all are compared together; ``skew_seconds`` is the host's clock minus the controller's, as far as it is known.
    ``is_capture`` says that ``advisor fleet`` made it, which looks for journals, too."""

    name: str
    path: str
    group: str | None = None
    skew_seconds: float | None = None
    is_capture: bool = False


class HostSummary(msgspec.Struct, frozen=True):
    """One host, as a fleet compares it. ``unknown`` are patterns of attributes (``*`` stands for anything), ``cluster``
    and ``node`` the ids of its LLT cluster and its own there, ``sysctl_set`` the sysctls that a file of this host sets
    at boot. A `Fleet` keeps it without these and the values, and with what makes its type of ``hardware``."""

    name: str
    hostname: str | None
    machine_id: str | None
    boot_id: str | None
    group: str | None
    cluster: str | None
    node: str | None
    skew_seconds: float | None
    unknown: tuple[str, ...]
    memberships: tuple[Membership, ...]
    values: Mapping[str, Value]
    sysctl_set: tuple[str, ...]
    hardware: HardwareType = ()


def summarise_host(
    facts: Facts, source: CaptureSource, standing: AdvisorState | None = None, command_line: str | None = None
) -> HostSummary:
    """The summary of a host. Pure; never fails, whatever the host calls its things. ``command_line`` is the kernel's,
    None where it is unknown."""
    found = Collected()
    roles = link_roles(facts)
    _collect_machine(facts, found)
    memory, nodes = facts.memory, facts.numa.nodes
    found.put("memory.installed", _installed_memory(memory.total_bytes))
    found.fields("memory", memory, "thp_enabled", "thp_defrag")
    for pool in memory.hugepages:
        found.put(f"memory.hugepages.{pool.size_bytes >> 10}kB", pool.total)
    found.put("numa.nodes", len(nodes) or None)
    found.put("numa.cpus", "; ".join("?" if node.cpus is None else node.cpus for node in nodes) or None)
    found.put("numa.memory", "; ".join(_installed_memory(node.memory_bytes) or "?" for node in nodes) or None)
    found.put("numa.distances", "; ".join(" ".join(map(str, node.distances)) for node in nodes) or None)
    if not facts.sysctl:
        found.unknown("sysctl.*")
    for key, value in facts.sysctl.items():
        setting = find_setting(key)
        # A counter names no setting; what one host's files name beyond these keys was not read on the others.
        if key in KEYS and (setting is None or not setting.is_counter):
            found.put(f"sysctl.{key}", (setting and _derived_words(setting, value, facts)) or value)
    if command_line is None:
        found.unknown("cmdline.*")
    for key, value in tuning_words(command_line or "").items():
        found.put(f"cmdline.{key}", value or "(set)")
    collect_links(facts, roles, found)
    collect_storage(facts, found)
    collect_services(facts, found)
    _collect_standing(standing, found)
    found.unknown(*_unknown_attributes(facts))
    for one in facts.unknown:
        found.unknown(*_fact_patterns(one.fact, roles))
    return HostSummary(
        source.name,
        facts.host.hostname,
        facts.host.machine_id,
        facts.host.boot_id,
        source.group,
        llt_cluster(facts),
        llt_node(facts),
        source.skew_seconds,
        unknown=found.patterns,
        memberships=memberships_of(facts, roles),
        values=found.values,
        sysctl_set=tuple(sorted(facts.sysctl_origin)),
    )


def _collect_machine(facts: Facts, found: Collected) -> None:
    host, cpu, cloud = facts.host, facts.cpu, facts.host.cloud
    for name in ("kernel", "os"):
        found.known(f"host.{name}", getattr(host, name))
    found.fields("host", host, "architecture", "virtualization")
    found.put("host.product", " ".join(part for part in (host.vendor, host.product) if part) or None)
    found.put("host.instance_type", f"{cloud.provider} {cloud.instance_type or ''}".strip() if cloud else None)
    found.fields("cpu", cpu, "model", "packages", "cores", "threads", "threads_per_core")
    # The kernel lists ids up to its bound as offline; those that no CPU has are nothing that is switched off.
    found.put(
        "cpu.offline", format_list(split_ids(cpu.offline) & split_ids(cpu.present)) if cpu.present else cpu.offline
    )
    if cpu.frequency:
        found.fields("cpu.frequency", cpu.frequency, "driver", "mode")
        found.several("cpu.frequency.governor", [one.governor for one in cpu.frequency.groups])
        preferences = [one.energy_performance_preference for one in cpu.frequency.groups]
        found.several("cpu.frequency.energy_performance_preference", preferences)
    owners = facts.owners
    found.flag("owner.irqbalance", owners.irqbalance)
    found.flag("owner.power_profiles_daemon", owners.power_profiles_daemon)
    found.put("owner.tuned_profile", owners.tuned_profile)
    for name in ("network_managers", "saptune_notes", "agents"):
        found.put(f"owner.{name}", ", ".join(getattr(owners, name)) or None)
    for setting in facts.site_settings:
        if setting.path != "/proc/cmdline":
            scope = f" ({setting.scope})" if setting.scope else ""
            found.put(f"file.{setting.path}.{setting.key}{scope}", setting.value)


def _installed_memory(size_bytes: int | None) -> str | None:
    """The memory that is put in, rounded: the kernel and the firmware keep some hundredths of it for themselves, and
    how much differs from boot to boot. To the next sixteenth of the next power of two."""
    if not size_bytes or size_bytes < 0:
        return None
    step = max((1 << (size_bytes - 1).bit_length()) // 16, 1)
    return f"{-(-size_bytes // step) * step / _GIB:.4g} GiB"


def _derived_words(setting: Setting, value: str, facts: Facts) -> str | None:
    """What stands for a value that the kernel itself makes from the machine; None where a file sets it, or another
    value is there."""
    is_own = setting.key not in facts.sysctl_origin and setting.derives is not None
    if not is_own or setting.derives is None or not setting.derives(value_of(setting.key, value), machine_of(facts)):
        return None
    return f"derived from {re.split('[:,]', setting.derived_from)[0]}"


def tuning_words(command_line: str) -> dict[str, str]:
    """Words of a kernel command line that tune something: known ones, and parameters of modules. What names a device
    or an address of one host (root=, ip=, rd.…) is left out; a word that is given twice has its values in order."""
    found: dict[str, str] = {}
    for word in command_line.split()[:_MAX_WORDS]:
        key, _, value = word.partition("=")
        key = key.replace("-", "_")
        is_module = "." in key and not key.startswith(_NO_MODULE)
        if key in _TUNING_WORDS or is_module:
            found[key] = f"{found[key]} {value}" if key in found else value
    return found


def _collect_standing(standing: AdvisorState | None, found: Collected) -> None:
    if standing is None:
        found.unknown("advisor.*")
        return
    found.put("advisor.profiles", ", ".join(standing.profiles) or None)
    found.put("advisor.unfinished", ", ".join(standing.unfinished) or None)
    if standing.drifted is None:
        found.unknown("advisor.drift")
    else:
        found.put("advisor.drift", ", ".join(standing.drifted) or None)


def _unknown_attributes(facts: Facts) -> Iterator[str]:
    """The attributes that are unknown because the capture lacks the facts that they are read from."""
    noted = {one.fact for one in facts.unknown}
    if "disks" in noted:
        yield from ("array.*", "filesystem.*", "controller.*", "iscsi.*")
    if facts.cpu.online is None:
        yield from ("cpu.*", "numa.*")
    if facts.memory.total_bytes is None:
        yield from ("memory.*", "numa.*")


_OBJECTS = {"links": "link", "disks": "disk", "arrays": "array", "filesystems": "filesystem"} | {
    "controllers": "controller"
}
_LINK_WORDS = {"rings": "ring", "features": "feature"}


def _fact_patterns(fact: str, roles: Mapping[str, str]) -> Iterator[str]:
    """The attributes that an unknown fact stands for; none where it is no attribute."""
    topic, _, rest = fact.partition(".")
    if topic != "links":
        whole = f"{_OBJECTS.get(topic, topic)}.{rest}" if rest and topic not in _OBJECTS else _OBJECTS.get(topic, topic)
        if topic in ("irqs", "counters", "sysctl_origin", "site_settings"):
            return
        # An object's own unknowns are noted where it is collected, by the name that the fleet knows it by.
        if not (rest and topic in ("disks", "arrays", "filesystems")):
            yield from (whole, f"{whole}.*")
        return
    if not rest:
        yield "link.*"
        return
    name = max((one for one in roles if rest == one or rest.startswith(f"{one}.")), key=len, default=None)
    leaf = rest if name is None else rest[len(name) + 1 :]
    if name is None and "." in leaf:
        return  # of a link that is not compared
    role = "*" if name is None else roles[name]
    leaf = _LINK_WORDS.get(leaf, leaf)
    yield from (f"link.{role}.{leaf}", f"link.{role}.{leaf}.*") if leaf else (f"link.{role}.*",)
