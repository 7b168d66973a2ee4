"""Drives and arrays as blocks of the picture: a grid of drives for each array, and arrays of arrays above theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from advisor.facts.array import Array
from advisor.facts.disks import Disk
from advisor.facts.host_facts import Facts
from advisor.report.devices import group_disks, pcie_shape
from advisor.report.folding import FOLD_FROM, merge_texts, text_shape
from advisor.report.format import natural, ranked, runs
from advisor.report.picture.arrays import Stacking
from advisor.report.picture.links import bound_blocks
from advisor.report.picture.places import PictureFacts, home_place, known_nodes
from advisor.report.picture.records import UNKNOWN_KEY, Look, PictureBlock, Place, Tile, Words
from advisor.report.picture.wording import BELOW, first_names, is_below, limit_words, node_words, pcie_words
from advisor.report.units import format_binary, format_decimal, times
from advisor.rules.drive_health import list_failures

MAX_TILES: Final = 24
MAX_BLOCKS: Final = 20
_MAX_NAMED: Final = 3
_MAX_DEPTH: Final = 3
_FOLD_ARRAYS_FROM: Final = 5
_POOR: Final = frozenset({"degraded", "failed", "recovering", "inactive", "suspended"})


class DriveGroup(msgspec.Struct, frozen=True):
    """Drives of one panel that belong to the same arrays, or to none and are alike."""

    arrays: tuple[Array, ...]
    disks: tuple[Disk, ...]

    @property
    def key(self) -> str:
        return f"drives:{self.disks[0].name}"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(disk.name for disk in self.disks)


class View(msgspec.Struct, frozen=True):
    """One panel: what is around it, how arrays lie on drives, and what most of its drives have in common."""

    around: PictureFacts
    stack: Stacking
    like: tuple[str, ...]


def groups_of(around: PictureFacts, stack: Stacking, place: Place) -> tuple[DriveGroup, ...]:
    """The drives of a panel: those in arrays first, in the order of the arrays."""
    own = [disk for disk in around.facts.disks if around.place(disk.numa_node) == place]
    by_arrays: dict[tuple[str, ...], list[Disk]] = {}
    arrays: dict[tuple[str, ...], tuple[Array, ...]] = {}
    for disk in own:
        found = stack.direct.get(disk.name, ())
        key = tuple(array.device for array in found)
        arrays[key] = found
        by_arrays.setdefault(key, []).append(disk)
    free = group_disks(by_arrays.pop((), []))
    held = sorted(by_arrays, key=lambda key: [(natural(array.name), array.name) for array in arrays[key]])
    return (
        *(
            DriveGroup(arrays[key], tuple(sorted(by_arrays[key], key=lambda disk: (natural(disk.name), disk.name))))
            for key in held
        ),
        *(DriveGroup((), disks) for disks in free),
    )


def usual(around: PictureFacts, place: Place) -> tuple[str, ...]:
    """Model, size and PCIe link that most drives of a panel have in common, printed once; empty where few do."""
    own = [disk for disk in around.facts.disks if around.place(disk.numa_node) == place]
    counts = Counter(_disk_likeness(around, disk) for disk in own)
    most, count = counts.most_common(1)[0] if counts else ((), 0)
    return most if count >= FOLD_FROM else ()


def usual_words(around: PictureFacts, place: Place) -> tuple[str, ...]:
    """The same as what stands above the drives."""
    own = [disk for disk in around.facts.disks if around.place(disk.numa_node) == place]
    like = usual(around, place)
    count = sum(_disk_likeness(around, disk) == like for disk in own)
    return (f"{count} × {like[0]}", *like[1:]) if like else ()


def _disk_likeness(around: PictureFacts, disk: Disk) -> tuple[str, ...]:
    words = "" if around.is_real and is_below(disk.pcie) else pcie_words(disk.pcie, real=around.is_real)
    return (_disk_words(disk), *([words] if words else []))


def drive_blocks(around: PictureFacts, stack: Stacking, place: Place) -> tuple[PictureBlock, ...]:
    """The blocks of a panel: each array of arrays before what it rests on here, then the rest."""
    groups = groups_of(around, stack, place)
    uppers = _upper_arrays(around, stack, place)
    blocks = _nest_blocks(View(around, stack, usual(around, place)), uppers, groups, 0)
    if place == (UNKNOWN_KEY if around.only is None else around.only):
        for array in stack.diskless:
            block = _upper_block(around, [array], 0)
            blocks.append(
                msgspec.structs.replace(block, lines=(*block.lines, Words(("its drives are unknown",), "quiet")))
            )
    return bound_blocks(around, blocks, MAX_BLOCKS, "drive group")


def _upper_arrays(around: PictureFacts, stack: Stacking, place: Place) -> list[list[Array]]:
    """Arrays of arrays that belong to this panel, the widest first; those on the same drives together."""
    groups: dict[frozenset[str], list[Array]] = {}
    for array in stack.upper:
        if home_place(around.disk_places(array.disks)) == place:
            groups.setdefault(frozenset(array.disks), []).append(array)
    return sorted(groups.values(), key=lambda group: (-len(group[0].disks), natural(group[0].name)))


def _nest_blocks(
    view: View, uppers: Sequence[list[Array]], groups: Sequence[DriveGroup], depth: int
) -> list[PictureBlock]:
    """What lies below the widest array of arrays, further in than it, and then what does not."""
    if not uppers:
        # A block per group; from five alike arrays on, one for all of them.
        kinds: dict[Hashable, list[DriveGroup]] = {}
        for group in groups:
            kinds.setdefault(_group_kind(view, group), []).append(group)
        found: list[PictureBlock] = []
        for some_groups in kinds.values():
            if len(some_groups) < _FOLD_ARRAYS_FROM:
                found += [_group_block(view, group) for group in some_groups]
            else:
                found.append(_fold_groups(view, some_groups))
        blocks = found
        return [msgspec.structs.replace(block, depth=depth) for block in blocks]
    first, *others = uppers
    inner = [upper for upper in others if frozenset(upper[0].disks) < frozenset(first[0].disks)]
    mine = [group for group in groups if (bool(group.arrays) and frozenset(group.names) <= frozenset(first[0].disks))]
    return [
        _upper_block(view.around, first, depth),
        *_nest_blocks(view, inner, mine, min(depth + 1, _MAX_DEPTH)),
        *_nest_blocks(
            view,
            [upper for upper in others if upper not in inner],
            [group for group in groups if group not in mine],
            depth,
        ),
    ]


def _upper_block(around: PictureFacts, uppers: Sequence[Array], depth: int) -> PictureBlock:
    names = tuple(array.name for array in uppers)
    members = tuple(dict.fromkeys(member for array in uppers for member in array.members))
    over = Words((f"over {runs(members, ranked(members))}",)) if members else Words(())
    return PictureBlock(
        key=f"array:{uppers[0].device}",
        title=_array_title(uppers),
        names=names,
        aside=_array_aside(uppers),
        lines=tuple(line for line in (*_array_lines(around.facts, uppers), over) if line.pieces),
        look=_array_look(uppers),
        depth=depth,
        marks=around.marked([*names, *(array.device for array in uppers)]),
        folded=len(uppers) > _MAX_NAMED,
    )


def _group_kind(view: View, group: DriveGroup) -> Hashable:
    if not group.arrays or any(array.failed or array.state in _POOR for array in group.arrays):
        return group.key
    around, first = view.around, group.disks[0]
    # Alike is what has the same findings, too, and lies across the same nodes.
    marks = around.marked([*group.names, *(name for one in group.arrays for name in (one.name, one.device))])
    across = {known_nodes(around.disk_places(array.disks)) for array in view.stack.across_on(group.names)}
    # Each of many arrays has a mount point of its own: /data/ost0, /data/ost1.
    shapes = tuple(
        (array.manager, array.level, array.state, tuple(map(text_shape, array.mountpoints))) for array in group.arrays
    )
    return shapes, len(group.disks), first.size_bytes, first.model, pcie_shape(first.pcie), marks, frozenset(across)


def _fold_groups(view: View, groups: Sequence[DriveGroup]) -> PictureBlock:
    around = view.around
    arrays = [array for group in groups for array in group.arrays]
    names = tuple(dict.fromkeys(array.name for array in arrays))
    disks = tuple(disk for group in groups for disk in group.disks)
    first = arrays[0]
    across = view.stack.across_on(groups[0].names)
    low = any(around.is_real and is_below(disk.pcie) for disk in disks)
    nodes = dict.fromkeys(node_words(known_nodes(around.disk_places(array.disks))) for array in across)
    return PictureBlock(
        key=groups[0].key,
        title=runs(names, ranked(names)),
        names=(*names, *(disk.name for disk in disks)),
        aside=f"{len(groups)} × {_array_level(first)} {first.state or 'state unknown'}",
        lines=(
            *(Words((f"each crosses {words}",), "warn") for words in nodes),
            *(Words((merge_texts(points),)) for points in _mounted_alike(groups)),
            Words((f"{times(len(groups[0].disks), 'drive')} each", f"{len(disks)} × {_disk_words(disks[0])}")),
            Words((runs([disk.name for disk in disks], around.disk_ranks),), "quiet"),
        ),
        look="warn" if across or low else "",
        lanes=disks[0].pcie.width if disks[0].pcie else None,
        is_below=low,
        marks=around.marked([*names, *(array.device for array in arrays), *(disk.name for disk in disks)]),
        folded=True,
    )


def _mounted_alike(groups: Sequence[DriveGroup]) -> list[list[str]]:
    """The mount points of groups that are alike: each list has those at one place of one of their arrays."""
    points = [[point for array in group.arrays for point in array.mountpoints] for group in groups]
    return [list(column) for column in zip(*points, strict=True)]


def _group_block(view: View, group: DriveGroup) -> PictureBlock:
    around = view.around
    arrays, disks = group.arrays, group.disks
    names = tuple(array.name for array in arrays)
    across = view.stack.across_on(group.names)
    low = [disk for disk in disks if around.is_real and is_below(disk.pcie)]
    look: Look = "warn" if across or low else _array_look(arrays)
    tiles = () if len(disks) == 1 and not arrays else _group_tiles(around, group)
    # The PCIe width of the first drive that reports it.
    return PictureBlock(
        key=group.key,
        title=_array_title(arrays) if arrays else runs([disk.name for disk in disks], around.disk_ranks),
        names=(*names, *group.names),
        aside=_array_aside(arrays) if arrays else _count_words(disks),
        lines=tuple(line for line in _group_lines(view, group, across) if line.pieces),
        tiles=tiles,
        look=look,
        lanes=next((disk.pcie.width for disk in disks if disk.pcie and disk.pcie.width), None),
        is_below=bool(low),
        marks=around.marked([*names, *(array.device for array in arrays), *group.names]),
        folded=len(disks) > MAX_TILES or len(arrays) > _MAX_NAMED,
    )


def _group_lines(view: View, group: DriveGroup, across: Sequence[Array]) -> Iterator[Words]:
    around, like, disks, real = view.around, view.like, group.disks, view.around.is_real
    for nodes in dict.fromkeys(known_nodes(around.disk_places(array.disks)) for array in across):
        names = [array.name for array in across if known_nodes(around.disk_places(array.disks)) == nodes]
        is_alone = names == [array.name for array in group.arrays]
        yield Words((f"{'' if is_alone else runs(names, ranked(names)) + ' '}crosses {node_words(nodes)}",), "warn")
    yield from _array_lines(around.facts, group.arrays)
    odd = [disk for disk in disks if _disk_likeness(around, disk)[:1] != like[:1]]
    if group.arrays:
        counts: dict[str, int] = {}
        for disk in odd:
            counts[_disk_words(disk)] = counts.get(_disk_words(disk), 0) + 1
        yield Words(first_names([f"{count} × {words}" for words, count in counts.items()], _MAX_NAMED), "quiet")
        # How many of the drives of each array are here, where that is not all of them.
        here = frozenset(group.names)
        parts = [array for array in group.arrays if not frozenset(array.disks) <= here]
        yield Words(
            tuple(
                f"{len(here & set(array.disks))} of {len(array.disks)} drives of {array.name} here"
                for array in parts[:_MAX_NAMED]
            ),
            "quiet",
        )
        yield Words(_mount_words(around.facts, disks))
    else:
        yield Words((*_about(disks[0], is_odd=bool(odd)), *_mount_words(around.facts, disks)))
    unlike = [disk for disk in disks if _disk_likeness(around, disk)[1:] != like[1:] or odd]
    low = [disk for disk in unlike if real and is_below(disk.pcie)]
    fine = [disk for disk in unlike if disk not in low]
    alone = " each" if len({disk.pci for disk in fine}) == len(fine) > 1 else ""
    for words in dict.fromkeys(pcie_words(disk.pcie, real=real) for disk in fine):
        yield Words((words + alone,) if words else (), "quiet")
    for words in dict.fromkeys(pcie_words(disk.pcie, real=real) for disk in low):
        names = [disk.name for disk in low if pcie_words(disk.pcie, real=real) == words]
        yield Words((f"{runs(names, ranked(names))}: {words}", BELOW), "warn")
    for limit in dict.fromkeys(limit_words(disk.pcie, real=real) for disk in unlike):
        yield Words((limit,) if limit else (), "quiet")


def _about(disk: Disk, *, is_odd: bool) -> tuple[str, ...]:
    """What a drive outside arrays is; the model only where it is not that of the others."""
    model = disk.model or disk.kind
    transport = disk.detail.get("transport")
    return (
        *([model] if is_odd else []),
        *(["rotational"] if disk.rotational and is_odd else []),
        *([transport] if transport else []),
    )


def _disk_words(disk: Disk) -> str:
    size = format_decimal(disk.size_bytes) if disk.size_bytes is not None else "size unknown"
    return f"{size} {disk.model or disk.kind}" + (", rotational" if disk.rotational else "")


def _count_words(disks: Sequence[Disk]) -> str:
    size = disks[0].size_bytes
    words = format_decimal(size) if size is not None else "size unknown"
    return f"{len(disks)} × {words}" if len(disks) > 1 else words


def _array_title(arrays: Sequence[Array]) -> str:
    names = [array.name for array in arrays]
    shown = runs(names, ranked(names)) if len(names) >= FOLD_FROM else ", ".join(names)
    return shown if len(names) <= _MAX_NAMED else f"{len(names)} volumes: {shown}"


def _array_aside(arrays: Sequence[Array]) -> str:
    if len(arrays) == 1 and arrays[0].size_bytes is not None:
        return f"{_array_level(arrays[0])} {format_decimal(arrays[0].size_bytes)} {arrays[0].state or 'state unknown'}"
    levels = dict.fromkeys(f"{_array_level(array)} {array.state or 'state unknown'}" for array in arrays)
    return next(iter(levels)) if len(levels) == 1 else f"{len(arrays)} arrays"


def _array_level(array: Array) -> str:
    return array.level or array.manager


def _array_look(arrays: Iterable[Array]) -> Look:
    return "warn" if any(array.state in _POOR for array in arrays) else ""


def _array_lines(facts: Facts, arrays: Sequence[Array]) -> Iterator[Words]:
    for array in arrays[:_MAX_NAMED]:
        pieces = []
        if len(arrays) > 1:
            size = "" if array.size_bytes is None else f" {format_decimal(array.size_bytes)}"
            pieces.append(f"{array.name} {_array_level(array)}{size} {array.state or 'state unknown'}")
        pieces += _mounted_words(facts, [array.device], array.mountpoints)
        pieces += [f"chunk {format_binary(array.chunk_bytes)}"] if array.chunk_bytes else []
        pieces += [f"{array.missing} missing"] if array.missing else []
        pieces += [f"{array.progress_percent:g} % done"] if array.progress_percent is not None else []
        yield Words(tuple(pieces))


def _mount_words(facts: Facts, disks: Sequence[Disk]) -> tuple[str, ...]:
    devices = [name for disk in disks for name in (disk.name, *disk.partitions)]
    return _mounted_words(facts, devices, tuple(point for disk in disks for point in disk.mountpoints))


def _mounted_words(facts: Facts, devices: Iterable[str], mountpoints: Sequence[str]) -> tuple[str, ...]:
    """What is mounted from some devices, with the kind of file system where it is known."""
    wanted = frozenset(devices)
    kinds = {point: one.kind for one in facts.filesystems if one.device in wanted for point in one.mountpoints}
    points = dict.fromkeys([*mountpoints, *kinds])
    return first_names([f"{point} ({kinds[point]})" if point in kinds else point for point in points], _MAX_NAMED)


def _group_tiles(around: PictureFacts, group: DriveGroup) -> tuple[Tile, ...]:
    shown = group.disks if len(group.disks) <= MAX_TILES else group.disks[: MAX_TILES - 1]
    rest = len(group.disks) - len(shown)
    tiles = [_disk_tile(around, group.arrays, disk) for disk in shown]
    return (*tiles, *([Tile(f"+ {rest} more", look="quiet")] if rest else []))


def _disk_tile(around: PictureFacts, arrays: Sequence[Array], disk: Disk) -> Tile:
    own = frozenset((disk.name, *disk.partitions))
    for state, of in (("failed", "failed"), ("spare", "spares"), ("journal", "journal")):
        if any(own.intersection(getattr(array, of)) for array in arrays):
            return Tile(disk.name, state, "warn" if state == "failed" else "quiet")
    if disk.detail.get("state") in ("offline", "transport-offline", "dead"):
        return Tile(disk.name, disk.detail["state"], "warn")
    if disk.health is not None and list_failures(disk.health):
        return Tile(disk.name, "failing", "warn")
    if around.is_real and is_below(disk.pcie) and disk.pcie is not None:
        narrow = (disk.pcie.width or 0) < (disk.pcie.width_max or 0)
        return Tile(disk.name, f"x{disk.pcie.width} of x{disk.pcie.width_max}" if narrow else "slow", "warn")
    return Tile(disk.name)
