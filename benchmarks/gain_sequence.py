"""How often repetitions of a proof lose a gain that is there, and how soon they find one that is not.

    python -m benchmarks.gain_sequence [HISTORIES]     2,000 a law unless said; some minutes of CPU time

A history is a proof of 24 pairs, whose interval gives the gain to hold, then three pairs in each of 52 weeks. The gain
stays, or vanishes before the repetition of week 10. Prints Markdown tables; docs/proof.md holds one run.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable

from advisor.proof.gain_sequence import LEVEL, weigh_repetitions
from advisor.proof.statistics import POCOCK, hodges_lehmann

WEEKS = 52
PAIRS = 3
VANISHES = 10
GAIN = math.log(1.12)

Weeks = list[list[float]]
"""The differences of the pairs of each week, as if there were no gain."""


def _coin_pairs(source: random.Random, ln_speeds: list[float]) -> list[float]:
    """Differences of runs two by two, the order within each by a coin: B over A without an effect."""
    return [source.choice((1, -1)) * (ln_speeds[at + 1] - ln_speeds[at]) for at in range(0, len(ln_speeds), 2)]


def _calm(source: random.Random, sd: float) -> Weeks:
    return [_coin_pairs(source, [source.gauss(0, sd) for _ in range(2 * PAIRS)]) for _ in range(WEEKS)]


def _autoregressive(source: random.Random, sd: float) -> Weeks:
    def week() -> list[float]:
        speeds = [source.gauss(0, sd)]
        while len(speeds) < 2 * PAIRS:
            speeds.append(0.9 * speeds[-1] + source.gauss(0, sd))
        return speeds

    return [_coin_pairs(source, week()) for _ in range(WEEKS)]


def _stepping(source: random.Random, sd: float) -> Weeks:
    """Every fourth week the load steps by a third in the middle of a pair."""
    return [
        _coin_pairs(
            source, [source.gauss(0, sd) + (0.3 if week % 4 == 0 and at >= 3 else 0.0) for at in range(2 * PAIRS)]
        )
        for week in range(WEEKS)
    ]


def _noisier(source: random.Random, sd: float) -> Weeks:
    """Noise that grows to three times itself over the year."""
    return [
        _coin_pairs(source, [source.gauss(0, sd * (1 + 2 * week / WEEKS)) for _ in range(2 * PAIRS)])
        for week in range(WEEKS)
    ]


def _heavy(source: random.Random, sd: float) -> Weeks:
    """One run in ten is disturbed, five times as far."""
    return [
        _coin_pairs(source, [source.gauss(0, sd * (5 if source.random() < 0.1 else 1)) for _ in range(2 * PAIRS)])
        for _ in range(WEEKS)
    ]


LAWS: dict[str, Callable[[random.Random, float], Weeks]] = {
    "calm": _calm,
    "autoregressive": _autoregressive,
    "a step in every fourth week": _stepping,
    "noise that grows": _noisier,
    "outliers": _heavy,
}


def proven_least(source: random.Random, sd: float) -> float:
    """The lower end of the interval of a proof that shows a gain of 12 %; drawn until one does."""
    while True:
        effects = [GAIN + source.gauss(0, sd * math.sqrt(2)) for _ in range(24)]
        low = hodges_lehmann(effects, 1 - POCOCK[3])[0].low
        if low > 0:
            return low


def week_found(weeks: Weeks, gains: list[float], least: float) -> int | None:
    """The week, counted from 1, after which the gain is said to have gone; None for never."""
    effects = [[gain + one for one in week] for gain, week in zip(gains, weeks, strict=True)]
    if weigh_repetitions(effects, least).stake < 1 / LEVEL:
        return None
    return next(n for n in range(1, WEEKS + 1) if weigh_repetitions(effects[:n], least).stake >= 1 / LEVEL)


def main(histories: int) -> None:
    print("| load | false, gain of 12 % | false, gain at the lower end |\n|---|---|---|")
    for name, law in LAWS.items():
        wrong = [0, 0]
        source = random.Random(name)
        for _ in range(histories):
            least = proven_least(source, 0.11 / math.sqrt(2))
            for at, gain in enumerate((GAIN, least)):
                weeks = law(source, 0.11 / math.sqrt(2))
                wrong[at] += week_found(weeks, [gain] * WEEKS, least) is not None
        print(f"| {name} | {wrong[0] / histories:.1%} | {wrong[1] / histories:.1%} |")
    print("\n| noise of a pair | found within 10 weeks | 20 weeks | 42 weeks | median |\n|---|---|---|---|---|")
    for sd in (0.02, 0.05, 0.08, 0.11):
        source = random.Random(f"vanishes {sd}")
        found: list[float] = []
        for _ in range(histories // 4):
            least = proven_least(source, sd / math.sqrt(2))
            gains = [GAIN] * VANISHES + [0.0] * (WEEKS - VANISHES)
            at_week = week_found(_calm(source, sd / math.sqrt(2)), gains, least)
            found.append(math.inf if at_week is None else at_week - VANISHES)
        shares = [f"{sum(week <= limit for week in found) / len(found):.0%}" for limit in (10, 20, 42)]
        print(f"| {sd:.0%} | {' | '.join(shares)} | {sorted(found)[len(found) // 2]:g} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
