"""The facts that every part of the picture needs, the panel of each device, and words for CPUs, links and nodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Final, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from advisor.facts.block.block import Array
from advisor.facts.host_facts import Facts
from advisor.facts.network.links import Link
from advisor.facts.processors.cpulist import fold_list, format_list, parse_list
from advisor.facts.processors.pci import PcieLink
from advisor.report.devices import named_by
from advisor.report.format import natural, ranked, runs
from advisor.report.layout import listed
from advisor.report.units import format_speed
from advisor.rules.judged import number_findings
from advisor.rules.queries import by_name, is_physical, is_up, is_virtual_machine, links_below, split_ids
from advisor.rules.rule import Finding, Severity

# What there is to draw of a host, in words and without a place: one record for SVG, HTML and terminal.

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


BELOW = "below maximum"
MAX_CPU_TEXT = 34
T = TypeVar("T")


class Scene:
    """A host to draw. ``only`` is the node of a host that has just one, ``is_real`` False for a virtual machine, whose
    PCIe links are make-believe."""

    def __init__(self, facts: Facts, findings: Sequence[Finding]) -> None:
        self.facts = facts
        self.cpus = {node.id: split_ids(node.cpus) for node in facts.numa.nodes}
        self.only = next(iter(self.cpus), 0) if len(self.cpus) < 2 else None
        self.places: tuple[Place, ...] = (*self.cpus, UNKNOWN_KEY) if self.only is None else (self.only,)
        self.nowhere: Place = UNKNOWN_KEY if self.only is None else self.only
        self.links = by_name(facts)
        self.disks = {disk.name: disk for disk in facts.disks}
        self.link_ranks = ranked(self.links)
        self.disk_ranks = ranked(self.disks)
        self.is_real = not is_virtual_machine(facts)
        self.marks: dict[str, list[int]] = {}
        self.numbered = number_findings(findings)
        for group in self.numbered:
            for name in named_by(group.findings):
                self.marks.setdefault(name, []).append(group.number)

    def place(self, node: int | None) -> Place:
        """Return the panel of a device; the only node of a host is that of a device of unknown node, too."""
        return node if self.only is None and node is not None and node in self.cpus else self.nowhere

    def link_places(self, link: Link) -> tuple[Place, ...]:
        """Return the panels of the devices that a link rests on."""
        roots = links_below(link.name, self.links)
        return order_places(self.place(root.numa_node) for root in roots if is_physical(root))

    def disk_places(self, names: Iterable[str]) -> tuple[Place, ...]:
        return order_places(self.place(self.disks[name].numa_node) for name in names if name in self.disks)

    def marked(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return the numbers of the findings that name any of these."""
        return tuple(sorted({number for name in names for number in self.marks.get(name, ())}))

    def is_slow(self, pcie: PcieLink | None) -> bool:
        """Tell whether a PCIe link is real and has fewer lanes, or runs slower, than the device could."""
        if pcie is None or not self.is_real:
            return False
        return _is_less(pcie.width, pcie.width_max) or _is_less(pcie.speed_gts, pcie.speed_max_gts)

    def pcie_words(self, pcie: PcieLink | None, *, is_real: bool = True) -> str:
        """Return width and speed, now and at most: ``PCIe x8 of x16, 8 GT/s``; empty for an unknown link."""
        if pcie is None or not pcie.width or not pcie.speed_gts:
            return ""
        is_real = is_real and self.is_real
        most = f" of x{pcie.width_max}" if is_real and _is_less(pcie.width, pcie.width_max) else ""
        pace = f" of {pcie.speed_max_gts:g}" if is_real and _is_less(pcie.speed_gts, pcie.speed_max_gts) else ""
        return f"PCIe x{pcie.width}{most}, {pcie.speed_gts:g}{pace} GT/s"

    def limit_words(self, pcie: PcieLink | None) -> str:
        """Return which hop above the device is narrower than the device, and its bandwidth; else empty."""
        if not self.is_real or pcie is None or pcie.limiting is None or pcie.bandwidth_mbps is None:
            return ""
        return f"{pcie.limiting} above it carries {format_speed(pcie.bandwidth_mbps)}"

    def block(
        self,
        key: str,
        title: str,
        names: Sequence[str],
        aside: str,
        lines: Iterable[Words],
        look: Look = "",
        *,
        lanes: int | None = None,
        is_slow: bool = False,
        is_folded: bool = False,
        depth: int = 0,
        arrays: Iterable[Array] = (),
        tiles: Iterable[Tile] = (),
    ) -> PictureBlock:
        """Return a block with the numbers of its findings, without empty lines. A warning about a device is as grave
        as its gravest finding."""
        marks = self.marked([*names, *(array.device for array in arrays)])
        worst: Severity = next((group.severity for group in self.numbered if group.number in marks), "warning")
        looks: dict[Look, Look] = {"warning": worst}
        return PictureBlock(
            key,
            title,
            tuple(names),
            aside,
            tuple(replace(line, look=looks.get(line.look, line.look)) for line in lines if line.pieces),
            tuple(replace(tile, look=looks.get(tile.look, tile.look)) for tile in tiles),
            worst if is_slow else looks.get(look, look),
            depth,
            lanes,
            is_slow,
            marks,
            is_folded,
        )

    @cached_property
    def arrays(self) -> list[Array]:
        """Arrays with at least one known drive, in natural order."""
        arrays = sorted(self.facts.arrays, key=lambda array: (natural(array.name), array.name))
        return [array for array in arrays if not self.disks.keys().isdisjoint(array.disks)]

    @cached_property
    def direct(self) -> dict[str, tuple[Array, ...]]:
        """The arrays that each drive is a member of, lowest first."""
        held = ((name, [array for array in self.arrays if name in array.disks]) for name in self.disks)
        return {name: lowest_arrays(arrays) for name, arrays in held if arrays}

    @cached_property
    def across(self) -> list[Array]:
        """Arrays whose drives are on several nodes."""
        return [array for array in self.arrays if len(known_nodes(self.disk_places(array.disks))) > 1]


