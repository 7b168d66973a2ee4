"""Disks of Google Cloud: what Persistent Disk carries by its size, and Hyperdisk by what was bought.

All disks of one type of Persistent Disk on an instance share an allowance that grows with their size together; each
Hyperdisk has figures of its own: bought, or following from the one that is bought. What a machine type carries to
Persistent Disk is by series and vCPUs, or by its whole name; what it carries to Hyperdisk is in no table.

Sources: tables google-disks.csv and google-machine-limits.csv; Google Compute Engine, About Persistent Disk
performance, and About Hyperdisk Balanced, Extreme, Throughput and ML (the pages of each type).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from advisor.limits.figures import MIB, Figures
from advisor.limits.machines import table

PersistentDisk = Literal["pd-standard", "pd-balanced", "pd-ssd"]
BoughtDisk = Literal["pd-extreme", "hyperdisk-balanced", "hyperdisk-extreme", "hyperdisk-ml", "hyperdisk-throughput"]
GoogleDisk = PersistentDisk | BoughtDisk
BY_SIZE: tuple[str, ...] = get_args(PersistentDisk)
BY_PURCHASE: tuple[str, ...] = get_args(BoughtDisk)
GOOGLE_DISKS = (*BY_SIZE, *BY_PURCHASE)

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


SOURCE = (
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
