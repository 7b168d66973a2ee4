"""Whether a proven gain is still there: a test over repetitions that may be looked at after each, for years.

A gain of at least ``least`` is put to the test. With it, and the coin of each pair, what a pair shows beyond ``least``
is as likely on either side, given its size. Somebody who bets a fair share of his stake on "below" in each pair, more
where the difference is large among those so far, wins nothing in expectation: the stake reaches 20 times its start at
any time with a probability of at most 1 in 20 (Ville, 1939; Ramdas, Grünwald, Vovk and Shafer, Statistical Science 38
(2023), on such e-processes). So that weeks with the gain do not use up the stake, a part of it waits for each
repetition: a bet that begins there (the mixture of Shin, Ramdas and Rinaldo, New England Journal of Statistics in Data
Science 2 (2024), here with parts that sum to 1, so that the probability holds for all repetitions together).
Simulated by ``python -m benchmarks.gain_sequence``; docs/proof.md holds the figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

REPETITIONS: Final = 104
"""The repetitions for which a part of the stake waits: two years of weeks."""
LEVEL: Final = 0.05
_SHARES: Final = (0.3, 0.6, 0.9)
"""How much of the stake is bet at most, in equal parts: little where a gain has become smaller, much where it is
gone."""


class Evidence(msgspec.Struct, frozen=True):
    """What the repetitions say against the gain. ``stake`` is the largest so far, 1 at the start; ``since`` is the
    repetition (from 0) at which the bet begins that won the most, None before there is any."""

    stake: float
    since: int | None = None


def weigh_repetitions(repetitions: Sequence[Sequence[float]], least: float) -> Evidence:
    """The evidence that the effects have fallen below ``least``; both are ln ratios, plus is better."""
    sizes: list[float] = []
    bets: list[list[float]] = []
    largest, since = 1.0, None
    for effects in repetitions[:REPETITIONS]:
        bets.append([0.0] * len(_SHARES))
        for effect in effects:
            below = least - effect
            sizes.append(abs(below))
            # The size of a difference among those so far says nothing about its side.
            weight = sum(size <= sizes[-1] for size in sizes) / len(sizes) * ((below > 0) - (below < 0))
            for stakes in bets:
                for at, share in enumerate(_SHARES):
                    stakes[at] += math.log1p(share * weight)
        won = [sum(map(math.exp, stakes)) / len(_SHARES) for stakes in bets]
        stake = (sum(won) + REPETITIONS - len(won)) / REPETITIONS
        if stake > largest:
            largest, since = stake, max(range(len(won)), key=won.__getitem__)
    return Evidence(largest, since)
