"""What goes wrong between hosts: MTU along a network, what may be there once, clocks."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.facts.host_facts import Facts
from advisor.fleet.compare.outliers import find_outliers
from advisor.fleet.compare.remedies import CommandOrigin
from tests.fleet.alike import ODD, Change, compared, fleet_of, only, twelve, with_link
from tests.rules import build


def test_one_host_with_a_smaller_mtu_breaks_the_ring() -> None:
    finding = only(compared(with_link("eth1", mtu=1500), controller=CommandOrigin("hosts.ini")))
    assert (finding.id, finding.severity, finding.hosts) == ("fleet.mtu-in-network", "warning", (ODD,))
    assert finding.scope == "cluster 7"
    assert finding.goes_with == ("link.llt-1.mtu",)
    assert finding.commands == (
        f"advisor fleet apply jumbo-frames --set links=eth1 --set mtu=9000 -i hosts.ini --limit {ODD}",
    )


def with_identity(**parts: Any) -> Change:
    return lambda facts: build.replaced(facts, {"host": build.replaced(facts.host, parts)})


def with_node(number: int) -> Change:
    def change(facts: Facts) -> Facts:
        assert facts.llt is not None
        nodes = (build.replaced(facts.llt.nodes[0], {"id": number}),)
        return build.replaced(facts, {"llt": build.replaced(facts.llt, {"nodes": nodes})})

    return change


@pytest.mark.parametrize(
    ("change", "name", "parts"),
    [
        # Of an MTU where nobody shares a network only the kind of link is compared.
        (
            with_link("eth1", mtu=1500, addresses=("172.16.9.8/24",)),
            "link-mtu",
            {"severity": "advice", "commands": (f"advisor apply link:eth1:mtu=9000  # on {ODD}",)},
        ),
        (with_link("eth1", speed_mbps=10_000), "speed-in-network", {"goes_with": ("link.llt-1.speed_mbps",)}),
        (with_link("eth1", addresses=("10.1.0.3/24",)), "duplicate-address", {"hosts": ("n3", ODD)}),
        (with_identity(machine_id=f"{3:032x}"), "duplicate-machine-id", {"hosts": ("n3", ODD)}),
        (with_identity(hostname="n3"), "duplicate-hostname", {"hosts": ("n3", ODD)}),
        (with_node(3), "duplicate-llt-node", {"hosts": ("n3", ODD), "scope": "cluster 7"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_found_of_one_host(change: Change, name: str, parts: dict[str, Any]) -> None:
    finding = only(compared(change))
    wanted = {"hosts": (ODD,), **parts}
    assert finding.id == f"fleet.{name}"
    assert {part: getattr(finding, part) for part in wanted} == wanted


@pytest.mark.parametrize("parts", [{"mtu": None}, {"mtu": 1500, "state": "down"}])
def test_an_unknown_mtu_and_that_of_a_link_that_is_down_break_nothing(parts: dict[str, Any]) -> None:
    assert "fleet.mtu-in-network" not in [one.id for one in compared(with_link("eth1", **parts)).findings]


def test_the_same_private_network_in_two_clusters_is_two_networks() -> None:
    def second(facts: Facts) -> Facts:
        assert facts.llt is not None
        assert facts.llt.llttab is not None
        table = build.replaced(facts.llt.llttab, {"cluster": "9"})
        changed = build.replaced(facts, {"llt": build.replaced(facts.llt, {"llttab": table})})
        number = int(str(facts.host.hostname)[1:]) - 6
        smaller = with_link("eth1", mtu=1500, addresses=(f"10.1.0.{number}/24",))(changed)
        return with_link("eth2", mtu=1500, addresses=(f"10.2.0.{number}/24",))(smaller)

    found = find_outliers(fleet_of(twelve(second, odd=[f"n{number}" for number in range(7, 13)]))).findings
    assert {one.id for one in found} == {"fleet.link-mtu"}


def test_one_machine_under_two_names() -> None:
    hosts = twelve()
    finding = only(find_outliers(fleet_of([*hosts, ("alias", hosts[2][1])])))
    assert (finding.id, finding.hosts, finding.severity) == ("fleet.duplicate-host", ("alias", "n3"), "advice")


def test_one_cluster_id_on_two_sets_of_networks() -> None:
    def apart(facts: Facts) -> Facts:
        moved = facts
        for name, old, new in (("eth1", "10.1", "10.7"), ("eth2", "10.2", "10.8")):
            link = next(one for one in facts.links if one.name == name)
            moved = with_link(name, addresses=(link.addresses[0].replace(old, new),))(moved)
        return moved

    half = [f"n{number}" for number in range(7, 13)]
    finding = only(find_outliers(fleet_of(twelve(apart, odd=half))))
    assert finding.id == "fleet.llt-cluster-twice"
    assert {(held.value, len(held.hosts)) for held in finding.differences[0].groups} == {
        ("10.1.0.0/24, 10.2.0.0/24", 6),
        ("10.7.0.0/24, 10.8.0.0/24", 6),
    }


@pytest.mark.parametrize(("skew", "severity"), [(1.5, None), (-40.0, "advice"), (400.0, "warning")])
def test_a_clock_that_is_off(skew: float, severity: str | None) -> None:
    found = compared(extra={ODD: {"skew_seconds": skew}}).findings
    assert [(one.id, one.severity) for one in found] == ([("fleet.clock", severity)] if severity else [])


def test_a_clock_that_nobody_could_tell_is_unknown() -> None:
    extra = {ODD: {"skew_seconds": None}, "n2": {"skew_seconds": 90.0}}
    (reported,) = only(compared(extra=extra)).differences
    assert (reported.outliers, reported.unknown) == (("n2",), (ODD,))
