"""What a live session reads each second: the host's counters and the user's own figures; and the limits on them."""

from __future__ import annotations

import math
import operator
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from advisor.errors import UsageError
from advisor.host import Host
from advisor.host.patterns import lazy_regex
from advisor.proof.command_runner import CommandProcess, ask_server
from advisor.proof.metrics import HostCounters, Reading
from advisor.proof.own_command import CommandMetric, MetricError, OwnCommand
from advisor.proof.process import Stop

# Switchback periods under the traffic that is there: how long an effect takes, what of it is missed, and harm. Pure.

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


_LIMIT = lazy_regex(r"\s*([A-Za-z][A-Za-z0-9_.-]{0,39})\s*([<>]=?)\s*([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*", re.ASCII)
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


class Limit(msgspec.Struct, frozen=True):
    """A figure beyond which the change is withdrawn at once: ``p99_ms > 20``."""

    metric: str
    sign: str
    bound: float

    @property
    def words(self) -> str:
        return f"{self.metric} {self.sign} {self.bound:g}"

    def is_exceeded(self, value: float) -> bool:
        return _COMPARISONS[self.sign](value, self.bound)


def parse_limits(given: Sequence[str], metrics: Sequence[CommandMetric]) -> tuple[Limit, ...]:
    """The limits of ``--abort-if``. Raises UsageError for one that is none, or of a metric that is not read."""
    found = []
    for text in given:
        match = _LIMIT.fullmatch(text)
        if match is None:
            raise UsageError(
                f"--abort-if {text[:80]}: expected METRIC > NUMBER or METRIC < NUMBER",
                hint="such as --abort-if 'p99 > 20'",
            )
        if match[1] not in [one.name for one in metrics]:
            raise UsageError(
                f"--abort-if {text}: {match[1]} is not read",
                hint=f"read here: {', '.join(one.name for one in metrics)}",
            )
        found.append(Limit(match[1], match[2], float(match[3])))
    return tuple(found)


class LiveClock(Protocol):
    """A steady clock that can be waited on."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None:
        """Wait. Raises StoppedError soon after a signal."""


class LiveSource:
    """All metrics of a session; ``process`` runs the commands of those that have one."""

    def __init__(self, host: Host, live: OwnCommand, disks: Sequence[str], process: CommandProcess, stop: Stop) -> None:
        self._live = live
        self._process = process
        self._stop = stop
        self._host_names = {one.expression: one.name for one in live.metrics if one.kind == "host"}
        self._host_counters = HostCounters(host, self._host_names, disks)
        self._counts: dict[str, tuple[float, float]] = {}

    def read_since(self, clock: LiveClock) -> Reading:
        """What happened since the call before, each metric as a numerator and a denominator.

        Raises MetricError where one has no figure or was reset, RunFailedError where a command fails or hangs, and
        StoppedError.
        """
        try:
            counted = self._host_counters.read_since(clock.now())
        except ValueError as error:
            raise MetricError(f"a figure of the host cannot be read: {error!s}") from None
        found = {self._host_names[name]: pair for name, pair in counted.items()}
        for metric in self._live.metrics:
            match metric.kind:
                case "command":
                    found[metric.name] = (self._run(metric), 1.0)
                case "counter":
                    found |= self._count(metric, clock)
        return found

    def read_period(self, seconds: float) -> Reading:
        """What servers say about the last so many seconds, asked once at the end of a period. Raises MetricError."""
        began = time.monotonic() - seconds
        asked = [one for one in self._live.metrics if one.kind == "prom"]
        return {one.name: (ask_server(one, began, self._stop), 1.0) for one in asked}

    def _run(self, metric: CommandMetric) -> float:
        return self._process.run_metric(metric, self._live.timeout_seconds, self._stop)

    def _count(self, metric: CommandMetric, clock: LiveClock) -> dict[str, tuple[float, float]]:
        """A count less the one before, over the seconds between."""
        count, at = self._run(metric), clock.now()
        before = self._counts.get(metric.name)
        self._counts[metric.name] = (count, at)
        if before is None:
            return {}
        if count < before[0]:
            raise MetricError(
                f"metric {metric.name} fell from {before[0]:g} to {count:g}: its counter was reset, or the "
                "service restarted"
            )
        return {metric.name: (count - before[0], at - before[1])}


def figure_of(pair: tuple[float, float] | None) -> float | None:
    """Numerator over denominator; None where nothing happened."""
    return pair[0] / pair[1] if pair is not None and pair[1] > 0 else None
