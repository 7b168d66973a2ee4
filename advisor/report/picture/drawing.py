"""Where everything of the picture goes: panels in columns of like height, and below them all that crosses nodes.

Lines run in the gutters right of the panels and in the strip below them, so that none runs through a panel or a word.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

import msgspec

from advisor.report.html import (
    LONGEST_WHOLE,
    SMALL,
    Anchor,
    Badge,
    Box,
    Label,
    Line,
    Mark,
    Picture,
    Shape,
    cut_text,
    flow_pieces,
    is_bold,
    text_width,
)
from advisor.report.picture.scene import (
    CeilingPicture,
    Chip,
    Crossing,
    HostPicture,
    Look,
    Panel,
    PictureBlock,
    PictureNote,
    PictureSection,
    Place,
    Tile,
    Words,
)

TITLE_SIZE = 12.0
LINE = 14.0
INSET = 8.0
STEP = 12.0
"""How much further in stands a block that rests on another."""

CHIP_HEIGHT = 48.0
PAD = 10.0
SPINE = 16.0
"""Room left of the blocks for the wires that lead to them."""

LANE = 7.0
GUTTER = 14.0
NOTES_WIDTH = 300.0
WIDE = 700.0
"""Pixels from which a drawing has no room for the findings at its right."""
MOST_EMPTY = 120.0
"""Pixels by which a column may be shorter than the tallest one beside it."""
_LEAST_WIDTH = 290.0
_LEAST_BLOCK = 260.0
_GAP = 8.0
_TILE_GAP = 4.0
_MAX_BADGES = 3
_MAX_NOTES = 24


class Sheet(msgspec.Struct, frozen=True):
    """How wide a drawing may be, in pixels. ``whole`` adds the host's name, the findings and what the lines mean, for a
    file that stands alone; the findings are to the right of a narrow one."""

    name: str
    width: float
    whole: bool = False


class _Column(msgspec.Struct, frozen=True):
    x: float
    width: float
    panels: Sequence[Panel]
    lanes: Mapping[int, float]
    """Where the line of each crossing runs, by the crossing's place in the list."""


def write_legend(picture: HostPicture) -> Words:
    """Return what the signs mean that this picture has."""
    is_wired = any(block.lanes for panel in picture.panels for block in panel.blocks)
    texts = (
        is_wired and "Wires from the CPUs are PCIe links: the thicker, the more lanes; dashed: below maximum.",
        picture.crossings and "A line outside the nodes, next to its name, leads from one node to another.",
        picture.notes and "A number in a circle is that of a finding.",
    )
    return Words(tuple(text for text in texts if isinstance(text, str)), "quiet")


def share_out(heights: Sequence[float], count: int) -> list[list[int]]:
    """Return which items stand in each of ``count`` columns: each below the shortest column before it."""
    columns: list[list[int]] = [[] for _ in range(count)]
    for at in range(len(heights)):
        min(columns, key=lambda column: sum(heights[other] for other in column)).append(at)
    return columns


def _columns_from(heights: Sequence[float], apart: int, count: int) -> list[list[int]]:
    """Return items in their order in at most ``count`` columns, the tallest as short as it can be; those from ``apart``
    on are in the last column."""
    limit = max(sum(heights) / count, *heights)
    while True:
        columns: list[list[int]] = [[]]
        for at, height in enumerate(heights):
            if at == apart:
                columns += [[] for _ in range(len(columns), count)]
            elif columns[-1] and sum(heights[other] for other in columns[-1]) + height > limit:
                columns.append([])
            columns[-1].append(at)
        if len(columns) <= count and _tallest(heights, columns) <= limit:
            return columns
        limit += LINE


def _tallest(heights: Sequence[float], columns: Sequence[Sequence[int]]) -> float:
    return max(sum(heights[at] for at in column) for column in columns)


