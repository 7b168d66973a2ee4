"""A proof as one HTML page that needs nothing else: no script, nothing from outside, its style sheet named by hash.

The words and figures are those of the text; every picture has a table that says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from advisor.proof.metrics import MetricName
from advisor.proof.records import Proof, Summary
from advisor.report.charts.changes import CHART_WIDTH, chart_svg, draw_forest
from advisor.report.charts.runs import (
    DISPLAY_ONLY,
    TimelineEntry,
    draw_ladder,
    draw_slope,
    draw_timeline,
    laddered_names,
    list_entries,
    metric_unit,
    pair_values,
    read_rungs,
    timed_metrics,
)
from advisor.report.format import clean
from advisor.report.html import render_page
from advisor.report.layout import Piece, Span, counted
from advisor.report.proof_numbers import change_words, figures_words, format_figure, format_percent, interval_words
from advisor.report.proof_rows import by_workload, cells_of, groups_of, table_head
from advisor.report.proof_words import (
    AGAIN,
    METRIC_WORDS,
    arms_words,
    class_words,
    command_again,
    gate_words,
    host_rows,
    level_words,
    looks_words,
    metric_words,
    notes_of,
    reasons_of,
    session_rows,
    subject_words,
    verdict_words,
    workload_title,
    write_headlines,
)
from advisor.report.svg import Picture
from advisor.shell.quote import shell_quote


class Twin(msgspec.Struct, frozen=True):
    """A picture, where there is something to draw, and the table that says the same."""

    heading: str
    picture: Picture | None
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def proof_page(proof: Proof) -> str:
    """The whole page. All text is escaped, and spelt out where it is not printable."""
    host = proof.session.host
    name, kernel = (None, None) if host is None else (host.name, host.kernel)
    runs = list_entries(proof.session)
    return render_page(
        "proof",
        **_verdict_dict(proof),
        forest=draw_forest(proof),
        columns=("metric", *table_head()[1:], "result"),
        groups=[
            {
                "title": group.title,
                "note": group.note,
                "workloads": [
                    {
                        "name": name,
                        "title": workload_title(name),
                        "rows": [
                            {"cells": cells_of(row), "says": row.says.text, "style": row.says.style} for row in rows
                        ],
                    }
                    for name, rows in by_workload(group.rows)
                ],
            }
            for group in groups_of(proof)
        ],
        arms=arms_words(proof),
        level=level_words(proof),
        slopes=[_slope_twin(proof, claim, number) for number, claim in enumerate(proof.workloads, 1)],
        timelines=[
            _timeline_twin(proof, [one for one in runs if one.run.workload == name], metric, number)
            for number, (name, metric) in enumerate(timed_metrics(proof), 1)
        ],
        ladders=[
            Twin(
                heading=name,
                picture=draw_ladder(proof, name, number),
                caption="as a table",
                columns=("percentile", "before → after", "change", "interval", ""),
                rows=tuple(rung_cells(label, item) for label, item in read_rungs(proof, name)),
            )
            for number, name in enumerate(laddered_names(proof), 1)
        ],
        notes=notes_of(proof),
        settings=proof.values,
        is_self_test=proof.session.self_test,
        host=pieces_of([("name", (name or "unknown",)), ("kernel", (kernel or "unknown",)), *host_rows(proof)]),
        session=pieces_of(
            [
                *session_rows(proof),
                ("looks", (looks_words(proof),)),
                ("gate", (gate_words(proof),)),
                ("class", (class_words(proof),)),
            ]
        ),
        again=AGAIN,
        command=command_again(proof),
        reanalyse=None if proof.saved_to is None else f"advisor compare {shell_quote(proof.saved_to)}",
    )


def proof_svg(proof: Proof) -> str:
    """The forest as a file of its own, which says by itself what was compared and how far it can be relied on."""
    what, where = subject_words(proof)
    words, style = verdict_words(proof)
    first, *others = write_headlines(proof)
    said = [f"{where}, {proof.session.started[:10]}", *others]
    return chart_svg(draw_forest(proof, width=CHART_WIDTH), what, said, f"{words}: {first}", style)


def _verdict_dict(proof: Proof) -> dict[str, object]:
    words, style = verdict_words(proof)
    what, where = subject_words(proof)
    return {
        "verdict": words,
        "verdict_style": style,
        "headlines": write_headlines(proof),
        "reasons": reasons_of(proof),
        "what": what,
        "where": where,
    }


def pieces_of(rows: Iterable[tuple[str, Sequence[Piece]]]) -> list[tuple[str, list[Span]]]:
    return [(label, [piece if isinstance(piece, Span) else Span(piece) for piece in pieces]) for label, pieces in rows]


def _slope_twin(proof: Proof, claim: Summary, number: int) -> Twin:
    pairs = pair_values(proof, claim)
    unit = claim.unit
    return Twin(
        heading=f"{metric_words(claim)} of {claim.name}",
        picture=draw_slope(proof, claim, number),
        caption=f"{counted(len(pairs), 'pair')} as a table",
        columns=("pair", "order", f"A, {unit}", f"B, {unit}", "change"),
        rows=tuple(
            (str(one.pair), one.order, format_figure(one.before), format_figure(one.after), format_percent(one.change))
            for one in pairs
        ),
    )


def _timeline_twin(proof: Proof, runs: Sequence[TimelineEntry], metric: MetricName, number: int) -> Twin:
    name = runs[0].run.workload
    return Twin(
        heading=f"{METRIC_WORDS.get(metric, metric)} of {name}",
        picture=draw_timeline(proof, name, metric, number),
        caption=f"{counted(len(runs), 'run')} as a table",
        columns=("pair", "attempt", "order", "arm", clean(metric_unit(proof, metric)), "state", "contaminated by"),
        rows=tuple(_run_cells(entry, metric) for entry in runs),
    )


def _run_cells(entry: TimelineEntry, metric: MetricName) -> tuple[str, ...]:
    where = (str(entry.pair), str(entry.attempt), entry.order) if entry.pair else ("", "", "")
    value = format_figure(entry.run.figures.value(metric))
    return (*where, entry.run.arm, value, entry.state, ", ".join(entry.run.lamps))


def rung_cells(label: str, item: Summary) -> tuple[str, ...]:
    values = f"{figures_words(item.before, item.after)} {clean(item.unit)}"
    says = "for display only" if item.metric == DISPLAY_ONLY else ""
    return (label, values, change_words(item), interval_words(item), says)
