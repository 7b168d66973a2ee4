"""Which links are seen to carry data, and what the scan and the plan of jumbo-frames make of it."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.facts.network.links import Link
from advisor.facts.remote.network_storage import NetworkStorage
from advisor.planning.mtu import select_links
from advisor.rules.judged import judge
from advisor.rules.network.mtu import data_links, idle_links
from advisor.rules.workload import parse_workload
from tests.rules.build import bond, facts, link, llt_link, replaced, virtual
from tests.rules.cases_infoscale import MIRRORED, SHARED, cluster

PORTS = tuple(
    link(f"eth{at}", mtu=1500, addresses=(f"10.0.{at}.1/24",), pci=f"0000:3b:00.{at}", default_route=False)
    for at in (1, 2, 3)
)
STORAGE = (NetworkStorage("iscsi", "sdb", "tcp", ("eth3",)),)
LLT = (llt_link("a", "eth1"), llt_link("b", "eth2"))


def vlans(*, mtu: int = 1500, ports_mtu: int = 1500, address: str = "") -> tuple[Link, ...]:
    """A bond of two ports with VLANs 10 and 20, which have the addresses."""
    stack = bond("bond0", "eth1", "eth2", mtu=ports_mtu, upper=("bond0.10", "bond0.20"), default_route=False)
    stack = tuple(replaced(one, {"mtu": ports_mtu, "default_route": False}) for one in stack)
    stack = (*stack[:-1], replaced(stack[-1], {"addresses": (address,) if address else ()}))
    tags = (
        virtual(f"bond0.{n}", "vlan", lower=("bond0",), mtu=mtu, addresses=(f"10.0.{n}.1/24",), default_route=False)
        for n in (10, 20)
    )
    return (*stack, *tags)


def named(workload: str | None, parts: dict[str, Any]) -> list[str]:
    declared = parse_workload(workload) if workload else None
    return [one.advice for one in judge(facts(**parts), declared) if one.id == "links.mtu-below-range"]


def chosen(parts: dict[str, Any]) -> dict[str, str]:
    return {
        one.names["link"]: one.value or "" for one in select_links({"mtu": 9000}, facts(**parts)) if not one.refusal
    }


@pytest.mark.parametrize(
    ("disks", "storage", "data", "idle"),
    [
        (MIRRORED, (), ("eth1", "eth2"), set()),
        (MIRRORED, STORAGE, ("eth3", "eth1", "eth2"), set()),
        (SHARED, (), (), {"eth1", "eth2"}),
        (SHARED, STORAGE, ("eth3",), {"eth1", "eth2"}),
        (SHARED, (NetworkStorage("nfs", "/n", "tcp", ("eth2",)),), ("eth2",), {"eth1"}),
    ],
)
def test_llt_carries_data_only_where_writes_cross_it(
    disks: Any, storage: Any, data: tuple[str, ...], idle: set[str]
) -> None:
    parts = cluster(*LLT, disks=disks, links=PORTS, network_storage=storage)
    assert data_links(facts(**parts)) == data
    assert idle_links(facts(**parts)) == idle
    # Where nothing is seen, a port in use that carries no heartbeats.
    assert set(chosen(parts)) == (set(data) or {"eth3"})


@pytest.mark.parametrize("workload", [None, "backup", "write=100%,block=64k,access=sequential"])
def test_one_finding_for_the_storage_link_of_a_node_that_shares_its_disks(workload: str | None) -> None:
    parts = cluster(*LLT, disks=SHARED, links=PORTS, network_storage=STORAGE)
    assert named(workload, parts) == ["advisor plan jumbo-frames --set links=eth3"]


def test_a_storage_link_with_the_default_route_is_not_chosen() -> None:
    routed = tuple(replaced(one, {"default_route": one.name == "eth3"}) for one in PORTS)
    parts = {"links": routed, "network_storage": STORAGE}
    assert data_links(facts(**parts)) == ()
    assert set(chosen(parts)) == {"eth1", "eth2"}


@pytest.mark.parametrize("storage", [(), (NetworkStorage("iscsi", "sdb", "tcp", ("bond0.10", "bond0.20")),)])
def test_the_vlans_on_a_bond_are_named_and_what_is_below_follows(storage: Any) -> None:
    parts = {"links": vlans(), "network_storage": storage}
    assert named(None, parts) == ["advisor plan jumbo-frames --set links=bond0.10,bond0.20"]
    assert chosen(parts) == dict.fromkeys(("eth1", "eth2", "bond0", "bond0.10", "bond0.20"), "9000")


def test_vlans_of_llt_are_named() -> None:
    parts = cluster(llt_link("a", "bond0.10"), llt_link("b", "bond0.20"), disks=MIRRORED, links=vlans())
    assert [one.evidence["links"] for one in judge(facts(**parts)) if one.id == "links.mtu-below-range"] == [
        ("bond0.10", "bond0.20")
    ]


def test_a_vlan_that_was_left_at_1500_is_found() -> None:
    assert named(None, {"links": vlans(ports_mtu=9000)}) == ["advisor plan jumbo-frames --set links=bond0.10,bond0.20"]
    assert named(None, {"links": vlans(mtu=9000, ports_mtu=9000)}) == []


def test_the_data_of_one_vlan_leaves_the_other_alone() -> None:
    storage = (NetworkStorage("iscsi", "sdb", "tcp", ("bond0.20",)),)
    assert named("backup", {"links": vlans(), "network_storage": storage}) == [
        "advisor plan jumbo-frames --set links=bond0.20"
    ]


def test_a_bond_with_an_address_of_its_own_is_named_itself() -> None:
    assert named(None, {"links": vlans(address="10.9.9.1/24")}) == ["advisor plan jumbo-frames --set links=bond0"]
