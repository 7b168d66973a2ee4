"""The texts of device-mapper: ``dmsetup table``, ``dmsetup status`` and the names and ids that LVM gives its volumes.

Target arguments follow the kernel's Documentation/admin-guide/device-mapper; names and ids follow lvm2's
``dm_build_dm_name`` and ``build_dm_uuid``.
"""

from __future__ import annotations

import re
from itertools import pairwise

import msgspec

from advisor.facts.block.block import SECTOR_BYTES
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex

_LINE = lazy_regex(r"(.+?): (\d{1,18}) (\d{1,18})(?: (\S+)(?: (.*))?)?", re.ASCII)
_PATH_STATE = lazy_regex(r"(?<!\S)(\d+:\d+) ([AF]) (\d+)(?!\S)", re.ASCII)
_DEVICE = lazy_regex(r"\d+:\d+", re.ASCII)


class TableLine(msgspec.Struct, frozen=True):
    """One line of a table or of a status. ``length`` in sectors; ``kind`` is None in a status without a type."""

    start: int
    length: int
    kind: str | None
    words: tuple[str, ...]


class ArrayShape(msgspec.Struct, frozen=True):
    """What a table says about an array's geometry."""

    level: str
    chunk_bytes: int | None = None
    data_disks: int | None = None
    disks: int | None = None
    detail: tuple[tuple[str, str], ...] = ()
    near_copies: int = 1
    far_copies: int = 1
    """Of a RAID 10."""


class RaidStatus(msgspec.Struct, frozen=True):
    """Health of dm-raid: ``health`` holds A (in sync), a (alive, not in sync) or D (dead) for each device;
    ``mismatches`` are the sectors that do not agree by the last check."""

    health: str
    progress_percent: float | None
    action: str | None
    mismatches: str | None = None


class VolumeName(msgspec.Struct, frozen=True):
    """A logical volume by its dm name; ``layer`` is the part after it, as in vg-pool-tpool."""

    group: str
    volume: str
    layer: str


def parse_dm_lines(text: str) -> dict[str, tuple[TableLine, ...]]:
    """Targets by device name, from ``dmsetup table`` or ``dmsetup status``; other lines are left out."""
    found: dict[str, list[TableLine]] = {}
    for line in text.replace("\0", " ").splitlines():
        match = _LINE.fullmatch(line.rstrip())
        if match:
            words = tuple((match[5] or "").split())
            found.setdefault(match[1], []).append(TableLine(int(match[2]), int(match[3]), match[4], words))
    return {name: tuple(targets) for name, targets in found.items()}


def shape_of(targets: tuple[TableLine, ...]) -> ArrayShape | None:
    """Geometry of a device; where it is made of different parts, that of the kind that covers most of it.

    Holes (the ``error`` target) count only where there is nothing else.
    """
    kinds: dict[str, int] = {}
    for target in targets:
        if target.kind:
            kinds[target.kind] = kinds.get(target.kind, 0) + target.length
    if not kinds:
        return None
    main = max(sorted(kinds.keys() - {"error"} or kinds), key=lambda kind: kinds[kind])
    shape = _parse_shape(main, max((one for one in targets if one.kind == main), key=lambda one: one.length).words)
    if len(targets) == 1:
        return shape
    counted = ", ".join(f"{kind} {sum(one.kind == kind for one in targets)}" for kind in sorted(kinds))
    return msgspec.structs.replace(shape, detail=(*shape.detail, ("segments", counted)))


def _parse_shape(kind: str, words: tuple[str, ...]) -> ArrayShape:
    if kind == "striped":
        stripes = _parse_int(words, 0)
        return ArrayShape("striped", _parse_sectors(words, 1), stripes, stripes)
    if kind == "raid":
        return _raid_shape(words)
    if kind == "mirror":
        # `log #log_args … #devices dev offset …`.
        count = _parse_int(words, 1)
        return ArrayShape("mirror", disks=_parse_int(words, 2 + count) if count is not None else None)
    if kind in ("thin-pool", "writecache"):
        return ArrayShape(kind, _parse_sectors(words, 2) if kind == "thin-pool" else (_parse_int(words, 3) or None))
    if kind == "cache":
        mode = next((word for word in words[4:] if word in ("writethrough", "writeback", "passthrough")), None)
        return ArrayShape("cache", _parse_sectors(words, 3), detail=(("cache_mode", mode),) if mode else ())
    if kind == "snapshot":
        return ArrayShape("snapshot", _parse_sectors(words, 3))
    if kind == "multipath":
        # `#features … #handler_args … #groups initial_group selector #args … #paths #path_args device …`.
        features = _parse_int(words, 0) or 0
        handler = 1 + features
        handler_words = _parse_int(words, handler) or 0
        groups = handler + 1 + handler_words
        detail = {
            "features": " ".join(words[1:handler]),
            "hwhandler": " ".join(words[handler + 1 : groups]),
            "groups": words[groups] if groups < len(words) else "",
            "policy": words[groups + 2] if groups + 2 < len(words) else "",
        }
        return ArrayShape("multipath", detail=tuple((key, value) for key, value in detail.items() if value))
    return ArrayShape(kind)


def _parse_int(words: tuple[str, ...], index: int) -> int | None:
    return int(words[index]) if index < len(words) and re.fullmatch(r"\d{1,15}", words[index], re.ASCII) else None


