"""Two saved series against each other. Pure: from the stored runs alone.

The runs of the two were not interleaved, so whatever else changed between them counts as well, and no test can separate
the causes. The verdict is therefore ``indicative`` at most; what the figures alone would say is the ``tendency``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from advisor.errors import InvalidInputError
from advisor.proof.archive import Saved, SavedBench
from advisor.proof.identity import HostIdentity
from advisor.proof.metrics import METRICS, MetricName
from advisor.proof.records import Ended, FioRun, Session, Verdict, measured_workloads
from advisor.proof.schedule import MODES, Schedule
from advisor.proof.series import Series, counted_rounds, summarise_series
from advisor.proof.statistics import holm, median
from advisor.proof.two_sample import (
    MINIMUM_RUNS,
    hodges_lehmann_shift,
    is_shift_within,
    mann_whitney,
    minimum_detectable_shift,
)
from advisor.proof.verdict import counted_pairs, decide_session
from advisor.proof.workloads import get_workload

ALPHA = 0.05
EQUIVALENCE_RUNS = 16
NOT_INTERLEAVED = (
    "the two series were measured one after the other, not interleaved: whatever else changed between them counts as"
    " well. Where nothing had been changed, such a comparison called a difference in 8 to 15 % of cases while a host"
    " was calm, and in 97 to 100 % when its load had stepped once. advisor prove interleaves"
)
"""Measured on a virtual machine; ``tests/proof/test_error_rates.py`` shows the second in a simulation."""


class ComparedSeries(msgspec.Struct, frozen=True):
    """One of the two series, without its runs. ``source`` is the file; of a proof only arm A, the host as it was."""

    source: str
    kind: Literal["bench", "proof"]
    workloads: tuple[str, ...]
    rounds: int
    target: str
    file_system: str
    device: str | None
    fio_version: str
    started: str
    seconds: float
    seed: int
    schedule: Schedule
    ended: Ended
    forced: bool
    host: HostIdentity | None = None
    faults: tuple[str, ...] = ()
    profile: str | None = None


class MetricDifference(msgspec.Struct, frozen=True):
    """One metric of one workload: B over A.

    ``ratio`` is the Hodges-Lehmann estimate, ``ci95`` its interval with the level ``confidence`` really achieved,
    ``effect`` the same as a fraction in the direction of better. ``p_value`` is the exact Mann-Whitney p, not adjusted;
    ``p_holm`` is over the workloads. ``runs`` are those of A and of B.
    """

    name: str
    metric: MetricName
    unit: str
    better: Literal["higher", "lower"]
    runs: tuple[int, int] = (0, 0)
    before: float | None = None
    after: float | None = None
    ratio: float | None = None
    ci95: tuple[float, float] | None = None
    confidence: float | None = None
    effect: float | None = None
    p_value: float | None = None
    p_holm: float | None = None
    minimum_detectable_effect: float | None = None
    margin: float | None = None
    verdict: Verdict | None = None


class SeriesComparison(msgspec.Struct, frozen=True):
    """The result; its JSON is ``advisor.comparison/1``. ``tendency`` is what the figures alone would say, ``reasons``
    why the verdict is not that, ``notes`` what else the two do not have in common."""

    verdict: Verdict
    tendency: Verdict
    workloads: tuple[MetricDifference, ...]
    explored: tuple[MetricDifference, ...]
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    alpha: float
    a: ComparedSeries
    b: ComparedSeries
    schema: Literal["advisor.comparison/1"] = "advisor.comparison/1"

    @property
    def is_worse(self) -> bool:
        """Whether any workload is significantly worse in B."""
        return any(one.verdict == "loss" for one in self.workloads)


class _Runs(msgspec.Struct, frozen=True):
    """A side with the runs that count, and why they might count for nothing."""

    side: ComparedSeries
    runs: tuple[FioRun, ...]
    invalid: tuple[str, ...]

    def values(self, name: str, metric: MetricName) -> tuple[float, ...]:
        found = (run.figures.value(metric) for run in self.runs if run.workload == name)
        return tuple(value for value in found if value > 0)


# -- the two sides -----------------------------------------------------------------------------------------------------


def compare(a: Saved | SavedBench, b: Saved | SavedBench, sources: tuple[str, str] = ("A", "B")) -> SeriesComparison:
    """B against A, workload by workload. Raises InvalidInputError where they have no workload in common."""
    first, second = _runs_of(a, sources[0]), _runs_of(b, sources[1])
    common = [name for name in first.side.workloads if name in second.side.workloads]
    if not common:
        raise InvalidInputError(
            (
                f"{sources[0]} and {sources[1]} have no workload in common: {', '.join(first.side.workloads)}; "
                f"{', '.join(second.side.workloads)}"
            ),
            hint="measure the same workload again: advisor bench --workload NAME",
        )
    judged = _judge_workloads(first, second, common)
    invalid = (*_prefix_reasons("A", first.invalid), *_prefix_reasons("B", second.invalid))
    tendency: Verdict
    verdicts = [one.verdict for one in judged]
    if "gain" in verdicts:
        tendency = "gain-with-cost" if "loss" in verdicts else "gain"
    elif "loss" in verdicts:
        tendency = "loss"
    else:
        tendency = "no-difference" if all(verdict == "no-difference" for verdict in verdicts) else "inconclusive"
    settled: Verdict = "inconclusive" if tendency == "inconclusive" else "indicative"
    # The other metrics: shown without a p value.
    found = [
        _metric_difference(first, second, name, metric.name)
        for name in common
        for metric in METRICS.values()
        if metric.name != get_workload(name).metric
    ]
    return SeriesComparison(
        verdict="invalid" if invalid else settled,
        tendency=tendency,
        workloads=judged,
        explored=tuple(msgspec.structs.replace(one, p_value=None) for one in found if one.ratio is not None),
        reasons=(*invalid, NOT_INTERLEAVED),
        notes=tuple(_list_notes(first.side, second.side, common)),
        alpha=ALPHA,
        a=first.side,
        b=second.side,
    )


def _prefix_reasons(letter: str, reasons: Iterable[str]) -> Iterable[str]:
    return (f"{letter}: {reason}" for reason in reasons)


def _runs_of(saved: Saved | SavedBench, source: str) -> _Runs:
    if isinstance(saved, SavedBench):
        series = saved.bench.series
        found, rounds = summarise_series(series), counted_rounds(series)
        side = _compared_side(series, source, "bench", series.workloads, len(rounds))
        runs = tuple(run for one in rounds for run in one.runs)
        return _Runs(side, runs, found.reasons if found.quality == "invalid" else ())
    return _of_session(saved.proof.session, source)


def _of_session(session: Session, source: str) -> _Runs:
    found, pairs = decide_session(session), counted_pairs(session)
    side = _compared_side(
        session, source, "proof", measured_workloads(session.subject), len(pairs), session.subject.profile
    )
    runs = tuple(run for pair in pairs for run in pair.runs if run.arm == "A")
    return _Runs(side, runs, found.reasons if found.verdict == "invalid" else ())


def _compared_side(
    of: Series | Session,
    source: str,
    kind: Literal["bench", "proof"],
    workloads: tuple[str, ...],
    rounds: int,
    profile: str | None = None,
) -> ComparedSeries:
    return ComparedSeries(
        source=source,
        kind=kind,
        workloads=workloads,
        rounds=rounds,
        target=of.target,
        file_system=of.file_system,
        device=of.device,
        fio_version=of.fio_version,
        started=of.started,
        seconds=of.seconds,
        seed=of.seed,
        schedule=of.schedule,
        ended=of.ended,
        forced=of.forced,
        host=of.host,
        faults=of.faults,
        profile=profile,
    )


# -- figures -----------------------------------------------------------------------------------------------------------


def _metric_difference(first: _Runs, second: _Runs, name: str, metric: MetricName) -> MetricDifference:
    """One metric, not judged yet."""
    described = METRICS[metric]
    before, after = first.values(name, metric), second.values(name, metric)
    empty = MetricDifference(name, metric, described.unit, described.better, runs=(len(before), len(after)))
    if not before or not after:
        return empty
    shift = hodges_lehmann_shift(_signed_logs(before, described.sign), _signed_logs(after, described.sign), 0.95)[0]
    bounds = sorted(math.exp(described.sign * bound) for bound in (shift.low, shift.high))
    return msgspec.structs.replace(
        empty,
        before=median(before),
        after=median(after),
        ratio=math.exp(described.sign * shift.estimate),
        ci95=(bounds[0], bounds[1]),
        confidence=shift.confidence,
        effect=math.expm1(shift.estimate),
        p_value=mann_whitney(before, after),
    )


def _signed_logs(values: Sequence[float], sign: int) -> list[float]:
    """Turned so that plus is better."""
    return [sign * math.log(value) for value in values]


def _judge_workloads(first: _Runs, second: _Runs, names: Sequence[str]) -> tuple[MetricDifference, ...]:
    """Each workload in its own metric, tested together: Holm over the workloads."""
    found = [_metric_difference(first, second, name, get_workload(name).metric) for name in names]
    adjusted = holm([1.0 if one.p_value is None else one.p_value for one in found])
    margin = max(MODES[side.schedule.mode].margin for side in (first.side, second.side))
    judged = []
    for one, p_holm in zip(found, adjusted, strict=True):
        before, after = first.values(one.name, one.metric), second.values(one.name, one.metric)
        sign = METRICS[one.metric].sign
        logs = _signed_logs(before, sign), _signed_logs(after, sign)
        judged.append(
            msgspec.structs.replace(
                one,
                p_holm=p_holm,
                minimum_detectable_effect=minimum_detectable_shift(*logs, ALPHA / len(names)),
                margin=margin,
                verdict=_workload_verdict(one, p_holm, *logs, margin),
            )
        )
    return tuple(judged)


def _workload_verdict(
    one: MetricDifference, p_holm: float, before: list[float], after: list[float], margin: float
) -> Verdict:
    if one.ci95 is None or one.effect is None:
        return "inconclusive"
    if p_holm <= ALPHA and not one.ci95[0] <= 1 <= one.ci95[1]:
        return "gain" if one.effect > 0 else "loss"
    if min(len(before), len(after)) >= EQUIVALENCE_RUNS and is_shift_within(before, after, margin):
        return "no-difference"
    return "inconclusive"


# -- what they do not have in common -----------------------------------------------------------------------------------


def _list_notes(a: ComparedSeries, b: ComparedSeries, common: Sequence[str]) -> Iterable[str]:
    if (a.kind, a.started, a.seed, a.host, a.target) == (b.kind, b.started, b.seed, b.host, b.target):
        yield "A and B are the same series: nothing can follow from that"
    yield from _host_notes(a.host, b.host)
    for what, first, second in (
        ("targets", _place_text(a), _place_text(b)),
        ("fio versions", a.fio_version, b.fio_version),
        ("lengths of a run", f"{a.schedule.seconds_per_run:g} s", f"{b.schedule.seconds_per_run:g} s"),
        ("sizes of the scratch file", _format_mib(a.schedule.scratch_bytes), _format_mib(b.schedule.scratch_bytes)),
        (
            "bytes that a run may write",
            _format_mib(a.schedule.run_write_bytes),
            _format_mib(b.schedule.run_write_bytes),
        ),
    ):
        if first != second:
            yield f"different {what}: A {first}, B {second}"
    for letter, side, other in (("A", a, "B"), ("B", b, "A")):
        left_out = [name for name in side.workloads if name not in common]
        if left_out:
            yield f"{other} has no runs of {', '.join(left_out)}: left out"
        if side.forced:
            yield f"{letter} was measured on a busy host by --force"
        if side.ended == "interrupted":
            yield f"{letter} was interrupted"
        if side.kind == "proof":
            yield f"{letter} is arm A of a proof of {side.profile}: the host as it was, with the other arm in between"
        if side.rounds < MINIMUM_RUNS:
            yield f"{letter} has {side.rounds} rounds only"


def _place_text(side: ComparedSeries) -> str:
    return f"{side.target} ({side.file_system}{f' on {side.device}' if side.device else ''})"


def _format_mib(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 20):.0f} MiB"


def _host_notes(a: HostIdentity | None, b: HostIdentity | None) -> Iterable[str]:
    if a is None or b is None or a.machine is None or b.machine is None:
        yield "whether both were measured on the same host is not known"
    elif a.machine != b.machine:
        yield f"different hosts: A {_host_name(a)}, B {_host_name(b)}, by their machine ids"
    if a is not None and b is not None:
        for what, first, second in (("kernels", a.kernel, b.kernel), ("versions of advisor", a.version, b.version)):
            if first != second:
                yield f"different {what}: A {first or 'unknown'}, B {second or 'unknown'}"


def _host_name(host: HostIdentity) -> str:
    return host.name or "without a name"
