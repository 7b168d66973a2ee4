"""What storage software asks of its host: NFS clients, Ceph, Cassandra."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from advisor.facts.block.block import whole_of
from advisor.facts.network.links import Link
from advisor.host.numbers import is_count
from advisor.rules import sources
from advisor.rules.queries import by_name, kernel_version, links_below, sysctl_number
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, SetTunable, rule, set_sysctl

ORDER = 123

_SLOTS = 128
_NCONNECT_SINCE = (5, 3)
_FAST_LINK_MBPS = 10_000
_BY_CONNECTION = frozenset({"802.3ad", "balance-xor", "balance-tlb", "balance-alb"})
_BELIEVABLE = {"ssd": (1_000, 80_000), "hdd": (50, 500)}
_MAP_COUNT = 1_048_575
_READ_AHEAD_KB = 128


@rule(
    id="nfs.slots-unlimited",
    severity="info",
    title="An NFSv3 client may exceed its server's slots",
    what="sunrpc.tcp_max_slot_table_entries (65,536 by default) on hosts with NFSv3 mounts over TCP.",
    why="Some servers take 128 requests of a connection and let the others wait, which they hold against all clients.",
    helps_when="The server is such a one: Azure NetApp Files, Google Cloud NetApp Volumes, ONTAP.",
    hurts_when="A server without that limit: fewer requests under way are slower over a long way.",
    sources=(sources.AZURE_SLOTS, sources.GOOGLE_NFS, sources.KERNEL_SUNRPC),
    contradictions=("contradiction.nfs-slots",),
)
def nfs_slots(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    mounts = [
        one for one in facts.network_storage if one.kind == "nfs" and one.protocol == "tcp" and one.version == "3"
    ]
    slots = sysctl_number(facts, "sunrpc.tcp_max_slot_table_entries")
    if not mounts or slots is None or slots <= _SLOTS:
        return None
    return nfs_slots.found(
        why="Whether the server limits them is for its documentation to say.",
        evidence={"mountpoints": tuple(one.name for one in mounts), "sunrpc.tcp_max_slot_table_entries": slots},
        remedy=(
            set_sysctl("sunrpc.tcp_max_slot_table_entries", _SLOTS),
            "it counts for new mounts: unmount and mount again",
        ),
        intent=True,
    )


def _has_more_than_one_stream(link: Link, links: Mapping[str, Link]) -> bool:
    """Whether one connection seldom gets all of a link: it is fast, or a bond that gives each one port."""
    shares = [
        one
        for one in links_below(link.name, links)
        if one.kind in ("bond", "team") and len(one.lower) > 1 and one.detail.get("mode") in _BY_CONNECTION
    ]
    return bool(shares) or (link.speed_mbps or 0) >= _FAST_LINK_MBPS


@rule(
    id="nfs.one-connection",
    severity="info",
    title="An NFS mount has one connection over a fast link",
    what="nconnect of NFS mounts over TCP by links of 10 Gbit/s and more, and by bonds of several ports; "
    "Linux 5.3 and later.",
    why="One TCP connection is one stream: one CPU on each side, and on many networks one way out of several.",
    helps_when="Many files or threads at a time: Microsoft saw a job of 8 h end after 5.5 h with nconnect=8.",
    hurts_when="The server has few threads or limits connections for each client; a single stream gains nothing.",
    sources=(sources.NFS_MOUNT,),
)
def nfs_one_connection(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    version = kernel_version(facts)
    links = by_name(facts)
    found = tuple(
        one.name
        for one in facts.network_storage
        if one.kind == "nfs" and one.protocol == "tcp" and one.connections == 1
        if any(name in links and _has_more_than_one_stream(links[name], links) for name in one.links)
    )
    if not found or version is None or version < _NCONNECT_SINCE:
        return None
    return nfs_one_connection.found(
        why="A single connection seldom fills such a link, and of a bond it uses one port.",
        evidence={"mountpoints": found},
        remedy="add nconnect=8 to the options of the mount, then unmount and mount it again; all mounts of one "
        "server must agree",
        intent=True,
    )


@rule(
    id="ceph.osd-capacity",
    severity="advice",
    title="Ceph's IOPS capacity of an OSD looks wrong",
    what="osd_mclock_max_capacity_iops_ssd and _hdd in Ceph's configuration (ceph config dump, as root on a host of "
    "OSDs).",
    why="mClock shares out IOPS by this figure: too high, and recovery starves clients; too low, and all wait. It is "
    "measured once at the start of an OSD, through the drive's caches.",
    helps_when="Outside 1,000 to 80,000 for flash or 50 to 500 for rotating drives: measure it yourself.",
    hurts_when="The figure was measured with fio and is right for the drive.",
    sources=(sources.MCLOCK,),
    seen_live=False,
)
def osd_capacity(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    odd = {
        one.osd: f"{one.osd}: {one.iops:,.0f} IOPS ({one.medium})"
        for one in (facts.software.osd_capacities if facts.software else ())
        if not _BELIEVABLE[one.medium][0] <= one.iops <= _BELIEVABLE[one.medium][1]
    }
    if not odd:
        return None
    return osd_capacity.found(
        why="Beyond these figures Ceph itself ignores what its bench measures.",
        evidence={"devices": tuple(odd), "detail": tuple(odd.values())},
        remedy=(
            "measure a drive of the same model (advisor bench), then ceph config set for this OSD "
            "osd_mclock_max_capacity_iops_ssd or _hdd",
        ),
    )


@rule(
    id="cassandra.host-limits",
    severity="warning",
    title="Host limits are below what Cassandra checks",
    what="vm.max_map_count, read_ahead_kb below /var/lib/cassandra, and swap, where cassandra.yaml is installed.",
    why="It maps each file of its tables: below 1,048,575 it may run out of maps. Long read-ahead fills the page "
    "cache with "
    "what nobody asked for, and a heap in swap stops for seconds.",
    helps_when="Cassandra or DataStax runs here.",
    hurts_when="It is installed and not used, or its data lie elsewhere (data_file_directories).",
    sources=(sources.CASSANDRA,),
    seen_live=False,
)
def cassandra_limits(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    data = facts.software.cassandra if facts.software else None
    if data is None:
        return
    maps = sysctl_number(facts, "vm.max_map_count")
    if maps is not None and maps < _MAP_COUNT:
        yield cassandra_limits.found(
            title="vm.max_map_count is lower than Cassandra wants",
            why="It warns of that at its start, and fails when its files grow in number.",
            evidence={"vm.max_map_count": maps},
            remedy=set_sysctl("vm.max_map_count", _MAP_COUNT, "at-least"),
        )
    # KiB of read-ahead of the device that holds a directory: of the file system with the longest fitting place.
    mounts = [(target, one) for one in facts.filesystems for target in one.mountpoints]
    fitting = [(target, one) for target, one in mounts if f"{data}/".startswith(f"{target.rstrip('/')}/")]
    if not fitting:
        ahead_of: dict[str, int] = {}
    else:
        _, held = max(fitting, key=lambda one: len(one[0]))
        queues = {disk.name: disk.queue for disk in facts.disks} | {array.device: array.queue for array in facts.arrays}
        name = held.device if held.device in queues else whole_of(held.device, queues) or ""
        text = queues.get(name, {}).get("read_ahead_kb", "")
        ahead_of = {name: int(text)} if is_count(text) else {}
    ahead = {name: kib for name, kib in ahead_of.items() if kib > _READ_AHEAD_KB}
    if ahead:
        yield cassandra_limits.found(
            severity="advice",
            title=f"Read-ahead below Cassandra's data is {max(ahead.values())} KiB",
            why="Its reads are small and random.",
            evidence={"disks": tuple(ahead), "read_ahead_kb": max(ahead.values())},
            remedy=tuple(SetTunable(f"block:{name}:read_ahead_kb", str(_READ_AHEAD_KB), "at-most") for name in ahead),
        )
    if facts.memory.swap_bytes:
        yield cassandra_limits.found(
            severity="advice",
            title="Swap is on where Cassandra is installed",
            why="It warns of that at its start: a collection that waits for swap looks like a dead node.",
            evidence={"swap_bytes": facts.memory.swap_bytes},
            remedy="switch swap off (swapoff -a, and its lines of /etc/fstab), if the host is Cassandra's alone",
        )
