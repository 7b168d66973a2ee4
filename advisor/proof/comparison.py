"""Two saved series against each other: one row for each workload. Pure: from the stored runs alone.

The runs of the two were not interleaved, so whatever else changed between them counts as well: nothing is proven.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from advisor.errors import InvalidInputError
from advisor.proof.archive import Saved, SavedBench
from advisor.proof.metrics import METRICS, HostIdentity, MetricName
from advisor.proof.records import FioRun, Session, measured_workloads
from advisor.proof.series import Series, counted_rounds, summarise_series
from advisor.proof.statistics import MINIMUM_RUNS, holm, mann_whitney, median, median_absolute_deviation
from advisor.proof.verdict import counted_pairs, decide_session
from advisor.proof.workloads import get_workload

ALPHA = 0.05
NOT_INTERLEAVED = (
    "the two series were measured one after the other, not interleaved: whatever else changed between them counts as"
    " well. Where nothing had been changed, such a comparison called a difference in 8 to 15 % of cases while a host"
    " was calm, and in 97 to 100 % when its load had stepped once. advisor prove interleaves"
)
"""Measured on a virtual machine."""

Outcome = Literal["better", "worse", "inconclusive"]


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
    run_seconds: float
    scratch_bytes: int
    started: str
    seed: int
    host: HostIdentity | None = None


class WorkloadDifference(msgspec.Struct, frozen=True):
    """One workload in its own metric: medians and median absolute deviations of A and B in ``unit``, and B over A.

    ``p_value`` is the exact Mann-Whitney p, ``p_holm`` the same adjusted for the number of workloads.
    """

    name: str
    metric: MetricName
    unit: str
    better: Literal["higher", "lower"]
    runs: tuple[int, int]
    medians: tuple[float, float] | None = None
    spreads: tuple[float, float] | None = None
    ratio: float | None = None
    p_value: float = 1.0
    p_holm: float = 1.0
    outcome: Outcome = "inconclusive"


class SeriesComparison(msgspec.Struct, frozen=True):
    """The result; its JSON is ``advisor.comparison/1``. ``reasons`` say why it is no proof, ``notes`` what else the two
    do not have in common."""

    verdict: Literal["indicative", "invalid"]
    workloads: tuple[WorkloadDifference, ...]
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    alpha: float
    a: ComparedSeries
    b: ComparedSeries
    schema: Literal["advisor.comparison/1"] = "advisor.comparison/1"

    @property
    def is_worse(self) -> bool:
        """Whether any workload is significantly worse in B."""
        return any(one.outcome == "worse" for one in self.workloads)


class _Runs(msgspec.Struct, frozen=True):
    """A side with the runs that count, and why they might count for nothing."""

    side: ComparedSeries
    runs: tuple[FioRun, ...]
    invalid: tuple[str, ...]
    notes: tuple[str, ...]


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
    invalid = [f"{letter}: {reason}" for letter, one in (("A", first), ("B", second)) for reason in one.invalid]
    return SeriesComparison(
        verdict="invalid" if invalid else "indicative",
        workloads=_judge_workloads([_workload_difference(first, second, name) for name in common]),
        reasons=(*invalid, NOT_INTERLEAVED),
        notes=tuple(_list_notes(first, second, common)),
        alpha=ALPHA,
        a=first.side,
        b=second.side,
    )


def _runs_of(saved: Saved | SavedBench, source: str) -> _Runs:
    if isinstance(saved, SavedBench):
        series = saved.bench.series
        rounds, found = counted_rounds(series), summarise_series(series)
        side = _compared_side(series, source, "bench", series.workloads, len(rounds))
        runs = [run for one in rounds for run in one.runs]
        return _Runs(side, tuple(runs), found.reasons if found.quality == "invalid" else (), tuple(_doubts(series)))
    session = saved.proof.session
    decided, pairs = decide_session(session), counted_pairs(session)
    side = _compared_side(session, source, "proof", measured_workloads(session.subject), len(pairs))
    runs = [run for pair in pairs for run in pair.runs if run.arm == "A"]
    profile = f"is arm A of a proof of {session.subject.profile}: the host as it was, with the other arm in between"
    invalid = decided.reasons if decided.verdict == "invalid" else ()
    return _Runs(side, tuple(runs), invalid, (*_doubts(session), profile))


def _doubts(of: Series | Session) -> Iterable[str]:
    if of.forced:
        yield "was measured on a busy host"
    if of.ended == "interrupted":
        yield "was interrupted"


def _compared_side(
    of: Series | Session, source: str, kind: Literal["bench", "proof"], workloads: tuple[str, ...], rounds: int
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
        run_seconds=of.schedule.seconds_per_run,
        scratch_bytes=of.schedule.scratch_bytes,
        started=of.started,
        seed=of.seed,
        host=of.host,
    )


def _workload_difference(first: _Runs, second: _Runs, name: str) -> WorkloadDifference:
    """One workload, not judged yet."""
    metric = METRICS[get_workload(name).metric]
    before, after = (
        [value for run in side.runs if run.workload == name and (value := run.figures.value(metric.name)) > 0]
        for side in (first, second)
    )
    empty = WorkloadDifference(name, metric.name, metric.unit, metric.better, (len(before), len(after)))
    if not before or not after:
        return empty
    medians = (median(before), median(after))
    return msgspec.structs.replace(
        empty,
        medians=medians,
        spreads=(median_absolute_deviation(before), median_absolute_deviation(after)),
        ratio=medians[1] / medians[0],
        p_value=mann_whitney(before, after),
    )


def _judge_workloads(found: Sequence[WorkloadDifference]) -> tuple[WorkloadDifference, ...]:
    """Each workload with its outcome, tested together: Holm over the workloads."""
    judged = []
    for one, p_holm in zip(found, holm([one.p_value for one in found]), strict=True):
        outcome: Outcome = "inconclusive"
        if one.ratio is not None and p_holm <= ALPHA:
            outcome = "better" if (one.ratio > 1) == (one.better == "higher") else "worse"
        judged.append(msgspec.structs.replace(one, p_holm=p_holm, outcome=outcome))
    return tuple(judged)


def _list_notes(first: _Runs, second: _Runs, common: Sequence[str]) -> Iterable[str]:
    a, b = first.side, second.side
    if (a.kind, a.started, a.seed, a.host, a.target) == (b.kind, b.started, b.seed, b.host, b.target):
        yield "A and B are the same series: nothing can follow from that"
    if not all(host is not None and host.machine for host in (a.host, b.host)):
        yield "whether both were measured on the same host is not known"
    described = [_described(side) for side in (a, b)]
    for what, before in described[0].items():
        if before != (after := described[1][what]) and None not in (before, after):
            yield f"different {what}: A {before}, B {after}"
    for letter, one, other in (("A", first, "B"), ("B", second, "A")):
        if left_out := [name for name in one.side.workloads if name not in common]:
            yield f"{other} has no runs of {', '.join(left_out)}: left out"
        yield from (f"{letter} {note}" for note in one.notes)
        if one.side.rounds < MINIMUM_RUNS:
            yield f"{letter} has {one.side.rounds} rounds only"


def _described(side: ComparedSeries) -> dict[str, str | None]:
    """What both should have in common, each as words; None for what is not known."""
    host = side.host
    device = f" on {side.device}" if side.device else ""
    return {
        "machine ids": None if host is None or not host.machine else host.machine[:8],
        "kernels": None if host is None else host.kernel,
        "versions of advisor": None if host is None else host.version,
        "targets": f"{side.target} ({side.file_system}{device})",
        "fio versions": side.fio_version,
        "lengths of a run": f"{side.run_seconds:g} s",
        "sizes of the scratch file": f"{side.scratch_bytes / (1 << 20):.0f} MiB",
    }
