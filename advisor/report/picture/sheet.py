"""The whole drawing: panels side by side in rows, and below them what crosses nodes, each on a line of its own.

Lines run in the gutters right of the panels and in the strip below them, so that none runs through a panel or a word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from advisor.report.picture.blocks import LINE, TITLE_SIZE, badges_width, draw_badges, draw_paragraph, place_key
from advisor.report.picture.panels import panel_shapes
from advisor.report.picture.records import CeilingPicture, Crossing, HostPicture, Panel, PictureNote, Place, Words
from advisor.report.picture.shapes import (
    Badge,
    Dot,
    Drawing,
    Frame,
    Shape,
    Text,
    Wire,
    cut_text,
    flow_pieces,
    text_width,
    write_text,
)

LANE: Final = 7.0
GUTTER: Final = 14.0
NOTES_WIDTH: Final = 300.0
_ROW_GAP: Final = 14.0
_MARGIN: Final = 14.0
_MAX_NOTES: Final = 24
_BAR: Final = 7.0
"""Height of a bar."""

_WIRES: Final = "Wires from the CPUs are PCIe links: the thicker, the more lanes; dashed: below maximum."
_LINES: Final = "A line outside the nodes, next to its name, leads from one node to another."
_NUMBERS: Final = "A number in a circle is that of a finding."


def write_legend(picture: HostPicture) -> Words:
    """What the signs mean that this picture has."""
    blocks = [block for panel in picture.panels for block in panel.blocks]
    has = (
        (_WIRES, any(block.lanes for block in blocks)),
        (_LINES, bool(picture.crossings)),
        (_NUMBERS, bool(picture.notes)),
    )
    return Words(tuple(text for text, is_there in has if is_there), "quiet")


class Sheet(msgspec.Struct, frozen=True):
    """How a drawing is arranged: how many panels stand side by side, and how wide it may be, in pixels.

    ``whole`` adds the host's name, the findings and what the lines mean, for a file that stands alone.
    """

    name: str
    columns: int
    panel_width: float
    max_width: float | None = None
    whole: bool = False


class _Column(msgspec.Struct, frozen=True):
    x: float
    width: float
    lanes: Mapping[int, float]
    """Where the line of each crossing runs, by the crossing's place in the list."""

    @property
    def right(self) -> float:
        return self.x + self.width


def draw_sheet(picture: HostPicture, sheet: Sheet) -> Drawing:
    """The drawing. Same picture and sheet, same drawing."""
    count = max(1, min(sheet.columns, len(picture.panels)))
    columns = _make_columns(picture, sheet, count)
    width = max(columns[-1].right, *columns[-1].lanes.values(), 0) + (2 if not columns[-1].lanes else LANE)
    shapes: list[Shape] = []
    y = 1.0
    on_right = sheet.whole and bool(picture.notes) and count < 3
    total = width + (GUTTER + NOTES_WIDTH if on_right else 0)
    if sheet.whole:
        y = _draw_heading(picture, total, shapes)
    top = y
    y = _draw_panels(picture, columns, y, shapes, split=count == 1 and len(picture.panels) == 1 and sheet.columns > 1)
    y = _draw_crossings(picture, columns, y, shapes)
    for words in picture.loose:
        found, height = draw_paragraph(words, 1, y + 6, width - 2)
        shapes += found
        y += height + 6
    if picture.ceiling:
        y = _draw_ceiling(picture.ceiling, width - 2, y + 14, shapes)
    if sheet.whole and picture.notes:
        left = width + GUTTER if on_right else 1.0
        room = (NOTES_WIDTH if on_right else width) - 2
        end = _draw_notes(picture.notes, left, top if on_right else y + 14, room, shapes)
        y = max(y, end)
    if sheet.whole:
        found, height = draw_paragraph(write_legend(picture), 1, y + 12, total - 2)
        shapes += found
        y += height + 12
    return Drawing(sheet.name, total, y + 4, tuple(shapes), _MARGIN if sheet.whole else 0)


def _make_columns(picture: HostPicture, sheet: Sheet, count: int) -> list[_Column]:
    """Columns with as much room right of each as its lines take; the panels give way where the sheet is not wide."""
    used: list[list[int]] = [[] for _ in range(count)]
    of_place = {panel.place: at % count for at, panel in enumerate(picture.panels)}
    for number, crossing in enumerate(picture.crossings):
        for column in sorted({of_place[end.place] for end in crossing.ends if end.place in of_place}):
            used[column].append(number)
    gutters = [GUTTER + LANE * len(lanes) if lanes else GUTTER for lanes in used]
    single = len(picture.panels) == 1 and sheet.columns > 1
    width = sheet.panel_width * 2 + GUTTER if single else sheet.panel_width
    if sheet.max_width is not None:
        width = min(width, (sheet.max_width - sum(gutters) + (0 if used[-1] else GUTTER - 3)) / count)
    columns: list[_Column] = []
    x = 1.0
    for gutter, lanes in zip(gutters, used, strict=True):
        places = {number: x + width + GUTTER / 2 + LANE * at for at, number in enumerate(lanes)}
        columns.append(_Column(x, width, places))
        x += width + gutter
    return columns


def _draw_heading(picture: HostPicture, width: float, shapes: list[Shape]) -> float:
    shapes.append(write_text(1, 20, picture.title, width - 2, size=18, look="strong"))
    y = 26.0
    for text in flow_pieces(picture.about, width - 2):
        y += LINE
        shapes.append(write_text(1, y, text, width - 2, look="quiet"))
    if not picture.notes:
        y += LINE
        shapes.append(write_text(1, y, picture.summary, width - 2))
    return y + 14


