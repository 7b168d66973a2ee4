"""Two at once, steered: the first is stopped at each of its steps while the second runs; some order explains the end.

What is refused has changed nothing, and the value from before the first transaction is never lost.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from advisor.errors import AdvisorError, BusyError
from advisor.host import Host
from advisor.transaction.journal import Store
from advisor.transaction.status import rollback_transactions, verify_transactions
from tests.cases import cases
from tests.transaction.layered import apply, build, host_at, live
from tests.transaction.system import LLTCONFIG
from tests.transaction.test_layers import HIGH
from tests.transaction.test_script import SHELLS, path_without, run_script
from tests.transaction.test_script_notes import host_files, store_in
from tests.trees import make_command
from tests.waiting import PATIENCE_SECONDS

CASES = cases(__file__)

# Stops at the call of that number, until it is let go on; who comes meanwhile is not stopped.
STEERED = CASES["STEERED"]

Act = Callable[[Path], int]


def acting(work: Callable[[Host, Store], object]) -> Act:
    """What ``work`` ends with, as an exit code."""

    def act(where: Path) -> int:
        host = steered_host(where)
        try:
            work(host, store_in(where))
        except AdvisorError as error:
            return error.exit_code
        return 0

    return act


def steered_host(where: Path) -> Host:
    host = host_at(where)
    (where / "steer").mkdir(exist_ok=True)
    make_command(where / "bin", "lltconfig", STEERED.format(where=where) + LLTCONFIG.format(root=where / "root"))
    return host


def script(shell: list[str]) -> Act:
    return lambda where: run_script(store_in(where).script_path("0001"), where, shell=shell).returncode


ACTS: dict[str, Act] = {
    "apply": acting(lambda host, store: apply(host, store, "bb", {HIGH: "1500"})),
    "rollback": acting(
        lambda host, store: rollback_transactions(host, "1", everything=False, force=False, store=store)
    ),
    "verify": acting(lambda host, store: verify_transactions(host, None, store, with_others=False)),
    "script": script(SHELLS[0]),
    "busybox": script(["busybox", "sh"]),
}


def first_applied(where: Path) -> Path:
    """0001 has set a value that the command reads and sets, so that each step can be stopped."""
    build(where)
    apply(host_at(where), store_in(where), "aa", {HIGH: "1000"})
    steered_host(where)
    return where


@contextmanager
def stopped(where: Path, act: Act, at: int) -> Iterator[bool]:
    """``act`` runs up to its step ``at``, then the block, then the rest; False where it has no such step."""
    steer = where / "steer"
    (steer / "at").write_text(f"{at}\n")
    child = os.fork()
    if child == 0:
        os._exit(act(where))
    end = time.monotonic() + PATIENCE_SECONDS
    ended = 0
    while not (steer / "reached").exists() and not ended:
        assert time.monotonic() < end
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.005)
    try:
        yield not ended
    finally:
        (steer / "go").touch()
        if not ended:
            status = os.waitpid(child, 0)[1]
        (steer / "code").write_text(str(os.waitstatus_to_exitcode(status)))


def state(where: Path) -> object:
    """What is live and on disk, and in which states the transactions are."""
    return host_files(where), [(one.id, one.is_active) for one in store_in(where).read_records()]


def orders(where: Path, first: str, second: str) -> list[object]:
    found: list[object] = []
    for names in ((first, second), (second, first), (first,), (second,)):
        copy = where / "-".join(("order", *names, str(len(found))))
        # At the same place: the journal names none, but the scripts know where they lie.
        one = first_applied(copy)
        for name in names:
            ACTS[name](one)
        found.append(state(one))
    return found


PAIRS = [
    ("apply", "script"),
    ("script", "apply"),
    ("script", "script"),
    ("script", "rollback"),
    ("rollback", "script"),
    ("script", "verify"),
    ("verify", "script"),
    ("busybox", "apply"),
    ("apply", "busybox"),
    ("apply", "apply"),
]


@pytest.mark.repeats(2)
@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda name: name)
def test_some_order_explains_the_end_and_the_original_is_not_lost(tmp_path: Path, first: str, second: str) -> None:
    before = host_files_before(tmp_path)
    allowed = orders(tmp_path, first, second)
    refused = 0
    for at in range(1, 60):
        where = first_applied(tmp_path / f"at{at}")
        with stopped(where, ACTS[first], at) as is_stopped:
            code = ACTS[second](where) if is_stopped else 0
        if not is_stopped:
            break
        refused += code == 3
        assert state(where) in allowed, (at, code, (where / "steer/code").read_text())
        everything_back(where)
        assert host_files(where) == before, at
        shutil.rmtree(where)
    assert at > 1
    if "verify" not in (first, second):
        assert refused >= at - 3, "all but the steps before the lock is taken"


def host_files_before(tmp_path: Path) -> dict[str, object]:
    build(tmp_path / "before")
    return host_files(tmp_path / "before")


def everything_back(where: Path) -> None:
    host, store = host_at(where), store_in(where)
    if any(one.is_active or one.is_unfinished for one in store.read_records()):
        rollback_transactions(host, None, everything=True, force=False, store=store)


@pytest.mark.parametrize("value", ["77", "1500"])
def test_a_value_that_another_sets_right_before_a_step_is_not_overwritten(tmp_path: Path, value: str) -> None:
    """An administrator's own command needs no lock: at each step of apply."""
    kept = 0
    for at in range(1, 40):
        where = first_applied(tmp_path / f"at{at}")
        with stopped(where, ACTS["apply"], at) as is_stopped:
            if is_stopped:
                (where / "root/run/llt").write_text(f"highwater {value}\nrporthighwater 100\n")
        code = int((where / "steer/code").read_text())
        if not is_stopped:
            break
        live_now = live(host_at(where))[HIGH]
        records = store_in(where).read_records()
        if code != 0:
            # 5 where it came after our own step: the value is another's by then, kept, and named
            assert (code, live_now) in ((3, value), (4, value), (4, "1000"), (5, value)), at
            kept += live_now == value
        else:
            assert (live_now, records[-1].is_active) in ((value, True), ("1500", True)), at
    assert at > 3
    assert kept >= 2


def run_without_flock(where: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    words = ["dash", str(store_in(where).script_path("0001")), "--root", str(where / "root")]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=60)


def test_without_flock_a_directory_is_the_lock(tmp_path: Path) -> None:
    where = first_applied(tmp_path / "one")
    environment, store = {"PATH": path_without(where, "flock")}, store_in(where)
    with store.hold_lock():
        done = run_without_flock(where, environment)
        assert done.returncode == 3
        assert f"process {os.getpid()}" in done.stderr
    with stopped(where, lambda where: run_without_flock(where, environment).returncode, 2) as is_stopped:
        assert is_stopped
        assert (store.directory / "lock.d").is_dir()
        with pytest.raises(BusyError, match="another transaction is under way"), store.hold_lock():
            pass
        assert run_without_flock(where, environment).returncode == 3
        assert run_script(store.script_path("0001"), where).returncode == 3
    assert (where / "steer/code").read_text() == "0"
    assert not (store.directory / "lock.d").exists()


def test_a_lock_that_a_kill_has_left_holds_nobody_up(tmp_path: Path) -> None:
    where = first_applied(tmp_path / "one")
    store = store_in(where)
    for name in ("script", "verify"):
        (store.directory / "lock.d").mkdir(exist_ok=True)
        (store.directory / "lock.d/holder").write_text("1 0\n")
        assert ACTS[name](where) == 0
        with store.hold_lock():
            assert not (store.directory / "lock.d").exists()
