"""Causes in the network: loss, round trips, windows, full links, full tables, errors of links and fabrics."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.diagnosis.cause import (
    BINDS_FROM,
    UNANSWERED_FROM,
    BindingCause,
    cause,
    percent,
    plan_at_least,
    probe_command,
)
from advisor.diagnosis.observation import Observation
from advisor.facts.network.link_stack import ports_of
from advisor.host.numbers import count_noun, count_of

_SNMP = "Linux kernel documentation, networking/snmp_counter"
_TCP_INFO = "ss(8); tcp_info of include/uapi/linux/tcp.h (busy_time, rwnd_limited, sndbuf_limited)"
_NETDATA_TCP = "netdata/netdata src/health/health.d/tcp_resets.conf and net.conf"
_PMIE_SYN = "performancecopilot/pcp src/pmieconf/network/tcpqfulldrops"
_NETDATA_CONNTRACK = "netdata/netdata src/health/health.d/netfilter.conf"
_WEKA_LINKS = "weka/tools install/scripts.d/ta/900_check_link_speeds.sh; netdata net.conf"
LOSS_FROM = 0.005
LOST_ALONE_FROM = 0.01
"""With such a loss TCP has a dozen segments under way (Mathis, 1.22 / sqrt(p)): no usual window or buffer is less."""
MIN_SENT = 100
LIMITED_FROM = 0.2
ROUND_TRIP_FROM_MS = 2.0
FULL_LINK_FROM = 0.9
FULL_TABLE_FROM = 0.95
SEGMENT_BYTES = 1448
QUEUE_TIMES = 4.0
"""A round trip of so many times the least is one with a wait."""
DELAYED_MS = (40, 200)
DROPPED_FROM = 5
LONG_QUEUE = 4096
"""Connections that wait: as many as the kernel grants a listening socket since 5.4."""


def _tcp(seen: Observation, field: str, protocol: str = "TcpExt") -> int:
    """The rise of a counter of TCP; 0 where this kernel does not count it."""
    return seen.rose("protocol", protocol, field) or 0


@cause(
    id="net.loss",
    resource="net",
    help="repair",
    what="Retransmitted of all sent segments, without those that ask for a connection or that the peer had already, "
    "and segments that arrived out of order of all received ones.",
    threshold="0.5 % retransmitted of at least 100, and at least 10, but not half; or 1 % out of order and at least "
    "100; from 1 % on windows and buffers follow from it",
    sources=(_SNMP, _NETDATA_TCP, "Mathis et al., The macroscopic behavior of the TCP congestion avoidance algorithm"),
    explains=("net.send-buffer", "net.nfs-server"),
)
def loss(seen: Observation) -> Iterator[BindingCause]:
    """Packets that get lost: TCP sends them again and slows down."""
    sent, resent = seen.rose("protocol", "Tcp", "OutSegs"), seen.rose("protocol", "Tcp", "RetransSegs")
    # A peer that is gone is asked again and again (SYN); what the peer acknowledges twice (DSACK) was late, not lost.
    asked_again, needless = _tcp(seen, "TCPSynRetrans"), _tcp(seen, "TCPDSACKRecv")
    resent = None if resent is None else max(0, resent - asked_again - needless)
    received, out_of_order = seen.rose("protocol", "Tcp", "InSegs"), _tcp(seen, "TCPOFOQueue")
    evidence: dict[str, float | int | str] = {}
    share = 0.0
    if sent and resent and sent >= MIN_SENT and resent >= 10 and LOSS_FROM <= resent / sent < UNANSWERED_FROM:
        share = resent / sent
        evidence |= {"retransmitted": resent, "sent": sent, "retransmitted_share": share}
        evidence |= {"timeouts": _tcp(seen, "TCPTimeouts"), "sent_needlessly": needless}
    # Received segments may be merged before they are counted, the ones out of order are then, too.
    if received and out_of_order >= 100 and out_of_order / received >= 0.01:
        share = max(share, out_of_order / received) if not evidence else share
        evidence |= {"out_of_order": out_of_order, "received": received}
    if not evidence:
        return
    peer = _peer_of(seen, "retransmitted")
    # A connection that has lost segments waits for the network: that is the time which loss accounts for.
    waited = max((one.network for one in _waiting(seen) if one.peer == peer), default=0.0)
    is_sent_again = "retransmitted" in evidence
    yield loss.bind(
        max(share, waited),
        f"{percent(share, 1)} of the TCP segments are lost on the way" + (f" to {peer}" if peer else "")
        if is_sent_again
        else f"{percent(share, 1)} of the TCP segments arrive out of order: others were lost on the way, or overtaken",
        of="time" if waited > share else "segments",
        device=_busiest_link(seen),
        evidence=evidence | ({"peer": peer} if peer else {}),
        advice="Find where packets get lost (a link, a switch port, a queue) before any buffer is raised.",
        commands=("ip -s -s link", "ss -tin", "tc -s qdisc"),
        explains=("net.receive-window",) if share >= LOST_ALONE_FROM else (),
    )


def _peer_of(seen: Observation, field: str) -> str | None:
    """The other end of the connection of which a counter rose most."""
    rises = {name: seen.rose("tcp", name, field) or 0 for name in seen.span.names("tcp")}
    name = max(rises, key=lambda one: rises[one], default="")
    return name.rpartition(" > ")[2] if rises.get(name) else None


def _busiest_link(seen: Observation) -> str | None:
    """The link, other than the loopback, that carried the most bytes."""
    moved = {
        name: (one.rx_bytes_per_s or 0.0) + (one.tx_bytes_per_s or 0.0)
        for name, one in seen.links.items()
        if name != "lo" or len(seen.links) == 1
    }
    name = max(moved, key=lambda one: moved[one], default=None)
    return name if name is not None and moved[name] else None


class _Waiting:
    """Of a connection the shares of the span in which it was busy, and in which a window or a buffer limited it."""

    def __init__(self, seen: Observation, name: str) -> None:
        window_ms = seen.span.seconds_of("tcp") * 1000

        def share(field: str) -> float:
            return min(1.0, (seen.rose("tcp", name, field) or 0) / window_ms) if window_ms else 0.0

        self.name = name
        self.peer = name.rpartition(" > ")[2]
        self.probe = probe_command(self.peer)
        self.peers_window, self.own_buffer = share("rwnd_limited_ms"), share("sndbuf_limited_ms")
        self.network = max(0.0, share("busy_ms") - self.peers_window - self.own_buffer)
        self.sent_per_s = seen.per_second("tcp", name, "bytes_acked") or 0.0
        self.on_way_bytes = self.sent_per_s * ((seen.level("tcp", name, "rtt_ms") or 0.0) / 1000)
        windows = seen.level("tcp", name, "cwnd"), seen.level("tcp", name, "mss_bytes")
        self.window_bytes = (windows[0] or 0) * (windows[1] or 0)
        self.rtt_ms, self.least_rtt_ms = seen.level("tcp", name, "rtt_ms"), seen.level("tcp", name, "min_rtt_ms")
        self.evidence: dict[str, float | int | str | None] = {
            "connection": name,
            "bytes_per_s": self.sent_per_s,
            "rtt_ms": self.rtt_ms,
            "min_rtt_ms": self.least_rtt_ms,
        }

    @property
    def is_acknowledged_late(self) -> bool:
        """Whether what is waited for is the peer's delayed acknowledgement, and not the way: 40 to 200 ms
        (TCP_DELACK_MIN and TCP_DELACK_MAX of include/net/tcp.h), for less than a segment, on a way that has been far
        shorter."""
        return bool(
            self.on_way_bytes < SEGMENT_BYTES
            and self.rtt_ms
            and self.least_rtt_ms
            and QUEUE_TIMES * self.least_rtt_ms <= self.rtt_ms
            and 0.8 * DELAYED_MS[0] <= self.rtt_ms <= 1.1 * DELAYED_MS[1]
        )


def _waiting(seen: Observation) -> list[_Waiting]:
    return [_Waiting(seen, name) for name in seen.span.names("tcp") if seen.rose("tcp", name, "busy_ms")]


def _held_by_network(seen: Observation, *, times_the_least: float = 0.0) -> _Waiting | None:
    """The connection that waits most for the network: half of the time or more, at a long round trip, which is so many
    times the least that it had. Of one that sends little, such as a heartbeat now and then, nearly all of the time."""
    found = (
        one
        for one in _waiting(seen)
        if one.rtt_ms is not None
        and one.rtt_ms >= ROUND_TRIP_FROM_MS
        and one.network >= (0.5 if one.on_way_bytes >= SEGMENT_BYTES else 0.8)
        # Several segments at a time, and far fewer than the network admits: a stream that sends now and then.
        and not SEGMENT_BYTES <= one.on_way_bytes < one.window_bytes / 4
        and (not times_the_least or (one.least_rtt_ms and one.rtt_ms >= times_the_least * one.least_rtt_ms))
    )
    return max(found, key=lambda one: one.network, default=None)


@cause(
    id="net.receive-window",
    resource="net",
    help="tuning",
    what="The time in which a connection had data to send and the receive window of the peer did not admit it; on the "
    "receiving host, windows that were closed, and receive buffers that were full.",
    threshold="20 % of the time for one connection; a closed window, a buffer that is pruned, or a segment that is "
    "dropped for want of room in its socket (TCPBacklogDrop, TCPRcvQDrop), twice a second on the receiver",
    sources=(_TCP_INFO, _SNMP),
    explains=("net.send-buffer", "net.round-trip"),
)
def receive_window(seen: Observation) -> Iterator[BindingCause]:
    worst = max(_waiting(seen), key=lambda one: one.peers_window, default=None)
    if worst is not None and worst.peers_window >= LIMITED_FROM:
        yield receive_window.bind(
            worst.peers_window,
            f"The receive window of {worst.peer} holds a connection up {percent(worst.peers_window)} of the time",
            device=worst.peer,
            evidence={"window_limited_share": worst.peers_window, **worst.evidence},
            advice="On the peer: larger receive buffers (net.ipv4.tcp_rmem), unless its program reads too slowly.",
            commands=("advisor plan socket-buffers-8m", "ss -tin"),
        )
        return
    shut, pruned = _tcp(seen, "TCPToZeroWindowAdv"), _tcp(seen, "PruneCalled")
    dropped = sum(_tcp(seen, field) for field in ("TCPBacklogDrop", "TCPRcvQDrop", "TCPZeroWindowDrop"))
    closed = shut + pruned + dropped
    seconds = seen.span.seconds_of("protocol")
    if closed >= 2 * seconds and closed >= 10:
        yield receive_window.bind(
            max(BINDS_FROM, closed / (seconds * 100)) if closed < seconds * 10 else 0.5,
            "Receivers on this host close their windows: data arrives faster than it is read"
            if shut
            else "Receive buffers of this host are full: data arrives faster than it is read",
            evidence={"windows_closed": shut, "buffers_pruned": pruned, "dropped": dropped, "seconds": seconds},
            advice="The program reads too slowly, or its receive buffer is small (SO_RCVBUF, net.ipv4.tcp_rmem).",
            commands=("ss -tm", "advisor plan socket-buffers-8m"),
        )


@cause(
    id="net.send-buffer",
    resource="net",
    help="tuning",
    what="The time in which a connection had sent all that its send buffer holds.",
    threshold="20 % of the time for one connection",
    sources=(_TCP_INFO,),
)
def send_buffer(seen: Observation) -> Iterator[BindingCause]:
    worst = max(_waiting(seen), key=lambda one: one.own_buffer, default=None)
    if worst is not None and worst.own_buffer >= LIMITED_FROM:
        yield send_buffer.bind(
            worst.own_buffer,
            f"The send buffer holds the connection to {worst.peer} up {percent(worst.own_buffer)} of the time",
            device=worst.peer,
            evidence={"buffer_limited_share": worst.own_buffer, **worst.evidence},
            advice="Larger send buffers (net.ipv4.tcp_wmem, or SO_SNDBUF of the program).",
            commands=("advisor plan socket-buffers-8m", "ss -tim"),
        )


@cause(
    id="net.link-saturated",
    resource="net",
    help="hardware",
    what="Bytes of the busier direction of each link against its speed; and the round-trip time of busy connections "
    "against the least that they have had.",
    threshold="90 % of the speed over the span (netdata warns at 90 %); or busy 50 % of the time and a round trip of "
    "2 ms or more that is 4 times the least: packets wait in a queue on the way",
    sources=("netdata/netdata src/health/health.d/net.conf", _TCP_INFO, "RFC 6349, section 3"),
)
def link_saturated(seen: Observation) -> Iterator[BindingCause]:
    uses = {name: link.utilisation or 0.0 for name, link in seen.links.items() if name != "lo"}
    full = {name: used for name, used in uses.items() if used >= FULL_LINK_FROM}
    # A VLAN or a bond is full where a link below it is: that is the narrowest.
    below = {one.name: one.lower for one in seen.facts.links}
    for name, used in full.items():
        link = seen.links[name]
        if not full.keys().isdisjoint(below.get(name, ())):
            continue
        bond = _bond_with_room(seen, name)
        yield link_saturated.bind(
            used,
            f"{name} carries {percent(min(1.0, used))} of its speed",
            device=name,
            evidence={
                "used_share": used,
                "rx_bytes_per_s": link.rx_bytes_per_s or 0.0,
                "tx_bytes_per_s": link.tx_bytes_per_s or 0.0,
                "speed_mbps": link.speed_mbps or 0.0,
            },
            advice="Its bond has members with room: more flows, or a policy that spreads them (xmit_hash_policy "
            "layer3+4 here, or that of the switch for what arrives)."
            if bond
            else "A faster link, one link more, or fewer bytes; advisor limits --what-if shows what it would carry.",
            commands=(f"cat /proc/net/bonding/{bond}",) if bond else ("advisor limits --what-if links=+1",),
            help="tuning" if bond else None,
            explains=("net.loss", "net.round-trip", "net.send-buffer", "net.receive-window", "net.nfs-server"),
        )
    if not full:
        yield from _full_way(seen)


def _bond_with_room(seen: Observation, name: str) -> str | None:
    """The bond of a link of which another member is used less than half."""
    for bond in seen.facts.links:
        others = [seen.links.get(one) for one in bond.lower if one != name]
        if bond.kind in ("bond", "team") and name in bond.lower:
            uses = [one.utilisation for one in others if one is not None and one.utilisation is not None]
            return bond.name if uses and min(uses) < 0.5 else None
    return None


def _full_way(seen: Observation) -> Iterator[BindingCause]:
    """A queue on the way: something slower than this host's link, or a limit of its rate."""
    worst = _held_by_network(seen, times_the_least=QUEUE_TIMES)
    # Less than a segment fills no queue.
    if worst is None or worst.on_way_bytes < SEGMENT_BYTES:
        return
    yield link_saturated.bind(
        worst.network,
        f"Something on the way to {worst.peer} is full: packets wait in its queue",
        device=worst.peer,
        evidence={"network_limited_share": worst.network, **worst.evidence},
        advice="A shaper here (tc -s qdisc), a slower link or switch port on the way, or a limit of the provider.",
        commands=("tc -s qdisc", worst.probe),
        explains=("net.round-trip",),
    )


