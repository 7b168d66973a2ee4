"""The apply script, stopped (SIGSTOP) at any step of a change of links or of its rollback, does not hold the change."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cases import read_cases
from tests.exporters.apply_script.stage import Stage
from tests.transaction import system
from tests.trees import listing, make_command

# A value, a link, and a file whose reload brings a value about.
ONLY = (0, 5, 7)
DATA = read_cases(__file__)

STOP = DATA["STOP"]
FEW, ALL = {"apply": range(18, 50, 7), "rollback": range(12, 24, 2)}, {"apply": range(1, 60), "rollback": range(1, 40)}
POINTS = [pytest.param(FEW, id="few"), pytest.param(ALL, id="all", marks=pytest.mark.thorough)]


class Client:
    def __init__(self, where: Path, at: int, shell: str) -> None:
        host = system.build(where)
        self.stage = Stage(where, lambda _: host, system.plan_of(host, ONLY))
        self.at, self.shell = at, shell
        self.before = self.stage.listing()
        (where / "count").write_text("0\n")
        make_command(where / "bin", "sync", STOP)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *verb: str) -> None:
        (self.stage.where / "count").write_text("0\n")
        place = {"PLACE": str(self.stage.where), "STOP_AT": str(self.at)}
        self.process = self.stage.start(*verb, under=[self.shell], more=place)

    def await_stop(self) -> bool:
        """Whether it stops; False where it ends first."""
        assert self.process is not None
        end = time.monotonic() + 60
        while self.process.poll() is None:
            if Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
                return True
            assert time.monotonic() < end
            time.sleep(0.02)
        return False

    @property
    def is_watched(self) -> bool:
        watching = self.stage.transaction / "watching"
        return watching.is_file() and watching.read_text() != "0\n"

    @property
    def is_open(self) -> bool:
        return any((self.stage.transaction / name).exists() for name in ("pending", "taken", "reverting"))

    def go_on(self) -> int:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGCONT)
        self.process.communicate(timeout=100)
        return int(self.process.returncode)

    def end(self) -> None:
        if self.process is None:
            return
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


@contextmanager
def clients(where: Path, points: range) -> Iterator[list[Client]]:
    made = [Client(where / str(at), at, ("dash", "bash")[at % 2]) for at in points]
    try:
        yield made
    finally:
        for one in made:
            one.end()


def wait_for_watchdogs(stopped: list[Client]) -> None:
    end = time.monotonic() + 100
    while any(one.is_open for one in stopped):
        assert time.monotonic() < end, [one.at for one in stopped if one.is_open]
        time.sleep(0.2)


@pytest.mark.repeats(1)
@pytest.mark.parametrize("points", POINTS)
@pytest.mark.parametrize("verb", ["apply", "rollback"])
def test_stopped_at_a_step_its_watchdog_restores(tmp_path: Path, verb: str, points: dict[str, range]) -> None:
    with clients(tmp_path, points[verb]) as made:
        stopped, watched = [], []
        for one in made:
            if verb == "rollback":
                assert one.stage.call("apply", "--confirm-within", "0", more={"PLACE": str(one.stage.where)}).code == 0
            one.start(verb, "--confirm-within", "10")
            if one.await_stop():
                stopped.append(one)
                # Now: its time may be over before the last one is stopped.
                watched += [one] if one.is_watched and one.is_open else []
        assert watched
        wait_for_watchdogs(watched)
        for one in watched:
            assert one.stage.listing() == one.before, one.at
        codes = set()
        for one in stopped:
            code = one.go_on()
            assert code in ((0, 4) if one in watched or verb == "rollback" else (0, 3, 4)), (one.at, code)
            if code:
                assert listing(one.stage.root) == one.before, (one.at, code)
            codes.add(code)
        for one in watched:
            if one.stage.listing() != one.before:
                assert one.stage.record().state == "applied", one.at
                continue
            assert one.stage.record().state == "rolled-back", one.at
        assert codes & {4}
