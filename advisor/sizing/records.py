"""What `advisor size` answers: choices, what each is made of, and what falls short where there is none."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from advisor.errors import UsageError
from advisor.host.patterns import lazy_regex
from advisor.limits.measured import UNITS, parse_throughput

_COUNT = lazy_regex(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s?([kKM]?)", re.ASCII)
_TIME = lazy_regex(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s?(us|µs|μs|ms|s)", re.ASCII)
_SIZE = lazy_regex(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s?(GB|TB|PB|GiB|TiB|PiB)", re.ASCII)
_MS = {"us": 1e-3, "µs": 1e-3, "μs": 1e-3, "ms": 1.0, "s": 1e3}
_BYTES = {"GB": 1e9, "TB": 1e12, "PB": 1e15, "GiB": 2.0**30, "TiB": 2.0**40, "PiB": 2.0**50}
_THOUSANDS = {"": 1, "k": 1_000, "K": 1_000, "M": 1_000_000}


class Demand(msgspec.Struct, frozen=True):
    """MB/s (10^6 bytes) of reads and of writes at the same time, operations a second of both together, and the latency
    of one; None for what is not asked for. ``measured_from``: the saved series that it is from."""

    read_mb_s: float | None = None
    write_mb_s: float | None = None
    iops: float | None = None
    latency_ms: float | None = None
    capacity_bytes: float | None = None
    measured_from: str | None = None

    @property
    def mb_s(self) -> float | None:
        """Reads and writes together, as a volume and a machine count them; None where neither is asked for."""
        if self.read_mb_s is None and self.write_mb_s is None:
            return None
        return (self.read_mb_s or 0) + (self.write_mb_s or 0)

    @property
    def write_share(self) -> float:
        """The fraction of operations that write: as the throughput is divided; all of them where none is asked for,
        which is the worse case of every array."""
        if self.read_mb_s is None or self.write_mb_s is None or not self.mb_s:
            return 1.0 if self.read_mb_s is None else 0.0
        return self.write_mb_s / self.mb_s

    def divided(self, servers: int) -> Demand:
        """The part of one of several servers that share it evenly."""
        names = ("read_mb_s", "write_mb_s", "iops", "capacity_bytes")
        asked = {name: value / servers for name in names if (value := getattr(self, name)) is not None}
        return msgspec.structs.replace(self, **asked)

    @property
    def capacity_gib(self) -> float:
        return (self.capacity_bytes or 0) / 2**30


def parse_demand(
    read: str | None = None,
    write: str | None = None,
    iops: str | None = None,
    latency: str | None = None,
    capacity: str | None = None,
) -> Demand:
    """From the values of the options. Raises UsageError that names the option and the value."""
    found = _parse_scaled("--capacity", capacity, _SIZE, _BYTES, "a size, as 10TiB or 500GB")
    return Demand(
        read_mb_s=_parse_throughput("--read", read),
        write_mb_s=_parse_throughput("--write", write),
        iops=_parse_scaled("--iops", iops, _COUNT, _THOUSANDS, "a number, as 200000, 200k or 1.5M"),
        latency_ms=_parse_scaled("--latency", latency, _TIME, _MS, "a time, as 1ms or 500us"),
        capacity_bytes=None if found is None else round(found),
    )


def _parse_throughput(option: str, text: str | None) -> float | None:
    if text is None:
        return None
    value = parse_throughput(text)
    if value is None or not 0 < value < 1e9:
        raise UsageError(f"{option} {text}: expected a throughput above 0, as 8GB/s; units: {', '.join(UNITS)}")
    return value


def _parse_scaled(
    option: str, text: str | None, form: re.Pattern[str], units: dict[str, float] | dict[str, int], what: str
) -> float | None:
    if text is None:
        return None
    found = form.fullmatch(text.strip().replace(",", ""))
    value = float(found[1]) * units[found[2]] if found else 0.0
    if not value:
        raise UsageError(f"{option} {text}: expected {what}, above 0")
    return value


Cloud = Literal["aws", "azure", "metal"]


class VolumePurchase(msgspec.Struct, frozen=True):
    """Volumes or drives that are bought alike, ``count`` of them in one ``layout``; per volume its ``gib``, ``iops``
    and ``mb_s`` (10^6 bytes), None for what is not bought or not known of it."""

    kind: str
    count: int
    layout: str
    gib: int | None = None
    iops: float | None = None
    mb_s: float | None = None
    mib_s: float | None = None
    """The throughput as it is bought, where that is in MiB/s."""
    source: str = ""


class Links(msgspec.Struct, frozen=True):
    """Links to the clients, each way."""

    kind: str
    count: int
    mb_s: float
    source: str = ""


class SizedPart(msgspec.Struct, frozen=True):
    """One part of a choice: what it carries, None where that is not known or no limit, and the fraction of it that the
    demand leaves, 0 to 1."""

    what: str
    mb_s: float | None
    iops: float | None
    headroom: float
    source: str


def size_part(what: str, mb_s: float | None, iops: float | None, demand: Demand, source: str) -> SizedPart:
    """A part with the fraction that the demand leaves of the tighter of the two; 1 where nothing of it is asked or
    known."""
    pairs = ((demand.mb_s, mb_s), (demand.iops, iops))
    left = min((max(0.0, 1 - asked / has) for asked, has in pairs if asked and has), default=1.0)
    return SizedPart(what, mb_s, iops, left, source)


class Price(msgspec.Struct, frozen=True):
    amount: float
    currency: str
    per: Literal["hour", "month", "once"]


class Choice(msgspec.Struct, frozen=True):
    """Hardware that carries the demand. ``read_mb_s`` and ``write_mb_s``: the most in the proportion of the demand.

    ``binds`` is the part with the least headroom, ``headroom`` the fraction of it that is left, and ``unusable`` the
    share of what the volumes promise that cannot pass the machine. ``unknown``: what no table has of it.
    """

    cloud: Cloud
    instance: str | None
    vcpus: int | None
    memory_gib: float | None
    volumes: tuple[VolumePurchase, ...]
    links: tuple[Links, ...]
    read_mb_s: float | None
    write_mb_s: float | None
    iops: float | None
    binds: str
    headroom: float
    unusable: float
    price: Price | None
    parts: tuple[SizedPart, ...]
    unknown: tuple[str, ...] = ()
    price_lacks: tuple[str, ...] = ()
    """What the price file has no price of."""


class Short(msgspec.Struct, frozen=True):
    """What falls short where nothing carries the demand: the most that is known, and by how much it lacks."""

    cloud: Cloud
    quantity: Literal["mb_s", "iops", "latency_ms"]
    asked: float
    most: float
    by: float
    of: str


class Excluded(msgspec.Struct, frozen=True):
    """A kind of volume that was not considered, and why."""

    kind: str
    why: str
    source: str


class Sizing(msgspec.Struct, frozen=True):
    """``found`` counts all choices, also those that ``choices`` leaves out; ``undecided`` those of them of which
    something is unknown. ``short``: of each cloud that has no choice."""

    demand: Demand
    choices: tuple[Choice, ...]
    found: int
    undecided: int = 0
    short: tuple[Short, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    prices: str | None = None
    """The price file with its date."""
