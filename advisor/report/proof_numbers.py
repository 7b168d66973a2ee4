"""The figures of a proof as a person reads them: changes, intervals, p, sizes. Shared by the text and the page."""

from __future__ import annotations

import math
from collections.abc import Iterable

from advisor.proof.records import Summary
from advisor.report.units import format_binary


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
