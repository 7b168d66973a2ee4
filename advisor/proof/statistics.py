"""Exact paired statistics on ln ratios. Standard library only, every function pure.

Sources: Wilcoxon, Biometrics Bulletin 1 (1945); Hodges and Lehmann, Ann. Math. Statist. 34 (1963); Lehmann,
*Nonparametrics* (1975), chapters 1 and 4; Holm, Scand. J. Statist. 6 (1979); Pocock, Biometrika 64 (1977);
Schuirmann, J. Pharmacokinet. Biopharm. 15 (1987); Noether, JASA 82 (1987) for the sample size.

Distributions are held as one big integer each: the number of outcomes with statistic ``s`` is the digit ``s``
in base ``2**width``. Adding one observation is then a shift and an addition, and no Python loop runs over the
support. The digits of a number sum to its remainder modulo ``2**width - 1`` as long as that sum is smaller,
which the width guarantees; so a tail probability is a mask and a remainder.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, combinations, groupby
from statistics import NormalDist, fmean, stdev
from typing import Literal

import msgspec

POCOCK: Mapping[int, float] = {1: 0.05, 2: 0.0294, 3: 0.0221}
"""Two-sided level for each of k equally spaced looks so that all together stay at 5 % (Pocock 1977, table 1)."""

POCOCK_ONE_SIDED: Mapping[int, float] = {1: 0.05, 2: 0.03035, 3: 0.02345}
"""One-sided level for each of k equally spaced looks so that all together stay at 5 % one-sided: half the two-sided
levels for 10 % (Jennison and Turnbull, *Group Sequential Methods* (2000), table 2.1)."""

POWER = 0.80
MINIMUM_PAIRS = 6
"""With fewer pairs the smallest exact two-sided p is above .05: no data could be significant."""

TOST_CONFIDENCE = 0.90
"""Two one-sided tests at 5 % each are one 90 % interval inside the margin (Schuirmann 1987)."""

_TIE_BITS = 40

_EFFICIENCY = 3 / math.pi
"""Asymptotic relative efficiency of the signed-rank test to the t test under normality."""


class SignedRank(msgspec.Struct, frozen=True):
    """``p_value`` two-sided; ``pairs`` that entered the ranking; ``zeros`` that were left out of it."""

    p_value: float
    pairs: int
    zeros: int


class Interval(msgspec.Struct, frozen=True):
    """Estimate and closed interval on the scale of the input; ``confidence`` is the level really achieved."""

    estimate: float
    low: float
    high: float
    confidence: float

    @property
    def excludes_zero(self) -> bool:
        """Whether zero lies outside the closed interval."""
        return self.low > 0 or self.high < 0

    def lies_within(self, margin: float) -> bool:
        """Whether the whole interval lies strictly inside ``(-margin, +margin)``."""
        return -margin < self.low and self.high < margin


def median(values: Sequence[float]) -> float:
    """Middle value, or the mean of the two middle ones. Raises ValueError on an empty sequence."""
    if not values:
        raise ValueError("median of no values")
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def level_ties(values: Sequence[float]) -> list[float]:
    """The values with sizes that differ only by rounding made equal: ``ln(a/b)`` and ``-ln(b/a)`` differ in the last
    bit, and are ties all the same. Sizes within one part in 2**40 of the largest count as one."""
    sizes = sorted({abs(value) for value in values if value == value})
    near = math.ldexp(sizes[-1], -_TIE_BITS) if sizes and math.isfinite(sizes[-1]) else 0.0
    of: dict[float, float] = {}
    first = before = 0.0
    for size in sizes:
        # zero is no size to be near to: a difference, however small, has a sign
        first = first if before and size - before <= near else size
        of[size] = first
        before = size
    return [math.copysign(of.get(abs(value), abs(value)), value) for value in values]


def doubled_midranks(values: Sequence[float]) -> list[int]:
    """Twice the mid-rank of each value, in input order: twice, so that the ranks of ties stay whole numbers."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0] * len(values)
    below = 0
    for _, tied in groupby(order, key=values.__getitem__):
        indices = list(tied)
        for index in indices:
            # ranks below+1 … below+k have the mean below + (k + 1) / 2
            ranks[index] = 2 * below + len(indices) + 1
        below += len(indices)
    return ranks


def _tail_count(distribution: int, upto: int, width: int) -> int:
    """Number of outcomes with a statistic of at most ``upto``."""
    if upto < 0:
        return 0
    return (distribution & ((1 << (upto + 1) * width) - 1)) % ((1 << width) - 1)


def _sign_flip_distribution(ranks: Sequence[int], width: int) -> int:
    """Outcomes of the sum of the ranks with a plus sign, over all ``2**n`` assignments of signs."""
    distribution = 1
    for rank in ranks:
        distribution += distribution << rank * width
    return distribution


