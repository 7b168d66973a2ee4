"""On which NUMA nodes a device lies, drive by drive: of a link, a disk, an array or a mount point by its name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from advisor.errors import UsageError
from advisor.facts.array import Array
from advisor.facts.block import natural
from advisor.facts.host_facts import Facts
from advisor.facts.links import Link

Nodes = Mapping[int | None, tuple[str, ...]]
"""Node to the links or drives on it, by node; None for those whose node is unknown, the last."""


def nodes_of(device: str, facts: Facts) -> Nodes:
    """The nodes of a link, disk, array or mount point. Raises UsageError for a name that is none of these."""
    array = _find_array(device, facts)
    if array is not None:
        nodes = {disk.name: disk.numa_node for disk in facts.disks}
        found = _by_node((name, nodes[name]) for name in sorted(array.disks, key=natural) if name in nodes)
        if {node for node in found if node is not None} == set(array.numa_nodes):
            return found or {None: ()}
        return dict.fromkeys(array.numa_nodes, ()) or {None: ()}
    for disk in facts.disks:
        if device.removeprefix("/dev/") in (disk.name, *disk.partitions) or device in disk.mountpoints:
            return {disk.numa_node: (disk.name,)}
    for link in facts.links:
        if link.name == device:
            ports = _find_ports(device, {one.name: one for one in facts.links}, frozenset())
            return _by_node((port.name, port.numa_node) for port in ports) or {None: (device,)}
    raise UsageError(f"there is no link, disk, array or mount point {device!r} on this host")


def nodes_seen(device: str, facts: Facts) -> Nodes:
    """`nodes_of` for what a service was seen to use, which may be nothing that a scan lists (a loop device)."""
    try:
        return nodes_of(device, facts)
    except UsageError:
        return {None: ()}


def node_of(device: str, facts: Facts) -> int | None:
    """The node of a link, disk, array or mount point by name; None where it is unknown or there is more than one.

    Raises UsageError for a name that is none of these.
    """
    nodes = nodes_of(device, facts)
    return next(iter(nodes)) if len(nodes) == 1 else None


def nodes_text(nodes: Nodes) -> str:
    """``node 0``, ``node unknown``, or which drives are where: ``nodes 0 (nvme0n1, nvme1n1) and 1 (nvme12n1)``."""
    if len(nodes) < 2:
        node = next(iter(nodes), None)
        return f"node {'unknown' if node is None else node}"
    parts = [
        f"{'unknown' if node is None else node}" + (f" ({', '.join(names)})" if names else "")
        for node, names in nodes.items()
    ]
    return f"nodes {', '.join(parts[:-1])} and {parts[-1]}"


def _find_array(device: str, facts: Facts) -> Array | None:
    names = (device, device.removeprefix("/dev/"), device.removeprefix("/dev/mapper/"))
    for array in facts.arrays:
        if array.manager == "controller":
            continue
        if array.name in names or array.device in names or device in array.mountpoints:
            return array
    return None


def _by_node(places: Iterable[tuple[str, int | None]]) -> Nodes:
    found: dict[int | None, list[str]] = {}
    for name, node in places:
        found.setdefault(node, []).append(name)
    ordered = sorted(found, key=lambda node: (node is None, node or 0))
    return {node: tuple(found[node]) for node in ordered}


def _find_ports(name: str, links: Mapping[str, Link], above: frozenset[str]) -> tuple[Link, ...]:
    """The ports that carry a link; none where they are not among the links."""
    link = links[name]
    if not link.lower:
        return (link,)
    below = [lower for lower in link.lower if lower in links and lower not in above]
    return tuple(
        {port.name: port for lower in below for port in _find_ports(lower, links, above | {name, lower})}.values()
    )
