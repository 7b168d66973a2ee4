"""Clocks, latency, scheduler, modules, units and sysfs: in with a transaction, out by either way back."""

from __future__ import annotations

from pathlib import Path

from advisor.host import Host, observe
from advisor.host.probes import reduce
from advisor.planning.records import Plan
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import Store
from advisor.transaction.rollback import roll_back
from advisor.transaction.trial import run_trial
from tests.transaction.kernel_system import build, plan_of
from tests.trees import listing


def read(host: Host, plan: Plan) -> dict[str, object]:
    return {one.tunable: observe(host, one.probe) for one in plan.changes}


def state(where: Path) -> dict[str, tuple[str, int, bytes]]:
    """All files; of those in which a kernel marks a choice, which a tree does not, the choice."""
    found = listing(where / "root")
    for path in ("sys/kernel/debug/sched/preempt", "sys/devices/pci0/a/mode"):
        kind, mode, text = found[path]
        found[path] = (kind, mode, str(reduce(text.decode(), "choice")).encode())
    return found


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
