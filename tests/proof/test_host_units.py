"""Hosts as units: the test against scipy's, the interval against the test, what missing hosts leave, and the level."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from typing import Any

import numpy
import pytest
from scipy import stats

from advisor.proof.host_units import (
    DRAWN,
    LEVEL,
    Design,
    bound_missing,
    detectable_effect,
    fewest_hosts,
    judge_units,
    make_design,
)
from benchmarks.host_units import LAWS, count_claims, design_of


def figures_of(design: Design, treated: tuple[str, ...], effect: float, seed: int) -> dict[str, float]:
    source = random.Random(seed)
    return {name: source.gauss(0, 1) + effect * (name in treated) for name in design.hosts}


def permutation_p(sides: list[list[float]], **more: Any) -> float:
    """scipy's, of the difference of the means, over every permutation."""

    def difference(first: Any, second: Any, axis: int = -1) -> Any:
        return numpy.mean(first, axis=axis) - numpy.mean(second, axis=axis)

    test: Any = stats.permutation_test
    return float(test(sides, difference, vectorized=True, n_resamples=numpy.inf, **more).pvalue)


@pytest.mark.parametrize("count", [8, 9, 10])
@pytest.mark.parametrize("effect", [0.0, 1.5, -2.0])
def test_one_block_is_the_permutation_test_of_scipy(count: int, effect: float) -> None:
    design = design_of(count)
    treated = design.toss(count)
    figures = figures_of(design, treated, effect, count)
    found = judge_units(design, treated, figures, 1)
    sides = [[figures[name] for name in design.hosts if (name in treated) is side] for side in (True, False)]
    assert found.is_exact
    assert found.assignments == math.comb(count, count // 2)
    for alternative, mine in (("two-sided", found.p_value), ("greater", found.p_gain), ("less", found.p_loss)):
        assert mine == pytest.approx(permutation_p(sides, alternative=alternative))


def test_blocks_of_two_are_the_paired_permutation_test_of_scipy() -> None:
    design = Design(tuple((f"a{at}", f"b{at}") for at in range(8)))
    treated = design.toss(3)
    figures = figures_of(design, treated, 0.8, 5)
    pairs = [sorted(block, key=lambda name: name not in treated) for block in design.blocks]
    samples = [[figures[pair[side]] for pair in pairs] for side in (0, 1)]
    wanted = permutation_p(samples, permutation_type="samples")
    assert judge_units(design, treated, figures, 1).p_value == pytest.approx(wanted)


@pytest.mark.parametrize("blocks", [1, 2])
def test_the_interval_holds_the_shifts_that_the_test_does_not_reject(blocks: int) -> None:
    design = design_of(10, blocks)
    treated = design.toss(4)
    figures = figures_of(design, treated, 1.0, 9)
    found = judge_units(design, treated, figures, 1)

    def p_at(shift: float) -> float:
        moved = {name: value - shift * (name in treated) for name, value in figures.items()}
        return judge_units(design, treated, moved, 1).p_value

    for interval, alpha in ((found.interval, LEVEL), (found.equivalence, 2 * LEVEL)):
        assert p_at(interval.low - 1e-6) <= alpha < p_at(interval.low + 1e-6)
        assert p_at(interval.high + 1e-6) <= alpha < p_at(interval.high - 1e-6)
        assert interval.low <= interval.estimate <= interval.high


def test_drawn_assignments_agree_with_all_of_them_and_count_the_observed_one() -> None:
    design = design_of(18)
    treated = design.toss(2)
    figures = figures_of(design, treated, 100.0, 2)
    found = judge_units(design, treated, figures, 1)
    assert not found.is_exact
    assert found.assignments == DRAWN + 1
    # Nothing is as large as it: the smallest p that there is, and not 0.
    assert found.p_value == pytest.approx(2 / (DRAWN + 1), abs=2 / (DRAWN + 1))
    assert found.p_value > 0
    half = figures_of(design, treated, 0.6, 2)
    sides = [[half[name] for name in design.hosts if (name in treated) is side] for side in (True, False)]
    wanted = permutation_p(sides, batch=5000)
    assert judge_units(design, treated, half, 1).p_value == pytest.approx(wanted, abs=0.02)


def test_so_few_hosts_can_claim_nothing_and_eight_can() -> None:
    assert fewest_hosts() == 8
    assert Design((("a", "b", "c", "d"),)).smallest_p == pytest.approx(2 / 6)
    assert not design_of(7).can_claim
    assert detectable_effect(design_of(7), 1.0) is None
    design = design_of(7)
    treated = design.toss(1)
    found = judge_units(design, treated, figures_of(design, treated, 1000.0, 1), 1)
    assert found.p_value > LEVEL
    assert math.isinf(found.interval.low)


def test_blocks_that_leave_too_few_assignments_become_one() -> None:
    # Four pairs have 16 assignments, one block of the same hosts has 70.
    assert make_design({f"h{at}": str(at // 2) for at in range(8)}).blocks == (tuple(f"h{at}" for at in range(8)),)
    assert [len(block) for block in make_design({f"h{at}": str(at // 6) for at in range(12)}).blocks] == [6, 6]
    # Who is alone in its kind is not left out.
    alone = make_design({**{f"h{at}": "usual" for at in range(8)}, "x": "odd", "y": "odder"})
    assert sorted(len(block) for block in alone.blocks) == [2, 8]
    assert len(make_design({**{f"h{at}": "usual" for at in range(8)}, "x": "odd"}).hosts) == 9


def test_a_toss_is_that_of_its_seed_and_each_host_is_as_likely() -> None:
    design = design_of(8)
    assert design.toss(5) == design.toss(5)
    counted = dict.fromkeys(design.hosts, 0)
    for seed in range(2000):
        for name in design.toss(seed):
            counted[name] += 1
    assert all(880 <= count <= 1120 for count in counted.values())


def worst_p(design: Design, treated: tuple[str, ...], figures: Mapping[str, float | None]) -> float:
    """The largest p of the ranks over every place that the missing hosts could have."""
    missing = [name for name, figure in figures.items() if figure is None]
    found = 0.0
    for places in itertools.product((-100.0, -0.5, 0.1, 0.7, 100.0), repeat=len(missing)):
        order = dict(zip(missing, (place + 0.001 * at for at, place in enumerate(places)), strict=True))
        whole = {name: order[name] if figure is None else figure for name, figure in figures.items()}
        ranks = dict(zip(whole, map(float, stats.rankdata(list(whole.values()))), strict=True))
        found = max(found, judge_units(design, treated, ranks, 1).p_gain)
    return found


def test_the_bound_holds_whatever_the_missing_hosts_would_have_shown() -> None:
    design = design_of(10)
    treated = design.toss(1)
    whole = figures_of(design, treated, 3.0, 4)
    other = next(name for name in design.hosts if name not in treated)
    figures: dict[str, float | None] = {**whole, treated[0]: None, other: None}
    bound = bound_missing(design, treated, figures, 1)
    assert bound.p_gain == pytest.approx(worst_p(design, treated, figures))
    # Nothing missing: the bounds are those of the ranks.
    ranks = dict(zip(whole, map(float, stats.rankdata(list(whole.values()))), strict=True))
    assert bound_missing(design, treated, whole, 1).p_gain == judge_units(design, treated, ranks, 1).p_gain
    assert bound.p_gain > bound_missing(design, treated, whole, 1).p_gain
    assert bound.p_cost <= bound.p_loss


@pytest.mark.parametrize("is_odd", [False, True], ids=["alike", "unlike"])
@pytest.mark.parametrize("law", LAWS)
def test_false_claims_stay_at_their_level_and_intervals_cover(law: str, is_odd: bool) -> None:
    trials = 150
    claimed, covered = count_claims(design_of(8), law, trials, is_odd=is_odd)
    # At a level of 2 in 70, twelve or more of 150 come up once in 1,000 times.
    assert stats.binom.sf(11, trials, 2 / 70) < 0.002
    assert claimed < 12
    assert covered > trials - 12


def test_the_effect_that_is_said_to_be_found_is_found() -> None:
    design, source, found = design_of(10), random.Random(6), 0
    shift = detectable_effect(design, 1.0)
    assert shift is not None
    for seed in range(200):
        treated = design.toss(seed)
        figures = {name: source.gauss(0, 1) + shift * (name in treated) for name in design.hosts}
        found += judge_units(design, treated, figures, seed).p_value <= LEVEL
    assert 140 <= found <= 178