@cause(
    id="net.round-trip",
    resource="net",
    help="hardware",
    what="The time in which a connection waited for acknowledgements and neither a window nor a buffer limited it.",
    threshold="50 % of the time, at a round trip of 2 ms or more, and a quarter of the congestion window on the way; "
    "80 % where less than a segment is sent in one",
    sources=(_TCP_INFO,),
)
def round_trip(seen: Observation) -> Iterator[BindingCause]:
    worst = _held_by_network(seen)
    if worst is None:
        return
    if worst.is_acknowledged_late:
        yield round_trip.bind(
            worst.network,
            f"{worst.peer} acknowledges each small request {worst.rtt_ms:.0f} ms late, and answers no earlier",
            device=worst.peer,
            evidence={"network_limited_share": worst.network, **worst.evidence},
            advice="Its program takes that long, the way has become longer, or both wait for each other: a request "
            "in two pieces is held until the first is acknowledged (Nagle): TCP_NODELAY, or one piece for each.",
            commands=("ss -tin", worst.probe),
            help="application",
        )
        return
    yield round_trip.bind(
        worst.network,
        f"The round trip to {worst.peer} ({worst.rtt_ms:.1f} ms) binds {percent(worst.network)} of the time",
        device=worst.peer,
        evidence={"network_limited_share": worst.network, **worst.evidence},
        advice="A shorter way, or more requests or connections at a time; buffers are not what limits it.",
        commands=(worst.probe,),
    )


