"""How often a trial with hosts as units claims what is not there, and how often it finds what is.

    python -m benchmarks.host_units [TRIALS]     2,000 a law unless said; some minutes of CPU time

A trial is a period of readings on each host, the toss, and a second period. Hosts differ fourfold in their level and in
their own noise, and share the load of the hours. Prints Markdown tables; docs/how-to/prove-on-a-fleet.md holds one run.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable
from statistics import median

from advisor.proof.host_units import LEVEL, Design, detectable_effect, judge_units, make_design

READINGS = 5
NOISE = 0.05
"""Standard deviation of one reading, in logarithms, on a host of average noise."""

Load = list[float]
"""What all hosts share, in logarithms, of the readings of both periods."""


def _constant(_source: random.Random) -> Load:
    return [0.0] * (2 * READINGS)


def _autoregressive(source: random.Random) -> Load:
    levels = [source.gauss(0, 0.2)]
    while len(levels) < 2 * READINGS:
        levels.append(0.9 * levels[-1] + source.gauss(0, 0.1))
    return levels


def _stepping(source: random.Random) -> Load:
    """The load steps by a third, as often as not just when the hosts are treated."""
    at = source.choice((READINGS, source.randrange(2 * READINGS)))
    return [0.0] * at + [0.33] * (2 * READINGS - at)


LAWS: dict[str, Callable[[random.Random], Load]] = {
    "constant": _constant,
    "autoregressive": _autoregressive,
    "step": _stepping,
}


def host_figures(
    source: random.Random, design: Design, load: Load, *, is_odd: bool, noise: float = NOISE
) -> dict[str, float]:
    """The change of each host without a treatment.

    ``is_odd``: hosts follow the load by 0.2 to 2 times, differ tenfold in
    their noise, and one in ten readings is an outlier of a factor of two.
    """
    found = {}
    for name in design.hosts:
        follows = source.uniform(0.2, 2.0) if is_odd else 1.0
        own = noise * (10 ** source.uniform(-0.5, 0.5) if is_odd else 1.0)
        drift = source.gauss(0, noise)
        readings = [
            follows * shared
            + source.gauss(0, own)
            + (drift if at >= READINGS else 0.0)
            + (math.log(2) if is_odd and source.random() < 0.1 else 0.0)
            for at, shared in enumerate(load)
        ]
        found[name] = median(readings[READINGS:]) - median(readings[:READINGS])
    return found


def count_claims(
    design: Design, law: str, trials: int, effect: float = 0.0, *, is_odd: bool = False
) -> tuple[int, int]:
    """How many trials claim a gain or a loss, and how many intervals hold the effect (a ratio minus one)."""
    source = random.Random(f"{law} {len(design.hosts)} {len(design.blocks)} {effect} {is_odd}")
    shift = math.log1p(effect)
    claimed = covered = 0
    for seed in range(trials):
        figures = host_figures(source, design, LAWS[law](source), is_odd=is_odd)
        treated = design.toss(source.getrandbits(48))
        found = {name: value + shift * (name in treated) for name, value in figures.items()}
        test = judge_units(design, treated, found, seed)
        claimed += test.p_value <= LEVEL
        covered += test.interval.low <= shift <= test.interval.high
    return claimed, covered


def design_of(count: int, kinds: int = 1) -> Design:
    """So many hosts of as many kinds, as evenly as it goes."""
    return make_design({f"h{number:02}": str(number % kinds) for number in range(count)})


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print("| hosts | blocks | load | hosts alike: false claims | covered | hosts unlike: false claims | covered |")
    print("|---|---|---|---|---|---|---|")
    for count, kinds in ((8, 1), (10, 1), (12, 2)):
        design = design_of(count, kinds)
        for law in LAWS:
            cells = [
                f"{100 * value / trials:.1f} %"
                for is_odd in (False, True)
                for value in count_claims(design, law, trials, is_odd=is_odd)
            ]
            print(f"| {count} | {len(design.blocks)} | {law} | {' | '.join(cells)} |")
    print("\n| hosts | +5 % | +10 % | +15 % | +20 % | 80 % of trials find |")
    print("|---|---|---|---|---|---|")
    for count in (8, 10, 12, 14):
        design = design_of(count)
        found = [count_claims(design, "autoregressive", trials // 4, effect)[0] for effect in (0.05, 0.10, 0.15, 0.20)]
        # The spread of a host's change: its drift, and the medians of two periods.
        spread = NOISE * math.sqrt(1 + 2 * 1.44 / READINGS)
        least = math.expm1(detectable_effect(design, spread) or math.nan)
        print(f"| {count} | {' | '.join(f'{100 * one / (trials // 4):.0f} %' for one in found)} | {least:+.1%} |")


if __name__ == "__main__":
    main()
