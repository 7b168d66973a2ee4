"""Which links a profile's line sets something of: rings, channels, offloads, queues and the like."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.errors import InvalidInputError, UsageError
from advisor.facts.host_facts import Facts
from advisor.facts.network.links import Channels, Link, Rings
from advisor.facts.unknown import Unknown
from advisor.planning.targets import Request, resolve_targets
from advisor.profiles.profile import parse_profile
from tests.cases import cases
from tests.profiles.build import document, toml, wanted
from tests.rules.build import facts, link

CASES = cases(__file__)

NAMES: dict[str, Any] = {"type": "names", "about": "a", "default": []}
USED: dict[str, Any] = {"default_route": False, "carrier": True, "addresses": ("192.0.2.1/24",)}
NO_QUEUES = Channels(0, 0, 0, 0, 0, 0, 0, 0)
FEATURES = {"rx-gro": True}


def bond(name: str = "bond0", *lower: str, **parts: Any) -> Link:
    return link(
        name,
        **{
            **{"kind": "bond", "driver": "bonding", "pci": None, "lower": lower, "rings": None, "channels": None},
            **{"features": FEATURES, **USED},
            **parts,
        },
    )


HOST = facts(
    links=(
        bond("bond0", "eth2", "eth3"),
        link("eth0", default_route=True, addresses=("198.51.100.1/24",), features=FEATURES),
        link("eth1", driver="ixgbe", speed_mbps=10_000, features=FEATURES, **USED),
        link("eth2", upper=("bond0",), default_route=False, addresses=(), features={}),
        link(
            "eth3", upper=("bond0",), default_route=False, addresses=(), rings=None, speed_mbps=None, features=FEATURES
        ),
        link("lo", kind="loopback", pci=None, default_route=False, rings=None, channels=None, features=FEATURES),
    )
)


def resolved(line: dict[str, Any], known: Facts = HOST, **given: Any) -> dict[str, str]:
    """Tunable → its value, or the state and the reason why there is none."""
    body = document("mine", line, parameters={"links": NAMES})
    targets, skipped = resolve_targets(Request.from_settings(parse_profile(toml(body), "x"), given), known)
    found = {target.tunable: target.value for target in targets}
    return found | {one.tunable: f"{one.state}: {one.reason}" for one in skipped}


def line(attribute: str, value: str = "1", **only: Any) -> dict[str, Any]:
    more = {"only": only} if only else {}
    return wanted(tunable=f"link:{{link}}:{attribute}", value=value, for_each="links", **more)


def chosen(found: dict[str, str]) -> list[str]:
    return [name.split(":")[1] for name, value in found.items() if ": " not in value]


@pytest.mark.parametrize(("one", "names"), CASES["the ports that have it"])
def test_the_ports_that_have_it(one: dict[str, Any], names: list[str]) -> None:
    assert chosen(resolved(one)) == names


def test_a_link_that_is_named_stands_for_itself_alone() -> None:
    assert chosen(resolved(line("qdisc", "fq"), links="bond0,eth0")) == ["bond0", "eth0"]
    assert chosen(resolved(line("qdisc", "fq"), links="eth[01]")) == ["eth0", "eth1"]
    (why,) = resolved(line("ring.rx"), links="bond0").values()
    assert why.startswith("not-applicable: no link is meant that has ring.rx: name those that are with --set links=")
    with pytest.raises(UsageError, match="there is no link 'eth9' on this host"):
        resolved(line("qdisc", "fq"), links="eth9")


def test_an_mtu_takes_what_lies_below_along_and_only_bounds_the_top() -> None:
    assert chosen(resolved(line("mtu", "9000"))) == ["bond0", "eth1", "eth2", "eth3"]
    assert chosen(resolved(line("mtu", "9000", kinds=["bond"]))) == ["bond0", "eth2", "eth3"]
    assert chosen(resolved(line("mtu", "9000", drivers=["ixgbe"]))) == ["eth1"]
    assert chosen(resolved(line("mtu", "9000"), links="eth[1]")) == ["eth1"]


def test_a_link_that_carries_the_default_route_is_not_interrupted_unless_it_is_named() -> None:
    over = facts(
        links=(bond("bond0", "eth2"), bond("bond1", "eth2", default_route=True), link("eth2", upper=("bond1",)))
    )
    found = resolved(line("ring.rx"), over)
    assert found["link:eth2:ring.rx"].startswith("blocked: it carries the default route: name it")
    assert chosen(resolved(line("ring.rx"), over, links="eth2")) == ["eth2"]
    assert chosen(resolved(line("qdisc", "fq"), over)) == ["eth2"], "nothing is interrupted by that"


def test_what_is_unknown_is_neither_in_nor_out() -> None:
    unasked = link("eth1", rings=None, driver=None, speed_mbps=None, kind="unknown")
    known = facts(links=(unasked,), unknown=(Unknown("links.eth1.rings", "timed out"),))
    assert resolved(line("ring.rx"), known, links="eth1") == {
        "link:eth1:ring.rx": "unknown: whether it has ring.rx could not be read"
    }
    only = {"drivers": ["ena"], "min-mbps": 1, "kinds": ["ethernet"]}
    for attribute in ("qdisc", "mtu"):
        (why,) = resolved(
            line(attribute, "fq" if attribute == "qdisc" else "9000", **only), known, links="eth1"
        ).values()
        assert why == "unknown: whether it is meant is unknown: its kind, its driver, its speed could not be read"


@pytest.mark.parametrize(("one", "words"), CASES["a line that is wrong is named"])
def test_a_line_that_is_wrong_is_named(one: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_profile(toml(document("mine", one)), "x.toml")
    assert words in caught.value.message


ATTRIBUTES = {
    **{"mtu": "9000", "ring.rx": "64", "channels.combined": "2", "coalesce.tx-usecs": "5", "feature.rx-gro": "on"},
    **{
        "pause.rx": "off",
        "txqueuelen": "100",
        "qdisc": "fq",
        "rps.rx-1": "0",
        "rps-flow-cnt.rx-1": "0",
        "xps.tx-1": "0",
    },
}
some_links = st.builds(
    lambda number, lower, parts: link(f"l{number}", lower=tuple(f"l{one}" for one in lower), **parts),
    st.integers(0, 5),
    st.lists(st.integers(0, 6), max_size=2, unique=True),
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from(["ethernet", "bond", "vlan", "loopback", "veth", "unknown"]),
            "driver": st.sampled_from([None, "ena", "ixgbe"]),
            "speed_mbps": st.sampled_from([None, 1000, 25_000]),
            "default_route": st.sampled_from([None, False, True]),
            "addresses": st.sampled_from([(), ("192.0.2.1/24",)]),
            "rings": st.sampled_from([None, Rings(1, 0, 1, 0), Rings(1, 9, 1, 9)]),
            "channels": st.sampled_from([None, NO_QUEUES, Channels(0, 0, 0, 0, 4, 8, 0, 0)]),
            "features": st.sampled_from([None, {}, FEATURES]),
        }
    ),
)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(some_links, max_size=5, unique_by=lambda one: one.name),
    st.sampled_from(sorted(ATTRIBUTES)),
    st.sampled_from([{}, {"drivers": ["ena"]}, {"min-mbps": 5000}, {"kinds": ["bond"]}, {"names": ["l[0-2]"]}]),
    st.sampled_from(["", "l*", "l[01]*"]),
)
def test_each_link_is_judged_once_and_a_bound_never_adds_one(
    links: list[Link], attribute: str, only: dict[str, Any], asked: str
) -> None:
    known = facts(links=tuple(links))
    given = {"links": asked} if asked else {}
    all_of_them = resolved(line(attribute, ATTRIBUTES[attribute]), known, **given)
    bounded = resolved(line(attribute, ATTRIBUTES[attribute], **only), known, **given)
    assert set(chosen(bounded)) <= set(chosen(all_of_them))
    by_name = {one.name: one for one in links}
    for name in chosen(bounded):
        if attribute == "ring.rx":
            assert by_name[name].rings == Rings(1, 9, 1, 9)
        if attribute == "feature.rx-gro":
            assert by_name[name].features == FEATURES
        if not asked and attribute in ("ring.rx", "channels.combined"):
            assert by_name[name].default_route is False
        if only.get("drivers") and attribute != "mtu":
            assert by_name[name].driver == "ena"
