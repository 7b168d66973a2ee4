"""How links, disks and arrays are put together for reading: who stands below whom, what is alike, what belongs "
"where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from advisor.facts.disks import Disk
from advisor.facts.host_facts import Facts
from advisor.facts.links import Link
from advisor.facts.numa import Node
from advisor.facts.pci import PcieLink
from advisor.report.format import natural
from advisor.rules.finding import Finding
from advisor.rules.queries import by_name, is_physical, nodes_below

if TYPE_CHECKING:
    from advisor.facts.array import Array

T = TypeVar("T")

_ACROSS: Literal["across"] = "across"
_NOWHERE: Literal["nowhere"] = "nowhere"
_Key = int | Literal["across", "nowhere"]


class LinkRow(msgspec.Struct, frozen=True):
    """A link and how many links deep it is stacked."""

    link: Link
    depth: int


def stack_links(links: Iterable[Link]) -> tuple[LinkRow, ...]:
    """Physical links first, each link after all that it rests on, as near to them as may be."""
    order = sorted(links, key=_link_rank)
    known = {link.name for link in order}
    bearing: dict[str, list[Link]] = {}
    for link in order:
        for name in known.intersection(link.lower):
            bearing.setdefault(name, []).append(link)
    waiting = {link.name: len(known.intersection(link.lower)) for link in order}
    depths = {link.name: 0 for link in order}
    rows: list[LinkRow] = []
    pending = [link for link in reversed(order) if not waiting[link.name]]
    while pending:
        link = pending.pop()
        rows.append(LinkRow(link, depths[link.name]))
        for upper in reversed(bearing.get(link.name, [])):
            depths[upper.name] = max(depths[upper.name], depths[link.name] + 1)
            waiting[upper.name] -= 1
            if not waiting[upper.name]:
                pending.append(upper)
    # What still waits rests on itself: no kernel allows it, a damaged capture may say so.
    return (*rows, *(LinkRow(link, 0) for link in order if waiting[link.name]))


def _link_rank(link: Link) -> tuple[object, ...]:
    return not is_physical(link), link.name == "lo", natural(link.name), link.name


class Shelf(msgspec.Struct, frozen=True):
    """Devices that belong together: those of a node, those that lie across nodes, or those that have none."""

    title: str
    node: Node | None
    links: tuple[Link, ...]
    disks: tuple[Disk, ...]
    arrays: tuple[Array, ...]

    @property
    def has_devices(self) -> bool:
        return bool(self.links or self.disks or self.arrays)


def list_shelves(facts: Facts) -> tuple[Shelf, ...]:
    """One per node, also where it is empty; where there are several nodes, what belongs to none of them on its own."""
    nodes = facts.numa.nodes
    if len(nodes) < 2:
        title = f"Node {nodes[0].id}" if nodes else "Devices"
        return (Shelf(title, nodes[0] if nodes else None, facts.links, facts.disks, facts.arrays),)
    known = by_name(facts)
    ids = frozenset(node.id for node in nodes)
    links = _sorted_out(facts.links, ids, lambda link: nodes_below(link, known))
    disks = _sorted_out(facts.disks, ids, lambda disk: () if disk.numa_node is None else (disk.numa_node,))
    arrays = _sorted_out(facts.arrays, ids, lambda array: array.numa_nodes)

    def shelf(title: str, key: _Key, node: Node | None = None) -> Shelf:
        return Shelf(title, node, tuple(links.get(key, ())), tuple(disks.get(key, ())), tuple(arrays.get(key, ())))

    own = tuple(shelf(f"Node {node.id}", node.id, node) for node in nodes)
    rest = (shelf("Across nodes", _ACROSS), shelf("No node known", _NOWHERE))
    return (*own, *(each for each in rest if each.has_devices))


def _sorted_out(devices: Iterable[T], ids: Set[int], nodes_of: Callable[[T], Iterable[int]]) -> dict[_Key, list[T]]:
    found: dict[_Key, list[T]] = {}
    for device in devices:
        nodes = frozenset(nodes_of(device))
        key: _Key = _ACROSS if len(nodes) > 1 else next(iter(nodes & ids), _NOWHERE)
        found.setdefault(key, []).append(device)
    return found


def named_by(findings: Iterable[Finding]) -> frozenset[str]:
    """Every word of evidence that may be the name of a device."""
    names: set[str] = set()
    for finding in findings:
        for value in finding.evidence.values():
            names.update(value if isinstance(value, tuple) else [value] if isinstance(value, str) else [])
    return frozenset(names)


def fold_rows(rows: tuple[LinkRow, ...], shown: int, never: frozenset[str]) -> tuple[tuple[LinkRow, ...], int]:
    """The first rows and those that must be seen, and how many are left out."""
    kept = tuple(row for number, row in enumerate(rows) if number < shown or row.link.name in never)
    return kept, len(rows) - len(kept)


def pcie_shape(pcie: PcieLink | None) -> tuple[float | None, ...]:
    """What two PCIe links must share to be alike: speed and width, now and at most; not the bridges above them."""
    return () if pcie is None else (pcie.speed_gts, pcie.speed_max_gts, pcie.width, pcie.width_max)


def group_disks(disks: Iterable[Disk]) -> tuple[tuple[Disk, ...], ...]:
    """Disks that differ in name, serial and address only, together; one with a mount point stays alone."""
    groups: dict[object, list[Disk]] = {}
    for disk in sorted(disks, key=lambda disk: (natural(disk.name), disk.name)):
        look = (disk.kind, disk.size_bytes, disk.model, disk.rotational, disk.scheduler)
        groups.setdefault((*look, *pcie_shape(disk.pcie), disk.name if disk.mountpoints else ""), []).append(disk)
    return tuple(tuple(group) for group in groups.values())
