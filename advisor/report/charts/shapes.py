"""What a picture is made of. ``x`` and ``width`` are percentages of the picture's width, all else is CSS pixels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final, Literal

import msgspec

from advisor.report.format import clean
from advisor.report.layout import columns

MIN_WIDTH: Final = 300
"""The narrowest picture, in pixels: a phone of 360 less its margins."""

FONT_SIZE: Final = 12.0
LETTER_WIDTH: Final = 0.63
"""Of the font size, for each column; on the wide side of the usual sans-serif fonts."""

LINE_HEIGHT: Final = 15.0

Anchor = Literal["start", "middle", "end"]
Symbol = Literal["circle", "diamond", "square", "cross", "left", "right"]


class ChartLine(msgspec.Struct, frozen=True):
    """A straight line; ``look`` is its class in the style sheet."""

    x1: float
    y1: float
    x2: float
    y2: float
    look: str
    kind: ClassVar[str] = "line"


class Box(msgspec.Struct, frozen=True):
    """A rectangle from its upper left corner."""

    x: float
    y: float
    width: float
    height: float
    look: str
    kind: ClassVar[str] = "box"


class Mark(msgspec.Struct, frozen=True):
    """A symbol around a point."""

    x: float
    y: float
    symbol: Symbol
    look: str
    kind: ClassVar[str] = "mark"


class Label(msgspec.Struct, frozen=True):
    """One line of text; ``y`` is its base line."""

    x: float
    y: float
    text: str
    anchor: Anchor = "start"
    look: str = ""
    kind: ClassVar[str] = "label"


Shape = ChartLine | Box | Mark | Label


class Picture(msgspec.Struct, frozen=True):
    """Shapes in drawing order. ``title`` names the picture, ``description`` says in words what there is to see."""

    name: str
    title: str
    description: str
    height: float
    shapes: tuple[Shape, ...]


def text_width(text: str) -> float:
    """Pixels that a text takes at most, in the font of the pictures."""
    return columns(text) * FONT_SIZE * LETTER_WIDTH


def label_extent(label: Label, width: float = MIN_WIDTH) -> tuple[float, float]:
    """Where a label begins and ends, in pixels, in a picture of that width."""
    size, at = text_width(label.text), label.x * width / 100
    begin = {"start": at, "middle": at - size / 2, "end": at - size}[label.anchor]
    return begin, begin + size


def fit_text(text: str, room: float) -> str:
    """The text, spelt out where it is not printable, and cut short where it takes more pixels than ``room``."""
    text = clean(text)
    if text_width(text) <= room:
        return text
    # Not more characters than can matter: a name may be as long as a file.
    text = text[: int(room) + 1]
    while text and text_width(f"{text}…") > room:
        text = text[:-1]
    return f"{text}…"


def hold_label(label: Label) -> Label:
    """The label, moved so that at `MIN_WIDTH` it lies inside the picture."""
    begin, end = label_extent(label)
    if begin < 0:
        return msgspec.structs.replace(label, x=0.0, anchor="start")
    if end > MIN_WIDTH:
        return msgspec.structs.replace(label, x=100.0, anchor="end")
    return label


def without_overlap(labels: Iterable[Label], gap: float = 6.0) -> list[Label]:
    """The labels of one line of text, those left out that would touch one before them."""
    kept: list[Label] = []
    for label in map(hold_label, labels):
        if not kept or label_extent(label)[0] >= label_extent(kept[-1])[1] + gap:
            kept.append(label)
    return kept