@cause(
    id="net.conntrack-full",
    resource="net",
    help="tuning",
    what="Tracked connections against nf_conntrack_max, and packets that were dropped since the table was full.",
    threshold="95 % of the table (netdata: critical at 95 %, warning at 85 %), or any packet dropped for it",
    sources=(_NETDATA_CONNTRACK, "net/netfilter/nf_conntrack_core.c (drop, early_drop, insert_failed)"),
    explains=("net.loss",),
)
def conntrack_full(seen: Observation) -> Iterator[BindingCause]:
    count, most = (seen.level("conntrack", "host", field) for field in ("count", "max"))
    drop, early, clash = (
        seen.rose("conntrack", "host", field) or 0 for field in ("drop", "early_drop", "insert_failed")
    )
    # Two packets of one new connection at once, as of DNS: one of them is dropped, and the table has room.
    dropped = early + max(0, drop - clash)
    if count is None or not most or (count / most < FULL_TABLE_FROM and not dropped):
        return
    yield conntrack_full.bind(
        count / most,
        f"The table of tracked connections is full: {count:.0f} of {most:.0f}",
        of="entries",
        evidence={"count": count, "max": most, "dropped": dropped},
        advice="Raise net.netfilter.nf_conntrack_max, or exempt storage traffic from tracking (NOTRACK).",
        commands=(f"advisor plan sysctl:net.netfilter.nf_conntrack_max={int(most) * 2}",),
    )