def signed_rank(values: Sequence[float]) -> SignedRank:
    """Exact two-sided Wilcoxon signed-rank test of symmetry about zero.

    Zeros are left out before ranking (Wilcoxon's own treatment, the default of scipy.stats.wilcoxon); ties get
    mid-ranks, and the null distribution is the exact one given those mid-ranks. No values, or only zeros: p = 1.
    """
    nonzero = [value for value in level_ties(values) if value != 0]
    zeros = len(values) - len(nonzero)
    if not nonzero:
        return SignedRank(1.0, 0, zeros)
    ranks = doubled_midranks([abs(value) for value in nonzero])
    positive = sum(rank for rank, value in zip(ranks, nonzero, strict=True) if value > 0)
    smaller = min(positive, sum(ranks) - positive)
    width = len(ranks) + 1
    tail = _tail_count(_sign_flip_distribution(ranks, width), smaller, width)
    # the distribution is symmetric, so the other tail is as heavy
    return SignedRank(min(1.0, 2 * tail / 2 ** len(ranks)), len(ranks), zeros)


@lru_cache(maxsize=256)
def _untied_cumulative(pairs: int) -> tuple[int, ...]:
    """``P(W+ <= k) * 2**pairs`` for k up to half the support, without ties."""
    width = pairs + 1
    distribution = _sign_flip_distribution(range(1, pairs + 1), width)
    mask = (1 << width) - 1
    half = pairs * (pairs + 1) // 4
    return tuple(accumulate((distribution >> k * width) & mask for k in range(half + 1)))


def _critical_rank(pairs: int, alpha: float) -> int:
    """The number k of smallest rank sums that together, in both tails, have a probability of at most alpha."""
    return bisect_right(_untied_cumulative(pairs), alpha * 2**pairs / 2)


def attainable_level(pairs: int, alpha: float) -> float:
    """The largest exact two-sided level not above ``alpha``; 0 where no data could be significant."""
    k = _critical_rank(pairs, alpha) if pairs > 0 else 0
    return 2 * _untied_cumulative(pairs)[k - 1] / 2**pairs if k else 0.0


def hodges_lehmann(values: Sequence[float], *confidences: float) -> tuple[Interval, ...]:
    """Hodges-Lehmann estimate with its signed-rank interval, one per wanted confidence.

    Each interval is the set of shifts that the exact test does not reject, so its level is at least the wanted
    one wherever the number of values allows that; with too few values it is the full range of the Walsh
    averages, and ``confidence`` says what that is worth. Raises ValueError on an empty sequence.
    """
    # All means of two values, each with itself included, in rising order.
    ordered = sorted(level_ties(values))
    # each row is in order already: the sort only has to merge them
    averages = sorted([(a + b) / 2 for i, a in enumerate(ordered) for b in ordered[i:]])
    estimate = median(averages)
    return tuple(_rank_interval(averages, estimate, len(values), 1 - wanted) for wanted in confidences)


def _rank_interval(averages: Sequence[float], estimate: float, pairs: int, alpha: float) -> Interval:
    k = max(1, _critical_rank(pairs, alpha))
    outside = 2 * _untied_cumulative(pairs)[k - 1] / 2**pairs
    return Interval(estimate, averages[k - 1], averages[-k], max(0.0, 1 - outside))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's step-down adjusted p values, in input order: compare each with the unadjusted level."""
    count = len(p_values)
    adjusted = [0.0] * count
    highest = 0.0
    for step, index in enumerate(sorted(range(count), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (count - step) * p_values[index]))
        adjusted[index] = highest
    return tuple(adjusted)


class Tested(msgspec.Struct, frozen=True):
    """What Holm's procedure makes of one p value: the adjusted one, the level it was tested at, the decision."""

    p_value: float
    p_holm: float
    level: float
    is_significant: bool


def step_down(p_values: Sequence[float], alpha: float) -> tuple[Tested, ...]:
    """Holm's procedure with the level of each step, in input order. What comes after the first that fails has that
    one's level, as the procedure stops there: so the interval ``1 - level`` excludes zero exactly where it decides."""
    count = len(p_values)
    order = sorted(range(count), key=p_values.__getitem__)
    stop = next((step for step, index in enumerate(order) if p_values[index] > alpha / (count - step)), count)
    adjusted = holm(p_values)
    found: dict[int, Tested] = {}
    for step, index in enumerate(order):
        level = alpha / (count - min(step, stop))
        found[index] = Tested(p_values[index], adjusted[index], level, step < stop)
    return tuple(found[index] for index in range(count))


def sign_test(first: int, second: int) -> float:
    """Exact two-sided p that events fall on two sides by a fair coin; 1 without any."""
    total = first + second
    tail = sum(math.comb(total, k) for k in range(min(first, second) + 1))
    return float(min(1.0, 2 * tail / 2**total))


