"""What `advisor size` answers: choices, what each is made of, and what falls short where there is none."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from advisor.errors import UsageError
from advisor.host.patterns import lazy_regex
from advisor.limits import cloud_disks
from advisor.limits.cloud_disks import Tier
from advisor.limits.declared import Declared
from advisor.limits.figures import MIB
from advisor.limits.media import medium_of
from advisor.limits.storage_use import UNITS, parse_throughput

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


# Kinds of volumes: how many of which size carry a demand, what they carry then, and their documented latency.

MOST_STRIPES = 16
"""Volumes of one stripe at most, unless a layout asks for more; a machine has room for few more."""
MOST_ASKED = 64
_EBS_LIMITS = f"{cloud_disks.GUIDE}; limits of 2026"
_EBS_LATENCY = "Amazon EBS user guide, EBS optimization and volume types"


class VolumeKind(msgspec.Struct, frozen=True):
    """A kind of volume. ``latency_ms`` is the bound of its documented class, ``words`` the class."""

    name: str
    cloud: Cloud
    latency_ms: float
    words: str
    source: str


KINDS = (
    VolumeKind("gp3", "aws", 10, "single-digit milliseconds", _EBS_LATENCY),
    VolumeKind("io2", "aws", 0.5, "an average below 0.5 ms (Block Express, 16 KiB, on Nitro)", _EBS_LATENCY),
    VolumeKind("Premium_LRS", "azure", 10, "single-digit milliseconds", cloud_disks.TYPES_SOURCE),
    VolumeKind("StandardSSD_LRS", "azure", 10, "single-digit milliseconds", cloud_disks.TYPES_SOURCE),
    VolumeKind("PremiumV2_LRS", "azure", 1, "below 1 ms", cloud_disks.TYPES_SOURCE),
    VolumeKind("UltraSSD_LRS", "azure", 1, "below 1 ms", cloud_disks.TYPES_SOURCE),
)
BY_NAME = {one.name: one for one in KINDS}
PREMIUM = ("Premium_LRS", "PremiumV2_LRS", "UltraSSD_LRS")
"""Kinds that only a VM size with premium storage takes."""


def purchases(kind: str, demand: Demand, count: int | None = None) -> Iterator[VolumePurchase]:
    """The ways to buy volumes of a kind that carry the demand: one for each number of volumes (and tier), the fewest
    first; of one number where ``count`` is given."""
    if kind in ("gp3", "io2"):
        for number in _possible_counts(count, 1):
            one = _buy_gp3(demand, number) if kind == "gp3" else _buy_io2(demand, number)
            if one is not None:
                yield one
    elif kind in cloud_disks.MOST:
        for number in _possible_counts(count, 1):
            if (found := _by_figures(kind, demand, number)) is not None:
                yield found
    else:
        for tier in cloud_disks.tiers(kind):
            needs = ((demand.mb_s, tier.mb_per_s), (demand.iops, tier.iops), (demand.capacity_gib, tier.gib))
            least = max(1, *(math.ceil((asked or 0) / each) for asked, each in needs))
            if least <= (count or MOST_STRIPES):
                yield _of_tier(tier, count or least)


def carried(one: VolumePurchase) -> tuple[float, float]:
    """MB/s and IOPS of all volumes of a purchase in one stripe."""
    return one.count * (one.mb_s or 0), one.count * (one.iops or 0)


def declared_purchases(declared: Declared) -> tuple[VolumePurchase, ...]:
    """The volumes of a user's file, those that are alike together. Drives and volumes of which too little is known are
    left out."""
    found: dict[VolumePurchase, int] = {}
    for one in declared.volume:
        medium = medium_of(one, declared.where) if one.type != "drive" else None
        if medium is not None:
            figures = medium.sustained
            bought = VolumePurchase(
                kind=one.type,
                count=1,
                layout="as declared",
                gib=one.gib,
                iops=finite_value(figures.read_iops),
                mb_s=finite_value(figures.read_mb_per_s),
                mib_s=one.mib_per_s,
                source=f"as declared in {declared.where}",
            )
            found[bought] = found.get(bought, 0) + 1
    return tuple(msgspec.structs.replace(one, count=count) for one, count in found.items())


def finite_value(value: float) -> float | None:
    """The value; None for infinity, which stands for no limit."""
    return value if math.isfinite(value) else None


def _possible_counts(count: int | None, least: int) -> range:
    return range(count, count + 1) if count else range(least, MOST_STRIPES + 1)


def _layout_name(count: int) -> str:
    return "single" if count == 1 else "striped"


def _buy_gp3(demand: Demand, count: int) -> VolumePurchase | None:
    mib = max(cloud_disks.LEAST_MIB_PER_S["gp3"], math.ceil((demand.mb_s or 0) / count / MIB))
    iops = max(
        cloud_disks.LEAST_IOPS["gp3"], max(math.ceil((demand.iops or 0) / count), mib * cloud_disks.IOPS_PER_MIB["gp3"])
    )
    gib = max(1, math.ceil(demand.capacity_gib / count))
    if iops > cloud_disks.LEAST_IOPS["gp3"]:
        gib = max(gib, math.ceil(iops / cloud_disks.IOPS_PER_GIB["gp3"]))
    return _buy_ebs("gp3", count, gib, iops, mib)


def _buy_io2(demand: Demand, count: int) -> VolumePurchase | None:
    mib = (demand.mb_s or 0) / count / MIB
    iops = max(cloud_disks.LEAST_IOPS["io2"], math.ceil((demand.iops or 0) / count), math.ceil(mib / 0.256 - 1e-9))
    gib = max(
        cloud_disks.SIZES_GIB["io2"][0],
        math.ceil(demand.capacity_gib / count),
        math.ceil(iops / cloud_disks.IOPS_PER_GIB["io2"]),
    )
    return None if mib > 4_000 else _buy_ebs("io2", count, gib, iops, None)


def _buy_ebs(kind: cloud_disks.VolumeType, count: int, gib: int, iops: int, mib: int | None) -> VolumePurchase | None:
    """None for what is not for sale."""
    if (
        iops > cloud_disks.MOST_IOPS[kind]
        or gib > cloud_disks.LARGEST_GIB
        or (mib or 0) > cloud_disks.MOST_MIB_PER_S.get(kind, math.inf)
    ):
        return None
    found = cloud_disks.carried(cloud_disks.EbsVolume(kind, gib), iops, mib)
    assert found is not None
    return VolumePurchase(
        kind, count, _layout_name(count), gib, found.iops, found.mib_per_s * MIB, found.mib_per_s, _EBS_LIMITS
    )


def _of_tier(tier: Tier, count: int) -> VolumePurchase:
    name = f"{tier.kind} {tier.name}"
    return VolumePurchase(
        name, count, _layout_name(count), tier.gib, tier.iops, tier.mb_per_s, source=cloud_disks.AZURE_SOURCE
    )


def _by_figures(kind: str, demand: Demand, count: int) -> VolumePurchase | None:
    """Premium SSD v2: 3,000 IOPS and 125 MB/s at least, 500 IOPS per GiB, 0.25 MB/s per IOPS. Ultra Disk: 1,000 IOPS
    per GiB, 0.004 to 0.256 MB/s per IOPS, sizes in powers of two to 1 TiB."""
    is_ultra = kind == "UltraSSD_LRS"
    most_iops, most_mb = cloud_disks.MOST[kind]
    (rate, least_mb), (each, least_iops) = cloud_disks.MB_PER_IOPS[kind], cloud_disks.AZURE_BY_SIZE[kind]
    mb_s = max(least_mb, math.ceil((demand.mb_s or 0) / count))
    iops = max(least_iops, math.ceil((demand.iops or 0) / count))
    iops = max(iops, math.ceil(mb_s / rate))
    mb_s = max(mb_s, math.ceil(0.004 * iops)) if is_ultra else mb_s
    gib = max(4, math.ceil(demand.capacity_gib / count), math.ceil(iops / each))
    if is_ultra:
        gib = 2 ** math.ceil(math.log2(gib)) if gib <= 1024 else 1024 * math.ceil(gib / 1024)
    if iops > most_iops or mb_s > most_mb or gib > 65_536:
        return None
    return VolumePurchase(kind, count, _layout_name(count), gib, iops, mb_s, source=cloud_disks.TYPES_SOURCE)
