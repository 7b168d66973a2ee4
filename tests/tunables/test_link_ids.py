"""Ids of links' values: what each names, what it takes, and what this driver or this host would not take."""

from __future__ import annotations

import pytest

from advisor.host import Host, MemoryFiles, Missing, NoCommands
from advisor.host.ethtool import Answer
from advisor.shell.rollback_script import hand_command
from advisor.tunables import Tunable, parse_tunable
from advisor.tunables.catalogue import find_harm
from advisor.tunables.preflight import Preflight
from tests.cases import cases

CASES = cases(__file__)
SET: dict[str, tuple[str, str]] = CASES["commands"]


@pytest.mark.parametrize("identity", SET)
def test_an_id_and_the_command_that_does_the_same(identity: str) -> None:
    one, (command, value) = parse_tunable(identity), SET[identity]
    assert one.id == identity
    assert one.check_value(value) is None
    assert [hand_command(step) for step in one.make_steps(value)] == [command]


@pytest.mark.parametrize(("attribute", "judged"), CASES["values"].items())
def test_values_that_can_be(attribute: str, judged: dict[str, list[str]]) -> None:
    one, (good, bad) = parse_tunable(f"link:eth1:{attribute}"), judged.values()
    assert [one.check_value(value) for value in good] == [None] * len(good)
    assert all(one.check_value(value) for value in bad)
    # A plan asks for the edit before it judges the value.
    assert all(one.make_edit(a_host(), value, profile="p") for value in bad)


RINGS: Answer = {
    **{"rx": 1024, "rx_max": 4096, "rx_mini": 0, "rx_mini_max": 0},
    **{"rx_jumbo": 512, "rx_jumbo_max": 2048, "tx": 512, "tx_max": 4096},
}
CHANNELS: Answer = {
    "combined": 2,
    "combined_max": 4,
    "rx": 0,
    "rx_max": 0,
    "tx": 0,
    "tx_max": 0,
    "other": 1,
    "other_max": 1,
}
FEATURES: Answer = {"highdma": True, "rx-all": False, "rx-gro": True, "rx-lro": True, "tx-tso": False, "tx-csum": True}
CHANGEABLE: Answer = {**dict.fromkeys(FEATURES, True), "highdma": False, "rx-all": False}
REQUESTED: Answer = {**FEATURES, "highdma": False, "tx-tso": True}
FILES = CASES["FILES"]


def a_host(files: dict[str, str] | None = None) -> Host:
    links = ("eth1", "bond0")
    groups = {
        "rings": RINGS,
        "channels": CHANNELS,
        "features": FEATURES,
        "changeable": CHANGEABLE,
        "requested": REQUESTED,
    }
    answers: dict[tuple[str, str], Answer | Missing] = {(link, what): groups[what] for link in links for what in groups}
    source = MemoryFiles({path: text.encode() for path, text in {**FILES, **(files or {})}.items()})
    return Host(source, NoCommands(), ethtool_answers=answers)


def around(identity: str, before: str, after: str, files: dict[str, str] | None = None) -> Preflight:
    one: Tunable = parse_tunable(identity)
    return one.run_preflight(a_host(files), before, after)


QDISC_OF = "default mq {} limit 10240p quantum {} target 5ms"


@pytest.mark.parametrize(("identity", "before", "after", "why"), CASES["refused"])
def test_what_this_host_would_not_take(identity: str, before: str, after: str, why: str | None) -> None:
    found = around(identity, before, after).refusal
    assert found is None if why is None else why in str(found)


def test_a_qdisc_of_which_it_cannot_be_told_whether_it_comes_back() -> None:
    found = around(
        "link:eth1:qdisc", QDISC_OF.format("fq_codel", 1514), "fq", {"/proc/sys/net/core/default_qdisc": "fq"}
    )
    assert "could not be restored" in str(found.refusal)


def test_what_moves_along_is_recorded() -> None:
    def named(identity: str, before: str, after: str) -> dict[str, str]:
        return {one.tunable.removeprefix("link:"): one.before for one in around(identity, before, after).side_effects}

    assert named("link:eth1:ring.rx", "1024", "512") == {"eth1:ring.rx-jumbo": "512", "eth1:ring.tx": "512"}
    # Those that are on and can be changed.
    assert named("link:eth1:feature.rx-gro", "on", "off") == {"eth1:feature.rx-lro": "on", "eth1:feature.tx-csum": "on"}
    below = named("link:bond0:feature.rx-lro", "on", "off")
    assert below.keys() == {"bond0:feature.rx-gro", "bond0:feature.tx-csum", "eth1:feature.rx-lro"}
    assert named("link:eth1:channels.combined", "2", "1") == {
        **{"eth1:channels.other": "1", "eth1:rps.rx-0": "0-1"},
        **{"eth1:rps-flow-cnt.rx-0": "0", "eth1:xps.tx-0": "none"},
    }
    assert named("link:eth1:ring.rx", "1024", "1024") == {}


def test_only_an_offload_hurts_what_captures_packets() -> None:
    values = {"mtu": "1500", "txqueuelen": "10000", "feature.rx-gro": "on", "ring.rx": "512"}
    hurting = {name for name, value in values.items() if "aptures" in (find_harm(f"link:eth1:{name}", value) or "")}
    assert hurting == {"feature.rx-gro"}
    assert find_harm("link:eth1:mtu", "1500") != find_harm("link:eth1:txqueuelen", "10000")
