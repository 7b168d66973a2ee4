"""Where a block of the picture goes: its frame, its words, its drives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from advisor.report.picture.records import Chip, Look, PictureBlock, Place, Tile, Words
from advisor.report.picture.shapes import Badge, Frame, Shape, Text, flow_pieces, text_width, write_text

TITLE_SIZE: Final = 12.0
LINE: Final = 14.0
INSET: Final = 8.0
STEP: Final = 12.0
"""How much further in what rests on something stands."""

_TILE_GAP: Final = 4.0
_MIN_TILE: Final = 52.0
_MAX_BADGES: Final = 3
_MORE: Final = 28.0
_GAP: Final = 4.0
_MIN_TITLE: Final = 70.0
CHIP_HEIGHT: Final = 48.0


def place_key(place: Place, key: str = "") -> str:
    """What a frame stands for: a panel, or a block in it."""
    return f"{place}|{key}"


def block_shapes(block: PictureBlock, place: Place, x: float, y: float, width: float) -> tuple[list[Shape], float]:
    """The shapes of a block whose upper left corner is there, and how high it is."""
    room = width - 2 * INSET
    inside: list[Shape] = []
    below = y + 4
    below += _draw_head(block, x + INSET, below, room, inside)
    for line in block.lines:
        for text in flow_pieces(line.pieces, room):
            below += LINE
            inside.append(write_text(x + INSET, below - 3, text, room, look=line.look))
    if block.tiles:
        below += 4
        below += _draw_tiles(block.tiles, x + INSET, below, room, inside)
    height = below + 6 - y
    frame = Frame(x, y, width, height, _css_class("block", block.look, block.load), place_key(place, block.key))
    return [frame, *inside], height


def _css_class(kind: str, look: Look, load: int = 0) -> str:
    return " ".join(one for one in (kind, look, f"load{load}" if load else "") if one)


def _draw_head(block: PictureBlock, x: float, y: float, room: float, shapes: list[Shape]) -> float:
    """Title, badges and what stands at the right; on two lines where one does not hold them."""
    taken = badges_width(block.marks)
    aside = text_width(block.aside) + 10 if block.aside else 0.0
    needed = text_width(block.title, TITLE_SIZE, bold=True)
    is_one_line = needed + taken + aside <= room or (room - taken - aside >= _MIN_TITLE and not block.lines)
    title = write_text(
        x,
        y + LINE - 1,
        block.title,
        room - taken - (aside if is_one_line else 0),
        size=TITLE_SIZE,
        look=_css_class("strong", block.look if block.look == "quiet" else ""),
    )
    shapes.append(title)
    shapes += draw_badges(block.marks, x + text_width(title.text, TITLE_SIZE, bold=True) + _GAP, y + LINE - 5)
    if is_one_line:
        if block.aside:
            shapes.append(write_text(x + room, y + LINE - 1, block.aside, aside, look="quiet", anchor="end"))
        return LINE + 2
    lines = flow_pieces((block.aside,), room)
    shapes += [write_text(x, y + LINE * 2 - 1, text, room, look="quiet") for text in lines]
    return LINE * (1 + len(lines)) + 2


def draw_badges(marks: Sequence[int], x: float, y: float) -> list[Shape]:
    """The numbers of the first findings in a row, from ``x`` on, and how many more there are."""
    found: list[Shape] = []
    for number in marks[:_MAX_BADGES]:
        badge = Badge(x, y, number, "badge")
        found.append(badge)
        x += badge.width + 2
    if len(marks) > _MAX_BADGES:
        found.append(Text(x, y + 4, f"+{len(marks) - _MAX_BADGES}", _MORE, look="quiet"))
    return found


def badges_width(marks: Sequence[int]) -> float:
    """Pixels that `draw_badges` take, with the gap before them."""
    found = draw_badges(marks, 0, 0)
    ends = (one.x + (one.width if isinstance(one, Badge) else _MORE) for one in found if isinstance(one, Badge | Text))
    return max(ends, default=-_GAP) + _GAP


def _draw_tiles(tiles: Sequence[Tile], x: float, y: float, room: float, shapes: list[Shape]) -> float:
    """A grid of drives, all of one size; how high it is."""
    widest = max(text_width(text, 10) for tile in tiles for text in (tile.name, tile.state)) + 8
    columns = max(1, math.floor((room + _TILE_GAP) / (max(_MIN_TILE, min(widest, room)) + _TILE_GAP)))
    width = (room - _TILE_GAP * (columns - 1)) / columns
    height = 31.0 if any(tile.state for tile in tiles) else 19.0
    for at, tile in enumerate(tiles):
        left, top = x + (width + _TILE_GAP) * (at % columns), y + (height + _TILE_GAP) * (at // columns)
        shapes.append(Frame(left, top, width, height, _css_class("tile", tile.look, tile.load), radius=2))
        middle = left + width / 2
        shapes.append(write_text(middle, top + 13, tile.name, width - 4, size=10, anchor="middle"))
        if tile.state:
            look = "warn" if tile.look == "warn" else "quiet"
            shapes.append(write_text(middle, top + 25, tile.state, width - 4, size=10, look=look, anchor="middle"))
    rows = math.ceil(len(tiles) / columns)
    return rows * (height + _TILE_GAP) - _TILE_GAP


def chip_shapes(chip: Chip, x: float, y: float, width: float) -> list[Shape]:
    """CPUs or memory of a node."""
    room = width - 2 * INSET
    value = "strong warn" if chip.look == "warn" else "strong"
    found: list[Shape] = [
        Frame(x, y, width, CHIP_HEIGHT, _css_class("chip", chip.look, chip.load)),
        write_text(x + INSET, y + 14, chip.label, room, size=10, look="quiet"),
        write_text(x + INSET, y + 28, chip.value, room, size=TITLE_SIZE, look=value),
    ]
    return [*found, *([write_text(x + INSET, y + 42, chip.note, room, look="quiet")] if chip.note else [])]


def draw_paragraph(words: Words, x: float, y: float, room: float) -> tuple[list[Shape], float]:
    """Pieces of text without a frame, and how high they are."""
    lines = flow_pieces(words.pieces, room, between=" ")
    shapes: list[Shape] = [
        write_text(x, y + LINE * (at + 1) - 3, text, room, look=words.look) for at, text in enumerate(lines)
    ]
    return shapes, LINE * len(lines)
