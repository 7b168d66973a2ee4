"""A test that may look after every pair: exact randomisation of the session's own coins, with a level that is spent.

Given the sizes of the differences, the coin of each pair makes its sign fair under "no difference", whatever the load
does. So the observed signs are one of many vectors of fair signs. After each pair every vector gets its signed-rank sum
``|sum(sign * rank)|``, and the largest are rejected, as many as the level spent so far allows; those stay out. The
observed vector is treated as one of them, so that it is rejected with at most that probability, however often it is
looked at (Lan and DeMets, Biometrika 70 (1983), for spending; the exponent 1.5 is of Kim and DeMets, Biometrika 74
(1987); Dwass, Ann. Math. Statist. 28 (1957), for the observed vector inside). Simulated by
``python -m benchmarks.anytime``; docs/proof.md holds the figures.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from operator import mul
from typing import Final, NamedTuple

from advisor.proof.statistics import FIRST_LOOK, doubled_midranks, level_ties, rank_sum_level

VECTORS: Final = 1999
"""With the observed one 2,000: the level is a multiple of 1 in 2,000."""
EXPONENT: Final = 1.5


def spent_level(pairs: int, most: int, alpha: float) -> float:
    """Of a level for the whole session, what may be spent after so many pairs."""
    return float(alpha * min(1.0, pairs / most) ** EXPONENT)


@lru_cache(maxsize=8)
def reference_signs(seed: int, most: int) -> tuple[tuple[int, ...], ...]:
    """Vectors of fair signs, one for each of ``most`` pairs, drawn apart from the session's own coin."""
    source = random.Random(f"reference {seed}")
    return tuple(
        tuple(1 if bits >> at & 1 else -1 for at in range(most))
        for bits in (source.getrandbits(most) for _ in range(VECTORS))
    )


def signed_ranks(effects: Sequence[float]) -> tuple[list[int], list[int]]:
    """Doubled ranks of the sizes, 0 for a difference of 0, and the signs."""
    leveled = level_ties(effects)
    nonzero = [abs(value) for value in leveled if value != 0]
    found = iter(doubled_midranks(nonzero))
    ranks = [next(found) if value != 0 else 0 for value in leveled]
    return ranks, [1 if value > 0 else -1 for value in leveled]


def level_after(effects: Sequence[float], most: int, seed: int, alpha: float) -> float:
    """The two-sided level at which the latest look is judged by the exact signed-rank test: what the spending leaves.

    ``effects`` are the differences so far, in the order of the pairs; ``most`` is how many there will be, ``alpha`` the
    level of the whole session. Pairs beyond ``most`` (repeated ones) spend nothing more. 0 where nothing could be
    rejected yet.
    """
    found = _spend_after(tuple(effects), most, max(most, len(effects)), seed, alpha)
    return 0.0 if found.critical is None else rank_sum_level(signed_ranks(effects)[0], found.critical)


def critical_after(effects: Sequence[float], most: int, seed: int, alpha: float) -> int | None:
    """The signed sum of doubled ranks from which the latest look rejects; None where it could not."""
    return _spend_after(tuple(effects), most, max(most, len(effects)), seed, alpha).critical


class _Spent(NamedTuple):
    """After a look: the reference vectors that are not rejected, whether the observed one is not, and the smallest sum
    that this look rejects."""

    left: tuple[tuple[int, ...], ...]
    is_observed_left: bool
    critical: int | None


@lru_cache(maxsize=1024)
def _spend_after(effects: tuple[float, ...], most: int, length: int, seed: int, alpha: float) -> _Spent:
    pairs, vectors = len(effects), reference_signs(seed, length)
    if pairs < FIRST_LOOK:
        return _Spent(vectors, True, None)
    before = _spend_after(effects[:-1], most, length, seed, alpha)
    ranks, observed = signed_ranks(effects)
    sums = [abs(sum(map(mul, ranks, signs))) for signs in before.left]
    own = abs(sum(map(mul, ranks, observed)))
    total = len(vectors) + 1
    allowed = int(total * spent_level(pairs, most, alpha)) - (total - len(sums) - before.is_observed_left)
    critical = smallest_rejected([*sums, own] if before.is_observed_left else sums, allowed)
    if critical is None:
        return before._replace(critical=None)
    left = tuple(signs for signs, size in zip(before.left, sums, strict=True) if size < critical)
    return _Spent(left, before.is_observed_left and own < critical, critical)


def smallest_rejected(sums: Sequence[int], allowed: int) -> int | None:
    """The smallest value that at most so many of the sums reach; None where even the largest is reached by more."""
    if allowed <= 0:
        return None
    ordered = sorted(sums, reverse=True)
    if allowed >= len(ordered):
        return ordered[-1]
    # All that are as large as the first that may not be rejected stay in.
    above = [size for size in ordered[:allowed] if size > ordered[allowed]]
    return above[-1] if above else None
