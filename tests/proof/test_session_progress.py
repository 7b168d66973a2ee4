"""What is reported while a session runs: to a list of lines, and to a real pseudo-terminal."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import re
import select
import struct
import termios
from collections.abc import Iterator
from contextlib import redirect_stderr, suppress
from io import StringIO
from pathlib import Path
from typing import TextIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.host import Host
from advisor.proof.covariates import LAMPS
from advisor.proof.records import Claim, ProofSubject
from advisor.proof.schedule import MODES, ModeName, Schedule, make_schedule
from advisor.proof.scratch import GIB, MIB, Keep
from advisor.proof.session import Progress, ProgressEvent, Settings, prove
from advisor.proof.session_runner import Stage
from advisor.proof.workloads import NULL_CONTROL, get_workload
from advisor.report.session_progress import Say, format_duration, plan_lines, show_progress
from tests.proof.fakes import FakeFio, SpeedToggle

READ, WRITE = "infoscale.4k-rand-r100", "infoscale.4k-rand-w100"
FIGURES = re.compile(r"IOPS|MB/s|%|\bp [=<]|ratio|latency|gain|loss|faster|slower", re.IGNORECASE)


def schedule(*workloads: str, mode: ModeName = "default", budget_seconds: float | None = None) -> Schedule:
    return make_schedule(
        MODES[mode],
        [get_workload(name) for name in workloads or (READ,)],
        device_bytes=1000 * GIB,
        place_seconds=0.2,
        budget_seconds=budget_seconds,
    )


def event(stage: Stage, pair: int = 0, left: float = 65.0, *lamps: str) -> ProgressEvent:
    return ProgressEvent(stage, pair, 24, left, lamps)


def plan(made: Schedule) -> ProgressEvent:
    return ProgressEvent("plan", 0, made.pairs, made.predicted_seconds, schedule=made)


def shown_to(say: Say, stream: TextIO | None = None) -> Progress:
    """Progress with that standard error; without one it is no terminal."""
    with redirect_stderr(stream or StringIO()):
        return show_progress(say)


def reported(*events: ProgressEvent, stream: TextIO | None = None) -> list[str]:
    """What is said, besides what a terminal itself shows."""
    lines: list[str] = []
    progress = shown_to(lines.append, stream)
    for one in events:
        progress(one)
    return lines


def conduct(fake_fio: FakeFio, host: Host, disk: Path, progress: Progress) -> SpeedToggle:
    toggle = SpeedToggle(fake_fio, 2.0)
    chosen = Settings(target=str(disk), mode="quick", scratch_bytes=MIB, keep=Keep(0, 0.0), seed=1, byte_budget=GIB)
    prove(host, ProofSubject("storage", (Claim(READ),)), toggle, chosen, runner=fake_fio.runner, progress=progress)
    return toggle


# -- the plan comes first ------------------------------------------------------------------------------------------


def test_the_plan_names_pairs_looks_time_and_bytes() -> None:
    assert reported(plan(schedule(WRITE))) == [
        "Plan: at most 24 pairs of 2 s runs, judged after 8, 16 and 24.",
        "Time: about 4 min 14 s; repeats of contaminated pairs come on top.",
        "Bytes: at most 7.77 GiB written (scratch file 512 MiB), limit 8 GiB.",
        "No figure is shown before the end, so that nobody stops at a lucky moment.",
    ]


def test_one_look_is_the_end() -> None:
    assert reported(plan(schedule(mode="quick")))[0] == "Plan: at most 8 pairs of 1 s runs, judged once, at the end."
    assert "1 pair of" in reported(plan(schedule(mode="quick", budget_seconds=21)))[0]


def test_reading_writes_the_scratch_file_only_and_no_storage_nothing() -> None:
    assert "Bytes: at most 512 MiB written (scratch file 512 MiB), limit 8 GiB." in reported(plan(schedule(READ)))
    assert "Bytes: none will be written." in reported(plan(schedule(NULL_CONTROL)))


def test_a_plan_without_its_schedule_is_told_all_the_same() -> None:
    assert reported(event("plan")) == ["Plan: at most 24 pairs, about 1 min 5 s."]


@given(st.sampled_from(list(MODES)), st.floats(min_value=60, max_value=100_000))
def test_the_plan_fits_a_narrow_terminal(mode: ModeName, budget_seconds: float) -> None:
    made = schedule(READ, WRITE, mode=mode, budget_seconds=budget_seconds)
    assert max(map(len, plan_lines(plan(made)))) < 80


# -- one line for each pair ----------------------------------------------------------------------------------------


def test_where_nobody_looks_on_there_is_one_line_for_each_stage_and_pair() -> None:
    lines = reported(event("scratch"), event("warm-up"), event("pair", 1), event("pair", 2, 3.4), event("restore"))
    assert lines == [
        "filling the scratch file, about 1 min 5 s left",
        "warming up, about 1 min 5 s left",
        "pair 1 of 24, about 1 min 5 s left",
        "pair 2 of 24, about 3 s left",
        "restoring the host",
    ]


def test_lamps_say_what_contaminated_the_pair_before() -> None:
    line = reported(event("pair", 3, 9.0, "disk", "steal"))[0]
    assert line == "pair 3 of 24, about 9 s left; the last one was contaminated: disk, steal"


def test_all_lamps_at_once_fit_a_line() -> None:
    assert len(reported(event("pair", 23, 599.0, *LAMPS))[0]) < 120


def test_a_pair_that_comes_twice_is_a_repeat() -> None:
    lines = reported(event("warm-up"), event("pair", 1), event("pair", 1), event("pair", 2), event("pair", 3))
    assert [" again" in line for line in lines] == [False, False, True, False, False]


def test_a_sequence_counts_its_blocks() -> None:
    lines = reported(event("warm-up"), event("pair"), event("pair"), event("pair"))
    assert [line.partition(",")[0] for line in lines[1:]] == [
        "block 1 of 3 (arm A)",
        "block 2 of 3 (arm B)",
        "block 3 of 3 (arm A again)",
    ]


def test_a_whole_session_is_told_without_a_figure(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    lines: list[str] = []
    conduct(fake_fio, host, disk, shown_to(lines.append))
    assert [line for line in lines if line.startswith("pair ")] == [
        line for number, line in enumerate(lines[7:15], 1) if line.startswith(f"pair {number} of 8, about ")
    ]
    assert len(lines) == 4 + 3 + 8 + 1
    assert not [line for line in lines if FIGURES.search(line)]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "0 s"),
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h 0 min"),
        (9059, "2 h 30 min"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words


# -- a terminal ----------------------------------------------------------------------------------------------------


class Terminal:
    """A pseudo-terminal of 60 columns; ``shown`` is what it was sent so far."""

    def __init__(self) -> None:
        self.master, slave = pty.openpty()
        self.resize(60)
        self.stream: TextIO = os.fdopen(slave, "w")

    def resize(self, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def shown(self) -> str:
        found = b""
        # The kernel hands it over a little later than it was written, and perhaps in parts.
        while select.select([self.master], [], [], 0.2 if found else 5.0)[0]:
            found += os.read(self.master, 1 << 16)
        return found.decode().replace("\r\n", "\n")

    def hang_up(self) -> None:
        os.close(self.master)
        self.master = -1


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    made = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    yield made
    if made.master >= 0:
        made.hang_up()
    # What it could not take is still in the buffer.
    with suppress(OSError):
        made.stream.close()


def test_on_a_terminal_one_line_rewrites_itself_below_the_plan(terminal: Terminal) -> None:
    lines = reported(plan(schedule()), event("warm-up"), event("pair", 1), event("pair", 2), stream=terminal.stream)
    assert len(lines) == 4, "the plan stays"
    assert terminal.shown() == (
        "warming up, about 1 min 5 s left\n"
        "\x1b[A\r\x1b[Kpair 1 of 24, about 1 min 5 s left\n"
        "\x1b[A\r\x1b[Kpair 2 of 24, about 1 min 5 s left\n"
    )


def test_a_line_never_wraps_as_only_its_end_would_be_rewritten(terminal: Terminal) -> None:
    reported(event("pair", 2, 9.0, *LAMPS), stream=terminal.stream)
    shown = terminal.shown().rstrip("\n")
    assert len(shown) == 59
    assert shown.endswith("..."), "that something is missing can be seen"
    terminal.resize(30)
    reported(event("pair", 2, 9.0, *LAMPS), stream=terminal.stream)
    assert len(terminal.shown().rstrip("\n")) == 29


def test_a_terminal_that_cannot_move_its_cursor_gets_lines(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert reported(event("pair", 1), event("pair", 2), stream=terminal.stream) == [
        "pair 1 of 24, about 1 min 5 s left",
        "pair 2 of 24, about 1 min 5 s left",
    ]


# -- nobody there any more -----------------------------------------------------------------------------------------


def test_a_terminal_that_hangs_up_does_not_keep_the_host_from_being_put_back(
    terminal: Terminal, fake_fio: FakeFio, host: Host, disk: Path
) -> None:
    lines: list[str] = []
    progress = shown_to(lines.append, terminal.stream)
    terminal.hang_up()
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        os.write(terminal.stream.fileno(), b"x")
    toggle = conduct(fake_fio, host, disk, progress)
    assert toggle.in_force == "A"
    assert os.listdir(disk) == []
    assert len(lines) == 4


@pytest.mark.parametrize("error", [BrokenPipeError(), ValueError("I/O operation on closed file")])
def test_a_reader_that_has_gone_is_told_nothing_more(
    fake_fio: FakeFio, host: Host, disk: Path, error: Exception
) -> None:
    calls: list[str] = []

    def say(line: str) -> None:
        calls.append(line)
        raise error

    toggle = conduct(fake_fio, host, disk, shown_to(say))
    assert (toggle.in_force, len(calls)) == ("A", 1)


def test_what_is_wrong_with_the_program_is_not_swallowed() -> None:
    def say(line: str) -> None:
        raise KeyError(line)

    with pytest.raises(KeyError):
        shown_to(say)(event("scratch"))
