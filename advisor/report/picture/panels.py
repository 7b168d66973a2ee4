"""Where a panel's parts go: its CPUs and memory, and below them its links, drives and services, on PCIe wires."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from advisor.report.picture.blocks import CHIP_HEIGHT, LINE, STEP, block_shapes, chip_shapes, place_key
from advisor.report.picture.records import Panel, PictureBlock, PictureSection, Place
from advisor.report.picture.shapes import Frame, Shape, Wire, flow_pieces, text_width, write_text

PAD: Final = 10.0
SPINE: Final = 16.0
"""Room left of the blocks for the wires that lead to them."""

_HEAD: Final = 30.0
_NAME_SIZE: Final = 15.0
_GAP: Final = 8.0
_SECTION: Final = 26.0


def panel_shapes(
    panel: Panel, x: float, y: float, width: float, *, height: float = 0, split: bool = False
) -> tuple[list[Shape], float]:
    """The shapes of a panel, at least ``height`` high, and how high it is.

    With ``split`` its drives stand to the right of its links and services, not below them.
    """
    inside = _draw_head(panel, x, y, width)
    top = y + _HEAD
    if panel.chips:
        # The first is the wider one: lists of CPUs are long.
        room = width - 2 * PAD - _GAP
        shares = (0.56 * room, 0.44 * room)
        lefts = (x + PAD, x + PAD + shares[0] + _GAP)
        inside += [
            shape
            for chip, left, share in zip(panel.chips, lefts, shares, strict=False)
            for shape in chip_shapes(chip, left, top, share)
        ]
        top += CHIP_HEIGHT + _GAP
    bottoms = [top]
    halves = _split_halves(panel, split=split)
    room = (width - 2 * PAD - _GAP * (len(halves) - 1)) / len(halves)
    for at, sections in enumerate(halves):
        left = x + PAD + (room + _GAP) * at
        start = top - _GAP if panel.chips else top
        found, bottom = _draw_column(sections, panel.place, left, top, room)
        wires = _draw_wires(found, left, start, x + PAD) if panel.chips else []
        inside += [*wires, *found]
        bottoms.append(bottom)
    whole = max(max(bottoms) + PAD - y, height)
    frame = Frame(x, y, width, whole, "panel", place_key(panel.place), radius=6)
    return [frame, *inside], whole


def _split_halves(panel: Panel, *, split: bool) -> list[tuple[PictureSection, ...]]:
    if not split or len(panel.sections) < 2:
        return [panel.sections]
    right = tuple(section for section in panel.sections if section.name == "drives")
    left = tuple(section for section in panel.sections if section.name != "drives")
    return [left, right] if right and left else [panel.sections]


def _draw_head(panel: Panel, x: float, y: float, width: float) -> list[Shape]:
    room = width - 2 * PAD
    name = write_text(x + PAD, y + 20, panel.title, room, size=_NAME_SIZE, look="strong")
    rest = room - text_width(name.text, _NAME_SIZE, bold=True) - 8
    if not panel.note or rest < 40:
        return [name]
    return [name, write_text(x + width - PAD, y + 20, panel.note, rest, look="quiet", anchor="end")]


def _draw_column(
    sections: Sequence[PictureSection], place: Place, x: float, y: float, width: float
) -> tuple[list[Shape], float]:
    """Sections below each other; the wires of what is stacked come with the blocks."""
    shapes: list[Shape] = []
    for section in sections:
        y += _SECTION
        shapes.append(write_text(x + SPINE, y - 7, section.title, width - SPINE, look="heading"))
        for text in flow_pieces(tuple(" · ".join(section.note).split(" ")), width - SPINE, between=" "):
            shapes.append(write_text(x + SPINE, y + LINE - 7, text, width - SPINE, look="quiet"))
            y += LINE
        y = _draw_stack(section.blocks, place, x + SPINE, y, width - SPINE, shapes)
    return shapes, y


def _draw_stack(
    blocks: Sequence[PictureBlock], place: Place, x: float, y: float, width: float, shapes: list[Shape]
) -> float:
    parents: dict[int, tuple[float, float]] = {}
    for block in blocks:
        depth = min(block.depth, 4)
        left = x + STEP * depth
        made, height = block_shapes(block, place, left, y, width - STEP * depth)
        if depth and depth - 1 in parents:
            rail, start = parents[depth - 1]
            shapes += [
                Wire(rail, start, rail, y + LINE, "rail", 1.2),
                Wire(rail, y + LINE, left, y + LINE, "rail", 1.2),
            ]
        shapes += made
        shapes += _draw_hook(block, left, y + height)
        parents = {above: at for above, at in parents.items() if above < depth}
        parents[depth] = (left + STEP / 2, y + height)
        y += height + _GAP
    return y - _GAP if blocks else y


def _draw_hook(block: PictureBlock, x: float, bottom: float) -> list[Shape]:
    """A wire of no length where the PCIe link of a block arrives: `_draw_wires` draws it from the spine to here."""
    if block.lanes is None:
        return []
    look = "pcie warn" if block.is_below else "pcie"
    return [Wire(x, bottom - 10, x, bottom - 10, look, 1.2 + 1.2 * math.log2(max(block.lanes, 1)), block.key)]


def _draw_wires(shapes: list[Shape], x: float, top: float, first: float) -> list[Shape]:
    """The spine from the CPUs down, and from it a wire to each device; the hooks are moved from ``shapes``."""
    hooks = [shape for shape in shapes if isinstance(shape, Wire) and shape.look.startswith("pcie")]
    if not hooks:
        return []
    shapes[:] = [shape for shape in shapes if shape not in hooks]
    spine = x + 5
    wires: list[Shape] = [Wire(spine, top, spine, max(hook.y1 for hook in hooks), "spine", 2.5)]
    if x != first:
        # The second column's devices hang on the same CPUs.
        wires = [
            Wire(first + 5, top + _GAP / 2, spine, top + _GAP / 2, "spine", 2.5),
            Wire(spine, top + _GAP / 2, spine, max(hook.y1 for hook in hooks), "spine", 2.5),
        ]
    wires += [Wire(spine, hook.y1, hook.x1, hook.y1, hook.look, hook.width, hook.key) for hook in hooks]
    return wires
