"""Links in their stack: both directions, encapsulations, functions of one port, bonds, and links of other programs."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.facts.host_facts import Facts
from advisor.facts.network.link_stack import keeper_of, overhead_bytes
from advisor.facts.network.links import Channels
from advisor.facts.writers.programs import Write
from advisor.planning.mtu import select_links, upper_notes
from advisor.rules.judged import judge
from advisor.rules.rule import SetTunable
from tests.cases import read_cases
from tests.rules.build import facts, irqs, link, llt, llt_link, numa, replaced, virtual


def stack(name: str, kind: str, *lower: str, **parts: Any) -> Any:
    return virtual(name, kind, **{"lower": lower, "state": "up", "carrier": True, "addresses": (), **parts})


def joined(*links: Any) -> Facts:
    """The links with ``upper`` made from ``lower``."""
    return facts(
        links=tuple(
            replaced(one, {"upper": tuple(other.name for other in links if one.name in other.lower)}) for one in links
        )
    )


CASES = read_cases(__file__, joined, link, stack)


@pytest.mark.parametrize(("name", "host", "expected"), CASES["findings"])
def test_findings(name: str, host: Facts, expected: dict[str, Any]) -> None:
    mine = {one.id: one for one in judge(host) if one.id.startswith(("links.", "pcie."))}
    assert {identity: one.severity for identity, one in mine.items()} == {
        identity: wanted["severity"] for identity, wanted in expected.items()
    }, name
    for identity, wanted in expected.items():
        tunables = [(one.tunable, one.value) for one in mine[identity].remedy if isinstance(one, SetTunable)]
        assert tunables == [tuple(pair) for pair in wanted.get("sets", tunables)], name
        for key, value in wanted.get("evidence", {}).items():
            assert mine[identity].evidence[key] == value, name


@pytest.mark.parametrize(("name", "kind", "expected"), CASES["keepers"])
def test_who_keeps_a_link(name: str, kind: str, expected: str | None) -> None:
    one = stack(name, kind)
    found = keeper_of(one, {name: one})
    assert (found and found.name) == expected


def test_ports_of_open_vswitch_and_of_foreign_bridges_are_kept_too() -> None:
    known = {
        one.name: one
        for one in (
            stack("ovs-system", "openvswitch"),
            link("eth0", upper=("ovs-system",)),
            stack("cni0", "bridge", "vethA"),
            stack("vethA", "veth", upper=("cni0",)),
            stack("br0", "bridge", "eth1", "tap0"),
            link("eth1", upper=("br0",)),
            stack("tap0", "tap", upper=("br0",)),
        )
    }
    kept = {name: found.name for name, one in known.items() if (found := keeper_of(one, known))}
    assert kept == {
        "ovs-system": "Open vSwitch",
        "eth0": "Open vSwitch",
        "cni0": "the container network (CNI)",
        "vethA": "the container network (CNI)",
        "tap0": "a guest or container of this host",
    }


@pytest.mark.parametrize(("kind", "detail", "expected"), CASES["overheads"])
def test_overheads(kind: str, detail: dict[str, str], expected: int) -> None:
    assert overhead_bytes(stack("t0", kind, detail=detail)) == expected


def test_a_plan_leaves_what_others_keep_and_says_where_to_change_it() -> None:
    host = joined(
        link("eno1", mtu=1500),
        stack("tap100i0", "tap", mtu=1500),
        stack("br0", "bridge", "eno1", "tap100i0", mtu=1500),
        stack("cni0", "bridge", mtu=1450),
    )
    chosen = select_links({"mtu": "9000", "links": ("br0",)}, host)
    assert {one.names["link"]: one.refusal for one in chosen} == {"br0": None, "eno1": None}
    assert ["tap100i0" in note for note in upper_notes({"br0": 9000}, host)] == [True]
    (refused,) = select_links({"mtu": "9000", "links": ("cni0",)}, host)
    assert refused.state == "blocked"
    assert "CNI plugin" in (refused.refusal or "")


@pytest.mark.parametrize(("mode", "driver", "mtu", "taken"), CASES["modes"])
def test_most_by_mode_and_driver(mode: str, driver: str, mtu: str, taken: bool) -> None:
    kind = "infiniband" if mode else "ethernet"
    host = facts(links=(link("l0", kind=kind, driver=driver, mtu=1500, mtu_max=65535, detail={"mode": mode}),))
    (one,) = select_links({"mtu": mtu, "links": ("l0",)}, host)
    assert (one.refusal is None) is taken


@pytest.mark.parametrize(("kind", "mtu", "planned", "named"), CASES["above"])
def test_what_lies_on_a_raised_link_is_named(kind: str, mtu: int, planned: int, named: bool) -> None:
    host = joined(link("ib0", mtu=1500), stack("ib0.8001", kind, "ib0", mtu=mtu))
    assert ["ib0.8001" in note for note in upper_notes({"ib0": planned}, host)] == [True] * named


@pytest.mark.parametrize(("mtu", "below", "fires"), [(1500, 9000, True), (1472, 1500, False), (8192, 9000, False)])
def test_llt_held_below_its_links(mtu: int, below: int, fires: bool) -> None:
    tags = [llt_link(tag, name, type="udp", mtu=mtu) for tag, name in (("a", "eth1"), ("b", "eth2"))]
    host = facts(links=(link("eth1", mtu=below), link("eth2", mtu=below)), llt=llt(*tags))
    assert bool([one for one in judge(host) if one.id == "llt.mtu-below-links"]) is fires


@pytest.mark.parametrize(("channels", "speed", "expected"), CASES["queues"])
def test_few_queues_of_any_kind(channels: dict[str, int], speed: int | None, expected: str | None) -> None:
    known = Channels(**{**dict.fromkeys(Channels.__struct_fields__, 0), **channels})
    counters = replaced(facts().counters, {"softnet_dropped": 65536})
    host = facts(
        links=(link("eth0", speed_mbps=speed, channels=known),),
        counters=counters,
        irqs=irqs(40, 4, on="0-3"),
        numa=numa(),
    )
    found = [one for one in judge(host) if one.id == "network.few-queues"]
    assert [one.remedy[0].tunable for one in found] == ([expected] if expected else [])  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("by_file", "missing"),
    [
        ({"netplan": ("eno1", "eno2", "eno3")}, ["eno3 (no such link): netplan"]),
        ({"netplan": ("eno1", "eno2", "eno4")}, ["eno4 (no port of it): netplan"]),
        ({"netplan": ("eno1", "eno2"), "ifcfg files": ("eth0", "eth1", "eth2")}, None),
        ({"systemd-networkd": ("ens1", "ens2")}, None),
    ],
)
def test_configured_ports_that_a_bond_lacks(by_file: dict[str, tuple[str, ...]], missing: list[str] | None) -> None:
    ports = (link("eno1"), link("eno2"), link("eno4"))
    host = joined(*ports, stack("bond0", "bond", "eno1", "eno2", mtu=9000))
    writes = [Write(f"link:{port}:master", "bond0", by, 0) for by, names in by_file.items() for port in names]
    found = [one for one in judge(replaced(host, {"writes": tuple(writes)})) if one.id == "links.bond-port-missing"]
    assert [one.evidence["detail"] for one in found] == ([tuple(missing)] if missing else [])
