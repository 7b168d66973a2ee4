"""Geometry: partitions, logical volumes and file systems against the blocks and stripes of what they lie on."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from advisor.facts.disks import Disk, FileSystem
from advisor.rules import sources
from advisor.rules.queries import ebs_disks, leading_count
from advisor.rules.remedy import Decide, Remedy, RunShell
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, rule

if TYPE_CHECKING:
    from advisor.facts.array import Array

ORDER = 160

_KIB = 1 << 10
_STRIPED = frozenset({"raid0", "raid4", "raid5", "raid6", "raid10", "striped"})
_PARITY = frozenset({"raid4", "raid5", "raid6"})
_SECTOR_BYTES = 512
_PAGE_BYTES = 4096
_OPTIMAL_BYTES_MAX = 16 << 20
_SHOWN = 12
_WITH_TIMES = frozenset({"ext3", "ext4", "xfs"})


def _on_arrays(facts: Facts) -> Iterator[tuple[FileSystem, Array]]:
    arrays = {array.device: array for array in facts.arrays}
    # The volume of a RAID controller is a disk, and has partitions as one.
    whole = {partition: disk.name for disk in facts.disks for partition in disk.partitions}
    for filesystem in facts.filesystems:
        array = _striped_below(whole.get(filesystem.device, filesystem.device), arrays)
        if array is not None and array.chunk_bytes and array.data_disks:
            yield filesystem, array


def _striped_below(device: str, arrays: Mapping[str, Array]) -> Array | None:
    """The striped array that a device is, is a partition of, or is a linear volume on as its only device."""
    for _ in arrays:
        array = arrays.get(device) or arrays.get(re.sub(r"(?<=[0-9])p[0-9]+$", "", device))
        if array is None or array.level in _STRIPED:
            return array
        below = set(array.members)
        if array.level != "linear" or len(below) != 1:
            return None
        device = below.pop()
    return None


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
    "array below: directly, on a partition of it, or through a linear volume that lies on it alone.",
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
                severity="advice" if array.level in _PARITY or not made_without else "info",
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
                    if array.level in _PARITY
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
    """The device's stripe or optimal request; None where it has none, or reports an impossible size."""
    size = leading_count(disk.queue.get("optimal_io_size"))
    # Some USB bridges report 65,535 sectors; some drives report their largest request.
    return size if size and size % _PAGE_BYTES == 0 and size <= _OPTIMAL_BYTES_MAX else None


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
