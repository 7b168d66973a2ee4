"""Geometry: partitions, logical volumes and file systems against the blocks and stripes of what they lie on."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from advisor.facts.block.block import BESIDE, PARITY_DISKS, STRIPED, Array
from advisor.facts.block.block_graph import BlockGraph, BlockNode
from advisor.facts.block.disks import Disk, FileSystem
from advisor.rules import sources
from advisor.rules.queries import ebs_disks, leading_count
from advisor.rules.rule import Decide, DeclaredWorkload, Facts, Finding, Remedy, RunShell, rule

if TYPE_CHECKING:
    pass

ORDER = 160

_KIB = 1 << 10
_IN_PLACE = frozenset({"linear", "crypt", "cache", "writecache", "thin", "thin-pool"})
_LEAST_CHUNK_BYTES = 16 << 10
_MOST_DATA_DISKS = 128
_SECTOR_BYTES = 512
_PAGE_BYTES = 4096
_OPTIMAL_BYTES_MAX = 16 << 20
_SHOWN = 12
_WITH_TIMES = frozenset({"ext3", "ext4", "xfs"})


def _on_arrays(facts: Facts) -> Iterator[tuple[FileSystem, Array]]:
    graph, arrays = BlockGraph(facts), {array.device: array for array in facts.arrays}
    for filesystem in facts.filesystems:
        array, pool = _striped_below(graph.node(filesystem.device), arrays)
        is_apart = pool is not None and (pool.chunk_bytes or 1) % _full_stripe(array)
        if array is not None and array.chunk_bytes and array.data_disks and not is_apart:
            yield filesystem, array


def _full_stripe(array: Array | None) -> int:
    return (array.chunk_bytes or 0) * (array.data_disks or 0) or 1 if array else 1


def _striped_below(node: BlockNode | None, arrays: Mapping[str, Array]) -> tuple[Array | None, Array | None]:
    """The striped array that a device is or lies on as the only one below layers that keep its blocks in place; and the
    thin pool between. The volume of a RAID controller is a disk."""
    pool = None
    while node is not None:
        array = arrays.get(node.device)
        if array is not None and array.level in STRIPED:
            return array, pool
        pool = array if array is not None and array.level == "thin-pool" else pool
        below = [member for member in node.members if member.relation not in BESIDE]
        node = below[0] if node.level in _IN_PLACE and len(below) == 1 else None
    return None, None


def _is_misaligned(filesystem: FileSystem, array: Array) -> bool:
    chunk, full = array.chunk_bytes or 0, (array.chunk_bytes or 0) * (array.data_disks or 0)
    return filesystem.stripe_unit_bytes not in (None, chunk) or filesystem.stripe_width_bytes not in (None, full)


def _stripe_text(filesystem: FileSystem) -> str:
    parts = (("a unit", filesystem.stripe_unit_bytes), ("a stripe", filesystem.stripe_width_bytes))
    return " and ".join(f"{what} of {size >> 10} KiB" for what, size in parts if size is not None)


def _align(filesystem: FileSystem, chunk: int, disks: int) -> Iterator[Remedy]:
    device = shlex.quote(f"/dev/{filesystem.device}")
    where = filesystem.mountpoints[0] if filesystem.mountpoints else ""
    if filesystem.kind == "xfs" and where:
        sizes = f"sunit={chunk // _SECTOR_BYTES},swidth={chunk // _SECTOR_BYTES * disks}"
        place = shlex.quote(where)
        yield RunShell(
            f"umount {place} && mount -o {sizes} {device} {place}",
            f"mount it once with the array's stripe, which XFS keeps; make the next one with -d su={chunk >> 10}k,"
            f"sw={disks}",
            f"everything that uses {where}",
        )
    elif filesystem.kind.startswith("ext"):
        block = filesystem.block_bytes or 4096
        sizes = f"stride={chunk // block},stripe_width={chunk // block * disks}"
        yield RunShell(f"tune2fs -E {sizes} {device}", "set the array's stripe in the file system")
    else:
        yield Decide(f"make the file system with a stripe unit of {chunk >> 10} KiB and {disks} data disks")


@rule(
    id="filesystems.not-aligned",
    severity="advice",
    title="A file system is not aligned to its array",
    what="XFS sunit and swidth, ext4 stride and stripe width, against the chunk and the number of data disks of the "
    "array below: directly, on a partition of it, or through layers that lie on it alone and keep blocks in place "
    "(linear, thin, cached and encrypted volumes).",
    why="A file system that knows the stripe places large files and its own structures so that writes fill whole "
    "stripes.",
    helps_when="Streaming writes to parity arrays.",
    hurts_when="XFS takes new values only where they fit its allocation groups. Data that is there already stays where "
    "it is.",
    sources=(sources.XFS, sources.MKE2FS, sources.BEEGFS_STORAGE),
)
def misaligned(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for filesystem, array in _on_arrays(facts):
        if _is_misaligned(filesystem, array):
            chunk, disks = array.chunk_bytes or 0, array.data_disks or 0
            made_without = not filesystem.stripe_unit_bytes and not filesystem.stripe_width_bytes
            where = ", ".join(filesystem.mountpoints) or filesystem.device
            yield misaligned.found(
                severity="advice" if array.level in PARITY_DISKS or not made_without else "info",
                title=f"{filesystem.kind} on {array.name} ({where}) "
                + ("does not know the array's stripes" if made_without else "has another stripe than the array"),
                why=f"The array has chunks of {chunk >> 10} KiB on {disks} data disks; "
                + (
                    "the file system was made without a stripe unit"
                    if made_without
                    else f"the file system has {_stripe_text(filesystem)}"
                )
                + (
                    ", and a write that covers part of a stripe must read the rest for the parity."
                    if array.level in PARITY_DISKS
                    else "."
                ),
                evidence={
                    "arrays": (array.name,),
                    "device": filesystem.device,
                    "chunk_bytes": chunk,
                    "data_disks": disks,
                    "stripe_unit_bytes": filesystem.stripe_unit_bytes,
                    "stripe_width_bytes": filesystem.stripe_width_bytes,
                },
                remedy=_align(filesystem, chunk, disks),
            )


def _optimal_bytes(disk: Disk) -> int | None:
    """The device's stripe; None where it has none, or what it reports is no stripe but the largest request that it
    takes: an odd number of small blocks, more than any array's members hold, or the limit of its adapter."""
    size, least, largest = (
        leading_count(disk.queue.get(name)) or 0 for name in ("optimal_io_size", "minimum_io_size", "max_hw_sectors_kb")
    )
    # A stripe is a chunk, which is a power of two, times the data disks; some arrays report the chunk as well.
    chunk = max(size & -size, least if least and size % least == 0 else 0)
    is_stripe = chunk >= _LEAST_CHUNK_BYTES and size // chunk <= _MOST_DATA_DISKS
    return size if is_stripe and size <= _OPTIMAL_BYTES_MAX and size != largest * _KIB else None


