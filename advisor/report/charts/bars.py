"""Bars of several arms: for each workload one bar an arm, its median, and the interval of the change against ``none``.

The chart of the white paper, with the intervals that it leaves out. Bars begin at zero and share one scale within a
workload, as units differ between workloads. Where the picture is wide, a dashed line marks ``none``.
"""

from __future__ import annotations

import textwrap
from typing import Final

import msgspec

from advisor.proof.blocks import NONE, ArmsProof, Effect
from advisor.report.charts.shapes import (
    FONT_SIZE,
    LETTER_WIDTH,
    LINE_HEIGHT,
    MIN_WIDTH,
    Box,
    ChartLine,
    Label,
    Picture,
    Shape,
    fit_text,
    text_width,
)
from advisor.report.format import clean
from advisor.report.proof_numbers import format_figure, format_percent
from advisor.report.proof_words import workload_title

BAR_HEIGHT: Final = 10.0
WIDE: Final = 600.0
"""Pixels from which names, bars and figures stand in one row."""
_GAP: Final = 18.0
_CAP: Final = 4.0
_SPACE: Final = 12.0
_ROW_HEIGHT: Final = 19.0
_LOOKS: Final = {"gain": "better", "loss": "worse"}
_DESCRIPTION: Final = (
    "For each workload one bar an arm: the median of its runs. The line at the end of a bar is the interval of the "
    "change against none, applied to the median of none."
)
_WIDE_DESCRIPTION: Final = f"{_DESCRIPTION} The dashed line marks none."


class _Area(msgspec.Struct, frozen=True):
    """Where bars stand, in percent of a picture that is ``width`` pixels wide or wider."""

    width: float
    left: float
    right: float

    @property
    def is_wide(self) -> bool:
        return self.left > 0

    def scale(self, highest: float) -> float:
        """Percent for one unit of a figure."""
        return (self.right - self.left) / highest if highest > 0 else 0.0


def draw_bars(result: ArmsProof, *, width: float = MIN_WIDTH) -> Picture:
    """Every workload in the order of the session, every arm in the order of the call, for ``width`` pixels or more."""
    if width < WIDE:
        area = _Area(width, 0.0, 100.0)
    else:
        names = max(text_width(fit_text(name, width / 3)) for name in result.arms)
        figures = max((text_width(_figure_words(one)) for one in result.effects), default=0.0)
        left = 100 * (names + _SPACE) / width
        area = _Area(width, left, max(left, 100 - 100 * (figures + _SPACE) / width))
    shapes: list[Shape] = []
    top = 0.0
    for workload in result.session.workloads:
        effects = [one for one in result.effects if one.workload == workload and one.before is not None]
        if not effects:
            continue
        top = _add_workload(shapes, area, workload, effects, top + (_GAP if top else 0.0))
    return Picture(
        "bars", "Medians of each arm", _WIDE_DESCRIPTION if area.is_wide else _DESCRIPTION, top + 4, tuple(shapes)
    )


def _figure_words(one: Effect) -> str:
    return f"{format_figure(one.after or 0.0)} ({format_percent((one.ratio or 1.0) - 1)})"


def _add_workload(shapes: list[Shape], area: _Area, workload: str, effects: list[Effect], top: float) -> float:
    bottom = top + 12
    shapes.append(Label(0.0, bottom, fit_text(workload, area.width), look="strong"))
    letters = int(area.width / (FONT_SIZE * LETTER_WIDTH))
    title, unit = workload_title(workload), effects[0].unit
    for line in textwrap.wrap(clean(f"{title} ({unit})" if title else unit), letters):
        bottom += LINE_HEIGHT
        shapes.append(Label(0.0, bottom, line, look="quiet"))
    bottom += 4
    effect_ends: list[float] = []
    for one in effects:
        effect_ends.append(one.before or 0.0)
        effect_ends.append(one.after or 0.0)
        span = _effect_span(one)
        if span is not None:
            effect_ends.append(span[1])
    highest = max(effect_ends)
    base = effects[0].before or 0.0
    at = area.left + base * area.scale(highest)
    first = bottom
    bottom = _add_bar(shapes, area, NONE, base, "plain", format_figure(base), None, highest, bottom)
    for one in effects:
        look = _LOOKS.get(one.call, "plain")
        bottom = _add_bar(
            shapes, area, one.arm, one.after or 0.0, look, _figure_words(one), _effect_span(one), highest, bottom
        )
    if area.is_wide:
        shapes.append(ChartLine(at, first + 2, at, bottom, "base"))
    return bottom


def _effect_span(one: Effect) -> tuple[float, float] | None:
    """The interval of the change, in the unit of the bars."""
    if one.interval is None or one.before is None:
        return None
    return one.interval[0] * one.before, one.interval[1] * one.before


def _add_bar(
    shapes: list[Shape],
    area: _Area,
    name: str,
    value: float,
    look: str,
    words: str,
    interval: tuple[float, float] | None,
    highest: float,
    top: float,
) -> float:
    scale = area.scale(highest)
    room = area.width / 3 if area.is_wide else area.width - text_width(words) - _SPACE
    base_line = top + (13 if area.is_wide else LINE_HEIGHT - 3)
    shapes.append(Label(0.0, base_line, fit_text(name, room)))
    shapes.append(Label(100.0, base_line, words, "end", look))
    bar = top + (4 if area.is_wide else LINE_HEIGHT + 1)
    shapes.append(Box(area.left, bar, value * scale, BAR_HEIGHT, f"bar {look}"))
    if interval is not None:
        low, high = (min(area.left + bound * scale, area.right) for bound in interval)
        middle = bar + BAR_HEIGHT / 2
        shapes.append(ChartLine(low, middle, high, middle, "interval"))
        shapes += [ChartLine(at, middle - _CAP, at, middle + _CAP, "interval") for at in (low, high)]
    return top + _ROW_HEIGHT if area.is_wide else bar + BAR_HEIGHT + 3
