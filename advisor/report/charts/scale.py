"""From values to places: linear and logarithmic scales, and ticks at round values. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, TypeGuard

import msgspec

_ROUND: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_WIDE: Final = 6.0
"""A range of more than this factor has its ticks at powers of ten and parts of them, a narrower one at equal steps."""


class Scale(msgspec.Struct, frozen=True):
    """A straight line from (``low``, ``begin``) to (``high``, ``end``); what lies outside is put at its nearer end."""

    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        """The place of a value. ``low`` equal to ``high`` puts everything in the middle."""
        if self.high <= self.low:
            return (self.begin + self.end) / 2
        share = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
        return self.begin + share * (self.end - self.begin)


class LogScale(msgspec.Struct, frozen=True):
    """The same over logarithms: equal ratios are equal distances. For values above zero."""

    scale: Scale

    def at(self, value: float) -> float:
        """The place of a value above zero."""
        return self.scale.at(math.log(value))


def log_scale(values: Iterable[float], begin: float, end: float, *, least_ratio: float = 1.1) -> LogScale:
    """A scale around all values that are finite and above zero, at least ``least_ratio`` wide, with some air."""
    logs = [math.log(value) for value in values if is_drawable(value)] or [0.0]
    low, high = min(logs), max(logs)
    missing = max(0.0, math.log(least_ratio) - (high - low)) / 2
    air = (high - low + 2 * missing) * 0.06
    return LogScale(Scale(low - missing - air, high + missing + air, begin, end))


def is_drawable(value: float | None) -> TypeGuard[float]:
    """Whether a value has a place on a logarithmic scale, and ticks around it a short label."""
    return value is not None and 1e-80 < value < 1e80


def value_ticks(scale: LogScale, most: int) -> list[float]:
    """At most ``most`` round values inside a logarithmic scale, rising; at least one where the scale holds one."""
    low, high = scale.scale.low, scale.scale.high
    if high - low > math.log(_WIDE):
        found = _decade_ticks(low, high, most)
    else:
        found = _step_ticks(math.exp(low), math.exp(high), most)
    return found[:most]


def _decade_ticks(low: float, high: float, most: int) -> list[float]:
    first, last = math.floor(low / math.log(10)), math.ceil(high / math.log(10))
    for parts in ((1, 2, 5), (1, 3), (1,)):
        found = _values_inside(
            (part * _power_label(decade) for decade in range(first, last + 1) for part in parts), low, high
        )
        if len(found) <= most:
            return found
    every = math.ceil((last - first + 1) / max(most, 1))
    return _values_inside((_power_label(decade) for decade in range(first, last + 1, every)), low, high)


def _power_label(decade: int) -> float:
    # 10.0 ** 309 overflows, and 1e-324 is zero.
    return float(f"1e{decade}") if -323 <= decade <= 308 else 0.0


def _values_inside(values: Iterable[float], low: float, high: float) -> list[float]:
    return [value for value in values if is_drawable(value) and low <= math.log(value) <= high]


def _step_ticks(low: float, high: float, most: int) -> list[float]:
    rough = (high - low) / max(most, 1)
    if not is_drawable(rough):
        return []
    unit = 10.0 ** math.floor(math.log10(rough))
    for step in (unit * factor for factor in (*_ROUND, 20.0)):
        first = math.ceil(low / step)
        last = math.floor(high / step)
        if 0 <= last - first < most:
            # Counted, not added up: 0.1 + 0.1 + 0.1 is not 0.3.
            return [number * step for number in range(first, last + 1) if number > 0]
    return []


# Changes, as fractions, at which an axis of log ratios may be labelled: the first family that fits is taken.
_TENTHS: Final = tuple(number / 10 for number in range(-9, 21))
CHANGE_FAMILIES: Final[Sequence[Sequence[float]]] = (
    tuple(number / 20 for number in range(-19, 41)),
    _TENTHS,
    (-0.8, -0.6, -0.4, -0.2, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    (-0.9, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0),
    (-0.9, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 9.0),
    (-0.9, -0.5, 0.0, 1.0, 4.0, 9.0),
    (-0.99, -0.9, 0.0, 9.0, 99.0, 999.0, 9999.0),
    (-0.9999, -0.99, 0.0, 99.0, 9999.0, 999999.0),
)


def tick_words(value: float) -> str:
    """A round value above zero in at most seven characters: ``102.5``, ``1,200``, ``250k``, ``1.05M``."""
    for unit, size in (("", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e4)):
        if value >= size:
            return f"{value / (1e3 if unit == 'k' else size):.4g}{unit}" if unit else f"{value:.1e}".replace("e+", "e")
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if value >= 0.01 else f"{value:.1e}"
