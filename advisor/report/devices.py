"""How links, disks and arrays are put together for reading: who stands below whom, what is alike, what belongs "
"where."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from advisor.facts.block.disks import Disk, FileSystem
from advisor.facts.host_facts import Facts
from advisor.facts.network.links import Link
from advisor.facts.processors.numa import Node
from advisor.facts.processors.pci import PcieLink
from advisor.report.format import natural, ranked, ranked_by_disk, runs
from advisor.report.layout import QUIET, UNKNOWN, Cell, Page, Span, join_parts
from advisor.report.units import format_binary, format_decimal, format_speed, times
from advisor.rules.queries import by_name, is_physical, is_up, nodes_below
from advisor.rules.rule import Finding

if TYPE_CHECKING:
    from advisor.facts.block.block import Array

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


# Links, disks and arrays as tables of a page.

_DETAILS = ("id", "mode", "xmit_hash_policy", "remote", "group", "local", "rate")
_INDENT = 4


def add_links(page: Page, facts: Facts, links: Sequence[Link], *, shown: int, never: frozenset[str]) -> None:
    """The first ``shown`` links and those ``never`` to be folded, each below what carries it."""
    if not links:
        return
    rows, hidden = fold_rows(stack_links(links), shown, never)
    here = frozenset(link.name for link in links)
    ranks = ranked(link.name for link in facts.links)
    page.add(Span("links", QUIET), indent=2)
    page.table([_link_cells(row, here, ranks) for row in rows], indent=_INDENT)
    if hidden:
        page.add(Span(f"… and {hidden} more like these; --json lists all", QUIET), indent=_INDENT)


def _link_cells(row: LinkRow, here: frozenset[str], ranks: Mapping[str, int]) -> list[Cell]:
    link = row.link
    return [
        Span("  " * row.depth + link.name, is_whole=" " not in link.name),
        _speed_words(link),
        f"MTU {link.mtu}" if link.mtu is not None else "MTU unknown",
        "no carrier" if link.carrier is False and link.state == "up" else link.state or UNKNOWN,
        join_parts(_link_details(link, here, ranks)),
    ]


def _speed_words(link: Link) -> str:
    if link.speed_mbps:
        return format_speed(link.speed_mbps)
    return "speed unknown" if is_physical(link) and is_up(link) else ""


def _link_details(link: Link, here: frozenset[str], ranks: Mapping[str, int]) -> Iterator[str]:
    if link.kind not in ("ethernet", "loopback"):
        yield " ".join([link.kind, *(f"{key} {link.detail[key]}" for key in _DETAILS if link.detail.get(key))])
    if len(link.lower) > 1 or not here.issuperset(link.lower):
        yield f"over {runs(link.lower, ranks)}"
    elsewhere = tuple(name for name in link.upper if name not in here)
    yield f"carries {runs(elsewhere, ranks)}" if elsewhere else ""
    yield from (address for address in link.addresses if not address.startswith("fe80:") or len(link.addresses) == 1)
    yield "default route" if link.default_route else ""
    if is_physical(link):
        yield f"MTU up to {link.mtu_max}" if link.mtu_max and link.mtu_max != link.mtu else ""
        yield link.driver or "driver unknown"
        yield link.pci or ""
        yield _pcie_words(link.pcie)
        if channels := link.channels:
            now, most = channels.combined or channels.rx, channels.combined_max or channels.rx_max
            yield f"{now} of {most} channels" if most != now else times(now, "channel")
        if link.rings:
            now, most = link.rings.rx, link.rings.rx_max
            yield "ring " + (f"{now} of {most}" if most != now else str(now))


def _pcie_words(pcie: PcieLink | None) -> str:
    if pcie is None or not pcie.width or not pcie.speed_gts:
        return ""
    now = f"PCIe x{pcie.width} {pcie.speed_gts:g} GT/s"
    most = f"x{pcie.width_max or '?'} {pcie.speed_max_gts or 0:g} GT/s"
    is_less = (pcie.width_max or 0) > pcie.width or (pcie.speed_max_gts or 0) > pcie.speed_gts
    return f"{now} of {most}" if is_less else now


def add_disks(page: Page, facts: Facts, disks: Sequence[Disk]) -> None:
    """A line per group of like disks."""
    if not disks:
        return
    ranks = ranked(disk.name for disk in facts.disks)
    page.add(Span("disks", QUIET), indent=2)
    page.table([_disk_cells(facts, group, ranks) for group in group_disks(disks)], indent=_INDENT)


def _disk_cells(facts: Facts, group: tuple[Disk, ...], ranks: Mapping[str, int]) -> list[Cell]:
    first = group[0]
    size = format_decimal(first.size_bytes) if first.size_bytes is not None else "size unknown"
    return [
        runs([disk.name for disk in group], ranks),
        f"{len(group)} × {size}" if len(group) > 1 else size,
        first.model or first.kind,
        first.scheduler or "",
        join_parts(_disk_details(facts, group)),
    ]


def _disk_details(facts: Facts, group: tuple[Disk, ...]) -> Iterator[str]:
    first = group[0]
    yield "rotational" if first.rotational else ""
    yield from _mount_words(
        facts, {name for disk in group for name in (disk.name, *disk.partitions)}, first.mountpoints
    )
    holders = {name for disk in group for name in disk.holders}
    yield f"in {runs(holders, ranked(holders))}" if holders else ""
    yield first.pci or "" if len(group) == 1 else ""
    yield _pcie_words(first.pcie)
    yield times(len(first.paths), "path") if first.paths else ""


def _mount_words(facts: Facts, devices: Iterable[str], mountpoints: tuple[str, ...]) -> Iterator[str]:
    """What is mounted from the devices, with kind and stripe where the file system is known."""
    wanted = frozenset(devices)
    found = [each for each in facts.filesystems if each.device in wanted and each.mountpoints]
    yield from (f"{' '.join(each.mountpoints)} ({each.kind}{_stripe_words(each)})" for each in found)
    shown = {point for each in found for point in each.mountpoints}
    yield from (point for point in mountpoints if point not in shown)


def _stripe_words(filesystem: FileSystem) -> str:
    unit, width = filesystem.stripe_unit_bytes, filesystem.stripe_width_bytes
    return f", su {format_binary(unit)} sw {width // unit}" if unit and width else ""


def add_arrays(page: Page, facts: Facts, arrays: Sequence[Array]) -> None:
    """A line per array."""
    if not arrays:
        return
    members = (name for array in facts.arrays for name in array.members)
    known = [*(disk.name for disk in facts.disks), *members]
    orders = (ranked(known), ranked_by_disk(known))

    def fold(names: Collection[str]) -> str:
        return min((runs(names, order) for order in orders), key=len)

    ordered = sorted(arrays, key=lambda array: (natural(array.name), array.name))
    page.add(Span("arrays", QUIET), indent=2)
    page.table([_array_cells(facts, array, fold) for array in ordered], indent=_INDENT)


def _array_cells(facts: Facts, array: Array, fold: Callable[[Collection[str]], str]) -> list[Cell]:
    return [
        array.name,
        array.level or UNKNOWN,
        format_decimal(array.size_bytes) if array.size_bytes is not None else "size unknown",
        array.state or UNKNOWN,
        join_parts(_array_details(facts, array, fold)),
    ]


def _array_details(facts: Facts, array: Array, fold: Callable[[Collection[str]], str]) -> Iterator[str]:
    yield from _mount_words(facts, [array.device], array.mountpoints)
    yield f"{times(len(array.members), 'member')}: {fold(array.members)}" if array.members else ""
    yield f"chunk {format_binary(array.chunk_bytes)}" if array.chunk_bytes else ""
    yield times(array.data_disks, "data disk") if array.data_disks else ""
    yield (f"{array.missing} missing" if array.missing else "")
    yield f"failed {fold(array.failed)}" if array.failed else ""
    yield f"spare {fold(array.spares)}" if array.spares else ""
    if array.progress_percent is not None:
        yield f"{array.progress_percent:g} % done"
    nodes = ", ".join(map(str, array.numa_nodes))
    yield f"nodes {nodes}" if len(array.numa_nodes) > 1 else ""
    yield f"on other nodes: {array.detail['remote']}" if array.detail.get("remote") else ""
    yield (f"kernel name unknown: {array.detail['unmapped']}" if array.detail.get("unmapped") else "")
    yield array.manager if array.manager != "md" else ""
