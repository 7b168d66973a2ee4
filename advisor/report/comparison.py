"""Two series against each other, as text: what the figures say, and why that is no proof."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from advisor.proof.comparison import ComparedSeries, MetricDifference, SeriesComparison
from advisor.proof.records import Verdict
from advisor.report.intervals import PLOT_MAX, PLOT_MIN, Axis, Drawn, axis_around, axis_labels, plot_intervals
from advisor.report.layout import Page, Piece, Span, Style, columns, counted, padded, width_of
from advisor.report.proof import METRIC_WORDS, format_percent, p_words
from advisor.report.proof_numbers import format_amount, interval_words
from advisor.report.proof_words import begun_words, medium_words, workload_title

_TENDENCIES: Final[Mapping[Verdict, tuple[str, Style]]] = {
    "gain": ("better", "green"),
    "gain-with-cost": ("better and worse", "yellow"),
    "loss": ("worse", "red"),
    "no-difference": ("no difference", "bold"),
    "inconclusive": ("inconclusive", "yellow"),
}

ESTIMATE: Final = "Medians of the runs; the change is estimated from all pairs of a run of A and one of B."


def comparison_text(comparison: SeriesComparison, *, width: int, color: bool) -> str:
    """The whole comparison for a person, in at most ``width`` columns; its first word is the verdict."""
    page = Page(width, color=color)
    page.add(verdict_span(comparison), ": ", *explain_verdict(comparison), hang=2)
    for line in workload_lines(comparison):
        page.add(line, indent=2, hang=2)
    page.heading("Why this is no proof")
    for reason in comparison.reasons:
        page.bullet(reason)
    notes = notes_of(comparison)
    page.bulleted("Notes", notes)
    _add_differences(page, comparison)
    for letter, side in (("A", comparison.a), ("B", comparison.b)):
        page.heading(f"{letter}: ", side.source)
        page.labelled(side_rows(side))
    return page.text


def verdict_span(comparison: SeriesComparison) -> Span:
    """The verdict, and the style that it is set in."""
    match comparison.verdict:
        case "invalid":
            return Span("invalid", "red")
        case "inconclusive":
            return Span("inconclusive", "yellow")
    return Span("indicative, no proof", "yellow")


def explain_verdict(comparison: SeriesComparison) -> Sequence[Piece]:
    """What the verdict says."""
    match comparison.verdict:
        case "invalid":
            return (f"nothing follows from these figures: {comparison.reasons[0]}",)
        case "inconclusive":
            return ("nothing is shown either way",)
    words, style = _TENDENCIES[comparison.tendency]
    if words == "no difference":
        return _around_verdict("by the figures B is {verdict} from A", Span("no different", style))
    return _around_verdict("by the figures B is {verdict} than A", Span(words, style))


def _around_verdict(text: str, verdict: Span) -> Sequence[Piece]:
    before, _field, after = text.partition("{verdict}")
    return (before, verdict, after)


def workload_lines(comparison: SeriesComparison) -> list[str]:
    """A line for each workload that both have."""
    return [_difference_words(one, is_void=comparison.verdict == "invalid") for one in comparison.workloads]


def _difference_words(one: MetricDifference, *, is_void: bool) -> str:
    """``-12 % IOPS (-15 % to -9.1 %) on …, 24 and 24 runs, p = 0.0005``."""
    metric, title = METRIC_WORDS[one.metric], workload_title(one.name)
    if one.ratio is None:
        return f"{metric} of {title} was not measured in both"
    effect = f"{format_percent(one.ratio - 1)} {metric} ({interval_words(one)})"
    found = ", ".join((f"{effect} on {title}", _runs_words(one)))
    if is_void or one.verdict in ("gain", "loss"):
        return ", ".join((found, p_words(one.p_holm)))
    if one.verdict == "no-difference":
        return f"{found}: within ±{format_amount(one.margin)}"
    seen = format_amount(one.minimum_detectable_effect)
    limit = "effects below {size} could hardly be seen" if seen else "too few runs to see any effect"
    return f"{found}: {limit.format(size=seen)}"


# -- figures -----------------------------------------------------------------------------------------------------------


def _add_differences(page: Page, comparison: SeriesComparison) -> None:
    shown = [one for one in comparison.workloads if one.ratio is not None]
    if not shown:
        return
    axis = _shared_axis(page, shown)
    page.heading("Workloads", Span(": " + f"margin ±{format_amount(shown[0].margin)}", "dim"))
    names: Sequence[str] = [one.name for one in shown]
    explored = [one for one in comparison.explored if one.name in names]
    sizes = [max(map(columns, column)) for column in zip(*map(_row_cells, [*shown, *explored]), strict=True)]
    for one in shown:
        page.add(Span(one.name, "bold"), Span(f": {workload_title(one.name)}", "dim"), indent=2, hang=2)
        _add_row(page, one, sizes, says(comparison, one))
        style = _TENDENCIES[one.verdict or "inconclusive"][1]
        drawing, stated = (
            plot_intervals(axis, _drawn_interval(one), band=_margin_band(one), style=style),
            _stated_interval(one),
        )
        if 4 + axis.width + 2 + columns(stated) <= page.width:
            page.row("    ", *drawing, f"  {stated}")
        else:
            page.row("    ", *drawing)
            page.add(stated, indent=4)
        page.row(
            "    ",
            Span(axis_labels(axis, format_percent(math.expm1(axis.low)), format_percent(math.expm1(axis.high))), "dim"),
        )
        for other in (other for other in explored if other.name == one.name):
            _add_row(page, other, sizes, Span("not judged", "dim"))
    page.blank()
    drawn = (
        "├──●──┤ B over A with its 95 % interval, │ no change, ░ within the margin; better is to the right,"
        " where less is better (latency, CPU, time) to the left."
    )
    for text in (f"{drawn} {ESTIMATE}", level_words(comparison)):
        page.add(Span(text, "dim"))


def says(comparison: SeriesComparison, one: MetricDifference) -> Span:
    """What is said about one workload; in brackets, as nothing is proven."""
    words, style = _TENDENCIES[one.verdict or "inconclusive"]
    return Span("void", "dim") if comparison.verdict == "invalid" else Span(f"({words})", style)


def _row_cells(one: MetricDifference) -> tuple[str, str, str]:
    values = f"{_format_number(one.before)} → {_format_number(one.after)} {one.unit}"
    return METRIC_WORDS[one.metric], values, f"{format_percent((one.ratio or 1) - 1)} ({interval_words(one)})"


def _add_row(page: Page, one: MetricDifference, sizes: Sequence[int], words: Span) -> None:
    cells = [padded(cell, size + 2) for cell, size in zip(_row_cells(one), sizes, strict=True)]
    if 4 + width_of((*cells, words)) <= page.width:
        page.row("    ", *cells, words)
    else:
        metric, values, change = _row_cells(one)
        page.add(f"{metric} {values}, {change}, ", words, indent=4, hang=2)


def _shared_axis(page: Page, shown: Sequence[MetricDifference]) -> Axis:
    reach = [value for one in shown for value in (*(_drawn_interval(one) or ()), *(_margin_band(one) or ()))]
    stated = max(columns(_stated_interval(one)) for one in shown)
    left = page.width - 6 - stated
    return axis_around(reach, min(left if left >= PLOT_MIN else page.width - 4, PLOT_MAX))


def _drawn_interval(one: MetricDifference) -> Drawn | None:
    if one.ratio is None or one.ci95 is None:
        return None
    return Drawn(*sorted(map(math.log, (one.ci95[0], one.ratio, one.ci95[1]))))


def _margin_band(one: MetricDifference) -> tuple[float, float] | None:
    return None if one.margin is None else (-math.log1p(one.margin), math.log1p(one.margin))


def _stated_interval(one: MetricDifference) -> str:
    mde = format_amount(one.minimum_detectable_effect)
    return ", ".join(filter(None, (p_words(one.p_holm), _runs_words(one), f"MDE {mde}" if mde else "")))


def level_words(comparison: SeriesComparison) -> str:
    """Which test it is, up to which p a change is significant, and what the MDE is."""
    adjusted = " " + "(adjusted for the number of workloads)" if len(comparison.workloads) > 1 else ""
    return (
        f"p{adjusted}: exact Mann-Whitney, significant up to {comparison.alpha:g}. MDE: the smallest effect that "
        "these runs find in about 80 % of cases."
    )


# -- the rest ----------------------------------------------------------------------------------------------------------


def notes_of(comparison: SeriesComparison) -> list[str]:
    """What a reader has to know in addition to the figures."""
    coverage_notes: list[str] = []
    weak = {one.runs: one.confidence for one in comparison.workloads if (one.confidence or 1.0) < 0.95}
    for (first, second), confidence in sorted(weak.items()):
        worth = f"{math.floor((confidence or 0.0) * 1000) / 10:g} %"
        coverage_notes.append(f"the interval of {first} and {second} runs is no 95 % interval but one of {worth}")
    return [*comparison.notes, *coverage_notes]


def side_rows(side: ComparedSeries) -> list[tuple[str, Sequence[Piece]]]:
    """What one of the two is, each with its label."""
    host = side.host
    name = (host.name if host is not None else None) or "unknown"
    kernel = f", Linux {host.kernel}" if host is not None and host.kernel else ""
    what = f"arm A of a proof of {side.profile}" if side.kind == "proof" else "a series"
    rounds = counted(side.rounds, "round")
    made = f"{what}: {rounds} of {side.schedule.seconds_per_run:g} s runs"
    return [
        ("what", (made,)),
        ("host", (f"{name}{kernel}",)),
        ("target", (f"{side.target} ({medium_words(side)})",)),
        ("fio", (side.fio_version,)),
        ("begun", (begun_words(side.started, side.seconds),)),
    ]


# -- numbers -----------------------------------------------------------------------------------------------------------


def _runs_words(one: MetricDifference) -> str:
    first, second = one.runs
    return f"{first} and {counted(second, 'run')}"


def _format_number(value: float | None) -> str:
    if value is None:
        return "?"
    return f"{value:,.0f}" if 100 <= value < 1e9 else f"{value:.3g}"
