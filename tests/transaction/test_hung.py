"""A client that is stopped at any step of a change of links, or of its rollback, does not hold the change for ever."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.errors import BusyError
from advisor.shell.state_table import RUNNING_FILES
from advisor.transaction.journal import Store
from tests.transaction.test_stacked_links import Namespace
from tests.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a network namespace needs root")
APPLY = ("apply", "--confirm", "10", "link:d0:mtu=9000", "link:d1:mtu=9000")
KEPT = ("apply", "link:d0:mtu=9000", "link:d1:mtu=9000")
OLD = {"d0": 1500, "d1": 1500}
NEW = {"d0": 9000, "d1": 9000}


class Client:
    """A namespace with a pair of links, and a process in it that stops at one of its steps."""

    def __init__(self, where: Path, number: int) -> None:
        self.space = Namespace(f"hung{os.getpid()}x{number}", where / str(number) / "state")
        self.number = number
        self.process: subprocess.Popen[str] | None = None

    def begin(self) -> None:
        subprocess.run(["ip", "netns", "add", self.space.name], check=True)
        self.space.ip("link add d0 type veth peer name d1")

    def start(self, *words: str) -> None:
        program = [sys.executable, "-m", "tests.transaction.hanging", str(self.number), str(self.space.store), *words]
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", self.space.name, *program],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def start_script(self, at: int, *options: str) -> None:
        """The rollback script as it is run by hand; the first one that comes to its ``at``-th step stops there."""
        script = self.space.store / "transactions/0001/rollback.sh"
        text = script.read_text()
        stop = (
            "still_ours() {\n    reached=$((${reached:-0} + 1))\n"
            f'    if [ "$reached" = {at} ] && mkdir "$own/../../stopped" 2>/dev/null; then kill -STOP $$; fi\n'
        )
        assert text.count("still_ours() {\n") == 1
        script.write_text(text.replace("still_ours() {\n", stop))
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", self.space.name, "sh", str(script), *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def mtus(self) -> dict[str, int]:
        return {name: mtu for name, mtu in self.space.mtus().items() if name in OLD}

    @property
    def is_stopped(self) -> bool:
        assert self.process is not None
        return Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    @property
    def is_watched(self) -> bool:
        """Whether its watchdog has begun; the file is there before that."""
        watching = self.space.store / "transactions/0001/watching"
        return watching.is_file() and watching.read_text() != "0\n"

    def await_stop(self) -> bool:
        """Whether it stops; False where it ends first."""
        assert self.process is not None
        process = self.process
        until(lambda: process.poll() is not None or self.is_stopped)
        return process.poll() is None

    def go_on(self) -> tuple[int, str]:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGCONT)
        said = self.process.communicate(timeout=100)[1]
        return self.process.returncode, said

    def records(self) -> list[str]:
        return [one.state for one in Store(str(self.space.store)).read_records()]

    def is_open(self) -> bool:
        names = ("pending", "taken", "reverting", "deadline")
        return any((self.space.store / "transactions/0001" / name).exists() for name in names)

    def end(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            assert self.process.stderr is not None
            self.process.stderr.close()
        subprocess.run(["ip", "netns", "delete", self.space.name], check=False, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def clients(where: Path, numbers: range) -> Iterator[list[Client]]:
    made = [Client(where, number) for number in numbers]
    try:
        for one in made:
            one.begin()
        yield made
    finally:
        for one in made:
            one.end()


def stop_all(made: list[Client], *words: str) -> list[Client]:
    """Those that were stopped; started one after another, and then waited for together."""
    stopped = []
    for one in made:
        one.start(*words)
        if one.await_stop():
            stopped.append(one)
    return stopped


def wait_for_watchdogs(stopped: list[Client]) -> None:
    end = time.monotonic() + 100
    while any(one.is_open() for one in stopped):
        assert time.monotonic() < end, [(one.number, one.mtus()) for one in stopped if one.is_open()]
        time.sleep(0.5)


# Each client waits for its watchdog's limit, together with the others: two points are what a common run has time for.
STRIDES = [
    pytest.param(range(4, 12, 5), id="two"),
    *(pytest.param(range(first, 43, 3), id=f"from{first}", marks=pytest.mark.thorough) for first in range(1, 4)),
]


@pytest.mark.parametrize("points", STRIDES)
def test_a_client_that_is_stopped_while_it_applies(tmp_path: Path, points: range) -> None:
    with clients(tmp_path, points) as made:
        stopped = stop_all(made, *APPLY)
        assert len(stopped) > 5 or len(stopped) == len(points)
        # Where nothing was begun and no watchdog runs yet, nothing is changed, and the client is the only one to act.
        watched = [one for one in stopped if one.is_watched]
        unwatched = [one for one in stopped if one not in watched]
        assert all(one.mtus() == OLD for one in unwatched)
        wait_for_watchdogs([one for one in watched if one.mtus() != OLD or one.is_open()])
        for one in watched:
            assert one.mtus() == OLD, one.number
        for one in watched:
            code, said = one.go_on()
            assert code == 4 or (code == 3 and "watchdog" in said), (one.number, code, said)
            assert "took over" in said or "watchdog" in said
            assert one.mtus() == OLD, one.number
            assert one.records() == ["rolled-back"], one.number


@pytest.mark.parametrize("points", STRIDES)
def test_a_client_that_is_stopped_while_it_rolls_back(tmp_path: Path, points: range) -> None:
    with clients(tmp_path, points) as made:
        for one in made:
            one.space.run(*KEPT)
            assert one.mtus() == NEW
        stopped = stop_all(made, "rollback")
        assert len(stopped) > 3 or stopped
        begun = [one for one in stopped if one.is_watched]
        wait_for_watchdogs(begun)
        for one in begun:
            assert one.mtus() == OLD, one.number
            code, said = one.go_on()
            assert code in (0, 4), (one.number, code, said)
            assert code == 0 or "took over" in said
            assert one.mtus() == OLD
        for one in stopped:
            if one not in begun:
                # That of the apply before may not have ended yet, and sees to it.
                assert one.go_on()[0] in (0, 4), one.number
            assert one.mtus() == OLD
            assert one.records() == ["rolled-back"], one.number


TRIAL = ("trial", "9", "link:d0:mtu=9000", "link:d1:mtu=9000")


@pytest.mark.parametrize("points", [range(11, 24, 6), pytest.param(range(1, 40), marks=pytest.mark.thorough)], ids=len)
def test_a_measurement_that_is_stopped_leaves_no_trial_values(tmp_path: Path, points: range) -> None:
    with clients(tmp_path, points) as made:
        stopped = stop_all(made, *TRIAL)
        assert len(stopped) > 1
        codes = set()
        watched = [one for one in stopped if one.is_watched]
        wait_for_watchdogs(watched)
        for one in watched:
            assert one.mtus() == OLD, one.number
        for one in stopped:
            code, said = one.go_on()
            # 0 where it was at its end, with all restored.
            assert code in (0, 4), (one.number, code, said)
            assert one.mtus() == OLD, (one.number, code, said)
            codes.add(code)
            assert one.records() in (["rolled-back"], []), one.number
        assert 4 in codes


def test_a_measurement_without_a_step_for_longer_is_not_hung(tmp_path: Path) -> None:
    with clients(tmp_path, range(9999, 10000)) as (one,):
        one.start(*TRIAL)
        until(lambda: one.mtus() == NEW)
        time.sleep(7)
        assert one.mtus() == NEW
        assert one.go_on()[0] == 0
        assert one.mtus() == OLD
        assert one.records() == ["rolled-back"]


@pytest.mark.parametrize("how", ["killed", "whole", "in part", "forced"])
def test_a_rollback_script_leaves_a_transaction_as_closed_as_it_was(tmp_path: Path, how: str) -> None:
    with clients(tmp_path, range(2, 3)) as (one,):
        one.space.run(*KEPT)
        if how in ("in part", "forced"):
            one.space.ip("link set d1 mtu 4000")
        one.start_script(2 if how == "killed" else 99, *(["--force"] if how == "forced" else []))
        assert one.process is not None
        if how == "killed":
            assert one.await_stop()
            os.kill(one.process.pid, signal.SIGKILL)
            one.process.communicate()
            wait_for_watchdogs([one])
        else:
            said = one.process.communicate(timeout=60)[1]
            assert one.process.returncode == (5 if how == "in part" else 0), said
        assert one.mtus() == ({"d0": 1500, "d1": 4000} if how == "in part" else OLD)
        assert one.records() == (["applied"] if how == "in part" else ["rolled-back"])
        until(lambda: not one.is_open())
        left = {path.name for path in (one.space.store / "transactions/0001").iterdir()}
        # The boot in which the watchdog acted is for the one who records that.
        assert not left & {"pending", "taken", "reverting", *RUNNING_FILES} - {"boot" if how == "killed" else ""}, left
        assert not [name for name in left if name.endswith(".new")]
        done = subprocess.run(one.space.command("rollback"), capture_output=True, text=True, check=False)
        assert done.returncode in (0, 3), done.stderr
        assert {path.name for path in (one.space.store / "transactions/0001").iterdir()} <= {
            "journal", "length", "closed", "rollback.data", "rollback.sh", "put-back",
            *(["reserve"] if how == "in part" else []),
        }  # fmt: skip


def test_a_rollback_ends_a_script_that_stays_stopped(tmp_path: Path) -> None:
    with clients(tmp_path, range(2, 3)) as (one,):
        one.space.run(*KEPT)
        one.start_script(2)
        assert one.await_stop()
        one.space.run("rollback")
        assert one.process is not None
        assert one.process.wait(timeout=PATIENCE_SECONDS) == -signal.SIGKILL
        assert (one.mtus(), one.records()) == (OLD, ["rolled-back"])


def test_a_holder_that_goes_on_is_not_ended(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "state"))
    with store.hold_lock():
        child = os.fork()
        if child == 0:
            while True:
                time.sleep(60)
    try:
        for name in (signal.SIGSTOP, signal.SIGCONT):
            os.kill(child, name)
            until(lambda name=name: (store.stopped_holder() == child) == (name == signal.SIGSTOP))  # type: ignore[misc]
        # It runs: nobody ends it, however long one waits.
        with pytest.raises(BusyError, match="another transaction is under way"), store.hold_lock(stopped_for=0.0):
            pass
        os.kill(child, 0)
        os.kill(child, signal.SIGSTOP)
        until(lambda: store.stopped_holder() == child)
        waker = threading.Timer(1.0, os.kill, (child, signal.SIGCONT))
        waker.start()
        with pytest.raises(BusyError), store.hold_lock(stopped_for=30.0):
            pass
        waker.join()
        os.kill(child, 0)
        os.kill(child, signal.SIGSTOP)
        until(lambda: store.stopped_holder() == child)
        with store.hold_lock(stopped_for=0.5):
            assert os.waitpid(child, 0)[1] == signal.SIGKILL
            child = 0
    finally:
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
