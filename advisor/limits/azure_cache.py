"""Host caching of Azure: what a VM size carries to the disks that its host caches.

The cached limit is separate from the limit without caching. A read that the cache answers counts against the cached
limit alone; one that it does not, and a write, count against both. A write to a disk with ReadWrite is complete in the
cache and reaches the disk later. Premium SSD v2, Ultra Disk and disks of 4 TiB and more have no host caching.

Sources: table azure-vm-cached.csv; Microsoft, Virtual machine and disk performance (disks-performance, June 2023), and
Premium storage, design for high performance (disk caching).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from advisor.limits.machines import table

HostCaching = Literal["None", "ReadOnly", "ReadWrite"]
LARGEST_CACHED_GIB = 4095
SOURCE = (
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
