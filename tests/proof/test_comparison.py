"""Two series against each other: what the figures say, what the verdict may at most be, and what is named."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advisor.errors import InvalidInputError
from advisor.proof.archive import Saved, SavedBench
from advisor.proof.comparison import NOT_INTERLEAVED, SeriesComparison, compare
from advisor.proof.series import summarise_series
from advisor.proof.statistics import holm, mann_whitney, median, median_absolute_deviation
from advisor.proof.verdict import decide_session
from tests.known import known

from .benches import HOST, OTHER, saved, series, speeds
from .sessions import WORKLOAD, pair, session


def against(around: float, *, count: int = 24) -> SeriesComparison:
    return compare(
        saved(speeds(count), started="2024-05-17T11:00:00+00:00"), saved(speeds(count, around=around, seed=2))
    )


@pytest.mark.parametrize(
    ("around", "outcome", "is_worse"),
    [(1200.0, "better", False), (800.0, "worse", True), (1000.0, "inconclusive", False)],
)
def test_the_verdict_is_indicative_at_most(around: float, outcome: str, *, is_worse: bool) -> None:
    found = against(around)
    assert (found.verdict, found.workloads[0].outcome, found.is_worse) == ("indicative", outcome, is_worse)
    assert found.reasons == (NOT_INTERLEAVED,)
    assert found.notes == ()


def test_the_figures_are_those_of_the_runs() -> None:
    first, second = speeds(24), speeds(20, around=1100, seed=2)
    (found,) = compare(saved(first), saved(second)).workloads
    assert found.runs == (24, 20)
    assert found.p_value == mann_whitney(first, second) == found.p_holm
    assert found.medians == (median(first), median(second))
    assert found.spreads == (median_absolute_deviation(first), median_absolute_deviation(second))
    assert found.ratio == median(second) / median(first) == pytest.approx(1.1, rel=0.05)


def test_several_workloads_share_one_error_rate() -> None:
    first = saved({WORKLOAD: speeds(24), OTHER: speeds(24, seed=3)})
    second = saved({WORKLOAD: speeds(24, around=1200, seed=2), OTHER: speeds(24, around=800, seed=4)})
    found = compare(first, second)
    assert [one.outcome for one in found.workloads] == ["better", "worse"]
    assert found.is_worse
    raw = [one.p_value for one in found.workloads]
    assert [one.p_holm for one in found.workloads] == list(holm(raw))
    assert min(one.p_holm for one in found.workloads) > min(raw)


def test_of_a_proof_arm_a_is_taken() -> None:
    pairs = [pair(index, value, 5 * value) for index, value in enumerate(speeds(24))]
    proof = Saved(decide_session(replace(session(pairs), host=HOST)), {})
    found = compare(proof, saved(speeds(24, seed=2)))
    assert found.workloads[0].outcome == "inconclusive"
    assert known(found.workloads[0].medians)[0] == pytest.approx(1000, rel=0.05)
    assert found.a.kind == "proof"
    assert any("A is arm A of a proof of storage" in note for note in found.notes)


def test_workloads_in_common_are_compared_and_others_named() -> None:
    with pytest.raises(InvalidInputError, match=r"x\.gz and y\.gz have no workload in common") as caught:
        compare(saved({WORKLOAD: speeds(8)}), saved({OTHER: speeds(8)}), ("x.gz", "y.gz"))
    assert caught.value.exit_code == 2
    found = compare(saved({WORKLOAD: speeds(8), OTHER: speeds(8)}), saved({WORKLOAD: speeds(8, seed=2)}))
    assert [one.name for one in found.workloads] == [WORKLOAD]
    assert f"B has no runs of {OTHER}: left out" in found.notes


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"fio_version": "fio-3.38"}, "different fio versions: A fio-3.33, B fio-3.38"),
        ({"device": "sdb"}, "different targets: A /srv (xfs on sda), B /srv (xfs on sdb)"),
        ({"target": "/mnt"}, "different targets: A /srv (xfs on sda), B /mnt (xfs on sda)"),
        ({"host": replace(HOST, machine="f" * 32, name="vm2")}, "different machine ids: A 01234567, B ffffffff"),
        ({"host": replace(HOST, kernel="6.2.0")}, "different kernels: A 6.1.0, B 6.2.0"),
        ({"host": replace(HOST, version="9")}, "different versions of advisor: A 0.1.0, B 9"),
        ({"host": None}, "whether both were measured on the same host is not known"),
        ({"host": replace(HOST, machine=None)}, "whether both were measured on the same host is not known"),
        ({"forced": True}, "B was measured on a busy host"),
        ({"ended": "interrupted"}, "B was interrupted"),
        (
            {"schedule": replace(series([1.0]).schedule, seconds_per_run=1.0)},
            "different lengths of a run: A 2 s, B 1 s",
        ),
        (
            {"schedule": replace(series([1.0]).schedule, scratch_bytes=1 << 20)},
            "different sizes of the scratch file: A 512 MiB, B 1 MiB",
        ),
        ({"started": "2024-05-17T12:00:00+00:00"}, "A and B are the same series: nothing can follow from that"),
    ],
)
def test_what_else_differs_is_named(changes: dict[str, object], note: str) -> None:
    first = saved(speeds(24))
    found = compare(first, saved(speeds(24, seed=2), **{"started": "2024-05-18T12:00:00+00:00", **changes}))
    assert found.notes == (note,)


def test_a_series_that_is_void_makes_the_comparison_void() -> None:
    broken = saved(speeds(24, around=2000, seed=2), faults=("fio ended well but did no I/O",), ended="fault")
    found = compare(saved(speeds(24)), broken)
    assert found.verdict == "invalid"
    assert found.reasons == ("B: fio ended well but did no I/O", NOT_INTERLEAVED)


def test_few_runs_find_nothing_and_none_are_compared_to_nothing() -> None:
    found = against(2000.0, count=2)
    assert found.workloads[0].outcome == "inconclusive"
    assert {"A has 2 rounds only", "B has 2 rounds only"} <= set(found.notes)
    empty = SavedBench(summarise_series(replace(series(speeds(8)), rounds=())), {})
    (row,) = compare(saved(speeds(8)), empty).workloads
    assert (row.runs, row.ratio, row.outcome) == ((8, 0), None, "inconclusive")
