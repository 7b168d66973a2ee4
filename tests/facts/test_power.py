"""Turbo, idle states, SMT, clock source and heat, as the kernel shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.facts.host_facts import scan
from advisor.facts.power import IdleState, Power, Throttling, parse_uptime, read_power
from advisor.host import tree_host
from advisor.planner import plan_profiles
from tests.trees import host_of, make_tree

CPUS = "/sys/devices/system/cpu"
CLOCKS = "/sys/devices/system/clocksource/clocksource0"
SERVER = {
    f"{CPUS}/online": "0-3\n",
    f"{CPUS}/intel_pstate/no_turbo": "1\n",
    f"{CPUS}/smt/control": "on\n",
    f"{CPUS}/cpuidle/current_driver": "intel_idle\n",
    f"{CPUS}/cpu0/cpuidle/state0/name": "POLL\n",
    f"{CPUS}/cpu0/cpuidle/state0/latency": "0\n",
    f"{CPUS}/cpu0/cpuidle/state0/disable": "0\n",
    f"{CPUS}/cpu0/cpuidle/state10/name": "C6\n",
    f"{CPUS}/cpu0/cpuidle/state10/latency": "170\n",
    f"{CPUS}/cpu0/cpuidle/state10/disable": "1\n",
    f"{CPUS}/cpu0/cpuidle/state2/name": "C1E\n",
    f"{CPUS}/cpu0/cpuidle/state2/latency": "１０\n",
    f"{CPUS}/cpu0/thermal_throttle/package_throttle_count": "12\n",
    f"{CPUS}/cpu0/thermal_throttle/package_throttle_total_time_ms": "345\n",
    f"{CLOCKS}/current_clocksource": "hpet\n",
    f"{CLOCKS}/available_clocksource": "tsc hpet acpi_pm \n",
    "/proc/uptime": "86400.25 1.00\n",
}


def test_what_a_server_shows(tmp_path: Path) -> None:
    power = scan(tree_host(str(make_tree(tmp_path, SERVER)))).cpu.power
    assert power == Power(
        turbo=False,
        idle_driver="intel_idle",
        idle_states=(
            IdleState("POLL", 0, disabled=False),
            IdleState("C1E", None, disabled=None),
            IdleState("C6", 170, disabled=True),
        ),
        smt="on",
        clock_source="hpet",
        clock_sources=("tsc", "hpet", "acpi_pm"),
        throttling=(Throttling(0, 12, 345),),
        uptime_seconds=86400,
    )


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


@pytest.mark.parametrize(
    ("tunable", "before", "after"),
    [
        (f"sysfs:{CLOCKS}/current_clocksource", "hpet", "tsc"),
        (f"sysfs:{CPUS}/smt/control", "on", "off"),
        ("intel_pstate:no_turbo", "1", "0"),
    ],
)
def test_each_can_be_set_and_is_restored(tmp_path: Path, tunable: str, before: str, after: str) -> None:
    files = SERVER | {f"{CPUS}/cpufreq/policy0/scaling_driver": "intel_pstate\n"}
    plan = plan_profiles(host_of(make_tree(tmp_path, files)), [f"{tunable}={after}"], {})
    assert [(one.tunable, one.before, one.after, bool(one.undo)) for one in plan.changes] == [
        (tunable, before, after, True)
    ]
