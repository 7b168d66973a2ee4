"""Progress on standard error: a few lines in a pipe, a bar on a pseudo-terminal that leaves nothing behind."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, suppress
from pathlib import Path
from unittest.mock import Mock

import pytest

from advisor.cli.output import say
from advisor.cli.progress import fleet_progress, run_progress, session_progress, wait_progress
from advisor.host import Host
from advisor.proof.covariates import LAMPS
from advisor.proof.records import Claim, ProofSubject
from advisor.proof.scratch import GIB, MIB, Keep
from advisor.proof.session import ProgressEvent, Settings, prove
from advisor.proof.session_runner import Stage
from tests.cli.inside import call_inside
from tests.proof.conftest import disk, fake_fio, host
from tests.proof.fakes import FakeFio, SpeedToggle
from tests.proof.sessions import WORKLOAD
from tests.test_imports import loaded_by

__all__ = ["disk", "fake_fio", "host"]

COLUMNS = 60


def event(stage: Stage, pair: int = 0, left: float = 65.0, *lamps: str) -> ProgressEvent:
    return ProgressEvent(stage, pair, 24, left, lamps)


# -- no terminal ---------------------------------------------------------------------------------------------------


def test_a_pipe_gets_a_line_for_each_stage_and_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    with session_progress() as progress:
        progress(event("plan"))
        progress(event("warm-up"))
        for pair in range(1, 25):
            progress(event("pair", pair))
        progress(event("restore"))
        for _ in range(3):
            progress(event("pair"))
    out, err = capsys.readouterr()
    plan, warm_up, *pairs, restore, first, _, third = err.splitlines()
    assert (out, plan) == ("", "Plan: at most 24 pairs, about 1 min 5 s.")
    assert (warm_up, restore) == ("warming up, about 1 min 5 s left", "restoring the host")
    assert (pairs[0], pairs[-1]) == ("pair 1 of 24, about 1 min 5 s left", "pair 24 of 24, about 1 min 5 s left")
    assert len(pairs) == 11
    assert (first[:9], third) == ("block 1 o", "block 3 of 3 (arm A again), about 1 min 5 s left")


def test_a_pipe_gets_ten_lines_for_many_hosts_and_none_for_few_that_are_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fleet_progress() as progress:
        asked, read = progress("asked"), progress("read")
        for done in range(101):
            asked(done, 100, int(done >= 50))
        for done in range(51):
            read(done, 50)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"{done} of 100 hosts asked{', 1 failed' * (done >= 50)}" for done in range(0, 101, 10)]


def test_the_steps_of_a_run_are_the_lines_of_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with run_progress() as steps:
        steps("wave 1 of 2: a")
        steps.count("changed in wave 1 of 2")(0, 1, 0)
    assert capsys.readouterr() == ("", "wave 1 of 2: a\n")


def test_a_pipe_loads_no_rich_and_keeps_the_document_alone(tmp_path: Path) -> None:
    assert not [name for name in loaded_by("snapshot", "--seconds", "1", "-o", str(tmp_path / "a")) if "rich" in name]
    done = call_inside("why", "--seconds", "1", "--json")
    assert json.loads(done.stdout)["schema"] == "advisor.why/1"
    assert done.stderr == "observing, about 1 s left\n"


# -- a terminal ----------------------------------------------------------------------------------------------------


class Terminal:
    """A pseudo-terminal of 60 columns."""

    def __init__(self) -> None:
        ours, theirs = pty.openpty()
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        self.screen, self.stream = os.fdopen(ours, "rb", 0), os.fdopen(theirs, "w")
        self.sent = ""

    def read(self) -> str:
        """Return all that was sent so far."""
        sent = b""
        # The kernel hands it over a little later than it was written, and perhaps in parts.
        with suppress(OSError):
            while select.select([self.screen], [], [], 0.2 if sent else 5.0)[0]:
                sent += self.screen.read(1 << 16)
        self.sent += sent.decode().replace("\r\n", "\n")
        return self.sent

    def rows(self) -> list[str]:
        """Return the screen after all that was sent, without empty rows at its end."""
        rows, row = [""], 0
        for token in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", self.read()):
            if token == "\n":
                row += 1
                rows += [""] * (row == len(rows))
            elif token == "\x1b[1A":
                row -= 1
            elif token == "\x1b[2K":
                rows[row] = ""
            elif token[0] not in "\x1b\r":
                rows[row] += token
            assert len(rows[row]) <= COLUMNS
        while rows and not rows[-1]:
            rows.pop()
        return rows


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    made = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    yield made
    made.screen.close()
    # What it could not take is still in the buffer.
    with suppress(OSError):
        made.stream.close()


def test_a_terminal_shows_words_bar_elapsed_and_remaining_time(terminal: Terminal) -> None:
    with redirect_stderr(terminal.stream), session_progress() as progress:
        progress(event("plan"))
        progress(event("warm-up"))
        progress(event("pair", 2, 9.0, *LAMPS))
        time.sleep(0.6)
        plan, *words, bar = terminal.rows()
        assert plan == "Plan: at most 24 pairs, about 1 min 5 s."
        assert " ".join(map(str.rstrip, words)) == f"pair 2 of 24 (the last one was contaminated: {', '.join(LAMPS)})"
        assert re.fullmatch(r"[━╸╺]{20,} \d s, about \d s left", bar)
        say("a line in between")
        assert terminal.rows()[1] == "a line in between"
    assert terminal.rows() == ["Plan: at most 24 pairs, about 1 min 5 s.", "a line in between"]
    assert "\x1b[?25l" not in terminal.sent, "a kill would leave the cursor hidden"


def test_a_terminal_shows_the_hosts_of_a_wave_until_all_are_done(terminal: Terminal) -> None:
    with redirect_stderr(terminal.stream), run_progress() as steps:
        steps("wave 1 of 2: a, b")
        changed = steps.count("changed in wave 1 of 2")
        changed(0, 2, 0)
        changed(1, 2, 1)
        steps("a: apply: refused")
        time.sleep(0.6)
        first, second, words, bar = terminal.rows()
        assert (first, second) == ("wave 1 of 2: a, b", "a: apply: refused")
        assert words.rstrip() == "1 of 2 hosts changed in wave 1 of 2, 1 failed"
        assert re.match(r"[━╸╺]{20,} \d s", bar)
        changed(2, 2, 1)
        assert terminal.rows() == [first, second], "a question may follow"


def test_no_color_and_dumb_terminals_are_respected(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with redirect_stderr(terminal.stream), wait_progress("observing", 10):
        pass
    assert ", about 10 s left" in terminal.read()
    assert not re.search(r"\x1b\[[0-9;]+m", terminal.sent)
    monkeypatch.setenv("TERM", "dumb")
    with redirect_stderr(terminal.stream), wait_progress("observing", 10):
        pass
    assert terminal.rows() == ["observing, about 10 s left"]


def test_a_terminal_that_hangs_up_does_not_keep_the_host_from_being_restored(
    terminal: Terminal, fake_fio: FakeFio, host: Host, disk: Path
) -> None:
    terminal.screen.close()
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        os.write(terminal.stream.fileno(), b"x")
    toggle, subject = SpeedToggle(fake_fio, 2.0), ProofSubject("storage", (Claim(WORKLOAD),))
    chosen = Settings(
        target=str(disk), mode="quick", scratch_bytes=MIB, keep=Keep(0, 0.0), seed=1, byte_budget=GIB, hold_seconds=0.1
    )
    with redirect_stderr(terminal.stream), session_progress() as progress:
        prove(host, subject, toggle, chosen, runner=fake_fio.runner, progress=progress)
    assert toggle.in_force == "A"
    assert os.listdir(disk) == []


FLEET = ("fleet", "plan", "socket-buffers-8m", "-i", "hosts.ini")


@pytest.mark.parametrize(
    ("number", "words", "steps", "shown"),
    [
        (signal.SIGINT, ("why", "--seconds", "60"), [], "observing"),
        (signal.SIGTERM, ("why", "--seconds", "60"), [], "observing"),
        (signal.SIGTERM, FLEET, ["capturing 2 hosts"], "0 of 2 hosts captured"),
    ],
)
def test_a_command_that_is_interrupted_says_so_on_a_clean_terminal(
    terminal: Terminal, tmp_path: Path, number: signal.Signals, words: tuple[str, ...], steps: list[str], shown: str
) -> None:
    (tmp_path / "hosts.ini").write_text("[all]\na\nb\n[all:vars]\nansible_connection=local\n")
    # `env` becomes the command, with the same process id.
    command = ["env", f"ADVISOR_STATE_DIR={tmp_path}", sys.executable, "-m", "advisor", *words, "--json"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal.stream) as process:
        while shown not in terminal.read():
            assert process.poll() is None, terminal.sent
        process.send_signal(number)
        out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b"")
    assert terminal.rows() == [*steps, f"advisor: interrupted by {number.name}"]


def test_ctrl_c_is_answered_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advisor.operations.library.profile_paths", Mock(side_effect=KeyboardInterrupt))
    done = call_inside("profiles")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "advisor: interrupted by SIGINT\n")
