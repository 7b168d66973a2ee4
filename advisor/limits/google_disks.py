"""Disks of Google Cloud: what Persistent Disk carries by its size, and Hyperdisk by what was bought.

All disks of one type of Persistent Disk on an instance share an allowance that grows with their size together; each
Hyperdisk has figures of its own. What the machine type carries to all of them is in no table.

Sources: table google-disks.csv; Google Compute Engine, About Persistent Disk performance, and Hyperdisk performance
limits.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from advisor.limits.figures import MIB, Figures
from advisor.limits.machines import table

PersistentDisk = Literal["pd-standard", "pd-balanced", "pd-ssd"]
BoughtDisk = Literal["pd-extreme", "hyperdisk-balanced", "hyperdisk-extreme", "hyperdisk-ml", "hyperdisk-throughput"]
GoogleDisk = PersistentDisk | BoughtDisk
BY_SIZE: Final[tuple[str, ...]] = get_args(PersistentDisk)
BY_PURCHASE: Final[tuple[str, ...]] = get_args(BoughtDisk)
GOOGLE_DISKS: Final = (*BY_SIZE, *BY_PURCHASE)

# An NVMe disk has one model for both; over SCSI it is named.
REMOTE_MODELS: Final = ("nvme_card-pd", "PersistentDisk")
LOCAL_MODELS: Final = ("nvme_card", "EphemeralDisk")
SOURCE: Final = (
    "table google-disks.csv, November 2026: Google Compute Engine, About Persistent Disk performance (at most what an "
    "instance of 64 vCPUs reaches; the base of pd-balanced and pd-ssd is unconfirmed: no copy of that page gave it)"
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