def _misaligned_partitions(
    disks: Iterable[Disk], unit: Mapping[str, int | None]
) -> tuple[tuple[Disk, str, int, int], ...]:
    """Disk, partition, where it begins and the unit that it misses."""
    return tuple(
        (disk, name, offset, size)
        for disk in disks
        for name, offset in sorted(disk.partition_offsets.items())
        if (size := unit.get(disk.name)) and offset % size
    )


@rule(
    id="disks.partition-not-aligned",
    severity="warning",
    title="A partition is not aligned to physical blocks",
    what="Where partitions begin, against physical_block_size and optimal_io_size of their disk.",
    why="A disk of 4 KiB blocks, or a RAID controller, reads, changes and writes back what is written in part.",
    helps_when="Old partition tables (from sector 63), images copied from other disks, volumes of RAID controllers.",
    hurts_when="It means to copy the data away and back. Reads in large requests hardly notice.",
    sources=(sources.BEEGFS_ALIGNMENT, sources.BLOCK_SYSFS),
)
def partitions(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    split = _misaligned_partitions(
        facts.disks, {disk.name: leading_count(disk.queue.get("physical_block_size")) for disk in facts.disks}
    )
    known = {name for _, name, _, _ in split}
    across = _misaligned_partitions(facts.disks, {disk.name: _optimal_bytes(disk) for disk in facts.disks})
    for found, is_split in ((split, True), (tuple(one for one in across if one[1] not in known), False)):
        if found:
            yield partitions.found(
                severity="warning" if is_split else "advice",
                title=None if is_split else "A partition is not aligned to its disk's stripe",
                why="Every block of the file system lies across two of the disk's own, so that a write of one reads "
                "and writes both."
                if is_split
                else "What the file system aligns to its stripe is off by the same amount everywhere: full stripes are "
                "never written.",
                evidence={
                    "disks": tuple(dict.fromkeys(disk.name for disk, _, _, _ in found)),
                    "detail": tuple(
                        f"{name} begins at {start:,} bytes, which is no multiple of {size:,}"
                        for _, name, start, size in found[:_SHOWN]
                    ),
                },
                remedy="when the disk is next partitioned, begin at a multiple of that size (parted -a optimal, 1 "
                "MiB is one of 4 KiB), or put the file system on the whole disk",
            )


@rule(
    id="arrays.fewer-stripes-than-devices",
    severity="info",
    title="A logical volume has fewer stripes than devices",
    what="LVM volumes of type striped: stripes against the number of their devices.",
    why="Only the devices of one segment work at once for a range of it.",
    helps_when="Volumes were added later for their speed.",
    hurts_when="They were added for their space: then it is right, and changing it means to copy the data.",
    sources=(sources.IRIS_GP3, sources.LVCREATE),
)
def fewer_stripes(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    # ebs.few-stripes reports EBS volumes.
    volumes = ebs_disks(facts)
    found = tuple(
        array
        for array in facts.arrays
        if array.manager == "lvm" and array.level == "striped" and not (array.disks and volumes.issuperset(array.disks))
        if 0 < (array.data_disks or 0) < len(set(array.members))
    )
    if not found:
        return None
    return fewer_stripes.found(
        why="The volume has several segments one after the other, or stripes over fewer devices than it lies on: a "
        "busy range has the speed of its own segment's devices only.",
        evidence={
            "arrays": tuple(array.name for array in found),
            "detail": tuple(
                f"{array.name}: {array.data_disks} stripes over {len(set(array.members))} devices" for array in found
            ),
        },
        remedy=(
            RunShell("lvs -o +seg_size,stripes,devices", "see the segments"),
            "when the volume is next made, give lvcreate -i as many stripes as devices, and -I 4m",
        ),
        intent=True,
    )


def _writes_on_read(filesystem: FileSystem) -> bool:
    options = (filesystem.options or "").split(",")
    return "rw" in options and filesystem.kind in _WITH_TIMES and not {"relatime", "noatime"} & set(options)


@rule(
    id="filesystems.strict-atime",
    severity="info",
    title="Reading a file writes its time of access",
    what="Mounted ext3, ext4 and XFS whose options have neither relatime nor noatime.",
    why="relatime, the default since Linux 2.6.30, writes it once a day at most; noatime gains little beyond that.",
    helps_when="Many small files are read.",
    hurts_when="A program counts on exact times of access, as some that clean up or watch mail do.",
    sources=(sources.MOUNT,),
)
def reads_that_write(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(filesystem for filesystem in facts.filesystems if _writes_on_read(filesystem))
    if not found:
        return None
    return reads_that_write.found(
        why="Each read of a file also writes when it was read.",
        evidence={
            "devices": tuple(filesystem.device for filesystem in found),
            "detail": tuple(f"{', '.join(one.mountpoints)} ({one.kind}): {one.options}" for one in found[:_SHOWN]),
        },
        remedy=(
            *(
                RunShell(
                    f"mount -o remount,relatime {shlex.quote(one.mountpoints[0])}",
                    f"mount {one.mountpoints[0]} with relatime",
                )
                for one in found
                if one.mountpoints
            ),
            RunShell("grep -n strictatime /etc/fstab", "find the lines from which to remove strictatime"),
        ),
    )


@rule(
    id="lvm.thin-chunk-apart",
    severity="info",
    title="A thin pool's chunks are no whole stripes",
    what="Chunk of each thin pool against the full stripe (chunk times data disks) of the parity array below it.",
    why="A pool maps its volumes chunk by chunk, anywhere: one that is no multiple of the stripe begins inside one.",
    helps_when="Large files and streams on parity arrays: before the pool is made, as its chunk cannot be changed.",
    hurts_when="Large chunks cost space and copying where many snapshots change a little each.",
    sources=(sources.THIN, sources.BEEGFS_STORAGE),
)
def thin_chunk_apart(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    graph, arrays = BlockGraph(facts), {array.device: array for array in facts.arrays}
    for pool in facts.arrays:
        array = _striped_below(graph.node(pool.device), arrays)[0] if pool.level == "thin-pool" else None
        stripe = _full_stripe(array)
        if array is not None and array.level in PARITY_DISKS and stripe > 1 and (pool.chunk_bytes or stripe) % stripe:
            yield thin_chunk_apart.found(
                title=f"Chunks of thin pool {pool.name} are no whole stripes of {array.name}",
                why=f"Chunks of {(pool.chunk_bytes or 0) >> 10} KiB lie across stripes of {stripe >> 10} KiB: first "
                "writes to each read the rest of its stripe for the parity, and no file system on it can align.",
                evidence={"arrays": (pool.name, array.name), "chunk_bytes": pool.chunk_bytes, "stripe_bytes": stripe},
                remedy=f"when the pool is next made, give lvcreate --chunksize {stripe >> 10}k or a multiple",
                intent=True,
            )


@rule(
    id="arrays.unlike-blocks",
    severity="warning",
    title="Members of an array have different block sizes",
    what="logical_block_size of the disks that hold an array's data.",
    why="An array has the largest block of its members: with a drive of 4,096 bytes among those of 512 it changes when "
    "it is next assembled.",
    helps_when="A drive was replaced by one of another format.",
    hurts_when="A drive that is formatted anew loses its data, and is rebuilt.",
    sources=(sources.MD, sources.BLOCK_SYSFS),
)
def unlike_blocks(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    graph = BlockGraph(facts)
    sizes = {disk.name: leading_count(disk.queue.get("logical_block_size")) for disk in facts.disks}
    for array in facts.arrays:
        node = graph.node(array.device) if array.manager in ("md", "lvm", "dm") else None
        found = {name: size for name in (node.disks(holding=True) if node else ()) if (size := sizes.get(name))}
        if len(set(found.values())) > 1:
            yield unlike_blocks.found(
                title=f"Members of {array.name} have different block sizes",
                why="Requests of the smaller size fail on the larger blocks, and a file system made with smaller "
                "sectors cannot be mounted once the array has the larger ones.",
                evidence={
                    "arrays": (array.name,),
                    "detail": tuple(f"{name}: {size} bytes" for name, size in found.items())[:_SHOWN],
                },
                remedy="replace the odd one by a drive of the same format, or format it so (nvme format, sg_format) "
                "before it is added",
            )
