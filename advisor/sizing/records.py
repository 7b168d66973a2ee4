"""What `advisor size` answers: choices, what each is made of, and what falls short where there is none."""

from __future__ import annotations

from typing import Literal

import msgspec

from advisor.sizing.demand import Demand

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
