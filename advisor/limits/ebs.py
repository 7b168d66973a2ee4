"""EBS volumes: what each type carries, and its bucket of burst credits.

Inside an instance nothing shows the type of an EBS volume or how full its bucket is: the type is the user's word.

Sources: Amazon EBS user guide. General purpose volumes: gp2 3 IOPS per GiB, at least 100 and at most 16,000, bursts of
3,000 IOPS from a bucket of 5.4 million I/O credits, 128 or 250 MiB/s; gp3 3,000 IOPS and 125 MiB/s unless more is
bought. Provisioned IOPS volumes: io1 256 KiB per I/O up to 500 MiB/s, beyond 32,000 IOPS 16 KiB up to 1,000; io2 Block
Express 0.256 MiB/s per IOPS up to 4,000. HDD volumes: st1 40 MiB/s per TiB, bursts of 250 MiB/s per TiB, at most 500;
sc1 12 and 80 MiB/s per TiB, at most 192 and 250; a bucket of 1 TiB per TiB. Magnetic: 40-200 IOPS, 40-90 MiB/s.
Instances that are not built on Nitro carry 32,000 IOPS of a volume at most. What may be bought together: gp3 up to 500
IOPS per GiB and 0.25 MiB/s per IOPS, io1 50 and io2 1,000 IOPS per GiB.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

VolumeType = Literal["gp2", "gp3", "io1", "io2", "st1", "sc1"]
VOLUME_TYPES = get_args(VolumeType)
PROVISIONED = ("io1", "io2")
"""The types whose IOPS an account's quota counts."""
LARGEST_GIB = 65536
EBS_MODEL = "Amazon Elastic Block Store"

GUIDE = "Amazon EBS user guide, volume types"
MOST_IOPS = {"gp3": 80_000, "io1": 64_000, "io2": 256_000}
MOST_MIB_PER_S = {"gp3": 2_000}
LEAST_IOPS = {"gp3": 3_000, "io1": 100, "io2": 100}
LEAST_MIB_PER_S = {"gp3": 125}
IOPS_PER_GIB = {"gp3": 500, "io1": 50, "io2": 1_000}
IOPS_PER_MIB = {"gp3": 4}
SIZES_GIB = {
    "gp2": (1, 16_384),
    "gp3": (1, LARGEST_GIB),
    "io1": (4, 16_384),
    "io2": (4, LARGEST_GIB),
    "st1": (125, 16_384),
    "sc1": (125, 16_384),
    "standard": (1, 1_024),
}
OLD_INSTANCE_IOPS = 32_000
"""What an instance that is not built on Nitro carries of one volume."""
_GP2_MOST_MIB = 250.0
_GP2_SMALL_GIB = 170
_GP2_SMALL_MIB = 128.0
_COUNTED_MIB = 0.25
"""The largest I/O that an SSD volume counts as one."""


class EbsVolume(msgspec.Struct, frozen=True):
    """An EBS volume: its type, and its size in GiB."""

    kind: VolumeType
    gib: int


class Bucket(msgspec.Struct, frozen=True):
    """A bucket of burst credits. ``base`` refills it and ``burst`` empties it, both in ``unit`` a second; ``size`` is
    what it holds when full, in ``unit``."""

    unit: Literal["I/O", "MiB"]
    base: float
    burst: float
    size: float


class Carried(msgspec.Struct, frozen=True):
    """What a volume carries: MiB/s and IOPS, for ever and from a full bucket (None where it has none)."""

    mib_per_s: float
    iops: float
    burst_mib_per_s: float | None = None
    burst_iops: float | None = None
    bucket: Bucket | None = None


def bucket_of(volume: EbsVolume) -> Bucket | None:
    """The bucket of a volume; ``None`` where its speed does not depend on one."""
    tib = volume.gib / 1024
    if volume.kind == "gp2":
        base = min(max(100.0, 3.0 * volume.gib), 16000.0)
        return Bucket("I/O", base, 3000.0, 5.4e6) if base < 3000 else None
    if volume.kind not in ("st1", "sc1"):
        return None
    if volume.kind == "st1":
        base, burst = min(40 * tib, 500.0), min(250 * tib, 500.0)
    else:
        base, burst = min(12 * tib, 192.0), min(80 * tib, 250.0)
    return Bucket("MiB", base, burst, 1024.0 * volume.gib) if base < burst else None


def lasts_seconds(bucket: Bucket, rate: float) -> float | None:
    """How long a full bucket carries a rate in its unit; None for ever. A rate above the burst counts as the burst."""
    spent = min(rate, bucket.burst) - bucket.base
    return bucket.size / spent if spent > 0 else None


def fills_seconds(bucket: Bucket) -> float:
    """How long an empty bucket takes to fill while nothing is drawn."""
    return bucket.size / bucket.base


def carried(
    volume: EbsVolume, iops: int | None = None, mib_per_s: float | None = None, *, nitro: bool = True
) -> Carried | None:
    """What a volume carries, with what was bought of it; None for io1 and io2 of which the IOPS are not known.

    ``nitro``: whether the instance is built on Nitro; others carry less of io1 and io2.
    """
    if not nitro and volume.kind in ("io1", "io2") and iops is not None:
        most = min(iops, OLD_INSTANCE_IOPS)
        return Carried(_io1_mib(most), most)
    match volume.kind:
        case "gp2":
            return _gp2_carried(volume)
        case "gp3":
            return Carried(125.0 if mib_per_s is None else mib_per_s, 3000.0 if iops is None else iops)
        case "io1":
            return None if iops is None else Carried(_io1_mib(iops), iops)
        case "io2":
            return None if iops is None else Carried(min(0.256 * iops, 4000.0), iops)
        case _:
            return _hdd_carried(volume)


def _gp2_carried(volume: EbsVolume) -> Carried:
    base = min(max(100.0, 3.0 * volume.gib), 16000.0)
    most = _GP2_SMALL_MIB if volume.gib <= _GP2_SMALL_GIB else _GP2_MOST_MIB
    sustained = min(base * _COUNTED_MIB, most)
    bucket = bucket_of(volume)
    return Carried(sustained, base) if bucket is None else Carried(sustained, base, most, bucket.burst, bucket)


def _io1_mib(iops: int) -> float:
    return min(iops * _COUNTED_MIB, 500.0) if iops <= 32_000 else min(iops / 64, 1000.0)


def _hdd_carried(volume: EbsVolume) -> Carried:
    """An I/O of up to 1 MiB counts as one, so IOPS and MiB/s are the same number."""
    bucket = bucket_of(volume)
    if bucket is not None:
        return Carried(bucket.base, bucket.base, bucket.burst, bucket.burst, bucket)
    most = 500.0 if volume.kind == "st1" else min(12 * volume.gib / 1024, 192.0)
    return Carried(most, most)
