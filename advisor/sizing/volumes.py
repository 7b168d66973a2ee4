"""Kinds of volumes: how many of which size carry a demand, what they carry then, and their documented latency.

Latency is that of the provider's documentation, in classes: an average below 0.5 ms (io2 Block Express on Nitro), below
1 ms (Azure Premium SSD v2 and Ultra Disk), single-digit milliseconds (gp3, Premium SSD, Standard SSD). A kind fits a
demanded latency where its class does; that somebody measured less is no promise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from advisor.limits import azure_disks, ebs
from advisor.limits.azure_disks import Tier
from advisor.limits.declared import Declared
from advisor.limits.figures import MIB
from advisor.limits.media import medium_of
from advisor.sizing.records import Cloud, Demand, VolumePurchase

MOST_STRIPES = 16
"""Volumes of one stripe at most, unless a layout asks for more; a machine has room for few more."""
MOST_ASKED = 64
_EBS_LIMITS = f"{ebs.GUIDE}; limits of 2026"
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
    VolumeKind("Premium_LRS", "azure", 10, "single-digit milliseconds", azure_disks.TYPES_SOURCE),
    VolumeKind("StandardSSD_LRS", "azure", 10, "single-digit milliseconds", azure_disks.TYPES_SOURCE),
    VolumeKind("PremiumV2_LRS", "azure", 1, "below 1 ms", azure_disks.TYPES_SOURCE),
    VolumeKind("UltraSSD_LRS", "azure", 1, "below 1 ms", azure_disks.TYPES_SOURCE),
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
    elif kind in azure_disks.MOST:
        for number in _possible_counts(count, 1):
            if (found := _by_figures(kind, demand, number)) is not None:
                yield found
    else:
        for tier in azure_disks.tiers(kind):
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
    mib = max(ebs.LEAST_MIB_PER_S["gp3"], math.ceil((demand.mb_s or 0) / count / MIB))
    iops = max(ebs.LEAST_IOPS["gp3"], max(math.ceil((demand.iops or 0) / count), mib * ebs.IOPS_PER_MIB["gp3"]))
    gib = max(1, math.ceil(demand.capacity_gib / count))
    if iops > ebs.LEAST_IOPS["gp3"]:
        gib = max(gib, math.ceil(iops / ebs.IOPS_PER_GIB["gp3"]))
    return _buy_ebs("gp3", count, gib, iops, mib)


def _buy_io2(demand: Demand, count: int) -> VolumePurchase | None:
    mib = (demand.mb_s or 0) / count / MIB
    iops = max(ebs.LEAST_IOPS["io2"], math.ceil((demand.iops or 0) / count), math.ceil(mib / 0.256 - 1e-9))
    gib = max(
        ebs.SIZES_GIB["io2"][0], math.ceil(demand.capacity_gib / count), math.ceil(iops / ebs.IOPS_PER_GIB["io2"])
    )
    return None if mib > 4_000 else _buy_ebs("io2", count, gib, iops, None)


def _buy_ebs(kind: ebs.VolumeType, count: int, gib: int, iops: int, mib: int | None) -> VolumePurchase | None:
    """None for what is not for sale."""
    if iops > ebs.MOST_IOPS[kind] or gib > ebs.LARGEST_GIB or (mib or 0) > ebs.MOST_MIB_PER_S.get(kind, math.inf):
        return None
    found = ebs.carried(ebs.EbsVolume(kind, gib), iops, mib)
    assert found is not None
    return VolumePurchase(
        kind, count, _layout_name(count), gib, found.iops, found.mib_per_s * MIB, found.mib_per_s, _EBS_LIMITS
    )


def _of_tier(tier: Tier, count: int) -> VolumePurchase:
    name = f"{tier.kind} {tier.name}"
    return VolumePurchase(
        name, count, _layout_name(count), tier.gib, tier.iops, tier.mb_per_s, source=azure_disks.SOURCE
    )


def _by_figures(kind: str, demand: Demand, count: int) -> VolumePurchase | None:
    """Premium SSD v2: 3,000 IOPS and 125 MB/s at least, 500 IOPS per GiB, 0.25 MB/s per IOPS. Ultra Disk: 1,000 IOPS
    per GiB, 0.004 to 0.256 MB/s per IOPS, sizes in powers of two to 1 TiB."""
    is_ultra = kind == "UltraSSD_LRS"
    most_iops, most_mb = azure_disks.MOST[kind]
    (rate, least_mb), (each, least_iops) = azure_disks.MB_PER_IOPS[kind], azure_disks.BY_SIZE[kind]
    mb_s = max(least_mb, math.ceil((demand.mb_s or 0) / count))
    iops = max(least_iops, math.ceil((demand.iops or 0) / count))
    iops = max(iops, math.ceil(mb_s / rate))
    mb_s = max(mb_s, math.ceil(0.004 * iops)) if is_ultra else mb_s
    gib = max(4, math.ceil(demand.capacity_gib / count), math.ceil(iops / each))
    if is_ultra:
        gib = 2 ** math.ceil(math.log2(gib)) if gib <= 1024 else 1024 * math.ceil(gib / 1024)
    if iops > most_iops or mb_s > most_mb or gib > 65_536:
        return None
    return VolumePurchase(kind, count, _layout_name(count), gib, iops, mb_s, source=azure_disks.TYPES_SOURCE)
