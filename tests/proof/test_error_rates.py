"""How often the whole decision rule errs, in simulated sessions: coin, looks, test, interval, verdict."""

from __future__ import annotations

import random

import msgspec
import pytest
from scipy import stats

from advisor.proof.records import Proof
from advisor.proof.verdict import decide, is_settled

from .sessions import DRIFTS, RUN_NOISE, Drift, session, simulated_runs

SESSIONS = 400


def conclude(source: random.Random, drift: Drift, factor: float = 1.0) -> Proof:
    """A default session as it is conducted: looks at 8, 16 and 24 pairs, ended early once settled."""
    whole = session(simulated_runs(source, drift, 24, factor))
    for look in whole.schedule.looks[:-1]:
        early = msgspec.structs.replace(whole, pairs=whole.pairs[:look])
        if is_settled(early):
            return decide(early)
    return decide(whole)


def naive_p(source: random.Random, drift: Drift) -> float:
    """24 runs before, then 24 runs after, compared as most people do."""
    speeds = [factor * source.gauss(1, RUN_NOISE) for factor in drift(source, 48)]
    return float(stats.mannwhitneyu(speeds[:24], speeds[24:]).pvalue)


@pytest.mark.parametrize("name", DRIFTS)
def test_an_effect_is_rarely_invented(name: str) -> None:
    """Nothing changed: gains and losses together stay near 5 % whatever the load does meanwhile."""
    source = random.Random(f"null {name}")
    verdicts = [conclude(source, DRIFTS[name]).tendency for _ in range(SESSIONS)]
    wrong = sum(verdict in ("gain", "loss", "gain-with-cost") for verdict in verdicts)
    # 1 to 7 %; a true 5 % shows 8 % or more in one of three hundred simulations of this size
    assert 0.01 <= wrong / SESSIONS <= 0.08


def test_the_naive_comparison_invents_effects_when_the_load_steps() -> None:
    source = random.Random("naive")
    wrong = sum(naive_p(source, DRIFTS["step"]) < 0.05 for _ in range(200))
    assert wrong / 200 > 0.9


@pytest.mark.parametrize("name", ["calm", "linear", "step"])
def test_a_twenty_percent_gain_is_found_early(name: str) -> None:
    source = random.Random(f"gain {name}")
    proofs = [conclude(source, DRIFTS[name], 1.2) for _ in range(60)]
    assert sum(proof.tendency in ("gain", "gain-with-cost") for proof in proofs) / 60 >= 0.93
    assert sum(proof.workloads[0].pairs for proof in proofs) / 60 <= 13
    assert not any(proof.tendency == "loss" for proof in proofs)


def test_a_ten_percent_loss_is_found_mostly() -> None:
    source = random.Random("loss")
    proofs = [conclude(source, DRIFTS["calm"], 1 / 1.1) for _ in range(60)]
    assert sum(proof.tendency == "loss" for proof in proofs) / 60 >= 0.8


def test_equal_arms_end_in_no_difference_mostly() -> None:
    source = random.Random("equal")
    proofs = [conclude(source, DRIFTS["calm"]) for _ in range(60)]
    assert sum(proof.verdict == "no-difference" for proof in proofs) / 60 >= 0.7


def test_a_difference_of_the_margin_is_rarely_called_none() -> None:
    """TOST keeps its own 5 %: an effect as large as the margin must not pass for nothing."""
    source = random.Random("margin")
    proofs = [conclude(source, DRIFTS["calm"], 1.1) for _ in range(150)]
    assert sum(proof.verdict == "no-difference" for proof in proofs) / 150 <= 0.08


def test_the_interval_of_a_gain_covers_the_true_factor() -> None:
    source = random.Random("cover")
    covered = 0
    for _ in range(150):
        found = decide(session(simulated_runs(source, DRIFTS["linear"], 24, 1.1))).workloads[0]
        assert found.ci95 is not None
        covered += found.ci95[0] <= 1.1 <= found.ci95[1]
    assert covered / 150 >= 0.90
