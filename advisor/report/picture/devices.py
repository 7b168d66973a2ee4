"""Links and accelerators as blocks of the picture: alike ones together, stacked links below, bonds across nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence

import msgspec

from advisor.facts.block.block import Array
from advisor.facts.block.disks import Disk
from advisor.facts.network.links import Link
from advisor.facts.processors.pci import Accelerator
from advisor.report.devices import LinkRow, group_disks, pcie_shape, stack_links
from advisor.report.format import FOLD_FROM, merge_texts, natural, ranked, runs, text_shape
from advisor.report.picture.scene import (
    BELOW,
    Crossing,
    End,
    Look,
    PictureBlock,
    Place,
    Scene,
    Tile,
    Words,
    bound_blocks,
    by_key,
    first_names,
    home_place,
    known_nodes,
    link_state,
    lowest_arrays,
    node_words,
    own_runs,
    say,
)
from advisor.report.units import format_binary, format_decimal, times
from advisor.rules.block.drive_health import list_failures
from advisor.rules.queries import is_physical, links_above

_DETAILS = ("id", "mode", "remote", "group")
_KINDS = {"gpu": "GPU", "dpu": "DPU", "accelerator": "Accelerator", "quickassist": "QuickAssist"}


def link_blocks(scene: Scene, place: Place) -> tuple[PictureBlock, ...]:
    """Return the links of a panel, each after its carrier; not those that lie on several panels."""
    rows = stack_links(link for link in scene.facts.links if home_place(scene.link_places(link)) == place)
    # Rows in their order; four and more that differ only in their names, together at the first of them.
    groups = [
        part
        for group in by_key(rows, lambda row: _row_look(scene, row))
        for part in ([group] if len(group) >= FOLD_FROM else [[row] for row in group])
    ]
    order = {row.link.name: at for at, row in enumerate(rows)}
    groups.sort(key=lambda group: order[group[0].link.name])
    return bound_blocks(scene, [_rows_block(scene, group) for group in groups], 24)


def _row_look(scene: Scene, row: LinkRow) -> Hashable:
    """Return the traits of links that are drawn together: no address, no finding, no LLT, and nothing rests on them."""
    link = row.link
    if link.addresses or link.upper or link.default_route or scene.marked([link.name]) or _llt_tags(scene, [link.name]):
        return link.name
    same = (row.depth, link.kind, link.driver, link.speed_mbps, link.mtu, link.state, link.carrier, link.lower)
    return (*same, pcie_shape(link.pcie), *map(link.detail.get, _DETAILS[1:]))


def _rows_block(scene: Scene, rows: Sequence[LinkRow]) -> PictureBlock:
    link, is_many = rows[0].link, len(rows) > 1
    names = tuple(row.link.name for row in rows)
    state = link_state(link)
    is_slow = is_physical(link) and scene.is_slow(link.pcie)
    return scene.block(
        f"link:{link.name}",
        runs(names, scene.link_ranks) if is_many else link.name,
        names,
        f"{len(rows)} × {state}" if is_many else state,
        _link_lines(scene, link, is_many=is_many, is_slow=is_slow),
        depth=rows[0].depth,
        lanes=link.pcie.width if link.pcie else None,
        is_slow=is_slow,
        is_folded=is_many,
    )


def _link_lines(scene: Scene, link: Link, *, is_many: bool, is_slow: bool) -> Iterator[Words]:
    details = (f"{key} {link.detail[key]}" for key in _DETAILS[is_many:] if link.detail.get(key))
    kind = "" if link.kind in ("ethernet", "loopback") else " ".join([link.kind, *details])
    yield say(kind, link.driver, _mtu_words(link))
    yield say(*_llt_tags(scene, [link.name]))
    if len(scene.link_places(link)) > 1:
        yield say("rests on a link whose node is unknown, too", look="quiet")
    words = scene.pcie_words(link.pcie, is_real=is_physical(link))
    if words:
        yield say(words, BELOW, look="warning") if is_slow else say(words, look="quiet")
    yield say(scene.limit_words(link.pcie), look="quiet")
    if not is_many:
        far = [one for one in link.addresses if not one.startswith("fe80:") or len(link.addresses) == 1]
        yield say(*first_names(far, 3), "default route" if link.default_route else "", look="quiet")


def _mtu_words(link: Link) -> str:
    return f"MTU {link.mtu}" if link.mtu is not None else "MTU unknown"


def _llt_tags(scene: Scene, names: Iterable[str]) -> tuple[str, ...]:
    """Return LLT's own names of the links as one piece, if it has any."""
    wanted = frozenset(names)
    tags = [
        f"{one.tag} (low priority)" if one.low_priority else one.tag
        for one in (scene.facts.llt.links if scene.facts.llt else ())
        if one.link in wanted
    ]
    return (f"LLT {', '.join(tags)}",) if tags else ()


