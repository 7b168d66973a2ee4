"""Intervals drawn in characters, several on one axis, for any terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from advisor.report.layout import Span, Style

PLOT_MAX = 48
PLOT_MIN = 24
"""Columns of a drawing; with fewer than these next to the figures it goes below them."""

# Effects at which an axis may end, so that its labels are round.
_UP = (0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 7.0, 9.0)
_DOWN = (-0.01, -0.02, -0.03, -0.05, -0.1, -0.15, -0.2, -0.25, -0.3, -0.4, -0.5, -0.6, -0.7, -0.8, -0.9, -0.95)


class Drawn(NamedTuple):
    """An interval with its estimate, on the scale of the axis (logarithms of ratios)."""

    low: float
    middle: float
    high: float


class Axis(NamedTuple):
    """Ends, on either side of 0, and columns."""

    low: float
    high: float
    width: int

    def cell(self, value: float) -> int:
        share = (value - self.low) / (self.high - self.low)
        return round(min(max(share, 0.0), 1.0) * (self.width - 1))


def round_ends(values: Iterable[float], finest: float = 0.0) -> tuple[float, float]:
    """The last round effect below all values and the first above them, none within ``finest``; 0 lies between."""
    reach = [0.0, *values]
    low, high = min(reach), max(reach)
    return (
        next((end for end in map(math.log1p, _DOWN) if end <= min(low, math.log1p(-finest))), low),
        next((end for end in map(math.log1p, _UP) if end >= max(high, math.log1p(finest))), high),
    )


def axis_labels(axis: Axis, left: str, right: str) -> str:
    """The line below a drawing: both ends, and 0 where it stands."""
    line = f"{left}{right.rjust(axis.width - len(left))}"
    zero = axis.cell(0.0)
    if line[max(zero - 1, 0) : zero + 2] != "   ":
        return line
    return f"{line[:zero]}0{line[zero + 1 :]}"


def plot_intervals(
    axis: Axis, drawn: Drawn | None, *, band: tuple[float, float] | None, style: Style = ""
) -> list[Span]:
    """The track, the band, 0, and on them the interval. One that leaves out 0 never touches it, however it rounds."""
    zero = axis.cell(0.0)
    signs = [Span("·", "dim")] * axis.width
    if band is not None:
        for at in range(axis.cell(band[0]), axis.cell(band[1]) + 1):
            signs[at] = Span("░", "dim")
    signs[zero] = Span("│")
    if drawn is not None:
        low, middle, high = (_cell_eighths(axis.cell(value), zero, drawn, axis) for value in drawn)
        for at in range(low, high + 1):
            signs[at] = Span("┼" if at == zero else "─", style)
        signs[low] = Span("<" if drawn.low < axis.low else "├", style)
        signs[high] = Span(">" if drawn.high > axis.high else "┤", style)
        signs[middle] = Span("●", style)
    return signs


def _cell_eighths(cell: int, zero: int, drawn: Drawn, axis: Axis) -> int:
    if drawn.low > 0:
        cell = max(cell, zero + 1)
    if drawn.high < 0:
        cell = min(cell, zero - 1)
    return min(max(cell, 0), axis.width - 1)
