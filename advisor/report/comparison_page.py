"""Two series against each other as one HTML page that needs nothing else, like that of a proof."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.proof.comparison import MetricDifference, SeriesComparison
from advisor.proof.metrics import MetricName
from advisor.proof.records import Summary
from advisor.report.charts.changes import forest_of
from advisor.report.charts.runs import ladder_of, rungs_of
from advisor.report.comparison import (
    ESTIMATE,
    explain_verdict,
    level_words,
    notes_of,
    says,
    side_rows,
    verdict_span,
    workload_lines,
)
from advisor.report.format import clean
from advisor.report.html import render_page
from advisor.report.layout import Span
from advisor.report.proof_numbers import format_amount
from advisor.report.proof_page import Twin, pieces_of, rung_cells
from advisor.report.proof_rows import MetricRow, RowGroup, band_of, by_workload, cells_of, table_head
from advisor.report.proof_words import workload_title

_DESCRIPTION = (
    "Estimate and 95 % interval of B over A for each workload on one axis of changes, logarithmic; "
    "better is to the right, where less is better to the left. The shaded band is the margin. "
    "All figures are in the table that follows."
)


def comparison_page(comparison: SeriesComparison) -> str:
    """The whole page. All text is escaped, and spelt out where it is not printable."""
    verdict = verdict_span(comparison)
    groups = _row_groups(comparison)
    items = [summary_of(one) for one in (*comparison.explored, *comparison.workloads)]
    names = dict.fromkeys(one.name for one in comparison.workloads)
    found = [(name, rungs_of(items, name)) for name in names]
    return render_page(
        "comparison",
        a=comparison.a.source,
        b=comparison.b.source,
        verdict=verdict.text,
        verdict_style=verdict.style,
        headlines=("".join(map(_piece_text, explain_verdict(comparison))), *workload_lines(comparison)),
        reasons=comparison.reasons,
        forest=forest_of(groups, _DESCRIPTION),
        columns=("metric", *table_head()[1:5], "runs of A, B", table_head().mde, "result"),
        groups=[_rows_of(group, comparison) for group in groups],
        estimate=ESTIMATE,
        level=level_words(comparison),
        ladders=[
            Twin(
                heading=clean(name),
                picture=ladder_of(rungs, name, number, arm="Series"),
                caption="as a table",
                columns=("percentile", "A → B", "change", "interval", ""),
                rows=tuple(rung_cells(label, item) for label, item in rungs),
            )
            for number, (name, rungs) in enumerate(found, 1)
            if rungs
        ],
        notes=notes_of(comparison),
        sides=[
            (name, side.source, pieces_of(side_rows(side))) for name, side in (("A", comparison.a), ("B", comparison.b))
        ],
    )


def _piece_text(piece: Span | str) -> str:
    return piece if isinstance(piece, str) else piece.text


def summary_of(one: MetricDifference) -> Summary:
    """A difference as what the rows and pictures of a proof take; its pairs are the runs of the shorter series."""
    common = {
        name: getattr(one, name) for name in Summary.__struct_fields__ if name in MetricDifference.__struct_fields__
    }
    return Summary(**common, pairs=min(one.runs))


def _row_groups(comparison: SeriesComparison) -> list[RowGroup]:
    judged = [one for one in comparison.workloads if one.ratio is not None]
    margin = format_amount(judged[0].margin) if judged else ""
    groups = (
        RowGroup(
            "Workloads",
            f"margin ±{margin}",
            tuple(MetricRow(summary_of(one), says(comparison, one), band_of(one.margin, one.margin)) for one in judged),
        ),
        RowGroup(
            "Explored",
            "not judged",
            tuple(MetricRow(summary_of(one), Span("not judged", "dim")) for one in comparison.explored),
            is_judged=False,
        ),
    )
    return [group for group in groups if group.rows]


def _rows_of(group: RowGroup, comparison: SeriesComparison) -> dict[str, object]:
    runs = {(one.name, one.metric): one.runs for one in (*comparison.workloads, *comparison.explored)}
    return {
        "title": group.title,
        "note": group.note,
        "workloads": [
            {"name": name, "title": workload_title(name), "rows": [_row_cells(row, runs) for row in rows]}
            for name, rows in by_workload(group.rows)
        ],
    }


def _row_cells(row: MetricRow, runs: Mapping[tuple[str, MetricName], tuple[int, int]]) -> dict[str, object]:
    first, second = runs[row.summary.name, row.summary.metric]
    cells = cells_of(row)._replace(pairs=f"{first}, {second}")
    return {"cells": cells, "says": row.says.text, "style": row.says.style}
