"""Host caching of Azure: what a VM size carries to the disks that its host caches.

The cached limit is separate from the limit without caching. A read that the cache answers counts against the cached
limit alone; one that it does not, and a write, count against both. A write to a disk with ReadWrite is complete in the
cache and reaches the disk later. Premium SSD v2, Ultra Disk and disks of 4 TiB and more have no host caching.

Sources: table azure-vm-cached.csv; Microsoft, Virtual machine and disk performance (disks-performance, June 2023), and
Premium storage, design for high performance (disk caching).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

import msgspec

from advisor.limits.figures import MIB, Figures
from advisor.limits.machines import table

HostCaching = Literal["None", "ReadOnly", "ReadWrite"]
LARGEST_CACHED_GIB = 4095
AZURE_CACHE_SOURCE = (
    "table azure-vm-cached.csv, November 2026: MicrosoftDocs/azure-docs, max cached and temp storage throughput; what "
    "counts against it: Microsoft, Virtual machine and disk performance"
)


class CachedLimits(msgspec.Struct, frozen=True):
    """What a size carries to all its cached disks and its temporary disk together; the burst is None where the page
    gives none."""

    iops: int
    mb_per_s: int
    burst_iops: int | None
    burst_mb_per_s: int | None


def find_cached(size: str) -> CachedLimits | None:
    """The cached limits of a VM size; None where the table has none."""
    row = next((row for row in table("azure-vm-cached.csv") if row["size"] == size), None)
    if row is None:
        return None
    burst = (int(row["burst_iops"]) or None, int(row["burst_mb_per_s"]) or None)
    return CachedLimits(int(row["iops"]), int(row["mb_per_s"]), *burst)


# Azure managed disks: what each tier carries, by the table of the package, and the types that are bought by figures.

AzureDisk = Literal[
    "Premium_LRS", "Premium_ZRS", "StandardSSD_LRS", "StandardSSD_ZRS", "Standard_LRS", "PremiumV2_LRS", "UltraSSD_LRS"
]
AZURE_DISKS = get_args(AzureDisk)
MOST = {"PremiumV2_LRS": (80_000, 1_200), "UltraSSD_LRS": (400_000, 10_000)}
"""IOPS and MB/s of one disk at most, of the kinds that are bought by figures."""
AZURE_BY_SIZE = {"PremiumV2_LRS": (500, 3_000), "UltraSSD_LRS": (1_000, 100)}
"""IOPS for each GiB at most, and the IOPS that every disk may have."""
MB_PER_IOPS = {"PremiumV2_LRS": (0.25, 125), "UltraSSD_LRS": (0.256, 1)}
"""MB/s for each of its IOPS at most, and those that every disk may have."""
"""IOPS and MB/s of a disk at most, of the types that are bought by figures."""

AZURE_SOURCE = "table azure-disks.csv, August 2026: kubernetes-sigs/azuredisk-csi-driver"
TYPES_SOURCE = "Microsoft, Azure managed disk types (learn.microsoft.com, azure/virtual-machines/disks-types)"


class Tier(msgspec.Struct, frozen=True):
    """A tier of a type: its largest size in GiB, and what it carries for ever and from full credits."""

    kind: str
    name: str
    gib: int
    iops: int
    mb_per_s: int
    burst_iops: int
    burst_mb_per_s: int

    @property
    def bursts(self) -> bool:
        return (self.burst_iops, self.burst_mb_per_s) != (self.iops, self.mb_per_s)


def tiers(kind: str) -> tuple[Tier, ...]:
    """The tiers of a type that have figures, from the smallest."""
    found = (
        Tier(
            kind, row["tier"], *(int(row[name]) for name in ("gib", "iops", "mb_per_s", "burst_iops", "burst_mb_per_s"))
        )
        for row in table("azure-disks.csv")
        if row["sku"] == kind and int(row["iops"])
    )
    return tuple(sorted(found, key=lambda one: one.gib))


def find_tier(kind: str, name: str | None, gib: int | None) -> Tier | None:
    """The tier of this name, else the smallest that a disk of this size fits in."""
    if name is not None:
        return next((one for one in tiers(kind) if one.name == name), None)
    return next((one for one in tiers(kind) if gib is not None and gib <= one.gib), None)


# Disks of Google Cloud: what Persistent Disk carries by its size, and Hyperdisk by what was bought.

PersistentDisk = Literal["pd-standard", "pd-balanced", "pd-ssd"]
BoughtDisk = Literal["pd-extreme", "hyperdisk-balanced", "hyperdisk-extreme", "hyperdisk-ml", "hyperdisk-throughput"]
GoogleDisk = PersistentDisk | BoughtDisk
GOOGLE_BY_SIZE: tuple[str, ...] = get_args(PersistentDisk)
BY_PURCHASE: tuple[str, ...] = get_args(BoughtDisk)
GOOGLE_DISKS = (*GOOGLE_BY_SIZE, *BY_PURCHASE)

# An NVMe disk has one model for both; over SCSI it is named.
REMOTE_MODELS = ("nvme_card-pd", "PersistentDisk")
LOCAL_MODELS = ("nvme_card", "EphemeralDisk")


class HyperdiskType(NamedTuple):
    """What one volume of a type may be bought with; None where it is not bought, or where Google names no bound."""

    most_iops: int
    most_mib: int
    least_gib: int | None = None
    most_gib: int | None = None
    iops_per_gib: int | None = None
    """At most; of Hyperdisk Extreme."""
    mib_per_iops: float | None = None
    """What its IOPS bring, where MiB/s are not bought."""
    iops_per_mib: int | None = None
    """What its MiB/s bring, where IOPS are not bought."""


HYPERDISKS: Mapping[str, HyperdiskType] = {
    "hyperdisk-balanced": HyperdiskType(160_000, 2_400),
    "hyperdisk-extreme": HyperdiskType(350_000, 5_000, 64, 64 << 10, iops_per_gib=1_200, mib_per_iops=0.25),
    "hyperdisk-throughput": HyperdiskType(9_600, 2_400, 2 << 10, 32 << 10, iops_per_mib=4),
    "hyperdisk-ml": HyperdiskType(19_200_000, 1_200_000, 4, 64 << 10, iops_per_mib=16),
}
HYPERDISK_SOURCE = "Google Compute Engine, About Hyperdisk Balanced, Extreme, Throughput and ML, November 2026"


def bought_figures(kind: str, iops: int | None, mib_per_s: float | None) -> tuple[float | None, float | None]:
    """IOPS and MiB/s of a volume: as bought, or as they follow from the other; None where neither says it."""
    known = HYPERDISKS.get(kind)
    if known is None:
        return iops, mib_per_s
    if mib_per_s is None and iops is not None and known.mib_per_iops is not None:
        mib_per_s = min(known.most_mib, iops * known.mib_per_iops)
    if iops is None and mib_per_s is not None and known.iops_per_mib is not None:
        return min(known.most_iops, mib_per_s * known.iops_per_mib), mib_per_s
    return iops, mib_per_s


GOOGLE_SOURCE = (
    "table google-disks.csv, November 2026: Google Compute Engine, About Persistent Disk performance (at most what an "
    "instance of 64 vCPUs reaches); the base of pd-balanced and pd-ssd: GoogleCloudPlatform/gcpdiag, August 2024"
)


def carried_together(kind: str, gib: int) -> Figures:
    """What all disks of a type of Persistent Disk carry together that have ``gib`` GiB. Raises KeyError for another."""
    row = next((row for row in table("google-disks.csv") if row["type"] == kind), None)
    if row is None:
        raise KeyError(kind)
    base_iops, base_mib = float(row["base_iops"]), float(row["base_mib"])
    mib = base_mib + gib * float(row["mib_per_gib"])
    return Figures(
        read_mb_per_s=min(mib, float(row["most_read_mib"])) * MIB,
        write_mb_per_s=min(mib, float(row["most_write_mib"])) * MIB,
        read_iops=min(base_iops + gib * float(row["read_iops_per_gib"]), float(row["most_read_iops"])),
        write_iops=min(base_iops + gib * float(row["write_iops_per_gib"]), float(row["most_write_iops"])),
    )


_READ = {
    "2026-09": ("September 2026", "Google Compute Engine, Persistent Disk performance limits by machine series"),
    "2024-08": ("August 2024", "GoogleCloudPlatform/gcpdiag, gcpdiag/runbook/gce/disk_performance_benchmark"),
}
"""When a row of the table was read, and where."""
_TYPE = r"([a-z][0-9]{1,2}[a-z]?)-[a-z]{3,12}-([0-9]{1,4})g?(?:-.*)?"
"""``n2-standard-8``, ``e2-custom-4-8192``, ``m3-ultramem-32``, and ``a2-highgpu-1g``, whose number is that of GPUs."""
# Their vCPUs are shared: the figures of two vCPUs do not hold for them.
_SHARED_CORE = ("e2-micro", "e2-small", "e2-medium", "f1-micro", "g1-small")


def is_machine_type(name: str) -> bool:
    """Whether it has the form of a machine type: ``n2-standard-8``, ``e2-custom-4-8192``."""
    return name in _SHARED_CORE or _split_type(name) is not None


def _split_type(name: str) -> tuple[str, int] | None:
    """The series of a machine type, and its number. Custom types without a series are of N1."""
    found = re.fullmatch(_TYPE, f"n1-{name}" if name.startswith("custom-") else name, re.ASCII)
    return None if found is None else (found[1], int(found[2]))


class MachineLimits(NamedTuple):
    """What a machine type carries to all its disks of one type together, when that was read (``August 2024``), and
    where."""

    figures: Figures
    dated: str
    source: str


def machine_limits(name: str, kind: str) -> MachineLimits | None:
    """What a machine type carries to its disks of a type; None where no table has it."""
    for row in table("google-machine-limits.csv"):
        if row["disk"] == kind and _is_of(row, name):
            dated, place = _READ[row["read"]]
            figures = Figures(
                read_mb_per_s=int(row["read_mib"]) * MIB,
                write_mb_per_s=int(row["write_mib"]) * MIB,
                read_iops=int(row["read_iops"]),
                write_iops=int(row["write_iops"]),
            )
            return MachineLimits(figures, dated, f"table google-machine-limits.csv, {dated}: {place}")
    return None


def _is_of(row: Mapping[str, str], name: str) -> bool:
    """Whether a row is that of a machine type: of its whole name, or of its series and vCPUs."""
    if not row["least_vcpus"]:
        return row["series"] == name
    found = _split_type(name)
    if found is None:
        return False
    series, vcpus = found
    return series == row["series"] and int(row["least_vcpus"]) <= vcpus <= int(row["most_vcpus"] or vcpus)


# EBS volumes: what each type carries, and its bucket of burst credits.

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
