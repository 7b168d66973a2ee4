"""The quick form of ``python -m benchmarks.decisions``: who errs where nothing changed, and who finds 10 %."""

from __future__ import annotations

import math

import pytest

from benchmarks.decisions import ALPHA, LOADS, compare_means, fixed_abba, judge_way, mann_whitney, prove

SESSIONS = 60


@pytest.mark.parametrize("name", LOADS)
def test_a_proof_errs_in_five_percent_under_every_load(name: str) -> None:
    row = judge_way(prove, LOADS[name], ALPHA, SESSIONS, 11)
    assert row.false <= ALPHA + 4 * math.sqrt(ALPHA * (1 - ALPHA) / SESSIONS)
    assert row.right >= (0.2 if name == "each fourth run slow" else 0.75)


def test_what_people_do_errs_where_the_load_changes() -> None:
    for way, name in ((compare_means, "one step"), (mann_whitney, "one step"), (fixed_abba, "each fourth run slow")):
        assert judge_way(way, LOADS[name], ALPHA, SESSIONS, 12).false > 0.5
    assert judge_way(compare_means, LOADS["constant"], ALPHA, SESSIONS, 13).false < 0.25
