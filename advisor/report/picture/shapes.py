"""What the drawing is made of, in CSS pixels from its upper left corner."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from advisor.host.patterns import lazy_regex
from advisor.report.charts.shapes import Anchor
from advisor.report.format import clean
from advisor.report.layout import columns

SMALL: Final = 11.0
BADGE_HEIGHT: Final = 14.0
LONGEST_WHOLE: Final = 400
_NARROW: Final = lazy_regex(r"[ .,:;'|ijlIf!()\[\]/t-]")
_BROAD: Final = lazy_regex(r"[mwMW@%—…æœÆŒ]")
_CAPITAL: Final = lazy_regex(r"[A-HJ-LN-VX-Z&+<>=~#_?]")
_BOLD: Final = 1.12


class Frame(msgspec.Struct, frozen=True):
    """A rectangle with round corners; ``look`` is its class in the style sheet. ``key`` names what it stands for."""

    x: float
    y: float
    width: float
    height: float
    look: str
    key: str = ""
    radius: float = 4.0
    kind: ClassVar[str] = "frame"


class Text(msgspec.Struct, frozen=True):
    """A line of text; ``y`` is its base line, ``room`` the pixels that it may take. ``whole`` is what was cut."""

    x: float
    y: float
    text: str
    room: float
    size: float = SMALL
    look: str = ""
    anchor: Anchor = "start"
    whole: str = ""
    kind: ClassVar[str] = "text"


class Wire(msgspec.Struct, frozen=True):
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    look: str
    width: float = 1.5
    key: str = ""
    kind: ClassVar[str] = "wire"


class Dot(msgspec.Struct, frozen=True):
    """The end of a line."""

    x: float
    y: float
    look: str
    key: str = ""
    kind: ClassVar[str] = "dot"


class Badge(msgspec.Struct, frozen=True):
    """The number of a finding, in a circle, or what is as high and wide enough for its digits. ``x`` is its left."""

    x: float
    y: float
    number: int
    look: str
    kind: ClassVar[str] = "badge"

    @property
    def width(self) -> float:
        return BADGE_HEIGHT + 7 * (len(str(self.number)) - 1)


Shape = Frame | Text | Wire | Dot | Badge


class Drawing(msgspec.Struct, frozen=True):
    """Shapes in drawing order on a sheet of that size, with an empty ``margin`` around it. ``name`` makes its ids
    unique on a page."""

    name: str
    width: float
    height: float
    shapes: tuple[Shape, ...]
    margin: float = 0.0


def text_width(text: str, size: float = SMALL, *, bold: bool = False) -> float:
    """Pixels that a text takes at most, in a font of that size; on the wide side of the usual sans-serif fonts."""
    narrow, broad, tall = len(_NARROW.findall(text)), len(_BROAD.findall(text)), len(_CAPITAL.findall(text))
    ems = 0.66 * (columns(text) - narrow - broad - tall) + 0.43 * narrow + 1.02 * broad + 0.82 * tall
    return ems * size * (_BOLD if bold else 1.0)


def cut_text(text: str, room: float, size: float = SMALL, *, bold: bool = False) -> str:
    """The text, spelt out where it is not printable, and cut short where it takes more than ``room`` pixels."""
    # Not more characters than can matter: a name may be as long as a file.
    text = clean(text[: LONGEST_WHOLE * 2])
    if text_width(text, size, bold=bold) <= room:
        return text
    text = text[: max(int(room), 0)]
    while text and text_width(f"{text}…", size, bold=bold) > room:
        text = text[:-1]
    return f"{text}…"


def write_text(
    x: float, y: float, text: str, room: float, *, size: float = SMALL, look: str = "", anchor: Anchor = "start"
) -> Text:
    """A text that is cut short where it takes more than ``room`` pixels, with all of it as its title."""
    short = cut_text(text, room, size, bold=is_bold(look))
    is_cut = short.endswith("…") and short != text
    return Text(x, y, short, room, size, look, anchor, text[:LONGEST_WHOLE] if is_cut else "")


def is_bold(look: str) -> bool:
    """Whether the style sheet makes a text of that class bold."""
    return not {"strong", "heading"}.isdisjoint(look.split())


def flow_pieces(
    pieces: tuple[str, ...], room: float, size: float = SMALL, between: str = " · ", *, bold: bool = False
) -> list[str]:
    """Pieces in as few lines as hold them, broken between two of them; a piece that is too long is left to be cut."""
    lines: list[str] = []
    for piece in filter(None, pieces):
        joined = f"{lines[-1]}{between}{piece}" if lines else piece
        if lines and text_width(joined, size, bold=bold) <= room:
            lines[-1] = joined
        else:
            lines.append(piece)
    return lines