def _draw_panels(
    picture: HostPicture, columns: Sequence[_Column], y: float, shapes: list[Shape], *, split: bool
) -> float:
    count = len(columns)
    for start in range(0, len(picture.panels), count):
        row = picture.panels[start : start + count]
        height = max(panel_shapes(panel, 0, 0, columns[0].width, split=split)[1] for panel in row)
        for column, panel in zip(columns, row, strict=False):
            shapes += panel_shapes(panel, column.x, y, column.width, height=height, split=split)[0]
        y += height + _ROW_GAP
    return y - _ROW_GAP if picture.panels else y


def _draw_crossings(picture: HostPicture, columns: Sequence[_Column], y: float, shapes: list[Shape]) -> float:
    frames = {shape.key: shape for shape in shapes if isinstance(shape, Frame) and shape.key}
    column_of = {panel.place: columns[at % len(columns)] for at, panel in enumerate(picture.panels)}
    for number, crossing in enumerate(picture.crossings):
        ends = [(column_of[end.place], _anchor_dot(frames, end.place, end.block)) for end in crossing.ends]
        if not ends:
            continue
        first = min((column for column, _ in ends), key=lambda column: column.x)
        y = _draw_label(crossing, first, y + 10, shapes) + 5
        lanes = sorted({column.lanes[number] for column, _ in ends})
        key = f"crossing:{number}"
        shapes.append(Wire(first.x, y, lanes[-1], y, "cross", 2, key))
        for lane in lanes:
            tops = [at.y for column, at in ends if column.lanes[number] == lane]
            shapes.append(Wire(lane, min(tops), lane, y, "cross", 2, key))
            shapes.append(Dot(lane, y, "cross"))
        for column, at in ends:
            shapes.append(Wire(at.x, at.y, column.lanes[number], at.y, "cross", 2, key))
            shapes.append(Dot(at.x, at.y, "cross", at.key))
    return y + 4 if picture.crossings else y


def _anchor_dot(frames: Mapping[str, Frame], place: Place, block: str | None) -> Dot:
    """Where a line leaves a block, or the panel itself: at its right side, near its top."""
    frame = frames[place_key(place, block or "")]
    return Dot(frame.x + frame.width, frame.y + (12 if block else 20), "cross", frame.key)


def _draw_label(crossing: Crossing, column: _Column, y: float, shapes: list[Shape]) -> float:
    """What crosses, in words, no wider than a panel: the lines run next to it."""
    room = column.width - 4
    width = room - badges_width(crossing.marks)
    lines = [
        cut_text(text, width, TITLE_SIZE, bold=True)
        for text in flow_pieces(tuple(crossing.title.split(" ")), width, TITLE_SIZE, " ", bold=True)
    ]
    for text in lines:
        y += LINE + 1
        shapes.append(write_text(column.x, y - 3, text, width, size=TITLE_SIZE, look="strong warn"))
    shapes += draw_badges(crossing.marks, column.x + text_width(lines[-1], TITLE_SIZE, bold=True) + 4, y - 7)
    for text in flow_pieces(crossing.words, room):
        y += LINE
        shapes.append(write_text(column.x, y - 3, text, room))
    return y


def _draw_ceiling(ceiling: CeilingPicture, width: float, y: float, shapes: list[Shape]) -> float:
    """The title, then a bar for each stage to one scale; that of the stage that binds is marked."""
    for text in flow_pieces(tuple(ceiling.title.split(" ")), width, TITLE_SIZE, " ", bold=True):
        y += LINE + 1
        shapes.append(write_text(1, y, text, width, size=TITLE_SIZE, look="strong"))
    y += 6
    for number, bar in enumerate(ceiling.bars):
        look = "warn" if bar.is_binding else ""
        words = f"{bar.title}: {bar.value}{' (binds)' if bar.is_binding else ''}"
        y += LINE
        shapes.append(write_text(1, y, words, width, look=f"strong {look}" if look else ""))
        shapes.append(Frame(1, y + 4, width, _BAR, "tile", f"ceiling:{number}", 2))
        shapes.append(Frame(1, y + 4, max(width * bar.share, 2), _BAR, f"bar {look}".rstrip(), "", 2))
        y += _BAR + 8
    if ceiling.note:
        found, height = draw_paragraph(Words((ceiling.note,), "quiet"), 1, y, width)
        shapes += found
        y += height
    return y


def _draw_notes(notes: Sequence[PictureNote], x: float, y: float, width: float, shapes: list[Shape]) -> float:
    """The findings' titles with their numbers."""
    shapes.append(write_text(x, y + 20, "Findings", width, size=15, look="strong"))
    y += 30
    for note in notes[:_MAX_NOTES]:
        room = width - 30
        lines = flow_pieces(tuple(note.title.split(" ")), room, between=" ")
        shapes.append(Badge(x, y + 9, note.number, f"badge {note.severity}"))
        shapes.append(write_text(x + 30, y + LINE - 1, note.severity, room, look=f"strong {note.severity}"))
        for text in lines:
            y += LINE
            shapes.append(write_text(x + 30, y + LINE - 1, text, room))
        y += LINE + 10
    if len(notes) > _MAX_NOTES:
        shapes.append(Text(x, y + LINE, f"and {len(notes) - _MAX_NOTES} more", width, look="quiet"))
        y += LINE
    return y


def panels_side_by_side(panels: Sequence[Panel], most: int) -> int:
    """How many panels stand in a row, so that the last row is not much shorter than the others."""
    rows = -(-len(panels) // most)
    return max(1, -(-len(panels) // max(rows, 1)))
