"""A proof as text: the verdict in plain words, the figures with their intervals drawn, what became of the host.

Intervals stand on one axis: the logarithm of after over before. A change stands at the tick of its figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from advisor.proof.records import Proof
from advisor.report.intervals import PLOT_MAX, PLOT_MIN, Axis, axis_labels, plot_intervals
from advisor.report.layout import Page, Piece, Span, Style, columns, counted, padded, width_of
from advisor.report.proof_numbers import format_amount, format_percent, p_of, p_words
from advisor.report.proof_rows import (
    Cells,
    MetricRow,
    RowGroup,
    axis_ends,
    by_workload,
    cells_of,
    groups_of,
    interval_of,
    rows_of,
    safe_expm1,
    table_head,
)
from advisor.report.proof_words import (
    AGAIN,
    KEPT,
    METRIC_WORDS,
    arms_words,
    command_again,
    command_kept,
    host_rows,
    level_words,
    notes_of,
    reasons_of,
    session_rows,
    subject_words,
    value_rows,
    verdict_words,
    workload_title,
    write_headlines,
)

__all__ = ["METRIC_WORDS", "format_percent", "p_words", "proof_text"]


def proof_text(proof: Proof, *, width: int, color: bool) -> str:
    """The whole result for a person, in at most ``width`` columns; its first word is the verdict."""
    page = Page(width, color=color)
    words, style = verdict_words(proof)
    first, *others = write_headlines(proof)
    page.add(Span(words, style), f": {first}", hang=2)
    for line in others:
        page.add(line, indent=2, hang=2)
    what, where = subject_words(proof)
    page.add(Span(what, "bold"), f" {where}", hang=2)
    page.bulleted("Why", reasons_of(proof))
    _add_figures(page, proof)
    page.bulleted("Notes", notes_of(proof))
    rows = value_rows(proof)
    if rows:
        page.heading("Arms", Span(": " + "in A → in B", "dim"))
        page.table(rows)
    _add_labelled(page, "Host", host_rows(proof))
    _add_labelled(page, "Session", session_rows(proof))
    for why, command in ((KEPT, command_kept(proof)), (AGAIN, command_again(proof))):
        if command is not None:
            page.blank()
            page.add(why)
            page.command(command)
    page.blank()
    page.add(Span(words, style), f": {first}", hang=2)
    return page.text


def _add_labelled(page: Page, heading: str, rows: Iterable[tuple[str, Sequence[Piece]]]) -> None:
    page.heading(heading)
    page.labelled(rows)


# -- figures -----------------------------------------------------------------------------------------------------------


def _add_figures(page: Page, proof: Proof) -> None:
    groups = groups_of(proof)
    low, high = axis_ends(row for group in groups if group.is_judged for row in group.rows)
    sizes = [
        max(columns(cell) for cell in column)
        for column in zip(table_head(), *map(cells_of, rows_of(groups)), strict=True)
    ]
    says = max(width_of((row.says,)) for row in rows_of(groups))
    room = page.width - 4 - sum(sizes) - says - 2 * (len(sizes) + 1)
    if room >= PLOT_MIN:
        axis = Axis(low, high, min(room, PLOT_MAX))
        named: set[str] = set()
        page.blank()
        _add_wide_row(page, table_head(), sizes, [Span(_axis_scale(axis), "dim")], Span(""), "dim")
        for group in groups:
            _add_group(page, group)
            for name, rows in by_workload(group.rows):
                _add_name(page, name, named)
                for row in rows:
                    _add_wide_row(page, cells_of(row), sizes, _plot_row(row, axis), row.says)
    else:
        # As much as the figures next to a drawing leave; all, where that is too little and they go below.
        stated = max(columns(_stated_figures(row)) for group in groups if group.is_judged for row in group.rows)
        left = page.width - 6 - stated
        _add_stacked(page, groups, Axis(low, high, min(left if left >= PLOT_MIN else page.width - 4, PLOT_MAX)))
    page.blank()
    for text in (
        arms_words(proof),
        (
            "├──●──┤ estimate and interval, │ no change, ░ within the margin (guardrail: the cost allowed); "
            "better is to the right, where less is better (latency, CPU, time) to the left."
        ),
        level_words(proof),
    ):
        page.add(Span(text, "dim"))


def _add_wide_row(
    page: Page, cells: Cells, sizes: Sequence[int], plot: Sequence[Piece], says: Span, style: Style = ""
) -> None:
    texts = [padded(Span(cell, style), size + 2) for cell, size in zip(cells, sizes, strict=True)]
    page.row("    ", *texts[:4], *plot, "  ", *texts[4:], says)


def _add_stacked(page: Page, groups: Sequence[RowGroup], axis: Axis) -> None:
    """Two lines a row: figures and what is said about them, then the drawing; of what is not judged the first only."""
    named: set[str] = set()
    cells = [cells_of(row) for row in rows_of(groups)]
    sizes = [max(columns(one[at]) for one in cells) for at in range(2)]
    for group in groups:
        _add_group(page, group)
        for name, rows in by_workload(group.rows):
            _add_name(page, name, named)
            for row in rows:
                _add_stacked_row(page, row, sizes, axis, is_judged=group.is_judged)
        if group.is_judged and any(row.summary.pairs for row in group.rows):
            page.row("    ", Span(_axis_scale(axis), "dim"))


def _stated_figures(row: MetricRow) -> str:
    item = row.summary
    mde = format_amount(item.minimum_detectable_effect)
    parts = (p_words(p_of(item)), counted(item.pairs, "pair"), f"MDE {mde}" if mde else "")
    return ", ".join(filter(None, parts))


def _add_stacked_row(page: Page, row: MetricRow, sizes: Sequence[int], axis: Axis, *, is_judged: bool) -> None:
    cells = cells_of(row)
    change = f"{cells.change} ({cells.interval})  " if cells.change else ""
    figures = [padded(cell, size + 2) for cell, size in zip((cells.metric, cells.values), sizes, strict=True)]
    if width_of((*figures, change, row.says)) + 4 <= page.width:
        page.row("    ", *figures, change, row.says)
    else:
        change = change.rstrip(" ")
        page.add(f"{cells.metric} {cells.values}, {change}{', ' if change else ''}", row.says, indent=4, hang=2)
    if is_judged and row.summary.pairs:
        plot, stated = _plot_row(row, axis), _stated_figures(row)
        if 4 + axis.width + 2 + columns(stated) <= page.width:
            page.row("    ", *plot, f"  {stated}")
        else:
            page.row("    ", *plot)
            page.add(stated, indent=4)


def _add_group(page: Page, group: RowGroup) -> None:
    page.heading(group.title, Span(f": {group.note}" if group.note else "", "dim"))


def _add_name(page: Page, name: str, named: set[str]) -> None:
    """The name of a workload, where it comes for the first time with what it is."""
    known = None if name in named else workload_title(name)
    named.add(name)
    page.add(Span(name, "bold"), Span(f": {known}" if known else "", "dim"), indent=2, hang=2)


# -- drawing -----------------------------------------------------------------------------------------------------------


def _axis_scale(axis: Axis) -> str:
    return axis_labels(axis, *(format_percent(safe_expm1(end)) for end in (axis.low, axis.high)))


def _plot_row(row: MetricRow, axis: Axis) -> list[Span]:
    return plot_intervals(axis, interval_of(row.summary), band=row.band, style=row.says.style)