def link_crossings(scene: Scene) -> Iterator[Crossing]:
    """Return the lowest link of each stack that lies on several nodes, with the links on it; alike ones together."""
    across = {link.name: link for link in scene.facts.links if len(known_nodes(scene.link_places(link))) > 1}
    lowest = [link for link in across.values() if across.keys().isdisjoint(link.lower)]
    for group in by_key(lowest, lambda link: (link.kind, frozenset(scene.links.keys() & set(link.lower)))):
        first = group[0]
        nodes = known_nodes(scene.link_places(first))
        upper = [one.name for link in group for one in links_above(link.name, scene.links) if one not in group]
        names = tuple(dict.fromkeys([*(link.name for link in group), *upper]))
        known = sorted((name for name in first.lower if name in scene.links), key=natural)
        roots = {name: scene.link_places(scene.links[name]) for name in known}
        where = ("/".join(map(str, known_nodes(places))) or "unknown" for places in roots.values())
        mode = first.detail.get("mode")
        words = (
            f"{first.kind} over {', '.join(first_names([*roots], 6))} (nodes {', '.join(where)})",
            f"mode {mode}" if mode else "",
            _mtu_words(first),
            link_state(first),
            f"carries {', '.join(first_names(sorted(upper, key=natural), 6))}" if upper else "",
            *_llt_tags(scene, names),
        )
        title = f"{runs([link.name for link in group], ranked(names))} crosses {node_words(nodes)}"
        ends = tuple(End(place, f"link:{name}") for name, places in roots.items() for place in places)
        yield Crossing("link", title, tuple(filter(None, words)), names, nodes, ends, scene.marked(names))


def accelerator_blocks(scene: Scene, place: Place) -> tuple[PictureBlock, ...]:
    """Return the accelerators of a panel; cards of one model, driver and width are one block."""
    cards = [card for card in scene.facts.accelerators if scene.place(card.numa_node) == place]
    groups = by_key(cards, lambda card: (_card_title(card), card.driver, scene.pcie_words(card.pcie)))
    return bound_blocks(scene, [_card_block(scene, cards) for cards in groups], 8, "accelerator")


def _card_title(card: Accelerator) -> str:
    """Return ``GPU NVIDIA 10de:20b0``."""
    return " ".join(filter(None, (_KINDS[card.kind], card.vendor, card.ids)))


def _card_block(scene: Scene, cards: Sequence[Accelerator]) -> PictureBlock:
    card, addresses = cards[0], tuple(card.address for card in cards)
    is_slow, words = scene.is_slow(card.pcie), scene.pcie_words(card.pcie)
    return scene.block(
        f"accelerator:{card.address}",
        _card_title(card),
        addresses,
        f"{len(cards)} ×" if len(cards) > 1 else "",
        (
            say(card.driver or "no driver"),
            say(words, look="warning" if is_slow else "quiet"),
            say(*first_names(addresses, 4), look="quiet"),
        ),
        lanes=card.pcie.width if card.pcie else None,
        is_slow=is_slow,
        is_folded=len(addresses) > 4,
    )


# Drives and arrays as blocks of the picture: a grid of drives for each array, and arrays of arrays above theirs.

