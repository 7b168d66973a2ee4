"""Clocks, latency, scheduler, modules, units and sysfs: in with a transaction, out by either way back."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.errors import RestoredError
from advisor.host import Host, observe
from advisor.host.probes import reduce
from advisor.planning.records import Plan
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import Store
from advisor.transaction.rollback import roll_back
from advisor.transaction.trial import run_trial
from advisor.transaction.verify import find_drift
from tests.transaction.kernel_system import WANTED, build, plan_of, values
from tests.trees import listing

POLICIES = ("policy0", "policy1", "policy10")


def expected() -> dict[str, str]:
    found = {name: value for name, value in WANTED.items() if "*" not in name and not name.endswith(":quick")}
    for name, value in WANTED.items():
        if name.startswith("cpufreq:*"):
            found |= {name.replace("*", policy): value for policy in POLICIES}
    return found | {"module:other:quick": "Y", "sysfs:/sys/devices/pci0/a/power/control": "on"}


def read(host: Host, plan: Plan) -> dict[str, object]:
    return {one.tunable: observe(host, one.probe) for one in plan.changes}


def state(where: Path) -> dict[str, tuple[str, int, bytes]]:
    """All files; of those in which a kernel marks a choice, which a tree does not, the choice."""
    found = listing(where / "root")
    for path in ("sys/kernel/debug/sched/preempt", "sys/devices/pci0/a/mode"):
        kind, mode, text = found[path]
        found[path] = (kind, mode, str(reduce(text.decode(), "choice")).encode())
    return found


def test_in_and_out_again(tmp_path: Path) -> None:
    host, store = build(tmp_path), Store(str(tmp_path / "state"))
    before = state(tmp_path)
    plan = plan_of(host, WANTED)
    assert {one.tunable: one.after for one in plan.changes} == expected()
    with store.hold_lock():
        record = apply_plan(host, plan, store)
        assert read(host, plan) == expected()
        assert find_drift(host, [record]) == ()
        again = plan_of(host, WANTED)
        assert again.is_empty, values(again)
        outcomes = roll_back(host, record, store)
    assert {one.what: one.detail for one in outcomes if not one.is_back} == {}
    assert state(tmp_path) == before


def test_a_value_that_is_refused_puts_all_back(tmp_path: Path) -> None:
    host, store = build(tmp_path), Store(str(tmp_path / "state"))
    before = state(tmp_path)
    # The stand-in of modprobe says that it has loaded the module, and has not.
    (tmp_path / "bin/modprobe").write_text("#!/bin/sh\nexit 0\n")
    with store.hold_lock(), pytest.raises(RestoredError, match="module:new_mod: set to loaded, but reads unloaded"):
        apply_plan(host, plan_of(host, {"intel_pstate:max_perf_pct": "90", "module:new_mod": "loaded"}), store)
    assert state(tmp_path) == before


def test_a_module_that_is_used_by_then_stays_and_is_told(tmp_path: Path) -> None:
    host, store = build(tmp_path), Store(str(tmp_path / "state"))
    with store.hold_lock():
        record = apply_plan(host, plan_of(host, {"module:new_mod": "loaded"}), store)
        modules = tmp_path / "root/proc/modules"
        modules.write_text(modules.read_text().replace("new_mod 16384 0", "new_mod 16384 1"))
        (lost,) = [one for one in roll_back(host, record, store) if not one.is_back]
    assert "new_mod is in use" in lost.detail
    assert lost.by_hand == "rmmod new_mod dep_b"
    assert "new_mod" in modules.read_text()


def test_a_latency_that_is_measured_goes_in_and_out(tmp_path: Path) -> None:
    host, store = build(tmp_path), Store(str(tmp_path / "state"))
    before = state(tmp_path)
    plan = plan_of(host, {"pm-qos:cpu_dma_latency": "10"}, runtime_only=True)
    with store.hold_lock(), run_trial(host, plan, store) as running:
        for _ in range(2):
            running.set_values()
            assert set(read(host, plan).values()) == {"10"}
            running.restore_values()
            assert set(read(host, plan).values()) == {"2000000000"}
    assert state(tmp_path) == before


def test_a_second_latency_of_ours_goes_back_to_the_first(tmp_path: Path) -> None:
    host, store = build(tmp_path), Store(str(tmp_path / "state"))
    with store.hold_lock():
        apply_plan(host, plan_of(host, {"pm-qos:cpu_dma_latency": "10"}), store)
        before = state(tmp_path)
        # A larger one: ours is all that holds it down.
        second = apply_plan(host, plan_of(host, {"pm-qos:cpu_dma_latency": "50"}), store)
        assert set(read(host, second.plan).values()) == {"50"}
        assert all(one.is_back for one in roll_back(host, second, store))
    assert state(tmp_path) == before


def test_a_unit_that_somebody_started_since_is_kept(tmp_path: Path) -> None:
    host, store = build(tmp_path), Store(str(tmp_path / "state"))
    with store.hold_lock():
        record = apply_plan(host, plan_of(host, {"unit:demo.service:state": "disabled inactive"}), store)
        (tmp_path / "root/run/units/demo.service").write_text("disabled active\n")
        (kept,) = roll_back(host, record, store)
    assert (kept.state, kept.detail) == ("kept", "modified externally (disabled active)")
    assert "systemctl enable -- demo.service" in (kept.by_hand or "")
