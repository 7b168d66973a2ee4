"""Switchback periods under the traffic that is there: how long an effect takes, what of it is missed, and harm. Pure.

A value is switched in periods of length L whose first b seconds are discarded, in pairs in the order of a fair coin.
With a relaxation time tau a period shows the share f of the effect, and on average over the orders the estimate holds
(3f - 1) / 2 of it: the second arm of a pair always follows the other one, the first one half the time.

Next to the test for a gain runs one for a loss, an e-process: after each pair E is multiplied by 1 + b * s, where s is
the sign, +1 where arm B is worse, and b the bet on it, which may depend on the size of the difference and on all that
was before. Given the sizes the coin makes s fair, so that E reaches 20 after a pair in at most 5 % of sessions without
an effect, however many there are (Ville 1939; Ramdas et al., Statist. Sci. 38 (2023)).

Short pairs bet by what was watched before the first switch: how often differences of this size come by themselves, and
how much more often on this side than on the other if arm B were worse by 0.15, 0.3 or 0.6 on the logarithmic scale; E
is the mean of the three. So a difference that the load makes all the time weighs little, and one that it never made
weighs nearly all. Without such a time, and for the longer pairs, b is 0.8 times the mean of 1 and the relative rank of
this size among those so far (ranks alone take a pair more to show what is plain).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

HARM_LEVEL: Final = 20.0
"""E from which a value is withdrawn: 1 over 5 %."""
HARM_BET: Final = 0.8
PROBE_SECONDS: Final = 9.0
PROBE_DISCARD: Final = 2.0
PROBE_PAIRS: Final = 10
"""Short periods first: harm that is large shows within three minutes, and so does how long an effect takes."""
ASSUMED_TAU: Final = 3.0
"""Seconds, where no effect was large enough to see how long it takes."""
DISCARDED_TAUS: Final = 3.0
LEAST_DISCARD: Final = 3.0
MOST_DISCARDED_SHARE: Final = 0.5
ONE_SIDED: Final = 100.0
"""Effect of a pair with a figure in one arm only: larger than any ln ratio of figures, and finite."""
_HARMS: Final = (0.15, 0.3, 0.6)
"""Effects that short pairs bet on."""
_USUAL_STEP: Final = 3
"""Seconds between two starts of pairs that are only watched: they overlap, and nearer ones say nothing new."""
_LEAST_USUAL: Final = 10
_KERNEL_SHARE: Final = 0.8
"""Of a standard deviation, the width of a kernel: a little more than Silverman's rule has for some 20 pairs that do not
overlap, as the cycle was fitted to them."""
_TAIL: Final = 0.02
"""Of the density at its middle, at most: what was never seen may come all the same."""
_LOOK_SHARE: Final = 0.5
"""What E counts inside a short pair that bets so: its end is seconds away, and every look more is a chance more."""
_MOST_BET: Final = 0.9
"""So that one pair that a step of the load turned round does not lose all."""
_LEAST_EFFECT: Final = 1e-9
"""A figure that never moves shows no effect, and no time that it takes."""
_SURE: Final = 4.0
"""Standard errors that an effect must have before its relaxation is read off."""
_TAUS: Final = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.5, 8.0, 10.0, 13.0, 16.0, 20.0, 30.0, 60.0)


def shown_share(tau: float, period: float, discard: float) -> float:
    """Of an effect that relaxes with ``tau`` seconds, the share that the counted part of a period shows (f)."""
    if tau <= 0:
        return 1.0
    return 1 - tau * (math.exp(-discard / tau) - math.exp(-period / tau)) / (period - discard)


def estimated_share(shown: float) -> float:
    """Of an effect, the share that the estimate from pairs in random order holds: (3f - 1) / 2."""
    return (3 * shown - 1) / 2


def discard_for(tau: float) -> float:
    """Seconds at the start of each period that do not count."""
    return max(LEAST_DISCARD, math.ceil(DISCARDED_TAUS * tau))


def compare_figures(before: float | None, after: float | None, sign: int) -> float | None:
    """The ln ratio of arm B's figure over arm A's, plus is better (``sign`` +1 where more is); None where neither arm
    has a figure, or both have 0.

    An arm without a figure, in which nothing was completed, is the worse one by `ONE_SIDED`; a figure of 0 in one arm
    alone counts as much, by the metric's direction. The coin decides which arm it is, so that the test stays exact.
    """
    if before is None or after is None:
        return None if before is after else -ONE_SIDED if after is None else ONE_SIDED
    if min(before, after) <= 0:
        return None if max(before, after) <= 0 else sign * (ONE_SIDED if after > 0 else -ONE_SIDED)
    return sign * math.log(after / before)


def usual_differences(figures: Iterable[tuple[float, float | None]]) -> list[float]:
    """Sizes of the differences that short pairs would have shown, had nothing been switched: figures with their times
    in seconds since the start, one a second. Pairs overlap; those with a second without a figure above 0 are left out.
    """
    at_second = {round(at): value for at, value in figures if value is not None and value > 0}
    counted = range(round(PROBE_DISCARD), round(PROBE_SECONDS))
    found = []
    for start in range(min(at_second, default=0), max(at_second, default=0), _USUAL_STEP):
        halves = [[at_second.get(start + later + at) for at in counted] for later in (0, round(PROBE_SECONDS))]
        sums = [sum(value for value in half if value is not None) for half in halves if None not in half]
        if len(sums) == len(halves):
            found.append(abs(math.log(sums[1] / sums[0])))
    return found


class _UsualSizes:
    """How often differences come by themselves: a density of their sizes, as a sum of kernels with a heavy tail."""

    def __init__(self, sizes: Sequence[float]) -> None:
        ordered = sorted(sizes)
        middle = ordered[len(ordered) // 2]
        spread = math.sqrt(sum(size * size for size in ordered) / len(ordered))
        # half of normal values are within 0.6745 standard deviations
        self.width = _KERNEL_SHARE * min(spread, middle / 0.6745)
        self.largest = ordered[-1]
        self._sizes = ordered

    def bet_on(self, size: float, effect: float) -> float:
        """The bet with which E grows fastest if arm B is worse by ``effect``."""
        with_it, against_it = self._density(size - effect), self._density(size + effect)
        return min(_MOST_BET, (with_it - against_it) / (with_it + against_it))

    def _density(self, value: float) -> float:
        width = self.width
        kernels = sum(
            math.exp(-(((value - one) / width) ** 2) / 2) + math.exp(-(((value + one) / width) ** 2) / 2)
            for one in self._sizes
        )
        return kernels / (2 * len(self._sizes)) + _TAIL / (1 + abs(value) / width)


class HarmTest:
    """The e-process of one metric. Effects are ln ratios of B over A, plus is better. ``usual`` are the sizes that
    differences of short pairs have without a switch."""

    def __init__(self, usual: Sequence[float] = ()) -> None:
        self.sizes: list[float] = []
        self.effects: list[float] = []
        found = _UsualSizes(usual) if len(usual) >= _LEAST_USUAL else None
        self._usual = found if found is not None and found.width > 0 else None
        self._each = [1.0] * len(_HARMS)

    @property
    def evidence(self) -> float:
        """E."""
        return sum(self._each) / len(self._each)

    def look_ahead(self, effect: float, *, is_short: bool = False) -> float:
        """E, if the pair under way ended with this effect; of a short pair half of it, where the bets are by what is
        usual."""
        each = self._bet(effect, is_short=is_short)
        share = _LOOK_SHARE if is_short and self._usual is not None else 1.0
        return share * sum(each) / len(each)

    def add_pair(self, effect: float, *, is_short: bool = False) -> None:
        self._each = self._bet(effect, is_short=is_short)
        self.sizes.append(abs(effect))
        self.effects.append(effect)

    def _bet(self, effect: float, *, is_short: bool) -> list[float]:
        size, side = abs(effect), 1 if effect < 0 else -1
        if not size:
            return self._each
        rank = (1 + sum(one <= size for one in self.sizes)) / (1 + len(self.sizes))
        by_rank = HARM_BET * (1 + rank) / 2
        usual = self._usual if is_short else None
        if usual is None:
            return [one * (1 + by_rank * side) for one in self._each]
        # a size that was never seen says which arm is worse whatever the effect is, most of all an outage
        least = _MOST_BET if size > usual.largest + _HARMS[-1] else by_rank if size > usual.largest else 0.0
        return [
            one * (1 + max(least, usual.bet_on(size, harm)) * side)
            for one, harm in zip(self._each, _HARMS, strict=True)
        ]


class PeriodSeries(NamedTuple):
    """One period second by second: whether the change was active, and the figure of each second, None for none."""

    is_changed: bool
    values: Sequence[float | None]


def estimate_tau(pairs: Sequence[Sequence[PeriodSeries]]) -> float | None:
    """Seconds in which an effect relaxes, from periods in the order of time; None where none is sure enough.

    For each candidate the change is followed through all periods as a first-order lag, and fitted to the logarithms,
    each pair less its own mean so that a drift between the pairs does not count.
    """
    fits = [(fit, tau) for tau in _TAUS if (fit := _fit_lag(pairs, tau)) is not None]
    return max(fits)[1] if fits else None


def _fit_lag(pairs: Sequence[Sequence[PeriodSeries]], tau: float) -> float | None:
    """How much of the squares the lag explains; None where its effect is not sure."""
    state, products, squares = 0.0, [], []
    step = 1 - math.exp(-1 / tau) if tau > 0 else 1.0
    for periods in pairs:
        inputs, logs = [], []
        for period in periods:
            for value in period.values:
                state += (period.is_changed - state) * step
                if value is not None and value > 0:
                    inputs.append(state)
                    logs.append(math.log(value))
        if not logs:
            continue
        mean_input, mean_log = sum(inputs) / len(inputs), sum(logs) / len(logs)
        products.append(sum((x - mean_input) * (y - mean_log) for x, y in zip(inputs, logs, strict=True)))
        squares.append(sum((x - mean_input) ** 2 for x in inputs))
    total = sum(squares)
    if total <= 0 or len(squares) < 4:
        return None
    effect = sum(products) / total
    # The error by pairs: seconds of one pair depend on each other.
    spread = math.sqrt(sum((xy - effect * xx) ** 2 for xy, xx in zip(products, squares, strict=True)))
    is_sure = abs(effect) > _LEAST_EFFECT and abs(effect) * total >= _SURE * spread
    return effect * effect * total if is_sure else None