MAX_TILES = 24
_MAX_NAMED = 3
_POOR = frozenset({"degraded", "failed", "recovering", "inactive", "suspended"})


class DriveGroup(msgspec.Struct, frozen=True):
    """Drives of a panel that belong to the same arrays, or to none and are alike."""

    arrays: tuple[Array, ...]
    disks: tuple[Disk, ...]

    @property
    def key(self) -> str:
        return f"drives:{self.disks[0].name}"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(disk.name for disk in self.disks)

    @property
    def all_names(self) -> tuple[str, ...]:
        return (*(array.name for array in self.arrays), *self.names)

    def across(self, scene: Scene) -> list[Array]:
        return [array for array in scene.across if not frozenset(self.names).isdisjoint(array.disks)]


def groups_of(scene: Scene, place: Place) -> list[DriveGroup]:
    """Return the drives of a panel: those in arrays first, in the order of the arrays."""
    own = _own_disks(scene, place)
    held = by_key(
        (disk for disk in own if disk.name in scene.direct),
        lambda disk: tuple(array.device for array in scene.direct[disk.name]),
    )
    groups = [
        DriveGroup(scene.direct[disks[0].name], tuple(sorted(disks, key=lambda disk: (natural(disk.name), disk.name))))
        for disks in held
    ]
    groups.sort(key=lambda group: [(natural(array.name), array.name) for array in group.arrays])
    free = group_disks(disk for disk in own if disk.name not in scene.direct)
    return [*groups, *(DriveGroup((), disks) for disks in free)]


def _own_disks(scene: Scene, place: Place) -> list[Disk]:
    return [disk for disk in scene.facts.disks if scene.place(disk.numa_node) == place]


def _usual(scene: Scene, place: Place) -> tuple[tuple[str, ...], int]:
    """Return model, size and PCIe link that most drives of a panel have in common, and how many; none if few do."""
    counts = Counter(_likeness(scene, disk) for disk in _own_disks(scene, place))
    most, count = max(counts.items(), key=lambda item: item[1], default=((), 0))
    return (most, count) if count >= FOLD_FROM else ((), 0)


def usual_words(scene: Scene, place: Place) -> tuple[str, ...]:
    """Return the text above the drives about most of them."""
    like, count = _usual(scene, place)
    return (f"{count} × {like[0]}", *like[1:]) if like else ()


def _likeness(scene: Scene, disk: Disk) -> tuple[str, ...]:
    words = "" if scene.is_slow(disk.pcie) else scene.pcie_words(disk.pcie)
    return (_disk_words(disk), words) if words else (_disk_words(disk),)


def drive_blocks(scene: Scene, place: Place) -> tuple[PictureBlock, ...]:
    """Return the blocks of a panel: each array of arrays before those that it rests on here, then the rest."""
    near = {array.device for arrays in scene.direct.values() for array in arrays}
    upper = [
        array
        for array in scene.arrays
        if array.device not in near and home_place(scene.disk_places(array.disks)) == place
    ]
    # Those on the same drives together, the widest first.
    uppers = by_key(upper, lambda array: frozenset(array.disks))
    uppers.sort(key=lambda group: (-len(group[0].disks), natural(group[0].name)))
    blocks = _nest_blocks(scene, _usual(scene, place)[0], uppers, groups_of(scene, place), 0)
    lost = say("its drives are unknown", look="quiet")
    rest = [array for array in scene.facts.arrays if array not in scene.arrays] if place == scene.nowhere else []
    rest.sort(key=lambda array: (natural(array.name), array.name))
    blocks += [_upper_block(scene, [array], 0, lost) for array in rest]
    return bound_blocks(scene, blocks, 20, "drive group")


