"""Every moment of a session under live traffic × client, watchdog or both killed: no value is lost, and `status` says
where somebody has to act. On the kernel itself, in a network namespace of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from advisor.host import live_host
from advisor.report.transaction import status_text
from advisor.transaction.journal import Store
from advisor.transaction.rollback import recover_unfinished
from advisor.transaction.status import host_status
from tests.forked import fork
from tests.reach.space import Spaces, can_have_namespaces
from tests.waiting import until, until_unwatched

from .live_killing import KilledSession, Victim, read_values

WAYS: Final = ("next run", "script")


@pytest.fixture
def spaces() -> Iterator[Spaces]:
    if not can_have_namespaces():
        pytest.skip("needs root and network namespaces")
    made = Spaces()
    made.add("a")
    try:
        yield made
    finally:
        made.remove()


class Matrix:
    """Runs sessions in the namespace, and says how each ended."""

    def __init__(self, spaces: Spaces, where: Path) -> None:
        self._spaces, self._where = spaces, where
        self._figure = where / "figure"
        self._figure.write_text("#!/bin/sh\necho 5\n")
        self._figure.chmod(0o755)
        self.before = self.values()
        self._count = 0

    def values(self) -> tuple[str, ...]:
        return self._spaces.inside("a", read_values)

    def count_moments(self) -> int:
        """Of a session that nobody kills."""
        state = self._where / "whole"
        return self._spaces.inside("a", lambda: KilledSession(state, self._figure, 0, "client").run())

    def end_of(self, at: int, victim: Victim, way: str) -> str:
        """Kill at a moment, see to it that everything is restored, and say by whom."""
        self._count += 1
        state = self._where / f"state{self._count}"
        store = Store(str(state))

        def run_to_kill() -> bool:
            child = fork()
            if child == 0:
                try:
                    KilledSession(state, self._figure, at, victim).run()
                finally:
                    os._exit(0)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

        was_killed = self._spaces.inside("a", run_to_kill)
        assert was_killed == (victim != "watchdog"), (at, victim)
        if victim == "client" and store.read_records():
            until_unwatched(store)
        end = self._end_by_hand(store, way) if self.values() != self.before else "by itself"
        assert self.values() == self.before, (at, victim, end)
        # What is left to be closed is closed by the next run, and no value moves.
        self._spaces.inside("a", lambda: recover(store))
        assert self.values() == self.before, (at, victim, end)
        assert all(record.state == "rolled-back" for record in store.read_records()), (at, victim, end)
        return end

    def _end_by_hand(self, store: Store, way: str) -> str:
        """Nobody is left who could restore: `status` says so first."""
        (record,) = store.read_records()
        said = self._spaces.inside("a", lambda: status_words(store))
        assert "advisor rollback" in said, said
        if way == "script":
            words = ["ip", "netns", "exec", self._spaces.name("a"), "sh", str(store.script_path(record.id))]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
        else:
            self._spaces.inside("a", lambda: recover(store))
        return way


def recover(store: Store) -> None:
    """What every command that changes the host does first."""
    with store.hold_lock():
        recover_unfinished(live_host(), store)


def status_words(store: Store) -> str:
    return " ".join(status_text(host_status(live_host(), store), width=200, color=False).split())


# While values are written for the first time, and between: the rest is among what is thorough.
@pytest.mark.repeats(1)
@pytest.mark.parametrize(("share", "victim"), [(0.4, "client"), (0.6, "watchdog"), (0.5, "both")])
def test_no_value_is_lost_whoever_is_killed(spaces: Spaces, tmp_path: Path, share: float, victim: Victim) -> None:
    matrix = Matrix(spaces, tmp_path)
    found = matrix.end_of(round(share * matrix.count_moments()), victim, "script")
    assert found == ("script" if victim == "both" else "by itself")


@pytest.mark.thorough
@pytest.mark.parametrize("victim", ["client", "watchdog", "both"])
def test_no_value_is_lost_at_any_moment(spaces: Spaces, tmp_path: Path, victim: Victim) -> None:
    matrix = Matrix(spaces, tmp_path)
    moments = matrix.count_moments()
    assert moments >= 20
    found: dict[str, int] = {}
    for way in WAYS if victim == "both" else WAYS[:1]:
        for at in range(1, moments + 1):
            end = matrix.end_of(at, victim, way)
            found[end] = found.get(end, 0) + 1
    print(f"{victim}: {moments} moments, restored {found}, 0 values lost")
    until(lambda: matrix.values() == matrix.before)
    assert (victim == "both") == (set(found) != {"by itself"})


# -- by the command line -----------------------------------------------------------------------------------------------

SETTING: Final = "net.ipv4.tcp_autocorking"
PLACE: Final = "/proc/sys/net/ipv4/tcp_autocorking"


def value_in(spaces: Spaces) -> str:
    return spaces.run("a", f"cat {PLACE}").strip()


@pytest.mark.parametrize("victim", ["session", pytest.param("watchdog", marks=pytest.mark.thorough)])
def test_whichever_of_both_is_killed_the_other_restores_what_was_switched(
    spaces: Spaces, tmp_path: Path, victim: str
) -> None:
    before = value_in(spaces)
    after = "0" if before == "1" else "1"
    figure = tmp_path / "figure"
    figure.write_text("#!/bin/sh\necho 5\n")
    figure.chmod(0o755)
    state, errors = tmp_path / "state", tmp_path / "errors"
    errors.touch()
    said = os.open(errors, os.O_WRONLY)
    session = subprocess.Popen(
        [
            *("ip", "netns", "exec", spaces.name("a"), sys.executable, "-m", "advisor", "prove-live"),
            f"sysctl:{SETTING}={after}",
            *("--quick", "--yes", "--seed", "1", "--metric", f"p99=command:{figure}:lower"),
            *("--as-user", "root"),
        ],
        env={**os.environ, "ADVISOR_STATE_DIR": str(state)},
        stdout=said,
        stderr=said,
        start_new_session=True,
    )
    os.close(said)
    try:
        until(lambda: value_in(spaces) == after or session.poll() is not None, "nothing was switched")
        assert session.poll() is None, errors.read_text()
        if victim == "session":
            os.kill(session.pid, signal.SIGKILL)
        else:
            (watching,) = state.glob("transactions/*/watching")
            os.kill(int(watching.read_text().split()[0]), signal.SIGKILL)
            until(lambda: session.poll() is not None, "the session goes on without a watchdog")
            assert "the watchdog of this measurement was killed" in " ".join(errors.read_text().split())
        session.wait()
        until(lambda: value_in(spaces) == before, "the value from before was not restored")
        until_unwatched(Store(str(state)))
    finally:
        session.kill()
        session.wait()
    assert [record.state for record in Store(str(state)).read_records()] == ["rolled-back"]
