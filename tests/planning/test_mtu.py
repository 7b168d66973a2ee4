"""Jumbo frames: which links, in which order, and which cannot."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from advisor.errors import UsageError
from advisor.facts.host_facts import Facts
from advisor.planning.links import ipv6_notes
from advisor.planning.targets import Request, resolve_targets
from advisor.profiles.profile import parse_profile
from tests.planning.system import ETH0, LOOPBACK, Link, planned, skipped, states, system, values
from tests.profiles.build import document, toml, wanted, write
from tests.rules.build import bond, facts, virtual

JUMBO = "jumbo-frames"
STACK = (
    LOOPBACK,
    ETH0,
    Link("eth1", node=0),
    Link("eth2", node=0),
    Link("bond0", "bond", on=("eth1", "eth2"), address="192.0.2.1"),
    Link("bond0.7", "vlan", on=("bond0",), address="192.0.2.9"),
)


def raised(where: Path, **settings: str) -> dict[str, int]:
    """Link → MTU, in the plan's order."""
    plan = planned(where, JUMBO, **settings)
    return {tunable.split(":")[1]: int(after) for tunable, (_, after) in values(plan).items()}


def test_a_stack_is_raised_from_the_bottom(tmp_path: Path) -> None:
    system(tmp_path, STACK)
    assert list(raised(tmp_path).items()) == [("eth1", 9000), ("eth2", 9000), ("bond0", 9000), ("bond0.7", 9000)]
    assert list(raised(tmp_path, links="bond0.7")) == ["eth1", "eth2", "bond0", "bond0.7"]
    assert list(raised(tmp_path, links="eth2")) == ["eth2"]
    assert list(raised(tmp_path, links="bond0")) == ["eth1", "eth2", "bond0"]
    # It carries the default route, but it is meant.
    assert list(raised(tmp_path, links="eth0")) == ["eth0"]


LLTTAB = "set-node a\nset-cluster 7\n"
PRIVATE = "link a eth1 - ether - -\nlink b eth2 - ether - -\n"
PORTS = (LOOPBACK, ETH0, Link("eth1", node=0), Link("eth2", node=1), Link("eth3", node=1, address="198.51.100.1"))


@pytest.mark.parametrize(
    ("more", "low", "expected", "left"),
    [
        # The standard layout: the low-priority link is the public one.
        ((), "eth0", ["eth1", "eth2"], ["eth0"]),
        ((), "eth3", ["eth1", "eth2"], ["eth3"]),
        ((), "eth0 eth3", ["eth1", "eth2"], ["eth0", "eth3"]),
        # Over a VLAN of the public port, and over a bond of others.
        ((Link("eth0.9", "vlan", on=("eth0",)),), "eth0.9", ["eth1", "eth2"], ["eth0.9"]),
        ((Link("bond0", "bond", on=("eth0", "eth3")),), "bond0", ["eth1", "eth2"], ["bond0"]),
        # What is also a private link, or lies below one, is raised.
        ((), "eth1", ["eth1", "eth2"], []),
        ((Link("eth2.5", "vlan", on=("eth2",)),), "eth2.5", ["eth1", "eth2"], ["eth2.5"]),
    ],
)
def test_low_priority_links_of_llt_are_left_out_with_a_line(
    more: tuple[Link, ...], low: str, expected: list[str], left: list[str], tmp_path: Path
) -> None:
    lines = "".join(f"link-lowpri low{at} {name} - ether - -\n" for at, name in enumerate(low.split()))
    system(tmp_path, (*PORTS, *more), files={"/etc/llttab": LLTTAB + PRIVATE + lines})
    plan = planned(tmp_path, JUMBO)
    assert [name.split(":")[1] for name in values(plan)] == expected
    assert not plan.cannot_apply
    assert states(plan) == {f"link:{name}:mtu": "not-applicable" for name in left}
    assert all("low-priority link" in one.reason and "heartbeats only" in one.reason for one in plan.skipped)


def test_a_team_alone_changes_its_ports(tmp_path: Path) -> None:
    """The kernel refuses an MTU of a port that does not come from its team (drivers/net/team/team.c)."""
    team = (*STACK[:4], Link("team0", "team", on=("eth1", "eth2"), address="192.0.2.1"))
    system(tmp_path, (*team, Link("team0.7", "vlan", on=("team0",))))
    assert list(raised(tmp_path)) == ["team0"]
    assert list(raised(tmp_path, links="team0.7")) == ["team0", "team0.7"]
    plan = planned(tmp_path, JUMBO, links="team0.7")
    assert [one.tunable for one in plan.side_effects] == ["link:eth1:mtu", "link:eth2:mtu"]
    found = skipped(planned(tmp_path, JUMBO, links="eth2"), "link:eth2:mtu")
    assert (found.state, found.reason) == (
        "blocked",
        "it is a port of team0, which alone can change its MTU: name team0 instead",
    )


