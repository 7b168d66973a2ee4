"""NUMA: the online nodes, their CPUs, memory and distances, and automatic balancing."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from advisor.facts.processors.cpu import CpuSets, online_cpus
from advisor.facts.processors.cpulist import format_list, parse_list, read_allowed, read_ids, read_list
from advisor.facts.system.memory import parse_meminfo
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, count_noun

_NODES = "/sys/devices/system/node"


class Node(msgspec.Struct, frozen=True):
    """An online node. ``cpus`` is "" for one without CPUs, None where that is unknown; ``distances`` run over the
    online nodes in order of id."""

    id: int
    cpus: str | None
    memory_bytes: int | None
    free_bytes: int | None
    distances: tuple[int, ...]
    package: int | None = None
    """The socket of its CPUs by the kernel's id; None without CPUs, and where the kernel names no package."""


class Numa(msgspec.Struct, frozen=True):
    """``nodes`` is empty where the kernel is built without NUMA; a kernel with it shows node 0 on any host."""

    nodes: tuple[Node, ...]
    balancing: int | None
    """kernel.numa_balancing as it reads (0, 1, or 2 for memory tiering); None where the kernel has no such key."""
    allowed_nodes: str | None
    """Nodes that the calling process may allocate from (Mems_allowed_list); None where there are no nodes."""

    def distance(self, node: int, other: int) -> int:
        """The firmware's distance between two nodes; where it is unknown, 10 from a node to itself, else 20."""
        known = next((each.distances for each in self.nodes if each.id == node), ())
        by_node = dict(zip((each.id for each in self.nodes), known, strict=False))
        return by_node.get(other, 10 if node == other else 20)

    def socket_of(self, node: int) -> int:
        """The first node of the node's socket: a firmware may split a socket into several (SNC, NPS)."""
        package = next((each.package for each in self.nodes if each.id == node), None)
        return next((each.id for each in self.nodes if package is not None and each.package == package), node)

    def sockets_of(self, nodes: Iterable[int | None]) -> frozenset[int]:
        """The sockets, by their first nodes, on which some nodes lie; unknown nodes are left out."""
        return frozenset(self.socket_of(node) for node in nodes if node is not None)

    def nearest(self, node: int, others: Iterable[int]) -> frozenset[int]:
        """Those of some nodes that have the least distance from a node: itself, where it is among them."""
        known = {other: self.distance(node, other) for other in others}
        least = min(known.values(), default=0)
        return frozenset(other for other, distance in known.items() if distance == least)


def near_cpus(sets: CpuSets, numa: Numa, node: int | None, *, interrupts: bool = False) -> frozenset[int]:
    """The housekeeping CPUs of a node; where it has none, those of the nearest node that has some; all for None.

    ``interrupts``: only CPUs to which interrupts may go by the kernel's default and by irqbalance's configuration.
    """
    every = frozenset(cpu for each in numa.nodes for cpu in parse_list(each.cpus or ""))
    free = frozenset(parse_list(sets.housekeeping)) or every
    if interrupts:
        default = free.intersection(parse_list(sets.interrupts)) if sets.interrupts else free
        free = default.difference(parse_list(sets.banned)) or default or free
    order = sorted(numa.nodes, key=lambda each: (numa.distance(node, each.id), each.id)) if node is not None else ()
    for each in order:
        if near := free.intersection(parse_list(each.cpus or "")):
            return near
    return free


def read_numa(host: Host, unknown: Unknowns) -> Numa:
    """The online nodes, sorted by id. Source: Documentation/ABI/stable/sysfs-devices-node."""
    ids = online_nodes(host)
    online = online_cpus(host)
    cpus = None if isinstance(online, Missing) else frozenset(online)
    found = read_allowed(host, "mems")
    if isinstance(found, Missing) and not found.is_absent:
        unknown.note("numa.allowed_nodes", found)
        allowed_nodes = None
    else:
        allowed_nodes = format_list(ids if isinstance(found, Missing) else set(ids).intersection(found)) or None
    return Numa(
        nodes=tuple(_read_node(host, node, ids, cpus, unknown) for node in ids),
        balancing=unknown.value("numa.balancing", host.read_int("/proc/sys/kernel/numa_balancing")),
        allowed_nodes=allowed_nodes,
    )


