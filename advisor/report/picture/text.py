"""The picture in a terminal: a box for each node, side by side where there is room, and what crosses nodes below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from advisor.facts.host_facts import Facts
from advisor.facts.services import Service
from advisor.report.format import clean
from advisor.report.layout import Piece, Span, Style, columns, paint_text, wrap_pieces
from advisor.report.picture.content import host_picture
from advisor.report.picture.described import crossing_line
from advisor.report.picture.drawing import panels_side_by_side
from advisor.report.picture.records import HostPicture, Look, Panel, PictureBlock
from advisor.rules.finding import Finding

MIN_BOX: Final = 38
MAX_BOX: Final = 78
MIN_WIDTH: Final = 40
_GAP: Final = 2
_STYLES: Final[dict[Look, Style]] = {"": "", "quiet": "dim", "warn": "yellow"}


class BoxSigns(NamedTuple):
    """Characters that boxes are drawn with: four corners, two sides, and what else would need UTF-8."""

    corners: str
    across: str
    down: str
    stacked: str
    dot: str
    more: str
    times: str


_UTF8: Final = BoxSigns("┌┐└┘", "─", "│", "└ ", " · ", "…", "×")
_ASCII: Final = BoxSigns("++++", "-", "|", "- ", ", ", "...", "x")


def picture_text(
    facts: Facts,
    findings: Sequence[Finding],
    services: Sequence[Service] = (),
    *,
    width: int,
    color: bool,
    is_plain: bool = False,
) -> str:
    """The drawing, no line wider than ``width`` (40 at least). ``is_plain`` draws with ASCII alone."""
    picture = host_picture(facts, findings, services)
    page = _Page(max(width, MIN_WIDTH), _ASCII if is_plain else _UTF8, color=color)
    return "\n".join(line.rstrip() for line in page.lines(picture)) + "\n"


class _Page:
    def __init__(self, width: int, signs: BoxSigns, *, color: bool) -> None:
        self.width = width
        self.signs = signs
        self.color = color

    def lines(self, picture: HostPicture) -> Iterator[str]:
        yield from self._paragraph([Span(picture.title, "bold")])
        yield from self._paragraph([Span(self.signs.dot.join(picture.about), "dim")])
        yield ""
        yield from self._panels(picture.panels)
        if picture.crossings:
            yield ""
            yield from self._paragraph([Span("Across nodes", "bold")])
            for crossing in picture.crossings:
                line = crossing_line(crossing) + self._numbers(crossing.marks)
                yield from self._paragraph([Span(line, "yellow")], indent=4, first="  ")
        for words in picture.loose:
            yield from self._paragraph([Span(" ".join(words.pieces), "dim")])
        yield ""
        yield from self._notes(picture)

    def _notes(self, picture: HostPicture) -> Iterator[str]:
        yield from self._paragraph([Span(picture.summary, "bold")])
        for note in picture.notes:
            first = f"  [{note.number}] {note.severity:8}"
            yield from self._paragraph([note.title], indent=columns(first) + 1, first=f"{first} ")

    def _paragraph(self, pieces: Sequence[Piece], *, indent: int = 0, first: str = "") -> list[str]:
        said = [self._said(piece) for piece in pieces]
        return wrap_pieces(said, self.width, first=(first,) if first else (), indent=indent, color=self.color)

    def _said(self, piece: Piece) -> Span:
        """A text in characters that this terminal has."""
        span = piece if isinstance(piece, Span) else Span(piece)
        return Span(self._plain(clean(span.text)), span.style)

    def _plain(self, text: str) -> str:
        if self.signs is _UTF8:
            return text
        for sign, other in (("…", "..."), ("×", "x"), ("·", ",")):
            text = text.replace(sign, other)
        return text.encode("ascii", "backslashreplace").decode()

    def _numbers(self, marks: Sequence[int]) -> str:
        return "".join(f" [{mark}]" for mark in marks)

    def _panels(self, panels: Sequence[Panel]) -> Iterator[str]:
        most = max(1, (self.width + _GAP) // (MIN_BOX + _GAP))
        count = panels_side_by_side(panels, most)
        width = min((self.width - _GAP * (count - 1)) // count, MAX_BOX)
        for start in range(0, len(panels), count):
            row = panels[start : start + count]
            inside = [self._inside(panel, width - 4) for panel in row]
            height = max(map(len, inside))
            boxes = [self._box(panel, lines, width, height) for panel, lines in zip(row, inside, strict=True)]
            for parts in zip_longest(*boxes, fillvalue=""):
                yield (" " * _GAP).join(parts)

    def _box(self, panel: Panel, lines: list[list[Span]], width: int, height: int) -> list[str]:
        signs = self.signs
        title = self._fitted(panel.title, width - 6)
        head = f"{signs.corners[0]}{signs.across} {title} "
        top = head + signs.across * (width - columns(head) - 1) + signs.corners[1]
        bottom = signs.corners[2] + signs.across * (width - 2) + signs.corners[3]
        rows = [*lines, *([[]] * (height - len(lines)))]
        return [paint_text(top, "bold", color=self.color), *(self._row(row, width) for row in rows), bottom]

    def _row(self, spans: Sequence[Span], width: int) -> str:
        used = sum(columns(span.text) for span in spans)
        text = "".join(paint_text(span.text, span.style, color=self.color) for span in spans)
        return f"{self.signs.down} {text}{' ' * (width - 4 - used)} {self.signs.down}"

    def _inside(self, panel: Panel, room: int) -> list[list[Span]]:
        found: list[list[Span]] = []
        for chip in panel.chips:
            note = f"{self.signs.dot}{chip.note}" if chip.note else ""
            found.append(self._cell(f"{chip.label} {chip.value}{note}", _STYLES[chip.look], room, 0))
        if panel.note:
            found.append(self._cell(panel.note, "dim", room, 0))
        for section in panel.sections:
            found.append(self._cell(section.title, "bold", room, 0))
            if section.note:
                found.append(self._cell(self.signs.dot.join(section.note), "dim", room, 2))
            for block in section.blocks:
                found += self._block(block, room)
        return found

    def _cell(self, text: str, style: Style, room: int, indent: int) -> list[Span]:
        return [Span(" " * indent), Span(self._fitted(text, room - indent), style)]

    def _block(self, block: PictureBlock, room: int) -> Iterator[list[Span]]:
        indent = 2 + 2 * min(block.depth, 4)
        lead = self.signs.stacked if block.depth else ""
        style = _STYLES[block.look]
        title = self._fitted(lead + block.title, room - indent)
        aside = self._fitted(block.aside + self._numbers(block.marks), room - indent - 2)
        gap = room - indent - columns(title) - columns(aside)
        if gap > 0:
            yield [Span(" " * indent), Span(title, style or "bold"), Span(" " * gap), Span(aside, style)]
        else:
            yield [Span(" " * indent), Span(title, style or "bold")]
            yield [Span(" " * (indent + 2)), Span(aside, style)]
        for line in block.lines:
            yield from self._flow(line.pieces, _STYLES[line.look], room, indent + 2)
        drives = [f"{tile.name} {tile.state}".rstrip() for tile in block.tiles]
        yield from self._flow(drives, "", room, indent + 2, between="  ")

    def _flow(
        self, pieces: Sequence[str], style: Style, room: int, indent: int, between: str = ""
    ) -> Iterator[list[Span]]:
        """Pieces in lines, broken between two of them."""
        between = between or self.signs.dot
        line = ""
        for piece in pieces:
            joined = f"{line}{between}{piece}" if line else piece
            if line and columns(self._plain(clean(joined))) > room - indent:
                yield self._cell(line, style, room, indent)
                joined = piece
            line = joined
        if line:
            yield self._cell(line, style, room, indent)

    def _fitted(self, text: str, room: int) -> str:
        """The text in ``room`` columns, cut short where it takes more."""
        text = self._plain(clean(text[: 4 * room + 16]))
        if columns(text) <= room:
            return text
        while text and columns(text) + columns(self.signs.more) > room:
            text = text[:-1]
        return f"{text}{self.signs.more}" if room >= columns(self.signs.more) else ""
