"""NUMA: devices that work together but sit on different nodes, and interrupts that run far from their device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import cycle

from advisor.facts.block.disks import Disk
from advisor.facts.network.links import Link
from advisor.facts.processors.cpulist import format_list
from advisor.facts.processors.pci import Irq
from advisor.host.numbers import count_noun
from advisor.rules import sources
from advisor.rules.queries import (
    NUMA_PINNING,
    by_name,
    carries_default_route,
    crosses_network,
    has_several_nodes,
    is_physical,
    is_up,
    links_below,
    llt_links,
    near_link,
    nodes_below,
    split_ids,
)
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, SetTunable, rule

ORDER = 110

_FAST_MBPS = 10_000
_SYSTEM_MOUNTS = frozenset({"/", "/boot", "/boot/efi", "/usr", "/var", "[SWAP]"})
_MANY_VECTORS = 4


@rule(
    id="numa.bond-spans-nodes",
    severity="advice",
    title="Ports of one bond are on different NUMA nodes",
    what="The nodes of the physical links under each bond or team.",
    why="A bond spreads flows over its ports by a hash that knows nothing of nodes.",
    helps_when="Services are pinned to the node of their disks and links, at 10 Gbit/s and more.",
    hurts_when="The bond is there to survive the loss of a card or a socket: then two cards are worth more than "
    "locality.",
    sources=(sources.DELL_BEEGFS, sources.BONDING),
)
def bond_spans_nodes(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    links = by_name(facts)
    bonds = tuple(
        link
        for link in facts.links
        if link.kind in ("bond", "team") and len(facts.numa.sockets_of(nodes_below(link, links))) > 1
    )
    for bond in bonds:
        known = (
            port for port in links_below(bond.name, links) if port.numa_node is not None and port.name != bond.name
        )
        ports = tuple(sorted(known, key=lambda port: port.name))
        yield bond_spans_nodes.found(
            title=f"Ports of {bond.kind} {bond.name} are on different NUMA nodes",
            why="A program on one node sends and receives part of its traffic through the other node's memory, "
            "whichever node it is pinned to.",
            evidence={
                "link": bond.name,
                "links": tuple(port.name for port in ports),
                "detail": tuple(f"{port.name}: node {port.numa_node}" for port in ports),
            },
            remedy=f"use ports of one card for {bond.name}, or give each node's service a link of its own node",
        )


def data_links(facts: Facts, links: Mapping[str, Link]) -> tuple[Link, ...]:
    """The links that LLT uses, else the fast ones that do not lead out."""
    roots = (root for name in llt_links(facts) for root in links_below(name, links) if is_physical(root))
    by_llt = tuple({root.name: root for root in roots}.values())
    return by_llt or tuple(
        link
        for link in facts.links
        if is_physical(link)
        and is_up(link)
        and (link.speed_mbps or 0) >= _FAST_MBPS
        and carries_default_route(link, links) is False
    )


def tells_data_links(facts: Facts, links: Mapping[str, Link]) -> bool:
    """Whether `data_links` is all of them: no link's speed or way out is unknown where it would count."""
    return bool(llt_links(facts)) or not any(
        is_physical(link)
        and is_up(link)
        and (link.speed_mbps is None or link.speed_mbps >= _FAST_MBPS)
        and (route := carries_default_route(link, links)) is not True
        and (route is None or link.speed_mbps is None)
        for link in facts.links
    )


def data_disks(facts: Facts) -> tuple[Disk, ...]:
    """Disks of their own PCI function on a known node that hold no system mount."""
    return tuple(
        disk
        for disk in facts.disks
        if disk.pci is not None and disk.numa_node is not None and not _SYSTEM_MOUNTS.intersection(disk.mountpoints)
    )


def _join_nodes(nodes: Iterable[int | None]) -> str:
    return ", ".join(str(node) for node in sorted(node for node in nodes if node is not None))


