"""Error rates of proofs under live traffic in a quick form, and that a simulated session is what a conducted one is."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advisor.proof.live import BASELINE_SECONDS
from advisor.proof.records import Proof
from advisor.proof.session_runner import Settings
from benchmarks.live import LOADS, TAU, Seconds, Simulation, simulate
from tests.known import known

from .live_world import World

SESSIONS = 60


class Coin:
    """The coin of a session, as the simulation asks for it."""

    def __init__(self, seed: int) -> None:
        self._source = random.Random(seed)

    def random(self) -> float:
        return 0.0 if self._source.getrandbits(1) else 1.0


def waits_of(proof: Proof, arm: str) -> list[float]:
    (name, *_others) = [claim.metric for claim in proof.workloads]
    return [run.figures.value(name) for pair in proof.session.pairs for run in pair.runs if run.arm == arm]


@pytest.mark.repeats(2)
@pytest.mark.parametrize(
    ("load", "effect", "seed"),
    [
        ("autoregressive (300 s)", 0.2, 3),
        ("periodic (80 s, as a pair)", 0.2, 4),
        ("autoregressive (300 s)", -0.3, 5),
        ("periodic (25 s)", -0.3, 5),
    ],
)
def test_a_simulated_session_is_what_is_conducted(tmp_path: Path, load: str, effect: float, seed: int) -> None:
    made = LOADS[load](np.random.default_rng(seed), 4000)
    coin: Any = Coin(seed)
    state = 0.0

    def law(at: float, is_changed: bool) -> float:
        nonlocal state
        state = is_changed + (state - is_changed) * math.exp(-1 / TAU)
        # the first second is the one in which the metrics are tried out
        return float(made[round(at) - 1]) - math.log1p(effect) * state

    def same_load(_source: object, count: int) -> Seconds:
        return made[:count]

    simulated = Simulation(coin, same_load, effect, seed=seed).run()
    world = World(tmp_path, law, requests=100_000)
    conducted = world.prove(settings=Settings(seed=seed), baseline_seconds=None)
    assert (conducted.verdict, conducted.session.ended) == (simulated.proof.verdict, simulated.proof.session.ended)
    assert world.seconds == simulated.seconds + BASELINE_SECONDS + 1
    assert known(conducted.session.live).period_seconds == known(simulated.proof.session.live).period_seconds
    assert known(conducted.session.live).tau_seconds == known(simulated.proof.session.live).tau_seconds
    if conducted.session.ended != "harm":
        assert conducted.order == simulated.proof.order
        for arm in ("A", "B"):
            # waits of the tree are ten times as long, in whole milliseconds
            expected = [10 * wait for wait in waits_of(simulated.proof, arm)]
            assert waits_of(conducted, arm) == pytest.approx(expected, rel=1e-3)


IN_STEP = "periodic (80 s, as a pair)"


@pytest.mark.repeats(2)
@pytest.mark.parametrize(
    ("load", "effect", "least", "most"),
    [
        ("autoregressive (300 s)", 0.0, {"covered": 0.85}, {"gains": 0.15, "withdrawn": 0.20}),
        ("autoregressive (300 s)", 0.1, {"gains": 0.85}, {}),
        (IN_STEP, 0.0, {}, {"gains": 0.15}),
        ("periodic (25 s)", 1 / 1.3 - 1, {"within_three_minutes": 0.75}, {}),
        ("constant", 1 / 1.3 - 1, {"within_three_minutes": 0.80}, {}),
        (IN_STEP, 0.1, {"gains": 0.85}, {}),
    ],
)
def test_rates_in_a_quick_form(load: str, effect: float, least: dict[str, float], most: dict[str, float]) -> None:
    """Bounds that a true rate of the table's size exceeds less than once in ten thousand runs; the seeds are fixed."""
    found = simulate(load, effect, SESSIONS)
    assert all(getattr(found, name) >= share for name, share in least.items())
    assert all(getattr(found, name) <= share for name, share in most.items())
