"""An observed load, its twin and the comparison of both: as text, and as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

from advisor.observe.load import DIRECTIONS, LatencyFigures, LoadFigures
from advisor.proof.pattern import JobSection
from advisor.proof.twin import ORDER_BOUND, READ_BOUND, SIZES_BOUND
from advisor.proof.twin_check import TwinComparison, TwinRow
from advisor.proof.workload_file import DiskMeans, WorkloadFile, is_workload_path
from advisor.report.html import html_environment
from advisor.report.layout import COMMAND, HEADING, Cell, Page, Piece, Span
from advisor.report.svg import Box, Label, Line, Picture, Polyline, Shape, log_scale, tick_words, value_ticks
from advisor.report.units import format_binary, format_decimal
from advisor.shell.quote import shell_quote

_SHOWN_SIZES = 6
Rows = Iterable[tuple[str, Piece]]


def twin_text(
    found: WorkloadFile, comparison: TwinComparison | None, path: Path | None, *, width: int, color: bool
) -> str:
    """What was observed, the twin with its error, and the comparison where the twin has run."""
    page = Page(width, color=color)
    page.add(Span(found.title, HEADING), hang=2)
    page.labelled([(label, [piece]) for label, piece in _twin_rows(found, None if comparison else path)])
    if comparison is not None:
        _add_comparison(page, comparison)
    return page.text


def _twin_rows(found: WorkloadFile, path: Path | None) -> Rows:
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
    if path is not None:
        name = shell_quote(str(path) if is_workload_path(str(path)) else f"./{path}")
        command = f"bench --workload {name}"
        if error is not None:
            yield "judged", "not yet: the twin has not run"
            command = f"observe --check {name}"
        yield "next", Span(f"advisor {command} --target DIR", COMMAND, is_whole=True)


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


def _add_comparison(page: Page, comparison: TwinComparison) -> None:
    worst = comparison.worst
    verdict = (
        f"Faithful: the farthest from its bound is {worst.name}, {_difference_words(worst)} of {_bound_words(worst)}"
        if comparison.is_faithful
        else f"Refused: {worst.name} differs by {_difference_words(worst)}, bound {_bound_words(worst)}"
    )
    page.blank()
    page.add(Span(verdict, "green" if comparison.is_faithful else "bold red"), hang=2)
    head: list[Cell] = ["", "observed", "twin", "difference", "bound"]
    rows: list[list[Cell]] = [head]
    for row in comparison.rows:
        difference = _difference_words(row)
        rows.append(
            [
                row.name,
                _value_words(row, row.observed),
                _value_words(row, row.twin),
                difference if row.is_within else Span(f"{difference} !", "bold red"),
                _bound_words(row),
            ]
        )
    page.table(rows)
    if comparison.others >= 0.05:
        page.add(f"{comparison.others:.0%} of the requests on the device were not the twin's: other load.", indent=2)


def _value_words(row: TwinRow, value: float | None) -> str:
    formats = {"share": "{:.1%}", "depth": "{:,.1f}", "us": "{:,.0f} µs"}
    return "" if value is None else formats.get(row.kind, "{:,.0f}").format(value)


def _difference_words(row: TwinRow) -> str:
    formats = {"share": "{1:.1f} points", "distance": "{0:.3f}"}
    return formats.get(row.kind, "{0:.0%}").format(row.difference, 100 * row.difference)


def _bound_words(row: TwinRow) -> str:
    if row.bound is None:
        return "not judged"
    formats = {"share": "{1:.0f} points", "distance": "{0:g}"}
    return formats.get(row.kind, "{0:.0%}").format(row.bound, 100 * row.bound)


_WIDTH, _PLOT, _LEFT, _TOP = 720, 180, 60, 40


def twin_svg(comparison: TwinComparison) -> str:
    """Draw both distributions: latency as the share that is faster, sizes as bars by direction."""
    shapes = [*_latency_shapes([comparison.observed.latency["all"], comparison.twin.latency["all"]])]
    y = _TOP + _PLOT + 70
    shapes.append(Label(_LEFT, y, "Sizes by direction; dark: observed, light: twin"))
    y += 14
    for name in DIRECTIONS:
        both = [load.sizes.get(name, {}) for load in (comparison.observed, comparison.twin)]
        shares = {size: [sizes.get(size, 0.0) for sizes in both] for size in sorted({*both[0], *both[1]}, key=int)}
        for size, parts in shares.items():
            if sum(parts) >= 0.01:
                shapes.append(Label(150, y + 12, f"{name} {format_binary(int(size))}", "end"))
                shapes += [
                    Box(160, y + 8 * at, (_WIDTH - 200) * share, 7, look)
                    for at, (look, share) in enumerate(zip(("ob", "tb"), parts, strict=True))
                ]
                y += 22
    title = "Faithful twin" if comparison.is_faithful else "Twin beyond its bounds"
    drawn = Picture("twin", round(y + 10), shapes, title, width=_WIDTH)
    return html_environment().get_template("twin.svg.j2").render(drawn=drawn)


def _latency_shapes(both: Sequence[LatencyFigures]) -> Iterable[Shape]:
    bottom, right = _TOP + _PLOT, _WIDTH - 20
    scale = log_scale([float(key) for latency in both for key in latency.bins], _LEFT, right)
    yield Label(_LEFT, 20, "Share of requests that are faster than …; solid: observed, dashed: twin")
    for share in (0, 0.25, 0.5, 0.75, 0.99):
        y = bottom - _PLOT * share
        yield Line(_LEFT, y, right, y, "grid")
        yield Label(_LEFT - 6, y + 4, f"{share:.0%}", "end")
    for value in value_ticks(scale, 8):
        yield Label(scale.at(value), bottom + 18, f"{tick_words(value)} µs", "middle")
    for look, latency in zip("ot", both, strict=True):
        keys = sorted(latency.bins, key=float)
        total = sum(latency.bins.values()) or 1
        passed = accumulate(latency.bins[key] for key in keys)
        points = [
            (scale.at(float(key)), bottom - _PLOT * count / total) for key, count in zip(keys, passed, strict=True)
        ]
        if points:
            stairs = [point for (_, y), (x, below) in pairwise(points) for point in ((x, y), (x, below))]
            yield Polyline([(points[0][0], bottom), *stairs], look)
