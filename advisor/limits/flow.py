"""The most that several paths carry together behind shared parts, and the parts that bind: a small linear programme.

Each path is a variable, each part a row: what every path loads it with for each MB/s (or operation) of the path, and
what it carries. The sum of all paths is made as large as the rows allow, by the simplex method with Bland's rule, which
always ends (Chvátal, Linear Programming, 1983, chapters 2, 3 and 5). The dual values say which parts bind: a part's
dual times its capacity is its share of the result, and the shares add up to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

_TINY = 1e-9


class SharedPart(msgspec.Struct, frozen=True):
    """Something that paths share, by its name and the devices that it is.

    ``capacity`` is infinite where it is not known or there is no limit; ``loads``: what a path, by its number, takes of
    it for each unit that the path carries.
    """

    stage: str
    name: str
    members: tuple[str, ...]
    capacity: float
    loads: Mapping[int, float]


class FlowBound(msgspec.Struct, frozen=True):
    """A stage that binds by these members, and how much of the result it accounts for."""

    stage: str
    members: tuple[str, ...]
    share: float


class Most(msgspec.Struct, frozen=True):
    """The largest sum, and the parts that bind it; their shares add up to it."""

    value: float
    bounds: tuple[FlowBound, ...]


def most(paths: Iterable[int], parts: Iterable[SharedPart]) -> Most | None:
    """The most that these paths carry together; None where one of them has no known limit. Of equal parts the first
    binds."""
    columns = list(dict.fromkeys(paths))
    wanted = set(columns)
    rows: dict[tuple[tuple[int, float], ...], tuple[float, list[SharedPart]]] = {}
    for part in parts:
        loads = {path: load for path, load in part.loads.items() if path in wanted and load > 0}
        if not loads or not math.isfinite(part.capacity):
            continue
        largest = max(loads.values())
        # Parts that every path loads in the same proportion are one row: the smallest of them.
        key = tuple(sorted((path, round(load / largest, 12)) for path, load in loads.items()))
        capacity = part.capacity / largest
        if key not in rows or capacity < rows[key][0] * (1 - _TINY):
            rows[key] = (capacity, [part])
        elif capacity <= rows[key][0] * (1 + _TINY) and part.stage == rows[key][1][0].stage:
            rows[key][1].append(part)
    if not wanted <= {path for key in rows for path, _ in key}:
        return None
    if not columns:
        return Most(0.0, ())
    listed = [(dict(key), capacity, parts) for key, (capacity, parts) in rows.items()]
    duals = _find_duals(columns, [(loads, capacity) for loads, capacity, _ in listed])
    bounds = [
        FlowBound(parts[0].stage, tuple(dict.fromkeys(name for one in parts for name in one.members)), dual * capacity)
        for (_, capacity, parts), dual in zip(listed, duals, strict=True)
        if dual > _TINY
    ]
    return Most(sum(one.share for one in bounds), tuple(bounds))


def _find_duals(columns: Sequence[int], rows: Sequence[tuple[Mapping[int, float], float]]) -> list[float]:
    """The dual value of each row at the optimum of: largest sum of all columns, each row's load within its capacity.

    A row of the tableau is ``{variable: coefficient}``; variables are the columns, then a slack for each row.
    """
    slack = {row: ("slack", row) for row in range(len(rows))}
    scale = max((capacity for _, capacity in rows), default=1.0) or 1.0
    tableau: list[dict[object, float]] = [dict(loads) | {slack[at]: 1.0} for at, (loads, _) in enumerate(rows)]
    right = [capacity / scale for _, capacity in rows]
    order = {name: at for at, name in enumerate((*columns, *slack.values()))}
    basis: list[object] = list(slack.values())
    costs: dict[object, float] = dict.fromkeys(columns, 1.0)
    while True:
        entering = min((name for name, cost in costs.items() if cost > _TINY), key=order.__getitem__, default=None)
        if entering is None:
            return [-costs.get(slack[at], 0.0) for at in range(len(rows))]
        ratios = [
            (right[at] / row[entering], order[basis[at]], at)
            for at, row in enumerate(tableau)
            if row.get(entering, 0.0) > _TINY
        ]
        leaving = min(ratios)[2]
        pivot = tableau[leaving].pop(entering)
        row = {name: value / pivot for name, value in tableau[leaving].items()}
        tableau[leaving] = {**row, entering: 1.0}
        right[leaving] /= pivot
        for at, other in enumerate(tableau):
            if at != leaving and (factor := other.pop(entering, 0.0)):
                _subtract_row(other, row, factor)
                right[at] = max(0.0, right[at] - factor * right[leaving])
        if factor := costs.pop(entering, 0.0):
            _subtract_row(costs, row, factor)
        basis[leaving] = entering


def _subtract_row(target: dict[object, float], row: Mapping[object, float], factor: float) -> None:
    for name, value in row.items():
        changed = target.get(name, 0.0) - factor * value
        if abs(changed) <= _TINY:
            target.pop(name, None)
        else:
            target[name] = changed