def online_nodes(host: Host) -> tuple[int, ...]:
    """Ids of the online nodes, which need not be 0 to n-1; none where the kernel is built without NUMA.

    Old kernels (2.6.18 of RHEL 5) have no list; there each node that has a directory is online.
    """
    listed = read_list(host, f"{_NODES}/online")
    if not isinstance(listed, Missing) and listed:
        return listed
    found = (re.fullmatch(r"node(\d{1,5})", name, re.ASCII) for name in host.names(_NODES))
    return tuple(sorted(int(name[1]) for name in found if name))


def node_cpus(host: Host, node: int) -> tuple[int, ...] | Missing:
    """Ids of a node's CPUs as the kernel lists them, which on old kernels are more than there are."""
    found = read_ids(host, f"{_NODES}/node{node}/cpulist", f"{_NODES}/node{node}/cpumap")
    if not isinstance(found, Missing) or not found.is_absent:
        return found
    links = [re.fullmatch(r"cpu(\d{1,5})", name, re.ASCII) for name in host.names(f"{_NODES}/node{node}")]
    return tuple(sorted(int(link[1]) for link in links if link)) or found


def parse_distances(text: str) -> tuple[int, ...]:
    """Distances of a node's ``distance`` file. Raises ValueError for text that is not numbers."""
    return tuple(int(word) for word in text.split())


def _read_node(host: Host, node: int, ids: tuple[int, ...], online: frozenset[int] | None, unknown: Unknowns) -> Node:
    fact = f"numa.nodes.{node}"
    memory, cpus = _read_meminfo(host, node, unknown), _read_cpus(host, node, online, f"{fact}.cpus", unknown)
    return Node(
        id=node,
        cpus=cpus,
        memory_bytes=memory.get("MemTotal"),
        free_bytes=memory.get("MemFree"),
        distances=_read_distances(host, node, ids, f"{fact}.distances", unknown),
        package=_read_package(host, cpus),
    )


def _read_package(host: Host, cpus: str | None) -> int | None:
    first = re.match(r"\d{1,5}", cpus or "", re.ASCII)
    number = host.read_int(f"/sys/devices/system/cpu/cpu{first[0]}/topology/physical_package_id") if first else -1
    return None if isinstance(number, Missing) or number < 0 else number


def _read_cpus(host: Host, node: int, online: frozenset[int] | None, fact: str, unknown: Unknowns) -> str | None:
    found = node_cpus(host, node)
    if isinstance(found, Missing):
        unknown.note(fact, found)
        return None
    return format_list(found if online is None else online.intersection(found))


def _read_meminfo(host: Host, node: int, unknown: Unknowns) -> dict[str, int]:
    text = host.read(f"{_NODES}/node{node}/meminfo")
    memory = {} if isinstance(text, Missing) else parse_meminfo(text)
    if "MemTotal" not in memory:
        unknown.note(f"numa.nodes.{node}.memory_bytes", text if isinstance(text, Missing) else "no MemTotal in meminfo")
    return memory


def _read_distances(host: Host, node: int, ids: tuple[int, ...], fact: str, unknown: Unknowns) -> tuple[int, ...]:
    text = host.read(f"{_NODES}/node{node}/distance")
    if isinstance(text, Missing):
        unknown.note(fact, text)
        return ()
    try:
        distances = parse_distances(text)
    except ValueError:
        unknown.note(fact, f"not distances: {text[:40]!r}")
        return ()
    if len(distances) != len(ids):
        unknown.note(fact, f"{count_noun(len(distances), 'distance')} for {count_noun(len(ids), 'online node')}")
        return ()
    return distances
