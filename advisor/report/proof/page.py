"""The chart of changes: a forest plot of all that is judged, on a page and as a file of its own."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence

from advisor.proof.records import Proof
from advisor.report.format import clean
from advisor.report.html import (
    LETTER_WIDTH,
    LINE_HEIGHT,
    MIN_WIDTH,
    Box,
    Label,
    Line,
    Mark,
    Picture,
    Raw,
    Scale,
    Shape,
    Symbol,
    chart_width,
    cut_text,
    hold_label,
    html_environment,
    render_page,
    without_overlap,
)
from advisor.report.layout import Piece, Span, Style
from advisor.report.proof.numbers import change_words, format_percent
from advisor.report.proof.result import (
    MetricRow,
    RowGroup,
    axis_ends,
    by_workload,
    cells_of,
    groups_of,
    interval_of,
    table_head,
)
from advisor.report.proof.words import (
    AGAIN,
    KEPT,
    arms_words,
    class_words,
    command_again,
    command_kept,
    gate_words,
    host_rows,
    level_words,
    looks_words,
    metric_words,
    notes_of,
    reasons_of,
    session_rows,
    subject_words,
    values_of,
    verdict_words,
    workload_title,
    write_headlines,
)
from advisor.shell.quote import shell_quote

LEFT, RIGHT = 3.0, 97.0
CHART_WIDTH = 720
"""Pixels of the chart in a file of its own."""

_CAP = 4.0
_PLOT_HEIGHT = 18.0
_ROW_GAP = 6.0
_SYMBOLS: dict[str, Symbol] = {"Guardrails": "square", "Control": "diamond"}
_FOREST = (
    "Estimate and interval of each claim, guardrail and control on one axis of changes, logarithmic; "
    "better is to the right, where less is better to the left. The shaded band is the margin, for a guardrail "
    "the cost that is allowed. All figures are in the table that follows."
)
# Changes in percent at which an axis of log ratios may be labelled: the first family that fits is taken.
_FAMILIES: Sequence[Iterable[float]] = (
    range(-95, 201, 5),
    range(-90, 201, 10),
    range(-80, 101, 20),
    *(
        [float(change) for change in family.split()]
        for family in (
            "-90 -75 -50 -25 0 25 50 75 100 150 200 300",
            "-90 -50 0 50 100 200 400 900",
            "-90 -50 0 100 400 900",
            "-99 -90 0 900 9900 99900 999900",
            "-99.99 -99 0 9900 999900 99999900",
        )
    ),
)


def draw_forest(proof: Proof, *, width: float = MIN_WIDTH) -> Picture:
    """Draw every row that is judged, in the order of the table, for ``width`` pixels or more."""
    return forest_of(groups_of(proof), _FOREST, width=width)


def forest_of(shown: Iterable[RowGroup], description: str, *, width: float = MIN_WIDTH) -> Picture:
    """Draw any groups of rows."""
    groups = [group for group in shown if group.is_judged]
    scale = Scale(*axis_ends(row for group in groups for row in group.rows), LEFT, RIGHT)
    shapes: list[Shape] = []
    bottom = 0.0
    for group in groups:
        bottom += (10 if bottom else 0) + LINE_HEIGHT
        shapes.append(Label(0.0, bottom - 3, group.title, look="strong"))
        for name, rows in by_workload(group.rows):
            bottom += LINE_HEIGHT
            shapes.append(Label(0.0, bottom - 3, cut_text(name, width), look="quiet"))
            for row in rows:
                shapes += _forest_row(row, scale, bottom + _ROW_GAP, _SYMBOLS.get(group.title, "circle"), width)
                bottom += _ROW_GAP + LINE_HEIGHT + _PLOT_HEIGHT
    bottom += _ROW_GAP
    ticks = _axis_labels(scale, bottom + LINE_HEIGHT - 2)
    grid = [Line(at, LINE_HEIGHT, at, bottom, "grid") for at, _ in ticks]
    shapes = [*grid, *(label for _, label in ticks), *shapes]
    return Picture("forest", bottom + LINE_HEIGHT + 4, shapes, "What changed, and how sure that is", description)


def _forest_row(row: MetricRow, scale: Scale, top: float, symbol: Symbol, width: float) -> Iterable[Shape]:
    """Draw words, and below them the band, no change, and the interval with its ends and its estimate."""
    look = {"green": "better", "red": "worse"}.get(row.says.style, "plain")
    metric = metric_words(row.summary)
    says = ", ".join(filter(None, (change_words(row.summary), row.says.text)))
    yield Label(0.0, top + LINE_HEIGHT - 3, metric)
    yield Label(100.0, top + LINE_HEIGHT - 3, cut_text(says, width - chart_width(metric) - 6), "end", look)
    plot = top + LINE_HEIGHT
    middle, zero = plot + _PLOT_HEIGHT / 2, scale.at(0.0)
    if row.band is not None:
        begin, end = map(scale.at, row.band)
        yield Box(begin, plot, end - begin, _PLOT_HEIGHT, "band")
    yield Line(zero, plot, zero, plot + _PLOT_HEIGHT, "zero")
    if (interval := interval_of(row.summary)) is not None:
        low, at, high = map(scale.at, interval)
        yield Line(low, middle, high, middle, f"interval {look}")
        # An interval that goes on beyond the axis ends in an arrow.
        yield Mark(low, middle, "left", f"full {look}") if interval.low < scale.low else _cap(low, middle, look)
        yield Mark(high, middle, "right", f"full {look}") if interval.high > scale.high else _cap(high, middle, look)
        yield Mark(at, middle, symbol, f"full {look}")


def _cap(at: float, middle: float, look: str = "") -> Line:
    return Line(at, middle - _CAP, at, middle + _CAP, f"interval {look}".rstrip())


def _axis_labels(scale: Scale, base: float) -> list[tuple[float, Label]]:
    """Return the places of round changes and their labels, as fine as fits; the ends of a family may be left out."""
    for family in _FAMILIES:
        inside = [change / 100 for change in family if scale.low <= math.log1p(change / 100) <= scale.high]
        for changes in (inside, inside[1:], inside[:-1], inside[1:-1]):
            places = [scale.at(math.log1p(change)) for change in changes]
            words = map(format_percent, changes)
            labels = [
                hold_label(Label(at, base, text, "middle", "tick")) for at, text in zip(places, words, strict=True)
            ]
            if 0.0 in changes and len(labels) <= 9 and without_overlap(labels) == labels:
                return list(zip(places, labels, strict=True))
    return [(scale.at(0.0), hold_label(Label(scale.at(0.0), base, format_percent(0.0), "middle", "tick")))]


# -- files -------------------------------------------------------------------------------------------------------------


def chart_svg(drawn: Picture, title: str, said: Sequence[str], verdict: str = "", style: Style = "") -> str:
    """Return a chart as a file of its own with a key. ``said`` are lines below the title; ``verdict`` is its result."""
    made = html_environment()
    letters = int(CHART_WIDTH / LETTER_WIDTH)
    lines: list[Label] = []
    y = 0.0
    for text, look in ((title, "title"), *((text, "quiet") for text in said), (verdict, style)):
        for line in textwrap.wrap(clean(text), letters * 4 // 5 if look == "title" else letters):
            y += 18.0 if look == "title" else LINE_HEIGHT
            lines.append(Label(0, y, line, look=look))
    return made.get_template("chart_file.svg.j2").render(
        drawn=drawn,
        css=Raw(made.get_template("proof.css.j2").render()),
        title=title,
        lines=lines,
        inner=CHART_WIDTH,
        margin=20,
        key_top=y + 16,
        height=y + 82 + drawn.height,
    )


# A proof as one HTML page that needs nothing else: no script, nothing from outside, its style sheet named by hash.


def proof_page(proof: Proof) -> str:
    """The whole page. All text is escaped, and spelt out where it is not printable."""
    host = proof.session.host
    name, kernel = (None, None) if host is None else (host.name, host.kernel)
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
        notes=notes_of(proof),
        settings=values_of(proof),
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
        kept=command_kept(proof),
        kept_words=KEPT,
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
