"""The rules of InfoScale and of LLT in a cluster: where each fires and is silent, and what the recognition makes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from advisor.facts.clusters.infoscale import LltHost, VxDisk
from advisor.facts.clusters.infoscale_configuration import TITLES
from advisor.profiles.profile import load, profile_paths
from advisor.rules.clusters.infoscale import profile_of, recognised_workload, recognition, serial_writes_per_second
from advisor.rules.clusters.llt_cluster import queue_bytes, window_bytes_per_second
from advisor.rules.workload import parse_workload
from tests.cases import read_cases
from tests.rules.build import facts, llt_link
from tests.rules.cases_infoscale import AWS, MIRRORED, NEAR, SHARED, SINGLE, TCP, cluster, memory_of
from tests.rules.test_rules import findings_of


@pytest.mark.parametrize("name", TITLES)
def test_every_configuration_has_a_profile(name: str) -> None:
    assert profile_of(name) in profile_paths()
    assert load(profile_of(name)).conditions[-1].fact == f"infoscale.configurations.{name}"


DATA = read_cases(__file__, MIRRORED=MIRRORED, SHARED=SHARED)


@pytest.mark.parametrize(("workload", "disks", "expected"), DATA["a_declaration_beside_what_was_seen"])
def test_a_declaration_beside_what_was_seen(
    workload: str, disks: tuple[VxDisk, ...] | None, expected: str | None
) -> None:
    found = recognition(facts(**cluster(disks=disks)), parse_workload(workload))
    assert found is not None
    assert found.configuration == expected
    if expected and disks is None:
        assert any("(declared)" in text for text in found.evidence)


def test_a_single_node_may_be_declared_where_nothing_speaks_against_it() -> None:
    host = facts(**cluster(hosts=()))
    found = recognition(host, parse_workload("single-node"))
    assert found is not None
    assert found.configuration == "single-node"
    two = recognition(facts(**cluster()), parse_workload("single-node"))
    assert two is not None
    assert two.fits["single-node"] == "no"


@pytest.mark.parametrize(
    ("parts", "transport", "replication"),
    [
        (SINGLE, None, "none"),
        (cluster(disks=SHARED), None, "none"),
        (cluster(*TCP, disks=MIRRORED), "tcp", "sync"),
        (cluster(disks=MIRRORED, table=NEAR, host=AWS), "udp", "sync"),
    ],
)
def test_what_a_configuration_says_of_the_load_and_no_more(
    parts: dict[str, Any], transport: str | None, replication: str
) -> None:
    found = recognised_workload(facts(**parts))
    assert found is not None
    assert (found.transport, found.replication) == (transport, replication)
    assert (found.block_bytes, found.access, found.write_share, found.rtt_seconds) == (None, None, None, None)


@pytest.mark.parametrize("parts", [{}, cluster(), cluster(disks=MIRRORED)])
def test_where_it_is_not_certain_nothing_is_taken_for_a_workload(parts: dict[str, Any]) -> None:
    assert recognised_workload(facts(**parts)) is None


@pytest.mark.parametrize(("rtt", "writes"), [(1.16e-3, 862), (1.12e-3, 893), (0.1e-3, 10_000)])
def test_serial_writes(rtt: float, writes: int) -> None:
    assert round(serial_writes_per_second(rtt)) == writes


def test_a_window_of_50_packets_over_the_round_trip_of_zones() -> None:
    assert round(window_bytes_per_second(50, 8192, 1.16e-3) / 1e6) == 353
    assert window_bytes_per_second(50, 8192, 1e-3) == 50 * 8192 * 1000


@pytest.mark.parametrize(("peers", "expected"), [(1, 2000 * 8192), (3, 4000 * 8192)])
def test_queues_grow_with_the_peers(peers: int, expected: int) -> None:
    assert queue_bytes(1000, 1000, 8192, peers) == expected


def test_the_nodes_are_counted_by_llthosts() -> None:
    four = tuple(LltHost(n, f"n{n}") for n in range(4))
    (found,) = findings_of("llt.queue-memory", None, cluster(hosts=four, memory=memory_of(300 << 20)))
    assert found.evidence["peers"] == 3


def test_the_finding_of_an_uncertain_configuration_says_how_to_learn_it() -> None:
    (found,) = findings_of("infoscale.configuration", None, cluster())
    assert "shared-disk, fss-udp, fss-zones" in found.title
    assert "vxdisk -o alldgs list" in found.advice
    assert "advisor probe" in found.advice
    (none,) = findings_of("infoscale.configuration", None, cluster(llt_link("a", "eth1", type="ether"), disks=MIRRORED))
    assert "none of the five" in none.title
    assert msgspec.json.encode(none)
