"""Whether the traffic repeats, read off a time in which nothing was switched. Pure.

A load that comes and goes as often as the periods do hides an effect from the pairs: each pair has the burst in the
same place, and the coin protects the level of the test, not its power. So the figures of each second are compared with
waves of every length that fits twice into the time that was watched, with their second harmonic. The one that explains
most counts as the length of a cycle where it explains enough and comes at the same phase in each third of that time: a
load that only wanders explains much, too, but comes back at any phase. Where a cycle does not fit three times there are
two halves to compare, which are alike by chance more often, and more is asked of both. What is found before the first
coin is tossed cannot depend on it, so that periods chosen by it, and figures divided by it, leave every test by the
coin exact.
"""

from __future__ import annotations

import cmath
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

SHORTEST_CYCLE: Final = 8.0
"""Seconds. Shorter ones are in every period as a whole, or nearly."""
_LEAST_CYCLES: Final = 2
"""That the time watched must hold."""
_PARTS: Final = 3
"""Into so many the time is cut to see whether the phase is kept, as long as each holds a cycle; else into two."""
_LEAST_COHERENCE: Final[Mapping[int, float]] = MappingProxyType({3: 0.6, 2: 0.8})
"""Between any two of so many parts: 1 where they are alike, 0 on average where their phases are drawn by chance."""
_COARSE: Final = 0.5
"""Step in cycles per time watched: half of what can be distinguished."""
_FINE: Final = 0.02
"""The same, near the cycle that was found."""
_HARMONICS: Final = 2
_EVIDENCE: Final[Mapping[int, float]] = MappingProxyType({3: 8.0, 2: 15.0})
"""F of a cycle over what is left, by the parts. Without one, the largest of all lengths that fit three times is below 6
in 99 % (simulated); a step or a wave that wanders explains more, where it is as long as half of the time."""
_SLOTS: Final = 40
"""Phases of a cycle that have a factor of their own, each the mean of what lies near it."""
_NEAR: Final = 0.06
"""Share of a cycle to either side."""

Logs = Sequence[tuple[float, float]]
"""Seconds since the start, and ln of the figure there less its straight line."""


class LoadCycle(NamedTuple):
    """A load that repeats: how long a cycle is, in seconds, and by which factor the figure of each phase differs."""

    seconds: float
    factors: tuple[float, ...]

    def factor_at(self, at: float) -> float:
        """The factor at a time in seconds since the start of what was watched."""
        return self.factors[int(at % self.seconds / self.seconds * len(self.factors)) % len(self.factors)]

    def whole_cycles(self, least: float) -> float:
        """The shortest time of whole cycles that is not below ``least``, in whole seconds."""
        return float(round(self.seconds * max(1, math.ceil(least / self.seconds - _FINE))))


def find_cycle(figures: Iterable[tuple[float, float | None]]) -> LoadCycle | None:
    """The cycle of figures, each with its time in seconds since the start; None where none is plain.

    Seconds without a figure above 0 are left out.
    """
    logs = _without_line([(at, math.log(value)) for at, value in figures if value is not None and value > 0])
    total = sum(value * value for _, value in logs)
    if len(logs) < _LEAST_CYCLES * SHORTEST_CYCLE or total <= 0:
        return None
    watched = logs[-1][0] - logs[0][0] + 1
    steps = range(round(_LEAST_CYCLES / _COARSE), int(watched / SHORTEST_CYCLE / _COARSE) + 1)
    explained, count = max(
        ((_explained(logs, step * _COARSE / watched), step * _COARSE) for step in steps), default=(0.0, 0.0)
    )
    parameters, parts = 2 * _HARMONICS, _PARTS if count >= _PARTS else 2
    if explained * (len(logs) - parameters - 2) < _EVIDENCE[parts] * parameters * (total - explained):
        return None
    near = round(_COARSE / 2 / _FINE)
    nearest = (count + step * _FINE for step in range(-near, near + 1))
    _, fine = max((_explained(logs, one / watched), one) for one in nearest)
    is_kept = _keeps_phase(logs, fine / watched, parts)
    return LoadCycle(watched / fine, _factors_of(logs, watched / fine)) if is_kept else None


def level_figures(
    figures: Iterable[tuple[float, float | None]], cycle: LoadCycle | None
) -> Iterator[tuple[float, float | None]]:
    """The figures less what the cycle makes of them."""
    for at, value in figures:
        yield at, value if value is None or cycle is None else value / cycle.factor_at(at)


def _without_line(logs: Logs) -> Logs:
    """Less the straight line through them: a load that rises or falls is no wave."""
    if not logs:
        return logs
    middle, mean = (sum(one[side] for one in logs) / len(logs) for side in (0, 1))
    spread = sum((at - middle) ** 2 for at, _ in logs)
    slope = sum((at - middle) * value for at, value in logs) / spread if spread else 0.0
    return [(at, value - mean - slope * (at - middle)) for at, value in logs]


def _keeps_phase(logs: Logs, frequency: float, count: int) -> bool:
    """Whether a wave and its harmonics come at the same phases in each of so many parts of the time."""
    began, length = logs[0][0], (logs[-1][0] - logs[0][0] + 1) / count
    parts: list[list[complex]] = []
    for part in range(count):
        inside = [(at, value) for at, value in logs if part <= (at - began) / length < part + 1]
        turns = [2j * math.pi * harmonic * frequency for harmonic in range(1, _HARMONICS + 1)]
        parts.append([sum((value * cmath.exp(turn * at) for at, value in inside), 0j) for turn in turns])
    for one, other in itertools.combinations(parts, 2):
        alike = sum((a * b.conjugate()).real for a, b in zip(one, other, strict=True))
        sizes = (math.sqrt(sum(abs(a) ** 2 for a in found)) for found in (one, other))
        if alike < _LEAST_COHERENCE[count] * math.prod(sizes):
            return False
    return True


def _explained(logs: Logs, frequency: float) -> float:
    """Of the sum of squares, what a wave of that frequency and its harmonics explain."""
    found = 0.0
    for harmonic in range(1, _HARMONICS + 1):
        turn = 2 * math.pi * harmonic * frequency
        cosines = sum(value * math.cos(turn * at) for at, value in logs)
        sines = sum(value * math.sin(turn * at) for at, value in logs)
        found += (cosines * cosines + sines * sines) * 2 / len(logs)
    return found


def _factors_of(logs: Logs, seconds: float) -> tuple[float, ...]:
    phases = [(at % seconds / seconds, value) for at, value in logs]
    found = []
    for slot in range(_SLOTS):
        centre = (slot + 0.5) / _SLOTS
        near = [value for phase, value in phases if abs((phase - centre + 0.5) % 1 - 0.5) <= _NEAR]
        found.append(math.exp(sum(near) / len(near)) if near else 1.0)
    return tuple(found)
