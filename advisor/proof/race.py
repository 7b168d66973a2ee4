"""A race of anonymous arms in randomised blocks: which are dropped, and which one is ahead at the end. Pure.

Arms are numbers; 0 is the present state and is never dropped. Each block holds every surviving arm once, in an order
that was drawn. "The arms do nothing" makes the values of a block exchangeable among its arms, whatever the load does
meanwhile, as the order is drawn by chance. So the sum of an arm's aligned ranks has an exact distribution (Hodges and
Lehmann, Ann. Math. Statist. 33 (1962): each value less the mean of its block, all ranked together; Fisher, *The
Design of Experiments* (1935), for the reference). An arm is compared with the whole field, which shows more than its
difference from one other run of the block: what it is worth against the state before is left to a confirmation on
fresh data.

Dropping spends a level of 5 % over the looks, one after each block, by ``t ** 1.5`` (Lan and DeMets, Biometrika 70
(1983), for spending; the exponent is of Kim and DeMets, Biometrika 74 (1987)), and at each look Holm's procedure shares
it among the arms. Winning spends 4.5 % at half of the blocks and at the end; the rest of 5 % is for the survivors, who
were chosen by the same blocks. Simulated by ``python -m benchmarks.tuning``; docs/proof.md holds the figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from advisor.proof.statistics import doubled_midranks, level_ties, step_down

PRESENT = 0
"""The arm that is the state before."""
DROP_LEVEL = 0.05
WIN_LEVEL = 0.045
FIRST_DROP = 3
"""Blocks before which nothing is dropped."""
EXPONENT = 1.5

Block = Mapping[int, float]
"""One value for each arm that ran, on a log scale, plus is better."""


class Standing(msgspec.Struct, frozen=True):
    """One surviving arm against the field: how likely a rank sum as low, or as high, is without any effect.
    ``lead`` is the mean of its distances from the means of its blocks."""

    arm: int
    worse: float
    better: float
    lead: float


def rank_arms(blocks: Sequence[Block]) -> tuple[Standing, ...]:
    """The standing of every arm of the last block, in the order of their numbers; who was dropped is no part of it."""
    if not blocks:
        return ()
    blocks = [{arm: block[arm] for arm in blocks[-1]} for block in blocks]
    means = [sum(block.values()) / len(block) for block in blocks]
    aligned = [{arm: block[arm] - mean for arm in sorted(block)} for block, mean in zip(blocks, means, strict=True)]
    ranks = iter(_rank_values([value for block in aligned for value in block.values()]))
    scores = [{arm: next(ranks) for arm in block} for block in aligned]
    tail = _Tail([tuple(block.values()) for block in scores])
    found = []
    for arm in scores[-1]:
        total = sum(block[arm] for block in scores)
        lead = sum(block[arm] for block in aligned) / len(aligned)
        found.append(Standing(arm, tail.at_most(total), tail.at_least(total), lead))
    return tuple(found)


def _rank_values(values: Sequence[float]) -> list[int]:
    """Doubled mid-ranks; values that differ by rounding alone are ties."""
    shift = min(values, default=0.0)
    return doubled_midranks(level_ties([value - shift for value in values]))


class _Tail:
    """The distribution of a sum of one score of each block, each as likely as any other of its block."""

    def __init__(self, scores: Sequence[Sequence[int]]) -> None:
        self._outcomes = math.prod(map(len, scores))
        # Digits of one big integer, as in `advisor.proof.statistics`; each block counts from its lowest score, and
        # without ties every doubled rank is even, so that half of the digits would be empty.
        self._width = self._outcomes.bit_length() + 1
        self._lowest = sum(map(min, scores))
        self._unit = math.gcd(*(score - min(block) for block in scores for score in block)) or 1
        distribution = 1
        for block in scores:
            low = min(block)
            distribution = sum(distribution << (score - low) // self._unit * self._width for score in block)
        self._distribution = distribution

    def at_most(self, total: int) -> float:
        """The probability of a sum up to this one."""
        mask = (1 << ((total - self._lowest) // self._unit + 1) * self._width) - 1
        return float((self._distribution & mask) % ((1 << self._width) - 1) / self._outcomes)

    def at_least(self, total: int) -> float:
        """The probability of this sum or a larger one."""
        rest = self._distribution >> (total - self._lowest) // self._unit * self._width
        return float(rest % ((1 << self._width) - 1) / self._outcomes)


def spent_level(done: int, most: int, alpha: float) -> float:
    """Of a level for the whole race, what may be spent after so many blocks."""
    return float(alpha * min(1.0, done / most) ** EXPONENT)


def drop_arms(standings: Sequence[Standing], done: int, most: int) -> tuple[int, ...]:
    """The arms that are out after ``done`` of ``most`` blocks: shown to be below the field, and so not the best."""
    if done < FIRST_DROP:
        return ()
    before = spent_level(done - 1, most, DROP_LEVEL) if done > FIRST_DROP else 0.0
    level = spent_level(done, most, DROP_LEVEL) - before
    candidates = [one for one in standings if one.arm != PRESENT]
    tested = step_down([one.worse for one in candidates], level)
    return tuple(one.arm for one, test in zip(candidates, tested, strict=True) if test.is_significant)


def find_winner(
    standings: Sequence[Standing], started: int, done: int, most: int, *, is_last: bool = False
) -> int | None:
    """The arm that is shown to be above the field and is ahead of the present state, of ``started`` arms besides that;
    None where there is none, and between the looks at half of the blocks and at the end. ``is_last``: the time is up
    before the blocks were."""
    half = (most + 1) // 2
    is_last = is_last or done >= most or (len(standings) <= 2 and done > half)
    early = spent_level(half, most, WIN_LEVEL)
    level = early if done == half else (WIN_LEVEL - early if done > half else WIN_LEVEL) if is_last else 0.0
    present = next((one for one in standings if one.arm == PRESENT), None)
    candidates = [one for one in standings if one.arm != PRESENT]
    if not level or present is None or not candidates:
        return None
    best = max(candidates, key=lambda one: one.lead)
    # Holm's first step; who was dropped counts as tested.
    is_shown = best.better <= level / max(1, started)
    return best.arm if is_shown and best.lead > present.lead else None
