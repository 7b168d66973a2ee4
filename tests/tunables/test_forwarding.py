"""Forwarding of packets, and its side effects: the switches of links, and large receive offload."""

from __future__ import annotations

import pytest

from advisor.host import Host, MemoryFiles, Missing, NoCommands
from advisor.host.ethtool import Answer
from advisor.tunables.preflight import Preflight
from advisor.tunables.sysctl import Sysctl
from tests.cases import cases

CASES = cases(__file__)

FILES = CASES["FILES"]
HAS_LRO = {"eth0": (True, True), "eth1": (False, True), "eth2": (True, False), "v.7": (True, True)}


def around(key: str, before: str, after: str) -> Preflight:
    answers: dict[tuple[str, str], Answer | Missing] = {}
    for name, (is_on, is_free) in HAS_LRO.items():
        answers[name, "features"] = {"rx-lro": is_on}
        answers[name, "changeable"] = {"rx-lro": is_free}
    files = MemoryFiles({path: f"{text}\n".encode() for path, text in FILES.items()})
    return Sysctl(key).run_preflight(Host(files, NoCommands(), ethtool_answers=answers), before, after)


def moved(found: Preflight) -> dict[str, str]:
    return {one.tunable: one.before for one in found.side_effects if not one.coupled}


@pytest.mark.parametrize(("key", "siblings"), CASES["where forwarding begins large receive offload ends"])
def test_where_forwarding_begins_large_receive_offload_ends(key: str, siblings: dict[str, str]) -> None:
    found = around(key, "0", "1")
    assert moved(found) == siblings
    assert bool(found.notes) == bool(siblings)
    assert moved(around(key, "1", "0")) == {}, "it does not come back where forwarding ends"
    assert around(key, "0", "0") == Preflight()
