"""Intervals drawn in characters, several on one axis, for any terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from advisor.proof.records import Summary
from advisor.report.layout import Span, Style
from advisor.report.units import format_binary

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


# The figures of a proof as a person reads them: changes, intervals, p, sizes. Shared by the text and the page.


def format_percent(fraction: float) -> str:
    """A change: ``+38 %``, ``-2.3 %``; as a factor, ``×12``, where percents are hard to read."""
    if not math.isfinite(fraction):
        return "?"
    if fraction >= 9 or fraction <= -0.99:
        return f"×{1 + fraction:,.0f}" if 99 <= fraction < 1e6 else f"×{1 + fraction:.2g}"
    if abs(fraction) < 0.00005:
        return "0 %"
    return f"{100 * fraction:+.{_count_decimals(fraction)}f} %"


def format_amount(fraction: float | None) -> str:
    """A size without a sign: ``12 %``; empty where it is unknown."""
    if fraction is None or not math.isfinite(fraction):
        return ""
    return format_percent(fraction).removeprefix("+").replace(".0 %", " %")


def format_amounts(fractions: Iterable[float | None]) -> str:
    """Different sizes, with commas."""
    return ", ".join(dict.fromkeys(filter(None, map(format_amount, fractions))))


def _count_decimals(fraction: float) -> int:
    return 0 if abs(fraction) >= 0.0995 else 1 if abs(fraction) >= 0.0005 else 2


def change_words(item: Summary) -> str:
    """``+28 %``; empty where it was not measured."""
    return "" if item.ratio is None else format_percent(item.ratio - 1)


def interval_words(item: Summary) -> str:
    """``+25 % to +32 %``; ``no interval`` of one pair, empty where it was not measured."""
    if item.ci95 is None:
        return "" if item.ratio is None else "no interval"
    low, high = (format_percent(bound - 1) for bound in item.ci95)
    return f"{low} to {high}"


def figures_words(before: float | None, after: float | None) -> str:
    """``970 → 1,464``, both counted in millions where one of them is large."""
    if before is None or after is None or not (math.isfinite(before) and math.isfinite(after)):
        return "? → ?"
    if min(before, after) >= 1e4 and 1e6 <= max(before, after) < 1e9:
        return f"{before / 1e6:.2f}M → {after / 1e6:.2f}M"
    return f"{format_figure(before)} → {format_figure(after)}"


def format_figure(value: float) -> str:
    """Three significant digits, or whole with thousands apart."""
    return f"{value:,.0f}" if 100 <= abs(value) < 1e9 else f"{value:.3g}"


def p_of(item: Summary) -> float | None:
    """The p that the verdict rests on: adjusted, where there are several."""
    return item.p_value if item.p_holm is None else item.p_holm


def p_figure(p: float | None) -> str:
    """As many digits as distinguish it from the levels that it is compared with."""
    if p is None:
        return ""
    return "<0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.1 else f"{p:.2f}"


def p_words(p: float | None) -> str:
    """``p = 0.0005``, ``p < 0.0001``; empty where there is none."""
    figure = p_figure(p)
    return f"p < {figure[1:]}" if figure.startswith("<") else f"p = {figure}" if figure else ""


def format_written(count: int, budget: int) -> str:
    """What a session wrote of what it was allowed to, in bytes."""
    if not count:
        return "nothing"
    exact = f" ({counted_bytes(count)})" if count >= 1024 else ""
    return f"{format_binary(count)}{exact}; {format_binary(budget)} were allowed"


def counted_bytes(count: int) -> str:
    """``1,234 bytes``."""
    return f"{count:,} {'byte' if count == 1 else 'bytes'}"
