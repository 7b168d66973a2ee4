"""On which panel of the picture something belongs, and which findings name it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from advisor.facts.disks import Disk
from advisor.facts.host_facts import Facts
from advisor.facts.links import Link
from advisor.report.devices import named_by
from advisor.report.format import ranked
from advisor.report.picture.records import UNKNOWN_KEY, Place
from advisor.rules.finding import Finding
from advisor.rules.numbering import number_findings
from advisor.rules.queries import by_name, is_physical, is_virtual_machine, links_below, split_ids


class PictureFacts(msgspec.Struct, frozen=True):
    """What every part of the picture asks of the facts. ``only`` is the node of a host that has just one."""

    facts: Facts
    nodes: frozenset[int]
    only: int | None
    links: Mapping[str, Link]
    disks: Mapping[str, Disk]
    marks: Mapping[str, tuple[int, ...]]
    cpus: Mapping[int, frozenset[int]]
    """The CPUs of each node."""
    link_ranks: Mapping[str, int]
    disk_ranks: Mapping[str, int]
    """The place of each name in natural order, for `advisor.report.format.runs`."""
    is_real: bool
    """False for a virtual machine, whose PCIe links are make-believe."""

    def place(self, node: int | None) -> Place:
        """The panel of a device: its node's, or that of devices whose node is unknown.

        On a host of one node there is no other place where a device could be.
        """
        if self.only is not None:
            return self.only
        return node if node is not None and node in self.nodes else UNKNOWN_KEY

    def link_places(self, link: Link) -> tuple[Place, ...]:
        """The panels of the devices that a link rests on; none for a link that rests on no device."""
        roots = (one for one in links_below(link.name, self.links) if is_physical(one))
        return order_places({self.place(root.numa_node) for root in roots})

    def link_home(self, link: Link) -> Place | None:
        """The one panel that a link is drawn on; None for a link that lies on several nodes, or on no device."""
        return home_place(self.link_places(link))

    def disk_places(self, names: Iterable[str]) -> tuple[Place, ...]:
        """The panels of some disks, by name."""
        known = (self.disks[name] for name in names if name in self.disks)
        return order_places({self.place(disk.numa_node) for disk in known})

    def marked(self, names: Iterable[str]) -> tuple[int, ...]:
        """The numbers of the findings that name any of these."""
        return tuple(sorted({number for name in names for number in self.marks.get(name, ())}))


def make_picture_facts(facts: Facts, findings: Sequence[Finding]) -> PictureFacts:
    nodes = frozenset(node.id for node in facts.numa.nodes)
    found: dict[str, tuple[int, ...]] = {}
    for group in number_findings(findings):
        for name in named_by(group.findings):
            found[name] = (*found.get(name, ()), group.number)
    return PictureFacts(
        facts=facts,
        nodes=nodes,
        only=next(iter(nodes), 0) if len(nodes) < 2 else None,
        links=by_name(facts),
        disks={disk.name: disk for disk in facts.disks},
        marks=found,
        cpus={node.id: split_ids(node.cpus) for node in facts.numa.nodes},
        link_ranks=ranked(link.name for link in facts.links),
        disk_ranks=ranked(disk.name for disk in facts.disks),
        is_real=not is_virtual_machine(facts),
    )


def order_places(places: Iterable[Place]) -> tuple[Place, ...]:
    """Nodes by number, then the panel of what has none."""
    return tuple(sorted(places, key=lambda place: (isinstance(place, str), place)))


def home_place(places: Sequence[Place]) -> Place | None:
    """The one panel on which something is drawn that has parts on some panels; None where it lies on several nodes."""
    return places[0] if places and len(known_nodes(places)) < 2 else None


def known_nodes(places: Iterable[Place]) -> tuple[int, ...]:
    """The nodes among some panels."""
    return tuple(place for place in places if isinstance(place, int))
