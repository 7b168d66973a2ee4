"""The words of a running session: its plan, its stages, and no figure."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

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
from advisor.report.format import format_duration
from advisor.report.session_progress import plan_lines, stage_words
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


def conduct(fake_fio: FakeFio, host: Host, disk: Path, progress: Progress) -> SpeedToggle:
    toggle = SpeedToggle(fake_fio, 2.0)
    chosen = Settings(target=str(disk), mode="quick", scratch_bytes=MIB, keep=Keep(0, 0.0), seed=1, byte_budget=GIB)
    prove(host, ProofSubject("storage", (Claim(READ),)), toggle, chosen, runner=fake_fio.runner, progress=progress)
    return toggle


# -- the plan comes first ------------------------------------------------------------------------------------------


def test_the_plan_names_pairs_looks_time_and_bytes() -> None:
    assert list(plan_lines(plan(schedule(WRITE)))) == [
        "Plan: at most 24 pairs of 2 s runs, judged after 8, 16 and 24.",
        "Time: about 4 min 14 s; repeats of contaminated pairs come on top.",
        "Bytes: at most 7.77 GiB written (scratch file 512 MiB), limit 8 GiB.",
        "No figure is shown before the end, so that nobody stops at a lucky moment.",
    ]


def test_one_look_is_the_end() -> None:
    assert plan_lines(plan(schedule(mode="quick")))[0] == "Plan: at most 8 pairs of 1 s runs, judged once, at the end."
    assert "1 pair of" in plan_lines(plan(schedule(mode="quick", budget_seconds=21)))[0]


def test_reading_writes_the_scratch_file_only_and_no_storage_nothing() -> None:
    assert "Bytes: at most 512 MiB written (scratch file 512 MiB), limit 8 GiB." in plan_lines(plan(schedule(READ)))
    assert "Bytes: none will be written." in plan_lines(plan(schedule(NULL_CONTROL)))


def test_a_plan_without_its_schedule_is_told_all_the_same() -> None:
    assert plan_lines(event("plan")) == ("Plan: at most 24 pairs, about 1 min 5 s.",)


@given(st.sampled_from(list(MODES)), st.floats(min_value=60, max_value=100_000))
def test_the_plan_fits_a_narrow_terminal(mode: ModeName, budget_seconds: float) -> None:
    made = schedule(READ, WRITE, mode=mode, budget_seconds=budget_seconds)
    assert max(map(len, plan_lines(plan(made)))) < 80


# -- the stage -----------------------------------------------------------------------------------------------------


def test_each_stage_has_its_words() -> None:
    events = (event("scratch"), event("warm-up"), event("probe", 2), event("pair", 1), event("restore"))
    assert [stage_words(one) for one in events] == [
        "filling the scratch file",
        "warming up",
        "short pair 2 of 10",
        "pair 1 of 24",
        "restoring the host",
    ]


def test_lamps_say_what_contaminated_the_pair_before() -> None:
    words = stage_words(event("pair", 3, 9.0, "disk", "steal"))
    assert words == "pair 3 of 24 (the last one was contaminated: disk, steal)"
    assert len(stage_words(event("pair", 23, 599.0, *LAMPS))) < 120


def test_a_pair_that_comes_twice_is_a_repeat() -> None:
    events = [event("warm-up"), event("pair", 1), event("pair", 1), event("pair", 2), event("pair", 3)]
    words = [stage_words(after, before) for before, after in pairwise(events)]
    assert [" again" in one for one in words] == [False, True, False, False]


def test_a_sequence_counts_its_blocks() -> None:
    assert [stage_words(event("pair"), None, block) for block in (1, 2, 3)] == [
        "block 1 of 3 (arm A)",
        "block 2 of 3 (arm B)",
        "block 3 of 3 (arm A again)",
    ]


def test_a_race_shows_its_standing_without_a_figure() -> None:
    standing = "2 of 5 candidates left; ahead so far, which may be chance: a"
    assert stage_words(ProgressEvent("block", 3, 9, 60.0, standing=standing)) == f"block 3 of 9 ({standing})"


def test_a_whole_session_is_told_without_a_figure(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    events: list[ProgressEvent] = []
    conduct(fake_fio, host, disk, events.append)
    words = [line for one in events for line in (plan_lines(one) if one.stage == "plan" else [stage_words(one)])]
    assert [line for line in words if line.startswith("pair ")] == [f"pair {number} of 8" for number in range(1, 9)]
    assert len(words) == 4 + 3 + 8 + 1
    assert not [line for line in words if FIGURES.search(line)]


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
