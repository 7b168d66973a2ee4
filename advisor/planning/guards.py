"""Guards: budgets that a plan must hold before anything of it is applied.

The socket budget is the worst case, every socket filled to its limit: UDP sockets × (rmem_default + wmem_default), but
never above udp_mem's maximum, plus TCP sockets × (tcp_rmem maximum + tcp_wmem maximum), but never above tcp_mem's.
A quarter of the available memory is worth a warning, half of it a refusal (our choice of thresholds).

Whether a profile asks for it or not, the stripe caches of md arrays are counted: pages × members (kernel:
admin-guide/md, stripe_cache_size), and so are huge pages: what is added must be available, and the pool must leave a
part of the memory to everybody else (kernel: admin-guide/mm/hugetlbpage; the share is our choice).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.errors import RefusedError
from advisor.facts.block.arrays import Array
from advisor.facts.host_facts import Facts
from advisor.facts.settings.sysctl import SysctlOrigin, reads_later
from advisor.facts.system.identity import Container
from advisor.host import Missing
from advisor.host.numbers import count_noun, is_count
from advisor.planning.observations import Observations, ObservedTarget
from advisor.planning.records import Change, PlanTarget, Skipped
from advisor.tunables import FileEdit, namespace_of, parse_tunable
from advisor.tunables.kind import Namespace
from advisor.tunables.sysctl import Sysctl, sysctl_path

# Values of the CPUs' clocks that bear on each other: their order, and which the kernel does not take together.

_LOWEST = ("scaling_min_freq", "min_perf_pct")
_HIGHEST = ("scaling_max_freq", "max_perf_pct")
_PREFERENCE = "energy_performance_preference"
_KINDS = ("cpufreq:", "intel_pstate:")
_TURBO_ON = {"intel_pstate:no_turbo": "0", "cpufreq:boost": "1"}


def clock_clashes(seen: Observations) -> dict[str, str]:
    """Values that the kernel would refuse with the other values of the plan: id → the reason."""
    found = ((name, _explain_clash(name, one, seen)) for name, one in seen.values.items() if name.startswith(_KINDS))
    return {name: why for name, why in found if why is not None}


def _explain_clash(name: str, one: ObservedTarget, seen: Observations) -> str | None:
    for other, after in _read_others(one, seen):
        if name.endswith(_PREFERENCE) and after == "performance" and one.combined not in (None, "performance"):
            return f"{other} is then performance, and its driver takes no preference but performance with it"
        if name.endswith(_LOWEST) and _parse_number(one.combined) > _parse_number(after) > 0:
            return f"{one.combined} would be above {other}, which is then {after}"
    return None


def clock_rank(target: PlanTarget, seen: Observations) -> int:
    """What is added to a target's rank: the clock stays possible at every step, as the highest rises before the lowest
    and sinks after it, turbo comes first and goes last, and a preference is set under the governor that takes it."""
    one = seen.values.get(target.tunable)
    if one is None or not target.tunable.startswith(_KINDS) or not isinstance(one.live, str):
        return 0
    if target.tunable in _TURBO_ON:
        return -1 if one.combined == _TURBO_ON[target.tunable] else 2
    if target.tunable.endswith(_PREFERENCE):
        return 1
    return 1 if target.tunable.endswith(_HIGHEST) and _parse_number(one.combined) < _parse_number(one.live) else 0


def _read_others(one: ObservedTarget, seen: Observations) -> Iterator[tuple[str, str]]:
    """What other values are once the plan is carried out."""
    for name, live in one.preflight.related:
        other = seen.values.get(name)
        yield name, live if other is None or other.combined is None else other.combined


def _parse_number(text: str | None) -> int:
    return int(text) if text is not None and is_count(text) else 0


# What of a plan a container can set: values of its own namespaces (namespaces(7)), and none of the host's.

OF_HOST = "belongs to the host and not to this container: run advisor on the host"
_WORDS: Mapping[Namespace, str] = {
    "ipc": "IPC namespace",
    "mnt": "mount namespace",
    "net": "network namespace",
    "user": "user namespace",
    "uts": "UTS namespace",
}
_SHARED: Mapping[Namespace, str] = {
    "ipc": "belongs to the host, whose IPC namespace this container uses: run advisor on the host",
    "mnt": "belongs to the host, whose mount namespace this container uses: run advisor on the host",
    "net": "belongs to the host, whose network namespace this container uses: run advisor on the host",
    "user": "belongs to the host, whose user namespace this container uses: run advisor on the host",
    "uts": "belongs to the host, whose UTS namespace this container uses: run advisor on the host",
}
_FOREIGN = frozenset({OF_HOST, *_SHARED.values()})
_READ_ONLY = (
    "/proc/sys is read-only in this container: give the value where the container is started (--sysctl of docker and "
    "podman, securityContext.sysctls of a pod)"
)


def explain_foreign(identity: str, container: Container) -> str | None:
    """Why this value is not the container's own; None where it is, and for a host that is no container."""
    if not container.is_inside:
        return None
    namespace = namespace_of(identity)
    if namespace is None:
        return OF_HOST
    # A container has always mounts of its own; before Linux 6.18 their namespace does not show it.
    return _SHARED[namespace] if namespace != "mnt" and container.namespaces.get(namespace) == "initial" else None


