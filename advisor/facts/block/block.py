"""What disks, arrays and file systems share: names, numbers and queue attributes of block devices.

A block device is named here as ``/sys/class/block`` names it: ``sda2``, ``md0``, ``dm-3``, and ``cciss!c0d0`` for what
is ``/dev/cciss/c0d0``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, is_count, lazy_regex

SECTOR_BYTES = 512  # sysfs counts in these, whatever the device's own block size (kernel: block/stat, ABI sysfs-block)

_NUMBERS = lazy_regex(r"([0-9]+)")
# Disks that the kernel letters as it numbers others: sda … sdz, sdaa (sd_format_disk_name).
_LETTERED = lazy_regex(r"(sd|vd|xvd|hd|dasd)([a-z]{1,4})(?![a-z])(.*)", re.DOTALL)
_NVME_PATH = lazy_regex(r"(nvme[0-9]+)c[0-9]+(n[0-9]+)")


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Sort key by which sda9 comes before sda10, and sdz before sdaa."""
    lettered = _LETTERED.match(name)
    if lettered is not None:
        kind, letters, rest = lettered.groups()
        return (-1, kind), (len(letters), letters), *natural(rest)
    parts = _NUMBERS.split(name)
    return tuple((int(part), "") if index % 2 else (-1, part) for index, part in enumerate(parts) if len(part) < 400)


def multipath_head(path: str) -> str | None:
    """The device that requests of a path of NVMe's own multipath come from: nvme0n1 of nvme0c1n1, the path by
    controller 1 (nvme: nvme_mpath_set_disk_name). None for what is no such path."""
    found = _NVME_PATH.fullmatch(path)
    return f"{found[1]}{found[2]}" if found else None


def clean(text: str) -> str:
    """One line, without NUL bytes and padding."""
    return " ".join(text.replace("\0", " ").split())


def node_path(name: str) -> str:
    """The device node of a kernel name."""
    return "/dev/" + name.replace("!", "/")


def kernel_name(path: str) -> str:
    """The kernel name that a device node of this path has if it is no link."""
    return path.removeprefix("/dev/").replace("/", "!")


def read_word(host: Host, path: str, fact: str, unknown: Unknowns) -> str | None:
    """A short attribute as one line; None where it is absent, empty or unreadable (which is noted)."""
    text = unknown.value(fact, host.read(path))
    return (clean(text) or None) if text is not None else None


def read_count(host: Host, path: str, fact: str, unknown: Unknowns) -> int | None:
    """A number that cannot be negative; None where it is absent, or no such number (which is noted)."""
    number = unknown.value(fact, host.read_int(path))
    if number is not None and number < 0:
        unknown.note(fact, f"the kernel gives {number}")
        return None
    return number


def read_size(host: Host, name: str, fact: str, unknown: Unknowns) -> int | None:
    """Bytes of a whole device; every device has a size, so that its absence is noted too."""
    sectors = read_count(host, f"/sys/block/{name}/size", fact, unknown)
    if sectors is None:
        unknown.note(fact, f"/sys/block/{name}/size does not exist")
        return None
    return sectors * SECTOR_BYTES


def read_queue(host: Host, name: str, attributes: Iterable[str], fact: str, unknown: Unknowns) -> dict[str, str]:
    """The raw values of those queue attributes that this kernel has for this device."""
    values: dict[str, str] = {}
    for attribute in attributes:
        text = host.read(f"/sys/block/{name}/queue/{attribute}")
        if not isinstance(text, Missing):
            values[attribute] = clean(text)
        elif not text.is_absent and not _does_not_apply(attribute, text):
            unknown.note(f"{fact}.queue.{attribute}", text)
    return values


def _does_not_apply(attribute: str, missing: Missing) -> bool:
    # The kernel answers EINVAL where write-back throttling is off for the device (blk-sysfs.c, queue_wbt_lat_show).
    return attribute == "wbt_lat_usec" and missing.why == "Invalid argument"