def robust_spread(values: Sequence[float]) -> float | None:
    """Robust standard deviation of the pair log-ratios, read off their own signed-rank interval.

    The half width of the interval at the achieved level c is ``z * sigma / sqrt(n * 3/pi)`` for normal data, so
    sigma follows; for other shapes it is the sigma that makes the test's own precision come out right, which is
    what the power formulas below need. ``None`` below six values.
    """
    pairs = len(values)
    if pairs < MINIMUM_PAIRS:
        return None
    (interval,) = hodges_lehmann(values, 1 - attainable_level(pairs, 0.10))
    z = NormalDist().inv_cdf((1 + interval.confidence) / 2)
    return (interval.high - interval.low) / 2 / z * math.sqrt(pairs * _EFFICIENCY)


def minimum_detectable_effect(values: Sequence[float], alpha: float, power: float = POWER) -> float | None:
    """Smallest true ratio minus one that as many pairs with this spread would have found (default: in 80 %).

    ``sigma * (z(1-a/2) + z(power)) / sqrt(3/pi * (n - z(1-a/2)**2 / 2))`` on the ln scale, with the exact test's
    own attainable level as ``a``; the term ``z**2 / 2`` is Guenther's correction for small n. A fraction: 0.12
    means 12 %. ``None`` where no outcome could be significant.
    """
    sigma = robust_spread(values)
    level = attainable_level(len(values), alpha)
    if sigma is None or not level:
        return None
    z = NormalDist().inv_cdf(1 - level / 2)
    effective = _EFFICIENCY * (len(values) - z * z / 2)
    return math.expm1(sigma * (z + NormalDist().inv_cdf(power)) / math.sqrt(effective))


def needed_pairs(sigma: float, margin: float, alpha: float, power: float = POWER) -> int:
    """Pairs that find a true effect of ``margin`` (0.05 is 5 %) with the wanted power: Noether 1987 for the
    signed-rank test with Guenther's correction, the inverse of :func:`minimum_detectable_effect`."""
    z = NormalDist().inv_cdf(1 - alpha / 2)
    wanted = (z + NormalDist().inv_cdf(power)) * sigma / math.log1p(margin)
    # all pairs of one sign have p = 2 / 2**n: with fewer, no data could be significant
    possible = math.ceil(1 - math.log2(alpha))
    return max(MINIMUM_PAIRS, possible, math.ceil(wanted * wanted / _EFFICIENCY + z * z / 2))


def is_equivalent(values: Sequence[float], margin: float) -> bool:
    """Two one-sided tests: the 90 % interval of the ln ratios lies inside ``±ln(1 + margin)``."""
    if len(values) < MINIMUM_PAIRS:
        return False
    (interval,) = hodges_lehmann(values, TOST_CONFIDENCE)
    return interval.lies_within(math.log1p(margin))


def rank_sum(first: Sequence[float], second: Sequence[float]) -> float:
    """Exact two-sided permutation p that two groups come from one distribution (Wilcoxon rank sum, mid-ranks).

    Counts the assignments whose rank sum lies at least as far from its mean as the one seen. An empty group: 1.
    """
    size, total = len(first), len(first) + len(second)
    if not first or not second:
        return 1.0
    ranks = doubled_midranks(level_ties([*first, *second]))
    width = total + 1
    # without ties every doubled rank is even, and half the digits would be empty
    unit = math.gcd(*ranks)
    # by[k]: distribution of the rank sum, in units, of k chosen values
    by = [1] + [0] * size
    for seen, rank in enumerate(ranks, 1):
        for k in range(min(size, seen), 0, -1):
            by[k] += by[k - 1] << rank // unit * width
    mean = size * (total + 1)
    away = abs(sum(ranks[:size]) - mean)
    outcomes = math.comb(total, size)
    if away == 0:
        return 1.0
    lower = _tail_count(by[size], (mean - away) // unit, width)
    upper = outcomes - _tail_count(by[size], (mean + away - 1) // unit, width)
    return min(1.0, (lower + upper) / outcomes)


def limit_status(
    values: Sequence[float], limit: float, level: float, cost_level: float
) -> Literal["kept", "undecided", "broken"]:
    """What ln ratios (plus is better) show of a worsening by at most ``limit`` (a fraction): *kept* where it is shown,
    one-sided at ``level``, to stay below; *broken* where it is significant, two-sided at ``cost_level`` as every p that
    is printed, and estimated beyond it."""
    if len(values) < MINIMUM_PAIRS:
        return "undecided"
    (interval,) = hodges_lehmann(values, 1 - 2 * level)
    allowed = -math.log1p(limit)
    if interval.low > allowed:
        return "kept"
    return "broken" if interval.estimate < allowed and signed_rank(values).p_value <= cost_level else "undecided"


# Exact statistics of one series, and of two that were measured one after the other. Standard library only, all pure.

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
def _rank_cumulative(first: int, second: int) -> tuple[int, ...]:
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
    tail = _rank_cumulative(len(first), len(second))[min(above, len(first) * len(second) - above)]
    return min(1.0, 2 * tail / math.comb(count, len(first)))