def explain_read_only(identity: str, container: Container) -> str | None:
    """Why a value of the container's own cannot be set from within it; None where nothing is known to forbid it."""
    if not container.is_inside or not identity.startswith("sysctl:"):
        return None
    return None if container.can_write(sysctl_path(identity.removeprefix("sysctl:"))) else _READ_ONLY


def is_foreign(one: Skipped) -> bool:
    """Whether it is left out because it is a value of the host below a container."""
    return one.reason in _FOREIGN


def without_files(seen: Observations, container: Container, private: Collection[str] = ()) -> Observations:
    """What is seen, without the files that would persist values of a container's namespaces: nothing reads them when
    the next container starts, unless systemd runs in it. Nor does anything for the kinds of namespaces in ``private``,
    which are not those of the host as a whole."""
    is_whole = container.is_inside and not container.runs_systemd
    if not is_whole and not private:
        return seen
    owner = "this container or pod; nothing in it reads a file" if is_whole else "this process; files are the host's"
    values = dict(seen.values)
    for identity, observed in seen.values.items():
        namespace = namespace_of(identity)
        # The files of a container are its own, and what they say is the value itself.
        if namespace in (None, "mnt") or not (is_whole or namespace in private):
            continue
        if not isinstance(observed.edit, Missing):
            why = f"it lasts as long as the {_WORDS[namespace]} of {owner}"
            values[identity] = msgspec.structs.replace(observed, edit=Missing("absent", why))
    return msgspec.structs.replace(seen, values=values)


def container_notes(changes: Sequence[Change], skipped: Iterable[Skipped], container: Container) -> Iterator[str]:
    """What a reader of a plan for a container must know."""
    if not container.is_inside:
        return
    if any(map(is_foreign, skipped)):
        yield (
            f"this runs in {container.words}: values of the kernel and of devices belong to the host below it, where "
            "they can be planned"
        )
    if any(namespace_of(change.tunable) == "mnt" for change in changes):
        yield "files that are changed in a container last as long as its file system: change its image, too"


# Tunables that are two names for one thing: the kernel zeroes ``vm.dirty_ratio`` where ``vm.dirty_bytes`` is set.


def find_rivals(targets: Iterable[PlanTarget]) -> Mapping[str, str]:
    """Targets that cannot all be met, each with the other."""
    names = {target.tunable for target in targets}
    found = {name: other for name in names if (other := _find_rival(name)) in names}
    return found | {other: name for name, other in found.items()}


def _find_rival(identity: str) -> str | None:
    if identity.startswith("unit:") and identity.endswith(":CPUAffinity"):
        return identity.removesuffix(":CPUAffinity") + ":numa"
    one = parse_tunable(identity) if identity.startswith("sysctl:vm.") else None
    return f"sysctl:{one.twin}" if isinstance(one, Sysctl) and one.twin else None


def renumbered_irqs(changes: Iterable[Change], facts: Facts) -> Mapping[str, str]:
    """Interrupts that a plan cannot name, as a change of it gives others to their link: id → the reason."""
    changed = [change.tunable for change in changes if change.before != change.after and ":channels." in change.tunable]
    return {
        f"irq:{irq}:affinity": f"{link.name} gets other interrupts with its channels: apply those first, then this"
        for link in facts.links
        if any(name.startswith(f"link:{link.name}:channels.") for name in changed)
        for irq in link.irqs
    }


