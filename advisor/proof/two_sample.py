"""Exact statistics of one series, and of two that were measured one after the other. Standard library only, all pure.

The test of two series is exact at every size, without a normal approximation: from the distribution of U where no
values are tied, else from all permutations of the mid-ranks.

Sources: Mann and Whitney, Ann. Math. Statist. 18 (1947); Thompson, Ann. Math. Statist. 7 (1936) for the interval of the
median.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, combinations
from statistics import fmean, stdev

from advisor.proof.statistics import Interval, level_ties, median, rank_sum

MINIMUM_RUNS = 6
"""With fewer runs not even the whole range holds the median with a probability of 95 %."""
NOISE_SHARE = 0.95


# -- one series --------------------------------------------------------------------------------------------------------


def median_interval(values: Sequence[float], confidence: float) -> Interval:
    """The median with its interval between two order statistics: distribution-free, at a level that is exact.

    The level of the interval from the k-th smallest to the k-th largest value is ``1 - 2 P(B < k)``, B binomial with n
    tries of one half. The narrowest one that reaches ``confidence`` is taken, or the whole range where none does;
    ``Interval.confidence`` is its own level. Raises ValueError on an empty sequence.
    """
    ordered, count = sorted(values), len(values)
    middle = median(ordered)
    below = list(accumulate(math.comb(count, k) for k in range(count // 2 + 1)))
    reaching = [k for k in range((count + 1) // 2) if 1 - 2 * below[k] / 2**count >= confidence]
    k = max(reaching, default=0)
    level = max(0.0, 1 - 2 * below[k] / 2**count)
    return Interval(middle, ordered[k], ordered[count - 1 - k], level)


def median_absolute_deviation(values: Sequence[float]) -> float:
    """Median distance from the median, not scaled, in the unit of the values. Raises ValueError where there is none."""
    middle = median(values)
    return median([abs(value - middle) for value in values])


def coefficient_of_variation(values: Sequence[float]) -> float | None:
    """Standard deviation (n - 1) over the mean, a fraction; ``None`` below two values."""
    return stdev(values) / fmean(values) if len(values) > 1 else None


def noise_floor(logarithms: Sequence[float], share: float = NOISE_SHARE) -> float | None:
    """How far two single runs lie apart in ``share`` of cases at most, though nothing was changed: a fraction.

    The quantile of the ratio over all pairs of runs, 0.19 means that the larger is 19 % above the smaller. An estimate
    that takes the runs for independent; ``None`` below six values.
    """
    if len(logarithms) < MINIMUM_RUNS:
        return None
    distances = sorted(abs(a - b) for a, b in combinations(logarithms, 2))
    return math.expm1(distances[math.ceil(share * len(distances)) - 1])


# -- two series --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _untied_cumulative(first: int, second: int) -> tuple[int, ...]:
    """``P(U <= u) * C(first + second, first)`` for u up to half the support, without ties.

    As in ``statistics``, a distribution is one big integer whose digits are counts. Of values in rising order, one of
    the first group that has k of its own before it lies above ``index - k`` of the second.
    """
    width = first + second + 1
    by = [1] + [0] * first
    for index in range(first + second):
        for k in range(min(index, first - 1), -1, -1):
            if index - k <= second:
                by[k + 1] += by[k] << (index - k) * width
    mask = (1 << width) - 1
    return tuple(accumulate((by[first] >> u * width) & mask for u in range(first * second // 2 + 1)))


def _level_groups(first: Sequence[float], second: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """Both groups, with values that differ only by rounding made equal."""
    both = level_ties([*first, *second])
    return both[: len(first)], both[len(first) :]


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> float:
    """Exact two-sided Mann-Whitney p that two groups come from one distribution. An empty group: 1.

    With ties it is the share of permutations whose rank sum lies at least as far from its mean.
    """
    count = len(first) + len(second)
    if not first or not second:
        return 1.0
    first, second = _level_groups(first, second)
    if len({*first, *second}) < count:
        return rank_sum(first, second)
    above = sum(a > b for a in first for b in second)
    tail = _untied_cumulative(len(first), len(second))[min(above, len(first) * len(second) - above)]
    return min(1.0, 2 * tail / math.comb(count, len(first)))
