"""How often a search errs and what it finds, on simulated machines: against what people do in the same time.

    python -m benchmarks.tuning [SEARCHES]      1,000 a row unless said; about ten minutes of CPU time

Twelve candidates on machines whose runs scatter by 8 %, under loads that stay, drift or step. Either none of them does
anything, or one is better by 10 % and the others do nothing, little, or harm. `advisor tune` as it is (the engine of
`advisor.proof.tuning.records`, two placebos, 24 blocks at most, a confirmation of at most 24 pairs); against the best
mean of n runs of each, with the threshold that errs in 5 % where the load stays, and against Mann-Whitney on n + n
runs with Holm. Both run candidate after candidate, as people do. Prints Markdown tables; docs/proof.md holds one run.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from advisor.proof.statistics import POCOCK, hodges_lehmann, holm, median, rank_sum, signed_rank
from advisor.proof.tuning.arms import MAX_BLOCKS
from advisor.proof.tuning.records import PRESENT, Block, drop_arms, find_winner, rank_arms

NOISE = 0.08
"""Standard deviation of ln of one run."""
CANDIDATES, PLACEBOS = 12, 2
BLOCKS, LOOKS = MAX_BLOCKS, (8, 16, 24)
EFFECT = math.log1p(0.10)
ALPHA = 0.05
REPEATS = 18
"""Runs of each by the other rules: as many in all as a search takes."""
RUN_MINUTES = 5.2 / 60
"""A run of 5 s with its switch."""
KEPT = 0.10

Load = Callable[[random.Random], Iterator[float]]
"""ln speed of each run, in the order of time, without any candidate."""


def _constant(_source: random.Random) -> Iterator[float]:
    while True:
        yield 0.0


def _drifting(source: random.Random) -> Iterator[float]:
    at = 0.0
    while True:
        at = 0.97 * at + source.gauss(0, 0.02)
        yield at


def _stepping(source: random.Random) -> Iterator[float]:
    where, size, number = source.randrange(20, 200), math.log(source.choice((0.8, 1.25))), 0
    while True:
        number += 1
        yield size if number > where else 0.0


LOADS: dict[str, Load] = {"constant": _constant, "drifting": _drifting, "one step": _stepping}
NOTHING = (0.0,) * CANDIDATES
PLANTED = (*(0.0,) * 6, math.log(0.95), math.log(0.9), math.log(0.7), math.log(1.02), math.log(1.03), EFFECT)
"""The optimum is the last of them."""


class Machine:
    """A host whose runs cost time: ln speed under an effect."""

    def __init__(self, load: Load, seed: int) -> None:
        self.source = random.Random(seed)
        self._load = load(self.source)
        self.runs = 0

    def run(self, effect: float) -> float:
        """The next run."""
        self.runs += 1
        return next(self._load) + effect + self.source.gauss(0, NOISE)


class Outcome:
    """What a rule decided: the candidate by its number or None, the gain that it promises, and the runs it took."""

    def __init__(self, winner: int | None, promised: float, runs: int) -> None:
        self.winner = winner
        self.promised = promised
        self.runs = runs


Rule = Callable[[Machine, Sequence[float]], Outcome]


def race_arms(machine: Machine, effects: Sequence[float]) -> int | None:
    """The arm that wins a race, by its number; ``effects`` are those of all arms, the present state first."""
    blocks: list[Block] = []
    arms = list(range(len(effects)))
    for done in range(1, BLOCKS + 1):
        order = machine.source.sample(arms, len(arms))
        blocks.append({arm: machine.run(effects[arm]) for arm in order})
        standings = rank_arms(blocks)
        dropped = drop_arms(standings, done, BLOCKS)
        winner = find_winner(standings, len(effects) - 1, done, BLOCKS)
        if winner is not None or len(arms) == 1:
            return winner
        arms = [arm for arm in arms if arm not in dropped]
    return None


def confirm_arm(machine: Machine, effect: float) -> tuple[bool, float]:
    """Whether a gain is confirmed by pairs in the order of a coin, at three looks, and its estimate."""
    seen: list[float] = []
    for look in LOOKS:
        while len(seen) < look:
            first = machine.source.random() < 0.5
            values = [machine.run(effect if is_new else 0.0) for is_new in (first, not first)]
            seen.append(values[0] - values[1] if first else values[1] - values[0])
        if signed_rank(seen).p_value <= POCOCK[len(LOOKS)]:
            (interval,) = hodges_lehmann(seen, 1 - POCOCK[len(LOOKS)])
            return interval.low > 0, interval.estimate
    return False, median(seen)


def search(machine: Machine, effects: Sequence[float]) -> Outcome:
    """`advisor tune`."""
    numbered = [*effects, *(0.0,) * PLACEBOS]
    order = machine.source.sample(range(len(numbered)), len(numbered))
    winner = race_arms(machine, [0.0, *(numbered[at] for at in order)])
    if winner is None or winner == PRESENT or order[winner - 1] >= len(effects):
        return Outcome(None, 0.0, machine.runs)
    chosen = order[winner - 1]
    is_gain, estimate = confirm_arm(machine, effects[chosen])
    return Outcome(chosen if is_gain else None, estimate, machine.runs)


def _run_series(machine: Machine, effects: Sequence[float]) -> list[list[float]]:
    """The present state, then candidate after candidate, each as often."""
    return [[machine.run(effect) for _ in range(REPEATS)] for effect in (0.0, *effects)]


def _leads(series: Sequence[Sequence[float]]) -> list[float]:
    present = sum(series[0]) / REPEATS
    return [sum(one) / REPEATS - present for one in series[1:]]


@cache
def mean_threshold() -> float:
    """The lead of the best mean that 5 % of the fields exceed in which nothing does anything, where the load stays."""
    fields = [max(_leads(_run_series(Machine(_constant, seed), NOTHING))) for seed in range(4000)]
    return sorted(fields)[int((1 - ALPHA) * len(fields))]


def best_mean(machine: Machine, effects: Sequence[float]) -> Outcome:
    """The best mean of n, where it leads the present state by the threshold."""
    leads = _leads(_run_series(machine, effects))
    best = max(range(len(leads)), key=leads.__getitem__)
    return Outcome(best if leads[best] > mean_threshold() else None, leads[best], machine.runs)


def mann_whitney(machine: Machine, effects: Sequence[float]) -> Outcome:
    """Of those that Mann-Whitney and Holm call better than the present state, the one with the best mean."""
    series = _run_series(machine, effects)
    leads = _leads(series)
    adjusted = holm([rank_sum(one, series[0]) for one in series[1:]])
    better = [at for at, p_value in enumerate(adjusted) if p_value <= ALPHA and leads[at] > 0]
    best = max(better, key=leads.__getitem__, default=None)
    return Outcome(best, leads[best] if best is not None else 0.0, machine.runs)


RULES: dict[str, Rule] = {"advisor tune": search, "best mean of 18": best_mean, "Mann-Whitney 18 + 18": mann_whitney}


class Tally:
    """What became of many searches by one rule."""

    def __init__(self, rule: Rule, load: Load, effects: Sequence[float], searches: int, seed: int) -> None:
        self.outcomes = [rule(Machine(load, seed * 1_000_003 + at), effects) for at in range(searches)]
        self.effects = effects

    def share(self, holds: Callable[[Outcome], bool]) -> float:
        """Of the searches, those for which it holds."""
        return sum(holds(one) for one in self.outcomes) / len(self.outcomes)

    @property
    def any_winner(self) -> float:
        """The share that report a winner."""
        return self.share(lambda one: one.winner is not None)

    @property
    def found(self) -> float:
        """The share that report the planted optimum."""
        return self.share(lambda one: one.winner == CANDIDATES - 1)

    @property
    def kept(self) -> float:
        """Of the gains that are reported, those that the winner keeps within 10 % when it is deployed."""
        promised = [(self.effects[one.winner], one.promised) for one in self.outcomes if one.winner is not None]
        held = [abs(math.expm1(truth - promise)) <= KEPT for truth, promise in promised]
        return sum(held) / len(held) if held else math.nan

    @property
    def minutes(self) -> float:
        """Of measurement, on average."""
        return sum(one.runs for one in self.outcomes) / len(self.outcomes) * RUN_MINUTES


def raced_winners(load: Load, searches: int, seed: int) -> float:
    """The share of races that any arm wins, a placebo too, where nothing does anything."""
    arms = (0.0,) * (1 + CANDIDATES + PLACEBOS)
    return sum(race_arms(Machine(load, seed * 1_000_003 + at), arms) is not None for at in range(searches)) / searches


def main(searches: int) -> int:
    """Print the tables. 0 where the search, but for chance, errs in no more than 5 %, finds the optimum in 90 %, and
    keeps 95 % of its promises."""
    limit, least, kept = (
        level + side * 3 * math.sqrt(level * (1 - level) / searches)
        for level, side in ((0.05, 1), (0.9, -1), (0.95, -1))
    )
    is_good = True
    print(f"| load | races of {searches:,} that any arm wins where nothing does anything |\n|---|---|")
    for seed, (name, load) in enumerate(LOADS.items()):
        share = raced_winners(load, searches, seed)
        is_good = is_good and share <= limit
        print(f"| {name} | {share:.1%} |", flush=True)
    print("\n| load | rule | nothing there: reports a gain | optimum found | promise kept within 10 % | minutes |")
    print("|---|---|---|---|---|---|")
    for seed, (name, load) in enumerate(LOADS.items(), 100):
        for title, rule in RULES.items():
            nothing = Tally(rule, load, NOTHING, searches, seed)
            planted = Tally(rule, load, PLANTED, searches, seed + 50)
            print(
                f"| {name} | {title} | {nothing.any_winner:.1%} | {planted.found:.1%} | {planted.kept:.1%} |"
                f" {planted.minutes:.0f} |",
                flush=True,
            )
            if rule is search:
                is_good = is_good and nothing.any_winner <= limit and planted.found >= least and planted.kept >= kept
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