def twin_obstacle(one: Sysctl, edit: FileEdit, origins: Mapping[str, SysctlOrigin]) -> str | None:
    """Why a line for the other key, read at boot after advisor's, overrides it; None where there is none."""
    other, own = origins.get(one.twin or ""), origins.get(one.key)
    if other is None or other.winner.rejected or other.winner.value == "0":
        return None
    line = other.winner
    is_below = line.path == edit.path and own is not None and own.winner.path == line.path
    if not (is_below and own and own.winner.line < line.line) and not reads_later(line.path, edit.path):
        return None
    what = f"sets {one.twin} to {line.value} at boot, after advisor's line, and the kernel then zeroes {one.key}"
    return f"{line.file} line {line.line}{line.reading} {what}: remove that line, or use --runtime-only"


def twin_notes(changes: Iterable[Change], origins: Mapping[str, SysctlOrigin]) -> tuple[str, ...]:
    """Notes on lines for the other key that advisor's line overrides."""
    said: list[str] = []
    for change in changes:
        one = parse_tunable(change.tunable)
        other = origins.get(one.twin or "") if isinstance(one, Sysctl) and change.persist else None
        if isinstance(one, Sysctl) and other is not None and other.winner.value != "0":
            where = f"{other.winner.file} line {other.winner.line}{other.winner.reading}"
            said.append(f"{where} sets {one.twin}; advisor's file is read later, and {one.key} then replaces it")
    return tuple(said)


WARN_SHARE = 0.25
REFUSE_SHARE = 0.50
LLT_SHARE = 0.05
STRIPE_SHARE = 0.25
HUGE_PAGE_SHARE = 0.85
LLT_PACKET_BYTES = 8192
MIB = 1 << 20


def check_guards(guards: Iterable[str], changes: Iterable[Change], facts: Facts) -> tuple[str, ...]:
    """Notes of the guards that hold with little to spare or cannot be judged. Raises RefusedError with the figures."""
    after = {change.tunable: change.after for change in changes}
    notes = tuple(note for guard in guards if after for note in _GUARDS[guard](after, facts))
    return (*notes, *_stripe_memory(after, facts), *_huge_page_memory(after, facts))


def socket_memory_bytes(sysctl: Mapping[str, str], *, tcp: int, udp: int, page_bytes: int) -> int:
    """Worst case of memory in socket buffers, in bytes."""
    udp_need = udp * (_parse_field(sysctl, "net.core.rmem_default") + _parse_field(sysctl, "net.core.wmem_default"))
    udp_cap = _parse_field(sysctl, "net.ipv4.udp_mem", 2) * page_bytes
    tcp_need = tcp * (_parse_field(sysctl, "net.ipv4.tcp_rmem", 2) + _parse_field(sysctl, "net.ipv4.tcp_wmem", 2))
    tcp_cap = _parse_field(sysctl, "net.ipv4.tcp_mem", 2) * page_bytes
    return min(udp_need, udp_cap or udp_need) + min(tcp_need, tcp_cap or tcp_need)


def _parse_field(sysctl: Mapping[str, str], key: str, field: int = 0) -> int:
    fields = sysctl.get(key, "").split()
    return int(fields[field]) if len(fields) > field and re.fullmatch(r"[0-9]{1,20}", fields[field]) else 0


def _socket_memory(after: Mapping[str, str], facts: Facts) -> tuple[str, ...]:
    sockets, available = facts.memory.sockets, facts.memory.available_bytes
    if sockets.tcp is None or sockets.udp is None or available is None:
        return ("memory budget unknown: the sockets in use or the available memory could not be read",)
    wanted = {name.removeprefix("sysctl:"): value for name, value in after.items() if name.startswith("sysctl:")}
    need = socket_memory_bytes(
        {**facts.sysctl, **wanted}, tcp=sockets.tcp, udp=sockets.udp, page_bytes=facts.memory.page_bytes
    )
    figures = (
        f"{sockets.tcp} TCP and {sockets.udp} UDP sockets could take {need // MIB} MiB "
        f"of {available // MIB} MiB available ({100 * need // max(available, 1)} %)"
    )
    if need > REFUSE_SHARE * available:
        raise RefusedError(
            f"memory budget: {figures}; the limit is {REFUSE_SHARE:.0%}",
            hint="ask for less, for example --set bytes=851968, which holds one LLT window",
        )
    return (f"memory budget: {figures}",) if need > WARN_SHARE * available else ()


