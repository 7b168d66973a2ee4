"""The picture in a terminal: a box for each node, side by side as room allows, and all that crosses nodes below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from advisor.facts.host_facts import Facts
from advisor.facts.services import Service
from advisor.report.format import clean
from advisor.report.layout import Piece, Span, Style, columns, padded, paint_text, width_of, wrap_pieces
from advisor.report.picture.content import host_picture
from advisor.report.picture.described import crossing_line
from advisor.report.picture.drawing import share_out
from advisor.report.picture.records import HostPicture, Panel, PictureBlock
from advisor.report.severities import SEVERITY_STYLE, severity_span
from advisor.report.svg import cut_text, flow_pieces
from advisor.rules.finding import Finding

MIN_BOX = 38
MAX_BOX = 78
MIN_WIDTH = 40
_GAP = 2
_STYLES: dict[str, Style] = {"": "", "quiet": "dim", **SEVERITY_STYLE}
_ASCII = ((" · ", ", "), ("·", ","), ("…", "..."), ("×", "x"), ("└ ", "- "))


def picture_text(
    facts: Facts,
    findings: Sequence[Finding],
    services: Sequence[Service] = (),
    *,
    width: int,
    color: bool,
    is_plain: bool = False,
) -> str:
    """Return the drawing, no line wider than ``width`` (40 at least). ``is_plain`` draws with ASCII alone."""
    page = _Page(max(width, MIN_WIDTH), color=color, is_plain=is_plain)
    return "\n".join(line.rstrip() for line in page.lines(host_picture(facts, findings, services))) + "\n"


def _numbers(marks: Sequence[int]) -> str:
    return "".join(f" [{mark}]" for mark in marks)


class _Page:
    def __init__(self, width: int, *, color: bool, is_plain: bool) -> None:
        self.width = width
        self.color = color
        self.is_plain = is_plain

    def lines(self, picture: HostPicture) -> Iterator[str]:
        yield from self._paragraph(picture.title, "bold")
        yield from self._paragraph(" · ".join(picture.about), "dim")
        yield ""
        yield from self._panels(picture.panels)
        if picture.crossings:
            yield ""
            yield from self._paragraph("Across nodes", "bold")
            for crossing in picture.crossings:
                text, style = crossing_line(crossing) + _numbers(crossing.marks), _STYLES[picture.look(crossing.marks)]
                yield from self._paragraph(text, style, ("  ",), 4)
        for words in picture.loose:
            yield from self._paragraph(" ".join(words.pieces), "dim")
        yield ""
        yield from self._paragraph(picture.summary, "bold")
        size = len(f"  [{len(picture.notes)}] ")
        for note in picture.notes:
            first = (padded(f"  [{note.number}]", size), padded(severity_span(note.severity), 9))
            yield from self._paragraph(note.title, "", first, width_of(first))

    def _paragraph(self, text: str, style: Style, first: Sequence[Piece] = (), indent: int = 0) -> list[str]:
        said = Span(self._plain(text), style)
        return wrap_pieces([said], self.width, first=first, indent=indent, color=self.color)

    def _plain(self, text: str) -> str:
        """Return a text in characters that this terminal has."""
        text = clean(text)
        for sign, other in _ASCII if self.is_plain else ():
            text = text.replace(sign, other)
        return text.encode("ascii", "backslashreplace").decode() if self.is_plain else text

    def _measure(self, text: str) -> float:
        return columns(self._plain(text))

    def _panels(self, panels: Sequence[Panel]) -> Iterator[str]:
        count = max(1, min((self.width + _GAP) // (MIN_BOX + _GAP), len(panels)))
        width = min((self.width - _GAP * (count - 1)) // count, MAX_BOX)
        boxes = [[*self._box(panel, width)] for panel in panels]
        columns = [[line for at in column for line in boxes[at]] for column in share_out([*map(len, boxes)], count)]
        yield from map((" " * _GAP).join, zip_longest(*columns, fillvalue=" " * width))

    def _box(self, panel: Panel, width: int) -> Iterator[str]:
        left, right, low, end, across, down = "++++-|" if self.is_plain else "┌┐└┘─│"
        head = f"{left}{across} {self._fitted(panel.title, width - 6)} "
        yield paint_text(f"{head}{across * (width - columns(head) - 1)}{right}", "bold", color=self.color)
        for spans in self._inside(panel, width - 4):
            used = sum(columns(span.text) for span in spans)
            text = "".join(paint_text(span.text, span.style, color=self.color) for span in spans)
            yield f"{down} {text}{' ' * (width - 4 - used)} {down}"
        yield low + across * (width - 2) + end

    def _inside(self, panel: Panel, room: int) -> Iterator[list[Span]]:
        for chip in panel.chips:
            words = " · ".join(filter(None, (f"{chip.label} {chip.value}", chip.note)))
            yield self._cell(words, _STYLES[chip.look], room)
        if panel.note:
            yield self._cell(panel.note, "dim", room)
        for section in panel.sections:
            yield self._cell(section.title, "bold", room)
            if section.note:
                yield self._cell(" · ".join(section.note), "dim", room, 2)
            for block in section.blocks:
                yield from self._block(block, room)

    def _cell(self, text: str, style: Style, room: int, indent: int = 0) -> list[Span]:
        return [Span(" " * indent), Span(self._fitted(text, room - indent), style)]

    def _block(self, block: PictureBlock, room: int) -> Iterator[list[Span]]:
        indent = 2 + 2 * min(block.depth, 4)
        style = _STYLES[block.look]
        head = self._cell(("└ " if block.depth else "") + block.title, style or "bold", room, indent)
        aside = Span(self._fitted(block.aside + _numbers(block.marks), room - indent - 2), style)
        gap = room - sum(columns(span.text) for span in (*head, aside))
        if gap > 0:
            yield [*head, Span(" " * gap), aside]
        else:
            yield head
            yield [Span(" " * (indent + 2)), aside]
        drives = [f"{tile.name} {tile.state}".rstrip() for tile in block.tiles]
        parts = [*((line.pieces, _STYLES[line.look], " · ") for line in block.lines), (drives, "", "  ")]
        for pieces, look, between in parts:
            for line in flow_pieces(pieces, room - indent - 2, between, self._measure):
                yield self._cell(line, look, room, indent + 2)

    def _fitted(self, text: str, room: int) -> str:
        """Return the text in ``room`` columns, cut short if it takes more."""
        return self._plain(cut_text(text, room, self._measure))
