"""For which workloads each profile's source says that it helps, and for which it cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from advisor.facts.clusters.infoscale_configuration import LONG_ROUND_TRIP_SECONDS
from advisor.facts.host_facts import Facts
from advisor.recommend import infoscale, iris, iscsi
from advisor.recommend.records import Case
from advisor.rules.clusters.infoscale import (
    DATAGRAMS,
    as_seen,
    contradicts_seen,
    heartbeat_only,
    past_sockets,
    private_links,
    stays_local,
)
from advisor.rules.clusters.iris import WRITE_DAEMONS_PROFILE
from advisor.rules.network.buffers import below_bandwidth_delay, udp_is_sized
from advisor.rules.queries import (
    BEEGFS_NVME,
    JUMBO_FRAMES,
    LLT_FLOW_CONTROL,
    NETWORK_BUFFERS,
    NUMA_PINNING,
    by_name,
    carries_default_route,
    crosses_iscsi,
    crosses_network,
    is_physical,
    is_up,
    seen,
)
from advisor.rules.roles import ROLE_NAMES
from advisor.rules.workload import DeclaredWorkload

_NOTHING = DeclaredWorkload()
_CROSSES = "data crosses the network"


def smallest_mtu(facts: Facts) -> int | None:
    """The smallest MTU in bytes of the links that a profile may raise: physical, up, and without a default route."""
    links, idle = by_name(facts), heartbeat_only(facts)
    sizes = [
        link.mtu
        for link in facts.links
        if link.mtu is not None
        and is_physical(link)
        and is_up(link)
        and not carries_default_route(link, links)
        and link.name not in idle
    ]
    return min(sizes, default=None)


def _sequential_case(workload: DeclaredWorkload) -> Case:
    return Case("sequential access, as in batch work", None if workload.access is None else workload.is_sequential)


def _writes_case(workload: DeclaredWorkload) -> Case:
    return Case("half of it writes, or more", None if workload.write_share is None else workload.is_write_heavy)


def _networked_case(facts: Facts, workload: DeclaredWorkload) -> Case:
    """By what is declared, else by the storage that is seen."""
    crosses = crosses_network(facts, workload)
    if crosses is None and workload.replication is not None:
        crosses = workload.uses_network
    is_seen = crosses and workload.transport is None and not workload.is_replicated
    return Case(f"data crosses the network (seen: {'; '.join(seen(facts))})" if is_seen else _CROSSES, crosses)


def _jumbo_cases(facts: Facts, workload: DeclaredWorkload) -> tuple[Case, ...]:
    if crosses_iscsi(facts, workload):
        return (_networked_case(facts, workload), *iscsi.frame_cases(facts, workload))
    mtu, block = smallest_mtu(facts), workload.block_bytes
    larger = None if mtu is None or block is None else block > mtu
    size = f" ({block:,} against {mtu:,} bytes)" if mtu is not None and block is not None else ""
    return (
        _networked_case(facts, workload),
        _sequential_case(workload),
        _writes_case(workload),
        Case(f"blocks larger than today's MTU{size}", larger),
    )


def _buffer_cases(facts: Facts, workload: DeclaredWorkload) -> tuple[Case, ...]:
    over_udp = bool(private_links(facts, *DATAGRAMS)) and not stays_local(facts)
    transport = None if workload.transport is None else workload.transport == "udp"
    by_sockets = workload.transport != "rdma"
    large = None if workload.block_bytes is None else workload.has_large_blocks and workload.is_write_heavy
    long = None if workload.rtt_seconds is None else bool(below_bandwidth_delay(facts, workload))
    sequential = _sequential_case(workload)
    return (
        Case("datagrams (UDP) between the hosts", over_udp or transport),
        Case(sequential.text, sequential.holds and by_sockets),
        Case("many writes in blocks of 64 KiB and more", large and by_sockets),
        Case("bandwidth × round-trip time, doubled, above today's limits", long),
    )


def _llt_cases(facts: Facts, workload: DeclaredWorkload) -> tuple[Case, ...]:
    rtt = workload.rtt_seconds
    return (
        Case("writes are mirrored to another node", None if workload.replication is None else workload.mirrors_writes),
        _writes_case(workload),
        Case("a round trip above 0.5 ms", None if rtt is None else rtt > LONG_ROUND_TRIP_SECONDS),
    )


def _numa_cases(facts: Facts, workload: DeclaredWorkload) -> tuple[Case, ...]:
    return (Case("two NUMA nodes or more", len(facts.numa.nodes) > 1 if facts.numa.nodes else None),)


def _beegfs_cases(facts: Facts, workload: DeclaredWorkload) -> tuple[Case, ...]:
    servers = facts.beegfs.servers if facts.beegfs else ()
    drives = {disk.name: disk.kind for disk in facts.disks}
    below = {drives.get(name) for one in servers for target in one.targets for name in target.disks}
    nodes = {node for one in servers for target in one.targets for node in target.numa_nodes}
    return (
        *_numa_cases(facts, workload),
        Case("BeeGFS metadata or storage services with targets", bool(servers)),
        Case("targets on NVMe drives alone", below == {"nvme"} if below and None not in below else None),
        Case("targets on each of the nodes", len(nodes) == len(facts.numa.nodes) if nodes else None),
    )


_CASES: Mapping[str, Callable[[Facts, DeclaredWorkload], tuple[Case, ...]]] = {
    JUMBO_FRAMES: _jumbo_cases,
    NETWORK_BUFFERS: _buffer_cases,
    LLT_FLOW_CONTROL: _llt_cases,
    NUMA_PINNING: _numa_cases,
    BEEGFS_NVME: _beegfs_cases,
    WRITE_DAEMONS_PROFILE: iris.cases,
    **dict.fromkeys(iscsi.PROFILES, iscsi.cases),
}


def cases(profile: str, facts: Facts, workload: DeclaredWorkload | None) -> tuple[Case, ...]:
    """The cases that a profile's source names; none for a profile without a source."""
    configuration = infoscale.configuration_of(profile)
    if configuration is not None:
        own = infoscale.own_case(configuration, facts, workload)
        others = (one for part in infoscale.PARTS[configuration] for one in cases(part, facts, workload))
        return (own, *dict.fromkeys(others))
    if profile in ROLE_NAMES:
        return (Case(f"{ROLE_NAMES[profile]} is seen here", profile in facts.roles),)
    made = _CASES.get(profile)
    return made(facts, as_seen(facts, workload) or _NOTHING) if made else ()


