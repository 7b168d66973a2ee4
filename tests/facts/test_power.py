"""Turbo, idle states, SMT, clock source and heat, as the kernel shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.facts.host_facts import scan
from advisor.facts.processors.power import IdleState, Power, Throttling, parse_uptime, read_power
from advisor.host import tree_host
from advisor.planner import plan_profiles
from tests.cases import read_cases
from tests.trees import host_of, make_tree

CPUS = "/sys/devices/system/cpu"
DATA = read_cases(__file__, IdleState, Power, Throttling)

SERVER = DATA["SERVER"]


def test_what_a_server_shows(tmp_path: Path) -> None:
    power = scan(tree_host(str(make_tree(tmp_path, SERVER)))).cpu.power
    assert power == DATA["what_a_server_shows"]


def test_what_is_not_there_is_unknown(tmp_path: Path) -> None:
    assert read_power(tree_host(str(make_tree(tmp_path, {"/proc/x": ""}))), (0,)) == Power()


@pytest.mark.parametrize("text", ["", "abc", "-1.0 2", "1", "１.0 1", "1e5 1"])
def test_an_odd_uptime_is_unknown(text: str) -> None:
    assert parse_uptime(text) is None


@pytest.mark.parametrize("value", ["", "maybe", "2", "0 1"])
def test_an_odd_switch_is_unknown(tmp_path: Path, value: str) -> None:
    files = {f"{CPUS}/cpufreq/boost": value, f"{CPUS}/cpu0/thermal_throttle/package_throttle_count": value}
    power = read_power(tree_host(str(make_tree(tmp_path, files))), (0,))
    assert power.turbo is None
    assert [one.count for one in power.throttling] == ([2] if value == "2" else [])


@pytest.mark.parametrize(("tunable", "before", "after"), DATA["each_can_be_set_and_is_restored"])
def test_each_can_be_set_and_is_restored(tmp_path: Path, tunable: str, before: str, after: str) -> None:
    files = SERVER | {f"{CPUS}/cpufreq/policy0/scaling_driver": "intel_pstate\n"}
    plan = plan_profiles(host_of(make_tree(tmp_path, files)), [f"{tunable}={after}"], {})
    assert [(one.tunable, one.before, one.after, bool(one.undo)) for one in plan.changes] == [
        (tunable, before, after, True)
    ]
