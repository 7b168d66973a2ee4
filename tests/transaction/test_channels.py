"""What hangs on a link's queues comes back with their number: by rollback, by the script, and after any crash."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from advisor.transaction.apply import apply_plan
from advisor.transaction.rollback import recover_unfinished, roll_back
from advisor.transaction.status import find_drift
from tests.transaction.queues import LINK, WAYS, applied, back, build, plan_of, state
from tests.transaction.system import store_of
from tests.transaction.test_transaction import DyingHost, in_child


@pytest.mark.repeats(3)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("count", "virtio"), [("2", False), ("8", True)])
def test_what_hangs_on_the_queues_comes_back(tmp_path: Path, way: str, count: str, virtio: bool) -> None:
    host = build(tmp_path, virtio=virtio)
    before = state(tmp_path)
    record, store = applied(tmp_path, host, {f"link:{LINK}:channels.combined": count})
    now = state(tmp_path)
    assert all(now[part] != before[part] for part in before), "the driver has reset all of it"
    assert find_drift(host, [record]) == ()
    code, said = back(tmp_path, host, record, store, way)
    assert (code, state(tmp_path)) == (0, before), said
    for name in ("irqs", "rss"):
        assert f"restored  link:{LINK}:{name}: side effect reversed: " in said
    _, again = back(tmp_path, host, record, store, way)
    assert "restored" not in again


# The channels, three values of queues, the interrupts (a step of four), the table.
@pytest.mark.repeats(4)
@pytest.mark.parametrize(("die_at", "after"), [*((number, False) for number in range(1, 11)), (10, True)])
def test_a_kill_at_any_step_of_rollback_is_finished_by_the_next_run(tmp_path: Path, die_at: int, after: bool) -> None:
    host = build(tmp_path)
    before = state(tmp_path)
    record, store = applied(tmp_path, host)

    def dying_rollback() -> None:
        with store_of(tmp_path).hold_lock():
            roll_back(Dying(host, die_at, after=after), record, store_of(tmp_path))

    died = in_child(dying_rollback)
    with store.hold_lock():
        recover_unfinished(host, store)
    assert state(tmp_path) == before
    assert store.find_record(record.id).state == "rolled-back"
    assert died == signal.SIGKILL


class Dying(DyingHost):
    def ethtool(self, link: str, what: str) -> object:  # type: ignore[override]
        raise AssertionError("nothing asks for it any more")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("way", WAYS[:2])
def test_a_kill_of_apply_is_put_back_by_whoever_comes(tmp_path: Path, after: bool, way: str) -> None:
    host = build(tmp_path)
    before = state(tmp_path)
    plan = plan_of(host)

    def dying_apply() -> None:
        with store_of(tmp_path).hold_lock():
            apply_plan(DyingHost(host, 1, after=after), plan, store_of(tmp_path))

    assert in_child(dying_apply) == signal.SIGKILL
    store = store_of(tmp_path)
    (record,) = store.read_records()
    code, said = back(tmp_path, host, record, store, way)
    assert (code, state(tmp_path)) == (0, before), said


@pytest.mark.parametrize("way", WAYS[:2])
def test_a_queue_that_is_changed_as_well_gets_its_own_value_back(tmp_path: Path, way: str) -> None:
    """The driver resets it again when the channels are restored, after it was restored itself."""
    host = build(tmp_path)
    before = state(tmp_path)
    values = {f"link:{LINK}:channels.combined": "8", f"link:{LINK}:xps.tx-1": "0-2"}
    record, store = applied(tmp_path, host, values)
    assert state(tmp_path)["queues"]["tx-1/xps_cpus"] == 7  # type: ignore[index]
    assert back(tmp_path, host, record, store, way)[0] == 0
    assert state(tmp_path) == before
