"""How often a session with three looks errs, what it finds, and whether its interval covers.

    python -m benchmarks.looks [SESSIONS]      4,000 a law unless said; two minutes of CPU time

Sessions of at most 24 pairs in the order of a fair coin, under each law of load with no effect, then with one. An error
is a difference called where there is none. Prints Markdown tables; docs/proof.md holds one run. Uses numpy, which comes
with the tests' scipy.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.proof.schedule import MODES, level_for
from advisor.proof.statistics import Interval, hodges_lehmann, signed_rank

PAIRS = MODES["default"].pairs
LOOKS = MODES["default"].looks
ALPHA = 0.05
NOISE = 0.11 / math.sqrt(2)
"""Of one run, so that a pair has 11 %."""

Source = np.random.Generator
Load = Callable[[Source], NDArray[np.float64]]
"""ln speed of each of the 48 runs of a session, in the order of time, without the change."""


def _noise(source: Source) -> NDArray[np.float64]:
    return source.normal(0, NOISE, 2 * PAIRS)


def _autoregressive(source: Source) -> NDArray[np.float64]:
    shocks, found = source.normal(0, NOISE, 2 * PAIRS), np.zeros(2 * PAIRS)
    for at in range(1, 2 * PAIRS):
        found[at] = 0.9 * found[at - 1] + shocks[at]
    return found


def _step(source: Source) -> NDArray[np.float64]:
    where = source.integers(12, 36)
    return _noise(source) + np.where(np.arange(2 * PAIRS) < where, 0, math.log(source.choice([0.6, 1.5])))


def _linear(source: Source) -> NDArray[np.float64]:
    return _noise(source) + source.uniform(-0.5, 0.5) * np.arange(2 * PAIRS) / PAIRS


def _periodic(source: Source) -> NDArray[np.float64]:
    return _noise(source) + np.where(np.arange(2 * PAIRS) % 4 == source.integers(4), math.log(0.7), 0)


def _ties(source: Source) -> NDArray[np.float64]:
    return np.round(_noise(source) / 0.05) * 0.05


def _zeros(source: Source) -> NDArray[np.float64]:
    # most runs alike to the last digit, as with a metric that is capped
    return np.where(source.random(2 * PAIRS) < 0.6, 0.0, _noise(source))


def _heavy(source: Source) -> NDArray[np.float64]:
    return NOISE * source.standard_t(2, 2 * PAIRS)


def _growing(source: Source) -> NDArray[np.float64]:
    return _noise(source) * np.linspace(0.2, 3.0, 2 * PAIRS)


LOADS: dict[str, Load] = {
    "constant": _noise,
    "autoregressive (0.9)": _autoregressive,
    "one step": _step,
    "linear": _linear,
    "periodic (4 runs)": _periodic,
    "ties": _ties,
    "zeros": _zeros,
    "heavy tails (t, 2)": _heavy,
    "growing noise": _growing,
}


def draw_effects(source: Source, load: Load, effect: float) -> list[float]:
    """The ln ratios of a session's pairs: a fair coin says which run of a pair has the change."""
    runs = load(source).reshape(PAIRS, 2)
    coin = np.where(source.random(PAIRS) < 0.5, 1.0, -1.0)
    return [float(value) for value in coin * (runs[:, 1] - runs[:, 0]) + effect]


class Stop(NamedTuple):
    """Pairs at which a session ends, the direction of the difference that it calls (0: none), and its interval."""

    pairs: int
    direction: int
    interval: Interval


def stop_at_look(effects: list[float]) -> Stop:
    """Where a session ends: at the first look that calls a difference, else at the last."""
    level = level_for(LOOKS)
    for pairs in LOOKS:
        seen = effects[:pairs]
        (interval,) = hodges_lehmann(seen, 1 - level)
        if signed_rank(seen).p_value <= level and interval.excludes_zero:
            return Stop(pairs, 1 if interval.low > 0 else -1, interval)
    return Stop(PAIRS, 0, interval)


class Tally:
    """What became of the sessions of one law and effect."""

    def __init__(self) -> None:
        self.sessions = self.found = self.covered = 0
        self.pairs: list[int] = []
        self.excess: list[float] = []

    def add(self, stop: Stop, effect: float) -> None:
        """Count one session."""
        self.sessions += 1
        self.found += stop.direction != 0
        self.pairs.append(stop.pairs)
        self.covered += stop.interval.low <= effect <= stop.interval.high
        if stop.direction and effect:
            self.excess.append(stop.interval.estimate / effect)

    @property
    def share(self) -> float:
        """Of the sessions, those in which a difference was called."""
        return self.found / self.sessions


def simulate(load: Load, effect: float, sessions: int, seed: int) -> Tally:
    """So many sessions under one law of load."""
    source, tally = np.random.default_rng(seed), Tally()
    for _ in range(sessions):
        tally.add(stop_at_look(draw_effects(source, load, effect)), effect)
    return tally


def main(sessions: int) -> int:
    """Print both tables. 0 where no law errs in more than 5 % beyond chance."""
    print(f"| load, nothing changed | errors of {sessions:,} | interval covers |\n|---|---|---|")
    worst = 0.0
    for seed, (name, load) in enumerate(LOADS.items()):
        tally = simulate(load, 0.0, sessions, seed)
        worst = max(worst, tally.share)
        print(f"| {name} | {tally.share:.1%} | {tally.covered / sessions:.1%} |", flush=True)
    print("\n| effect | found | pairs | interval covers | estimate to truth |\n|---|---|---|---|---|")
    for percent in (5, 10, 20, -10):
        tally = simulate(_noise, math.log1p(percent / 100), sessions, 1000 + percent)
        print(
            f"| {percent:+} % | {tally.share:.1%} | {np.mean(tally.pairs):.1f} | {tally.covered / sessions:.1%} |"
            f" {np.mean(tally.excess):.2f} |",
            flush=True,
        )
    # three standard errors of a true 5 %
    return 0 if worst <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / sessions) else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000))
