"""How a mapped device is made: the targets of its table, the devices that each lies on and what these are to it.

A volume that was extended has several segments, one behind the other: 8 stripes over 16 disks are two segments of 8
disks each (lvs(8), option ``--segments``). Hidden volumes (the images of a RAID volume, the parts of a cache) are
followed down to the devices that they lie on. Source: Linux Documentation/admin-guide/device-mapper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from advisor.facts.array import ArrayPart
from advisor.facts.block import SECTOR_BYTES
from advisor.facts.dm import DmDevice
from advisor.facts.dm_text import TableLine, shape_of, stripe_devices
from advisor.facts.levels import BESIDE, LEVELS, Relation, family_of
from advisor.facts.lvm_text import LogicalVolume
from advisor.host import is_count

Member = str | ArrayPart
Piece = tuple[str, tuple[Member, ...], int, int | None]
"""Level, members, bytes, chunk."""
_MAX_DEPTH = 8
_MAX_DEVICES = 4096
TARGETS: Mapping[str, tuple[tuple[int, Relation], ...]] = {
    "crypt": ((3, "data"),),
    "thin": ((0, "data"),),
    "thin-pool": ((0, "metadata"), (1, "data")),
    "cache": ((0, "metadata"), (1, "cache"), (2, "data")),
    "writecache": ((1, "data"), (2, "cache")),
    "snapshot": ((0, "data"), (1, "data")),
    "snapshot-merge": ((0, "data"), (1, "data")),
    "snapshot-origin": ((0, "data"),),
    "integrity": ((0, "data"),),
    "vdo": ((1, "data"),),
}
"""Where in a target's words its devices stand, and what each is to it."""


def _members_of(target: TableLine) -> list[tuple[str, Relation | None]]:
    """Device numbers below a target; the relation where its level does not say it."""
    words = target.words
    if target.kind == "raid":
        # `type #params … #devices meta data meta data …`, with - for a device that is not there (dm-raid.rst).
        count = int(words[1]) if len(words) > 1 and is_count(words[1]) and len(words[1]) < 4 else len(words)
        given, devices = words[2 : 2 + count], words[3 + count :]
        slow = {given[at + 1] for at, word in enumerate(given[:-1]) if word == "write_mostly"}
        rows: list[tuple[str, Relation | None]] = [
            (given[at + 1], "journal") for at, word in enumerate(given[:-1]) if word == "journal_dev"
        ]
        for at, (meta, data) in enumerate(zip(devices[::2], devices[1::2], strict=False)):
            rows += [(meta, "metadata"), (data, "write-mostly" if str(at) in slow else None)]
        return [row for row in rows if row[0] != "-"]
    if target.kind in ("linear", "striped"):
        return [(number, None) for number in stripe_devices(target)]
    return [(words[at], relation) for at, relation in TARGETS.get(target.kind or "", ()) if at < len(words)]


class Structures:
    """Structures of the mapped devices of one host."""

    def __init__(self, by_name: Mapping[str, DmDevice], name_of: Callable[[str], str | None]) -> None:
        self._by_name = by_name
        self._name_of = name_of
        self._hidden: dict[str, ArrayPart | None] = {}

    def find(self, name: str, targets: Iterable[TableLine]) -> ArrayPart | None:
        """The structure of a device with these targets; None where one level over its members describes it, and where
        a target or a device number is not known. A thin volume lies on its pool, not on what that lies on."""
        part = self._part(name, targets, 0)
        if part is None or part.level == "thin" or len(set(part.members)) < 2:
            return part if part is not None and part.level == "thin" else None
        return part if any(isinstance(member, ArrayPart) for member in part.members) or part.level == "linear" else None

    def _part(self, name: str, targets: Iterable[TableLine], depth: int) -> ArrayPart | None:
        part = self._make(name, targets, depth)
        # A made-up capture may repeat itself at each depth.
        return part if part and sum(1 for _ in islice(part.devices(), _MAX_DEVICES + 1)) <= _MAX_DEVICES else None

    def _make(self, name: str, targets: Iterable[TableLine], depth: int) -> ArrayPart | None:
        pieces: list[Piece] = []
        for target in targets:
            if target.kind in {"error", "zero"}:
                continue
            members = self._resolve(target, depth)
            shape = shape_of((target,))
            if not members or shape is None:
                return None
            pieces.append((shape.level, members, target.length * SECTOR_BYTES, shape.chunk_bytes))
        if len(pieces) == 1:
            level, members, size, chunk = pieces[0]
            return ArrayPart(name, level, members, size, chunk)
        return _make_part(name, pieces)

    def _resolve(self, target: TableLine, depth: int) -> tuple[Member, ...]:
        """The members of a target; none where one of them is not known."""
        found: list[Member] = []
        metadata: list[Member] = []
        for number, relation in _members_of(target):
            name = self._name_of(number)
            if name is None:
                return ()
            member: Member = name
            device = self._by_name.get(name)
            if device is not None and device.role == "hidden" and depth < _MAX_DEPTH:
                if name not in self._hidden:
                    self._hidden[name] = None
                    shown = device.mapping.rpartition("_")[2]
                    self._hidden[name] = self._part(shown, device.targets or (), depth + 1)
                part = self._hidden[name]
                if part is None:
                    return ()
                is_whole = len(part.members) == 1 and LEVELS[family_of(part.level) or "thin"].relation in _WHOLE
                member = part.members[0] if is_whole else part
            if relation in BESIDE and relation != "metadata":
                member = _as_part(member, relation, relation)
            (metadata if relation == "metadata" else found).append(member)
        devices = {device for member in found for device in _devices(member)}
        apart = [one for one in metadata if not devices.issuperset(_devices(one))]
        return (*dict.fromkeys(found), *(_as_part(one, "metadata", "metadata") for one in dict.fromkeys(apart)))


_WHOLE = frozenset({"data", "concatenation"})


def _as_part(member: Member, name: str, relation: Relation) -> ArrayPart:
    if isinstance(member, ArrayPart):
        return ArrayPart(name, member.level, member.members, member.size_bytes, member.chunk_bytes, relation)
    return ArrayPart(name, "linear", (member,), relation=relation)


def _devices(member: Member) -> tuple[str, ...]:
    return (member,) if isinstance(member, str) else tuple(member.devices())


def structure_of_rows(name: str, rows: Iterable[LogicalVolume]) -> ArrayPart | None:
    """The same from the rows of ``lvs``, one for each segment; sizes of segments are not among its columns."""
    pieces: list[Piece] = []
    for row in rows:
        if row.level not in ("linear", "striped") or not row.devices:
            return None
        pieces.append((row.level, row.devices, 0, row.stripe_bytes))
    return _make_part(name, pieces)


def _make_part(name: str, pieces: Iterable[Piece]) -> ArrayPart | None:
    """Ranges on the same devices are one segment: of linear ones that follow each other only the devices count."""
    found: dict[tuple[str, frozenset[Member], int | None], tuple[tuple[Member, ...], int]] = {}
    for level, devices, size, chunk in pieces:
        key = (level, frozenset(devices), chunk)
        first, before = found.get(key, (devices, 0))
        found[key] = (first, before + size)
    if len({devices for _level, devices, _chunk in found}) < 2:
        return None
    members = tuple(
        devices[0] if len(devices) == 1 else ArrayPart(f"segment {at}", level, devices, size or None, chunk)
        for at, ((level, _names, chunk), (devices, size)) in enumerate(found.items(), 1)
    )
    return ArrayPart(name, "linear", members)
