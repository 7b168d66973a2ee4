"""What a live session reads each second: the host's counters and the user's own figures; and the limits on them."""

from __future__ import annotations

import operator
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from advisor.errors import UsageError
from advisor.host import Host
from advisor.host.patterns import lazy_regex
from advisor.proof.command_runner import CommandProcess, ask_server
from advisor.proof.host_metrics import HostCounters, Reading
from advisor.proof.interrupt import Stop
from advisor.proof.own_command import CommandMetric, MetricError, OwnCommand

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
