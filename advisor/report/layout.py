"""Plain text for a terminal of a given width: cleaned, wrapped, and coloured by hand where colour is wanted.

Whatever a host, a file or a profile says goes through `clean` before it is set, so no name can move the cursor, colour
what follows it, or run over the end of a line. What does not fit is wrapped, and only text of more than `MAX_PIECE`
characters, which no reader asked for, is cut, with the number of characters left out. No library is loaded
for this: a plan and its apply print little, and start quickly.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import Final, Literal, NamedTuple

from advisor.host.patterns import lazy_regex
from advisor.i18n import N_, _, ngettext
from advisor.report.format import clean

Style = Literal["", "bold", "dim", "red", "green", "yellow", "cyan", "bold red", "bold yellow", "bold cyan"]

MIN_WIDTH: Final = 40
MIN_CELL: Final = 24
PROSE_WIDTH: Final = 110
TAB: Final = 8
MAX_PIECE: Final = 16 * 1024
"""Characters of one piece that are shown; how many more there are is said. JSON has them all."""

_SGR: Final[dict[Style, str]] = {
    **{"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"},
    **{"bold red": "1;31", "bold yellow": "1;33", "bold cyan": "1;36"},
}
_BREAK_AFTER: Final = "/,;:=|"
# Japanese has no blanks, and lines end between any two characters but these (kinsoku, JIS X 4051).
_NEVER_FIRST: Final = frozenset(
    "、。，．・：；？！）」』】〕》〉ーァィゥェォッャュョヮぁぃぅぇぉっゃゅょゎ々％℃)]},.;:!?%"
)
_NEVER_LAST: Final = frozenset("（「『【〔《〈([{")
_SHELL_WORD: Final = lazy_regex(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|[^ ])+""")


class Span(NamedTuple):
    """A stretch of text in one style."""

    text: str
    style: Style = ""


Piece = str | Span
Word = tuple[Span, ...]