def _llt_memory(after: Mapping[str, str], facts: Facts) -> tuple[str, ...]:
    available = facts.memory.available_bytes
    packets = sum(int(after[name]) for name in ("llt:highwater", "llt:rporthighwater") if is_count(after.get(name, "")))
    peers = max(1, len(facts.llt.llttab.peers) if facts.llt and facts.llt.llttab else 1)
    need = packets * LLT_PACKET_BYTES * peers
    if available is None:
        return ("memory budget unknown: the available memory could not be read",)
    figures = (
        f"LLT queues for {count_noun(peers, 'peer')} could take {need // MIB} MiB of {available // MIB} MiB available"
    )
    if need > LLT_SHARE * available:
        raise RefusedError(f"memory budget: {figures}; the limit is {LLT_SHARE:.0%}", hint="lower --set factor=")
    return ()


def _stripe_memory(after: Mapping[str, str], facts: Facts) -> tuple[str, ...]:
    members = {one.device: _member_count(one) for one in facts.arrays}
    pages = {name.split(":")[1]: int(value) for name, value in after.items() if name.endswith(":stripe_cache_size")}
    if not pages:
        return ()
    unknown = sorted(pages.keys() - members.keys())
    if unknown or facts.memory.available_bytes is None:
        what = f"the members of {', '.join(unknown)}" if unknown else "the available memory"
        return (f"memory budget unknown: {what} could not be read, so the size of the stripe caches is not known",)
    need = sum(count * members[device] * facts.memory.page_bytes for device, count in pages.items())
    available = facts.memory.available_bytes
    listed = ", ".join(sorted(pages))
    figures = f"the stripe caches of {listed} take {need // MIB} MiB of {available // MIB} MiB available"
    if need > STRIPE_SHARE * available:
        raise RefusedError(f"memory budget: {figures}; the limit is {STRIPE_SHARE:.0%}", hint="ask for fewer pages")
    return (f"memory budget: {figures}",)


def _member_count(array: Array) -> int:
    # "4 (3)" while it grows from 3.
    found = re.match(r"[0-9]{1,4}", array.detail.get("raid_disks", ""))
    return int(found[0]) if found else len(array.members)


def _huge_page_memory(after: Mapping[str, str], facts: Facts) -> tuple[str, ...]:
    wanted = _parse_field({"pages": after.get("sysctl:vm.nr_hugepages", "")}, "pages")
    size, total, available = facts.memory.default_hugepage_bytes, facts.memory.total_bytes, facts.memory.available_bytes
    if not wanted:
        return ()
    if size is None or total is None or available is None:
        return ("memory budget unknown: the size of a huge page or the memory of the host could not be read",)
    pool, more = wanted * size, (wanted - _parse_field(facts.sysctl, "vm.nr_hugepages")) * size
    if more <= 0:
        return ()
    figures = (
        f"{wanted:,} huge pages take {pool // MIB:,} of {total // MIB:,} MiB ({100 * pool // max(total, 1)} %); "
        f"{more // MIB:,} MiB of that are to come from {available // MIB:,} MiB available"
    )
    if more > available or pool > HUGE_PAGE_SHARE * total:
        raise RefusedError(
            f"memory budget: {figures}; the limits are what is available and {HUGE_PAGE_SHARE:.0%} of the memory",
            hint="ask for fewer huge pages (the cpf of IRIS: globals), or free memory first"
            if facts.iris
            else "ask for fewer huge pages, or free memory first",
        )
    return (
        f"memory budget: {figures}",
        "the kernel grants huge pages as far as it finds memory in one piece: where it finds less, the plan is rolled "
        "back; hugepages= on its command line reserves them at boot",
    )


_GUARDS: dict[str, Callable[[Mapping[str, str], Facts], tuple[str, ...]]] = {
    "socket-memory": _socket_memory,
    "llt-memory": _llt_memory,
}
