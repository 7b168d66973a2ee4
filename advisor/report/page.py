"""Layout that every text page shares. Importing this imports rich: only functions that print a page do so.

A page is a sequence of blocks (rich renderables) with an empty line between sections. All text from a host passes
`said`, which spells out what is not printable and never reads markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import StringIO

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.constrain import Constrain
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from advisor.report.words import clean
from advisor.words import N_

HEADING = "bold"
LABEL = "dim"
QUIET = "dim"
COMMAND = "cyan"
SEVERITY_STYLE = {"warning": "bold yellow", "advice": "bold cyan", "info": "bold"}

UNKNOWN = N_("unknown")

Cell = str | Text

PROSE_WIDTH = 100
_COLUMN_MAX = 32
_LAST_COLUMN_MIN = 24
_GAP = 2


def said(text: object, style: str = "") -> Text:
    """Text of a host, harmless."""
    return Text(clean(str(text)), style=style, overflow="fold")


def joined(parts: Iterable[Cell], between: str = " · ") -> Text:
    """Parts in one running text; empty ones are left out."""
    joint = Text(overflow="fold")
    for part in parts:
        if part:
            joint.append(between if joint else "", QUIET)
            joint.append_text(part if isinstance(part, Text) else said(part))
    return joint


def render(blocks: Iterable[RenderableType], *, width: int, color: bool) -> str:
    """The page as text, no line wider than ``width`` and none with trailing blanks."""
    console = Console(
        file=StringIO(),
        width=width,
        height=1000,
        color_system="standard" if color else None,
        force_terminal=color,
        no_color=not color,
        legacy_windows=False,
        force_jupyter=False,
        markup=False,
        emoji=False,
        highlight=False,
        # What the process' environment says of colour and width is the caller's to decide.
        _environ={},
    )
    with console.capture() as captured:
        for block in blocks:
            console.print(block)
    return "\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n")) + "\n"


def section(title: str, note: Cell, *body: RenderableType, tight: bool = False) -> RenderableType:
    """A heading with a remark beside it, what belongs to it below, and an empty line before unless ``tight``."""
    heading = joined([said(title, HEADING), note], "  ")
    return Group(*([] if tight else [Text("")]), heading, *body)


def label(text: str, indent: int = 2) -> RenderableType:
    """A small heading inside a section."""
    return Padding(Text(text, style=LABEL), (0, 0, 0, indent))


def labelled(rows: Iterable[tuple[str, Cell]], *, indent: int = 2) -> RenderableType:
    """A label and what it says, per line; rows that say nothing are left out."""
    return grid([[Text(name, style=LABEL), text] for name, text in rows if text], indent=indent)


def prose(block: RenderableType) -> RenderableType:
    """Sentences, which tire the eye when their lines are long."""
    return Constrain(block, PROSE_WIDTH)


def grid(rows: Sequence[Sequence[Cell]], *, indent: int = 2) -> RenderableType:
    """Columns as wide as their widest cell, up to a bound beyond which they wrap; the last takes what is left. Where
    too little is left for it, it stands on lines of its own below the others."""
    return _Grid([[cell if isinstance(cell, Text) else said(cell) for cell in row] for row in rows], indent)


class _Grid:
    """A grid that knows its width only when it is printed."""

    def __init__(self, cells: Sequence[Sequence[Text]], indent: int) -> None:
        self._cells = cells
        self._indent = indent
        count = max((len(row) for row in cells), default=1) - 1
        self._widths = [min(max(row[at].cell_len for row in cells), _COLUMN_MAX) for at in range(count)]

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        left = options.max_width - self._indent - sum(width + _GAP for width in self._widths)
        longest = max((row[-1].cell_len for row in self._cells if row), default=0)
        if left < min(longest, _LAST_COLUMN_MIN) and self._widths:
            yield from self._stacked()
            return
        table = Table.grid(padding=(0, _GAP, 0, 0), expand=True, pad_edge=False)
        for width in self._widths:
            table.add_column(width=width, overflow="fold")
        table.add_column(ratio=1, overflow="fold")
        for row in self._cells:
            table.add_row(*row)
        yield Padding(table, (0, 0, 0, self._indent))

    def _stacked(self) -> RenderResult:
        for row in self._cells:
            head = Text(" " * _GAP).join(cell for cell in row[:-1] if cell.cell_len)
            yield Padding(head, (0, 0, 0, self._indent))
            if row[-1].cell_len:
                yield Padding(row[-1], (0, 0, 0, self._indent + 4))
