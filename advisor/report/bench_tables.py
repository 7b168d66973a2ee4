"""Tables of a measured series: a sweep over numbers of threads with its knee, and a group of patterns as one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from advisor.proof.series import KNEE_SHARE, Bench, Sweep, WorkloadSeries
from advisor.proof.workloads import WORKLOADS, split_threads
from advisor.report.layout import Page, Span, columns, listed
from advisor.report.proof_numbers import format_figure

_TABLE_FROM = 4
"""So many patterns of one group are read more easily as a table."""


def add_sweeps(page: Page, bench: Bench) -> None:
    """Every sweep: threads, figure, p99 and CPU, the knee marked."""
    known = {one.name: one for one in bench.workloads}
    for sweep in bench.sweeps:
        page.heading(f"Sweep of {sweep.workload}", Span(f": {sweep.metric} in {sweep.unit}", "dim"))
        rows: list[tuple[str, ...]] = [("threads", sweep.unit, "p99 us", "CPU %")]
        for threads, value in zip(sweep.threads, sweep.medians, strict=True):
            one = known[f"{sweep.workload}@{threads}"]
            mark = "  knee" if threads == sweep.knee else ""
            rows.append(
                (
                    str(threads),
                    format_figure(value),
                    _format_figure(one.latency_p99_us),
                    _format_figure(one.cpu_percent) + mark,
                )
            )
        _add_aligned(page, rows, left=())
        page.add(knee_words(sweep), indent=2)
        doubt = doubt_words(sweep, known)
        if doubt:
            page.add(doubt, indent=2)


def knee_words(sweep: Sweep) -> str:
    """Where more threads stop to pay."""
    if sweep.knee is None:
        last = sweep.threads[-1]
        return f"No knee up to {last} threads: the largest number is needed for {KNEE_SHARE:.0%} of the best."
    return f"Knee at {sweep.knee} threads: the fewest with {KNEE_SHARE:.0%} of the best median."


def doubt_words(sweep: Sweep, known: Mapping[str, WorkloadSeries]) -> str:
    """Where fewer threads than the knee may be as good: their interval reaches that of the best. Else empty."""
    rows = [(threads, known[f"{sweep.workload}@{threads}"]) for threads in sweep.threads]
    best = max(rows, key=lambda row: row[1].median or 0.0)[1]
    if best.interval is None:
        return ""
    below = sweep.knee or sweep.threads[-1]
    also = [
        str(at) for at, one in rows if at < below and one.interval is not None and one.interval[1] >= best.interval[0]
    ]
    if not also:
        return ""
    noun = "thread" if also == ["1"] else "threads"
    return (
        f"With {listed(also)} {noun} the interval reaches that of the best: where the knee lies is not certain. More"
        " rounds narrow the intervals."
    )


def add_pattern_table(page: Page, bench: Bench) -> None:
    """Patterns of one group as one table, each with IOPS, MB/s, latency and CPU."""
    for group, members in _group_series(bench.workloads):
        page.heading(f"{group}: {len(members)} patterns")
        rows: list[tuple[str, ...]] = [("pattern", "IOPS", "MB/s", "p50 us", "p99 us", "CPU %", "us/I/O")]
        rows += [
            (
                one.name.partition(".")[2],
                *map(_format_figure, (one.iops, one.bandwidth_mb_per_s, one.latency_p50_us, one.latency_p99_us)),
                _format_figure(one.cpu_percent),
                _format_figure(one.cpu_us_per_io),
            )
            for one in members
        ]
        _add_aligned(page, rows, left=(0,))


def _group_series(measured: Sequence[WorkloadSeries]) -> Iterable[tuple[str, list[WorkloadSeries]]]:
    found: dict[str, list[WorkloadSeries]] = {}
    for one in measured:
        name, threads = split_threads(one.name)
        if threads is None and name in WORKLOADS and one.median is not None:
            found.setdefault(name.partition(".")[0], []).append(one)
    return [(group, members) for group, members in found.items() if len(members) >= _TABLE_FROM]


def _add_aligned(page: Page, rows: Sequence[Sequence[str]], left: Sequence[int]) -> None:
    """Columns of figures, aligned to the right but for those in ``left``."""
    sizes = [max(columns(row[at]) for row in rows) for at in range(len(rows[0]))]
    for number, row in enumerate(rows):
        cells = [
            cell.ljust(size) if at in left else " " * (size - columns(cell)) + cell
            for at, (cell, size) in enumerate(zip(row, sizes, strict=True))
        ]
        page.row(Span("  " + "  ".join(cells), "dim" if not number else ""))


def _format_figure(value: float | None) -> str:
    return "" if value is None else format_figure(value)
