"""Switchback periods under the traffic that is there: how long an effect takes, what of it is missed, and harm. Pure.

A value is switched in periods of length L whose first b seconds are discarded, in pairs in the order of a fair coin.
With a relaxation time tau a period shows the share f of the effect, and on average over the orders the estimate holds
(3f - 1) / 2 of it: the second arm of a pair always follows the other one, the first one half the time.

Next to the test for a gain runs one for a loss, an e-process: after each pair E is multiplied by 1 + b * s, where s is
the sign, +1 where arm B is worse, and b the bet on it, which may depend on the size of the difference and on all that
was before. Given the sizes the coin makes s fair, so that E reaches 20 after a pair in at most 5 % of sessions without
an effect, however many there are (Ville 1939; Ramdas et al., Statist. Sci. 38 (2023)).

b is 0.8 times the mean of 1 and the relative rank of this size among those so far (ranks alone take a pair more to show
what is plain).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

HARM_LEVEL = 20.0
"""E from which a value is withdrawn: 1 over 5 %."""
HARM_BET = 0.8
PROBE_SECONDS = 9.0
PROBE_DISCARD = 2.0
PROBE_PAIRS = 10
"""Short periods first: harm that is large shows within three minutes, and so does how long an effect takes."""
ASSUMED_TAU = 3.0
"""Seconds, where no effect was large enough to see how long it takes."""
DISCARDED_TAUS = 3.0
LEAST_DISCARD = 3.0
MOST_DISCARDED_SHARE = 0.5
ONE_SIDED = 100.0
"""Effect of a pair with a figure in one arm only: larger than any ln ratio of figures, and finite."""
_LEAST_EFFECT = 1e-9
"""A figure that never moves shows no effect, and no time that it takes."""
_SURE = 4.0
"""Standard errors that an effect must have before its relaxation is read off."""
_TAUS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.5, 8.0, 10.0, 13.0, 16.0, 20.0, 30.0, 60.0)


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


class HarmTest:
    """The e-process of one metric. Effects are ln ratios of B over A, plus is better."""

    def __init__(self) -> None:
        self.effects: list[float] = []
        self.evidence = 1.0
        """E."""

    def look_ahead(self, effect: float) -> float:
        """Return E, if the pair under way ended with this effect."""
        size = abs(effect)
        if not size:
            return self.evidence
        rank = (1 + sum(abs(one) <= size for one in self.effects)) / (1 + len(self.effects))
        return self.evidence * (1 + HARM_BET * (1 + rank) / 2 * (1 if effect < 0 else -1))

    def add_pair(self, effect: float) -> None:
        self.evidence = self.look_ahead(effect)
        self.effects.append(effect)


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
