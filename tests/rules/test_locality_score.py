"""The locality score: what counts, by how much, and what is left out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from advisor.facts.host_facts import Facts
from advisor.report.json import scan_document
from advisor.report.scan_page import scan_text
from advisor.rules.processors.locality_score import Locality, locality
from tests.beegfs_server import CPUS, server
from tests.cases import read_cases
from tests.rules.build import array, disk, facts, irqs, link, nothing_known, numa, replaced


def shares(found: Locality) -> dict[str, float]:
    return {one.kind: one.share for one in found.kinds}


def two_nodes(**parts: Any) -> Facts:
    """A link and two drives on each of two nodes of four CPUs."""
    whole: dict[str, Any] = {
        "numa": numa(2),
        "links": tuple(
            link(f"eth{node}", numa_node=node, irqs=tuple(range(10 + 4 * node, 14 + 4 * node))) for node in (0, 1)
        ),
        "irqs": (*irqs(10, 4, on="0-3"), *irqs(14, 4, on="4-7")),
        "disks": tuple(disk(f"nvme{number}n1", numa_node=number // 2) for number in range(4)),
    }
    return facts(**{**whole, **parts})


@pytest.mark.parametrize("role", ["storage", "meta"])
def test_the_article_s_servers_lose_nothing(role: Any) -> None:
    found = locality(server(role))
    assert (found.score, found.losses) == (100, ())
    assert {one.kind for one in found.kinds} == {"links", "disks", "arrays", "services", "interrupts"}


def test_services_that_run_anywhere_count_half() -> None:
    found = locality(server(bound=False))
    assert shares(found) == {"links": 1.0, "disks": 1.0, "arrays": 1.0, "services": 0.5, "interrupts": 1.0}
    assert found.score == 90
    assert len(found.losses) == 6
    assert found.losses[0].why == "may run on CPUs 0-95, its data is on node 0"


def test_both_links_on_one_node_leave_the_other_node_s_drives_alone() -> None:
    found = locality(server(link_nodes=(0, 0)))
    assert (shares(found)["links"], shares(found)["disks"], found.score) == (1.0, 0.5, 90)
    assert {part.name for part in found.losses} == {f"nvme{number}n1" for number in range(12, 24)}


def test_a_link_without_drives_on_its_node() -> None:
    found = locality(two_nodes(disks=(disk("nvme0n1"),)))
    assert (shares(found)["links"], shares(found)["disks"]) == (0.5, 1.0)
    (part,) = found.losses
    assert (part.kind, part.name, part.node, part.share) == ("links", "eth1", 1, 0.0)


def test_an_array_over_two_nodes_counts_by_its_larger_part() -> None:
    names = tuple(f"nvme{number}n1" for number in range(3))
    found = locality(two_nodes(arrays=(array("md0", *names, disks=names, numa_nodes=(0, 1)),)))
    (part,) = found.losses
    assert (part.kind, part.node, part.why) == ("arrays", None, "its disks: 2 on node 0, 1 on node 1")
    assert part.share == pytest.approx(2 / 3)
    # Three kinds are whole, one has two thirds.
    assert found.score == int(100 * (3 + 2 / 3) / 4)


def test_interrupts_far_away() -> None:
    found = locality(two_nodes(irqs=(*irqs(10, 4, on="0-3"), *irqs(14, 2, on="4-7"), *irqs(16, 2, on="0-3"))))
    (part,) = found.losses
    assert (part.kind, part.name, part.share) == ("interrupts", "eth1", 0.5)
    assert part.why == "2 of 4 interrupts elsewhere"


@pytest.mark.parametrize("parts", [{"managed": True}, {"actions": ("nvme0q0",)}, {"effective": None}])
def test_interrupts_that_do_not_count(parts: dict[str, Any]) -> None:
    found = locality(two_nodes(irqs=irqs(10, 8, on="4-7", **parts)))
    assert "interrupts" not in shares(found)
    assert found.score == 100


def test_hundred_is_said_only_where_nothing_is_lost() -> None:
    many = tuple(disk(f"nvme{number}n1", numa_node=0) for number in range(999))
    found = locality(two_nodes(links=(link("eth0"),), disks=(*many, disk("nvme999n1", numa_node=1)), irqs=()))
    assert found.score == 99
    assert len(found.losses) == 1


def test_what_is_unknown_is_not_counted() -> None:
    some = two_nodes()
    unknown = tuple(replaced(one, {"numa_node": None}) for one in some.disks)
    found = locality(replaced(some, {"disks": unknown}))
    assert shares(found) == {"interrupts": 1.0}
    lost = array("md0", "nvme0n1", "nvme9n1", disks=("nvme0n1", "nvme9n1"))
    assert "arrays" not in shares(locality(two_nodes(arrays=(lost,))))


def test_the_system_s_own_disk_and_way_out_have_no_part() -> None:
    system = disk("nvme4n1", numa_node=1, mountpoints=("/",))
    way_out = link("eth9", numa_node=1, default_route=True)
    found = locality(two_nodes(links=(link("eth0"), way_out), disks=(disk("nvme0n1"), system), irqs=()))
    assert {one.kind: one.counted for one in found.kinds} == {"links": 1, "disks": 1}
    assert found.score == 100


DATA = read_cases(__file__, facts, nothing_known, numa)


@pytest.mark.parametrize(("host", "words"), DATA["no_score_without_nodes"])
def test_no_score_without_nodes(host: Facts, words: str) -> None:
    assert locality(host) == Locality(None, words)


def test_a_service_on_the_wrong_node_has_nothing() -> None:
    host = server()
    assert host.beegfs is not None
    first = host.beegfs.services[0]
    assert first.service is not None
    wrong = msgspec.structs.replace(first, service=msgspec.structs.replace(first.service, cpus_allowed=CPUS[1]))
    services = (wrong, *host.beegfs.services[1:])
    found = locality(replaced(host, {"beegfs": msgspec.structs.replace(host.beegfs, services=services)}))
    assert shares(found)["services"] == pytest.approx(5 / 6, abs=1e-4)
    assert found.losses[0].share == 0.0


def test_the_document_and_the_page_tell_it() -> None:
    host = server(bound=False)
    document = msgspec.json.decode(scan_document(host, ()))
    assert document["locality"]["score"] == 90
    assert document["locality"]["why"] is None
    assert document["locality"]["kinds"][3] == {"kind": "services", "counted": 6, "losing": 6, "share": 0.5}
    page = scan_text(host, (), width=110, color=False)
    assert "locality  90 of 100 · 6 of 6 services off their node" in page


def test_a_host_of_one_node_has_no_line_for_it() -> None:
    assert "locality" not in scan_text(facts(), (), width=110, color=False)
    assert msgspec.json.decode(scan_document(facts(), ()))["locality"]["score"] is None
