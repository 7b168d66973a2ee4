"""The words of a running session: its plan, its stages, and no figure."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from advisor.proof.schedule import MODES, ModeName, Schedule, make_schedule
from advisor.proof.scratch import GIB
from advisor.proof.session import ProgressEvent
from advisor.proof.session_runner import Stage
from advisor.proof.workloads import get_workload
from advisor.report.proof.tuning import plan_lines, stage_words

READ, WRITE = "infoscale.4k-rand-r100", "infoscale.4k-rand-w100"


def schedule(*workloads: str, mode: ModeName = "default", budget_seconds: float | None = None) -> Schedule:
    return make_schedule(
        MODES[mode],
        [get_workload(name) for name in workloads or (READ,)],
        free_bytes=1000 * GIB,
        place_seconds=0.2,
        budget_seconds=budget_seconds,
    )


def event(stage: Stage, pair: int = 0, left: float = 65.0, *lamps: str) -> ProgressEvent:
    return ProgressEvent(stage, pair, 24, left, lamps)


def plan(made: Schedule) -> ProgressEvent:
    return ProgressEvent("plan", 0, made.pairs, made.predicted_seconds, schedule=made)


# -- the plan comes first ------------------------------------------------------------------------------------------


def test_the_plan_names_pairs_looks_time_and_bytes() -> None:
    assert list(plan_lines(plan(schedule(WRITE)))) == [
        "Plan: at most 24 pairs of 2 s runs, judged after 8, 16 and 24.",
        "Time: about 4 min 35 s; repeats of contaminated pairs come on top.",
        "Bytes: at most 7.77 GiB written (scratch file 512 MiB), limit 8 GiB.",
        "No figure is shown before the end, so that nobody stops at a lucky moment.",
    ]


def test_one_look_is_the_end() -> None:
    assert plan_lines(plan(schedule(mode="quick")))[0] == "Plan: at most 8 pairs of 1 s runs, judged once, at the end."
    assert "1 pair of" in plan_lines(plan(schedule(mode="quick", budget_seconds=21)))[0]


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


def test_a_pair_that_comes_twice_is_a_repeat() -> None:
    events = [event("warm-up"), event("pair", 1), event("pair", 1), event("pair", 2), event("pair", 3)]
    words = [stage_words(after, before) for before, after in pairwise(events)]
    assert [" again" in one for one in words] == [False, True, False, False]
