"""Two injected bottlenecks at a time: the cases of which each changes other figures of a host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import combinations

from tests.diagnosis.cases import CASES, Case
from tests.diagnosis.moments import Machine

_LEVELS = ("io_some", "iowait", "memory_some", "cpu_some", "running", "user")
"""Of these the larger one holds where both cases change them."""


def changes_of(machine: Machine) -> dict[str, object]:
    well = Machine()
    return {
        one.name: getattr(machine, one.name)
        for one in fields(Machine)
        if getattr(machine, one.name) != getattr(well, one.name)
    }


def list_pairs() -> Iterator[tuple[Case, Case, Machine]]:
    """Every two cases that can be had at once."""
    for one, other in combinations(CASES, 2):
        first, second = changes_of(one.machine), changes_of(other.machine)
        both = first.keys() & second.keys()
        if both - set(_LEVELS) or one.right & other.right:
            continue
        merged = {**first, **second}
        merged |= {name: max(getattr(one.machine, name), getattr(other.machine, name)) for name in both}
        yield one, other, replace(Machine(), **merged)  # type: ignore[arg-type]
