"""The any-time test: its level and power in a quick form, and the same answer as the simulation that settled it."""

from __future__ import annotations

import math
import random

import msgspec
import numpy as np
import pytest
from scipy import stats

from advisor.proof.anytime import level_after, reference_signs, signed_ranks, smallest_rejected, spent_level
from advisor.proof.records import Session
from advisor.proof.schedule import MODES, make_schedule
from advisor.proof.statistics import FIRST_LOOK, doubled_midranks, rank_sum_level, signed_rank
from advisor.proof.verdict import decide_session, is_settled
from advisor.proof.workloads import get_workload
from benchmarks.anytime import LOADS, PAIRS, draw_effects, simulate, stop_any_time
from tests.known import known

from .sessions import DRIFTS, GIB, WORKLOAD, Drift, session, simulated_runs


def test_what_is_spent_grows_to_the_whole_level() -> None:
    shares = [spent_level(pairs, 24, 0.05) for pairs in range(25)]
    assert shares[0] == 0
    assert shares[24] == 0.05
    assert shares[12] == pytest.approx(0.05 / math.sqrt(8))
    assert shares == sorted(shares)
    assert spent_level(30, 24, 0.05) == 0.05


@pytest.mark.parametrize("seed", range(20))
def test_the_level_of_a_size_is_that_of_the_exact_test(seed: int) -> None:
    source = random.Random(seed)
    values = [source.gauss(0.3, 1) for _ in range(source.randrange(6, 20))]
    ranks, signs = signed_ranks(values)
    size = abs(sum(rank * sign for rank, sign in zip(ranks, signs, strict=True)))
    level = rank_sum_level(ranks, size)
    assert level == pytest.approx(stats.wilcoxon(values, method="exact").pvalue)
    assert level == pytest.approx(signed_rank(values).p_value)


def test_zeros_have_no_rank_and_ties_share_theirs() -> None:
    ranks, signs = signed_ranks([0.0, 0.2, -0.2, 0.1, 0.0])
    assert ranks == [0, *doubled_midranks([0.2, 0.2, 0.1]), 0]
    assert signs[2] == -1
    assert rank_sum_level([0, 0], 0) == 1


@pytest.mark.parametrize(
    ("sums", "allowed", "expected"),
    [
        ([5, 4, 3], 0, None),
        ([5, 4, 3], 1, 5),
        ([5, 4, 3], 2, 4),
        ([5, 5, 3], 1, None),
        ([5, 4, 4, 3], 2, 5),
        ([5, 4], 2, 4),
    ],
)
def test_no_more_are_rejected_than_the_level_allows(sums: list[int], allowed: int, expected: int | None) -> None:
    assert smallest_rejected(sums, allowed) == expected


@pytest.mark.repeats(4)
@pytest.mark.parametrize("name", LOADS)
def test_it_is_the_rule_that_was_simulated(name: str) -> None:
    """The product in the standard library and the simulation in numpy end the same sessions at the same pair."""
    source = np.random.default_rng(7)
    for seed in range(6):
        effects = draw_effects(source, LOADS[name], 0.06 * (seed % 3))
        pairs, direction, level = stop_any_time(effects, np.array(reference_signs(seed, PAIRS)))
        found = next(
            (
                count
                for count in range(FIRST_LOOK, PAIRS + 1)
                if signed_rank(effects[:count]).p_value <= level_after(tuple(effects[:count]), PAIRS, seed, 0.05)
            ),
            None,
        )
        assert found == (pairs if direction else None)
        if direction:
            assert level_after(tuple(effects[:pairs]), PAIRS, seed, 0.05) == level


@pytest.mark.parametrize(
    "name",
    # The rest is in the quick form of benchmarks.proof_validation, which has a test of its own.
    [name if name == "step" else pytest.param(name, marks=pytest.mark.thorough) for name in LOADS],
)
def test_an_effect_is_rarely_invented(name: str) -> None:
    anytime, _ = simulate(LOADS[name], 0.0, 400, 3)
    # a true 5 % shows 8.5 % or more in one of a thousand simulations of this size
    assert anytime.share < 0.085


def test_it_finds_no_less_than_the_looks_and_sooner() -> None:
    anytime, looks = simulate(LOADS["constant"], math.log1p(0.10), 80, 5)
    assert anytime.share > 0.9
    assert anytime.share > looks.share - 0.03
    assert np.mean(anytime.pairs) < np.mean(looks.pairs)
    assert anytime.covered / anytime.sessions > 0.92


# -- in a session ------------------------------------------------------------------------------------------------------


def any_time_session(source: random.Random, drift: Drift, factor: float) -> Session:
    schedule = make_schedule(
        MODES["default"], [get_workload(WORKLOAD)], device_bytes=1000 * GIB, place_seconds=0.0, test="any-time"
    )
    whole = session(simulated_runs(source, drift, 24, factor))
    return msgspec.structs.replace(whole, schedule=schedule, seed=source.getrandbits(32))


def conduct(source: random.Random, drift: Drift, factor: float = 1.0) -> Session:
    whole = any_time_session(source, drift, factor)
    for look in whole.schedule.looks[:-1]:
        early = msgspec.structs.replace(whole, pairs=whole.pairs[:look], ended="settled")
        if is_settled(early):
            return early
    return whole


def test_the_looks_are_after_every_pair() -> None:
    schedule = any_time_session(random.Random(1), DRIFTS["calm"], 1.0).schedule
    assert schedule.looks == tuple(range(8, 25))
    assert schedule.alpha == 0.05
    quick = make_schedule(
        MODES["quick"], [get_workload(WORKLOAD)], device_bytes=1000 * GIB, place_seconds=0.0, test="any-time"
    )
    assert (quick.test, quick.looks) == ("looks", (8,))


def test_a_gain_ends_a_session_early_and_says_what_that_costs() -> None:
    source = random.Random(3)
    ended = [conduct(source, DRIFTS["calm"], 1.3) for _ in range(5)]
    proofs = [decide_session(one) for one in ended]
    assert [proof.tendency for proof in proofs].count("gain") >= 4
    early = [proof for proof in proofs if len(proof.session.pairs) < 24]
    assert early
    for proof in early:
        claim = proof.workloads[0]
        assert known(claim.p_value) <= proof.alpha < 0.05
        assert known(claim.ci95)[0] > 1
        assert any("the estimate that ends a session is too large" in note for note in proof.notes)
        # the same record gives the same answer
        assert decide_session(proof.session) == proof
