"""Bars of several arms: for each workload one bar an arm, its median, and the interval of the change against ``none``.

The chart of the white paper, with the intervals that it leaves out. Bars begin at zero and share one scale within a
workload, as units differ between workloads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from advisor.proof.blocks import NONE, ArmsProof, Effect
from advisor.report.charts.shapes import LINE_HEIGHT, MIN_WIDTH, Box, Label, Line, Picture, Shape, fitted
from advisor.report.proof_numbers import figure, percent
from advisor.report.proof_words import workload_title

BAR_HEIGHT: Final = 10.0
_RIGHT: Final = 100.0
_GAP: Final = 16.0
_CAP: Final = 4.0
_LOOKS: Final = {"gain": "better", "loss": "worse"}
_DESCRIPTION: Final = (
    "For each workload one bar an arm: the median of its runs. The line at the end of a bar is the interval of the "
    "change against none, applied to the median of none. All figures are in the table that follows."
)


def bars(result: ArmsProof) -> Picture:
    """Every workload in the order of the session, every arm in the order of the call."""
    shapes: list[Shape] = []
    top = 0.0
    for workload in result.session.workloads:
        effects = [one for one in result.effects if one.workload == workload and one.before is not None]
        if not effects:
            continue
        top = _add_workload(shapes, workload, effects, top + (_GAP if top else 0.0))
    return Picture("bars", "Medians of each arm", _DESCRIPTION, top + 4, tuple(shapes))


def _add_workload(shapes: list[Shape], workload: str, effects: list[Effect], top: float) -> float:
    unit = effects[0].unit
    title = workload_title(workload)
    shapes.append(Label(0.0, top + 12, fitted(workload, MIN_WIDTH), look="strong"))
    shapes.append(Label(0.0, top + 12 + LINE_HEIGHT, fitted(f"{title} ({unit})", MIN_WIDTH), look="quiet"))
    bottom = top + 12 + LINE_HEIGHT + 4
    highest = max(_ends(effects))
    base = effects[0].before or 0.0
    bottom = _add_bar(shapes, NONE, base, "plain", figure(base), None, highest, bottom)
    for one in effects:
        words = f"{figure(one.after or 0.0)} ({percent((one.ratio or 1.0) - 1)})"
        interval = _span(one)
        bottom = _add_bar(
            shapes, one.arm, one.after or 0.0, _LOOKS.get(one.call, "plain"), words, interval, highest, bottom
        )
    return bottom


def _ends(effects: Iterable[Effect]) -> Iterable[float]:
    for one in effects:
        yield one.before or 0.0
        yield one.after or 0.0
        span = _span(one)
        if span is not None:
            yield span[1]


def _span(one: Effect) -> tuple[float, float] | None:
    """The interval of the change, in the unit of the bars."""
    if one.interval is None or one.before is None:
        return None
    return one.interval[0] * one.before, one.interval[1] * one.before


def _add_bar(
    shapes: list[Shape],
    name: str,
    value: float,
    look: str,
    words: str,
    interval: tuple[float, float] | None,
    highest: float,
    top: float,
) -> float:
    scale = _RIGHT / highest if highest > 0 else 0.0
    shapes.append(Label(0.0, top + LINE_HEIGHT - 3, fitted(name, MIN_WIDTH * 0.6)))
    shapes.append(Label(100.0, top + LINE_HEIGHT - 3, words, "end", look))
    bar = top + LINE_HEIGHT + 1
    shapes.append(Box(0.0, bar, value * scale, BAR_HEIGHT, f"bar {look}"))
    if interval is not None:
        low, high = (min(bound * scale, _RIGHT) for bound in interval)
        middle = bar + BAR_HEIGHT / 2
        shapes.append(Line(low, middle, high, middle, "interval"))
        shapes += [Line(at, middle - _CAP, at, middle + _CAP, "interval") for at in (low, high)]
    return bar + BAR_HEIGHT + 3
