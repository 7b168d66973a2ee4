"""Sysctls whose value has to fit the host: shares of its memory, limits below what is in use, names that it has.

What the kernel takes without a word and the host then suffers from: memory that is kept free of all programs, limits
that nothing more fits under, algorithms that no module provides. Each share is warned of, then refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from advisor.facts.listeners import LISTENERS, parse_listeners
from advisor.facts.memory import X86_PAGE_BYTES, parse_meminfo, read_page_bytes
from advisor.facts.reserved_ports import KEY as RESERVED_PORTS
from advisor.facts.reserved_ports import parse_ports, ports_text
from advisor.facts.settings import find_setting
from advisor.facts.settings.record import InUse, MemoryShare, Setting
from advisor.host import Host, Missing
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex
from advisor.tunables.kernel_modules import has_index, is_built_in, module_name, read_dependencies
from advisor.tunables.preflight import list_choices

MIB = 1 << 20
PORT_RANGE = "net.ipv4.ip_local_port_range"
CONGESTION = "net.ipv4.tcp_congestion_control"
QDISC = "net.core.default_qdisc"
AVAILABLE = "/proc/sys/net/ipv4/tcp_available_congestion_control"
_LEAST_PORTS = 1000
"""Of a range that is made smaller: clients and health checks of one service alone use hundreds."""
_BUILT_IN_QDISCS = frozenset({"pfifo_fast", "pfifo", "bfifo", "pfifo_head_drop", "mq", "noqueue"})
_NAME = lazy_regex(r"[A-Za-z0-9_-]{1,60}", re.ASCII)
_NUMBERS = lazy_regex(r"[0-9]{1,20}(?: [0-9]{1,20})*", re.ASCII)


class Judgement(NamedTuple):
    """Why a host should not get a value, and what to know where it may."""

    refusal: str | None = None
    notes: tuple[str, ...] = ()


def judge_on_host(host: Host, key: str, before: str, value: str) -> Judgement:
    """What this host makes of a value that the kernel would take. Reads the host, changes nothing."""
    if key == CONGESTION:
        return _judge_congestion(host, value)
    if key == QDISC:
        return Judgement() if value in _BUILT_IN_QDISCS else _judge_module(host, key, value, f"sch_{value}", ())
    if not _NUMBERS.fullmatch(value):
        return Judgement()
    if key == PORT_RANGE:
        return _judge_ports(host, before, value)
    setting = find_setting(key)
    if setting is None:
        return Judgement()
    largest = max(map(int, value.split()))
    was = max(map(int, before.split())) if _NUMBERS.fullmatch(before) else None
    is_lower = was is None or largest < was
    refusal = _below_use(host, setting, largest) if is_lower else None
    if refusal or setting.share is None:
        return Judgement(refusal)
    return Judgement() if largest <= (was or 0) else _judge_share(host, key, setting.share, largest)


def _below_use(host: Host, setting: Setting, largest: int) -> str | None:
    """Why a limit that is lowered leaves no room; None where it does, or where what is in use cannot be read."""
    use, least = setting.in_use, setting.least
    used = _measure_use(host, use) if use else 0
    shown = f"{used} {use.what} are in use" if use else ""
    if least is not None and largest < least.number:
        return f"{largest} is less than {least.number}, with which {least.otherwise}{f'; {shown}' if used else ''}"
    return f"{shown}, so that no other would fit under {largest}" if use is not None and used >= largest else None


def _measure_use(host: Host, use: InUse) -> int:
    """How much of a limit is used; 0 where that cannot be read."""
    places = [use.path]
    if "*" in use.path:
        places = [use.path.replace("*", name) for name in host.names("/proc") if is_count(name)]
    found = [re.findall(use.pattern, host.read_or_empty(path), re.ASCII) for path in places]
    if use.counts == "count":
        return max(map(len, found), default=0)
    numbers = [int(one) for some in found for one in some]
    if use.counts == "pages":
        return sum(numbers) // (read_page_bytes(host) or X86_PAGE_BYTES)
    return max(numbers, default=0)


def _judge_share(host: Host, key: str, share: MemoryShare, number: int) -> Judgement:
    sizes = parse_meminfo(host.read_or_empty("/proc/meminfo"))
    total = sizes.get("MemTotal")
    unit = sizes.get("Hugepagesize") if share.unit < 0 else share.unit or read_page_bytes(host) or X86_PAGE_BYTES
    if not total or not unit:
        why = "the memory of this host could not be read"
        return Judgement(notes=(f"sysctl:{key}: whether {number} fits is unknown: {why}",))
    part = number * unit / total
    if part <= share.warn:
        return Judgement()
    words = (
        f"{number * unit // MIB:,} of {total // MIB:,} MiB of memory ({100 * part:,.0f} %) {share.what} "
        f"({share.source})"
    )
    if part <= share.refuse:
        return Judgement(notes=(f"sysctl:{key}: {words}",))
    return Judgement(f"{words}; at most {int(share.refuse * total / unit)} here")


def _judge_congestion(host: Host, value: str) -> Judgement:
    offered = tuple(host.read_or_empty(AVAILABLE).split())
    return Judgement() if value in offered else _judge_module(host, CONGESTION, value, f"tcp_{value}", offered)


def _judge_module(host: Host, key: str, value: str, module: str, offered: tuple[str, ...]) -> Judgement:
    """Whether a module provides what the kernel does not have yet."""
    name = module_name(module)
    if _NAME.fullmatch(value) and is_built_in(host, name):
        return Judgement()
    if _NAME.fullmatch(value) and has_index(host):
        if read_dependencies(host, name) is not None:
            return Judgement(notes=(f"sysctl:{key}: {value} is in the module {name}, which the kernel loads for it",))
    elif _NAME.fullmatch(value):
        why = "the list of its modules (modules.dep) could not be read"
        return Judgement(notes=(f"sysctl:{key}: whether the kernel has {value} is unknown: {why}",))
    if offered:
        return Judgement(f"the kernel offers {list_choices(offered)}, and has no module {name}")
    return Judgement(f"the kernel has no module {name}")


def _judge_ports(host: Host, before: str, value: str) -> Judgement:
    """Ports that a wider range takes in while a service listens on them."""
    low, high = map(int, value.split())
    least = host.read_int("/proc/sys/net/ipv4/ip_unprivileged_port_start")
    if isinstance(least, int) and low < least:
        return Judgement(f"the kernel refuses a range below {least} (net.ipv4.ip_unprivileged_port_start)")
    old = tuple(map(int, before.split())) if _NUMBERS.fullmatch(before) else (0, 0)
    ports = high - low + 1
    if ports < min(_LEAST_PORTS, old[-1] - old[0] + 1):
        return Judgement(f"it leaves {ports} ports: connections to one address fail beyond that many")
    added = frozenset(range(low, high + 1)) - frozenset(range(old[0], old[-1] + 1))
    return Judgement(notes=tuple(_port_notes(host, added))) if added else Judgement()


def _port_notes(host: Host, added: frozenset[int]) -> Iterator[str]:
    reserved = parse_ports(host.read_or_empty("/proc/sys/net/ipv4/ip_local_reserved_ports")) or frozenset()
    inside = reserved & added
    if inside:
        yield f"of the wider range {ports_text(inside)} are reserved, and stay so ({RESERVED_PORTS})"
    listing = host.run(LISTENERS)
    if isinstance(listing, Missing) or not listing.ok:
        yield f"which services listen on ports of the wider range is unknown: {' '.join(LISTENERS)} gave no answer"
        return
    open_ports = (parse_listeners(listing.stdout) & added) - reserved
    if open_ports:
        yield (
            f"services listen on {ports_text(open_ports)}, which the wider range takes in: a connection may have "
            "such a port while its service restarts. To keep them: advisor plan "
            f"sysctl:{RESERVED_PORTS}={ports_text(reserved | open_ports)}"
        )
