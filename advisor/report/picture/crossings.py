"""What lies on several nodes: arrays, links, and services that work across them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from advisor.facts.array import Array
from advisor.report.format import natural, ranked, runs
from advisor.report.picture.arrays import Stacking, lowest_arrays
from advisor.report.picture.drives import groups_of
from advisor.report.picture.places import PictureFacts, known_nodes
from advisor.report.picture.records import Crossing, End, Panel, Place
from advisor.report.picture.wording import first_names, node_words

MAX_CROSSINGS: Final = 10


def array_crossings(around: PictureFacts, stack: Stacking) -> Iterator[Crossing]:
    """The arrays whose drives are on several nodes; those on the same drives together, named by the lowest."""
    groups: dict[frozenset[str], list[Array]] = {}
    for array in stack.across:
        groups.setdefault(frozenset(array.disks), []).append(array)
    for arrays in sorted(groups.values(), key=lambda group: natural(group[0].name)):
        yield _array_crossing(around, stack, arrays)


def _array_crossing(around: PictureFacts, stack: Stacking, arrays: Sequence[Array]) -> Crossing:
    base = list(lowest_arrays(arrays) or arrays)
    names = tuple(array.name for array in (*base, *(array for array in arrays if array not in base)))
    first = base[0]
    places = around.disk_places(first.disks)
    ends = tuple(
        End(place, group.key)
        for place in places
        for group in groups_of(around, stack, place)
        if frozenset(group.names).intersection(first.disks)
    )
    shown = [array.name for array in base]
    words = (
        f"{first.manager} {first.level or 'of unknown level'} {first.state or 'state unknown'}",
        *(_on_node(around, first, node) for node in known_nodes(places)),
        *([f"carries {', '.join(first_names(names[len(base) :], 4))}"] if len(names) > len(base) else []),
    )
    marks = around.marked([*names, *(array.device for array in arrays)])
    title = (
        f"{runs(shown, ranked(shown))} {'crosses' if len(shown) == 1 else 'cross'} {node_words(known_nodes(places))}"
    )
    return Crossing("array", title, words, names, known_nodes(places), ends, marks)


def _on_node(around: PictureFacts, array: Array, node: int) -> str:
    here = [name for name in array.disks if name in around.disks and around.disks[name].numa_node == node]
    return f"on node {node}: {runs(here, around.disk_ranks)}"


def bounded_crossings(crossings: Sequence[Crossing], panels: Sequence[Panel]) -> tuple[Crossing, ...]:
    """Not more than can be drawn as lines of their own: what is left becomes one, from node to node.

    An end at a block that was folded away ends at its panel.
    """
    blocks = {(panel.place, block.key) for panel in panels for block in panel.blocks}
    found = [msgspec.structs.replace(one, ends=_crossing_ends(one, blocks)) for one in crossings]
    if len(found) <= MAX_CROSSINGS:
        return tuple(found)
    ranked_by_need = sorted(range(len(found)), key=lambda at: (not found[at].marks, at))
    kept = frozenset(ranked_by_need[: MAX_CROSSINGS - 1])
    rest = [one for at, one in enumerate(found) if at not in kept]
    names = tuple(dict.fromkeys(name for one in rest for name in one.names))
    nodes = tuple(sorted({node for one in rest for node in one.nodes}))
    fold = Crossing(
        "rest",
        f"{len(rest)} more cross nodes",
        (", ".join(first_names(names, 6)),),
        names,
        nodes,
        tuple(End(node, None) for node in nodes),
        tuple(sorted({mark for one in rest for mark in one.marks})),
    )
    return (*(one for at, one in enumerate(found) if at in kept), fold)


def _crossing_ends(crossing: Crossing, blocks: set[tuple[Place, str]]) -> tuple[End, ...]:
    ends = (end if (end.place, end.block) in blocks else End(end.place, None) for end in crossing.ends)
    return tuple(dict.fromkeys(ends))
