"""What there is to draw of a host, in words and without a place: one record for SVG, HTML and terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from advisor.rules.finding import Severity

Look = Literal["", "quiet"] | Severity
SectionName = Literal["links", "accelerators", "drives", "services"]
CrossingKind = Literal["array", "link", "service", "rest"]

UNKNOWN_KEY: Final = "unknown"
"""The panel of devices whose node the host does not report."""

Place = int | Literal["unknown"]


class Words(msgspec.Struct, frozen=True):
    """One paragraph of a block; a line may break between any two pieces."""

    pieces: tuple[str, ...]
    look: Look = ""


class Tile(msgspec.Struct, frozen=True):
    """One drive of a group. ``state`` says in a word what is odd about it, or is empty."""

    name: str
    state: str = ""
    look: Look = ""
    load: int = 0


class PictureBlock(msgspec.Struct, frozen=True):
    """One device, several alike ones, or a service.

    ``names`` are the names of all that it stands for; ``folded`` is True where not each of them is written out.
    ``lanes`` is the PCIe width of the wire that leads to it, None for what hangs on no PCIe link of its own;
    ``is_below`` marks a wire that runs below its maximum. ``marks`` are the numbers of the findings that name it.
    """

    key: str
    title: str
    names: tuple[str, ...]
    aside: str = ""
    lines: tuple[Words, ...] = ()
    tiles: tuple[Tile, ...] = ()
    look: Look = ""
    depth: int = 0
    lanes: int | None = None
    is_below: bool = False
    marks: tuple[int, ...] = ()
    folded: bool = False
    load: int = 0
    """The colour of its use over a span (`advisor.report.picture.content.add_loads`): 0, for none, to 4."""


class PictureSection(msgspec.Struct, frozen=True):
    """Blocks of one kind; ``title`` is the word above them, ``note`` what is true of all of them."""

    name: SectionName
    title: str
    blocks: tuple[PictureBlock, ...]
    note: tuple[str, ...] = ()


class Chip(msgspec.Struct, frozen=True):
    """CPUs or memory of a node: what it is, how much, and a remark."""

    label: str
    value: str
    note: str
    look: Look = ""
    load: int = 0


class Panel(msgspec.Struct, frozen=True):
    """A node, or what has none. ``place`` is the node's id."""

    place: Place
    title: str
    note: str
    chips: tuple[Chip, ...]
    sections: tuple[PictureSection, ...]

    @property
    def blocks(self) -> tuple[PictureBlock, ...]:
        return tuple(block for section in self.sections for block in section.blocks)


class End(msgspec.Struct, frozen=True):
    """Where a line ends: at a block of a panel, or at the panel's own CPUs where ``block`` is None."""

    place: Place
    block: str | None


class Crossing(msgspec.Struct, frozen=True):
    """Something that lies on several nodes, or works across them: drawn as a line, and described in words."""

    kind: CrossingKind
    title: str
    words: tuple[str, ...]
    names: tuple[str, ...]
    nodes: tuple[int, ...]
    ends: tuple[End, ...]
    marks: tuple[int, ...] = ()


class PictureNote(msgspec.Struct, frozen=True):
    """A finding next to the picture, by its number there."""

    number: int
    severity: Severity
    title: str


class CeilingBar(msgspec.Struct, frozen=True):
    """What a stage lets through; ``share`` is that of the longest bar. ``is_binding`` marks the stage that binds."""

    title: str
    value: str
    share: float
    is_binding: bool = False

    @property
    def words(self) -> str:
        return f"{self.title}: {self.value}{' (binds)' if self.is_binding else ''}"


class CeilingPicture(msgspec.Struct, frozen=True):
    """The ceiling of the whole host."""

    title: str
    bars: tuple[CeilingBar, ...]
    note: str = ""


class HostPicture(msgspec.Struct, frozen=True):
    """All of it. ``loose`` is what lies on no node: links without a device; ``summary`` is one line."""

    title: str
    about: tuple[str, ...]
    summary: str
    panels: tuple[Panel, ...]
    crossings: tuple[Crossing, ...]
    loose: tuple[Words, ...]
    loose_names: tuple[str, ...]
    notes: tuple[PictureNote, ...]
    ceiling: CeilingPicture | None = None

    def look(self, marks: Sequence[int]) -> Severity:
        """The severity of the gravest finding of some, by their numbers; a warning where there is none."""
        return next((note.severity for note in self.notes if note.number in marks), "warning")
