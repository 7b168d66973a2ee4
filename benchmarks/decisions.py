"""How many correct decisions a minute of measurement gives, at the same error rate: against what people do.

    python -m benchmarks.decisions [SESSIONS]      2,000 a row unless said; about five minutes of CPU time

One change is judged on machines whose runs scatter by 8 %, under loads that stay, drift, step or repeat: it is better
by 10 %, worse by 10 %, or does nothing. Ways to decide, each with at most as many runs as 24 pairs have:

- `advisor prove`: pairs in the order of a coin, signed rank at three looks (its shipped tests and levels);
- means, as hyperfine compares them: n runs of the one, then n of the other, a difference of the means beyond what its
  scatter explains (Welch);
- Mann-Whitney on n + n runs, as benchstat does;
- pairs in the fixed order AB, BA, AB, ..., signed rank once at the end.

At the same error rate: each of the others has the level at which it errs in 5 %, once under the very load (which nobody
who measures knows), once under the one of the four that misleads it most; found on machines with other seeds. A
decision is correct if it names the better one. Prints a Markdown table; docs/proof.md holds one run.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from advisor.proof.schedule import level_for
from advisor.proof.statistics import rank_sum, signed_rank

NOISE = 0.08
"""Standard deviation of ln of one run."""
PAIRS, LOOKS = 24, (8, 16, 24)
EFFECT = math.log1p(0.10)
ALPHA = 0.05
RUN_MINUTES = 2.2 / 60
"""A run of 2 s with its switch."""

Load = Callable[[random.Random], Iterator[float]]
"""ln speed of each run, in the order of time, without any change."""


def _constant(_source: random.Random) -> Iterator[float]:
    while True:
        yield 0.0


def _drifting(source: random.Random) -> Iterator[float]:
    at = 0.0
    while True:
        at = 0.97 * at + source.gauss(0, 0.02)
        yield at


def _stepping(source: random.Random) -> Iterator[float]:
    where, size, number = source.randrange(4, 44), math.log(source.choice((0.8, 1.25))), 0
    while True:
        number += 1
        yield size if number > where else 0.0


def _repeating(source: random.Random) -> Iterator[float]:
    number = source.randrange(4)
    while True:
        number += 1
        yield math.log(0.8) if number % 4 == 0 else 0.0


LOADS: dict[str, Load] = {
    "constant": _constant,
    "drifting": _drifting,
    "one step": _stepping,
    "each fourth run slow": _repeating,
}


class Machine:
    """A host whose runs cost time: ln speed with the change and without."""

    def __init__(self, load: Load, seed: int, effect: float) -> None:
        self.source = random.Random(seed)
        self.runs = 0
        self._load, self._effect = load(self.source), effect

    def run(self, *, is_changed: bool) -> float:
        """The next run."""
        self.runs += 1
        return next(self._load) + self._effect * is_changed + self.source.gauss(0, NOISE)

    def series(self) -> tuple[list[float], list[float]]:
        """All runs without the change, then all with it."""
        before = [self.run(is_changed=False) for _ in range(PAIRS)]
        return before, [self.run(is_changed=True) for _ in range(PAIRS)]


class Decision(NamedTuple):
    """The evidence: ``sign`` of the difference, and its p-value."""

    sign: int
    p_value: float


def _pair(machine: Machine, *, is_first: bool) -> float:
    """The difference of a pair; ``is_first``: with the change first."""
    values = [machine.run(is_changed=is_changed) for is_changed in (is_first, not is_first)]
    return values[0] - values[1] if is_first else values[1] - values[0]


def _judge_pairs(seen: Sequence[float]) -> Decision:
    return Decision(1 if statistics.median(seen) > 0 else -1, signed_rank(seen).p_value)


def prove(machine: Machine) -> Decision:
    """`advisor prove`; its p-value is adjusted so that 5 % is its own level at each look."""
    seen: list[float] = []
    found = Decision(1, 1.0)
    for look in LOOKS:
        while len(seen) < look:
            seen.append(_pair(machine, is_first=machine.source.random() < 0.5))
        found = _judge_pairs(seen)
        if found.p_value <= level_for(LOOKS):
            return Decision(found.sign, ALPHA)
    return Decision(found.sign, 1.0)


def compare_means(machine: Machine) -> Decision:
    """The difference of the means of n + n runs, by Welch's statistic with a normal distribution."""
    before, after = machine.series()
    difference = statistics.fmean(after) - statistics.fmean(before)
    error = math.sqrt((statistics.variance(before) + statistics.variance(after)) / PAIRS)
    return Decision(1 if difference > 0 else -1, math.erfc(abs(difference) / error / math.sqrt(2)))