def test_an_overlay_needs_room_below(tmp_path: Path) -> None:
    four = Link("vx4", "vxlan", on=("eth1",), data={"id": "4", "remote": "192.0.2.7"}, max_mtu=65535)
    six = Link("vx6", "vxlan", on=("eth2",), data={"id": "6", "remote6": "2001:db8::7"}, max_mtu=65535)
    bridge = Link("br0", "bridge", on=("vx4",), max_mtu=65535)
    ports = (Link("eth1", node=0), Link("eth2", node=0))
    system(tmp_path, (LOOPBACK, ETH0, *ports, four, six, bridge))
    assert raised(tmp_path, links="vx4,vx6") == {"eth1": 9050, "eth2": 9070, "vx4": 9000, "vx6": 9000}
    assert raised(tmp_path, links="br0") == {"eth1": 9050, "vx4": 9000, "br0": 9000}
    assert raised(tmp_path, links="eth1,vx4") == {"eth1": 9050, "vx4": 9000}


@pytest.mark.parametrize(
    ("links", "settings", "name", "reason"),
    [
        ((ETH0, Link("v", "vlan", on=("eth0",), address="192.0.2.3")), {}, "eth0", "it carries the default route"),
        ((ETH0, Link("v", "vlan", on=("eth0",))), {"links": "v"}, "eth0", "it carries the default route"),
        ((ETH0, Link("eth1", node=0, max_mtu=4096)), {"links": "eth1"}, "eth1", "its driver allows at most 4096"),
        ((LOOPBACK, ETH0), {"links": "lo", "mtu": "9000"}, "lo", "the loopback link carries no frames"),
        ((Link("lo", mtu=1500),), {"links": "lo"}, "lo", "the loopback link carries no frames"),
    ],
)
def test_links_that_cannot(
    links: tuple[Link, ...], settings: dict[str, str], name: str, reason: str, tmp_path: Path
) -> None:
    system(tmp_path, links)
    plan = planned(tmp_path, JUMBO, **settings)
    found = skipped(plan, f"link:{name}:mtu")
    assert found.state == "blocked"
    assert reason in found.reason
    assert plan.cannot_apply


@pytest.mark.parametrize("value", ["=99999", "=10", ">=9217", "<=67"])
def test_a_value_outside_the_range_of_the_driver_is_a_mistake(value: str, tmp_path: Path) -> None:
    system(tmp_path)
    reason = f"{value.lstrip('<>=')} is not 68 to 9216 bytes"
    with pytest.raises(UsageError, match=reason) as caught:
        planned(tmp_path, f"link:eth1:mtu{value}")
    assert caught.value.exit_code == 2
    assert values(planned(tmp_path, "link:eth1:mtu=9216")) == {"link:eth1:mtu": ("1500", "9216")}
    line = wanted(tunable="link:eth1:mtu", value=value.lstrip("<>="))
    found = skipped(planned(tmp_path, str(write(tmp_path, document("mine", line))["mine"])), "link:eth1:mtu")
    assert (found.state, reason in found.reason) == ("blocked", True)


def test_what_is_there_already_is_in_nobodys_way(tmp_path: Path) -> None:
    # It carries the default route, and its driver's most is below what is asked for; but nothing is asked of it.
    below = Link("eth0", mtu=9100, address="10.0.2.15", node=0, max_mtu=9100)
    system(tmp_path, (below, Link("v", "vlan", on=("eth0",), address="192.0.2.3")))
    plan = planned(tmp_path, JUMBO)
    assert list(values(plan)) == ["link:v:mtu"]
    assert states(plan) == {"link:eth0:mtu": "in-place"}


def test_without_a_route_table_nothing_is_chosen_unasked(tmp_path: Path) -> None:
    system(tmp_path, (ETH0, Link("v", "vlan", on=("eth0",))), {"/proc/net/route": None})
    assert planned(tmp_path, JUMBO).is_empty
    assert "whether it carries the default route is unknown" in planned(tmp_path, JUMBO, links="v").blocking[0].reason
    assert list(raised(tmp_path, links="eth0")) == ["eth0"]


def targets(mtu: int, links: str, host: Facts) -> list[tuple[str, str]]:
    """Tunables and values in order, of a profile that sets an MTU whatever it was."""
    one = wanted(tunable="link:{link}:mtu", for_each="links", value=str(mtu))
    names = {"links": {"type": "names", "about": "a"}}
    profile = parse_profile(toml(document("mine", one, parameters=names)), "x")
    found, _ = resolve_targets(Request.from_settings(profile, {"links": links}), host)
    return [(each.tunable.split(":")[1], each.value) for each in sorted(found, key=lambda each: each.rank)]


def test_a_stack_is_lowered_from_the_top_and_what_is_below_stays() -> None:
    host = facts(links=(*bond("bond0", "eth1", "eth2"), virtual("v", "vlan", lower=("bond0",))))
    assert targets(1500, "v,bond0", host)[:2] == [("v", "1500"), ("bond0", "1500")]
    assert targets(1500, "v", host) == [("v", "1500"), ("eth1", "9000"), ("eth2", "9000"), ("bond0", "9000")]


@pytest.mark.parametrize(
    ("before", "after", "is_noted"), [("1500", "1279", True), ("1500", "1280", False), ("1200", "600", False)]
)
def test_below_what_ipv6_needs_it_is_said_what_will_not_come_back(
    tmp_path: Path, before: str, after: str, *, is_noted: bool
) -> None:
    system(tmp_path)
    one = next(one for one in planned(tmp_path, JUMBO).changes if one.tunable == "link:eth1:mtu")
    notes = list(ipv6_notes([msgspec.structs.replace(one, before=before, after=after)]))
    assert [note.partition(":")[0] for note in notes] == ["eth1"] * is_noted