def _nest_blocks(
    scene: Scene, like: Sequence[str], uppers: Sequence[list[Array]], groups: Sequence[DriveGroup], depth: int
) -> list[PictureBlock]:
    """Return the blocks below the widest array of arrays, further in, and then the others."""
    if not uppers:
        # A block per group; from five alike arrays on, a block for all of them.
        blocks: list[PictureBlock] = []
        for alike in by_key(groups, lambda group: _group_kind(scene, group)):
            is_many = len(alike) >= 5
            blocks += [_fold_groups(scene, alike)] if is_many else [_group_block(scene, like, one) for one in alike]
        return [msgspec.structs.replace(block, depth=depth) for block in blocks]
    first, *others = uppers
    wide = {*first[0].disks}
    inner = [upper for upper in others if wide > {*upper[0].disks}]
    mine = [group for group in groups if group.arrays and wide.issuperset(group.names)]
    others = [upper for upper in others if upper not in inner]
    return [
        _upper_block(scene, first, depth),
        *_nest_blocks(scene, like, inner, mine, min(depth + 1, 3)),
        *_nest_blocks(scene, like, others, [group for group in groups if group not in mine], depth),
    ]


def _upper_block(scene: Scene, uppers: Sequence[Array], depth: int, *more: Words) -> PictureBlock:
    names = tuple(array.name for array in uppers)
    members = [*dict.fromkeys(member for array in uppers for member in array.members)]
    return scene.block(
        f"array:{uppers[0].device}",
        _array_title(uppers),
        names,
        _array_aside(uppers),
        (*_array_lines(scene, uppers), say(f"over {own_runs(members)}" if members else ""), *more),
        _array_look(uppers),
        depth=depth,
        arrays=uppers,
        is_folded=len(uppers) > _MAX_NAMED,
    )


def _group_kind(scene: Scene, group: DriveGroup) -> Hashable:
    if not group.arrays or any(array.failed or array.state in _POOR for array in group.arrays):
        return group.key
    first = group.disks[0]
    # Alike groups have the same findings, too, and lie across the same nodes.
    across = frozenset(known_nodes(scene.disk_places(array.disks)) for array in group.across(scene))
    # Each of many arrays has a mount point of its own: /data/ost0, /data/ost1.
    shapes = tuple(
        (array.manager, array.level, array.state, *map(text_shape, array.mountpoints)) for array in group.arrays
    )
    look = (len(group.disks), first.size_bytes, first.model, pcie_shape(first.pcie))
    return shapes, look, scene.marked([*group.all_names, *(array.device for array in group.arrays)]), across


def _fold_groups(scene: Scene, groups: Sequence[DriveGroup]) -> PictureBlock:
    arrays = [array for group in groups for array in group.arrays]
    names = tuple(dict.fromkeys(array.name for array in arrays))
    disks = [disk for group in groups for disk in group.disks]
    drives = [disk.name for disk in disks]
    across = groups[0].across(scene)
    is_slow = any(scene.is_slow(disk.pcie) for disk in disks)
    nodes = dict.fromkeys(node_words(known_nodes(scene.disk_places(array.disks))) for array in across)
    # Mount points at the same place of the same array of each group.
    points = [[point for array in group.arrays for point in array.mountpoints] for group in groups]
    return scene.block(
        groups[0].key,
        own_runs(names),
        (*names, *drives),
        f"{len(groups)} × {_array_words(arrays[0])}",
        (
            *(say(f"each crosses {words}", look="warning") for words in nodes),
            *(say(merge_texts(column)) for column in zip(*points, strict=True)),
            say(f"{times(len(groups[0].disks), 'drive')} each", f"{len(disks)} × {_disk_words(disks[0])}"),
            say(runs(drives, scene.disk_ranks), look="quiet"),
        ),
        "warning" if across else "",
        lanes=disks[0].pcie.width if disks[0].pcie else None,
        is_slow=is_slow,
        arrays=arrays,
        is_folded=True,
    )


