"""How often the any-time test errs, what it finds, and whether its interval covers: against the three looks.

    python -m benchmarks.anytime [SESSIONS]      4,000 a law unless said; about ten minutes of CPU time

Sessions of at most 24 pairs in the order of a fair coin, under each law of load with no effect, then with one. An error
is a difference called where there is none. Prints Markdown tables; docs/proof.md holds one run. Uses numpy, which comes
with the tests' scipy; `advisor.proof.anytime` itself uses the standard library, and a test holds the two together.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.proof.anytime import VECTORS, reference_signs, signed_ranks, smallest_rejected, spent_level
from advisor.proof.statistics import FIRST_LOOK, POCOCK, Interval, hodges_lehmann, rank_sum_level, signed_rank

PAIRS = 24
ALPHA = 0.05
LOOKS = (8, 16, 24)
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
    """Pairs at which a session ends, the direction of the difference that it calls (0: none), the level of that
    look."""

    pairs: int
    direction: int
    level: float

    def interval(self, effects: list[float]) -> Interval:
        """At the level of that look."""
        return hodges_lehmann(effects[: self.pairs], 1 - self.level)[0]


def stop_any_time(effects: list[float], signs: NDArray[np.int64], alpha: float = ALPHA) -> Stop:
    """Where a session ends that looks after every pair."""
    observed = np.array(signed_ranks(effects)[1])
    alive = np.vstack([signs[:, :PAIRS], observed])
    total = len(alive)
    is_observed = np.zeros(total, bool)
    is_observed[-1] = True
    level = 0.0
    for pairs in range(FIRST_LOOK, PAIRS + 1):
        ranks, _ = signed_ranks(effects[:pairs])
        signed = alive[:, :pairs] @ np.array(ranks)
        sums = np.abs(signed)
        allowed = int(total * spent_level(pairs, PAIRS, alpha)) - (total - len(alive))
        critical = smallest_rejected(sums.tolist(), allowed)
        level = 0.0 if critical is None else rank_sum_level(ranks, critical)
        if critical is None:
            continue
        out = sums >= critical
        if (out & is_observed).any():
            return Stop(pairs, int(np.sign(signed[is_observed][0])), level)
        alive, is_observed = alive[~out], is_observed[~out]
    return Stop(PAIRS, 0, level)


def stop_at_looks(effects: list[float]) -> Stop:
    """Where it ends by the looks that there were: 8, 16 and 24 pairs, each at Pocock's level."""
    level = POCOCK[len(LOOKS)]
    for pairs in LOOKS:
        seen = effects[:pairs]
        if signed_rank(seen).p_value <= level:
            (interval,) = hodges_lehmann(seen, 1 - level)
            if interval.excludes_zero:
                return Stop(pairs, 1 if interval.low > 0 else -1, level)
    return Stop(PAIRS, 0, level)


class Tally:
    """What became of the sessions of one law and effect, by one rule."""

    def __init__(self) -> None:
        self.sessions = self.found = self.covered = 0
        self.pairs: list[int] = []
        self.excess: list[float] = []

    def add(self, stop: Stop) -> None:
        """Count one session."""
        self.sessions += 1
        self.found += stop.direction != 0
        self.pairs.append(stop.pairs)

    def add_interval(self, interval: Interval, stop: Stop, effect: float) -> None:
        """Count its interval, too."""
        self.covered += interval.low <= effect <= interval.high
        if stop.direction:
            self.excess.append(interval.estimate / effect)

    @property
    def share(self) -> float:
        """Of the sessions, those in which a difference was called."""
        return self.found / self.sessions


def simulate(load: Load, effect: float, sessions: int, seed: int) -> tuple[Tally, Tally]:
    """Any-time and looks, on the same sessions; their intervals where there is an effect."""
    source = np.random.default_rng(seed)
    anytime, looks = Tally(), Tally()
    for number in range(sessions):
        effects = draw_effects(source, load, effect)
        # reference vectors of a seed, as a session has them, take longer than those of numpy
        signs = np.array(reference_signs(number, PAIRS)) if effect else draw_signs(source)
        for tally, stop in ((anytime, stop_any_time(effects, signs)), (looks, stop_at_looks(effects))):
            tally.add(stop)
            if effect:
                tally.add_interval(stop.interval(effects), stop, effect)
    return anytime, looks


def draw_signs(source: Source) -> NDArray[np.int64]:
    """Reference vectors."""
    return source.integers(0, 2, (VECTORS, PAIRS)) * 2 - 1


def main(sessions: int) -> int:
    """Print both tables. 0 where no law errs in more than 5 % beyond chance."""
    print(f"| load, nothing changed | any time: errors of {sessions:,} | three looks |\n|---|---|---|")
    worst = 0.0
    for seed, (name, load) in enumerate(LOADS.items()):
        anytime, looks = simulate(load, 0.0, sessions, seed)
        worst = max(worst, anytime.share)
        print(f"| {name} | {anytime.share:.1%} | {looks.share:.1%} |", flush=True)
    print(
        "\n| effect | any time: found | pairs | interval covers | estimate to truth | looks: found | pairs | interval"
        " covers |\n|---|---|---|---|---|---|---|---|"
    )
    for percent in (5, 10, 20, -10):
        effect = math.log1p(percent / 100)
        anytime, looks = simulate(_noise, effect, max(400, sessions // 4), 1000 + percent)
        print(
            f"| {percent:+} % | {anytime.share:.1%} | {np.mean(anytime.pairs):.1f} |"
            f" {anytime.covered / anytime.sessions:.1%} | {np.mean(anytime.excess):.2f} |"
            f" {looks.share:.1%} | {np.mean(looks.pairs):.1f} | {looks.covered / looks.sessions:.1%} |",
            flush=True,
        )
    # three standard errors of a true 5 %
    return 0 if worst <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / sessions) else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000))