def draw_sheet(picture: HostPicture, sheet: Sheet) -> Picture:
    """Draw all. Same picture and sheet, same drawing."""
    columns = min(_list_columns(picture, sheet), key=lambda columns: max(map(partial(_height, picture), columns)))
    last = columns[-1]
    width = max(last.x + last.width, *last.lanes.values(), 0) + (LANE if last.lanes else 2)
    notes = picture.notes if sheet.whole else ()
    on_right = bool(notes) and sheet.width < WIDE
    total = width + (GUTTER + NOTES_WIDTH if on_right else 0)
    canvas = _Canvas(picture)
    top = bottom = canvas.heading(picture, total - 2) if sheet.whole else 1.0
    for column in columns:
        y = top
        for panel in column.panels:
            y += canvas.panel(panel, column.x, y, column.width) + GUTTER
        bottom = max(bottom, y - GUTTER)
    y = canvas.crossings(picture, columns, bottom)
    for words in picture.loose:
        y = canvas.paragraph(words, y + 6, width - 2)
    if picture.ceiling:
        y = canvas.ceiling(picture.ceiling, width - 2, y + 14)
    if on_right:
        y = max(y, canvas.notes(notes, width + GUTTER, top, NOTES_WIDTH - 2))
    elif notes:
        y = canvas.notes(notes, 1.0, y + 14, width - 2)
    if sheet.whole:
        y = canvas.paragraph(write_legend(picture), y + 12, total - 2)
    return Picture(sheet.name, y + 4, tuple(canvas), width=total, margin=14 if sheet.whole else 0)


def _height(picture: HostPicture, column: _Column) -> float:
    return sum(_Canvas(picture).panel(panel, 0, 0, column.width) + GUTTER for panel in column.panels)


