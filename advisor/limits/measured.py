"""``--measured``: a throughput that was measured, against the ceiling of a host or cluster."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import msgspec

from advisor.errors import InvalidInputError
from advisor.host.patterns import lazy_regex
from advisor.limits.host_records import Direction, HostCeiling, MeasuredShare

UNITS = {
    **{"B/s": 1e-6, "kB/s": 1e-3, "MB/s": 1.0, "GB/s": 1e3, "TB/s": 1e6},
    **{"KiB/s": 1024 / 1e6, "MiB/s": 1024**2 / 1e6, "GiB/s": 1024**3 / 1e6, "TiB/s": 1024**4 / 1e6},
    **{"Mbit/s": 0.125, "Gbit/s": 125.0, "Tbit/s": 125_000.0},
}
"""MB/s in each."""
_FORM = lazy_regex(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s?([A-Za-z]{1,4}/s)", re.ASCII)
_HINT = "as 132GB/s, or read=132GB/s,write=121GB/s"


class MeasuredThroughput(msgspec.Struct, frozen=True):
    """MB/s of reads or of writes; ``direction`` None where the figure does not say: it is set against both."""

    direction: Direction | None
    mb_s: float


def parse_throughput(text: str) -> float | None:
    """``132GB/s`` as MB/s; None for what is none."""
    found = _FORM.fullmatch(text.strip())
    factor = _unit_factor(found[2]) if found else None
    return None if found is None or factor is None else float(found[1]) * factor


def _unit_factor(unit: str) -> float | None:
    exact = UNITS.get(unit)
    return exact if exact is not None else {name.lower(): value for name, value in UNITS.items()}.get(unit.lower())


def parse_measured(text: str) -> tuple[MeasuredThroughput, ...]:
    """``132GB/s`` or ``read=132GB/s,write=121GB/s``. Raises InvalidInputError that names the part."""
    found: list[MeasuredThroughput] = []
    for part in text.split(","):
        name, is_named, figure = part.strip().rpartition("=")
        if is_named and name.strip() not in ("read", "write"):
            raise InvalidInputError(f"--measured: field {name.strip()}: not one of read, write", hint=_HINT)
        value = parse_throughput(figure)
        if value is None or not 0 < value < 1e12:
            units = ", ".join(UNITS)
            raise InvalidInputError(
                (
                    f"--measured: field {name or 'figure'}: {figure or 'nothing'}: expected a number above 0 and "
                    f"one of {units}"
                ),
                hint=_HINT,
            )
        direction: Direction | None = None if not is_named else "read" if name.strip() == "read" else "write"
        if any(one.direction == direction for one in found) or (found and None in (direction, found[0].direction)):
            raise InvalidInputError(f"--measured: field {name or 'figure'}: it is given twice", hint=_HINT)
        found.append(MeasuredThroughput(direction, value))
    return tuple(found)


def with_measured(ceiling: HostCeiling, measured: Sequence[MeasuredThroughput]) -> HostCeiling:
    """The ceiling with each figure as a fraction of it."""
    shares = []
    for one in measured:
        directions: tuple[Direction, ...] = (one.direction,) if one.direction else ("read", "write")
        for direction in directions:
            limit = ceiling.read_mb_s if direction == "read" else ceiling.write_mb_s
            part = one.mb_s / limit if limit and math.isfinite(limit) else None
            shares.append(MeasuredShare(direction, one.mb_s, limit, part))
    return msgspec.structs.replace(ceiling, measured=tuple(shares))
