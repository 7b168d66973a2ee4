"""Forest plot: the estimate and interval of everything that is judged, against the band that counts as no change."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from advisor.proof.records import Proof
from advisor.report.charts.scale import CHANGE_FAMILIES, Scale
from advisor.report.charts.shapes import (
    LINE_HEIGHT,
    MIN_WIDTH,
    Box,
    ChartLine,
    Label,
    Mark,
    Picture,
    Shape,
    Symbol,
    fit_text,
    hold_label,
    text_width,
    without_overlap,
)
from advisor.report.proof_numbers import change_words, format_percent
from advisor.report.proof_rows import MetricRow, RowGroup, axis_ends, by_workload, groups_of, interval_of
from advisor.report.proof_words import metric_words

LEFT: Final = 3.0
RIGHT: Final = 97.0
PLOT_HEIGHT: Final = 18.0
CAP: Final = 4.0
_HEADING_GAP: Final = 10.0
_ROW_GAP: Final = 6.0
_MOST_TICKS: Final = 9
_SYMBOLS: Final[Mapping[str, Symbol]] = {"Guardrails": "square", "Control": "diamond"}
_DESCRIPTION: Final = (
    "Estimate and interval of each claim, guardrail and control on one axis of changes, logarithmic; "
    "better is to the right, where less is better to the left. The shaded band is the margin, for a guardrail "
    "the cost that is allowed. All figures are in the table that follows."
)


def draw_forest(proof: Proof, *, width: float = MIN_WIDTH) -> Picture:
    """Every row that is judged, in the order of the table, on the axis of the table in the text, for ``width`` pixels
    or more."""
    return forest_of(groups_of(proof), _DESCRIPTION, width=width)


def forest_of(shown: Iterable[RowGroup], description: str, *, width: float = MIN_WIDTH) -> Picture:
    """The same of any groups of rows."""
    groups = [group for group in shown if group.is_judged]
    scale = Scale(*axis_ends(row for group in groups for row in group.rows), LEFT, RIGHT)
    shapes: list[Shape] = []
    bottom = 0.0
    for group in groups:
        bottom = _add_group(shapes, group, scale, bottom, width)
    axis = _draw_axis(scale, bottom + _ROW_GAP)
    return Picture(
        name="forest",
        title="What changed, and how sure that is",
        description=description,
        height=bottom + _ROW_GAP + LINE_HEIGHT + 4,
        shapes=(*axis, *shapes),
    )


def _add_group(shapes: list[Shape], group: RowGroup, scale: Scale, top: float, width: float) -> float:
    """Add a heading and the rows below it; where they end."""
    bottom = top + (_HEADING_GAP if top else 0.0) + LINE_HEIGHT
    shapes.append(Label(0.0, bottom - 3, group.title, look="strong"))
    for name, rows in by_workload(group.rows):
        bottom += LINE_HEIGHT
        shapes.append(Label(0.0, bottom - 3, fit_text(name, width), look="quiet"))
        for row in rows:
            bottom = _add_row(shapes, row, scale, bottom + _ROW_GAP, _SYMBOLS.get(group.title, "circle"), width)
    return bottom


def _add_row(shapes: list[Shape], row: MetricRow, scale: Scale, top: float, symbol: Symbol, width: float) -> float:
    base = top + LINE_HEIGHT - 3
    metric = metric_words(row.summary)
    says = ", ".join(filter(None, (change_words(row.summary), row.says.text)))
    shapes.append(Label(0.0, base, metric))
    shapes.append(Label(100.0, base, fit_text(says, width - text_width(metric) - 6), "end", _row_look(row)))
    plot = top + LINE_HEIGHT
    # The band, no change, and the interval with its ends and its estimate.
    middle, zero = plot + PLOT_HEIGHT / 2, scale.at(0.0)
    if row.band is not None:
        begin, end = map(scale.at, row.band)
        shapes.append(Box(begin, plot, end - begin, PLOT_HEIGHT, "band"))
    shapes.append(ChartLine(zero, plot, zero, plot + PLOT_HEIGHT, "zero"))
    drawn = interval_of(row.summary)
    if drawn is not None:
        low, at, high = map(scale.at, drawn)
        shapes.append(ChartLine(low, middle, high, middle, f"interval {_row_look(row)}"))
        shapes += _draw_ends(row, scale, middle)
        shapes.append(Mark(at, middle, symbol, f"full {_row_look(row)}"))
    return plot + PLOT_HEIGHT


def _row_look(row: MetricRow) -> str:
    return {"green": "better", "red": "worse"}.get(row.says.style, "plain")


def _draw_ends(row: MetricRow, scale: Scale, middle: float) -> Iterable[Shape]:
    """A bar where the interval ends, an arrow where it goes on beyond the axis."""
    drawn = interval_of(row.summary)
    assert drawn is not None
    for value, is_beyond, arrow in (
        (drawn.low, drawn.low < scale.low, "left"),
        (drawn.high, drawn.high > scale.high, "right"),
    ):
        at = scale.at(value)
        if is_beyond:
            yield Mark(at, middle, "left" if arrow == "left" else "right", f"full {_row_look(row)}")
        else:
            yield ChartLine(at, middle - CAP, at, middle + CAP, f"interval {_row_look(row)}")


def _draw_axis(scale: Scale, bottom: float) -> list[Shape]:
    """Ticks at round changes, and a line up from each."""
    changes = next((ticks for ticks in _tick_candidates(scale) if _labels_fit(scale, ticks)), [0.0])
    grid = [ChartLine(at, LINE_HEIGHT, at, bottom, "grid") for at in (scale.at(math.log1p(one)) for one in changes)]
    return [*grid, *_axis_labels(scale, changes, bottom + LINE_HEIGHT - 2)]


def _tick_candidates(scale: Scale) -> Iterable[Sequence[float]]:
    """The round changes on the axis, finest first; each family also without the ones at the ends, which crowd."""
    for family in CHANGE_FAMILIES:
        inside = [change for change in family if scale.low <= math.log1p(change) <= scale.high]
        yield from (part for part in (inside, inside[1:], inside[:-1], inside[1:-1]) if 0.0 in part)


def _labels_fit(scale: Scale, changes: Sequence[float]) -> bool:
    labels = _axis_labels(scale, changes, 0.0)
    return len(labels) <= _MOST_TICKS and without_overlap(labels) == labels


def _axis_labels(scale: Scale, changes: Sequence[float], base: float) -> list[Label]:
    return [
        hold_label(Label(scale.at(math.log1p(one)), base, format_percent(one), "middle", "tick")) for one in changes
    ]