def _parse_sectors(words: tuple[str, ...], index: int) -> int | None:
    number = _parse_int(words, index)
    return number * SECTOR_BYTES if number else None


def _raid_shape(words: tuple[str, ...]) -> ArrayShape:
    """``raid_type #params chunk_sectors … #devices meta data meta data …`` (dm-raid.rst)."""
    kind = words[0] if words else "raid"
    level = re.match(r"raid[0-9]+", kind)
    name = level[0] if level else kind
    count = _parse_int(words, 1) or 0
    parameters = words[2 : 2 + count]
    disks = _parse_int(words, 2 + count)
    chunk = _parse_sectors(words, 2) if name != "raid1" else None
    detail = (("layout", kind),) if kind != name else ()
    if not disks or name == "raid1":
        raid_data = None
    elif name == "raid10":
        settings = dict(pairwise(parameters))
        copies = settings.get("raid10_copies", "2")
        near, far = int(copies) if re.fullmatch(r"[1-9]\d?", copies, re.ASCII) else 2, 1
        if settings.get("raid10_format", "near") != "near":
            near, far = far, near
        raid_data = disks // near if disks % near == 0 else disks
        return ArrayShape(name, chunk, raid_data, disks, detail, near, far)
    else:
        raid_data = max(disks - {"raid4": 1, "raid5": 1, "raid6": 2}.get(name, 0), 1)
    return ArrayShape(name, chunk, raid_data, disks, detail)


class TableGroup(msgspec.Struct, frozen=True):
    """A priority group in a multipath table: its selector, and each path's device number and selector arguments."""

    selector: str
    paths: tuple[tuple[str, tuple[str, ...]], ...]


class _Words:
    """A table's words, taken one after the other; IndexError where they end or are no number."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self.at = 0

    def word(self) -> str:
        self.at += 1
        return self.words[self.at - 1]

    def number(self) -> int:
        found = _parse_int((self.word(),), 0)
        if found is None:
            raise IndexError
        return found

    def take(self, count: int) -> tuple[str, ...]:
        if self.at + count > len(self.words):
            raise IndexError
        self.at += count
        return self.words[self.at - count : self.at]


def multipath_groups(words: tuple[str, ...]) -> tuple[TableGroup, ...]:
    """The priority groups of a multipath table in their order; none where the text is cut (dm-mpath.c).

    ``#features … #handler … #groups initial``, then each: ``selector #args … #paths #path_args``, device and arguments.
    """
    left = _Words(words)
    try:
        left.take(left.number())
        left.take(left.number())
        count, _ = left.number(), left.number()
        return tuple(_table_group(left) for _ in range(count))
    except IndexError:
        return ()


def _table_group(left: _Words) -> TableGroup:
    selector = left.word()
    left.take(left.number())
    paths, arguments = left.number(), left.number()
    return TableGroup(selector, tuple((left.word(), left.take(arguments)) for _ in range(paths)))


def stripe_devices(target: TableLine) -> tuple[str, ...]:
    """Device numbers that a linear or striped target lies on, in its order (linear.rst, striped.rst); empty where one
    is not a number."""
    count = 1 if target.kind == "linear" else _parse_int(target.words, 0) or 0
    first = 0 if target.kind == "linear" else 2
    found = target.words[first : first + 2 * count : 2]
    return found if len(found) == count and all(_DEVICE.fullmatch(one) for one in found) else ()


def path_states(words: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Device number and state, A (active) or F (failed), of each path in the status of a multipath map."""
    return tuple((number, state) for number, state, _ in _PATH_STATE.findall(" ".join(words)))


def raid_status(words: tuple[str, ...]) -> RaidStatus | None:
    """``raid_type #devices health done/total action mismatches …``; None where the text is cut."""
    if len(words) < 4 or not re.fullmatch(r"[AaD-]{1,512}", words[2], re.ASCII):
        return None
    action = words[4] if len(words) > 4 else None
    counted = words[5] if len(words) > 5 and is_count(words[5]) else None
    return RaidStatus(words[2], _parse_share(words[3]), None if action in ("idle", "frozen") else action, counted)


def mirror_status(words: tuple[str, ...]) -> RaidStatus | None:
    """``#devices dev … done/total 1 health …``; any letter but A is a device that failed (dm-raid1.c)."""
    count = _parse_int(words, 0)
    if count is None or len(words) < count + 4:
        return None
    letters = re.sub(r"[^A-Za-z]", "", words[count + 3])
    share = _parse_share(words[count + 1])
    resyncing = share is not None and share < 100
    return RaidStatus(re.sub(r"[^A]", "D", letters), share, "resync" if resyncing else None)


def _parse_share(text: str) -> float | None:
    found = re.fullmatch(r"(\d{1,18})/(\d{1,18})", text, re.ASCII)
    return round(100 * int(found[1]) / int(found[2]), 1) if found and int(found[2]) else None


def parse_volume_name(name: str) -> VolumeName | None:
    """Group, volume and layer of a dm name such as ``vg0-lv--data-real``; None for what has no such form."""
    parts = name.replace("--", "\0").split("-")
    if len(parts) not in (2, 3) or not all(parts[:2]):
        return None
    group, volume, *layer = (part.replace("\0", "-") for part in parts)
    return VolumeName(group, volume, layer[0] if layer else "")