@cause(
    id="net.listen-drops",
    resource="net",
    help="tuning",
    what="Connections that were refused since the queue of a listening socket, or that of half-open ones, was full.",
    threshold="5 in the span, and 1 % of the connections that were accepted",
    sources=(_PMIE_SYN, _SNMP),
    explains=("net.loss",),
)
def listen_drops(seen: Observation) -> Iterator[BindingCause]:
    full = _tcp(seen, "ListenOverflows")
    half_open = _tcp(seen, "TCPReqQFullDrop") + _tcp(seen, "TCPReqQFullDoCookies")
    dropped = max(_tcp(seen, "ListenDrops"), full) + half_open
    accepted = seen.rose("protocol", "Tcp", "PassiveOpens") or 0
    share = dropped / (dropped + accepted) if dropped else 0.0
    if share < 0.01 or dropped < DROPPED_FROM:
        return
    is_half_open = half_open > max(_tcp(seen, "ListenDrops"), full)
    key = "net.ipv4.tcp_max_syn_backlog" if is_half_open else "net.core.somaxconn"
    plan = plan_at_least(seen, key, LONG_QUEUE)
    yield listen_drops.bind(
        share,
        f"{count_noun(half_open, 'request')} for a connection found the queue of half-open ones full"
        if is_half_open
        else f"{count_noun(dropped, 'connection', 'was', 'were')} dropped: the queue of a listening socket is full",
        of="connections",
        evidence={"dropped": dropped, "queue_full": full, "half_open_full": half_open, "accepted": accepted},
        advice="Raise the program's backlog, net.core.somaxconn and net.ipv4.tcp_max_syn_backlog, unless most of who "
        "asks never answers: then it is a flood, to be kept away before this host."
        if is_half_open
        else "Raise the program's backlog (listen(2)), unless the program accepts too slowly."
        if not plan
        else "Raise net.core.somaxconn and the program's backlog, unless the program accepts too slowly.",
        commands=("ss -tan state syn-recv", *plan) if is_half_open else ("ss -ltn", *plan),
        help="application" if not plan and not is_half_open else None,
    )


