"""Socket buffers and queues of the receive path: too small for what is declared or counted, or too large for memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec

from advisor.facts.settings import find_setting
from advisor.facts.settings.record import raise_maximum
from advisor.host.numbers import count_noun
from advisor.rules import sources
from advisor.rules.clusters.infoscale import DATAGRAMS, past_sockets, private_carriers, private_links, stays_local
from advisor.rules.network.mtu import ETHERNET_MTU, LLT_UDP_MTU
from advisor.rules.queries import NETWORK_BUFFERS, by_name, is_physical, is_up, links_below, sysctl_numbers
from advisor.rules.rule import (
    Decide,
    DeclaredWorkload,
    Evidence,
    Facts,
    Finding,
    PlanProfile,
    Remedy,
    RunShell,
    Severity,
    rule,
    set_sysctl,
)

ORDER = 20

WHITE_PAPER_BYTES = 8 << 20
LLT_WINDOW = 50
LLT_WINDOW_BYTES = 851_968
"""Four times the usual default: holds a window of 50 packets of 8 KiB."""
# Memory that the kernel charges to a socket for one LLT packet: 8,192 and 1,400 bytes of payload.
_CHARGED_BYTES = {True: 17_039, False: 2_315}
_MEMORY_SHARE = 0.25
_PROFILE_BYTES_MAX = 1 << 30
_ERROR_SHARE = 1e-4
_SQUEEZED_SHARE = 1e-3
_BACKLOG = 4096
_CPU_QUEUE = 10_000
_BUDGET = 600
_USUAL_DEFAULT = 212_992
_SPREAD = "spread the interrupts of the links over more CPUs; a longer round only delays"

_UDP = ("net.core.rmem_max", "net.core.wmem_max")
_TCP = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")


def limit(facts: Facts, key: str) -> int | None:
    """The largest buffer that a key allows, in bytes; None where it is unknown."""
    setting, values = find_setting(key), sysctl_numbers(facts, key)
    is_whole = setting is not None and len(values) == (len(setting.fields) or 1)
    return values[-1] if is_whole else None


def _limits_below(facts: Facts, wanted_bytes: int, keys: tuple[str, ...]) -> dict[str, int]:
    limits = {key: limit(facts, key) for key in keys}
    return {key: value for key, value in limits.items() if value is not None and value < wanted_bytes}


def _case_of_white_paper(workload: DeclaredWorkload) -> bool:
    # RDMA moves data past the sockets.
    crosses = workload.is_replicated or workload.transport in ("tcp", "udp")
    return (
        crosses
        and workload.transport != "rdma"
        and (
            workload.is_sequential
            or workload.transport == "udp"
            or (workload.is_write_heavy and workload.has_large_blocks)
        )
    )


# Counters of full socket buffers: the field of the facts, and its words.
_FULL_BUFFERS: Mapping[str, str] = {
    "udp_receive_buffer_errors": "datagrams dropped because a receive buffer was full",
    "udp_send_buffer_errors": "datagrams not sent because a send buffer was full",
    "tcp_pruned": "TCP receive queues pruned",
    "tcp_collapsed": "segments collapsed in TCP receive queues",
}


def udp_is_sized(facts: Facts, workload: DeclaredWorkload | None) -> int | None:
    """The size of the path of LLT over UDP in bytes, where the limits and defaults hold it already; else None."""
    path = path_bytes(facts, workload) if private_links(facts, *DATAGRAMS) and not stays_local(facts) else None
    sizes = [limit(facts, f"net.core.{end}_{which}") for end in ("rmem", "wmem") for which in ("max", "default")]
    return path.size if path is not None and all(size is not None and size >= path.size for size in sizes) else None


@rule(
    id="buffers.below-profile",
    severity="advice",
    title="Socket buffer limits below socket-buffers-8m",
    what="net.core.rmem_max and wmem_max and the third field of tcp_rmem and tcp_wmem against 8 MiB (LLT over UDP: the "
    "first two against the size of its path), where a counter of full buffers, LLT over UDP or a declared workload "
    "gives a reason; a distribution's default alone is none.",
    why="The limits bound what a program may ask for with setsockopt(2) and how far TCP's own sizing may grow.",
    helps_when="Batch work, heartbeats over UDP, or many writes in large blocks, replicated over the network.",
    hurts_when="Many sockets on a host with little memory; latency where a deep buffer hides a slow receiver. Values "
    "that are larger already are kept.",
    sources=(sources.WHITE_PAPER, sources.KEEP_DEFAULTS, sources.SYSCTL_NET, sources.IP_SYSCTL),
    contradictions=("contradiction.socket-buffers",),
)
def below_profile(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    over_udp = () if stays_local(facts) else private_carriers(facts, *DATAGRAMS)
    # The size that the path needs, in bytes, and the limits below it: for LLT over UDP those of UDP and the size of
    # the path, else all four and the white paper's 8 MiB.
    is_over_udp = bool(over_udp)
    path = path_bytes(facts, workload) if is_over_udp else None
    if path is None:
        wanted_bytes, low = WHITE_PAPER_BYTES, _limits_below(facts, WHITE_PAPER_BYTES, (*_UDP, *_TCP))
    else:
        wanted_bytes, low = path.size, _limits_below(facts, path.size, _UDP)
    if not low or (workload is not None and workload.transport == "local" and not workload.is_replicated):
        return None
    if workload is not None and workload.is_replicated and past_sockets(facts):
        return None
    counted = {field: count for field in _FULL_BUFFERS if (count := getattr(facts.counters, field))}
    if workload is not None and _case_of_white_paper(workload):
        severity: Severity = "advice"
        reason = f"{workload.subject} is one for which the white paper raises the limits."
    elif counted:
        severity = "info"
        counts = "; ".join(f"{count:,} {_FULL_BUFFERS[field]}" for field, count in counted.items())
        reason = f"Since the host started: {counts}."
    elif over_udp:
        severity, reason = "info", "LLT replicates over UDP here; no counter says that a buffer was full."
    else:
        return None
    return below_profile.found(
        severity=severity,
        why="Bursts of replication that do not fit into a buffer are dropped (UDP) or held back (TCP). " + reason,
        evidence={**low, "wanted_bytes": wanted_bytes, **counted, **({"links": over_udp} if over_udp else {})},
        remedy=_sized_profile(facts, workload, low),
        intent=severity == "info" and not counted,
    )


def bandwidth_delay_bytes(speed_mbps: int, rtt_seconds: float) -> int:
    """Bytes in flight on a link that is kept busy."""
    return math.ceil(speed_mbps * 1e6 / 8 * rtt_seconds)


def _fastest_link(facts: Facts, among: frozenset[str]) -> tuple[str, int] | None:
    """The fastest physical link that is up, of those named; of all where none is named."""
    links = (
        (link.name, link.speed_mbps)
        for link in facts.links
        if is_physical(link) and is_up(link) and (not among or link.name in among)
    )
    known = [(name, speed) for name, speed in links if speed is not None and speed > 0]
    return max(known, key=lambda pair: pair[1], default=None)


class PathBytes(msgspec.Struct, frozen=True):
    """The socket buffer that a path needs: ``size`` in bytes, and the ``formula`` with its numbers."""

    size: int
    formula: str


def path_bytes(facts: Facts, workload: DeclaredWorkload | None) -> PathBytes | None:
    """One size for one path, whatever of it was declared and whatever seen: the larger of one LLT window over UDP and
    twice bandwidth × round trip. None where neither is known."""
    parts = [part for part in (_window_part(facts), _delay_part(facts, workload)) if part is not None]
    if not parts:
        return None
    largest = max(parts, key=lambda one: one.size)
    formula = "; ".join(one.formula for one in parts)
    size = min(largest.size, _PROFILE_BYTES_MAX)
    return PathBytes(size, f"{formula}; the larger counts: {size:,} bytes" if len(parts) > 1 else formula)


def _window_part(facts: Facts) -> PathBytes | None:
    if facts.llt is None or not private_links(facts, *DATAGRAMS) or stays_local(facts):
        return None
    window, each = facts.llt.flow_control.get("window", LLT_WINDOW), _llt_packet_bytes(facts)
    size = max(window * each, LLT_WINDOW_BYTES)
    more = f", rounded up to {size:,}" if size > window * each else ""
    return PathBytes(size, f"LLT window {window} packets × {each:,} bytes = {window * each:,}{more}")


def _delay_part(facts: Facts, workload: DeclaredWorkload | None) -> PathBytes | None:
    path = _path_link(facts, workload)
    if path is None or workload is None or workload.rtt_seconds is None or workload.transport in ("rdma", "local"):
        return None
    name, speed = path
    flight = bandwidth_delay_bytes(speed, workload.rtt_seconds)
    size = _power_of_two(2 * flight)
    return PathBytes(
        size,
        f"2 × {speed:,} Mbit/s of {name} × {workload.rtt_seconds * 1e3:g} ms / 8 = {2 * flight:,}, rounded up to "
        f"{size:,}",
    )


def _power_of_two(least: int) -> int:
    return 1 << max(0, least - 1).bit_length()


def _path_link(facts: Facts, workload: DeclaredWorkload | None) -> tuple[str, int] | None:
    """The fastest link of the path, with its Mbit/s: of those under LLT for a mirrored workload, else of all."""
    links = by_name(facts)
    carriers = private_carriers(facts) if workload is not None and workload.is_replicated else ()
    under = frozenset(each.name for name in carriers for each in links_below(name, links))
    return _fastest_link(facts, under) or _fastest_link(facts, frozenset())


def _sized_profile(facts: Facts, workload: DeclaredWorkload | None, keys: Iterable[str]) -> PlanProfile:
    """The profile with the size of the path, where that is known; of it, ``fix`` raises these keys alone."""
    path = path_bytes(facts, workload)
    return _plan_buffers(facts, path.size if path else None, keys)


def _plan_buffers(facts: Facts, size: int | None, keys: Iterable[str]) -> PlanProfile:
    """The profile with this size in bytes, None for its own; of it, ``fix`` raises these keys alone.

    With a default its maximum: one that stays below would be the next finding.
    """
    wanted = size or WHITE_PAPER_BYTES
    every: dict[str, None] = {}
    for key in keys:
        if key.endswith("_default"):
            every[key.replace("_default", "_max")] = None
        every[key] = None
    sizes = {key: raise_maximum(key, sysctl_numbers(facts, key), wanted) if key in _TCP else wanted for key in every}
    only = tuple(set_sysctl(key, value, "at-least") for key, value in sizes.items())
    return PlanProfile(NETWORK_BUFFERS, (("bytes", str(size)),) if size else (), only)


@rule(
    id="buffers.below-bandwidth-delay",
    severity="advice",
    title="TCP buffers cannot fill the link at this RTT",
    what="The declared round-trip time times the speed of the fastest link, doubled and rounded up to a power of two, "
    "against the buffer limits of the transport, declared or recognised. For a mirrored workload the link is the "
    "fastest under LLT.",
    why="A sender stops when as much is unacknowledged as the receiver's buffer holds.",
    helps_when="Few connections over a long or fast path.",
    hurts_when="Many connections at once (each may grow that far), or a network that caps a single flow below the "
    "link's speed, as clouds do: then several connections help and buffers do not.",
    sources=(sources.RFC_BDP, sources.IP_SYSCTL, sources.IRIS_GP3),
)
def below_bandwidth_delay(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    path = _path_link(facts, workload)
    if workload is None or workload.rtt_seconds is None or path is None or workload.transport in ("rdma", "local"):
        return None
    if workload.is_replicated and (not workload.mirrors_writes or past_sockets(facts)):
        return None
    name, speed = path
    flight = bandwidth_delay_bytes(speed, workload.rtt_seconds)
    wanted = _power_of_two(2 * flight)
    keys = _UDP if workload.transport == "udp" else _TCP
    low = _limits_below(facts, wanted, keys)
    if not low:
        return None
    needed = path_bytes(facts, workload)
    return below_bandwidth_delay.found(
        why=f"At {speed:,} Mbit/s and a round trip of {workload.rtt_seconds * 1e3:g} ms, {flight:,} bytes are in "
        f"flight on {name}; one connection needs twice that to keep it busy, and the limits are lower.",
        evidence={
            "links": (name,),
            "speed_mbps": speed,
            "rtt_seconds": workload.rtt_seconds,
            "in_flight_bytes": flight,
            "wanted_bytes": wanted,
            "formula": needed.formula if needed else None,
            **low,
        },
        remedy=_sized_profile(facts, workload, low),
    )


def _llt_packet_bytes(facts: Facts) -> int:
    sizes = [link.mtu or LLT_UDP_MTU for link in private_links(facts, *DATAGRAMS)]
    return _CHARGED_BYTES[max(sizes, default=0) > ETHERNET_MTU]


@rule(
    id="buffers.below-llt-window",
    severity="advice",
    title="Default receive buffer is below one LLT window",
    what="net.core.rmem_default against LLT's window of unacknowledged packets, for LLT links over UDP.",
    why="A window that arrives while the receiver is held up must fit into the socket's buffer; what does not fit is "
    "dropped and sent again after a timeout.",
    helps_when="LLT over UDP under bursts of writes. Four times the usual default (851,968 bytes) holds one window.",
    hurts_when="Every socket but TCP's takes the new default, so a host with very many of them needs the memory. LLT "
    "must be restarted for its sockets to have it.",
    sources=(sources.MEASURED_UDP, sources.WHITE_PAPER, sources.SOCKET),
    contradictions=("contradiction.socket-buffers",),
)
def below_llt_window(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    size, path = limit(facts, "net.core.rmem_default"), path_bytes(facts, workload)
    if facts.llt is None or _window_part(facts) is None or path is None or size is None:
        return None
    window = facts.llt.flow_control.get("window", LLT_WINDOW)
    need = window * _llt_packet_bytes(facts)
    if size >= need:
        return None
    return below_llt_window.found(
        why=f"LLT keeps up to {window} packets unacknowledged, which charge {need:,} bytes to the receiving socket; "
        f"its default is {size:,}. That LLT's sockets take the default size is inferred, not documented: watch "
        "RcvbufErrors in /proc/net/snmp.",
        evidence={
            "links": private_carriers(facts, *DATAGRAMS),
            "net.core.rmem_default": size,
            "window": window,
            "needed_bytes": need,
            "formula": path.formula,
            "udp_receive_buffer_errors": facts.counters.udp_receive_buffer_errors,
        },
        remedy=_sized_profile(facts, workload, ("net.core.rmem_default",)),
    )


def _share_of(part: int, whole: int | None) -> float | None:
    return part / (part + whole) if whole else None


@rule(
    id="buffers.udp-receive-errors",
    severity="advice",
    title="Datagrams were dropped: receive buffer full",
    what="RcvbufErrors of /proc/net/snmp and snmp6 since the host started.",
    why="A datagram that finds its socket's buffer full is gone; heartbeats and replication over UDP send it again "
    "later.",
    helps_when="The drops come in bursts that a larger buffer outlasts.",
    hurts_when="The receiving program is too slow for good: a larger buffer then only adds delay. ss -um shows whose "
    "socket it is.",
    sources=(sources.SNMP_COUNTER, sources.SOCKET, sources.WHITE_PAPER),
    contradictions=("contradiction.socket-buffers",),
)
def udp_receive_errors(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    errors, received = facts.counters.udp_receive_buffer_errors, facts.counters.udp_received
    if not errors:
        return None
    size = limit(facts, "net.core.rmem_default")
    share = _share_of(errors, received)
    often = share is None or share >= _ERROR_SHARE
    return udp_receive_errors.found(
        severity="advice" if often else "info",
        title=f"{count_noun(errors, 'datagram')} dropped: receive buffer full",
        why="The kernel counts them since the host started"
        + (f"; they are {share:.3%} of what arrived." if share is not None else "."),
        evidence={
            "udp_receive_buffer_errors": errors,
            "udp_received": received,
            "net.core.rmem_default": size,
            "net.core.rmem_max": limit(facts, "net.core.rmem_max"),
        },
        remedy=_plan_buffers(
            facts,
            LLT_WINDOW_BYTES if size is not None and size < LLT_WINDOW_BYTES else None,
            ("net.core.rmem_default", "net.core.rmem_max"),
        ),
    )


@rule(
    id="buffers.tcp-pruned",
    severity="info",
    title="TCP discarded queued data: receive buffer full",
    what="PruneCalled of /proc/net/netstat since the host started.",
    why="Before TCP drops data that it has already received, it collapses the queue; pruning means that this was not "
    "enough.",
    helps_when="It goes on counting under the workload that matters.",
    hurts_when="It was one burst long ago, or the program does not read: then the buffer is not the cause.",
    sources=(sources.SNMP_COUNTER, sources.IP_SYSCTL),
)
def tcp_pruned(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    pruned = facts.counters.tcp_pruned
    if not pruned:
        return None
    return tcp_pruned.found(
        title=f"TCP discarded data {count_noun(pruned, 'time')}: buffer full",
        why="The kernel counts it since the host started; each time the sender had to send again.",
        evidence={
            "tcp_pruned": pruned,
            "tcp_collapsed": facts.counters.tcp_collapsed,
            "net.ipv4.tcp_rmem": facts.sysctl.get("net.ipv4.tcp_rmem"),
        },
        remedy=_plan_buffers(facts, None, ("net.ipv4.tcp_rmem",)),
    )


def _smaller_defaults(facts: Facts, sockets: int, available: int) -> tuple[Remedy, ...]:
    """Defaults that fit: one LLT window where there is room for it, else the kernel's usual ones; the latter would not
    hold what LLT over UDP needs, for which its profile raises both."""
    for size in (LLT_WINDOW_BYTES,) if _window_part(facts) else (LLT_WINDOW_BYTES, _USUAL_DEFAULT):
        if 2 * sockets * size <= _MEMORY_SHARE * available:
            return tuple(set_sysctl(f"net.core.{end}mem_default", size, "at-most") for end in "rw")
    return (RunShell("ss -uanp", "see which programs have so many sockets"), Decide("give the host more memory"))


@rule(
    id="buffers.above-memory",
    severity="warning",
    title="Default socket buffers may exceed the memory",
    what="UDP sockets in use times the default buffers, against a quarter of the available memory.",
    why="Every socket but TCP's may fill its default buffers without having asked for any.",
    helps_when="Many sockets share a host of modest memory.",
    hurts_when="A program relies on the large default because it never asks for a buffer: raise it there instead.",
    sources=(sources.WHITE_PAPER, sources.SOCKET),
)
def above_memory(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    sockets, available = facts.memory.sockets.udp, facts.memory.available_bytes
    sizes = (limit(facts, "net.core.rmem_default"), limit(facts, "net.core.wmem_default"))
    if not sockets or not available or sizes[0] is None or sizes[1] is None:
        return None
    need = sockets * (sizes[0] + sizes[1])
    if need <= _MEMORY_SHARE * available:
        return None
    evidence: Evidence = {
        "udp_sockets": sockets,
        "net.core.rmem_default": sizes[0],
        "net.core.wmem_default": sizes[1],
        "needed_bytes": need,
        "available_bytes": available,
    }
    return above_memory.found(
        why=f"{sockets:,} UDP sockets may hold {need:,} bytes, {need / available:.0%} of the memory that is available.",
        evidence=evidence,
        remedy=_smaller_defaults(facts, sockets, available),
    )


@rule(
    id="buffers.default-above-maximum",
    severity="advice",
    title="Default socket buffer is larger than the maximum",
    what="net.core.rmem_default against rmem_max, and wmem_default against wmem_max.",
    why="setsockopt(2) is cut to the maximum, the default is not.",
    helps_when="Programs set their own buffers, as most cluster and storage software does.",
    hurts_when="Never: raising the maximum gives nobody memory who does not ask.",
    sources=(sources.SOCKET, sources.SYSCTL_NET),
)
def default_above_maximum(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    wrong: dict[str, int] = {}
    raised = []
    for end in ("rmem", "wmem"):
        size, most = limit(facts, f"net.core.{end}_default"), limit(facts, f"net.core.{end}_max")
        if size is not None and most is not None and size > most:
            wrong |= {f"net.core.{end}_default": size, f"net.core.{end}_max": most}
            raised.append(set_sysctl(f"net.core.{end}_max", size, "at-least"))
    if not wrong:
        return None
    return default_above_maximum.found(
        why="A program that asks for a buffer gets less than one that does not ask.",
        evidence=wrong,
        remedy=tuple(raised),
    )


@rule(
    id="network.listen-overflows",
    severity="advice",
    title="Connections were refused: listen queue full",
    what="ListenOverflows of /proc/net/netstat since the host started.",
    why="A connection that finds the accept queue full is dropped, and the client waits a second or more.",
    helps_when="somaxconn still has the 128 of kernels before 5.4.",
    hurts_when="The program accepts too slowly for good: a longer queue then only hides it.",
    sources=(sources.IP_SYSCTL, sources.SNMP_COUNTER),
)
def listen_overflows(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    overflows, backlog = facts.counters.listen_overflows, limit(facts, "net.core.somaxconn")
    if not overflows:
        return None
    is_short = backlog is not None and backlog < _BACKLOG
    return listen_overflows.found(
        severity="advice" if is_short else "info",
        title=f"{count_noun(overflows, 'connection')} refused: listen queue full",
        why="The kernel counts them since the host started. A queue is as long as the program asked for, at most "
        "net.core.somaxconn.",
        evidence={"listen_overflows": overflows, "net.core.somaxconn": backlog},
        remedy=(
            *([set_sysctl("net.core.somaxconn", _BACKLOG, "at-least")] if is_short else []),
            RunShell("ss -ltn", "see whose queue it is: Recv-Q is near Send-Q"),
        ),
    )


@rule(
    id="network.softnet-drops",
    severity="advice",
    title="Packets were dropped: CPU input queue full",
    what="The second column of /proc/net/softnet_stat, over all CPUs.",
    why="Packets that are steered to another CPU, or come from veth and the like, wait in a queue of "
    "netdev_max_backlog packets.",
    helps_when="Bursts; receive packet steering; traffic of containers.",
    hurts_when="A queue of hundreds of thousands, as old guides have it, turns loss into seconds of delay.",
    sources=(sources.SYSCTL_NET, sources.SCALING),
)
def softnet_drops(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    dropped, processed = facts.counters.softnet_dropped, facts.counters.softnet_processed
    if not dropped:
        return None
    share = _share_of(dropped, processed)
    return softnet_drops.found(
        severity="advice" if share is None or share >= _ERROR_SHARE else "info",
        title=f"{count_noun(dropped, 'packet')} dropped: CPU input queue full",
        why="The kernel counts them since the host booted (second column of /proc/net/softnet_stat).",
        evidence={
            "softnet_dropped": dropped,
            "softnet_processed": processed,
            "net.core.netdev_max_backlog": limit(facts, "net.core.netdev_max_backlog"),
        },
        remedy=set_sysctl("net.core.netdev_max_backlog", _CPU_QUEUE, "at-least")
        if (limit(facts, "net.core.netdev_max_backlog") or 0) < _CPU_QUEUE
        else _SPREAD,
    )


@rule(
    id="network.softnet-squeezed",
    severity="advice",
    title="The receive path often stops with packets left",
    what="The third column of /proc/net/softnet_stat against the first, over all CPUs; one in a thousand and more.",
    why="One round of receiving may take netdev_budget packets or netdev_budget_usecs, whichever ends first.",
    helps_when="Links of 25 Gbit/s and more whose interrupts meet on few CPUs.",
    hurts_when="Programs on those CPUs wait longer; spreading the interrupts may be the better cure.",
    sources=(sources.SYSCTL_NET,),
)
def softnet_squeezed(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    squeezed, processed = facts.counters.softnet_squeezed, facts.counters.softnet_processed
    if not squeezed or not processed or squeezed / processed < _SQUEEZED_SHARE:
        return None
    return softnet_squeezed.found(
        why=f"{squeezed:,} rounds for {processed:,} packets ended because the budget or the time was used up, with "
        "packets still waiting.",
        evidence={
            "softnet_squeezed": squeezed,
            "softnet_processed": processed,
            "net.core.netdev_budget": limit(facts, "net.core.netdev_budget"),
            "net.core.netdev_budget_usecs": limit(facts, "net.core.netdev_budget_usecs"),
        },
        remedy=set_sysctl("net.core.netdev_budget", _BUDGET, "at-least")
        if (limit(facts, "net.core.netdev_budget") or 0) < _BUDGET
        else _SPREAD,
    )