def contrary(profile: str, facts: Facts, workload: DeclaredWorkload | None) -> str | None:
    """Why the declared workload cannot gain by a profile; None where it may, or nothing was declared."""
    configuration = infoscale.configuration_of(profile)
    if configuration is not None and workload is not None:
        return infoscale.contrary(configuration, workload)
    if profile in iscsi.PROFILES and workload is not None:
        return iscsi.contrary(workload)
    if profile == WRITE_DAEMONS_PROFILE:
        return iris.contrary(facts, workload)
    if profile not in (JUMBO_FRAMES, NETWORK_BUFFERS, LLT_FLOW_CONTROL):
        return None
    if profile == LLT_FLOW_CONTROL or not facts.network_storage:
        local = contradicts_seen(facts, workload) or _seen_local(profile, facts, workload)
        if local:
            return local
    workload = as_seen(facts, workload)
    if profile == NETWORK_BUFFERS and not facts.network_storage and (workload is None or workload.is_replicated):
        if over := past_sockets(facts):
            return f"LLT runs over {over} here, past the sockets: their buffers carry nothing of what it mirrors."
        size = udp_is_sized(facts, workload)
        if size is not None:
            return f"The buffers that LLT over UDP uses hold the size of its path ({size:,} bytes) already."
    if workload is None:
        return None
    if workload.is_replicated and not workload.mirrors_writes:
        return infoscale.READS_ALONE
    if workload.transport == "local" and not workload.is_replicated:
        return "Nothing of the declared workload crosses the network."
    if profile == NETWORK_BUFFERS and workload.transport == "rdma" and not workload.is_replicated:
        return "The workload goes over RDMA, past the sockets: their buffers carry nothing of its data."
    if profile == LLT_FLOW_CONTROL and workload.replication == "none":
        return "The declared workload mirrors nothing, so LLT carries next to nothing of it."
    held = {case.text: case.holds for case in cases(profile, facts, workload)}
    if profile == JUMBO_FRAMES:
        return _against_jumbo(facts, workload)
    if None not in held.values() and True not in held.values():
        return "None of the cases for which the white paper raises it is declared."
    if profile == LLT_FLOW_CONTROL and workload.write_share is not None and not workload.is_write_heavy:
        is_near = workload.rtt_seconds is not None and workload.rtt_seconds <= LONG_ROUND_TRIP_SECONDS
        return "Few writes over a short round trip do not fill LLT's queues." if is_near else None
    return None


def _seen_local(profile: str, facts: Facts, workload: DeclaredWorkload | None) -> str | None:
    """Why LLT carries no writes, where the workload names no other path that MTU and buffers could be for."""
    if profile != LLT_FLOW_CONTROL and workload is not None and workload.transport is not None:
        return None
    return infoscale.writes_stay_local(facts)


def _against_jumbo(facts: Facts, workload: DeclaredWorkload) -> str | None:
    """The white paper's own exceptions, which are about data that LLT mirrors: storage over iSCSI is another case."""
    if crosses_iscsi(facts, workload):
        return iscsi.against_frames(facts, workload)
    mtu, block = smallest_mtu(facts), workload.block_bytes
    if block is not None and mtu is not None and block < mtu:
        return (
            f"Blocks of {block:,} bytes fit into a frame of today: small writes are carried less well by larger ones."
        )
    is_of_paper = workload.is_replicated or bool(facts.llt and facts.llt.links)
    if not is_of_paper or workload.write_share is None or workload.is_write_heavy:
        return None
    if workload.access == "random":
        return "Random access with few writes is none of the cases for which the white paper raises the MTU."
    return None