def _group_block(scene: Scene, like: Sequence[str], group: DriveGroup) -> PictureBlock:
    arrays, disks = group.arrays, group.disks
    across = group.across(scene)
    is_slow = any(scene.is_slow(disk.pcie) for disk in disks)
    size = _size_words(disks[0])
    shown = disks if len(disks) <= MAX_TILES else disks[: MAX_TILES - 1]
    tiles = [_disk_tile(scene, arrays, disk) for disk in shown if arrays or len(disks) > 1]
    if len(disks) > len(shown):
        tiles.append(Tile(f"+ {len(disks) - len(shown)} more", look="quiet"))
    return scene.block(
        group.key,
        _array_title(arrays) if arrays else runs(group.names, scene.disk_ranks),
        group.all_names,
        _array_aside(arrays) if arrays else f"{len(disks)} × {size}" if len(disks) > 1 else size,
        _group_lines(scene, like, group, across),
        "warning" if across else _array_look(arrays),
        # The PCIe width of the first drive that reports it.
        lanes=next((disk.pcie.width for disk in disks if disk.pcie and disk.pcie.width), None),
        is_slow=is_slow,
        arrays=arrays,
        is_folded=len(disks) > MAX_TILES or len(arrays) > _MAX_NAMED,
        tiles=tiles,
    )


def _group_lines(scene: Scene, like: Sequence[str], group: DriveGroup, across: Sequence[Array]) -> Iterator[Words]:
    disks, arrays = group.disks, group.arrays
    for crossing in by_key(across, lambda array: known_nodes(scene.disk_places(array.disks))):
        names = [array.name for array in crossing]
        subject = "" if names == [array.name for array in arrays] else f"{own_runs(names)} "
        nodes = known_nodes(scene.disk_places(crossing[0].disks))
        yield say(f"{subject}crosses {node_words(nodes)}", look="warning")
    yield from _array_lines(scene, arrays)
    odd = [disk for disk in disks if _likeness(scene, disk)[:1] != like[:1]]
    devices = [name for disk in disks for name in (disk.name, *disk.partitions)]
    mounted = _mounted_words(scene, devices, [point for disk in disks for point in disk.mountpoints])
    if arrays:
        counts = Counter(map(_disk_words, odd))
        yield say(*first_names([f"{count} × {text}" for text, count in counts.items()], _MAX_NAMED), look="quiet")
        # How many of the drives of each array are here, unless all are.
        here = frozenset(group.names)
        parts = [(array.name, array.disks) for array in arrays if not here.issuperset(array.disks)][:_MAX_NAMED]
        texts = (f"{len(here & {*all_disks})} of {len(all_disks)} drives of {name} here" for name, all_disks in parts)
        yield say(*texts, look="quiet")
        yield say(*mounted)
    else:
        # The model only if it is not that of the others.
        first = disks[0]
        about = (first.model or first.kind, "rotational" if first.rotational else "") if odd else ()
        yield say(*about, first.detail.get("transport"), *mounted)
    unlike = [disk for disk in disks if odd or _likeness(scene, disk)[1:] != like[1:]]
    fine = [disk for disk in unlike if not scene.is_slow(disk.pcie)]
    alone = " each" if len({disk.pci for disk in fine}) == len(fine) > 1 else ""
    for text in dict.fromkeys(scene.pcie_words(disk.pcie) for disk in fine):
        yield say(text and text + alone, look="quiet")
    for alike in by_key((disk for disk in unlike if disk not in fine), lambda disk: scene.pcie_words(disk.pcie)):
        names = [disk.name for disk in alike]
        yield say(f"{own_runs(names)}: {scene.pcie_words(alike[0].pcie)}", BELOW, look="warning")
    for text in dict.fromkeys(scene.limit_words(disk.pcie) for disk in unlike):
        yield say(text, look="quiet")


def _size_words(disk: Disk) -> str:
    return format_decimal(disk.size_bytes) if disk.size_bytes is not None else "size unknown"


def _disk_words(disk: Disk) -> str:
    return f"{_size_words(disk)} {disk.model or disk.kind}" + (", rotational" if disk.rotational else "")


def _array_title(arrays: Sequence[Array]) -> str:
    names = [array.name for array in arrays]
    shown = own_runs(names) if len(names) >= FOLD_FROM else ", ".join(names)
    return shown if len(names) <= _MAX_NAMED else f"{len(names)} volumes: {shown}"