def _list_columns(picture: HostPicture, sheet: Sheet) -> Iterator[list[_Column]]:
    """Yield ways to arrange the panels in columns of like height, the last in one column."""
    for count in range(max(1, min(len(picture.panels), int(sheet.width // _LEAST_WIDTH))), 0, -1):
        width = sheet.width / count - GUTTER
        heights = [_Canvas(picture).panel(panel, 0, 0, width) + GUTTER for panel in picture.panels]
        places = share_out(heights, count)
        columns = _make_columns(picture, sheet, [[picture.panels[at] for at in column] for column in places])
        tall = [_height(picture, column) for column in columns]
        if count == 1 or max(tall) - min(tall) <= MOST_EMPTY:
            yield columns


def _make_columns(picture: HostPicture, sheet: Sheet, panels: Sequence[Sequence[Panel]]) -> list[_Column]:
    """Return columns with as much room right of each as its lines take."""
    used: list[list[int]] = []
    for column in panels:
        places = {panel.place for panel in column}
        used.append([at for at, one in enumerate(picture.crossings) if any(end.place in places for end in one.ends)])
    gutters = [GUTTER + LANE * len(lanes) for lanes in used]
    width = (sheet.width - sum(gutters) + (0 if used[-1] else GUTTER - 3)) / len(panels)
    columns: list[_Column] = []
    x = 1.0
    for inside, gutter, lanes in zip(panels, gutters, used, strict=True):
        lane_of = {number: x + width + GUTTER / 2 + LANE * at for at, number in enumerate(lanes)}
        columns.append(_Column(x, width, inside, lane_of))
        x += width + gutter
    return columns


def _split_section(section: PictureSection) -> Iterator[PictureSection]:
    """Yield each block with those that rest on it as a section; what is true of all is with the first."""
    begins = [at for at, block in enumerate(section.blocks) if not at or not block.depth]
    for begin, end in pairwise((*begins, len(section.blocks))):
        note = () if begin else section.note
        yield msgspec.structs.replace(section, blocks=section.blocks[begin:end], note=note)


def _css_class(kind: str, look: Look, load: int) -> str:
    return " ".join(filter(None, (kind, look, f"load{load}" if load else "")))


def _badges_width(marks: Sequence[int]) -> float:
    widths = sum(Badge(0, 0, mark).width + 2 for mark in marks[:_MAX_BADGES])
    return widths + (32 if len(marks) > _MAX_BADGES else 2) if marks else 0.0


class _Canvas(list[Shape]):
    """Shapes in drawing order. A method draws a part from ``y`` on and returns where it ends."""

    def __init__(self, picture: HostPicture) -> None:
        self.picture = picture
        self.hooks: list[Line] = []
        """Where the PCIe link of a block arrives."""

    def write(
        self, x: float, y: float, text: str, room: float, look: str = "", size: float = SMALL, anchor: Anchor = "start"
    ) -> float:
        """Add a text, cut short to ``room`` pixels with all of it as its title; return its width."""
        measure = partial(text_width, size=size, bold=is_bold(look))
        short = cut_text(text, room, measure)
        whole = text[:LONGEST_WHOLE] if short.endswith("…") and short != text else ""
        self.append(Label(x, y, short, anchor, look, size, room, whole))
        return measure(short)

    def flow(
        self,
        x: float,
        y: float,
        pieces: Iterable[str],
        room: float,
        look: str = "",
        size: float = SMALL,
        between: str = " · ",
        *,
        up: float = 3,
        step: float = LINE,
    ) -> float:
        """Add pieces in as few lines as hold them, ``up`` above where each line ends."""
        for line in flow_pieces(pieces, room, between, partial(text_width, size=size, bold=is_bold(look))):
            y += step
            self.write(x, y - up, line, room, look, size)
        return y

    def paragraph(self, words: Words, y: float, room: float) -> float:
        return self.flow(1, y, words.pieces, room, words.look, between=" ")

    def badges(self, marks: Sequence[int], x: float, y: float) -> None:
        """Add the numbers of the first findings in a row, and how many more there are."""
        for number in marks[:_MAX_BADGES]:
            self.append(Badge(x, y, number, f"badge {self.picture.look((number,))}"))
            x += Badge(x, y, number).width + 2
        if len(marks) > _MAX_BADGES:
            self.write(x, y + 4, f"+{len(marks) - _MAX_BADGES}", 28, "quiet")

    def heading(self, picture: HostPicture, room: float) -> float:
        self.write(1, 20, picture.title, room, "strong", 18)
        y = self.flow(1, 26, picture.about, room, "quiet", up=0)
        if not picture.notes:
            y += LINE
            self.write(1, y, picture.summary, room)
        return y + 14

    def panel(self, panel: Panel, x: float, y: float, width: float) -> float:
        """Add a panel; return its height. Where it has room its blocks stand in several columns."""
        begin = len(self)
        room = width - 2 * PAD
        rest = room - self.write(x + PAD, y + 20, panel.title, room, "strong", 15) - 8
        if panel.note and rest >= 40:
            self.write(x + width - PAD, y + 20, panel.note, rest, "quiet", anchor="end")
        top = y + 30
        if panel.chips:
            # The first is the wider one: lists of CPUs are long.
            left = x + PAD
            for chip, share in zip(panel.chips, (0.56, 0.44), strict=False):
                self.chip(chip, left, top, share * (room - _GAP))
                left += share * (room - _GAP) + _GAP
            top += CHIP_HEIGHT + _GAP
        bottom = top
        halves = self._share_blocks(panel, room)
        room = (room - _GAP * (len(halves) - 1)) / len(halves)
        for at, sections in enumerate(halves):
            left, start = x + PAD + (room + _GAP) * at, len(self)
            bottom = max(bottom, self.sections(sections, panel.place, left, top, room))
            self[start:start] = self.wires(left + 5, top - _GAP, x + PAD + 5) if panel.chips else []
            self.hooks.clear()
        height = bottom + PAD - y
        self.insert(begin, Box(x, y, width, height, "panel", f"{panel.place}|", 6))
        return height

    def _share_blocks(self, panel: Panel, room: float) -> list[list[PictureSection]]:
        """Return the blocks of a panel, each with all that rests on it, in columns of like height. Those that a line
        leaves are in the last column, at whose right the lines run."""
        left = {end.block for crossing in self.picture.crossings for end in crossing.ends if end.place == panel.place}
        units = [unit for section in panel.sections for unit in _split_section(section)]
        units.sort(key=lambda unit: not left.isdisjoint(block.key for block in unit.blocks))
        apart = sum(left.isdisjoint(block.key for block in unit.blocks) for unit in units)
        for count in range(min(int((room + _GAP) // _LEAST_BLOCK), len(units)), 1, -1):
            width = (room - _GAP * (count - 1)) / count
            heights = [_Canvas(self.picture).sections([unit], panel.place, 0, 0, width) for unit in units]
            columns = _columns_from(heights, apart, count)
            tall = [sum(heights[at] for at in column) for column in columns]
            if len(columns) == count and max(tall) - min(tall) <= MOST_EMPTY:
                return [[units[at] for at in column] for column in columns]
        return [[*panel.sections]]

    def chip(self, chip: Chip, x: float, y: float, width: float) -> None:
        room = width - 2 * INSET
        self.append(Box(x, y, width, CHIP_HEIGHT, _css_class("chip", chip.look, chip.load), "", 4))
        self.write(x + INSET, y + 14, chip.label, room, "quiet", 10)
        self.write(x + INSET, y + 28, chip.value, room, f"strong {chip.look}".rstrip(), TITLE_SIZE)
        if chip.note:
            self.write(x + INSET, y + 42, chip.note, room, "quiet")

    def sections(self, sections: Iterable[PictureSection], place: Place, x: float, y: float, width: float) -> float:
        """Add sections below each other, with the wires of what is stacked."""
        x, width = x + SPINE, width - SPINE
        title = ""
        for section in sections:
            if section.title != title:
                title, y = section.title, y + 26
                self.write(x, y - 7, title, width, "heading")
            else:
                y += _GAP
            y = self.flow(x, y, " · ".join(section.note).split(" "), width, "quiet", between=" ", up=7)
            parents: dict[int, tuple[float, float]] = {}
            for block in section.blocks:
                depth = min(block.depth, 4)
                left = x + STEP * depth
                if depth and depth - 1 in parents:
                    rail, start = parents[depth - 1]
                    self.append(Line(rail, start, rail, y + LINE, "rail", 1.2))
                    self.append(Line(rail, y + LINE, left, y + LINE, "rail", 1.2))
                y = self.block(block, place, left, y, width - STEP * depth)
                parents = {above: at for above, at in parents.items() if above < depth}
                parents[depth] = (left + STEP / 2, y)
                y += _GAP
            y -= _GAP if section.blocks else 0
        return y

    def block(self, block: PictureBlock, place: Place, x: float, y: float, width: float) -> float:
        begin, room, left = len(self), width - 2 * INSET, x + INSET
        taken = _badges_width(block.marks)
        aside = text_width(block.aside) + 10 if block.aside else 0.0
        rest = room - taken - aside
        # Title, badges and the aside at the right; on two lines if one does not hold them.
        is_one_line = text_width(block.title, TITLE_SIZE, bold=True) <= rest or (rest >= 70 and not block.lines)
        look = "strong quiet" if block.look == "quiet" else "strong"
        used = self.write(left, y + LINE + 3, block.title, rest if is_one_line else room - taken, look, TITLE_SIZE)
        self.badges(block.marks, left + used + 4, y + LINE - 1)
        below = y + LINE + 4
        if not is_one_line:
            below = self.flow(left, below, [block.aside], room, "quiet", up=1)
        elif block.aside:
            self.write(left + room, below - 1, block.aside, aside, "quiet", anchor="end")
        below += 2
        for line in block.lines:
            below = self.flow(left, below, line.pieces, room, line.look)
        if block.tiles:
            below = self.tiles(block.tiles, left, below + 4, room)
        below += 6
        style = _css_class("block", block.look, block.load)
        self.insert(begin, Box(x, y, width, below - y, style, f"{place}|{block.key}", 4))
        if block.lanes is not None:
            style, weight = "pcie below" if block.is_below else "pcie", 1.2 + 1.2 * math.log2(max(block.lanes, 1))
            self.hooks.append(Line(x, below - 10, x, below - 10, style, weight, block.key))
        return below

    def tiles(self, tiles: Sequence[Tile], x: float, y: float, room: float) -> float:
        """Add a grid of drives, all of one size."""
        widest = max(text_width(text, 10) for tile in tiles for text in (tile.name, tile.state)) + 8
        columns = max(1, math.floor((room + _TILE_GAP) / (max(52, min(widest, room)) + _TILE_GAP)))
        width = (room - _TILE_GAP * (columns - 1)) / columns
        height = 31.0 if any(tile.state for tile in tiles) else 19.0
        for at, tile in enumerate(tiles):
            left, top = x + (width + _TILE_GAP) * (at % columns), y + (height + _TILE_GAP) * (at // columns)
            self.append(Box(left, top, width, height, _css_class("tile", tile.look, tile.load), "", 2))
            self.write(left + width / 2, top + 13, tile.name, width - 4, "", 10, "middle")
            if tile.state:
                look = tile.look or "quiet"
                self.write(left + width / 2, top + 25, tile.state, width - 4, look, 10, "middle")
        return y + math.ceil(len(tiles) / columns) * (height + _TILE_GAP) - _TILE_GAP

    def wires(self, spine: float, top: float, first: float) -> list[Shape]:
        """Return the spine from the CPUs down, and from it a wire to each device."""
        if not self.hooks:
            return []
        bottom = max(hook.y1 for hook in self.hooks)
        wires: list[Shape] = [Line(spine, top, spine, bottom, "spine", 2.5)]
        if spine != first:
            # The second column's devices hang on the same CPUs.
            top += _GAP / 2
            wires = [Line(first, top, spine, top, "spine", 2.5), Line(spine, top, spine, bottom, "spine", 2.5)]
        return wires + [msgspec.structs.replace(hook, x1=spine) for hook in self.hooks]

    def crossings(self, picture: HostPicture, columns: Sequence[_Column], y: float) -> float:
        frames = {shape.key: shape for shape in self if isinstance(shape, Box)}
        column_of = {panel.place: column for column in columns for panel in column.panels}
        for number, crossing in enumerate(picture.crossings):
            # Each line leaves its block, or the panel itself, at the right side near the top.
            ends: list[tuple[float, Mark]] = []
            look = f"cross {picture.look(crossing.marks)}"
            for end in crossing.ends:
                frame = frames[f"{end.place}|{end.block or ''}"]
                top = frame.y + (12 if end.block else 20)
                mark = Mark(frame.x + frame.width, top, "dot", look, frame.key)
                ends.append((column_of[end.place].lanes[number], mark))
            if not ends:
                continue
            first = min((column_of[end.place] for end in crossing.ends), key=lambda column: column.x)
            y = self.label(crossing, first, y + 10) + 5
            lanes = sorted({lane for lane, _ in ends})
            wire = partial(Line, look=look, width=2, key=f"crossing:{number}")
            self.append(wire(first.x, y, lanes[-1], y))
            for lane in lanes:
                self.append(wire(lane, min(mark.y for place, mark in ends if place == lane), lane, y))
                self.append(Mark(lane, y, "dot", look))
            for lane, mark in ends:
                self += [wire(mark.x, mark.y, lane, mark.y), mark]
        return y + 4 if picture.crossings else y

    def label(self, crossing: Crossing, column: _Column, y: float) -> float:
        """Add a crossing in words, no wider than a panel: the lines run next to it."""
        room = column.width - 4
        words, look = crossing.title.split(" "), f"strong {self.picture.look(crossing.marks)}"
        width = room - _badges_width(crossing.marks)
        y = self.flow(column.x, y, words, width, look, TITLE_SIZE, " ", step=LINE + 1)
        last = self[-1]
        used = text_width(last.text, TITLE_SIZE, bold=True) if isinstance(last, Label) else 0
        self.badges(crossing.marks, column.x + used + 4, y - 7)
        return self.flow(column.x, y, crossing.words, room)

    def ceiling(self, ceiling: CeilingPicture, width: float, y: float) -> float:
        """Add the title, then a bar for each stage to one scale; that of the stage that binds is marked."""
        y = self.flow(1, y, ceiling.title.split(" "), width, "strong", TITLE_SIZE, " ", up=0, step=LINE + 1) + 6
        for number, bar in enumerate(ceiling.bars):
            y += LINE
            self.write(1, y, bar.words, width, "strong warning" if bar.is_binding else "")
            self.append(Box(1, y + 4, width, 7, "tile", f"ceiling:{number}", 2))
            look = "bar warning" if bar.is_binding else "bar"
            self.append(Box(1, y + 4, max(width * bar.share, 2), 7, look, "", 2))
            y += 15
        return self.paragraph(Words((ceiling.note,), "quiet"), y, width)

    def notes(self, notes: Sequence[PictureNote], x: float, y: float, width: float) -> float:
        """Add the findings' titles with their numbers."""
        self.write(x, y + 20, "Findings", width, "strong", 15)
        y += 30
        for note in notes[:_MAX_NOTES]:
            room = width - 30
            self.append(Badge(x, y + 9, note.number, f"badge {note.severity}"))
            self.write(x + 30, y + LINE - 1, note.severity, room, f"strong {note.severity}")
            y = self.flow(x + 30, y + LINE, note.title.split(" "), room, between=" ", up=1) + 10
        if len(notes) > _MAX_NOTES:
            y += LINE
            self.write(x, y, f"and {len(notes) - _MAX_NOTES} more", width, "quiet")
        return y
