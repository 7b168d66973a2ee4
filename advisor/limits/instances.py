"""EC2 instance types: what each carries to EBS. The table is package data and is read at the first use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from advisor.host.package_data import package_data

SOURCE = "Amazon EC2 user guide, Amazon EBS-optimized instances, as of 2023-05-31"
BURST_SECONDS = 30 * 60.0
"""How long an instance holds its maximum, at least once in 24 hours."""


class Instance(msgspec.Struct, frozen=True):
    """MB/s at I/O of 128 KiB and IOPS at 16 KiB, base and maximum; they are the same where nothing bursts."""

    name: str
    base_mbps: int
    max_mbps: int
    base_mb_per_s: float
    max_mb_per_s: float
    base_iops: int
    max_iops: int

    @property
    def bursts(self) -> bool:
        return (self.base_mb_per_s, self.base_iops) != (self.max_mb_per_s, self.max_iops)


def table_directory() -> Path:
    """Where the tables of this installation lie: inside the package, or at the top of a checkout."""
    return package_data("tables")


def find_instance(name: str) -> Instance | None:
    """The row of an instance type; None for one that the table does not have. Nothing is inferred from its family."""
    if not re.fullmatch(r"[a-z0-9-]+\.[a-z0-9-]+", name, re.ASCII):
        return None
    with (table_directory() / "ec2-ebs-limits.csv").open(encoding="ascii") as lines:
        row = next((line for line in lines if line.partition(",")[0] == name), None)
    return None if row is None else _parse_instance(row)


def all_instances() -> Iterator[Instance]:
    """Every row of the table."""
    with (table_directory() / "ec2-ebs-limits.csv").open(encoding="ascii") as lines:
        yield from (_parse_instance(line) for line in lines if not line.startswith(("#", "type,")))


def _parse_instance(row: str) -> Instance:
    name, base_mbps, max_mbps, base, most, base_iops, max_iops = row.rstrip("\n").split(",")
    return Instance(name, int(base_mbps), int(max_mbps), float(base), float(most), int(base_iops), int(max_iops))