def _array_words(array: Array, *, is_sized: bool = False) -> str:
    size = format_decimal(array.size_bytes) if is_sized and array.size_bytes is not None else ""
    return " ".join(filter(None, (array.level or array.manager, size, array.state or "state unknown")))


def _array_aside(arrays: Sequence[Array]) -> str:
    levels = {_array_words(array, is_sized=len(arrays) == 1) for array in arrays}
    return levels.pop() if len({_array_words(array) for array in arrays}) == 1 else f"{len(arrays)} arrays"


def _array_look(arrays: Iterable[Array]) -> Look:
    return "warning" if any(array.state in _POOR for array in arrays) else ""


def _array_lines(scene: Scene, arrays: Sequence[Array]) -> Iterator[Words]:
    for array in arrays[:_MAX_NAMED]:
        yield say(
            f"{array.name} {_array_words(array, is_sized=True)}" if len(arrays) > 1 else "",
            *_mounted_words(scene, [array.device], array.mountpoints),
            f"chunk {format_binary(array.chunk_bytes)}" if array.chunk_bytes else "",
            f"{array.missing} missing" if array.missing else "",
            f"{array.progress_percent:g} % done" if array.progress_percent is not None else "",
        )


def _mounted_words(scene: Scene, devices: Sequence[str], mountpoints: Sequence[str]) -> tuple[str, ...]:
    """Return the mount points of some devices, with the kind of file system if it is known."""
    mounted = [filesystem for filesystem in scene.facts.filesystems if filesystem.device in {*devices}]
    kinds = {point: filesystem.kind for filesystem in mounted for point in filesystem.mountpoints}
    points = dict.fromkeys([*mountpoints, *kinds])
    return first_names([f"{point} ({kinds[point]})" if point in kinds else point for point in points], _MAX_NAMED)


def _disk_tile(scene: Scene, arrays: Sequence[Array], disk: Disk) -> Tile:
    own = {disk.name, *disk.partitions}
    for state, kind in (("failed", "failed"), ("spare", "spares"), ("journal", "journal")):
        if any(not own.isdisjoint(getattr(array, kind)) for array in arrays):
            return Tile(disk.name, state, "warning" if state == "failed" else "quiet")
    if disk.detail.get("state") in ("offline", "transport-offline", "dead"):
        return Tile(disk.name, disk.detail["state"], "warning")
    if disk.health is not None and list_failures(disk.health):
        return Tile(disk.name, "failing", "warning")
    if disk.pcie is not None and scene.is_slow(disk.pcie):
        narrow = (disk.pcie.width or 0) < (disk.pcie.width_max or 0)
        return Tile(disk.name, f"x{disk.pcie.width} of x{disk.pcie.width_max}" if narrow else "slow", "warning")
    return Tile(disk.name)


def array_crossings(scene: Scene) -> Iterator[Crossing]:
    """Return the arrays whose drives are on several nodes; those on the same drives together, named by the lowest."""
    for arrays in by_key(scene.across, lambda array: frozenset(array.disks)):
        base = list(lowest_arrays(arrays) or arrays)
        first, upper = base[0], [array.name for array in arrays if array not in base]
        shown = [array.name for array in base]
        places = scene.disk_places(first.disks)
        nodes = known_nodes(places)
        ends = tuple(
            End(place, group.key)
            for place in places
            for group in groups_of(scene, place)
            if not {*group.names}.isdisjoint(first.disks)
        )
        here = (
            (node, [name for name in first.disks if name in scene.disks and scene.disks[name].numa_node == node])
            for node in nodes
        )
        words = (
            f"{first.manager} {first.level or 'of unknown level'} {first.state or 'state unknown'}",
            *(f"on node {node}: {runs(names, scene.disk_ranks)}" for node, names in here),
            *([f"carries {', '.join(first_names(upper, 4))}"] if upper else []),
        )
        marks = scene.marked([*shown, *upper, *(array.device for array in arrays)])
        title = f"{own_runs(shown)} {'crosses' if len(shown) == 1 else 'cross'} {node_words(nodes)}"
        yield Crossing("array", title, words, (*shown, *upper), nodes, ends, marks)
