"""Signals in the midst of a session or a series, sent to a real process that conducts one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

import pytest

from advisor.proof.archive import SavedBench, load_any, load_proof, reanalyse_proof
from advisor.proof.process import Stop, StoppedError, caught_signals
from tests.cases import read_cases
from tests.known import known
from tests.waiting import PATIENCE_SECONDS

from .fakes import FakeFio, calm_tree

DATA = read_cases(__file__)

ROOT = Path(__file__).parents[2]
SCRIPT = DATA["SCRIPT"]
# By name, not from the product: whatever ends a process by default and can be caught in good order.
ENDING = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU, signal.SIGALRM),
)


class Running:
    """A session, or a series, in a process of its own."""

    def __init__(
        self,
        fake_fio: FakeFio,
        tmp_path: Path,
        disk: Path,
        megabytes: int = 1,
        kind: Literal["prove", "bench"] = "prove",
    ) -> None:
        self.saved = tmp_path / "partial"
        words = [kind, fake_fio.directory, calm_tree(tmp_path / "tree"), disk, self.saved, megabytes]
        self.process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, *map(str, words)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )

    def wait_for(self, line: str) -> None:
        assert line in (seen.strip() for seen in known(self.process.stdout)), f"the session ended before {line!r}"

    def end(self, number: signal.Signals) -> str:
        self.process.send_signal(number)
        output, _ = self.process.communicate(timeout=PATIENCE_SECONDS)
        assert self.process.returncode == 130
        return output


@pytest.mark.repeats(3)
@pytest.mark.parametrize(
    ("number", "line"), [*((number, "round 2") for number in ENDING), (signal.SIGTERM, "scratch 0")]
)
def test_any_signal_ends_a_series_without_a_file_and_keeps_the_partial_result(
    fake_fio: FakeFio, tmp_path: Path, disk: Path, number: signal.Signals, line: str
) -> None:
    fake_fio.plan(sleep=0.1)
    running = Running(fake_fio, tmp_path, disk, 1 if line == "round 2" else 2000, "bench")
    running.wait_for(line)
    time.sleep(0.05)
    assert f"stopped by {number.name}" in running.end(number)
    assert os.listdir(disk) == []
    partial = load_any(running.saved)
    assert isinstance(partial, SavedBench)
    assert (partial.bench.quality, partial.bench.series.ended) == ("indicative", "interrupted")


@pytest.mark.repeats(2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_fio_runs_restores_a_and_keeps_the_partial_result(
    fake_fio: FakeFio, tmp_path: Path, disk: Path, number: signal.Signals
) -> None:
    fake_fio.plan(sleep=0.15)
    running = Running(fake_fio, tmp_path, disk)
    running.wait_for("pair 2")
    time.sleep(0.1)
    output = running.end(number)
    assert f"stopped by {number.name} after 1 pairs" in output
    assert (fake_fio.directory / "speed").read_text() == "1.0", "arm A is active"
    assert os.listdir(disk) == []
    partial = load_proof(running.saved)
    assert (partial.proof.verdict, partial.proof.session.ended) == ("indicative", "interrupted")
    assert partial.proof.workloads[0].pairs == 1
    assert reanalyse_proof(partial) == partial.proof


def test_a_signal_while_fio_hangs_leaves_no_process(fake_fio: FakeFio, tmp_path: Path, disk: Path) -> None:
    fake_fio.plan(misbehave="hang", after=9)
    running = Running(fake_fio, tmp_path, disk)
    running.wait_for("pair 2")
    time.sleep(0.3)
    running.end(signal.SIGTERM)
    assert os.listdir(disk) == []
    found = subprocess.run(["pgrep", "-f", str(fake_fio.directory)], capture_output=True, text=True, check=False)
    assert found.stdout == ""


def test_a_signal_while_the_scratch_file_is_filled(fake_fio: FakeFio, tmp_path: Path, disk: Path) -> None:
    running = Running(fake_fio, tmp_path, disk, megabytes=2000)
    running.wait_for("scratch 0")
    time.sleep(0.1)
    output = running.end(signal.SIGINT)
    assert "after 0 pairs" in output
    assert os.listdir(disk) == []
    assert not (fake_fio.directory / "speed").exists(), "no arm was ever placed"
    assert load_proof(running.saved).proof.workloads[0].pairs == 0


def test_signals_sent_again_and_again_do_not_disturb_the_restoring(
    fake_fio: FakeFio, tmp_path: Path, disk: Path
) -> None:
    fake_fio.plan(sleep=0.2)
    running = Running(fake_fio, tmp_path, disk)
    running.wait_for("pair 1")
    for _ in range(40):
        if running.process.poll() is not None:
            break
        running.process.send_signal(signal.SIGINT)
        time.sleep(0.01)
    running.process.communicate(timeout=PATIENCE_SECONDS)
    # the last of them may come when the session is over and its handlers are gone
    assert running.process.returncode in (130, -signal.SIGINT)
    assert (fake_fio.directory / "speed").read_text() == "1.0"
    assert os.listdir(disk) == []


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with caught_signals() as stop:
        assert signal.getsignal(signal.SIGTERM) == stop.request
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(StoppedError, match="SIGTERM") as caught:
            stop.sleep(5)
        assert caught.value.exit_code == 130
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_an_ignored_hang_up_stays_ignored() -> None:
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with caught_signals() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            stop.sleep(0.1)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_first_signal_counts() -> None:
    stop = Stop()
    stop.check()
    stop.request(signal.SIGHUP)
    stop.request(signal.SIGINT)
    with pytest.raises(StoppedError, match="SIGHUP"):
        stop.check()
