"""Interrupts stay on housekeeping CPUs, and a socket that firmware splits into nodes is one place for its slots."""

from __future__ import annotations

from typing import Any

from advisor.facts.host_facts import Facts
from advisor.facts.processors.cpu import CpuSets
from advisor.facts.processors.numa import Numa
from advisor.planning.devices import select_irqs
from advisor.rules.judged import judge
from advisor.rules.processors.locality_score import locality
from tests.beegfs_server import server
from tests.rules.build import array, disk, facts, irqs, link, numa, replaced


def of_rule(identity: str, known: Facts) -> list[Any]:
    return [one for one in judge(known) if one.id == identity]


def with_sets(known: Facts, **sets: str) -> Facts:
    return replaced(known, {"cpu": replaced(known.cpu, {"sets": CpuSets(**sets)})})


def split(packages: tuple[int, ...], *, socket: int = 12, other: int = 32) -> Numa:
    """Nodes of four CPUs, by the sockets on which they are."""
    nodes = [
        replaced(
            numa(len(packages)).nodes[number],
            {
                "package": package,
                "distances": tuple(
                    10 if one == number else socket if at == package else other for one, at in enumerate(packages)
                ),
            },
        )
        for number, package in enumerate(packages)
    ]
    return replaced(numa(len(packages)), {"nodes": tuple(nodes)})


def busy_link(on: str) -> Facts:
    here = irqs(40, 4, on=on, spread=False)
    return facts(links=(link("eth0", irqs=tuple(irq.number for irq in here)),), irqs=here, numa=numa(2))


def remedies(finding: Any) -> list[str]:
    return [one.value for one in finding.remedy if getattr(one, "tunable", "").startswith("irq:")]


def test_interrupts_that_the_owner_keeps_off_isolated_cpus_are_right() -> None:
    found = with_sets(busy_link("4-5"), isolated="0-3,6-7", housekeeping="4-5")
    assert not of_rule("numa.irqs-far-from-link", found)
    assert [one.value for one in select_irqs({}, found)] == ["4-5"] * 4


def test_interrupts_are_moved_to_housekeeping_cpus_of_the_link_s_node() -> None:
    found = with_sets(busy_link("4-5"), isolated="2-3,6-7", housekeeping="0-1,4-5")
    (one,) = of_rule("numa.irqs-far-from-link", found)
    assert remedies(one) == ["0-1"] * 4


def test_interrupts_are_spread_over_housekeeping_cpus() -> None:
    found = with_sets(busy_link("0"), isolated="3", housekeeping="0-2,4-7")
    (one,) = of_rule("irqs.on-one-cpu", found)
    assert remedies(one) == ["0", "1", "2", "0"]


def test_one_housekeeping_cpu_is_no_fault() -> None:
    assert not of_rule("irqs.on-one-cpu", with_sets(busy_link("0"), isolated="1-7", housekeeping="0"))


def sub_nodes(packages: tuple[int, ...], links: tuple[int, ...], drives: tuple[int, ...]) -> Facts:
    return facts(
        numa=split(packages),
        links=tuple(link(f"eth{number}", numa_node=node) for number, node in enumerate(links)),
        disks=tuple(disk(f"nvme{number}n1", numa_node=node) for number, node in enumerate(drives)),
        arrays=(array("md0", *(f"nvme{number}n1" for number in range(len(drives))), numa_nodes=tuple(set(drives))),),
    )


def test_slots_of_one_split_socket_are_near_each_other() -> None:
    found = sub_nodes((0, 0, 1, 1), links=(0,), drives=(1, 1, 0, 0))
    assert locality(found).score == 100
    assert not of_rule("arrays.span-nodes", found)
    far = sub_nodes((0, 0, 1, 1), links=(0,), drives=(2, 3))
    assert of_rule("numa.links-far-from-disks", far)
    assert not of_rule("numa.links-far-from-disks", sub_nodes((0, 0, 1, 1), links=(0,), drives=(1, 1)))
    score = locality(far).score
    assert score is not None
    assert score < 100


def test_an_array_over_two_sockets_spans() -> None:
    assert of_rule("arrays.span-nodes", sub_nodes((0, 0, 1, 1), links=(0,), drives=(1, 2)))


def test_services_are_not_told_to_use_a_link_that_their_node_lacks() -> None:
    whole = server(interfaces=False)
    third = replaced(whole.numa.nodes[1], {"id": 2, "cpus": "", "package": None, "distances": (21, 21, 10)})
    far = tuple(replaced(one, {"numa_node": 2 * (one.numa_node or 0)}) for one in whole.links)

    def seen(distance: int) -> Facts:
        nodes = tuple(replaced(one, {"distances": (*one.distances, distance)}) for one in whole.numa.nodes)
        return replaced(whole, {"links": far, "numa": replaced(whole.numa, {"nodes": (*nodes, third)})})

    # Targets on the nodes 0 and 1, links on 0 and 2: from node 1 both are as far.
    detail = [of_rule("beegfs.interfaces", seen(distance))[0].evidence["detail"] for distance in (21, 40)]
    assert [any("targets on node 1" in line for line in lines) for lines in detail] == [False, True]
