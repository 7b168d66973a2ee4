"""Requests to block devices: how large, how far ahead, merged or not, and who completes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from advisor.facts.block.block import STRIPED, Array, natural
from advisor.facts.block.block_graph import BlockGraph
from advisor.rules import sources
from advisor.rules.block.queues import is_spinning, names_of, setting
from advisor.rules.queries import ebs_disks, leading_count
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, SetTunable, rule, set_queues

if TYPE_CHECKING:
    pass

ORDER = 200

_KIB = 1 << 10
_STREAM_KB = 4096
_RANDOM_KB = 128
_TOO_FAR_KB = 1024
_SHOWN = 12
# What the kernel itself sets (block/blk-wbt.c): flash, rotating.
_WBT_USEC = {False: "2000", True: "75000"}


def _reading_devices(facts: Facts) -> Iterator[tuple[str, int, int]]:
    """Devices that file systems lie on, with their read-ahead and what streams want of it, in KiB."""
    # ebs.stream-read-ahead reports EBS volumes: Amazon wants the default except for st1 and sc1.
    volumes = ebs_disks(facts)
    for array in facts.arrays:
        now = leading_count(array.queue.get("read_ahead_kb"))
        is_ebs = bool(array.disks) and volumes.issuperset(array.disks)
        if array.level in STRIPED and array.mountpoints and now is not None and not is_ebs:
            yield array.device, now, min(_STREAM_KB, 2 * (array.chunk_bytes or 0) * (array.data_disks or 0) // _KIB)
    for disk in facts.disks:
        now = setting(disk, "read_ahead_kb")
        if is_spinning(facts, disk) and disk.mountpoints and now is not None and "/" not in disk.mountpoints:
            yield disk.name, now, _STREAM_KB


@rule(
    id="disks.read-ahead-short",
    severity="advice",
    title="Little is read ahead for a workload of streams",
    what="read_ahead_kb of mounted striped arrays and rotating disks, for a declared workload that reads in sequence.",
    why="A stream of one reader is as fast as what is asked for in advance.",
    helps_when="Few readers of large files through the page cache.",
    hurts_when="Many streams at once, or random reads besides: what is read ahead is thrown away unread. Direct I/O "
    "does not read ahead at all.",
    sources=(sources.BEEGFS_STORAGE, sources.AWS_HDD),
    contradictions=("contradiction.read-ahead",),
)
def short_read_ahead(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    low = tuple((name, now, wanted) for name, now, wanted in _reading_devices(facts) if now < wanted)
    if not low or not (
        workload is not None
        and workload.is_sequential
        and workload.write_share is not None
        and workload.write_share < 1
    ):
        return None
    return short_read_ahead.found(
        why="The kernel reads that far ahead of a stream: less than all members, or a rotating disk, can serve at "
        "once.",
        evidence={
            "devices": tuple(name for name, _, _ in low),
            "detail": tuple(f"{name}: {now} KiB, two full stripes or 4 MiB are {wanted}" for name, now, wanted in low),
        },
        remedy=tuple(SetTunable(f"block:{name}:read_ahead_kb", str(wanted), "at-least") for name, _, wanted in low),
    )


@rule(
    id="disks.read-ahead-long-for-random",
    severity="advice",
    title="Much is read ahead for random access",
    what="read_ahead_kb of 1024 and more of mounted devices, for a declared workload of random access.",
    why="Read-ahead that is not used costs bandwidth and page cache.",
    helps_when="Databases and virtual machines through the page cache.",
    hurts_when="Backups and scans of the same files run in sequence. Direct I/O does not read ahead at all.",
    sources=(sources.BEEGFS_METADATA, sources.AWS_HDD),
    contradictions=("contradiction.read-ahead",),
)
def long_read_ahead(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if workload is None or workload.access != "random":
        return None
    devices = [(array.device, array.queue, array.mountpoints) for array in facts.arrays]
    devices += [(disk.name, disk.queue, disk.mountpoints) for disk in facts.disks]
    far = {
        name: now for name, queue, mounted in devices if mounted and (now := leading_count(queue.get("read_ahead_kb")))
    }
    found = {name: now for name, now in far.items() if now >= _TOO_FAR_KB}
    if not found:
        return None
    return long_read_ahead.found(
        why="Where the kernel takes two near reads for a stream, it reads that much more than was asked for.",
        evidence={"devices": tuple(found), "detail": tuple(f"{name}: {now} KiB" for name, now in found.items())},
        remedy=set_queues(found, "read_ahead_kb", _RANDOM_KB),
    )


def _split_requests(facts: Facts) -> Iterator[tuple[Array, str, int, int]]:
    """Striped array, a device that its requests pass, the largest request of that and the one wanted, in KiB, from the
    bottom up: where it is less than a chunk and need not be. md sends its chunks on, whatever its own queue says."""
    graph = BlockGraph(facts)
    queues = _queues(facts)
    managers = {array.device: array.manager for array in facts.arrays}
    for array in facts.arrays:
        if array.level not in STRIPED or not array.chunk_bytes:
            continue
        below = sorted(
            graph.lowest(array.device) or array.disks, key=lambda name: (len(graph.lowest(name)), natural(name))
        )
        fits = array.chunk_bytes // _KIB
        for name in (*below, array.device):
            largest, most = (leading_count(queues.get(name, {}).get(f"max_{kind}sectors_kb")) for kind in ("", "hw_"))
            if most and largest and managers.get(name) not in ("md", "controller"):
                wanted = min(fits, most)
                if largest < wanted:
                    yield array, name, largest, wanted


def _queues(facts: Facts) -> dict[str, Mapping[str, str]]:
    return {array.device: array.queue for array in facts.arrays} | {disk.name: disk.queue for disk in facts.disks}


def _larger_requests(found: Iterable[tuple[Array, str, int, int]]) -> Iterator[SetTunable]:
    wanted: dict[str, int] = {}
    for _, name, _, size in found:
        wanted[name] = max(size, wanted.get(name, 0))
    for name, size in wanted.items():
        yield SetTunable(f"block:{name}:max_sectors_kb", str(size), "at-least")


@rule(
    id="disks.requests-below-chunk",
    severity="advice",
    title="Largest disk request is smaller than a chunk",
    what="max_sectors_kb of the disks of striped arrays, and of the maps and volumes between, against the chunk, where "
    "max_hw_sectors_kb would allow more.",
    why="max_sectors_kb is the largest request that the kernel makes; md sends a chunk to a disk at once.",
    helps_when="Streams in large blocks over rotating disks or RAID controllers.",
    hurts_when="Small reads wait behind large requests; some controllers are slower with them.",
    sources=(sources.BLOCK_SYSFS, sources.MULTIPATH_CONF, sources.BEEGFS_STORAGE),
)
def split_chunks(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(_split_requests(facts))
    if not found:
        return None
    declared = workload is not None and workload.is_sequential and workload.has_large_blocks
    names = {name for _, name, *_ in found}
    return split_chunks.found(
        severity="advice" if declared else "info",
        why="A whole chunk is sent as several requests, although the disk takes larger ones.",
        evidence={
            "arrays": tuple(dict.fromkeys(array.name for array, *_ in found)),
            "disks": tuple(dict.fromkeys(name for _, name, *_ in found)),
            "detail": tuple(
                f"{name}: {largest} KiB, chunks of {array.name} are {(array.chunk_bytes or 0) // _KIB} KiB"
                for array, name, largest, _ in found[:_SHOWN]
            ),
        },
        remedy=(
            *_larger_requests(found),
            *(
                ("for maps of multipathd, max_sectors_kb in multipath.conf keeps it, for the paths as well",)
                if any(array.manager == "dm-multipath" and array.device in names for array in facts.arrays)
                else ()
            ),
        ),
        intent=not declared,
    )


@rule(
    id="multipath.requests-above-paths",
    severity="warning",
    title="A map makes larger requests than its paths",
    what="max_sectors_kb of each map of dm-multipath against those of its paths.",
    why="device-mapper checks each request against the path that it is sent to, and fails one that is too large; "
    "multipathd then takes the path for broken.",
    helps_when="A path was set, or was replaced, after the map was made.",
    hurts_when="Large streams gain from large requests: where the paths can take them, raise the paths instead.",
    sources=(sources.MULTIPATH_CONF, sources.BLOCK_SYSFS),
)
def requests_above_paths(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    queues = _queues(facts)
    for array in facts.arrays:
        if array.manager != "dm-multipath":
            continue
        sizes = {
            name: leading_count(queues.get(name, {}).get("max_sectors_kb")) for name in (array.device, *array.members)
        }
        own, paths = sizes.pop(array.device), [size for size in sizes.values() if size]
        if own and paths and own > min(paths):
            yield requests_above_paths.found(
                title=f"{array.name} makes requests of {own} KiB, and a path takes {min(paths)} KiB",
                why="A request above the limit of its path fails there, and the path is taken for broken.",
                evidence={
                    "arrays": (array.name,),
                    "detail": tuple(f"{name}: {size} KiB" for name, size in sizes.items())[:_SHOWN],
                },
                remedy=(
                    *set_queues((array.device,), "max_sectors_kb", min(paths)),
                    "keep it by max_sectors_kb in multipath.conf, which sets the paths as well",
                ),
            )


@rule(
    id="disks.completed-anywhere",
    severity="info",
    title="Requests are completed on any CPU",
    what="queue/rq_affinity 0.",
    why="1, the default, completes a request on the group of CPUs that asked for it, 2 on the very one.",
    helps_when="Many requests of many CPUs through few interrupts; 2 for what one interrupt serves alone.",
    hurts_when="The CPUs that ask are busy and the one that takes the interrupts has room.",
    sources=(sources.BLOCK_SYSFS,),
)
def anywhere(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(disk for disk in facts.disks if setting(disk, "rq_affinity") == 0)
    if not found:
        return None
    return anywhere.found(
        why="A request is completed by whichever CPU took the interrupt, far from the caches of the one that waits.",
        evidence={"disks": names_of(found), "rq_affinity": 0},
        remedy=set_queues(names_of(found), "rq_affinity", 1),
        intent=True,
    )


@rule(
    id="disks.merges-off",
    severity="advice",
    title="Adjacent requests of streams are not merged",
    what="queue/nomerges 2, for a declared workload of sequential access.",
    why="The search for a neighbour costs little; what it finds in a stream saves whole requests.",
    helps_when="Small sequential requests.",
    hurts_when="Random requests only: there the search finds nothing. NetApp's roles for BeeGFS set 2.",
    sources=(sources.BLOCK_SYSFS, sources.NETAPP_BEEGFS),
)
def merges_off(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(disk for disk in facts.disks if setting(disk, "nomerges") == 2)
    if not found or workload is None or not workload.is_sequential:
        return None
    return merges_off.found(
        why="The declared workload is sequential: its neighbouring requests could be sent as one, and are not.",
        evidence={"disks": names_of(found), "nomerges": 2},
        remedy=set_queues(names_of(found), "nomerges", 0),
    )


@rule(
    id="disks.writeback-unthrottled",
    severity="info",
    title="Writeback is not throttled in favour of reads",
    what="queue/wbt_lat_usec 0 without the scheduler bfq, for a declared workload that reads and writes.",
    why="The kernel holds writeback back when reads take longer than wbt_lat_usec.",
    helps_when="Reads wait while much is written through the page cache.",
    hurts_when="The service throttles its writes itself, or writes matter more than reads.",
    sources=(sources.BLOCK_SYSFS,),
)
def unthrottled(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    share = workload.write_share if workload else None
    if share is None or not 0 < share < 1:
        return None
    found = tuple(d for d in facts.disks if setting(d, "wbt_lat_usec") == 0 and d.scheduler != "bfq")
    if not found:
        return None
    return unthrottled.found(
        why="The declared workload reads and writes; nothing keeps writeback in the background from filling the queue "
        "before the readers.",
        evidence={"disks": names_of(found), "wbt_lat_usec": 0, "write_share": share},
        remedy=tuple(SetTunable(f"block:{disk.name}:wbt_lat_usec", _WBT_USEC[bool(disk.rotational)]) for disk in found),
        intent=True,
    )
