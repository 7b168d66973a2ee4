"""Four figures of one thing: MB/s and IOPS, of reads and of writes; and how they are combined."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

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