def _is_less(now: float | None, most: float | None) -> bool:
    return now is not None and most is not None and 0 < now < most


def lowest_arrays(arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Return the arrays that rest on none of the others."""
    return tuple(one for one in arrays if not any(_rests_on(one, other) for other in arrays if other is not one))


def _rests_on(upper: Array, lower: Array) -> bool:
    # LVM on a whole md array names that array as its member; if layers lie in between (encryption), the drives decide:
    # an array on all drives of a smaller array, and on more, is above it.
    if any(member == lower.device or member.startswith(f"{lower.device}p") for member in upper.members):
        return True
    return {*upper.disks} > {*lower.disks} and {*lower.members}.isdisjoint(upper.members)


def order_places(places: Iterable[Place]) -> tuple[Place, ...]:
    """Return nodes by number, then the panel of devices without a node."""
    return tuple(sorted({*places}, key=lambda place: (isinstance(place, str), place)))


def home_place(places: Sequence[Place]) -> Place | None:
    """Return the panel on which a device is drawn that has parts on some panels; None if it lies on several nodes."""
    return places[0] if places and len(known_nodes(places)) < 2 else None


def known_nodes(places: Iterable[Place]) -> tuple[int, ...]:
    return tuple(place for place in places if isinstance(place, int))


def by_key(items: Iterable[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    """Return items of one key together, in the order of their first."""
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def _split_rest(items: Sequence[T], most: int, is_needed: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """Return at most ``most`` items less one, the needed ones first, and the rest, each in its order."""
    if len(items) <= most:
        return list(items), []
    kept = {*sorted(range(len(items)), key=lambda at: (not is_needed(items[at]), at))[: most - 1]}
    return [one for at, one in enumerate(items) if at in kept], [one for at, one in enumerate(items) if at not in kept]


def bound_blocks(
    scene: Scene, blocks: Sequence[PictureBlock], most: int, noun: str = "link"
) -> tuple[PictureBlock, ...]:
    """Return at most ``most`` blocks: unremarkable blocks become a block that counts the rest, the last first."""
    kept, rest = _split_rest(blocks, most, lambda block: bool(block.marks) or block.look not in ("", "quiet"))
    if rest:
        names = tuple(name for block in rest for name in block.names)
        title = f"and {len(names)} more {noun}s"
        kept.append(scene.block(f"rest:{rest[0].key}", title, names, "", (), "quiet", is_folded=True))
    return tuple(kept)


def bound_crossings(crossings: Sequence[Crossing]) -> tuple[Crossing, ...]:
    """Return at most ten crossings, which can be drawn as lines of their own: the rest becomes a single crossing."""
    kept, rest = _split_rest(crossings, 10, lambda crossing: bool(crossing.marks))
    if rest:
        names = tuple(dict.fromkeys(name for one in rest for name in one.names))
        nodes = tuple(sorted({node for one in rest for node in one.nodes}))
        marks = tuple(sorted({mark for one in rest for mark in one.marks}))
        words = (", ".join(first_names(names, 6)),)
        ends = tuple(End(node, None) for node in nodes)
        kept.append(Crossing("rest", f"{len(rest)} more cross nodes", words, names, nodes, ends, marks))
    return tuple(kept)


def say(*pieces: str | None, look: Look = "") -> Words:
    """Return a line of the pieces that are not empty."""
    return Words(tuple(filter(None, pieces)), look)


def own_runs(names: Sequence[str]) -> str:
    """Return names with ranges among themselves."""
    return runs(names, ranked(names))


def cpu_words(cpus: str) -> str:
    """Return a kernel list string for a chip: exact if it is short, else its ends and its number of ranges."""
    ids = cpu_ids(cpus)
    folded = fold_list(ids)
    return folded if len(folded) <= MAX_CPU_TEXT else f"{ids[0]} … {ids[-1]} in {len(cpus.split(','))} ranges"


def cpu_ids(cpus: str) -> tuple[int, ...]:
    """Return the CPUs of a kernel list string; none for a damaged string."""
    try:
        return parse_list(cpus)
    except ValueError:
        return ()


def node_words(nodes: Iterable[int]) -> str:
    """Return ``node 1``, ``nodes 0 and 1``, ``nodes 0-7``."""
    names = [str(node) for node in sorted(nodes)]
    text = listed(names) if len(names) < 4 else format_list(map(int, names))
    return f"{'node' if len(names) == 1 else 'nodes'} {text}"


def link_state(link: Link) -> str:
    """Return ``25 Gbit/s up``, ``no carrier``, ``down``."""
    state = "no carrier" if link.carrier is False and link.state == "up" else link.state or "state unknown"
    if link.speed_mbps:
        return f"{format_speed(link.speed_mbps)} {state}"
    return f"{state}, speed unknown" if is_physical(link) and is_up(link) else state


def first_names(names: Sequence[str], most: int) -> tuple[str, ...]:
    """Return the first texts, and how many more there are; a single text more than ``most`` is named, not counted."""
    if len(names) <= most + 1:
        return tuple(names)
    return (*names[:most], f"and {len(names) - most} more")
