"""Two series against each other, as text: a row for each workload, and why that is no proof."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.proof.comparison import ComparedSeries, Outcome, SeriesComparison, WorkloadDifference
from advisor.report.layout import Cell, Page, Span, Style, counted
from advisor.report.proof import format_percent
from advisor.report.proof_numbers import format_figure, p_words

_STYLES: Mapping[Outcome, Style] = {"better": "green", "worse": "red", "inconclusive": "yellow"}


def comparison_text(comparison: SeriesComparison, *, width: int, color: bool) -> str:
    """The whole comparison for a person, in at most ``width`` columns; its first word is the verdict."""
    page = Page(width, color=color)
    is_void = comparison.verdict == "invalid"
    what = comparison.reasons[0] if is_void else "B over A, medians of the runs with their median absolute deviation"
    page.add(Span(*("invalid", "red") if is_void else ("indicative, no proof", "yellow")), f": {what}", hang=2)
    page.blank()
    head: list[Cell] = ["workload", "A", "B", "change", ""]
    page.table([head, *(_row_cells(one, is_void=is_void) for one in comparison.workloads)])
    page.bulleted("Why this is no proof", comparison.reasons)
    page.bulleted("Notes", comparison.notes)
    page.blank()
    page.labelled([(letter, (_side_words(side),)) for letter, side in (("A", comparison.a), ("B", comparison.b))])
    return page.text


def _row_cells(one: WorkloadDifference, *, is_void: bool) -> list[Cell]:
    runs = f"{one.runs[0]} and {counted(one.runs[1], 'run')}"
    if one.medians is None or one.spreads is None or one.ratio is None:
        return [one.name, "", "", "", f"not measured in both, {runs}"]
    before, after = (
        f"{format_figure(middle)} ± {format_figure(spread)}"
        for middle, spread in zip(one.medians, one.spreads, strict=True)
    )
    outcome = Span("void", "dim") if is_void else Span(one.outcome, _STYLES[one.outcome])
    return [
        one.name,
        before,
        f"{after} {one.unit}",
        format_percent(one.ratio - 1),
        [outcome, f", {p_words(one.p_holm)}, {runs}"],
    ]


def _side_words(side: ComparedSeries) -> str:
    host = side.host.name if side.host is not None and side.host.name else "unknown host"
    what = "arm A of a proof" if side.kind == "proof" else "a series"
    made = f"{what}, {counted(side.rounds, 'round')} of {side.run_seconds:g} s runs"
    return f"{side.source}: {made} on {host}, {side.target}, begun {side.started}"
