"""One and two series: exact against scipy, against full enumeration, and by their own laws."""

from __future__ import annotations

import math
import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from advisor.proof.statistics import (
    coefficient_of_variation,
    mann_whitney,
    median_absolute_deviation,
    median_interval,
    noise_floor,
)
from tests.known import known

# distinct whole numbers, so that differences are exact and shifting by a half leaves no ties
DISTINCT = st.lists(st.integers(-500, 500), min_size=2, max_size=24, unique=True)
TIED = st.lists(st.integers(0, 4), min_size=1, max_size=6)


def halves(values: list[int]) -> tuple[list[float], list[float]]:
    middle = len(values) // 2
    return [float(value) for value in values[:middle]], [float(value) for value in values[middle:]]


# -- Mann-Whitney ------------------------------------------------------------------------------------------------------


def test_p_is_scipy_s_on_random_samples() -> None:
    source = random.Random("mann-whitney")
    for _ in range(500):
        first = [source.gauss(0, 1) for _ in range(source.randint(1, 24))]
        second = [source.gauss(source.choice([0, 0.5, 1.5]), 1) for _ in range(source.randint(1, 24))]
        expected = stats.mannwhitneyu(first, second, method="exact").pvalue
        assert mann_whitney(first, second) == pytest.approx(float(expected), rel=1e-9)


def enumerated(first: list[float], second: list[float]) -> float:
    """All ways to choose who belongs to the first group, by the distance of the rank sum from its mean."""
    ranks = [float(rank) for rank in stats.rankdata([*first, *second])]
    mean = len(first) * (len(ranks) + 1) / 2
    seen = abs(sum(ranks[: len(first)]) - mean)
    sums = [abs(sum(chosen) - mean) for chosen in combinations(ranks, len(first))]
    return sum(one >= seen - 1e-9 for one in sums) / len(sums)


@given(TIED, TIED)
@settings(max_examples=150)
def test_with_ties_it_is_the_share_of_all_permutations(first: list[int], second: list[int]) -> None:
    a, b = [float(value) for value in first], [float(value) for value in second]
    assert mann_whitney(a, b) == pytest.approx(enumerated(a, b), abs=1e-12)


@given(DISTINCT)
def test_p_knows_no_first_and_no_unit(values: list[int]) -> None:
    first, second = halves(values)
    p = mann_whitney(first, second)
    assert 0 < p <= 1
    assert mann_whitney(second, first) == p
    assert mann_whitney([math.atan(v) for v in first], [math.atan(v) for v in second]) == p


def test_where_nothing_can_be_shown() -> None:
    assert mann_whitney([], [1.0, 2.0]) == mann_whitney([1.0], []) == 1.0


# -- one series --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 5, 6, 8, 9, 24, 25, 48])
def test_the_level_of_the_median_s_interval_is_binomial(count: int) -> None:
    values = [float(value) for value in range(count)]
    found = median_interval(values, 0.95)
    k = int(found.low)
    assert found.high == count - 1 - k
    assert found.confidence == pytest.approx(max(0.0, 1 - 2 * stats.binom.cdf(k, count, 0.5)))
    inner = 1 - 2 * stats.binom.cdf(k + 1, count, 0.5)
    assert inner < 0.95, "the next one inside would not reach it"
    assert found.confidence >= 0.95 or k == 0


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=60))
def test_the_deviation_is_scipy_s(values: list[float]) -> None:
    assert median_absolute_deviation(values) == pytest.approx(float(stats.median_abs_deviation(values)))


def test_variation_and_floor_of_few_or_equal_runs() -> None:
    assert coefficient_of_variation([8.0, 10.0, 12.0]) == pytest.approx(0.2)
    assert coefficient_of_variation([8.0]) is None
    assert noise_floor([1.0] * 8) == 0.0
    assert noise_floor([1.0, 2.0, 3.0, 4.0, 5.0]) is None


def test_the_noise_floor_is_passed_by_one_pair_in_twenty() -> None:
    source = random.Random("floor")

    def value() -> float:
        return source.gauss(0, 0.1)

    shares = []
    for _ in range(200):
        floor = known(noise_floor([value() for _ in range(48)]))
        passed = sum(abs(value() - value()) > math.log1p(floor) for _ in range(100))
        shares.append(passed / 100)
    assert 0.035 <= sum(shares) / len(shares) <= 0.075


@pytest.mark.parametrize("nudge", [1 + 2**-52, 1 - 2**-53])
def test_what_differs_in_the_last_bit_is_a_tie(nudge: float) -> None:
    plain = [math.log(400), math.log(500), math.log(600)] * 3
    nudged = [one * nudge for one in plain]
    assert nudged != plain
    assert mann_whitney(plain, nudged) == 1.0
    assert mann_whitney(plain[:5], nudged[4:]) == mann_whitney(plain[:5], plain[4:])
