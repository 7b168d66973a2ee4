"""Clocks, latency, scheduler, modules, units and sysfs: in with a transaction, out by either way back."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.errors import RestoredError
from advisor.host import Host, Step, observe
from advisor.host.probes import reduce
from advisor.planning.records import Plan
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import Store
from advisor.transaction.rollback import recover_unfinished, roll_back
from advisor.transaction.trial import run_trial
from advisor.transaction.verify import find_drift
from tests.transaction.kernel_system import WANTED, build, plan_of, values
from tests.transaction.test_script import SHELLS, run_script
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


def test_the_same_plan_twice(tmp_path: Path) -> None:
    host = build(tmp_path)
    assert plan_of(host, WANTED).fingerprint == plan_of(host, dict(reversed(WANTED.items()))).fingerprint


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_the_script_does_the_same_and_is_safe_to_run_twice(tmp_path: Path, shell: list[str]) -> None:
    host, store = build(tmp_path), Store(str(tmp_path / "state"))
    before = state(tmp_path)
    with store.hold_lock():
        record = apply_plan(host, plan_of(host, WANTED), store)
    script = store.script_path(record.id)
    first = run_script(script, tmp_path, shell=shell)
    second = run_script(script, tmp_path, shell=shell)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "restored" in first.stdout
    assert second.returncode == 3, second.stdout + second.stderr
    assert "restored" not in second.stdout
    assert state(tmp_path) == before


# One policy of the clock, and of those that are a file each some: a crash is the same with more of them.
FEWER = {
    name.replace("*", "policy0") if name.startswith("cpufreq:") else name: value
    for name, value in WANTED.items()
    if name not in ("intel_pstate:no_turbo", "sched:preempt", "sysfs:/sys/devices/pci0/a/mode", "module:other:depth")
}


def killed_after(where: Path, count: int) -> bool:
    """Apply in a child that is killed after so many steps; whether it had that many."""
    host, store = build(where), Store(str(where / "state"))
    child = os.fork()
    if child == 0:
        _apply_and_die(host, store, count)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _apply_and_die(host: Host, store: Store, count: int) -> None:
    done = 0
    carry_out: Callable[[Step], None] = host.do

    def counted(step: Step) -> None:
        nonlocal done
        carry_out(step)
        done += 1
        if done == count:
            os.kill(os.getpid(), signal.SIGKILL)

    host.do = counted  # type: ignore[method-assign]
    with store.hold_lock():
        apply_plan(host, plan_of(host, FEWER), store)
    os._exit(0)


def test_a_crash_after_every_step_is_put_back(tmp_path: Path) -> None:
    count, before = 0, {}
    while True:
        count += 1
        where = tmp_path / str(count)
        host = build(where)
        before = state(where)
        if not killed_after(where, count):
            break
        store = Store(str(where / "state"))
        with store.hold_lock():
            outcomes = [one for _, found in recover_unfinished(host, store) for one in found]
        assert {one.what: one.detail for one in outcomes if not one.is_back} == {}, count
        assert state(where) == before, count
    assert count > len(FEWER)


@pytest.mark.parametrize("count", [1, 5, 9, 14, 18])
def test_the_script_puts_back_what_a_crash_left(tmp_path: Path, count: int) -> None:
    build(tmp_path)
    before = state(tmp_path)
    assert killed_after(tmp_path, count)
    store = Store(str(tmp_path / "state"))
    (record,) = store.read_records()
    journal = store.script_path(record.id).with_name("journal")
    done = run_script(store.script_path(record.id), tmp_path, "--journal", str(journal))
    assert done.returncode == 0, done.stdout + done.stderr
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
