"""Causes where storage meets the network: threads and slots of NFS, links that are asked to pause, congested RDMA."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.diagnosis.cause import BINDS_FROM, BindingCause, cause, percent
from advisor.diagnosis.observation import Observation
from advisor.diagnosis.storage import BUSY_FROM, waited_share

_KNFSD = "Linux kernel documentation, filesystems/nfs/knfsd-stats; net/sunrpc/svc_xprt.c"
_MOUNTSTATS = "mountstats(8), nfsiostat(8); net/sunrpc/stats.c"
_AZURE = "Azure NetApp Files documentation, concurrency and session slots of NFS on Linux"
_WEKA_RDMA = "weka/tools install/scripts.d/ta/915_rdma_network_errors.sh"
WAITING_FROM = 0.2
PAUSES_FROM = 100
PAUSE_BITS = 65_535 * 512
"""The times of so many bits are the longest that a frame can ask for (IEEE 802.3, 31B.2)."""
SLOW_ANSWER_MS = 10.0
WRITTEN_FROM = 1e6
"""Bytes a second: logs alone write less."""


@cause(
    id="application.nfsd-threads",
    resource="application",
    help="tuning",
    what="Requests for this host's NFS server that found no idle thread (pool_stats).",
    threshold="20 % of those that arrived, and 100 a second",
    sources=(_KNFSD,),
)
def nfsd_threads(seen: Observation) -> Iterator[BindingCause]:
    arrived = waited = 0
    for pool in seen.span.names("nfsd"):
        packets, queued, woken = (seen.rose("nfsd", pool, name) or 0 for name in ("packets", "queued", "woken"))
        arrived += packets
        # Since Linux 4.0 each transport is queued, then a thread woken: those without one waited. Before, only they
        # were queued.
        waited += max(0, packets - woken) if queued >= 0.99 * packets else queued
    seconds = seen.span.seconds_of("nfsd")
    if not arrived or not seconds or waited / arrived < WAITING_FROM or waited / seconds < 100:
        return
    threads = sum(seen.level("nfsd", pool, "threads") or 0 for pool in seen.span.names("nfsd")[:1])
    yield nfsd_threads.bind(
        waited / arrived,
        f"{percent(waited / arrived)} of the requests to the NFS server find no idle thread",
        of="requests",
        evidence={"arrived": arrived, "waited": waited, "threads": threads},
        advice="More threads (threads= of [nfsd] in /etc/nfs.conf), unless the disks below are what they wait for.",
        commands=("cat /proc/fs/nfsd/threads", f"rpc.nfsd {max(16, int(threads) * 2)}"),
    )


@cause(
    id="net.nfs-slots",
    resource="net",
    help="tuning",
    what="The time that requests of an NFS mount wait on this host before they are sent, against their whole time.",
    threshold="20 % of it, by 1 ms or more for each request; of requests that a program waits for",
    sources=(_MOUNTSTATS, _AZURE),
)
def nfs_slots(seen: Observation) -> Iterator[BindingCause]:
    for target in seen.span.names("nfs"):
        requests, queued, answered = _count_waited(seen, target)
        whole = queued + answered
        if not requests or not whole or queued / whole < WAITING_FROM or queued / requests < 1:
            continue
        slots, connections = (seen.level("nfs", target, name) for name in ("slots", "connections"))
        yield nfs_slots.bind(
            queued / whole,
            f"Requests to {seen.word('nfs', target, 'source')} wait on this host before they are sent",
            device=target,
            of="time of requests",
            evidence={
                "queue_ms_for_each_request": queued / requests,
                "whole_ms_for_each_request": whole / requests,
                "requests_per_s": requests / seen.span.seconds_of("nfs"),
                "connections": connections,
                "slots_at_most": slots,
            },
            advice="More connections (nconnect=8) or slots (sunrpc.tcp_max_slot_table_entries, nfs.max_session_slots), "
            "up to what the server takes; both act on new mounts.",
            commands=("nfsiostat 1 3", f"grep {target} /proc/mounts"),
            explains=("net.nfs-server",),
        )


@cause(
    id="net.nfs-server",
    resource="net",
    help="hardware",
    what="The time that network and server take for the requests of an NFS mount.",
    threshold="10 ms for each request, with tasks that wait 10 % of the time for storage and half a request under way; "
    "or 10 ms for each that a program waits for and PSI does not count (names, attributes, direct reads and writes), "
    "with half of one under way",
    sources=(_MOUNTSTATS, "fs/nfs/direct.c, net/sunrpc/sched.c (rpc_wait_bit_killable)"),
    explains=("application.serial",),
)
def nfs_server(seen: Observation) -> Iterator[BindingCause]:
    seconds = seen.span.seconds_of("nfs")
    stall = seen.stall("io")
    written = sum(seen.disks[name].write_bytes_per_s or 0.0 for name in seen.loads)
    local = written >= WRITTEN_FROM or any(one.utilisation >= BUSY_FROM for one in seen.loads.values())
    for target in seen.span.names("nfs"):
        requests, _, answered = _count_waited(seen, target)
        if not requests or not seconds or answered / requests < SLOW_ANSWER_MS or answered / seconds < 500:
            continue
        busy = min(1.0, answered / (seconds * 1000))
        yield nfs_server.bind(
            busy if stall is None or stall < BINDS_FROM else stall,
            f"{seen.word('nfs', target, 'source')} takes {answered / requests:.0f} ms for a request",
            device=target,
            evidence={"rtt_ms": answered / requests, "requests_per_s": requests / seconds, "stalled_share": stall},
            advice="Run advisor why on the server, or ask who provides it.",
            commands=("nfsiostat 1 3",),
            # Dirty pages that a server takes slowly are what writers wait for, unless they go to a local disk, too.
            explains=() if local else ("memory.dirty-limit",),
        )


def _count_waited(seen: Observation, target: str) -> tuple[int, int, int]:
    """Requests of a mount that a program waits for, the ms until they were sent, and those of network and server.

    All of them where tasks wait for storage; else those that are no stall: for names and attributes, and all where most
    bytes are read and written directly. For what is read ahead or written back nobody waits.
    """
    requests, queued, answered, names, names_queued, names_answered, direct, moved = (
        seen.rose("nfs", target, name) or 0
        for name in (
            *("requests", "queue_ms", "rtt_ms", "names", "names_queue_ms", "names_ms", "direct_bytes"),
            "server_bytes",
        )
    )
    waited = waited_share(seen)
    if seen.stall("io") is None:
        # Without PSI who waits for a local disk is counted among those who wait; of one that is unknown, all may.
        lowest = (name for name in seen.disks if name in seen.stack.devices and not seen.stack.members(name))
        uses = (seen.disks[name].utilisation for name in lowest)
        waited -= sum(1.0 if used is None else used for used in uses)
    if waited >= BINDS_FROM or (moved and 2 * direct >= moved):
        return requests, queued, answered
    return names, names_queued, names_answered


@cause(
    id="net.paused",
    resource="net",
    help="repair",
    what="Pause frames of links (802.3x and priority flow control), by ethtool -S.",
    threshold="100 a second, and at the most that each asks for 10 % of the time",
    sources=("ethtool(8), -S and -a; IEEE 802.3 annex 31B, 802.1Qbb", "dsx-ai-factory/infra-controller#4512"),
    explains=("net.ring-drops",),
)
def paused(seen: Observation) -> Iterator[BindingCause]:
    for name in seen.span.names("pause"):
        asked, asks = (seen.per_second("pause", name, way) or 0.0 for way in ("rx", "tx"))
        if max(asked, asks) < PAUSES_FROM:
            continue
        link = seen.links.get(name)
        if link and link.speed_mbps and max(asked, asks) * PAUSE_BITS < BINDS_FROM * link.speed_mbps * 1e6:
            continue
        packets = ((link.rx_packets_per_s or 0.0) + (link.tx_packets_per_s or 0.0)) if link else 0.0
        yield paused.bind(
            max(asked, asks) / (max(asked, asks) + packets),
            f"The other end of {name} asks it to pause {asked:.0f} times a second"
            if asked >= asks
            else f"{name} asks the other end to pause {asks:.0f} times a second: this host takes packets too slowly",
            of="packets",
            device=name,
            evidence={"received_per_s": asked, "sent_per_s": asks},
            advice="Look for who cannot keep up: the switch port and what is behind it, or this host's CPUs.",
            commands=(f"ethtool -S {name}", f"ethtool -a {name}"),
        )


@cause(
    id="net.rdma-congested",
    resource="net",
    help="repair",
    what="Congestion notifications of RDMA ports (rp_cnp_handled, np_cnp_sent), and time in which a port had no "
    "credits to send (port_xmit_wait).",
    threshold="100 notifications a second",
    sources=(_WEKA_RDMA, "Linux kernel documentation, ABI/stable/sysfs-class-infiniband (hw_counters, port_xmit_wait)"),
)
def rdma_congested(seen: Observation) -> Iterator[BindingCause]:
    for name in seen.span.names("rdma"):
        slowed, notified = (seen.per_second("rdma", name, field) or 0.0 for field in ("rp_cnp_handled", "np_cnp_sent"))
        if max(slowed, notified) < PAUSES_FROM:
            continue
        yield rdma_congested.bind(
            0.0,
            f"RDMA port {name} slows down {slowed:.0f} times a second: the fabric is congested"
            if slowed >= notified
            else f"RDMA port {name} receives marked packets: the way to it is congested",
            of="packets",
            device=name,
            evidence={
                "slowed_per_s": slowed,
                "notified_per_s": notified,
                "xmit_wait_ticks": seen.rose("rdma", name, "port_xmit_wait"),
            },
            advice="Check ECN and priority flow control end to end, and what shares the congested port.",
            commands=(f"rdma statistic show link {name}",),
        )
