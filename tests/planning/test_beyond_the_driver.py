"""A value that one link's driver does not take, where a line is for several links: that link alone is left out."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.facts.network.links import Channels, Link
from advisor.host import Host, MemoryFiles, Missing, NoCommands
from advisor.host.ethtool import Answer
from advisor.planning.compute import make_plan
from advisor.planning.observations import observe_targets
from advisor.planning.records import Plan
from advisor.planning.targets import Request, resolve_targets
from advisor.profiles.profile import parse_profile
from tests.cases import cases
from tests.profiles.build import document, toml, wanted
from tests.rules.build import facts, link

CASES = cases(__file__)

USED: dict[str, Any] = {"default_route": False, "carrier": True, "addresses": ("192.0.2.1/24",)}
MOST = {"eth0": 8, "eth1": 4, "eth2": 1}
ALL = "link:{link}:channels.combined"


def channels(most: int) -> Answer:
    counts = {"combined": 1, "combined_max": most, "rx": 0, "rx_max": 0, "tx": 0, "tx_max": 0}
    return {**counts, "other": 0, "other_max": 0}


def features(name: str) -> dict[str, Answer]:
    return {
        "features": {"rx-gro": True, "rx-lro": name == "eth2"},
        "changeable": {"rx-gro": True, "rx-lro": name != "eth2"},
        "requested": {"rx-gro": True, "rx-lro": False},
    }


def links() -> tuple[Link, ...]:
    return tuple(
        link(name, channels=Channels(0, 0, 0, 0, 1, most, 0, 0), features={"rx-gro": True, "rx-lro": False}, **USED)
        for name, most in MOST.items()
    )


def machine() -> Host:
    answers: dict[tuple[str, str], Answer | Missing] = {}
    for name, most in MOST.items():
        answers[name, "channels"] = channels(most)
        answers |= {(name, group): answer for group, answer in features(name).items()}
    return Host(MemoryFiles({}), NoCommands(), ethtool_answers=answers)


def planned(*lines: dict[str, Any], default: tuple[str, ...] = (), **given: str) -> Plan:
    names = {"type": "names", "about": "a", "default": list(default)}
    profile = parse_profile(toml(document("mine", *lines, parameters={"links": names})), "x")
    known, host = facts(links=links()), machine()
    targets, skipped = resolve_targets(Request.from_settings(profile, given), known)
    return make_plan(("mine",), targets, skipped, observe_targets(host, targets, {}), known, runtime_only=True)


def line(identity: str = ALL, value: str = "4", **more: Any) -> dict[str, Any]:
    return wanted(tunable=identity, value=value, **{"for_each": "links", **more})


def changes(plan: Plan) -> list[str]:
    return sorted(one.tunable.split(":")[1] for one in plan.changes)


def left_out(plan: Plan) -> dict[str, tuple[str, str]]:
    return {one.tunable.split(":")[1]: (one.state, one.reason) for one in plan.skipped}


ONE = "its driver allows at most 1"


@pytest.mark.parametrize(("default", "given"), CASES["of all links the one that cannot is left out"])
def test_of_all_links_the_one_that_cannot_is_left_out(default: tuple[str, ...], given: dict[str, str]) -> None:
    """The names that a profile has by itself were its author's, who did not know this host's drivers."""
    plan = planned(line(), default=default, **given)
    assert changes(plan) == ["eth0", "eth1"]
    assert left_out(plan) == {"eth2": ("not-applicable", ONE)}
    assert not plan.cannot_apply


def test_a_feature_that_is_fixed_is_one_such() -> None:
    plan = planned(line("link:{link}:feature.rx-lro", "on"), line("link:{link}:feature.rx-gro", "off"))
    assert changes(plan) == ["eth0", "eth0", "eth1", "eth1", "eth2"]
    assert not plan.blocking
    asked = planned(line("link:{link}:feature.rx-lro", "off"), links="eth2")
    assert left_out(asked)["eth2"] == ("blocked", "it is [fixed]: the driver does not let it be changed")


@pytest.mark.parametrize("given", ["eth2", "eth0,eth1,eth2", "eth2,eth*"])
def test_a_link_that_a_person_named_is_refused(given: str) -> None:
    plan = planned(line(), links=given)
    assert left_out(plan)["eth2"] == ("blocked", ONE)
    assert plan.cannot_apply


def test_where_no_link_can_there_is_nothing_to_apply() -> None:
    plan = planned(line(value="64"))
    assert {state for state, _ in left_out(plan).values()} == {"not-applicable"}
    assert plan.cannot_apply
    assert left_out(planned(line(sense="at-most")))["eth2"][0] == "in-place"


def test_a_line_for_one_link_is_refused() -> None:
    plan = planned(wanted(tunable="link:eth2:channels.combined", value="4"), line(value="2", only={"names": ["eth0"]}))
    assert left_out(plan)["eth2"] == ("blocked", ONE)
    assert plan.cannot_apply
