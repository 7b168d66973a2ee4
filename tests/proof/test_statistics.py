"""The exact statistics against scipy, against plain enumeration, and by their own laws."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from advisor.proof.statistics import (
    attainable_level,
    hodges_lehmann,
    holm,
    is_equivalent,
    median,
    minimum_detectable_effect,
    needed_pairs,
    rank_sum,
    robust_spread,
    signed_rank,
)
from tests.known import known

ratios = st.floats(-3, 3, allow_nan=False).map(lambda value: round(value, 3))
samples = st.lists(ratios, min_size=1, max_size=24)


def enumerated_signed_rank(values: list[float]) -> float:
    """p by all assignments of signs to the mid-ranks; the slow, obvious way."""
    kept = [value for value in values if value]
    if not kept:
        return 1.0
    ranks = stats.rankdata(np.abs(kept))
    seen = abs(sum(rank if value > 0 else -rank for rank, value in zip(ranks, kept, strict=True)))
    outcomes = [abs(float(np.dot(signs, ranks))) for signs in itertools.product((-1, 1), repeat=len(kept))]
    return float(sum(outcome >= seen - 1e-9 for outcome in outcomes) / len(outcomes))


def test_signed_rank_equals_scipy_on_a_thousand_samples() -> None:
    source = random.Random(20240517)
    for _ in range(1000):
        shift = source.uniform(-0.5, 0.5)
        values = [source.gauss(shift, 1) for _ in range(source.randint(1, 48))]
        assert signed_rank(values).p_value == pytest.approx(stats.wilcoxon(values, method="exact").pvalue, rel=1e-12)


@given(st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=11))
def test_signed_rank_with_ties_and_zeros_equals_enumeration(values: list[float]) -> None:
    assert signed_rank(values).p_value == pytest.approx(enumerated_signed_rank(values), rel=1e-12)


def test_zeros_are_left_out_and_counted() -> None:
    found = signed_rank([0.0, 0.0, 0.0])
    assert (found.p_value, found.pairs, found.zeros) == (1.0, 0, 3)
    some = signed_rank([0.0, 1.0, 2.0, 0.0, -3.0])
    assert (some.pairs, some.zeros) == (3, 2)
    assert signed_rank([]).p_value == 1.0


@given(samples)
def test_signed_rank_is_a_probability_and_symmetric(values: list[float]) -> None:
    p_value = signed_rank(values).p_value
    assert 0 < p_value <= 1
    assert signed_rank([-value for value in values]).p_value == p_value
    assert signed_rank(values[::-1]).p_value == p_value


@given(samples, st.floats(-2, 2))
def test_hodges_lehmann_moves_with_its_data(values: list[float], shift: float) -> None:
    (here,) = hodges_lehmann(values, 0.95)
    (there,) = hodges_lehmann([value + shift for value in values], 0.95)
    assert there.estimate == pytest.approx(here.estimate + shift, abs=1e-9)
    assert there.low == pytest.approx(here.low + shift, abs=1e-9)
    assert there.high == pytest.approx(here.high + shift, abs=1e-9)


@given(samples)
def test_hodges_lehmann_is_symmetric_and_inside_its_interval(values: list[float]) -> None:
    (found,) = hodges_lehmann(values, 0.95)
    (mirrored,) = hodges_lehmann([-value for value in values], 0.95)
    assert found.low <= found.estimate <= found.high
    assert (mirrored.low, mirrored.estimate, mirrored.high) == (-found.high, -found.estimate, -found.low)


@given(samples)
def test_higher_confidence_never_narrows_the_interval(values: list[float]) -> None:
    narrow, wide = hodges_lehmann(values, 0.80, 0.99)
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high
    assert narrow.confidence <= wide.confidence


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=20, unique_by=abs).filter(lambda v: 0 not in v))
def test_the_interval_is_dual_to_the_test(values: list[float]) -> None:
    """Without ties: zero is outside exactly if the test rejects at the same level."""
    for alpha in (0.05, 0.0221, 0.10):
        averages = [(a + b) / 2 for i, a in enumerate(values) for b in values[i:]]
        if len(set(averages)) < len(averages) or 0 in averages:
            continue
        (interval,) = hodges_lehmann(values, 1 - alpha)
        if interval.confidence >= 1 - alpha:
            assert interval.excludes_zero == (signed_rank(values).p_value <= alpha)


def test_hodges_lehmann_by_hand() -> None:
    # Walsh averages of 1, 2, 6: 1, 1.5, 2, 3.5, 4, 6
    (found,) = hodges_lehmann([1.0, 2.0, 6.0], 0.5)
    assert found.estimate == pytest.approx(2.75)
    # P(W+ <= 1) = 2/8, so k = 2 at 50 %: the second smallest and the second largest average
    assert (found.low, found.high, found.confidence) == (1.5, 4.0, 0.5)
    (found,) = hodges_lehmann([0.1, 0.2, 0.3, 0.4, 0.5], 0.95)
    assert (found.low, found.high) == (0.1, 0.5)
    assert found.confidence == pytest.approx(1 - 2 / 32)


@pytest.mark.parametrize("pairs", [6, 8, 16, 24, 48])
@pytest.mark.parametrize("alpha", [0.05, 0.0221])
def test_attainable_level_is_the_largest_p_not_above_alpha(pairs: int, alpha: float) -> None:
    # W+ below half its range reaches every possible small p
    reachable = []
    for size in range(pairs * (pairs + 1) // 4 + 1):
        signs, left = [-1.0] * pairs, size
        for rank in range(pairs, 0, -1):
            if rank <= left:
                signs[rank - 1] = 1.0
                left -= rank
        reachable.append(signed_rank([sign * rank for rank, sign in enumerate(signs, start=1)]).p_value)
    assert attainable_level(pairs, alpha) == pytest.approx(max((p for p in reachable if p <= alpha), default=0.0))


def test_where_nothing_can_be_significant() -> None:
    assert attainable_level(5, 0.05) == 0
    assert attainable_level(6, 0.05) == pytest.approx(2 / 64)
    assert attainable_level(6, 0.0221) == 0
    assert minimum_detectable_effect([0.1] * 5, 0.05) is None
    assert minimum_detectable_effect([0.1, 0.2, 0.15, 0.12, 0.11, 0.13], 0.0221) is None


def test_holm_and_the_median_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.06, 0.06))
    assert holm([0.9, 0.6]) == (1.0, 1.0)
    assert holm([]) == ()
    assert median([3.0, 1.0, 2.0]) == 2
    assert median([4.0, 1.0, 2.0, 3.0]) == 2.5
    with pytest.raises(ValueError, match="no values"):
        median([])


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=6))
def test_holm_never_helps_and_never_exceeds_bonferroni(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    for raw, found in zip(p_values, adjusted, strict=True):
        assert raw <= found <= min(1.0, raw * len(p_values)) + 1e-12


@given(
    st.lists(st.integers(0, 5).map(float), min_size=1, max_size=5),
    st.lists(st.integers(0, 5).map(float), min_size=1, max_size=5),
)
def test_rank_sum_equals_enumeration(first: list[float], second: list[float]) -> None:
    ranks = stats.rankdata(first + second)
    mean = len(first) * (len(ranks) + 1) / 2
    seen = abs(sum(ranks[: len(first)]) - mean)
    sums = [sum(chosen) for chosen in itertools.combinations(ranks, len(first))]
    expected = sum(abs(value - mean) >= seen - 1e-9 for value in sums) / len(sums)
    assert rank_sum(first, second) == pytest.approx(expected)


@pytest.mark.parametrize("nudge", [1 + 2**-52, 1 - 2**-53])
def test_rank_sum_takes_what_differs_in_the_last_bit_for_ties(nudge: float) -> None:
    plain = [math.log(2), -math.log(2), math.log(3)] * 3
    nudged = [one * nudge for one in plain]
    assert rank_sum(plain, nudged) == rank_sum(plain, plain) == 1.0
    assert rank_sum(plain[:4], nudged[2:]) == rank_sum(plain[:4], plain[2:])


def test_needed_pairs_are_the_measured_ones_and_could_be_significant() -> None:
    """20, 10 and 5 % took 6-8, about 12 and 45-48 pairs at the run-to-run noise of a noisy machine."""
    assert 6 <= needed_pairs(0.1155, 0.20, 0.05) <= 8
    assert 11 <= needed_pairs(0.1155, 0.10, 0.05) <= 15
    assert 44 <= needed_pairs(0.1155, 0.05, 0.05) <= 50
    for alpha in (0.05, 0.0221, 0.0221 / 3):
        assert attainable_level(needed_pairs(1e-6, 0.5, alpha), alpha) > 0
    assert needed_pairs(1e-6, 0.5, 0.0221) == 7


@pytest.mark.parametrize("pairs", [8, 24])
def test_the_minimum_detectable_effect_is_found_in_about_eighty_percent(pairs: int) -> None:
    source = random.Random(11)
    alpha = 0.05
    effects = []
    for _ in range(100):
        effect = known(minimum_detectable_effect([source.gauss(0, 0.12) for _ in range(pairs)], alpha))
        effects.append(effect)
    shift = math.log1p(median(effects))
    found = sum(signed_rank([source.gauss(shift, 0.12) for _ in range(pairs)]).p_value <= alpha for _ in range(400))
    assert 0.68 <= found / 400 <= 0.92


def test_the_spread_is_that_of_normal_data_and_shrugs_off_an_outlier() -> None:
    source = random.Random(5)
    values = [source.gauss(0.05, 0.1) for _ in range(80)]
    sigma = robust_spread(values)
    assert sigma == pytest.approx(0.1, rel=0.2)
    assert robust_spread([*values[:-1], 50.0]) == pytest.approx(sigma, rel=0.1)
    assert robust_spread(values[:5]) is None


def test_equivalence_needs_the_whole_interval_inside_the_margin() -> None:
    close = [0.01 * (-1) ** i + 0.001 * i for i in range(16)]
    assert is_equivalent(close, 0.05)
    assert not is_equivalent(close, 0.005)
    assert not is_equivalent([value + 0.2 for value in close], 0.05)
    assert not is_equivalent([value + 0.06 for value in close], 0.05)
    assert is_equivalent([value + 0.06 for value in close], 0.10)
    assert not is_equivalent(close[:5], 0.5)
