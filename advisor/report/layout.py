"""Plain text for a terminal of a given width: cleaned, wrapped, and coloured by hand where colour is wanted.

Whatever a host, a file or a profile says goes through `clean` before it is set, so no name can move the cursor or
colour what follows it. What does not fit is wrapped at blanks; no word, number or address is ever broken: one that is
wider than the page stands on a line of its own and runs over its end. Only text of more than `MAX_PIECE` characters,
which no reader asked for, is cut, with the number of characters left out. No library is loaded for this: every page
starts quickly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, groupby, pairwise, zip_longest
from typing import Final, Literal

import msgspec

from advisor.host.patterns import lazy_regex
from advisor.report.format import clean

Style = Literal[
    "", "bold", "dim", "red", "green", "yellow", "cyan", "bold red", "bold yellow", "bold cyan", "bold blue"
]

HEADING: Final = "bold"
QUIET: Final = "dim"
COMMAND: Final = "cyan"
UNKNOWN: Final = "unknown"

MIN_WIDTH = 40
MIN_CELL = 24
MAX_CELL = 32
"""Columns of a table but the last wrap beyond this where the last one would have too little room."""
PROSE_WIDTH = 110
PROSE_CELL = 80
"""Running text in a last column that begins far to the right may be as wide as this."""
_FAR_LEFT = 4
BULLET = 4
TAB = 8
MAX_PIECE = 16 * 1024
"""Characters of one piece that are shown; how many more there are is said. JSON has them all."""

_SGR: dict[Style, str] = {
    **{"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"},
    **{"bold red": "1;31", "bold yellow": "1;33", "bold cyan": "1;36", "bold blue": "1;34"},
}
# Japanese has no blanks, and lines end between any two characters but these (kinsoku, JIS X 4051).
_NEVER_FIRST = frozenset("、。，．・：；？！）」』】〕》〉ーァィゥェォッャュョヮぁぃぅぇぉっゃゅょゎ々％℃)]},.;:!?%")
_NEVER_LAST = frozenset("（「『【〔《〈([{")
# Of two columns since Unicode 16, which older versions of Python do not know; a terminal that has one shows a gap.
_WIDE_SINCE_16 = ((0x2630, 0x2637), (0x268A, 0x268F), (0x4DC0, 0x4DFF), (0x1D300, 0x1D356), (0x1D360, 0x1D376))


class Span(msgspec.Struct, frozen=True):
    """A stretch of text in one style. One that is to be copied as a whole is not wrapped at its blanks."""

    text: str
    style: Style = ""
    is_whole: bool = False


Piece = str | Span
Cell = Piece | list[Piece]
Word = tuple[Span, ...]


def columns(text: str) -> int:
    """Columns that cleaned text takes: two for a wide East Asian character, none for a combining one."""
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def _columns_of(char: str) -> int:
    if char < "\u0300":
        # Before the first that combines, none is wide. Loading the table of all would take 0.3 ms.
        return 1
    import unicodedata

    if unicodedata.combining(char):
        return 0
    if unicodedata.east_asian_width(char) in "WF":
        return 2
    return 2 if any(low <= ord(char) <= high for low, high in _WIDE_SINCE_16) else 1


def paint_text(text: str, style: Style, *, color: bool) -> str:
    return f"\x1b[{_SGR[style]}m{text}\x1b[0m" if color and style and text else text


def padded(piece: Piece, width: int) -> Span:
    """A piece with blanks after it, up to ``width`` columns."""
    span = _to_span(piece)
    return Span(span.text + " " * (width - columns(span.text)), span.style)


def width_of(pieces: Iterable[Piece]) -> int:
    return sum(columns(_to_span(piece).text) for piece in pieces)


def join_parts(parts: Iterable[Cell], between: str = " · ") -> list[Piece]:
    """Parts in one running text; empty ones are left out."""
    found: list[Piece] = []
    for part in map(_to_pieces, parts):
        if width_of(part):
            found += [Span(between, QUIET), *part] if found else part
    return found


def command_span(command: str) -> Span:
    """A command to type, never wrapped."""
    return Span(command, COMMAND, is_whole=True)


_OWN_COMMAND = lazy_regex(r"\badvisor [a-z-]+(?: --[a-z-]+)*")


def wrap_pieces(
    pieces: Sequence[Piece], width: int, *, first: Sequence[Piece] = (), indent: int = 0, color: bool = False
) -> list[str]:
    """The pieces as lines of at most ``width`` columns, broken at blanks and next to wide characters only: a word that
    is wider stands on a line of its own.

    ``first`` stands before the first line as it is, ``indent`` blanks before the others.
    """
    return [emit_line(line, color=color) for line in _wrap_spans(pieces, width, first=first, indent=indent)]


def _wrap_spans(
    pieces: Sequence[Piece], width: int, *, first: Sequence[Piece] = (), indent: int = 0
) -> list[list[Span]]:
    head = [_to_span(piece) for piece in first]
    lines: list[list[Span]] = [head]
    used = width_of(head)
    room = max(width - indent, 1)
    has_words = False
    for word in chain.from_iterable(_part_from_sign(word, width) for word in _split_words(pieces)):
        for number, part in enumerate((word,) if width_of(word) <= room else _split_stretches(word)):
            size = width_of(part)
            gap = has_words and not number
            # Where a line begins that a word of `size` columns is the first of: further to the left if it needs the
            # room.
            begin = min(indent, _FAR_LEFT, width - size) if width - indent < size <= width else indent
            if used + gap + size > width and (has_words or used > begin):
                if not has_words and not "".join(span.text for span in lines[-1]).strip(" "):
                    lines.pop()
                lines.append([Span(" " * begin)])
                used, has_words, gap = begin, False, False
            if gap:
                # A blank keeps the style of the words on both sides of it.
                style = part[0].style if lines[-1][-1].style == part[0].style else ""
                lines[-1].append(Span(" ", style))
                used += 1
            lines[-1].extend(part)
            used, has_words = used + size, True
    return lines


def _part_from_sign(word: Word, width: int) -> tuple[Word, ...]:
    """The word; where it would only fit without the dot that belongs to it, the dot may begin a line."""
    is_too_wide = len(word) > 2 and (word[-2].text, word[-1].text) == (" ", "·") and width_of(word) > width
    return (word[:-2], word[-1:]) if is_too_wide else (word,)


def _to_span(piece: Piece) -> Span:
    span = Span(piece) if isinstance(piece, str) else piece
    text = span.text if len(span.text) <= MAX_PIECE else _shorten_text(span.text)
    return Span(clean(text), span.style, span.is_whole)


def _to_pieces(cell: Cell) -> list[Piece]:
    return cell if isinstance(cell, list) else [cell]


def _shorten_text(text: str) -> str:
    return f"{text[:MAX_PIECE]}… ({len(text) - MAX_PIECE} characters more)"


def _split_prose(text: str) -> list[str]:
    """Words at blanks; a command of advisor in a sentence, with its options, is one."""
    if "advisor " not in text:
        return text.split(" ")
    # A control character: none is left in what is printed.
    joined = _OWN_COMMAND.sub(lambda found: found[0].replace(" ", "\0"), text)
    return [word.replace("\0", " ") for word in joined.split(" ")]


def _split_words(pieces: Sequence[Piece]) -> list[Word]:
    """Words at blanks; pieces that touch without a blank are one word of several styles. A dot between two parts
    belongs to the part before it, and a range (sda … sdc) is one word, so that no line begins with a sign."""
    words: list[list[Span]] = [[]]
    for span in map(_to_span, pieces):
        for number, text in enumerate([span.text] if span.is_whole else _split_prose(span.text)):
            if number:
                words.append([])
            if text:
                words[-1].append(Span(text, span.style, span.is_whole))
    found: list[Word] = []
    is_range = False
    for word in filter(None, words):
        text = word[0].text if len(word) == 1 else ""
        if found and (is_range or text in ("·", "…")):
            found[-1] = (*found[-1], Span(" "), *word)
        else:
            found.append(tuple(word))
        is_range = text == "…" and found[-1] != tuple(word)
    return found


def _split_stretches(word: Word) -> list[Word]:
    """The word, in pieces between which a line may end although no blank is there: next to wide characters."""
    if all(span.text.isascii() or span.is_whole for span in word):
        return [word]
    chars = [Span(char, span.style) for span in word for char in span.text]
    starts = [at for at in range(1, len(chars)) if _may_part(chars[at - 1].text, chars[at].text)]
    return [_merge_spans(chars[begin:end]) for begin, end in pairwise((0, *starts, len(chars)))]


def _may_part(before: str, after: str) -> bool:
    if columns(before) < 2 and columns(after) < 2:
        return False
    is_mark = not columns(after) or after in _NEVER_FIRST or before in _NEVER_LAST
    return not is_mark


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

    Running text stops at 110 columns, as longer lines are hard to read; commands and lines of files are never wrapped.
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

    def section(self, title: str, note: Sequence[Piece], *, is_apart: bool = True) -> None:
        """A heading with a remark on its line, and an empty line before it if it is ``is_apart``."""
        if is_apart:
            self.blank()
        first = (Span(title, HEADING), "  ") if note else (Span(title, HEADING),)
        self._lines += wrap_pieces(note, self.width, first=first, indent=2, color=self.color)

    def bullet(self, *pieces: Piece, indent: int = 2) -> None:
        self._lines += wrap_pieces(pieces, self.prose, first=(" " * indent, "- "), indent=indent + 2, color=self.color)

    def bulleted(self, heading: str, items: Iterable[Cell]) -> None:
        """A heading and a bullet for each item; nothing where there is none. All texts go on in one column, that of the
        widest word that fits the page."""
        cells = [_to_pieces(item) for item in items]
        sizes = (width_of(word) for cell in cells for word in _split_words(cell))
        hang = min((self.prose - size for size in sizes if self.prose - BULLET < size <= self.prose), default=BULLET)
        if cells:
            self.heading(heading)
        for cell in cells:
            self._lines += wrap_pieces(cell, self.prose, first=("  ", "- "), indent=hang, color=self.color)

    def labelled(self, rows: Iterable[tuple[str, Sequence[Piece]]], *, indent: int = 2) -> None:
        """A label in a column of its own, its text to the right."""
        listed = list(rows)
        # A label that is wider than the page is wrapped; padding the others to it would multiply the text.
        size = min(max((columns(row[0]) for row in listed), default=0), self.prose)
        for label, pieces in listed:
            self.add_cells((padded(Span(label, QUIET), size),), pieces, indent=indent, gap=2)

    def table(self, rows: Sequence[Sequence[Cell]], *, indent: int = 2) -> None:
        """Aligned columns; the last one is wrapped, and the others where it would have too little room. Where it still
        has too little, it goes below the others."""
        cells = [[_to_pieces(cell) for cell in row] for row in rows]
        widths = [[width_of(cell) for cell in column] for column in zip(*(row[:-1] for row in cells), strict=True)]
        full = [max(column) for column in widths]
        words = [_widest_word(cell[at] for cell in cells) for at in range(len(full))]
        for sizes in (full, [min(size, max(MAX_CELL, word)) for size, word in zip(full, words, strict=True)]):
            hang = indent + sum(size + 2 for size in sizes)
            room = min(self.width - hang, max(self.prose - hang, PROSE_CELL))
            if not any(_is_cramped(row[-1], room, self.prose - indent - 4) for row in cells):
                self._side_by_side(cells, (*sizes, max(room, 1)), indent)
                return
        for row in cells:
            if indent + sum(size + 2 for size in full) <= self.width:
                self._side_by_side([row[:-1]], full, indent)
            else:
                self.add(*join_parts(row[:-1]), indent=indent, hang=2)
            if width_of(row[-1]):
                self.add(*row[-1], indent=indent + 4)

    def _side_by_side(self, rows: Sequence[Sequence[list[Piece]]], sizes: Sequence[int], indent: int) -> None:
        for row in rows:
            wrapped = (_wrap_spans(cell, size) for cell, size in zip(row, sizes, strict=True))
            for parts in zip_longest(*wrapped, fillvalue=()):
                line: list[Span] = []
                for part, size in zip(parts, sizes, strict=True):
                    line += (*part, Span(" " * (size + 2 - width_of(part))))
                self._lines.append(emit_line((Span(" " * indent), *line), color=self.color))

    def add_cells(self, cells: Sequence[Piece], pieces: Sequence[Piece], *, indent: int = 2, gap: int = 0) -> None:
        """Cells that are padded already, and wrapped text to their right; below them where too little room is left."""
        first: tuple[Piece, ...] = (" " * indent, *cells, " " * gap)
        is_bullet = bool(pieces) and isinstance(pieces[0], str) and pieces[0].startswith("- ")
        if is_bullet:
            # One of several texts of a label: its lines go on behind the dash.
            first, pieces = (*first, "- "), (str(pieces[0])[2:], *pieces[1:])
        hang = width_of(first)
        if _is_cramped(pieces, self.prose - hang, MAX_PIECE):
            self.add(*cells, indent=indent)
            (self.bullet if is_bullet else self.add)(*pieces, indent=indent + 4)
            return
        self._lines += wrap_pieces(pieces, self.prose, first=first, indent=hang, color=self.color)

    def verbatim(self, text: str, style: Style = "", *, indent: int = 0) -> None:
        """A line of a file as it is, its blanks too, on one line however long it is, so that it can be pasted."""
        self._lines.append(emit_line([Span(" " * indent), Span(clean(text.expandtabs(TAB)), style)], color=self.color))

    def command(self, command: str, *, indent: int = 2) -> None:
        """A command to type, on one line however long it is, so that it can be pasted."""
        self._lines.append(emit_line([Span(" " * indent), Span(clean(command), COMMAND)], color=self.color))


def _widest_word(cells: Iterable[Sequence[Piece]]) -> int:
    return max((width_of(word) for cell in cells for word in _split_words(cell)), default=0)


def _is_cramped(pieces: Sequence[Piece], room: int, below: int) -> bool:
    """Whether a last column of ``room`` is too narrow: it would not hold a word that has room on a line ``below``, or
    leaves less than `MIN_CELL` for what does not fit."""
    if width_of(pieces) <= room:
        return False
    return room < MIN_CELL or any(room < width_of(word) <= below for word in _split_words(pieces))


def value_words(value: str) -> str:
    """A value as a page shows it: one of blanks alone is a word that can be seen."""
    return value if value.strip() else "(empty)"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """``1 value``, ``7 values``."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def counted_values(values: int, files: int) -> str:
    """``7 values and 1 file``, without what there is none of."""
    counts = ((values, counted(values, "value")), (files, counted(files, "file")))
    return listed([text for count, text in counts if count] or [counts[0][1]])


def listed(parts: Sequence[str], *, last: str = "and") -> str:
    """``a, b and c``."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {last} {parts[-1]}"
