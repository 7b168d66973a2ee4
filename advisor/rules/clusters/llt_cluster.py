"""LLT in a cluster: timers against each other, links that fail together, queues against memory, window against path."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping

from advisor.facts.clusters.infoscale_configuration import FSS_ZONES, LONG_ROUND_TRIP_SECONDS
from advisor.facts.clusters.llt import Llt
from advisor.rules import sources
from advisor.rules.clusters.infoscale import DATAGRAMS, private_carriers, recognition
from advisor.rules.clusters.llt import drift
from advisor.rules.network.buffers import LLT_WINDOW, bandwidth_delay_bytes
from advisor.rules.network.mtu import LLT_UDP_MTU
from advisor.rules.queries import by_name, is_physical, links_below
from advisor.rules.rule import Decide, DeclaredWorkload, Facts, Finding, Remedy, RunShell, SetTunable, rule

ORDER = 80

DEFAULT_PEERINACT = 1600
"""In hundredths of a second: 16 s."""
_MEMORY_SHARE = 0.05


def _timer_lines(llt: Llt) -> Iterator[tuple[str, Mapping[str, int]]]:
    yield "live", llt.timers
    if llt.llttab is not None and llt.llttab.timers:
        yield "/etc/llttab", {**llt.timers, **llt.llttab.timers}


@rule(
    id="llt.timer-order",
    severity="warning",
    title="LLT timers contradict each other",
    what="peertrouble and peertroublelo < peerinact, and rpeerinact between them where a link is of type rdma; live "
    "and in /etc/llttab.",
    why="After peertrouble LLT sends by other links, after peerinact it takes the link for dead.",
    helps_when="Always.",
    hurts_when="A peerinact that is raised delays failover, and must stay below the time of a reboot.",
    sources=(sources.VCS_TIMERS,),
)
def timer_order(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if facts.llt is None:
        return None
    pairs = [("peertrouble", "peerinact"), ("peertroublelo", "peerinact")]
    if any(link.type == "rdma" for link in facts.llt.links):
        pairs += [("peertrouble", "rpeerinact"), ("rpeerinact", "peerinact")]
    wrong = tuple(
        f"{where}: {low} {values[low]} is not below {high} {values[high]}"
        for where, values in _timer_lines(facts.llt)
        for low, high in pairs
        if low in values and high in values and values[low] >= values[high]
    )
    if not wrong:
        return None
    return timer_order.found(
        why="A link is then given up before LLT has called it troubled and tried the other links.",
        evidence={"detail": wrong},
        remedy=(
            "decide which of the timers is wrong, set it with advisor apply llt:timer.NAME=VALUE, and write the "
            "same set-timer line in /etc/llttab, on every node",
            RunShell("lltconfig -T query", "see the live timers"),
        ),
    )


@rule(
    id="llt.timer-drift",
    severity="advice",
    title="Live LLT timers differ from /etc/llttab",
    what="What lltconfig -T query prints against the set-timer lines.",
    why="The next restart of LLT would change when the cluster takes a node for dead.",
    helps_when="All nodes should come back as they ran.",
    hurts_when="The live value is meant for a repair of cables or switches, and is to end with it.",
    sources=(sources.VCS_TIMERS, sources.LLTCONFIG),
)
def timer_drift(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if facts.llt is None or facts.llt.llttab is None:
        return None
    why = "lltconfig -T holds until LLT restarts; a set-timer line counts only from then on."
    return drift(timer_drift, facts.llt.timers, facts.llt.llttab.timers, why=why, prefix="timer.", line="set-timer")


def _is_far(facts: Facts, workload: DeclaredWorkload | None) -> bool:
    found = recognition(facts, workload)
    if found is not None and found.configuration == FSS_ZONES:
        return True
    return workload is not None and (workload.rtt_seconds or 0) > LONG_ROUND_TRIP_SECONDS


@rule(
    id="llt.peerinact-short",
    severity="advice",
    title="LLT declares a distant peer dead too early",
    what="peerinact below its default of 16 s, with a declared round trip above 0.5 ms or a cluster recognised to span "
    "zones.",
    why="The manual raises peerinact, and does not lower it, where private links are slow or bursty.",
    helps_when="Peers in another zone, shared links, virtual machines that pause.",
    hurts_when="Failover takes as long as peerinact; it must stay below the time of a reboot.",
    sources=(sources.VCS_TIMERS,),
)
def peerinact_short(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    value = facts.llt.timers.get("peerinact") if facts.llt else None
    if value is None or value >= DEFAULT_PEERINACT or not _is_far(facts, workload):
        return None
    return peerinact_short.found(
        why=f"Somebody lowered peerinact to {value / 100:g} s, and the peers are a long round trip away. A pause of "
        "that length on the path, or of the hypervisor, makes the nodes take each other for dead.",
        evidence={"peerinact": value, "default": DEFAULT_PEERINACT},
        remedy=(SetTunable("llt:timer.peerinact", str(DEFAULT_PEERINACT), "at-least"), "do the same on every node"),
    )


@rule(
    id="llt.single-link",
    severity="advice",
    title="LLT has a single link",
    what="The link and link-lowpri lines of /etc/llttab.",
    why="VCS wants two private links that fail independently; with one that is left it declares jeopardy and will not "
    "fail over by it.",
    helps_when="The cluster is to survive a failed link.",
    hurts_when="The second link shares cable, card or subnet with the first: then it adds nothing.",
    sources=(sources.VCS_LINKS, sources.WHITE_PAPER),
)
def single_link(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    links = facts.llt.links if facts.llt else ()
    is_alone = facts.infoscale is not None and facts.infoscale.signs.is_cluster is False
    if len(links) != 1 or is_alone:
        return None
    (link,) = links
    is_tcp = link.type == "tcp"
    return single_link.found(
        severity="info" if is_tcp else "advice",
        why="When it fails, the nodes cannot distinguish a dead link from a dead peer."
        + (" The white paper's cluster over TCP has a single one as well." if is_tcp else ""),
        evidence={"links": (link.link or link.device,), "tag": link.tag, "type": link.type},
        remedy="add a second link line to /etc/llttab over another device and subnet, on every node; over a public "
        "network as link-lowpri",
    )


@rule(
    id="llt.links-on-one-port",
    severity="warning",
    title="Two LLT links rest on the same port",
    what="The physical links below the kernel links that carry LLT: the same one, VLANs on it, or one bond for both.",
    why="VCS counts them as two ways to the peer, and they are one.",
    helps_when="Two links were set up so that one may fail, or to share the load.",
    hurts_when="The change needs LLT down on the node: one node at a time.",
    sources=(sources.VCS_LINKS, sources.WHITE_PAPER),
)
def links_on_one_port(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    links = by_name(facts)
    carried: dict[tuple[str, ...], list[str]] = {}
    for one in facts.llt.links if facts.llt else ():
        if one.link is not None and one.link in links:
            roots = tuple(sorted(root.name for root in links_below(one.link, links) if is_physical(root)))
            carried.setdefault(roots or (one.link,), []).append(f"{one.tag} over {one.link}")
    shared = {ports: names for ports, names in carried.items() if len(names) > 1}
    if not shared:
        return None
    return links_on_one_port.found(
        why="The failure of one port, cable or card takes these LLT links together, and they share its bandwidth.",
        evidence={
            "links": tuple(sorted({name for ports in shared for name in ports})),
            "detail": tuple(f"{', '.join(ports)}: {'; '.join(names)}" for ports, names in shared.items()),
        },
        remedy="move one of them to another port and subnet: change its link line in /etc/llttab, on every node",
    )


def _packet_bytes(llt: Llt) -> int:
    return max(
        (link.mtu or LLT_UDP_MTU for link in llt.links if link.type in DATAGRAMS and not link.low_priority),
        default=LLT_UDP_MTU,
    )


def _shorter_queues(flow: Mapping[str, int], packet: int, peers: int, available: int) -> tuple[Remedy, ...]:
    """Marks whose queues fit into the share of memory; only a decision where the low-water marks leave no room."""
    fits = int(_MEMORY_SHARE * available) // (packet * (peers + 1))
    if fits <= max(flow.get("lowwater", 0), flow.get("rportlowwater", 0)):
        return (Decide("lower the low-water marks first, then the high-water marks, and the same in /etc/llttab"),)
    marks = [name for name in ("highwater", "rporthighwater") if flow.get(name, 0) > fits]
    return tuple(SetTunable(f"llt:{name}", str(fits), "at-most") for name in marks)


def queue_bytes(highwater: int, rporthighwater: int, packet_bytes: int, peers: int) -> int:
    """Memory of full LLT queues: one to send for each peer, and one received."""
    return (highwater * peers + rporthighwater) * packet_bytes


@rule(
    id="llt.queue-memory",
    severity="warning",
    title="LLT's queues may take too much memory",
    what="(highwater × peers + rporthighwater) × the packet size, against 5 % of the available memory.",
    why="The white paper's condition for larger marks: the queue must not exceed the memory that there is.",
    helps_when="Little memory, or many nodes.",
    hurts_when="Lower marks stop the senders earlier.",
    sources=(sources.WHITE_PAPER, sources.VCS_FLOW),
)
def queue_memory(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    available = facts.memory.available_bytes
    if facts.llt is None or not available or "highwater" not in facts.llt.flow_control:
        return None
    flow = facts.llt.flow_control
    hosts = facts.infoscale.hosts if facts.infoscale else ()
    known = sum(1 for node in facts.llt.nodes if node.name and not node.is_self) if facts.llt else 0
    packet, peers = _packet_bytes(facts.llt), max(1, len(hosts) - 1, known)
    need = queue_bytes(flow["highwater"], flow.get("rporthighwater", 0), packet, peers)
    if need <= _MEMORY_SHARE * available:
        return None
    return queue_memory.found(
        why=f"Full queues to {peers} peer{'' if peers == 1 else 's'} hold {need:,} bytes, {need / available:.0%} of "
        "the memory that is available.",
        evidence={
            "highwater": flow["highwater"],
            "rporthighwater": flow.get("rporthighwater"),
            "packet_bytes": packet,
            "peers": peers,
            "needed_bytes": need,
            "available_bytes": available,
        },
        remedy=_shorter_queues(flow, packet, peers, available),
    )


def window_bytes_per_second(window: int, packet_bytes: int, rtt_seconds: float) -> float:
    """The most that a window of unacknowledged packets lets through."""
    return window * packet_bytes / rtt_seconds


@rule(
    id="llt.window-below-path",
    severity="info",
    title="LLT's window is too small for the round trip",
    what="window × packet size against the speed of the fastest link under LLT × the declared round trip.",
    why="LLT sends no more than a window of packets before the peer has acknowledged some.",
    helps_when="Mirrored writes in large blocks over a long round trip.",
    hurts_when="The window outgrows the receiver's socket buffer: what does not fit is dropped and sent again.",
    sources=(sources.VCS_FLOW, sources.RFC_BDP),
)
def window_below_path(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    rtt = workload.rtt_seconds if workload else None
    if facts.llt is None or rtt is None or workload is None or not workload.mirrors_writes:
        return None
    links = by_name(facts)
    carriers = [links[name] for name in private_carriers(facts, *DATAGRAMS) if name in links]
    speed = max((link.speed_mbps for link in carriers if link.speed_mbps), default=None)
    window, packet = facts.llt.flow_control.get("window", LLT_WINDOW), _packet_bytes(facts.llt)
    if speed is None or window * packet >= (flight := bandwidth_delay_bytes(speed, rtt)):
        return None
    rate = window_bytes_per_second(window, packet, rtt)
    return window_below_path.found(
        why=f"{window} packets of {packet:,} bytes in a round trip of {rtt * 1e3:g} ms are {rate / 1e6:,.0f} MB/s; the "
        f"fastest link carries {speed / 8:,.0f}. That one window counts for all that goes to a peer is inferred.",
        evidence={
            "links": tuple(link.name for link in carriers),
            "window": window,
            "packet_bytes": packet,
            "rtt_seconds": rtt,
            "window_mb_per_second": round(rate / 1e6),
            "in_flight_bytes": flight,
        },
        remedy=(
            "measure before you change it, on the mirrored volume; then set llt:window on every node, with a "
            "receive buffer that holds as many packets",
            RunShell("advisor explain llt:window", "read what sets it"),
        ),
    )


@rule(
    id="llt.broadcast-over-router",
    severity="advice",
    title="LLT relies on broadcasts to peers behind a router",
    what="set-addr peers outside this host's own subnets, against set-bcasthb and set-arp in /etc/llttab.",
    why="Links that cross routers need the peers' addresses written down, and broadcasts off.",
    helps_when="Nodes in different subnets, as across the zones of a cloud.",
    hurts_when="A node without its set-addr lines is then not found: all nodes need all of them.",
    sources=(sources.VCS_UDP,),
)
def broadcast_over_router(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    networks = []
    for address in (address for link in facts.links for address in link.addresses):
        try:
            networks.append(ipaddress.ip_interface(address).network)
        except ValueError:
            continue
    found = []
    for peer in dict.fromkeys(facts.llt.llttab.peers if facts.llt and facts.llt.llttab else ()):
        try:
            address_ = ipaddress.ip_address(peer)
        except ValueError:
            continue
        if networks and not any(address_ in network for network in networks):
            found.append(peer)
    outside = tuple(found)
    if not outside or facts.llt is None or facts.llt.llttab is None:
        return None
    missing = tuple(name for name in ("set-bcasthb", "set-arp") if f"{name} 0" not in facts.llt.llttab.other)
    if not missing:
        return None
    return broadcast_over_router.found(
        why="A router passes no broadcast on, so LLT's broadcast heartbeats and address requests reach nobody behind "
        "it.",
        evidence={"peers": outside, "missing": tuple(f"{name} 0" for name in missing)},
        remedy=(
            *(SetTunable(f"file:/etc/llttab:{name}", "0") for name in missing),
            "do the same on every node, then restart LLT, one node at a time",
        ),
    )
