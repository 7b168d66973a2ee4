"""An apply or a measurement on trial: the seconds on a terminal, Ctrl-C, a rollback that has nothing to do, and a
watchdog that is gone."""

from __future__ import annotations

import io
import re
import threading
import time
from pathlib import Path

import pytest

from advisor.cli import faults
from advisor.cli.monitored import watch_trial
from advisor.errors import CommandError
from advisor.host.signals import Interrupted
from advisor.transaction.apply import apply_plan
from advisor.transaction.trial import Trial
from advisor.transaction.watchdog import Watchdog
from tests.planning import system
from tests.transaction.layered import apply, build, live, plan_of, store_of
from tests.transaction.test_switch import A, waits


def test_the_time_left_is_shown_until_the_transaction_is_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, store = build(tmp_path), store_of(tmp_path)
    apply(host, store, "one", A)
    directory = waits(store, "0001")
    shown, confirmed = io.StringIO(), threading.Event()
    monkeypatch.setattr("sys.stderr", shown)

    def confirm() -> None:
        while " left" not in shown.getvalue():
            time.sleep(0.01)
        confirmed.set()
        (directory / "pending").unlink()

    other = threading.Thread(target=confirm)
    other.start()
    try:
        found = watch_trial(store.find_record, store.find_record("1"))
    finally:
        other.join()
    assert confirmed.is_set()
    assert (found.id, found.is_active, found.seconds_left) == ("0001", True, None)
    assert re.fullmatch(r"confirm from a new login, Ctrl-C rolls back, about \d+ (min|s) .*left\n", shown.getvalue())


def test_an_interrupted_apply_names_what_was_rolled_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    host, store = build(tmp_path), store_of(tmp_path)
    before = live(host)

    def interrupt() -> int:
        raise Interrupted

    with store.hold_lock(), pytest.raises(Interrupted) as stopped:
        apply_plan(host, plan_of(host, store, "one", A), store, gate=interrupt)
    assert live(host) == before
    assert faults.report_fault(stopped.value, as_json=False) == 130
    assert capsys.readouterr().err == "advisor: interrupted; everything has been rolled back (0001)\n"


VALUE = "/proc/sys/vm/swappiness"


def test_nothing_is_switched_without_the_watchdog(tmp_path: Path) -> None:
    system.system(tmp_path, files={VALUE: "60\n"})
    plan = system.planned(tmp_path, "sysctl:vm.swappiness=10")
    (tmp_path / "0001").mkdir()
    trial = Trial(system.host(tmp_path), plan, Watchdog(tmp_path / "0001", "unit"))
    with pytest.raises(CommandError, match="the watchdog of this measurement was killed"):
        trial.set_values()
    assert (tmp_path / "root" / VALUE[1:]).read_text() == "60\n"
    Trial(system.host(tmp_path), plan).set_values()
    assert (tmp_path / "root" / VALUE[1:]).read_text().strip() == "10"
