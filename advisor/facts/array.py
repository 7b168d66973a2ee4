"""The record of an array, apart from its readers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Literal

import msgspec

from advisor.facts.levels import PARITY_DISKS, Relation


class ArrayPart(msgspec.Struct, frozen=True):
    """A piece of an array that is made of several devices itself: a segment of a logical volume, a plex, a column.

    ``name`` is what its own tools call it. ``level`` is one of `Array.level`'s words and says how ``members`` are
    combined: kernel names of devices, or further parts. ``linear`` lays them one behind the other. ``size_bytes`` and
    ``chunk_bytes`` are None where they are unknown or have no meaning. ``relation`` is what the part is to the one
    above, where its level does not say it: a cache, metadata.
    """

    name: str
    level: str
    members: tuple[str | ArrayPart, ...]
    size_bytes: int | None = None
    chunk_bytes: int | None = None
    relation: Relation | None = None

    def devices(self) -> Iterator[str]:
        """The devices of it and of its parts, each as often as it is there."""
        for member in self.members:
            if isinstance(member, str):
                yield member
            else:
                yield from member.devices()


class PathGroup(msgspec.Struct, frozen=True):
    """A priority group of a multipath map, as device-mapper's table has it.

    ``selector`` is round-robin, service-time …; ``requests_per_turn`` what one path gets before the next has its turn,
    None where that is unknown or not the same for all. ``paths`` by `Disk.name`.
    """

    selector: str
    requests_per_turn: int | None
    paths: tuple[str, ...]


class Array(msgspec.Struct, frozen=True):
    """A device made of others.

    ``name`` is what its own tools call it (md0, vg0/data, mpatha), ``device`` the kernel's name (md0, dm-3).
    ``level``: md's own words (raid0 … raid10, linear, container, faulty), ``linear``, ``striped``, ``mirror``,
    ``raid5``, ``thin``, ``thin-pool``, ``cache`` … for LVM, ``multipath`` for dm-multipath. ``data_disks`` is the
    number of members that carry data in one stripe (N for raid0, N/2 for raid10, N-1, N-2), None where the question
    has no meaning. ``chunk_bytes`` is the chunk or stripe size; the block size of a thin pool, cache or snapshot.
    ``state``: ``clean``, ``active``, ``degraded``, ``failed``, ``recovering``, ``resyncing``, ``reshaping``,
    ``checking``, ``repairing``, ``readonly``, ``suspended``, ``inactive``. ``recovering`` is a degraded array that is
    being healed; other work on a degraded array leaves it ``degraded`` (the work is in ``detail``). A container (IMSM,
    DDF) is ``inactive`` in health: only the arrays in it are active.
    ``missing`` counts members that should serve and do not (failed, absent, or not yet rebuilt; failed paths).

    ``members`` names every device that belongs to it, by kernel name, the ``spares``, ``failed`` and ``journal`` ones
    included: for LVM the physical volumes, whatever hidden volumes lie between. As mdadm(8) counts, a spare that is
    being rebuilt onto is still a spare; it is also named in ``detail`` under ``rebuilding``.
    """

    name: str
    manager: Literal["md", "lvm", "dm-multipath", "controller", "dm", "vxvm", "drbd", "bcache", "zfs", "btrfs"]
    """``dm``: a striped, mirrored or RAID mapping that is not LVM's (dmraid, plain dmsetup). ``vxvm``: a volume of
    Veritas Volume Manager. ``zfs``: a pool, or a block device of one (a zvol). ``btrfs``: a file system on
    several devices."""
    device: str
    level: str | None
    chunk_bytes: int | None
    data_disks: int | None
    state: str | None
    missing: int | None
    members: tuple[str, ...]
    spares: tuple[str, ...]
    failed: tuple[str, ...]
    journal: tuple[str, ...]
    numa_nodes: tuple[int, ...]
    size_bytes: int | None
    progress_percent: float | None
    mountpoints: tuple[str, ...]
    detail: Mapping[str, str]
    disks: tuple[str, ...] = ()
    """The whole disks at the bottom of it, through partitions, encryption and arrays of arrays; by `Disk.name`."""
    structure: ArrayPart | None = None
    """How the members are combined where one level over all of them does not describe it: a volume of several segments,
    mirrored stripes, layered volumes. None where it does, or where it is unknown."""
    queue: Mapping[str, str] = {}
    """Raw queue attributes of the array itself, by their sysfs names, as in `Disk.queue`."""
    path_groups: tuple[PathGroup, ...] = ()
    """Of a multipath map whose table could be read."""
    expected: int | None = None
    """Members, copies or paths that should serve; those that are ``missing`` included."""
    survives: int | None = None
    """How many more of them it can lose without loss of data (of a map: of I/O), whichever they are; negative where
    data is lost already."""


def losses_left(
    level: str | None,
    disks: int | None,
    missing: int | None,
    *,
    serving: Collection[int] = (),
    near_copies: int | None = None,
    far_copies: int | None = None,
) -> int | None:
    """How many more members may be lost, whichever they are; negative where data is lost, None where it is unknown.

    ``serving`` holds the slots of a RAID 10 that are in sync; without them the worst case counts that keeps the data.
    """
    if missing is None:
        return None
    if level in PARITY_DISKS:
        return PARITY_DISKS[level] - missing
    if disks is None:
        return None
    if level in ("raid1", "mirror", "multipath"):
        return disks - missing - 1
    if level in ("raid0", "linear", "striped"):
        return -1 if missing else 0
    if level != "raid10" or not near_copies or not far_copies:
        return None
    copies = min(near_copies * far_copies, disks)
    if not serving or not missing:
        return max(copies - 1 - missing, 0)
    # Where the number of disks is odd, the copies of a chunk may begin at any of them.
    starts = {index * near_copies % disks for index in range(disks)}
    return min(sum((first + offset) % disks in serving for offset in range(copies)) for first in starts) - 1