def partitions_of(name: str, entries: Iterable[str]) -> tuple[str, ...]:
    """The partitions among the entries of ``/sys/block/NAME``: sda1, nvme0n1p1, cciss!c0d0p1."""
    found = (entry for entry in entries if entry.startswith(name) and re.fullmatch(r"p?[0-9]+", entry[len(name) :]))
    return tuple(sorted(found, key=natural))


def whole_of(partition: str, known: Container[str]) -> str | None:
    """The known device that a name like sda2 or nvme0n1p2 is a partition of, by its form alone."""
    found = re.fullmatch(r"(.*[0-9])p[0-9]+|(.*\D)[0-9]+", partition, re.DOTALL)
    whole = (found[1] or found[2]) if found else None
    return whole if whole in known else None


class BlockNames:
    """Kernel names of block devices by device number or by path. Tables are read when first needed, then kept."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._numbers: Mapping[str, str] | None = None
        self._mapped: Mapping[str, str] | None = None

    def by_number(self, number: str) -> str | None:
        """The device with a ``major:minor`` number."""
        link = self._host.readlink(f"/sys/dev/block/{number}")
        if not isinstance(link, Missing):
            return link.rstrip("/").rpartition("/")[2] or None
        if self._numbers is None:
            self._numbers = self._read_numbers()
        return self._numbers.get(number)

    def by_path(self, path: str) -> str | None:
        """The device that a path below /dev means; None where the host shows no such device."""
        if not path.startswith("/dev/"):
            return None
        real = self._host.real(path)
        for candidate in (path if isinstance(real, Missing) else real, path):
            name = kernel_name(candidate)
            if self._host.exists(f"/sys/class/block/{name}") or self._host.exists(f"/sys/block/{name}"):
                return name
        # `/dev/vg/lv` as device-mapper spells it: hyphens doubled, one between the two.
        return self.by_mapping(path.removeprefix("/dev/mapper/")) or self.by_mapping(
            "-".join(part.replace("-", "--") for part in path.removeprefix("/dev/").split("/"))
        )

    def by_mapping(self, mapping: str) -> str | None:
        """The dm device that device-mapper calls ``mapping``."""
        if self._mapped is None:
            self._mapped = self._read_mappings()
        return self._mapped.get(mapping)

    def _read_numbers(self) -> dict[str, str]:
        # A captured tree may lack /sys/dev; on a live host this is reached for devices that have just gone only.
        if self._host.is_live:
            return {}
        numbers: dict[str, str] = {}
        for directory in ("/sys/block", "/sys/class/block"):
            for name in self._host.names(directory):
                number = self._host.read(f"{directory}/{name}/dev")
                if not isinstance(number, Missing):
                    numbers[number] = name
        return numbers

    def _read_mappings(self) -> dict[str, str]:
        mapped: dict[str, str] = {}
        for name in self._host.names("/sys/block"):
            if name.startswith("dm-"):
                mapping = self._host.read(f"/sys/block/{name}/dm/name")
                if not isinstance(mapping, Missing):
                    mapped[mapping] = name
        return mapped


# How members make a device, one row a level: what each member is to it, and what is parity.

Relation = Literal[
    "stripe", "copy", "parity", "concatenation", "path", "data", "cache", "journal", "metadata", "write-mostly"
]
"""What a member is to the device that it belongs to. ``data`` is the one member that holds all of it: below a thin
volume, encryption, a snapshot, a file."""


BESIDE: frozenset[Relation] = frozenset({"cache", "journal", "metadata", "write-mostly"})
"""Members that are named by what they are: those that do not hold a part of the data, or are not read."""


class Level(msgspec.Struct, frozen=True):
    """``parity`` is how many members' worth of a stripe is parity, ``small_write`` how many operations of members a
    small write costs, ``uncounted`` the work that no figure of its members shows."""

    relation: Relation
    parity: int = 0
    small_write: int = 1
    uncounted: str | None = None


_WHOLE = Level("data")
LEVELS = {
    "raid0": Level("stripe"),
    "striped": Level("stripe"),
    "raid10": Level("copy", small_write=2),
    "raid1": Level("copy", small_write=2),
    "mirror": Level("copy", small_write=2),
    "raid4": Level("parity", 1, 4),
    "raid5": Level("parity", 1, 4),
    "raid6": Level("parity", 2, 6),
    "linear": Level("concatenation"),
    "multipath": Level("path"),
    **dict.fromkeys(("cache", "bcache"), Level("data", uncounted="reads that miss the cache, and copies into it")),
    "writecache": Level("data", uncounted="the writeback to the device behind the cache"),
    **dict.fromkeys(
        ("snapshot", "snapshot-origin"), Level("data", uncounted="the copy of each chunk before its first write")
    ),
    **dict.fromkeys(("thin", "thin-pool", "vdo", "integrity", "crypt", "file", "replica", "zvol"), _WHOLE),
}
STRIPED = frozenset({"raid0", "raid4", "raid5", "raid6", "raid10", "striped"})
PARITY_DISKS = {level: row.parity for level, row in LEVELS.items() if row.parity}
MIRRORS = frozenset({"raid1", "mirror"})


def family_of(level: str | None) -> str | None:
    """The row of a level: ``raid5`` for ``raid5_ls`` and the like; None for one that has no arithmetic here."""
    name = re.sub(r"^(raid[0-9]+)_.*", r"\1", level or "")
    return name if name in LEVELS else None


# The record of an array, apart from its readers.


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


# How much each path of a multipath map carries: the disks' own counters (kernel: Documentation/block/stat.rst).


class PathLoad(msgspec.Struct, frozen=True):
    """A priority group of a map. ``requests`` and ``bytes_moved`` count by path (`Disk.name`); ``seconds`` is the
    interval, None where the counts run since each path was added."""

    array: str
    group: int
    requests: Mapping[str, int]
    bytes_moved: Mapping[str, int]
    seconds: float | None = None


def read_path_load(host: Host, arrays: Iterable[Array]) -> tuple[PathLoad, ...]:
    """Groups of several paths whose counters could all be read. A group without all of its counters is left out."""
    found = (_of_group(host, array, at) for array in arrays for at in range(len(array.path_groups)))
    return tuple(one for one in found if one is not None)


def over_interval(
    host: Host, arrays: tuple[Array, ...], seconds: float, sleep: Callable[[float], None] = time.sleep
) -> tuple[PathLoad, ...]:
    """The same over ``seconds``: what the counters rose by. A path whose counters began again is left out whole."""
    before, start = read_path_load(host, arrays), time.monotonic()
    sleep(seconds)
    after, took = read_path_load(host, arrays), time.monotonic() - start
    earlier = {(one.array, one.group): one for one in before}
    pairs = ((earlier.get((one.array, one.group)), one) for one in after)
    found = (_rate_between(old, new, round(max(took, seconds), 3)) for old, new in pairs if old is not None)
    return tuple(one for one in found if one is not None)


def _of_group(host: Host, array: Array, at: int) -> PathLoad | None:
    paths = [path for path in array.path_groups[at].paths if path not in array.failed]
    counts = {path: _read_counts(host, path) for path in paths}
    known = {path: count for path, count in counts.items() if count is not None}
    if len(known) < 2 or len(known) < len(counts):
        return None
    return PathLoad(
        array.name,
        at,
        {path: requests for path, (requests, _) in known.items()},
        {path: sectors * SECTOR_BYTES for path, (_, sectors) in known.items()},
    )


def _read_counts(host: Host, disk: str) -> tuple[int, int] | None:
    """Requests and sectors, read and written together; None where they cannot be read."""
    words = host.read_or_empty(f"/sys/block/{disk}/stat").split()
    if len(words) < 11 or not all(is_count(word) and len(word) < 20 for word in words[:11]):
        return None
    return int(words[0]) + int(words[4]), int(words[2]) + int(words[6])


def _rate_between(old: PathLoad, new: PathLoad, seconds: float) -> PathLoad | None:
    if old.requests.keys() != new.requests.keys():
        return None
    requests = {path: count - old.requests[path] for path, count in new.requests.items()}
    moved = {path: count - old.bytes_moved[path] for path, count in new.bytes_moved.items()}
    if min(*requests.values(), *moved.values()) < 0:
        return None
    return PathLoad(new.array, new.group, requests, moved, seconds)
