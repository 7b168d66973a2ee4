"""One measured series of a host as it is: its records, and the figures that follow from them. Pure.

A `Series` is what was measured, a `Bench` what is said about it; ``summarise_series`` leads from one to the other,
so a saved series always gives the same figures again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from advisor.proof.covariates import CalmGate
from advisor.proof.metrics import METRICS, HostIdentity, Metric, MetricName
from advisor.proof.own_command import COMMAND_WORKLOAD, OwnCommand
from advisor.proof.records import Ended, FioRun
from advisor.proof.schedule import Schedule
from advisor.proof.statistics import (
    MINIMUM_RUNS,
    coefficient_of_variation,
    holm,
    mann_whitney,
    median,
    median_absolute_deviation,
    median_interval,
    noise_floor,
)
from advisor.proof.workloads import get_workload, split_threads

Quality = Literal["sound", "indicative", "invalid"]

CONFIDENCE = 0.95
DRIFT_LEVEL = 0.01
KNEE_SHARE = 0.95


class Round(msgspec.Struct, frozen=True):
    """One run of each workload, in the order of ``runs``, which was drawn. A contaminated round that was repeated is
    ``superseded`` and kept."""

    index: int
    attempt: int
    runs: tuple[FioRun, ...]
    contaminated: bool = False
    superseded: bool = False
    whole: bool = True


class Series(msgspec.Struct, frozen=True):
    """All that was measured. ``schedule.pairs`` counts the rounds that were laid out; every run is of arm A."""

    workloads: tuple[str, ...]
    schedule: Schedule
    seed: int
    target: str
    file_system: str
    device: str | None
    fio_version: str
    started: str
    host: HostIdentity | None = None
    gate: CalmGate = CalmGate()
    forced: bool = False
    warm_up: tuple[FioRun, ...] = ()
    rounds: tuple[Round, ...] = ()
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    ended: Ended = "complete"
    seconds: float = 0.0
    bytes_written: int = 0
    options: tuple[str, ...] = ()
    """The other options of the call, word by word: with them it measures the same again."""
    command: OwnCommand | None = None
    """What was run in place of fio; the only workload is ``command`` then."""

    @property
    def measured(self) -> tuple[tuple[str, Metric], ...]:
        """What is summarised: each workload with its own metric, or a command with each of its metrics."""
        if self.command is not None:
            return tuple((COMMAND_WORKLOAD, one.described) for one in self.command.metrics)
        return tuple((name, METRICS[get_workload(name).metric]) for name in self.workloads)


class WorkloadSeries(msgspec.Struct, frozen=True):
    """One workload over all runs that count.

    ``median`` and ``interval`` are of the workload's own metric in ``unit``; the interval holds the true median with
    the probability ``confidence`` exactly, for independent runs. ``mad`` (median absolute deviation) is in ``unit``,
    ``cv`` (coefficient of variation) a fraction, and so is ``noise_floor``: two single runs, nothing changed between
    them, lie further apart than that in about 5 % of cases. The others are medians over the runs.
    """

    name: str
    metric: MetricName
    unit: str
    better: Literal["higher", "lower"]
    runs: int = 0
    median: float | None = None
    interval: tuple[float, float] | None = None
    confidence: float | None = None
    mad: float | None = None
    cv: float | None = None
    noise_floor: float | None = None
    iops: float | None = None
    bandwidth_mb_per_s: float | None = None
    latency_p50_us: float | None = None
    latency_p95_us: float | None = None
    latency_p99_us: float | None = None
    cpu_us_per_io: float | None = None
    cpu_percent: float | None = None
    """CPU time of the I/O threads, in percent of one CPU."""

    @property
    def described(self) -> Metric:
        """Its metric, with unit and direction."""
        return Metric(self.metric, self.unit, self.better)


class Sweep(msgspec.Struct, frozen=True):
    """One workload with several numbers of threads, fewest first. ``knee`` is the smallest number whose median reaches
    95 % of the largest one; None where that is the most that was measured, so that the knee may lie beyond."""

    workload: str
    metric: MetricName
    unit: str
    threads: tuple[int, ...]
    medians: tuple[float, ...]
    knee: int | None


class Bench(msgspec.Struct, frozen=True):
    """The result; its JSON is ``advisor.bench/1``. ``reasons`` say why the quality is not ``sound``, ``saved_to``
    names the file that holds every run."""

    quality: Quality
    workloads: tuple[WorkloadSeries, ...]
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    contaminated_share: float
    gate: CalmGate
    seed: int
    series: Series
    sweeps: tuple[Sweep, ...] = ()
    saved_to: str | None = None
    schema: Literal["advisor.bench/1"] = "advisor.bench/1"


def counted_rounds(series: Series) -> tuple[Round, ...]:
    """The rounds that enter the figures: whole, and not repeated because of contamination."""
    return tuple(one for one in series.rounds if one.whole and not one.superseded)


def values_of(series: Series, workload: str, metric: MetricName) -> tuple[float, ...]:
    """A metric of a workload, run by run in the order of time; values of zero are left out."""
    runs = [run for one in counted_rounds(series) for run in one.runs if run.workload == workload]
    values = (run.figures.value(metric) for run in runs)
    return tuple(value for value in values if value > 0)


def summarise_series(series: Series) -> Bench:
    """The figures that follow from a series, and how far they can be relied on."""
    reasons = list(series.faults)
    invalid = reasons
    indicative = _indicative_reasons(series)
    measured = tuple(_summarise_workload(series, name, metric) for name, metric in series.measured)
    notes = []
    left = sum(1 for one in counted_rounds(series) if one.contaminated)
    if left:
        notes.append(f"{left} contaminated rounds are included: there was no room to repeat them")
    return Bench(
        quality="invalid" if invalid else "indicative" if indicative else "sound",
        workloads=measured,
        sweeps=tuple(sweeps_of(measured)),
        reasons=(*invalid, *indicative),
        notes=(*series.notes, *[*notes, *_drift_notes(series)]),
        contaminated_share=contaminated_share(series),
        gate=series.gate,
        seed=series.seed,
        series=series,
    )


def _summarise_workload(series: Series, name: str, described: Metric) -> WorkloadSeries:
    values = values_of(series, name, described.name)
    empty = WorkloadSeries(name, described.name, described.unit, described.better)
    if not values:
        return empty
    interval = median_interval(values, CONFIDENCE)
    runs = [run.figures for one in counted_rounds(series) for run in one.runs if run.workload == name]
    percent_values = [
        one.cpu_us_per_io * one.ios / one.runtime_seconds / 1e4 for one in runs if one.runtime_seconds > 0
    ]
    return msgspec.structs.replace(
        empty,
        runs=len(values),
        median=interval.estimate,
        interval=(interval.low, interval.high),
        confidence=interval.confidence,
        mad=median_absolute_deviation(values),
        cv=coefficient_of_variation(values),
        noise_floor=noise_floor([math.log(value) for value in values]),
        iops=_median_of(series, name, "iops"),
        bandwidth_mb_per_s=_median_of(series, name, "bandwidth"),
        latency_p50_us=_median_of(series, name, "latency_p50"),
        latency_p95_us=_median_of(series, name, "latency_p95"),
        latency_p99_us=_median_of(series, name, "latency_p99"),
        cpu_us_per_io=_median_of(series, name, "cpu_per_io"),
        cpu_percent=median(percent_values) if percent_values else None,
    )


def _median_of(series: Series, name: str, metric: MetricName) -> float | None:
    values = values_of(series, name, metric)
    return median(values) if values else None


def sweeps_of(measured: Iterable[WorkloadSeries]) -> Iterator[Sweep]:
    """A sweep for each workload that was run with two numbers of threads or more."""
    found: dict[str, list[tuple[int, WorkloadSeries]]] = {}
    for one in measured:
        name, threads = split_threads(one.name)
        if threads is not None and one.median is not None:
            found.setdefault(name, []).append((threads, one))
    for name, points in found.items():
        if len(points) < 2:
            continue
        points.sort(key=lambda point: point[0])
        medians = tuple(one.median or 0.0 for _, one in points)
        counts = tuple(count for count, _ in points)
        knee = next(count for count, value in zip(counts, medians, strict=True) if value >= KNEE_SHARE * max(medians))
        first = points[0][1]
        yield Sweep(name, first.metric, first.unit, counts, medians, None if knee == counts[-1] else knee)


def contaminated_share(series: Series) -> float:
    """Share of all attempts at a round that were flagged."""
    whole = [one for one in series.rounds if one.whole]
    return sum(one.contaminated for one in whole) / len(whole) if whole else 0.0


def _indicative_reasons(series: Series) -> list[str]:
    reasons = []
    if series.ended == "interrupted":
        reasons.append("the series was interrupted")
    count = len(counted_rounds(series))
    if count < MINIMUM_RUNS:
        rounds = "1 round" if count == 1 else f"{count} rounds"
        reasons.append(f"{rounds}; fewer than {MINIMUM_RUNS} give no 95 % interval")
    return reasons


def _drift_notes(series: Series) -> list[str]:
    """Workloads whose second half differs from the first: their runs are not independent, whatever moved them."""
    halves = [_split_halves(values_of(series, name, metric.name)) for name, metric in series.measured]
    adjusted = holm([mann_whitney(first, second) for first, second in halves])
    return [
        f"{name if series.command is None else metric.name} changed by"
        f" {median(second) / median(first) - 1:+.0%} from the first half of the series to the second"
        f" (p = {p:.4f}): its interval takes the runs for independent, so it is too narrow"
        for (name, metric), (first, second), p in zip(series.measured, halves, adjusted, strict=True)
        if p < DRIFT_LEVEL
    ]


def _split_halves(values: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    middle = len(values) // 2
    return values[:middle], values[middle:]
