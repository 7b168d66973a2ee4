"""The segments of a logical volume: ranges of it that lie on different devices, one behind the other.

A volume that was extended has several: 8 stripes over 16 disks are two segments of 8 disks each (lvs(8), option
``--segments``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from advisor.facts.array import ArrayPart
from advisor.facts.block import SECTOR_BYTES
from advisor.facts.dm_text import TableLine, stripe_devices
from advisor.facts.lvm_text import LogicalVolume

Piece = tuple[str, tuple[str, ...], int, int | None]
"""Level, devices, bytes, chunk."""


def structure_of_targets(
    name: str, targets: Sequence[TableLine], name_of: Callable[[str], str | None]
) -> ArrayPart | None:
    """The segments in a device-mapper table; None for a volume of one segment, for other targets than linear and
    striped ones, and where a device number has no name."""
    pieces: list[Piece] = []
    for target in targets:
        if target.kind in {"error", "zero"}:
            continue
        if target.kind not in ("linear", "striped"):
            return None
        names = [name_of(number) for number in stripe_devices(target)]
        known = tuple(one for one in names if one)
        if not known or len(known) < len(names):
            return None
        chunk = int(target.words[1]) * SECTOR_BYTES if target.kind == "striped" else None
        pieces.append((target.kind, known, target.length * SECTOR_BYTES, chunk))
    return _make_part(name, pieces)


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
    found: dict[tuple[str, frozenset[str], int | None], tuple[tuple[str, ...], int]] = {}
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