def columns(text: str) -> int:
    """Columns that cleaned text takes: two for a wide East Asian character, none for a combining one."""
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def _columns_of(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def paint_text(text: str, style: Style, *, color: bool) -> str:
    return f"\x1b[{_SGR[style]}m{text}\x1b[0m" if color and style and text else text


def padded(piece: Piece, width: int) -> Span:
    """A piece with blanks after it, up to ``width`` columns."""
    span = _to_span(piece)
    return Span(span.text + " " * (width - columns(span.text)), span.style)


def width_of(pieces: Iterable[Piece]) -> int:
    return sum(columns(_to_span(piece).text) for piece in pieces)


def wrap_pieces(
    pieces: Sequence[Piece], width: int, *, first: Sequence[Piece] = (), indent: int = 0, color: bool = False
) -> list[str]:
    """The pieces as lines of at most ``width`` columns, broken at blanks and next to wide characters; only a word that
    is longer than a whole line is broken, after a slash or comma where there is one.

    ``first`` stands before the first line as it is, ``indent`` blanks before the others.
    """
    head = [_to_span(piece) for piece in first]
    lines: list[list[Span]] = [head]
    used = width_of(head)
    room = max(width - indent, 1)
    has_words = False
    for word in _split_words(pieces):
        # What has room on a line of its own is not broken: it stands further to the left there.
        fits = room < width_of(word) <= width
        parts = (word,) if fits else (part for one in _split_stretches(word) for part in _split_word(one, room))
        for number, part in enumerate(parts):
            size = width_of(part)
            gap = has_words and not number
            if used + gap + size > width and (has_words or used > min(indent, width - size)):
                begin = max(min(indent, width - size), 0)
                lines.append([Span(" " * begin)])
                used, has_words, gap = begin, False, False
            if gap:
                # A blank keeps the style of the words on both sides of it.
                style = part[0].style if lines[-1][-1].style == part[0].style else ""
                lines[-1].append(Span(" ", style))
                used += 1
            lines[-1].extend(part)
            used, has_words = used + size, True
    return [emit_line(line, color=color) for line in lines]


def _to_span(piece: Piece) -> Span:
    text, style = Span(piece) if isinstance(piece, str) else piece
    return Span(clean(text if len(text) <= MAX_PIECE else _shorten_text(text)), style)


def _shorten_text(text: str) -> str:
    return _("{start}… ({count} characters more)").format(start=text[:MAX_PIECE], count=len(text) - MAX_PIECE)


def _split_words(pieces: Sequence[Piece]) -> list[Word]:
    """Words at blanks; pieces that touch without a blank are one word of several styles."""
    words: list[list[Span]] = [[]]
    for span in map(_to_span, pieces):
        for number, text in enumerate(span.text.split(" ")):
            if number:
                words.append([])
            if text:
                words[-1].append(Span(text, span.style))
    return [tuple(word) for word in words if word]


def _split_stretches(word: Word) -> list[Word]:
    """The word, in pieces between which a line may end although no blank is there: next to wide characters."""
    if all(span.text.isascii() for span in word):
        return [word]
    chars = [Span(char, span.style) for span in word for char in span.text]
    starts = [at for at in range(1, len(chars)) if _may_part(chars[at - 1].text, chars[at].text)]
    return [_merge_spans(chars[begin:end]) for begin, end in pairwise((0, *starts, len(chars)))]


def _may_part(before: str, after: str) -> bool:
    if columns(before) < 2 and columns(after) < 2:
        return False
    is_mark = not columns(after) or after in _NEVER_FIRST or before in _NEVER_LAST
    return not is_mark


def _split_word(word: Word, room: int) -> list[Word]:
    """The word, or pieces of it that fit into ``room`` columns each."""
    if width_of(word) <= room:
        return [word]
    chars = [Span(char, span.style) for span in word for char in span.text]
    parts: list[Word] = []
    start = 0
    while start < len(chars):
        end = _break_at(chars, start, room)
        parts.append(_merge_spans(chars[start:end]))
        start = end
    return parts


def _break_at(chars: Sequence[Span], start: int, room: int) -> int:
    """Where a line ends that begins at ``start``."""
    end, used = start, 0
    while end < len(chars) and used + columns(chars[end].text) <= room:
        used += columns(chars[end].text)
        end += 1
    end = max(end, start + 1)
    if end == len(chars):
        return end
    middle = start + (end - start) // 2
    good = (at + 1 for at in range(end - 1, middle, -1) if chars[at].text in _BREAK_AFTER)
    return next(good, end)


def _merge_spans(spans: Iterable[Span]) -> Word:
    runs = groupby(spans, key=lambda span: span.style)
    return tuple(Span("".join(span.text for span in run), style) for style, run in runs)


def emit_line(line: Iterable[Span], *, color: bool) -> str:
    """One line as it is printed, without the blanks at its end."""
    spans = list(_merge_spans(line))
    if not any(span.text.strip(" ") for span in spans):
        # Nothing but blanks is an empty line, painted or not.
        return ""
    return "".join(paint_text(span.text, span.style, color=color) for span in spans).rstrip(" ")


class Page:
    """Lines of text, set one after the other. ``width`` below 40 columns counts as 40.

    Running text stops at 110 columns, as longer lines are hard to read; commands and lines of files use all.
    """

    def __init__(self, width: int, *, color: bool) -> None:
        self.width = max(width, MIN_WIDTH)
        self.prose = min(self.width, PROSE_WIDTH)
        self.color = color
        self._lines: list[str] = []

    @property
    def text(self) -> str:
        return "\n".join(self._lines).rstrip("\n") + "\n"

    def blank(self) -> None:
        """One empty line, never two, and none at the top."""
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def add(self, *pieces: Piece, indent: int = 0, hang: int = 0) -> None:
        """A paragraph; lines after the first stand ``hang`` columns further in."""
        first = (" " * indent,) if indent else ()
        self._lines += wrap_pieces(pieces, self.prose, first=first, indent=indent + hang, color=self.color)

    def row(self, *pieces: Piece) -> None:
        """One line, its blanks as they are; the caller knows that it fits."""
        self._lines.append(emit_line(map(_to_span, pieces), color=self.color))

    def heading(self, text: str, *more: Piece) -> None:
        self.blank()
        self.add(Span(text, "bold"), *more, hang=2)

    def bullet(self, *pieces: Piece, indent: int = 2) -> None:
        self.add("- ", *pieces, indent=indent, hang=2)

    def labelled(self, rows: Iterable[tuple[str, Sequence[Piece]]], *, indent: int = 2) -> None:
        """A label in a column of its own, its text to the right."""
        listed = list(rows)
        # A label that is wider than the page is wrapped; padding the others to it would multiply the text.
        size = min(max((columns(row[0]) for row in listed), default=0), self.prose)
        for label, pieces in listed:
            self.add_cells((padded(Span(label, "dim"), size),), pieces, indent=indent, gap=2)

    def table(self, rows: Sequence[Sequence[Piece]], *, indent: int = 2) -> None:
        """Aligned columns; the last one is wrapped. Where too little room is left for it, it goes below the first."""
        if not rows:
            return
        sizes = [max(width_of((row[at],)) for row in rows) for at in range(len(rows[0]) - 1)]
        room = self.prose - indent - sum(size + 2 for size in sizes)
        if any(_is_cramped((row[-1],), room, self.prose - indent - 4) for row in rows):
            self._stacked(rows, indent)
            return
        for row in rows:
            cells = [padded(cell, size + 2) for cell, size in zip(row[:-1], sizes, strict=True)]
            self.add_cells(cells, (row[-1],), indent=indent, gap=0)

    def _stacked(self, rows: Sequence[Sequence[Piece]], indent: int) -> None:
        for row in rows:
            self.add(row[0], indent=indent, hang=2)
            for cell in row[1:]:
                if _to_span(cell).text:
                    self.add(cell, indent=indent + 4)

    def add_cells(self, cells: Sequence[Piece], pieces: Sequence[Piece], *, indent: int = 2, gap: int = 0) -> None:
        """Cells that are padded already, and wrapped text to their right; below them where too little room is left."""
        first = (" " * indent, *cells, " " * gap)
        hang = width_of(first)
        if _is_cramped(pieces, self.prose - hang, self.prose - indent - 4):
            self.add(*cells, indent=indent)
            self.add(*pieces, indent=indent + 4)
            return
        self._lines += wrap_pieces(pieces, self.prose, first=first, indent=hang, color=self.color)

    def verbatim(self, text: str, style: Style = "", *, indent: int = 0) -> None:
        """A line of a file: its blanks are kept, and what is wider than the page is broken after one of them."""
        room = max(self.width - indent, 1)
        shown = clean(text.expandtabs(TAB))
        start = 0
        while True:
            end = start + _count_fitting(shown[start : start + room + 1], room)
            blank = shown.rfind(" ", start, end) + 1
            if end < len(shown) and shown[end] != " " and shown[start:blank].strip():
                end = blank
            line = [Span(" " * indent), Span(shown[start:end], style)]
            self._lines.append(emit_line(line, color=self.color))
            start = end
            if start >= len(shown):
                return

    def command(self, command: str, *, indent: int = 2) -> None:
        """A command to type; broken at its blanks with a backslash, so that it can be pasted as it stands."""
        lines = [""]
        for word in _SHELL_WORD.findall(clean(command)):
            joined = f"{lines[-1]} {word}" if lines[-1] else word
            if columns(joined) + 2 > self.width - indent and lines[-1]:
                lines.append("  " + word)
            else:
                lines[-1] = joined
        for number, line in enumerate(lines):
            self.verbatim(line + (" \\" if number < len(lines) - 1 else ""), "cyan", indent=indent)


def _is_cramped(pieces: Sequence[Piece], room: int, below: int) -> bool:
    """Whether a last column of ``room`` is too narrow: it would break a word that has room on a line ``below``, or
    leaves less than `MIN_CELL` for what does not fit."""
    if width_of(pieces) <= room:
        return False
    return room < MIN_CELL or any(room < width_of(word) <= below for word in _split_words(pieces))


def _count_fitting(text: str, room: int) -> int:
    """How many of the characters fit into ``room`` columns: one at least."""
    used = 0
    for at, char in enumerate(text):
        used += columns(char)
        if used > room and at:
            return at
    return len(text)


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """``1 value``, ``7 values``."""
    return ngettext(f"{{count}} {noun}", f"{{count}} {plural or noun + 's'}", count).format(count=count)


_LISTED: Final = {"and": N_("{first} and {last}"), "or": N_("{first} or {last}")}


def listed(parts: Sequence[str], *, last: str = "and") -> str:
    """``a, b and c``."""
    if len(parts) < 2:
        return "".join(parts)
    return _(_LISTED.get(last, f"{{first}} {last} {{last}}")).format(first=_(", ").join(parts[:-1]), last=parts[-1])
