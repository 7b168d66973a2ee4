"""The locality score: how much of what works together on a host sits on the same NUMA node, from 0 to 100.

Five kinds of things are looked at, each with a share from 0 (all elsewhere) to 1 (all where it belongs):

- links: 1 if a data disk is on the link's socket, else 0
- disks: 1 if a data link is on the disk's socket, else 0
- arrays: the share of its disks on the socket that has most of them
- services: the share of the CPUs that a process may use which are on the node of its own data
- interrupts: the share of a link's or disk's interrupts that take effect on the nearest CPUs that may take them

A firmware may split a socket into nodes (SNC, NPS), and each slot is wired to one of them: devices on one socket are as
near to each other as the slots allow, while processes and interrupts may choose among all CPUs.

A kind's share is the mean of its things, the score the mean of the kinds that the host has, in per cent, rounded down:
100 only where nothing is lost. Kinds weigh alike, so that twenty drives do not outweigh the two links that serve them.
What is unknown is not counted. Links and disks that hold nothing but the system have no part in it, nor have interrupts
that the kernel places by itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Literal

import msgspec

from advisor.facts.host_facts import Facts
from advisor.facts.processors.numa import near_cpus
from advisor.host.numbers import count_noun
from advisor.host.patterns import lazy_regex
from advisor.rules.clusters.beegfs import node_of_targets, servers
from advisor.rules.processors.locality import data_disks, data_links
from advisor.rules.queries import by_name, has_several_nodes, is_physical, is_up, split_ids

Kind = Literal["links", "disks", "arrays", "services", "interrupts"]
KINDS: tuple[Kind, ...] = ("links", "disks", "arrays", "services", "interrupts")
_ADMIN_QUEUE = lazy_regex(r"nvme\d+q0", re.ASCII)


class LocalityPart(msgspec.Struct, frozen=True):
    """One thing: the node that it is on (None: several), and its share from 0 to 1. ``why`` says what it loses by."""

    kind: Kind
    name: str
    node: int | None
    share: float
    why: str = ""


class KindShare(msgspec.Struct, frozen=True):
    """All things of a kind: how many were judged, how many lose, and their mean share."""

    kind: Kind
    counted: int
    losing: int
    share: float


class Locality(msgspec.Struct, frozen=True):
    """``score`` is None where nothing can be judged, and ``why`` then says so. ``losses`` are the parts that lose
    points, the worst first; ``kinds`` those that the host has."""

    score: int | None
    why: str | None
    kinds: tuple[KindShare, ...] = ()
    losses: tuple[LocalityPart, ...] = ()


def locality(facts: Facts) -> Locality:
    """The score of a host; its definition is this module's description."""
    if not facts.numa.nodes:
        return Locality(None, "the NUMA nodes of this host are unknown")
    if not has_several_nodes(facts):
        return Locality(None, "this host has one NUMA node: nothing to lose")
    parts = tuple(_all_parts(facts))
    kinds = tuple(one for kind in KINDS if (one := _of_kind(kind, parts)) is not None)
    if not kinds:
        return Locality(None, "the nodes of its links, disks and services are unknown")
    losses = (part for part in parts if part.share < 1)
    return Locality(
        score=int(100 * (sum(one.share for one in kinds) / len(kinds)) + 1e-9),
        why=None,
        kinds=kinds,
        losses=tuple(sorted(losses, key=lambda part: (part.share, KINDS.index(part.kind)))),
    )


def _of_kind(kind: Kind, parts: tuple[LocalityPart, ...]) -> KindShare | None:
    shares = [part.share for part in parts if part.kind == kind]
    if not shares:
        return None
    return KindShare(kind, len(shares), sum(share < 1 for share in shares), round(sum(shares) / len(shares), 4))


def _all_parts(facts: Facts) -> Iterator[LocalityPart]:
    links = tuple(link for link in data_links(facts, by_name(facts)) if link.numa_node is not None)
    disks = data_disks(facts)
    link_sockets = facts.numa.sockets_of(link.numa_node for link in links)
    disk_sockets = facts.numa.sockets_of(disk.numa_node for disk in disks)
    # Without the other side there is nothing that a link or a disk could be far from.
    for link in links if disk_sockets else ():
        is_near = facts.numa.sockets_of([link.numa_node]) <= disk_sockets
        yield LocalityPart(
            "links", link.name, link.numa_node, float(is_near), "" if is_near else "no data disk on its node"
        )
    for disk in disks if link_sockets else ():
        is_near = facts.numa.sockets_of([disk.numa_node]) <= link_sockets
        yield LocalityPart(
            "disks", disk.name, disk.numa_node, float(is_near), "" if is_near else "no data link on its node"
        )
    yield from _array_parts(facts)
    cpus = {node.id: split_ids(node.cpus) for node in facts.numa.nodes}
    for one in servers(facts):
        node, allowed = node_of_targets(one), split_ids(one.service.cpus_allowed) if one.service else frozenset()
        if node is not None and allowed and cpus.get(node):
            share = len(allowed & cpus[node]) / len(allowed)
            why = "" if share == 1 else f"may run on CPUs {one.service.cpus_allowed if one.service else ''}, its data "
            yield LocalityPart(
                "services", one.label, node if share == 1 else None, share, why and f"{why}is on node {node}"
            )
    yield from _interrupt_parts(facts)


def _array_parts(facts: Facts) -> Iterator[LocalityPart]:
    nodes = {disk.name: disk.numa_node for disk in facts.disks}
    for array in facts.arrays:
        counts = Counter(node for name in array.disks if (node := nodes.get(name)) is not None)
        if sum(counts.values()) < max(len(array.disks), 2):
            continue
        by_socket = Counter(facts.numa.socket_of(node) for node in counts.elements())
        share = max(by_socket.values()) / by_socket.total()
        node = next(iter(counts)) if len(counts) == 1 else None
        listed = ", ".join(f"{count} on node {one}" for one, count in sorted(counts.items()))
        yield LocalityPart("arrays", array.name, node, share, "" if share == 1 else f"its disks: {listed}")


def _interrupt_parts(facts: Facts) -> Iterator[LocalityPart]:
    by_number = {irq.number: irq for irq in facts.irqs}
    links = ((link.name, link.numa_node, link.irqs) for link in facts.links if is_physical(link) and is_up(link))
    for name, node, numbers in (*links, *((disk.name, disk.numa_node, disk.irqs) for disk in data_disks(facts))):
        near = None if node is None else near_cpus(facts.cpu.sets, facts.numa, node, interrupts=True)
        counted = [
            places
            for number in numbers
            if (irq := by_number.get(number)) is not None
            and irq.managed is not True
            and not any(_ADMIN_QUEUE.fullmatch(action) for action in irq.actions)
            and (places := split_ids(irq.effective))
        ]
        if near and counted:
            far = sum(not places & near for places in counted)
            share = 1 - far / len(counted)
            why = f"{far} of {count_noun(len(counted), 'interrupt')} elsewhere" if far else ""
            yield LocalityPart("interrupts", name, None if far else node, share, why)
