"""The race: its exact levels against scipy and against all permutations, what it drops, and how often it errs."""

from __future__ import annotations

import itertools
import random

import pytest

from advisor.errors import UsageError
from advisor.operations.tuning import parse_budget
from advisor.proof.statistics import doubled_midranks
from advisor.proof.tuning.records import PRESENT, Block, Standing, drop_arms, find_winner, rank_arms


def field(seed: int, blocks: int, arms: int, effects: dict[int, float] | None = None) -> list[Block]:
    source = random.Random(seed)
    return [{arm: source.gauss((effects or {}).get(arm, 0), 0.1) for arm in range(arms)} for _ in range(blocks)]


@pytest.mark.parametrize("seed", range(3))
def test_the_level_of_an_arm_is_that_of_all_orders(seed: int) -> None:
    """Every way in which the values of each block could have been dealt to the arms, counted."""
    blocks = field(seed, 3, 3)
    aligned = [[value - sum(block.values()) / 3 for value in block.values()] for block in blocks]
    ranks = doubled_midranks([value for block in aligned for value in block])
    scores = [ranks[at : at + 3] for at in range(0, 9, 3)]
    sums = [sum(each) for each in itertools.product(*scores)]
    for one in rank_arms(blocks):
        own = sum(block[one.arm] for block in scores)
        assert one.better == pytest.approx(sum(each >= own for each in sums) / len(sums))
        assert one.worse == pytest.approx(sum(each <= own for each in sums) / len(sums))


def test_arms_that_are_alike_or_dropped_or_none() -> None:
    blocks: list[Block] = [dict.fromkeys(range(4), 1.0) for _ in range(12)]
    assert {(one.worse, one.better) for one in rank_arms(blocks)} == {(1.0, 1.0)}
    assert drop_arms(rank_arms(blocks), 12, 12) == ()
    assert find_winner(rank_arms(blocks), 3, 12, 12) is None
    blocks = field(3, 8, 4)
    shorter = [{arm: value for arm, value in block.items() if arm != 2} for block in blocks]
    assert rank_arms([*blocks[:4], *shorter[4:]]) == rank_arms(shorter)
    worst = [Standing(PRESENT, 1e-9, 1.0, -0.5), Standing(1, 1.0, 1.0, 0.2)]
    assert drop_arms(worst, 10, 10) == ()
    best = [Standing(PRESENT, 1.0, 1e-9, 0.5), Standing(1, 1.0, 1e-9, 0.2)]
    assert find_winner(best, 1, 10, 10) is None


def test_a_load_that_changes_from_block_to_block_is_no_effect() -> None:
    blocks = field(1, 12, 4, {2: 0.3})
    moved = [{arm: value + 10 * at for arm, value in block.items()} for at, block in enumerate(blocks)]
    for one, other in zip(rank_arms(blocks), rank_arms(moved), strict=True):
        assert one.better == pytest.approx(other.better, rel=1e-6)


def test_what_harms_is_dropped_and_what_helps_wins() -> None:
    blocks = field(2, 12, 6, {3: -0.5, 4: 0.5})
    assert 3 in drop_arms(rank_arms(blocks[:6]), 6, 12)
    assert find_winner(rank_arms(blocks), 5, 12, 12) == 4
    # between the looks nothing is decided
    assert find_winner(rank_arms(blocks[:7]), 5, 7, 12) is None
    assert find_winner(rank_arms(blocks[:7]), 5, 7, 12, is_last=True) == 4


@pytest.mark.parametrize(
    ("text", "seconds"), [("30m", 1800.0), ("2h", 7200.0), ("1.5m", 90.0), ("90s", 90.0), ("90", 90.0)]
)
def test_a_budget(text: str, seconds: float) -> None:
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "0m", "0", "30 m", "-1h", "200h", "٣m", "1e3m", "nan"])
def test_what_is_no_budget(text: str) -> None:
    with pytest.raises(UsageError, match="expected a time above 0, up to a week"):
        parse_budget(text)
