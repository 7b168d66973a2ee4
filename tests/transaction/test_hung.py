"""A client that is stopped at any step of a change of links, or of its rollback, does not hold the change for ever."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.transaction.journal import Store
from tests.transaction.test_stacked_links import Namespace
from tests.transaction.veth import until

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
        return [one.state for one in Store(str(self.space.store)).records()]

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


@pytest.mark.parametrize("points", [range(11, 24, 3), pytest.param(range(1, 40), marks=pytest.mark.thorough)], ids=len)
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