def mann_whitney(machine: Machine) -> Decision:
    """Ranks of n + n runs."""
    before, after = machine.series()
    return Decision(1 if statistics.median(after) > statistics.median(before) else -1, rank_sum(after, before))


def fixed_abba(machine: Machine) -> Decision:
    """Pairs in the order AB, BA, AB, ..., judged once."""
    return _judge_pairs([_pair(machine, is_first=bool(number % 2)) for number in range(PAIRS)])


WAYS: dict[str, Callable[[Machine], Decision]] = {
    "advisor prove": prove,
    "means of 24 + 24": compare_means,
    "Mann-Whitney 24 + 24": mann_whitney,
    "fixed ABBA, 24 pairs": fixed_abba,
}


def own_level(way: Callable[[Machine], Decision], load: Load, sessions: int, seed: int) -> float:
    """The level, 5 % at most, at which a way errs in 5 % under a load."""
    values = sorted(way(Machine(load, seed * 7_000_003 + at, 0.0)).p_value for at in range(sessions))
    return min(ALPHA, values[int(ALPHA * sessions)])


class Row(NamedTuple):
    """One way under one load: the share that errs without an effect, that is right with one, and minutes a session."""

    false: float
    right: float
    minutes: float

    @property
    def hourly(self) -> float:
        """Correct decisions in an hour of measurement."""
        return 60 * self.right / self.minutes


def judge_way(way: Callable[[Machine], Decision], load: Load, level: float, sessions: int, seed: int) -> Row:
    """The row of a way that decides where its p-value is below the level."""
    first = seed * 1_000_003

    def decides(machine: Machine) -> int:
        found = way(machine)
        return found.sign if found.p_value <= level else 0

    false = sum(decides(Machine(load, first + at, 0.0)) != 0 for at in range(sessions)) / sessions
    right, runs = 0, 0
    for at in range(sessions):
        sign = 1 if at % 2 else -1
        machine = Machine(load, first + sessions + at, sign * EFFECT)
        right += decides(machine) == sign
        runs += machine.runs
    return Row(false, right / sessions, runs / sessions * RUN_MINUTES)


def main(sessions: int) -> int:
    """Print the table. 0 where `advisor prove`, but for chance, errs in no more than 5 %."""
    limit = ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / sessions)
    levels = {
        (name, load_name): ALPHA if way is prove else own_level(way, load, sessions, seed)
        for name, way in WAYS.items()
        for seed, (load_name, load) in enumerate(LOADS.items(), 1)
    }
    is_good = True
    print(
        "| load | way | errs at 5 % | right, ±10 %, at a level that fits this load | correct decisions in an hour"
        " | right at a level that fits every load | in an hour |"
    )
    print("|---|---|---|---|---|---|---|")
    for seed, (load_name, load) in enumerate(LOADS.items(), 1):
        for name, way in WAYS.items():
            every = min(levels[name, one] for one in LOADS)
            plain, fitting, safe = (
                judge_way(way, load, level, sessions, seed) for level in (ALPHA, levels[name, load_name], every)
            )
            print(
                f"| {load_name} | {name} | {plain.false:.1%} | {fitting.right:.1%} | {fitting.hourly:.0f} |"
                f" {safe.right:.1%} | {safe.hourly:.0f} |",
                flush=True,
            )
            is_good = is_good and (way is not prove or plain.false <= limit)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000))
