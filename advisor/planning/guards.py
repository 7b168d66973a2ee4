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
from collections.abc import Callable, Iterable, Mapping

from advisor.errors import RefusedError
from advisor.facts.arrays import Array
from advisor.facts.host_facts import Facts
from advisor.host.numbers import count_noun, is_count
from advisor.planning.records import Change

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