_LINK_ERRORS = (
    *("rx_crc_errors", "rx_frame_errors", "rx_length_errors", "tx_carrier_errors", "tx_aborted_errors"),
    "tx_window_errors",
)
_RING_DROPS = ("rx_missed_errors", "rx_fifo_errors", "rx_over_errors", "tx_fifo_errors")
_FABRIC_ERRORS = (
    *("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "local_link_integrity_errors"),
    *("excessive_buffer_overrun_errors", "req_transport_retries_exceeded"),
)
_SENT_AGAIN = (
    *("local_ack_timeout_err", "out_of_sequence", "rnr_nak_retry_err", "implied_nak_seq_err", "packet_seq_err"),
)
"""What an RDMA transport sends again, which adaptive routing and Ethernet cause now and then."""
_FLAPS_FROM = 4
"""Changes of a virtual link: its other end goes down and up twice. One comes up as its container or guest begins."""
_FC_ERRORS = (
    "link_failure_count",
    "loss_of_sync_count",
    "loss_of_signal_count",
    "invalid_crc_count",
    "invalid_tx_word_count",
)


@cause(
    id="net.errors",
    resource="net",
    help="repair",
    what="Damaged frames and changes of the carrier of each link, and members of bonds without one; errors of Fibre "
    "Channel and InfiniBand ports.",
    threshold="any change of the carrier of a device, 4 of a virtual link, none of a bridge; a member of a bond "
    "that is down while another is up; errors, and packets that RDMA sends again, in at least 1 of 100,000",
    sources=(
        _WEKA_LINKS,
        "prometheus/procfs sysfs/class_fibrechannel.go",
        "weka/tools install/scripts.d/ta/915_rdma_network_errors.sh",
    ),
    is_error=True,
    explains=("net.loss",),
)
def errors(seen: Observation) -> Iterator[BindingCause]:
    kinds = {one.name: one.kind for one in seen.facts.links}
    for name, link in seen.links.items():
        counts = {field: rise for field in _LINK_ERRORS if (rise := seen.rose("link-errors", name, field))}
        packets = ((link.rx_packets_per_s or 0) + (link.tx_packets_per_s or 0)) * seen.span.seconds_of("link-errors")
        # Errors by kind are read of links that have a device alone.
        is_device = seen.rose("link-errors", name, "rx_crc_errors") is not None
        changes = link.carrier_changes or 0
        # A bridge has a carrier while one of its ports has.
        if not is_device and (changes < _FLAPS_FROM or kinds.get(name) == "bridge"):
            changes = 0
        wrong = sum(counts.values())
        if not changes and (not wrong or wrong < packets / 100_000):
            continue
        yield errors.bind(
            wrong / (packets + wrong) if wrong else 0.0,
            f"{name} lost its carrier {count_noun(_count_losses(seen, name, changes), 'time')}"
            if changes
            else f"{name} receives damaged frames",
            of="packets",
            device=name,
            evidence={**counts, "carrier_changes": changes},
            advice="Cable, optics and switch port first; no setting mends a bad link."
            if is_device
            else "Its other end first: the guest, the container or the program that holds it.",
            commands=(f"ethtool {name}", f"ethtool -m {name}") if is_device else (f"ip -d -s link show {name}",),
        )
    yield from _lost_members(seen)
    for kind, fields, what in (("rdma", _FABRIC_ERRORS, "InfiniBand"), ("fc", _FC_ERRORS, "Fibre Channel")):
        for name in seen.span.names(kind):
            counts = {field: rise for field in fields if (rise := seen.rose(kind, name, field))}
            counts |= _count_sent_again(seen, name) if kind == "rdma" else {}
            if counts:
                yield errors.bind(
                    0.0,
                    f"{what} port {name} counts errors",
                    of="packets",
                    device=name,
                    evidence=counts,
                    advice="Cable, optics, switch port and zoning first; no setting mends a bad link.",
                    explains=("disk.slow",),
                )


def _count_losses(seen: Observation, name: str, changes: int) -> int:
    """How often a link went down: a change is down or up."""
    return seen.rose("link-errors", name, "carrier_down_count") or (changes + 1) // 2


def _lost_members(seen: Observation) -> Iterator[BindingCause]:
    """Bonds that go on with fewer members than they have: slower, and without one to take over."""
    links = {one.name: one for one in seen.facts.links}
    for bond in seen.facts.links:
        members = ports_of(bond, links) if bond.kind in ("bond", "team") else ()
        lost = [
            one.name
            for one in members
            if (one.carrier is False or one.state == "down") and seen.word("link-errors", one.name, "state") != "up"
        ]
        if lost and len(lost) < len(members):
            yield errors.bind(
                len(lost) / len(members),
                f"{bond.name} has lost {len(lost)} of its {len(members)} members: {', '.join(lost)}",
                of="members",
                device=bond.name,
                evidence={"lost": ", ".join(lost), "members": len(members), "mode": bond.detail.get("mode")},
                advice="Cable, optics and switch port of the lost member: until then one more failure is an outage.",
                commands=(f"ethtool {lost[0]}", f"cat /proc/net/bonding/{bond.name}"),
            )


def _count_sent_again(seen: Observation, port: str) -> dict[str, int]:
    """What an RDMA port sent again, or received out of order, where that is more than its way causes by itself."""
    counts = {field: rise for field in _SENT_AGAIN if (rise := seen.rose("rdma", port, field))}
    packets = sum(seen.rose("rdma", port, f"port_{way}_packets") or 0 for way in ("rcv", "xmit"))
    return counts if sum(counts.values()) >= packets / 100_000 else {}


@cause(
    id="net.ring-drops",
    resource="net",
    help="tuning",
    what="Packets that a link dropped since its receive ring, or the queue of a CPU, was full.",
    threshold="1 of 10,000 packets, and at least 100",
    sources=("Linux kernel documentation, networking/statistics", "ethtool(8), -S", "proc_net(5), softnet_stat"),
    explains=("net.loss",),
)
def ring_drops(seen: Observation) -> Iterator[BindingCause]:
    for name, link in seen.links.items():
        dropped = sum(seen.rose("link-errors", name, field) or 0 for field in _RING_DROPS)
        # Some drivers add what their card dropped to one of these, others to none.
        dropped = max(dropped, seen.rose("ring", name, "dropped") or 0)
        packets = (link.rx_packets_per_s or 0) * seen.span.seconds_of("link-errors")
        if dropped >= 100 and dropped >= packets / 10_000:
            yield ring_drops.bind(
                dropped / (packets + dropped),
                f"{name} dropped {count_noun(dropped, 'packet')}: its ring was full",
                of="packets",
                device=name,
                evidence={"dropped": dropped, "packets": packets},
                advice="A larger receive ring, or interrupts spread over more CPUs.",
                commands=(f"advisor plan 'link:{name}:ring.rx>=4096'", f"ethtool -g {name}"),
            )
    backlog = sum(seen.rose("softnet", cpu, "dropped") or 0 for cpu in seen.span.names("softnet"))
    taken = sum(seen.rose("softnet", cpu, "processed") or 0 for cpu in seen.span.names("softnet"))
    if backlog >= 100 and backlog >= taken / 10_000:
        yield ring_drops.bind(
            backlog / (taken + backlog),
            f"{count_noun(backlog, 'received packet', 'was', 'were')} dropped: the queue of a CPU was full",
            of="packets",
            evidence={"dropped": backlog, "packets": taken},
            advice="Raise net.core.netdev_max_backlog, or spread the packets over more CPUs (RPS).",
            commands=("advisor plan 'sysctl:net.core.netdev_max_backlog>=10000'",),
        )


@cause(
    id="net.tcp-memory",
    resource="net",
    help="tuning",
    what="Memory of all TCP sockets under pressure, and connections that were ended for it.",
    threshold="any; or pages above the second figure of net.ipv4.tcp_mem in every sample",
    sources=(
        "netdata/netdata src/health/health.d/tcp_mem.conf; oracle/bpftune CASE_STUDIES.md",
        "Linux kernel documentation, networking/ip-sysctl (tcp_mem)",
    ),
    explains=("net.receive-window", "net.send-buffer", "net.loss"),
)
def tcp_memory(seen: Observation) -> Iterator[BindingCause]:
    """TCP has used up what net.ipv4.tcp_mem grants to all sockets together."""
    pressed, ended = _tcp(seen, "TCPMemoryPressures"), _tcp(seen, "TCPAbortOnMemory")
    pages = seen.span.levels("sockets", "TCP", "mem")
    bounds = [count_of(word) for word in seen.facts.sysctl.get("net.ipv4.tcp_mem", "").split()]
    # Pressure is counted where it begins, and its time where it ends: one that lasts all the time is in neither.
    lasts = len(bounds) == 3 and bool(bounds[1]) and bool(pages) and min(pages) > (bounds[1] or 0)
    if pressed or ended or lasts:
        pressed_ms = _tcp(seen, "TCPMemoryPressuresChrono")
        share = 1.0 if lasts else pressed_ms / (seen.span.seconds_of("protocol") * 1000)
        yield tcp_memory.bind(
            max(BINDS_FROM, share),
            "TCP has reached the memory that all its sockets may use",
            evidence={
                "pressures": pressed,
                "connections_ended": ended,
                "pressed_ms": pressed_ms,
                "pages": pages[-1] if pages else None,
                "pressure_from_pages": bounds[1] if len(bounds) == 3 else None,
            },
            advice="Raise net.ipv4.tcp_mem (pages), after a look at which connections hold it.",
            commands=("cat /proc/net/sockstat", "ss -tm"),
        )
