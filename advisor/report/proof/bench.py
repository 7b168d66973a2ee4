"""A measured series as text: figures of each workload, how far they vary, and what a single pair of runs is worth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from advisor.errors import AdvisorError
from advisor.proof.own_command import COMMAND_WORKLOAD
from advisor.proof.pattern import is_workload_path, read_workload
from advisor.proof.records import Ended
from advisor.proof.series import KNEE_SHARE, Bench, Quality, Series, Sweep, WorkloadSeries, counted_rounds
from advisor.proof.workloads import WORKLOADS, split_threads
from advisor.report.format import clean, format_duration
from advisor.report.layout import Page, Piece, Span, Style, columns, counted, listed
from advisor.report.proof.numbers import format_figure
from advisor.report.proof.result import format_percent
from advisor.report.proof.words import command_words, name_metric, place_options, scratch_words, workload_title
from advisor.report.units import format_binary
from advisor.shell.quote import shell_quote

# Tables of a measured series: a sweep over numbers of threads with its knee, and a group of patterns as one table.

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


_QUALITY: Mapping[Quality, tuple[str, Style]] = {
    "sound": ("measured", "green"),
    "indicative": ("indicative only", "yellow"),
    "invalid": ("invalid", "red"),
}
_ENDED: Mapping[Ended, str] = {
    "complete": "all rounds were run",
    "settled": "early",
    "budget": "the time budget was used up",
    "interrupted": "interrupted by a signal",
    "fault": "by a fault",
    "io-pressure": "early: others were waiting for I/O",
    "bytes": "the byte budget was used up",
}
_SCRATCH_LEFT = "the scratch file was not removed"


def bench_text(bench: Bench, *, width: int, color: bool) -> str:
    """The whole result for a person, in at most ``width`` columns; its first words are how far it can be relied on."""
    page = Page(width, color=color)
    _add_head(page, bench)
    add_pattern_table(page, bench)
    add_sweeps(page, bench)
    page.heading("Workloads", Span(": medians of the runs", "dim"))
    for one in bench.workloads:
        title = workload_title(one.name)
        page.add(Span(_name_series(one), "bold"), Span(f": {title}" if title else "", "dim"), indent=2, hang=2)
        if one.median is None:
            page.add(Span("no run that counts", "yellow"), indent=4)
            continue
        _add_figures(page, one)
    page.blank()
    page.add(
        Span("The level of an interval is exact (order statistics) for runs that do not depend on each other.", "dim")
    )
    _add_floor(page, bench)
    notes = [*bench.notes, *_coverage_notes(bench), *(f"unknown: {what}" for what in bench.gate.unknown)]
    if bench.series.forced:
        notes += [f"the host was busy: {what}" for what in bench.gate.busy]
    page.bulleted("Notes", notes)
    _add_series(page, bench)
    page.blank()
    page.add("To measure again in the same order:")
    page.command(" ".join(_command_lines(bench.series)))
    if bench.saved_to and bench.series.command is None:
        page.add("To set a later series against this one:")
        page.command(f"advisor compare {shell_quote(bench.saved_to)} LATER")
    return page.text


def _add_head(page: Page, bench: Bench) -> None:
    words, style = _QUALITY[bench.quality]
    series = bench.series
    rounds = counted(len(counted_rounds(series)), "round")
    first = bench.reasons[0] if bench.reasons else "nothing was measured"
    void = "nothing follows from these figures: " if bench.quality == "invalid" else ""
    more = f" (and {len(bench.reasons) - 1} more)" if len(bench.reasons) > 1 else ""
    what = {"sound": f"{rounds} of {counted(len(bench.workloads), 'workload')}"}.get(
        bench.quality, f"{void}{first}{more}"
    )
    page.add(Span(words, style), f": {what}", hang=2)
    where = f"on {place_words(series)}" if series.command is None else f"by {command_words(series.command)}"
    page.add(Span(_host_words(series), "bold"), f" {where}", hang=2)
    if len(bench.reasons) > 1:
        page.heading("Why")
        for reason in bench.reasons:
            page.bullet(reason)


def _host_words(series: Series) -> str:
    return series.host.name if series.host is not None and series.host.name else "this host as it is"


def place_words(series: Series) -> str:
    """``/srv (xfs on sda)``."""
    device = f" on {series.device}" if series.device else ""
    return f"{series.target} ({series.file_system}{device})"


# -- figures -----------------------------------------------------------------------------------------------------------


def _name_series(one: WorkloadSeries) -> str:
    return clean(one.metric) if one.name == COMMAND_WORKLOAD else one.name


def _add_figures(page: Page, one: WorkloadSeries) -> None:
    median = Span(_format_amount(one.median, one.unit), "bold")
    parts = [f"median absolute deviation {_format_amount(one.mad, one.unit)}"] if one.mad is not None else []
    if one.cv is not None:
        parts.append(f"CV {_format_share(one.cv)}")
    rows: list[tuple[str, tuple[Piece, ...]]] = [
        (name_metric(one.metric), (median, f" {_interval_words(one)}")),
        ("spread", (", ".join(parts),)),
    ]
    if one.name != COMMAND_WORKLOAD:
        other = [(one.iops, "IOPS"), (one.bandwidth_mb_per_s, "MB/s")]
        also = ", ".join(_format_amount(value, unit) for value, unit in other if unit != one.unit)
        rows += [("latency", (_latency_words(one),)), ("also", (also,))]
    if one.cpu_us_per_io is not None:
        percent_words = "" if one.cpu_percent is None else f", {_format_number(one.cpu_percent)} % of one CPU"
        rows.append(("CPU per I/O", (f"{_format_amount(one.cpu_us_per_io, 'us')}{percent_words}",)))
    if (observed := _observed_words(one)) is not None:
        rows.append(("observed", (observed,)))
    page.labelled(rows, indent=4)


def _observed_words(one: WorkloadSeries) -> str | None:
    """Of a twin: what the load itself did where it was observed, and how far this series is from it."""
    base, threads = split_threads(one.name)
    if threads is not None or not is_workload_path(base):
        return None
    try:
        origin = read_workload(base).observed
    except AdvisorError:
        return None
    if origin is None or origin.figures is None:
        return None
    latency = origin.figures.latency["all"]
    pairs = (
        ("IOPS", origin.figures.iops, one.iops),
        ("us p50", latency.p50_us, one.latency_p50_us),
        ("us p99", latency.p99_us, one.latency_p99_us),
    )
    figures = (
        f"{before:,.0f} {unit}" + ("" if after is None or not before else f" (here {after / before - 1:+.0%})")
        for unit, before, after in pairs
    )
    return f"{', '.join(figures)}: the load on {origin.device}, {origin.began}; its latency is that of the device"


def _interval_words(one: WorkloadSeries) -> str:
    if one.interval is None or one.confidence is None:
        return ""
    low, high = (_format_number(bound) for bound in one.interval)
    interval = f"({low} to {high} at {_floor_share(one.confidence)})"
    return ", ".join((interval, counted(one.runs, "run")))


def _latency_words(one: WorkloadSeries) -> str:
    found = (("p50", one.latency_p50_us), ("p95", one.latency_p95_us), ("p99", one.latency_p99_us))
    return ", ".join(f"{name} {_format_amount(value, 'us')}" for name, value in found if value is not None)


def _add_floor(page: Page, bench: Bench) -> None:
    """What all this is worth to somebody who measures once before and once after."""
    known = [(one, one.noise_floor) for one in bench.workloads if one.noise_floor is not None]
    if not known:
        return
    page.heading("Noise floor")
    for one, floor in known:
        if not floor:
            page.bullet(
                Span(_name_series(one), "bold"),
                ": every run gave the same figure, so nothing is known of its noise; is it the figure that was meant?",
            )
            continue
        page.bullet(
            Span(_name_series(one), "bold"),
            f": a single before/after pair on this host is off by up to {_format_share(floor)} in 95 % of cases, though"
            " nothing was changed in between",
        )


# -- the rest ----------------------------------------------------------------------------------------------------------


def _coverage_notes(bench: Bench) -> Iterable[str]:
    weak = {one.runs: one.confidence for one in bench.workloads if one.confidence is not None and one.confidence < 0.95}
    for runs, confidence in sorted(weak.items()):
        gives = "gives" if runs == 1 else "give"
        yield f"{counted(runs, 'run')} {gives} no 95 % interval but one of {_floor_share(confidence)}, the whole range"


def _add_series(page: Page, bench: Bench) -> None:
    series, schedule = bench.series, bench.series.schedule
    page.heading("Series")
    written = f"{format_binary(series.bytes_written)}; {format_binary(schedule.byte_budget)} were allowed"
    scratch_rows: list[tuple[str, Sequence[Piece]]] = [("scratch", (_scratch_span(series),)), ("written", (written,))]
    if series.command is not None:
        scratch_rows = []
    page.labelled(
        [
            ("rounds", (f"{len(counted_rounds(series))} of {schedule.pairs}{_contamination_words(series)}",)),
            ("ended", (_ENDED[series.ended],)),
            *scratch_rows,
            ("seed", (str(series.seed),)),
            (
                "command" if series.command is not None else "fio",
                (
                    f"{command_words(series.command)}, runs of {schedule.seconds_per_run:.2g} s"
                    if series.command is not None
                    else f"{series.fio_version}, runs of {schedule.seconds_per_run:g} s",
                ),
            ),
            ("begun", (f"{series.started}, took {format_duration(series.seconds)}",)),
        ]
    )


def _contamination_words(series: Series) -> str:
    contaminated = [one for one in series.rounds if one.contaminated]
    if not contaminated:
        return "; none was contaminated"
    lamps = dict.fromkeys(lamp for one in contaminated for run in one.runs for lamp in run.lamps)
    repeated = sum(one.superseded for one in contaminated)
    return f"; {len(contaminated)} contaminated by {', '.join(lamps)}, {repeated} of them repeated"


def _scratch_span(series: Series) -> Span:
    left = next((note for note in series.notes if note.startswith(_SCRATCH_LEFT)), None)
    if left is not None:
        return Span(left, "red")
    return Span(scratch_words(series))


def _command_lines(series: Series) -> Iterable[str]:
    yield from ("advisor", "bench", *([] if series.command is not None else place_options(series)))
    for name in series.workloads if series.command is None else ():
        yield f"--workload={shell_quote(name)}"
    if series.schedule.mode != "default":
        yield f"--{series.schedule.mode}"
    yield from map(shell_quote, series.options)
    yield f"--seed={series.seed}"


# -- numbers -----------------------------------------------------------------------------------------------------------


def _format_amount(value: float | None, unit: str) -> str:
    return "?" if value is None else f"{_format_number(value)} {unit}"


def _format_number(value: float) -> str:
    return f"{value:,.0f}" if 100 <= value < 1e9 else f"{value:.3g}"


def _format_share(fraction: float) -> str:
    """A size without a sign: ``12 %``."""
    return format_percent(fraction).removeprefix("+").replace(".0 %", " %")


def _floor_share(share: float) -> str:
    """Never rounded up to what it does not reach."""
    return f"{math.floor(share * 1000) / 10:g} %"
