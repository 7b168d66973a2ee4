"""How a session is laid out: pairs, looks, level, time and bytes."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import RefusedError, UsageError
from advisor.operations.measure import parse_budget
from advisor.proof.schedule import MODES, Schedule, enough_budget, level_for, looks_for, make_schedule, write_budget
from advisor.proof.scratch import GIB, MIB
from advisor.proof.workloads import OWN_COMMAND, WORKLOADS, get_workload

READ, WRITE = get_workload("infoscale.4k-rand-r100"), get_workload("infoscale.4k-seq-w100")
DEFAULT = MODES["default"]


def plan(*names: str, mode: str = "default", device: int = 1000 * GIB, **options: float) -> Schedule:
    workloads = [get_workload(name) for name in names or (READ.name,)]
    return make_schedule(MODES[mode], workloads, free_bytes=device, place_seconds=0.0, **options)  # type: ignore[index, arg-type]


def test_modes_and_levels_of_the_protocol() -> None:
    quick, default, deep = MODES["quick"], MODES["default"], MODES["deep"]
    assert (quick.pairs, quick.seconds, quick.margin) == (8, 1.0, 0.10)
    assert (default.pairs, default.seconds, default.looks) == (24, 2.0, (8, 16, 24))
    assert (deep.pairs, deep.margin, deep.looks) == (48, 0.05, (48,))
    assert plan(mode="quick").alpha == plan(mode="deep").alpha == 0.05
    assert plan().alpha == 0.0221
    assert level_for((8, 20)) == 0.0294


@pytest.mark.parametrize(
    ("pairs", "looks"),
    [(24, (8, 16, 24)), (20, (8, 16, 20)), (18, (8, 18)), (12, (8, 12)), (10, (10,)), (8, (8,)), (3, (3,))],
)
def test_looks_are_cut_to_the_pairs_that_fit(pairs: int, looks: tuple[int, ...]) -> None:
    assert looks_for(pairs, DEFAULT) == looks


def test_the_budget_in_seconds_wins_over_the_mode() -> None:
    short = plan(budget_seconds=90.0)
    assert short.pairs < plan().pairs == 24
    assert short.predicted_seconds <= 90
    assert plan(budget_seconds=1e6).pairs == 24


def refused_budget(seconds: float, mode: str = "default") -> tuple[str, list[float]]:
    """The message of a budget that is too small, and the budgets that its hint names, as they are typed."""
    with pytest.raises(RefusedError, match="has no room for one pair") as caught:
        plan(mode=mode, budget_seconds=seconds)
    named = re.findall(r"--budget (\S+) has room", str(caught.value.hint))
    return caught.value.message, [parse_budget(text) for text in named]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seconds", [0.123, 1.0, 5.0])
def test_a_budget_without_room_for_a_pair_is_refused_with_those_that_have_it(mode: str, seconds: float) -> None:
    _, (one, every) = refused_budget(seconds, mode)
    assert 1 <= plan(mode=mode, budget_seconds=one).pairs <= 2
    assert plan(mode=mode, budget_seconds=every).pairs == MODES[mode].pairs  # type: ignore[index]


@given(st.floats(0.001, 7 * 86400 - 3600))
def test_a_budget_that_is_enough_is_a_minute_more_at_most(seconds: float) -> None:
    assert seconds <= parse_budget(enough_budget(seconds)) <= seconds + 60.001
    assert parse_budget(write_budget(seconds)) == pytest.approx(seconds, abs=0.00051)


def test_budgets_are_short_and_printed_as_they_are_typed() -> None:
    assert [enough_budget(seconds) for seconds in (0.1, 5.0, 61.2, 119.9, 120.5, 7201)] == [
        "5s", "10s", "65s", "2m", "3m", "121m",
    ]  # fmt: skip
    assert [write_budget(seconds) for seconds in (3.0, 90.0, 300.0, 7200.0, 0.06)] == ["3s", "90s", "5m", "2h", "0.06s"]
    for text in ("3s", "0.05m", "0.001h", "1.5s"):
        message, _ = refused_budget(parse_budget(text))
        printed = message.removeprefix("a budget of ").split()[0]
        assert parse_budget(printed) == parse_budget(text)


def test_a_command_takes_its_own_seconds_and_no_scratch_file() -> None:
    mode = msgspec.structs.replace(MODES["quick"], seconds=0.1)
    made = make_schedule(mode, [OWN_COMMAND], free_bytes=1 << 40, place_seconds=0.0, budget_seconds=6.0)
    assert made.pair_seconds == pytest.approx(0.2)
    assert made.scratch_bytes == 0
    assert made.pairs == 8
    slow = msgspec.structs.replace(mode, seconds=30.0)
    with pytest.raises(
        RefusedError, match="no room for one pair: warm-up and restoring take about 183 s, each pair 60"
    ):
        make_schedule(slow, [OWN_COMMAND], free_bytes=1 << 40, place_seconds=0.0, budget_seconds=60.0)


@given(
    st.sampled_from(sorted(MODES)),
    st.lists(st.sampled_from(sorted(WORKLOADS)), min_size=1, max_size=4, unique=True),
    st.integers(20, 20_000),
    st.one_of(st.none(), st.floats(30, 4000)),
)
def test_no_schedule_exceeds_its_budgets(mode: str, names: list[str], device_gib: int, budget: float | None) -> None:
    try:
        found = plan(*names, mode=mode, device=device_gib * GIB, **({"budget_seconds": budget} if budget else {}))
    except (RefusedError, UsageError):
        return
    assert found.predicted_bytes <= found.byte_budget <= min(8 * GIB, device_gib * GIB // 2)
    assert budget is None or found.predicted_seconds <= budget
    assert found.looks[-1] == found.pairs


def test_bytes_of_writing_and_of_reading() -> None:
    assert plan(WRITE.name, device=10_000 * GIB).byte_budget == 8 * GIB
    assert plan(WRITE.name, device=6 * GIB).byte_budget == 3 * GIB
    assert plan(WRITE.name, device=200 * GIB, byte_budget=20 * GIB).byte_budget == 20 * GIB
    found = plan(WRITE.name, device=4 * GIB)
    # two arms with up to three warm-up runs each, then 24 pairs, then both held
    assert found.predicted_bytes == found.scratch_bytes + (54 + 2 * found.hold_runs) * found.run_write_bytes
    assert found.run_write_bytes > 15 * MIB
    found = plan(READ.name)
    assert found.predicted_bytes == found.scratch_bytes == 512 * MIB
    assert plan("null.4k").scratch_bytes == 0


def test_bytes_and_files_that_are_too_small_are_refused() -> None:
    with pytest.raises(RefusedError, match="byte budget of 128 MiB"):
        plan(WRITE.name, byte_budget=128 * MIB, scratch_bytes=100 * MIB)
    with pytest.raises(RefusedError, match="byte budget"):
        plan(READ.name, byte_budget=32 * MIB)
    with pytest.raises(RefusedError, match="byte budget"):
        # 1 MiB a run would do for 4k blocks, but not for four threads that write 1 MiB each
        plan("beegfs.iozone-seq", byte_budget=300 * MIB, scratch_bytes=64 * MIB)
    with pytest.raises(UsageError, match=r"beegfs\.iozone-seq-read needs more than 16384 KiB"):
        plan("beegfs.iozone-seq-read", scratch_bytes=16 * MIB)
    assert plan("beegfs.iozone-seq-read", scratch_bytes=32 * MIB).scratch_bytes == 32 * MIB
