"""What every HTML page shares: its environment of templates, in which no text can be anything but text."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

from advisor.host.patterns import lazy_regex
from advisor.report.format import clean
from advisor.report.layout import columns
from advisor.report.severities import LOOKS, split_counts
from advisor.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment


class Raw(str):
    """Text of our own that stands as it is."""

    def __html__(self) -> str:
        return self


@cache
def html_environment() -> Environment:
    """Return an environment that escapes everything and spells out what is not printable.

    Filters are ``place`` (percent or pixels), ``pixels`` and ``split_counts``.
    """
    from advisor.shell.templates import make_environment

    made = make_environment(escape_html=True).overlay(finalize=_mark_said)
    made.globals["severities"] = LOOKS
    made.filters["place"] = _format_place
    made.filters["split_counts"] = split_counts
    made.filters["pixels"] = _format_pixels
    return made


def render_page(page: str, *styles: str, **values: Any) -> str:
    """Return a page of a template, with its style sheet, the hash that its policy allows, and our version."""
    made = html_environment()
    style = "".join(made.get_template(f"{name}.css.j2").render() for name in styles or ("proof",))
    values |= {"style": Raw(style), "style_hash": style_hash(style), "version": __version__}
    return made.get_template(f"{page}.html.j2").render(values)


def style_hash(style: str) -> str:
    """The SHA-256 by which a page's policy allows its style sheet and no other."""
    return base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


def _mark_said(value: object) -> object:
    """What is not printable is spelt out, here for every text of the page, so that none can be forgotten."""
    return clean(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _format_place(value: float, unit: str) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") + unit if unit else _format_pixels(value)


def _format_pixels(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


# Shapes, texts and scales of every picture; ``templates/svg.j2`` draws them.

Anchor = Literal["start", "middle", "end"]
Symbol = Literal["circle", "diamond", "square", "cross", "left", "right", "dot"]

MIN_WIDTH = 300
"""The narrowest chart, in pixels: a phone of 360 less its margins."""

LINE_HEIGHT = 15.0
SMALL = 11.0
LONGEST_WHOLE = 400
LETTER_WIDTH = 12 * 0.63
"""Pixels of each column in a chart; on the wide side of the usual sans-serif fonts."""

_LETTERS = lazy_regex(r"(?P<narrow>[ .,:;'|ijlIf!()\[\]/t-])|(?P<broad>[mwMW@%—…æœÆŒ])|[A-HJ-LN-VX-Z&+<>=~#_?]")


class Line(msgspec.Struct, frozen=True):
    """A straight line; ``look`` is its class in the style sheet, ``key`` names its subject."""

    x1: float
    y1: float
    x2: float
    y2: float
    look: str
    width: float = 0
    key: str = ""
    kind: ClassVar[str] = "line"


class Box(msgspec.Struct, frozen=True):
    """A rectangle from its upper left corner."""

    x: float
    y: float
    width: float
    height: float
    look: str
    key: str = ""
    radius: float = 0
    kind: ClassVar[str] = "box"


class Mark(msgspec.Struct, frozen=True):
    """A symbol around a point."""

    x: float
    y: float
    symbol: Symbol
    look: str
    key: str = ""
    kind: ClassVar[str] = "mark"


class Label(msgspec.Struct, frozen=True):
    """A line of text; ``y`` is its base line, ``room`` the pixels that it may take, ``whole`` a text that was cut."""

    x: float
    y: float
    text: str
    anchor: Anchor = "start"
    look: str = ""
    size: float = 0
    room: float = 0
    whole: str = ""
    kind: ClassVar[str] = "label"


class Badge(msgspec.Struct, frozen=True):
    """The number of a finding, in a circle that is wide enough for its digits. ``x`` is its left."""

    x: float
    y: float
    number: int
    look: str = "badge"
    kind: ClassVar[str] = "badge"

    @property
    def width(self) -> float:
        return 7.0 + 7 * len(str(self.number))


Shape = Line | Box | Mark | Label | Badge


class Picture(msgspec.Struct, frozen=True):
    """Shapes in drawing order, with an empty ``margin`` around them. ``name`` makes its ids unique on a page;
    ``description`` is its content in words."""

    name: str
    height: float
    shapes: Sequence[Shape]
    title: str = ""
    description: str = ""
    width: float = 0
    margin: float = 0


def text_width(text: str, size: float = SMALL, *, bold: bool = False) -> float:
    """Return the pixels that a text takes at most, on the wide side of the usual sans-serif fonts."""
    ems = 0.66 * columns(text)
    for letter in _LETTERS.finditer(text):
        ems += {"narrow": -0.23, "broad": 0.36}.get(letter.lastgroup or "", 0.16)
    return ems * size * (1.12 if bold else 1.0)


def chart_width(text: str) -> float:
    """Return the pixels that a text takes at most in a chart."""
    return columns(text) * LETTER_WIDTH


def cut_text(text: str, room: float, measure: Callable[[str], float] = chart_width) -> str:
    """Return the text, spelt out if it is not printable, and cut short if it takes more than ``room`` pixels."""
    # Not more characters than can matter: a name may be as long as a file.
    text = clean(text[: LONGEST_WHOLE * 2])
    if measure(text) <= room:
        return text
    text = text[: max(int(room), 0)]
    while text and measure(f"{text}…") > room:
        text = text[:-1]
    return f"{text}…"


def is_bold(look: str) -> bool:
    """Tell whether the style sheet makes a text of that class bold."""
    return not {"strong", "heading"}.isdisjoint(look.split())


def flow_pieces(
    pieces: Iterable[str], room: float, between: str = " · ", measure: Callable[[str], float] = text_width
) -> list[str]:
    """Join pieces to as few lines as hold them; a piece that is too long stays to be cut."""
    lines: list[str] = []
    for piece in filter(None, pieces):
        if lines and measure(joined := f"{lines[-1]}{between}{piece}") <= room:
            lines[-1] = joined
        else:
            lines.append(piece)
    return lines


def label_extent(label: Label, width: float = MIN_WIDTH) -> tuple[float, float]:
    """Return where a label begins and ends, in pixels, in a chart of that width."""
    size = chart_width(label.text)
    begin = label.x * width / 100 - size * {"start": 0, "middle": 0.5, "end": 1}[label.anchor]
    return begin, begin + size


def hold_label(label: Label) -> Label:
    """Move the label inside the chart at `MIN_WIDTH`."""
    begin, end = label_extent(label)
    if begin < 0:
        return msgspec.structs.replace(label, x=0.0, anchor="start")
    return msgspec.structs.replace(label, x=100.0, anchor="end") if end > MIN_WIDTH else label


def without_overlap(labels: Iterable[Label], gap: float = 6.0) -> list[Label]:
    """Return the labels of one line of text, without those that would touch an earlier label."""
    kept: list[Label] = []
    for label in map(hold_label, labels):
        if not kept or label_extent(label)[0] >= label_extent(kept[-1])[1] + gap:
            kept.append(label)
    return kept


class Scale(msgspec.Struct, frozen=True):
    """A straight line from (``low``, ``begin``) to (``high``, ``end``); values outside lie at its nearer end."""

    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        """Return the place of a value. ``low`` equal to ``high`` puts everything in the middle."""
        share = 0.5 if self.high <= self.low else min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
        return self.begin + share * (self.end - self.begin)
