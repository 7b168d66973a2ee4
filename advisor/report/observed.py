"""An observed load and its twin, as text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from advisor.observe.load import DIRECTIONS, LoadFigures
from advisor.proof.pattern import JobSection
from advisor.proof.twin import ORDER_BOUND, READ_BOUND, SIZES_BOUND
from advisor.proof.workload_file import DiskMeans, WorkloadFile, is_workload_path
from advisor.report.layout import COMMAND, HEADING, Page, Piece, Span
from advisor.report.units import format_binary, format_decimal
from advisor.shell.quote import shell_quote

_SHOWN_SIZES = 6
Rows = Iterable[tuple[str, Piece]]


def twin_text(found: WorkloadFile, path: Path, *, width: int, color: bool) -> str:
    """What was observed, and the twin with its error; ``path`` is the file that it is written to."""
    page = Page(width, color=color)
    page.add(Span(found.title, HEADING), hang=2)
    page.labelled([(label, [piece]) for label, piece in _twin_rows(found, path)])
    return page.text


def _twin_rows(found: WorkloadFile, path: Path) -> Rows:
    observed, error = found.observed, found.error
    if observed is not None:
        where = observed.device if observed.unit is None else f"{observed.device}, {observed.unit}"
        if observed.figures is not None:
            count = f"{observed.figures.requests:,} requests in {observed.seconds:.1f} s on {where}"
            yield "observed", f"{count}; {observed.lost:,} events lost"
            yield from _figure_rows(observed.figures)
        elif observed.means is not None:
            yield "observed", f"counters of {where} for {observed.seconds:.1f} s: means alone"
            yield from _mean_rows(observed.means)
    for section in found.sections:
        yield "twin", _section_words(section)
    if error is None:
        yield "error", "not known: no distribution was observed"
    else:
        yield (
            "error",
            f"sizes {error.sizes:.3f} (bound {SIZES_BOUND}) · reads {100 * error.read_share:.1f} points"
            f" (bound {100 * READ_BOUND:.0f}) · order {100 * error.sequential:.1f} points"
            f" (bound {100 * ORDER_BOUND:.0f})",
        )
    for note in found.notes:
        yield "note", note
    name = shell_quote(str(path) if is_workload_path(str(path)) else f"./{path}")
    yield "next", Span(f"advisor bench --workload {name} --target DIR", COMMAND, is_whole=True)


def _figure_rows(load: LoadFigures) -> Rows:
    for name, share in zip(DIRECTIONS, (load.read_share, 1 - load.read_share), strict=True):
        if load.sizes[name]:
            ranked = sorted(load.sizes[name].items(), key=lambda one: -one[1])
            parts = [f"{format_binary(int(size))} {part / share:.0%}" for size, part in ranked[:_SHOWN_SIZES]]
            if len(ranked) > _SHOWN_SIZES:
                parts.append(f"{len(ranked) - _SHOWN_SIZES} more sizes")
            yield f"{name}s", f"{share:.0%}: {', '.join(parts)} · {load.sequential[name]:.0%} in order"
    rate = f"{load.iops:,.0f} requests/s, {format_decimal(round(load.bytes_per_s))}/s"
    yield "rate", f"{rate} · depth {load.depth_mean:.1f} in the mean, {load.depth_high} at p95"
    latency = load.latency["all"]
    yield "latency", f"p50 {latency.p50_us:,.0f} µs · p95 {latency.p95_us:,.0f} µs · p99 {latency.p99_us:,.0f} µs"
    if load.flushes_per_write >= 0.002:
        yield "flushes", f"{load.flushes_per_write:.3g} for each write"


def _mean_rows(means: DiskMeans) -> Rows:
    pairs = (
        ("reads", means.reads_per_s, means.read_size_bytes, means.read_wait_ms),
        ("writes", means.writes_per_s, means.write_size_bytes, means.write_wait_ms),
    )
    for label, rate, size, wait in pairs:
        if size is not None and wait is not None:
            yield label, f"{rate:,.0f}/s, {format_binary(round(size))} in the mean, wait {wait:.3g} ms in the mean"
    yield "queue", f"{means.queue:.1f} in the mean · {means.merged_share:.0%} merged"


def _section_words(section: JobSection) -> str:
    arrival = section.arrival
    words = {
        "closed": "each asks again at once",
        "steady": f"{arrival.rate:,.0f} requests/s for each job, evenly",
        "poisson": f"{arrival.rate:,.0f} requests/s for each job, at independent times",
        "think": f"a pause of {arrival.think_us:,} µs after each request",
        "bursts": f"a pause of {arrival.think_us:,} µs after {arrival.think_blocks:,} requests",
    }[arrival.kind]
    flush = f", a flush after {section.flush_every} writes" if section.flush_every else ""
    durable = ", durable writes" if section.durable else ""
    jobs = f"{section.jobs} jobs" if section.jobs > 1 else "1 job"
    return f"fio {section.pattern}, {jobs}, depth {section.depth}: {words}{flush}{durable}"
