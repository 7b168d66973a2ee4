"""Azure managed disks: what each tier carries, by the table of the package, and the types that are bought by figures.

Sources: table azure-disks.csv, August 2026 (kubernetes-sigs/azuredisk-csi-driver), where 0 means that size and
provisioning decide; the most of Ultra Disk and Premium SSD v2: Microsoft, Azure managed disk types. MB/s are 10^6
bytes.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from advisor.limits.machines import table

AzureDisk = Literal[
    "Premium_LRS", "Premium_ZRS", "StandardSSD_LRS", "StandardSSD_ZRS", "Standard_LRS", "PremiumV2_LRS", "UltraSSD_LRS"
]
AZURE_DISKS = get_args(AzureDisk)
MOST = {"PremiumV2_LRS": (80_000, 1_200), "UltraSSD_LRS": (400_000, 10_000)}
"""IOPS and MB/s of one disk at most, of the kinds that are bought by figures."""
BY_SIZE = {"PremiumV2_LRS": (500, 3_000), "UltraSSD_LRS": (1_000, 100)}
"""IOPS for each GiB at most, and the IOPS that every disk may have."""
MB_PER_IOPS = {"PremiumV2_LRS": (0.25, 125), "UltraSSD_LRS": (0.256, 1)}
"""MB/s for each of its IOPS at most, and those that every disk may have."""
"""IOPS and MB/s of a disk at most, of the types that are bought by figures."""

SOURCE = "table azure-disks.csv, August 2026: kubernetes-sigs/azuredisk-csi-driver"
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
