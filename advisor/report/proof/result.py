"""The rows of a proof's table, and the one axis on which their intervals stand. Shared by the text and the page.

The scale of the axis is the natural logarithm of after over before: a change stands at the tick of its figure, so where
less is better, better is to the left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from advisor.proof.comparison import ComparedSeries, Outcome, SeriesComparison, WorkloadDifference
from advisor.proof.records import Proof, Summary
from advisor.proof.statistics import MINIMUM_PAIRS
from advisor.proof.verdict import has_moved
from advisor.report.format import clean
from advisor.report.layout import Cell, Page, Piece, Span, Style, columns, counted, padded, width_of
from advisor.report.proof.numbers import (
    PLOT_MAX,
    PLOT_MIN,
    Axis,
    Drawn,
    axis_labels,
    change_words,
    figures_words,
    format_amount,
    format_amounts,
    format_figure,
    format_percent,
    interval_words,
    p_figure,
    p_of,
    p_words,
    plot_intervals,
    round_ends,
)
from advisor.report.proof.words import (
    AGAIN,
    KEPT,
    METRIC_WORDS,
    VERDICTS,
    arm_words,
    arms_words,
    command_again,
    command_kept,
    host_rows,
    level_words,
    metric_words,
    notes_of,
    reasons_of,
    session_rows,
    subject_words,
    unjudged_control,
    value_rows,
    verdict_words,
    workload_title,
    write_headlines,
)

__all__ = ["METRIC_WORDS", "format_percent", "p_words", "proof_text"]


class MetricRow(NamedTuple):
    """One metric: its summary, what is said about it, and the band that counts as no change (on the axis' scale)."""

    summary: Summary
    says: Span
    band: tuple[float, float] | None = None


class RowGroup(NamedTuple):
    title: str
    note: str
    rows: tuple[MetricRow, ...]
    is_judged: bool = True


class Cells(NamedTuple):
    """A row as text, but for its drawing."""

    metric: str
    values: str
    change: str
    interval: str
    p: str
    pairs: str
    mde: str


_NOT_MEASURED = "not measured"
_VOIDED = "void"


def table_head() -> Cells:
    """The headings of the columns."""
    return Cells("", "before → after", "change", "interval", "p", "pairs", "MDE")


def rows_of(groups: Iterable[RowGroup]) -> list[MetricRow]:
    return [row for group in groups for row in group.rows]


def groups_of(proof: Proof) -> list[RowGroup]:
    """Claims, guardrails, control, explored; those without rows left out."""
    remarks = {"invalid": "; void, nothing follows from them", "indicative": "; indicative only"}
    remark = remarks.get(proof.verdict, "")
    margins = f"margin ±{format_amounts(claim.margin for claim in proof.workloads)}"
    most = format_amounts(item.limit for item in proof.guardrails)
    limits = f"what must not get worse by more than {most}"
    claims = [MetricRow(one, _claim_says(proof, one), band_of(one.margin, one.margin)) for one in proof.workloads]
    if not proof.session.is_paired:
        return _arm_groups(proof, margins + remark, limits)
    explored = [MetricRow(item, Span("not judged", "dim")) for item in proof.exploratory]
    groups = (
        RowGroup("Claims", margins + remark, tuple(claims)),
        RowGroup("Guardrails", limits, tuple(_guard_row(proof, item) for item in proof.guardrails)),
        RowGroup(
            "Control", "what the change cannot touch", _control_rows(proof), is_judged=not unjudged_control(proof)
        ),
        RowGroup("Explored", "not judged", tuple(explored), is_judged=False),
    )
    return [group for group in groups if group.rows]


def _arm_groups(proof: Proof, margins: str, limits: str) -> list[RowGroup]:
    """Every arm against the first, and of its guardrails and control what is not as it should be, or is not known."""
    arms = [MetricRow(one, Span(*arm_words(proof, one)), band_of(one.margin, one.margin)) for one in proof.workloads]
    title = "Arms" if proof.session.ablation is None else "Values"
    guards = [_named(_guard_row(proof, one)) for one in proof.guardrails if one.status == "broken"]
    controls = []
    for one in proof.controls:
        moved = _has_moved(one, proof.session.subject.claims[0].margin or 0.0, proof.session.schedule.arms)
        controls.append(_named(MetricRow(one, Span("moved", "red") if moved else Span("did not move", "green"))))
    groups = (
        RowGroup(title, margins, tuple(arms)),
        RowGroup("Guardrails", limits, tuple(guards)),
        RowGroup("Control", "what no arm can touch", tuple(controls), is_judged=False),
    )
    return [group for group in groups if group.rows]


def _named(row: MetricRow) -> MetricRow:
    """The row with the name of its arm, and of a guardrail with that of its metric as well."""
    item = row.summary
    name = item.arm if item.limit is None else f"{item.arm}: {metric_words(item)}"
    return row._replace(summary=msgspec.structs.replace(item, arm=name, cost="undecided"))


def _claim_says(proof: Proof, claim: Summary) -> Span:
    """The verdict on one claim; in brackets where the session as a whole proves nothing."""
    if not claim.pairs:
        return Span(_NOT_MEASURED, "dim")
    words, style = VERDICTS[claim.verdict or "inconclusive"]
    match proof.verdict:
        case "invalid":
            return Span(_VOIDED, "dim")
        case "indicative":
            return Span(f"({words})", "yellow")
    return Span(words, style)


def band_of(down: float | None, up: float | None) -> tuple[float, float] | None:
    """Fractions below and above no change, as verdicts compare them: -10 % stands as far from 0 as +10 %."""
    values = [None if value is None or not 0 <= value < math.inf else math.log1p(value) for value in (down, up)]
    return None if values[0] is None or values[1] is None else (-values[0], values[1])


def _guard_row(proof: Proof, item: Summary) -> MetricRow:
    says = Span("limit kept")
    if not item.pairs:
        says = Span(_NOT_MEASURED, "dim")
    elif proof.verdict == "invalid":
        says = Span(_VOIDED, "dim")
    elif item.verdict == "loss" and proof.session.self_test:
        says = Span("false difference", "red")
    elif item.verdict == "loss":
        says = Span(f"over {format_amount(item.limit)} worse", "red")
    elif item.status == "undecided":
        says = Span("undecided", "yellow")
    band = band_of(item.limit, 0.0) if item.better == "higher" else band_of(0.0, item.limit)
    return MetricRow(item, says, band)


def _control_rows(proof: Proof) -> tuple[MetricRow, ...]:
    if proof.control is None:
        return ()
    margin = min((claim.margin for claim in proof.workloads if claim.margin is not None), default=math.inf)
    if not proof.control.pairs:
        return (MetricRow(proof.control, Span(_NOT_MEASURED, "dim")),)
    if proof.control.pairs < MINIMUM_PAIRS:
        # An estimate from so few pairs invites a judgement that they do not carry: the medians alone are printed.
        bare = msgspec.structs.replace(
            proof.control, ratio=None, ci95=None, effect=None, p_value=None, minimum_detectable_effect=None
        )
        return (MetricRow(bare, Span(unjudged_control(proof) or "", "dim")),)
    says = Span("moved", "red") if _has_moved(proof.control, margin) else Span("did not move", "green")
    return (MetricRow(proof.control, says),)


def _has_moved(control: Summary, margin: float, arms: int = 2) -> bool:
    # A record from a file may hold what no measurement gives.
    return control.effect is not None and control.effect > -1 and has_moved(control, margin, arms)


def cells_of(row: MetricRow) -> Cells:
    """A row's figures in words."""
    item = row.summary
    return Cells(
        metric=metric_words(item),
        values=f"{figures_words(item.before, item.after)} {clean(item.unit)}" if item.pairs else "no figures",
        change=change_words(item),
        interval=interval_words(item),
        p=p_figure(p_of(item)),
        pairs=str(item.pairs),
        mde=format_amount(item.minimum_detectable_effect),
    )


def by_workload(rows: Sequence[MetricRow]) -> Iterable[tuple[str, list[MetricRow]]]:
    """The rows of each workload, in the order in which the workloads come."""
    for name in dict.fromkeys(row.summary.name for row in rows):
        yield name, [row for row in rows if row.summary.name == name]


FINEST_END = 0.10
"""The axis reaches this effect on both sides at least."""


def interval_of(item: Summary) -> Drawn | None:
    """The interval on the axis' scale; None where it was not measured, or holds what has no logarithm."""
    if item.ratio is None or item.ci95 is None:
        return None
    values = (item.ci95[0], item.ratio, item.ci95[1])
    if not all(0 < value < math.inf for value in values):
        return None
    return Drawn(*sorted(map(math.log, values)))


def axis_ends(rows: Iterable[MetricRow]) -> tuple[float, float]:
    """The axis from the first to the last round effect around all that is drawn."""
    reach: list[float] = []
    for row in rows:
        reach += [*(row.band or ()), *(interval_of(row.summary) or ())]
    return round_ends(reach, FINEST_END)


def safe_expm1(value: float) -> float:
    """`math.expm1`, infinite where that overflows."""
    try:
        return math.expm1(value)
    except OverflowError:
        return math.inf


# A proof as text: the verdict in plain words, the figures with their intervals drawn, what became of the host.


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


# Two series against each other, as text: a row for each workload, and why that is no proof.

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
