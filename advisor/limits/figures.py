"""Four figures of one thing: MB/s and IOPS, of reads and of writes; and how they are combined."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from advisor.facts.block.block import LEVELS, MIRRORS
from advisor.facts.block.block_graph import BlockNode

Quantity = Literal["read_mb_per_s", "write_mb_per_s", "read_iops", "write_iops"]
QUANTITIES: tuple[Quantity, ...] = ("read_mb_per_s", "write_mb_per_s", "read_iops", "write_iops")

MIB = 1048576 / 1e6
"""MB in a MiB."""


class Figures(msgspec.Struct, frozen=True):
    """MB/s (10^6 bytes) and operations a second; infinite where the thing sets no limit."""

    read_mb_per_s: float = math.inf
    write_mb_per_s: float = math.inf
    read_iops: float = math.inf
    write_iops: float = math.inf

    def of(self, quantity: Quantity) -> float:
        value: float = getattr(self, quantity)
        return value

    def map(self, change: Callable[[float], float]) -> Figures:
        return Figures(*(change(self.of(quantity)) for quantity in QUANTITIES))

    def shared_by(self, count: int) -> Figures:
        """The even share of one of ``count``."""
        return self.map(lambda value: value / count)

    @property
    def is_limit(self) -> bool:
        """Whether any of it is finite."""
        return any(math.isfinite(self.of(quantity)) for quantity in QUANTITIES)


def both_ways(mb_per_s: float = math.inf, iops: float = math.inf) -> Figures:
    """Reads and writes alike."""
    return Figures(mb_per_s, mb_per_s, iops, iops)


def lowest(many: Iterable[Figures]) -> Figures:
    """The smallest of each; no limit where there are none."""
    listed = list(many)
    return Figures(*(min((one.of(quantity) for one in listed), default=math.inf) for quantity in QUANTITIES))


def total(many: Iterable[Figures]) -> Figures:
    """The sum of each."""
    listed = list(many)
    return Figures(*(sum(one.of(quantity) for one in listed) for quantity in QUANTITIES))


# The most that several paths carry together behind shared parts, and the parts that bind: a small linear programme.

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


# The arithmetic of arrays: what a device makes of the figures of its members.

FILE_SYSTEM_SHARE = 0.01
"""What a file system takes for itself (Dell EMC, BeeGFS reference architecture)."""


def combine(node: BlockNode, leaf: Callable[[str], Figures], *, one_medium: bool = False) -> Figures:
    """The figures of a tree from those of its disks. Of a device whose level is not known, the sum of its members:
    more than that no arrangement gives. ``one_medium`` is for what lies behind all paths of a multipath device at
    once."""
    if not node.members:
        return leaf(node.device)
    by_relation: dict[str, list[Figures]] = {}
    for member in node.members:
        by_relation.setdefault(member.relation, []).append(combine(member, leaf, one_medium=one_medium))
    journals, caches, idle = (by_relation.pop(name, []) for name in ("journal", "cache", "write-mostly"))
    by_relation.pop("metadata", None)
    serving = [one for figures in by_relation.values() for one in figures]
    family = node.family or "linear"
    found = combined(family, serving or idle, missing=node.missing, copies=node.copies, one_medium=one_medium)
    if serving and idle:
        slowest = lowest((found, *idle))
        found = Figures(found.read_mb_per_s, slowest.write_mb_per_s, found.read_iops, slowest.write_iops)
    if caches:
        cache, reads = lowest(caches), total((found, *caches))
        is_passed = node.level == "writecache"
        writes = lowest((found, cache)) if is_passed else found
        found = Figures(reads.read_mb_per_s, writes.write_mb_per_s, reads.read_iops, writes.write_iops)
    if journals and LEVELS[family].parity:
        whole = len(serving) + node.missing
        data = max(whole - LEVELS[family].parity, 1)
        most = min(one.write_mb_per_s for one in journals) * data / whole
        found = msgspec.structs.replace(found, write_mb_per_s=min(found.write_mb_per_s, most))
    return found


def combined(
    family: str, members: Sequence[Figures], *, missing: int = 0, copies: float = 2, one_medium: bool = False
) -> Figures:
    """The figures of a device of these working members, ``missing`` more of which it lacks.

    ``family`` is one of `advisor.facts.block.block.family_of`. ``copies`` is how often RAID 10 keeps each block.
    ``one_medium`` as in `combine`.
    """
    level, slowest, whole = LEVELS[family], lowest(members), len(members) + missing
    if level.relation in ("concatenation", "data") or (level.relation == "path" and not one_medium):
        # An upper bound, reached only where the load falls on all members.
        return total(members)
    if level.relation == "path":
        return slowest
    if family in MIRRORS:
        reads = total(members)
        return Figures(reads.read_mb_per_s, slowest.write_mb_per_s, reads.read_iops, slowest.write_iops)
    data = max(whole - level.parity, 1)
    written = data / (copies if level.relation == "copy" else 1)
    reading = min(len(members), data) if family == "raid4" else len(members)
    small = written if not level.parity else 0.5 if family == "raid4" else whole / min(whole, level.small_write)
    # What a missing member held is made of the others, of as many as carry data.
    random = reading if not level.parity else reading * whole / (len(members) + missing * data)
    return Figures(
        slowest.read_mb_per_s * reading,
        slowest.write_mb_per_s * written,
        slowest.read_iops * random,
        slowest.write_iops * small,
    )


def usable_bytes(size_bytes: int) -> int:
    """Of a device, what is left for files."""
    return round(size_bytes * (1 - FILE_SYSTEM_SHARE))
