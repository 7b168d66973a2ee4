"""Blocks of a page in columns: running text, labels with their texts, and grids.

A page is a sequence of blocks with an empty line between sections. All text from a host passes `said`, which spells out
what is not printable and never reads markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Final, Protocol

from advisor.i18n import N_
from advisor.report.format import clean
from advisor.report.layout import Span, Style, columns, emit_line

HEADING: Final = "bold"
LABEL: Final = "dim"
QUIET: Final = "dim"
COMMAND: Final = "cyan"
SEVERITY_STYLE: Final[dict[str, Style]] = {
    **{"critical": "bold red", "warning": "bold yellow"},
    **{"advice": "bold cyan", "info": "bold"},
}

UNKNOWN = N_("unknown")

PROSE_WIDTH = 100
_COLUMN_MAX = 32
_LAST_COLUMN_MIN = 24
_GAP = 2


class Block(Protocol):
    """A part of a page."""

    def lines(self, width: int) -> Iterator[Sequence[Span]]:
        """Its lines, none wider than so many columns."""


class PageText:
    """Running text of several styles, wrapped at blanks; a word that no line has room for is broken."""

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self.spans = tuple(spans)
        self.plain = "".join(span.text for span in self.spans)
        self.width = columns(self.plain)

    def __bool__(self) -> bool:
        return bool(self.plain)

    def lines(self, width: int) -> Iterator[Sequence[Span]]:
        start = 0
        for line in self.plain.split("\n"):
            stops = [0, *_breaks(line, width), len(line)]
            for begin, end in pairwise(stops):
                yield self._between(start + begin, start + begin + len(line[begin:end].rstrip()))
            start += len(line) + 1

    def _between(self, begin: int, end: int) -> list[Span]:
        found, at = [], 0
        for text, style in self.spans:
            part = text[max(begin - at, 0) : max(end - at, 0)]
            if part:
                found.append(Span(part, style))
            at += len(text)
        return found


class UnbrokenText(PageText):
    """Lines that are to be copied: never wrapped, however narrow the page."""

    def lines(self, width: int) -> Iterator[Sequence[Span]]:
        return super().lines(max(width, self.width))


Cell = str | PageText


def _breaks(text: str, width: int) -> Iterator[int]:
    """Where lines of at most ``width`` columns begin after the first."""
    if width >= len(text) and text.isascii():
        return
    used = 0
    for word in _words().finditer(text):
        start, size = word.start(), columns(word[0].rstrip())
        if width - used >= size:
            used += columns(word[0])
        elif size > width:
            for part in _folded(word[0], width):
                if start:
                    yield start
                start, used = start + len(part), columns(part)
        elif used and start:
            yield start
            used = columns(word[0])


@cache
def _words() -> re.Pattern[str]:
    return re.compile(r"\s*\S+\s*")


def _folded(word: str, width: int) -> list[str]:
    """The word in pieces of at most ``width`` columns."""
    parts, used = [""], 0
    for char in word:
        size = columns(char)
        if used + size > width and parts[-1]:
            parts.append("")
            used = 0
        parts[-1] += char
        used += size
    return parts


def said(text: object, style: Style = "") -> PageText:
    """Text of a host, harmless."""
    return PageText((Span(clean(str(text)), style),))


def joined(parts: Iterable[Cell], between: str = " · ") -> PageText:
    """Parts in one running text; empty ones are left out."""
    spans: list[Span] = []
    for part in parts:
        if part:
            if spans:
                spans.append(Span(between, QUIET))
            spans += (part if isinstance(part, PageText) else said(part)).spans
    return PageText(spans)


def lined(parts: Iterable[PageText]) -> PageText:
    """Parts one below the other."""
    spans = [span for part in parts for span in (Span("\n"), *part.spans)]
    return PageText(spans[1:])


def render(blocks: Iterable[Block], *, width: int, color: bool) -> str:
    """The page as text, no line wider than ``width`` and none with trailing blanks."""
    lines = [emit_line(line, color=color) for block in blocks for line in block.lines(width)]
    return "\n".join(lines).rstrip("\n") + "\n"


class _Section:
    def __init__(self, heading: PageText, body: Sequence[Block], *, is_apart: bool) -> None:
        self._blocks: tuple[Block, ...] = (*([PageText()] if is_apart else []), heading, *body)

    def lines(self, width: int) -> Iterator[Sequence[Span]]:
        for block in self._blocks:
            yield from block.lines(width)


def section(title: str, note: Cell, *body: Block, tight: bool = False) -> Block:
    """A heading with a remark on its line, what belongs to it below, and an empty line before unless ``tight``."""
    return _Section(joined([said(title, HEADING), note], "  "), body, is_apart=not tight)


class _Within:
    """A block in a part of the width."""

    def __init__(self, block: Block, *, indent: int = 0, most: int | None = None) -> None:
        self._block = block
        self._indent = indent
        self._most = most

    def lines(self, width: int) -> Iterator[Sequence[Span]]:
        inner = min(width, width if self._most is None else self._most) - self._indent
        for line in self._block.lines(inner):
            yield (Span(" " * self._indent), *line)


def label(text: str, indent: int = 2) -> Block:
    """A small heading inside a section."""
    return _Within(PageText((Span(text, LABEL),)), indent=indent)


def labelled(rows: Iterable[tuple[str, Cell]], *, indent: int = 2) -> Block:
    """A label and what it says, per line; rows that say nothing are left out."""
    return grid([[PageText((Span(name, LABEL),)), text] for name, text in rows if text], indent=indent)


def prose(block: Block) -> Block:
    """Sentences, which tire the eye when their lines are long."""
    return _Within(block, most=PROSE_WIDTH)


def grid(rows: Sequence[Sequence[Cell]], *, indent: int = 2) -> Block:
    """Columns as wide as their widest cell, up to a bound beyond which they wrap; the last takes what is left. Where
    too little is left for it, it stands on lines of its own below the others."""
    return _Within(
        _Grid([[cell if isinstance(cell, PageText) else said(cell) for cell in row] for row in rows]), indent=indent
    )


class _Grid:
    """A grid that knows its width only when it is printed."""

    def __init__(self, cells: Sequence[Sequence[PageText]]) -> None:
        self._cells = cells
        count = max((len(row) for row in cells), default=1) - 1
        self._widths = [min(max(row[at].width for row in cells), _COLUMN_MAX) for at in range(count)]

    def lines(self, width: int) -> Iterator[Sequence[Span]]:
        left = width - sum(width + _GAP for width in self._widths)
        longest = max((row[-1].width for row in self._cells if row), default=0)
        is_stacked = left < min(longest, _LAST_COLUMN_MIN) and bool(self._widths)
        for row in self._cells:
            yield from _stacked(row, width) if is_stacked else self._side_by_side(row, max(left, 1))

    def _side_by_side(self, row: Sequence[PageText], left: int) -> Iterator[Sequence[Span]]:
        sizes = (*self._widths, left)
        cells = [list(cell.lines(size)) for cell, size in zip(row, sizes, strict=True)]
        for number in range(max(map(len, cells))):
            line: list[Span] = []
            for cell, size in zip(cells, sizes, strict=True):
                parts = cell[number] if number < len(cell) else ()
                line += parts
                line.append(Span(" " * (size + _GAP - sum(columns(part.text) for part in parts))))
            yield line[:-1]


def _stacked(row: Sequence[PageText], width: int) -> Iterator[Sequence[Span]]:
    spans = [span for cell in row[:-1] if cell.width for span in (Span(" " * _GAP), *cell.spans)]
    yield from PageText(spans[1:]).lines(width)
    if row[-1].width:
        yield from _Within(row[-1], indent=4).lines(width)