@rule(
    id="numa.links-far-from-disks",
    severity="advice",
    title="Data links and disks are on different NUMA nodes",
    what="The nodes of LLT's links (or, without LLT, of links of 10 Gbit/s and more that carry no default route) "
    "against the nodes of the disks that hold no system mount.",
    why="Every transfer between link and disk passes the interconnect and the other node's memory controller.",
    helps_when="Throughput near the links' or the drives' limit; the penalty is 10 per cent and more.",
    hurts_when="The move costs downtime and another card its slot; on a lightly loaded host it gains nothing.",
    sources=(sources.DELL_BEEGFS, sources.PCI_SYSFS),
)
def links_far_from_disks(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    near = tuple(link for link in data_links(facts, by_name(facts)) if link.numa_node is not None)
    disks = data_disks(facts)
    link_nodes = {link.numa_node for link in near}
    disk_nodes = {disk.numa_node for disk in disks}
    # The slots of a split socket (SNC, NPS) are wired to one of its nodes or another, and are near each other.
    link_sockets, disk_sockets = facts.numa.sockets_of(link_nodes), facts.numa.sockets_of(disk_nodes)
    if not link_sockets or not disk_sockets or link_sockets & disk_sockets:
        return None
    known = bool(llt_links(facts)) or bool(crosses_network(facts, workload))
    return links_far_from_disks.found(
        severity="advice" if known else "info",
        why="What goes from the network to the disks crosses between nodes: the links are on node "
        f"{_join_nodes(link_nodes)}, the disks on node {_join_nodes(disk_nodes)}."
        + ("" if known else " Whether these links serve these disks is unknown."),
        evidence={
            "links": tuple(link.name for link in near),
            "disks": tuple(disk.name for disk in disks),
            "link_nodes": tuple(map(str, sorted(node for node in link_nodes if node is not None))),
            "disk_nodes": tuple(map(str, sorted(node for node in disk_nodes if node is not None))),
        },
        remedy="move the card to a slot of the disks' node, or run the service on the node of its disks and accept "
        "the remote link",
        intent=not known,
    )


def _movable_irqs(facts: Facts, link: Link, by_number: Mapping[int, Irq]) -> tuple[tuple[Irq, frozenset[int]], ...]:
    """The link's interrupts that may be moved, and the CPUs on which they run."""
    irqs = (by_number[number] for number in link.irqs if number in by_number)
    return tuple((irq, cpus) for irq in irqs if irq.managed is not True and (cpus := split_ids(irq.effective)))


@rule(
    id="numa.irqs-far-from-link",
    severity="advice",
    title="Interrupts of links run on another NUMA node",
    what="Where each link's interrupts take effect against the link's own node; those that the kernel manages are left "
    "out.",
    why="The card writes packets into its own node's memory and the CPU that handles them should be near.",
    helps_when="Links of 10 Gbit/s and more, above all where the service runs on that node too.",
    hurts_when="The service is pinned to the other node: then near the service may be better. irqbalance overwrites "
    "masks set by hand unless configured not to.",
    sources=(sources.SCALING, sources.DELL_BEEGFS),
)
def irqs_far_from_link(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    by_number = {irq.number: irq for irq in facts.irqs}
    found = []
    for link in facts.links:
        if not has_several_nodes(facts) or not is_physical(link) or link.numa_node is None or not is_up(link):
            continue
        irqs, near = _movable_irqs(facts, link, by_number), near_link(facts, link)
        far = tuple(irq for irq, cpus in irqs if not cpus & near)
        if near and far:
            found.append((link, len(irqs), far, format_list(near)))
    if not found:
        return None
    mostly = any(2 * len(far) > total and (link.speed_mbps or 0) >= _FAST_MBPS for link, total, far, _ in found)
    return irqs_far_from_link.found(
        severity="advice" if mostly else "info",
        why="Their packets are handled by CPUs of another node, so each is fetched over the interconnect.",
        evidence={
            "links": tuple(link.name for link, _, _, _ in found),
            "irqs": tuple(str(irq.number) for _, _, far, _ in found for irq in far),
            "detail": tuple(
                f"{link.name} (node {link.numa_node}): {len(far)} of {count_noun(total, 'interrupt')} elsewhere"
                for link, total, far, _ in found
            ),
        },
        remedy=(
            *(SetTunable(f"irq:{irq.number}:affinity", near) for _, _, far, near in found for irq in far),
            f"advisor plan {NUMA_PINNING} --set units=NAME.service also pins the service that uses the link",
        ),
        profile=NUMA_PINNING,
    )


def _spread_irqs(facts: Facts, link: Link, numbers: list[int]) -> Iterator[SetTunable]:
    """One CPU after the other, of those near the link."""
    cpus = sorted(near_link(facts, link) or split_ids(facts.cpu.online))
    for number, cpu in zip(numbers, cycle(cpus), strict=False):
        yield SetTunable(f"irq:{number}:affinity", str(cpu))


@rule(
    id="irqs.on-one-cpu",
    severity="advice",
    title="All interrupts of a link run on one CPU",
    what="Links with four interrupts and more, all of which take effect on the same CPU, where other CPUs may take "
    "interrupts.",
    why="A queue is only worth its own CPU; without irqbalance the kernel may leave all on the first.",
    helps_when="The CPU is busy in softirq, or packets are dropped.",
    hurts_when="The CPU was set apart for it on purpose.",
    sources=(sources.SCALING, sources.ENA),
)
def irqs_on_one_cpu(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    by_number = {irq.number: irq for irq in facts.irqs}
    found = []
    for link in facts.links:
        if not is_physical(link) or not is_up(link):
            continue
        irqs = _movable_irqs(facts, link, by_number)
        load = Counter(cpu for _, cpus in irqs if len(cpus) == 1 for cpu in cpus)
        cpu, count = max(load.items(), key=lambda one: one[1]) if load else (0, 0)
        others = (near_link(facts, link) or split_ids(facts.cpu.online)) - {cpu}
        if len(irqs) >= _MANY_VECTORS and count == len(irqs) and others:
            found.append((link, cpu, irqs))
    if not found:
        return None
    return irqs_on_one_cpu.found(
        why="The link has several queues, but one CPU handles them all.",
        evidence={
            "links": tuple(link.name for link, _, _ in found),
            "detail": tuple(f"{link.name}: all {len(irqs)} interrupts on CPU {cpu}" for link, cpu, irqs in found),
        },
        remedy=(
            *(one for link, _, irqs in found for one in _spread_irqs(facts, link, [irq.number for irq, _ in irqs])),
            "or let irqbalance place them: enable its service",
        ),
    )


@rule(
    id="numa.node-without-memory",
    severity="warning",
    title="A NUMA node has CPUs but no memory",
    what="MemTotal of each online node that has CPUs.",
    why="Memory is taken from the nearest node that has some, over the interconnect.",
    helps_when="Always where bandwidth counts.",
    hurts_when="The firmware splits sockets into more nodes than memory channels are populated, on purpose.",
    sources=(sources.SYSCTL_KERNEL,),
)
def node_without_memory(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    bare = tuple(str(node.id) for node in facts.numa.nodes if node.cpus and node.memory_bytes == 0)
    if not bare or not has_several_nodes(facts):
        return None
    return node_without_memory.found(
        why=f"Everything that runs on node {', '.join(bare)} has its memory on another node.",
        evidence={"nodes": bare},
        remedy="populate the memory channels of that socket, or check the firmware's node setting",
    )
