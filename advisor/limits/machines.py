"""Machines for hire: what EC2 instance types and Azure VM sizes carry to their volumes and to the network.

The tables are files of the package with their dates; a file of the user's own (``machine_file``) goes before them. They
are read when a cloud machine is known, or when `advisor size` searches them. A machine that is in no table is unknown:
nothing is inferred from its family.
"""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Literal

import msgspec

from advisor.host.origin import package_data

# EC2 instance types: what each carries to EBS. The table is package data and is read at the first use.

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


Provider = Literal["aws", "azure"]

EC2_TABLE = (
    "table ec2-instances.csv, August 2026: aws/karpenter-provider-aws, from DescribeInstanceTypes (EBS maximum and "
    "network baseline; no IOPS, no EBS baseline)"
)
AZURE_TABLE = (
    "table azure-vm-sizes.csv, August 2026: kubernetes-sigs/azuredisk-csi-driver (data disks without host caching)"
)
AZURE_PAGES = (
    "table azure-vm-sizes.csv, November 2026: Microsoft, pages of the sizes (MicrosoftDocs/azure-compute-docs, copies "
    "of 2024 to 2026; data disks without host caching)"
)
LOCAL_TABLE = (
    "table local-nvme-measured.csv, August 2026: scylladb/scylla-machine-image, measured by ScyllaDB with iotune; no "
    "promise of the provider"
)
FLOW_SOURCE = "EC2 user guide, instance network bandwidth"
FLOW_MBPS = 5_000
PLACED_FLOW_MBPS = 10_000
"""What one flow carries outside and inside a cluster placement group."""


NEWER_KINDS = frozenset({"PremiumV2_LRS", "UltraSSD_LRS"})
"""The Azure disks for which some sizes have limits of their own."""


class VolumeLimits(msgspec.Struct, frozen=True):
    """What a machine carries to all its volumes together: MB/s (10^6 bytes) and IOPS, reads and writes in one sum.

    ``burst_…`` are what it carries for ``burst_seconds``, None where that is no more. ``is_maximum``: the source has
    the maximum only, and what the machine carries for longer may be less.
    """

    mb_per_s: float | None
    iops: float | None
    source: str
    dated: str
    burst_mb_per_s: float | None = None
    burst_iops: float | None = None
    burst_seconds: float | None = None
    is_maximum: bool = False
    is_declared: bool = False
    note: str = ""
    """Where another table says otherwise."""
    newer_mb_per_s: float | None = None
    newer_iops: float | None = None
    """What it carries to Premium SSD v2 and Ultra Disks, where that is known to be more."""

    def for_kinds(self, kinds: Set[str | None]) -> VolumeLimits:
        """The limits for volumes of these kinds together: a bound where some are of a newer kind and others are not."""
        if not kinds & NEWER_KINDS or None in (self.newer_mb_per_s, self.newer_iops):
            return self
        return msgspec.structs.replace(
            self, mb_per_s=self.newer_mb_per_s, iops=self.newer_iops, burst_mb_per_s=None, burst_iops=None
        )


class NetworkLimits(msgspec.Struct, frozen=True):
    """What a machine carries over all its links, each way, in Mbit/s: baseline, and at most (None where unknown)."""

    mbps: float
    source: str
    dated: str
    most_mbps: float | None = None
    is_declared: bool = False


class Machine(msgspec.Struct, frozen=True):
    """An EC2 instance type or an Azure VM size. None is what no source says."""

    name: str
    provider: Provider
    vcpus: int | None = None
    memory_mib: int | None = None
    volumes: VolumeLimits | None = None
    network: NetworkLimits | None = None
    hypervisor: str | None = None
    most_disks: int | None = None
    premium: bool | None = None
    """Whether premium disks can be attached to an Azure VM."""

    @property
    def is_nitro(self) -> bool:
        """Bare metal is: only types that run on Xen are not."""
        return self.hypervisor != "xen"


class LocalNvme(msgspec.Struct, frozen=True):
    """Measured figures of the local NVMe disks of a type: of one disk, or of all of them together."""

    name: str
    scope: Literal["disk", "all"]
    read_mb_per_s: float
    write_mb_per_s: float
    read_iops: int
    write_iops: int


Given = Mapping[str, Machine]
"""The machines of a user's own file, by name."""


def find_machine(provider: str, name: str, given: Given | None = None) -> Machine | None:
    """A machine by its exact name: of the user's file, and of the tables what that lacks."""
    if provider == "azure":
        row = _find_row("azure-vm-sizes.csv", name)
        of_tables: Machine | None = _of_azure(row) if row else None
    elif provider != "aws":
        of_tables = None
    else:
        row, fuller = _find_row("ec2-instances.csv", name), find_instance(name)
        of_tables = _of_ec2(name, row, fuller) if row or fuller else None
    return _complete_machine((given or {}).get(name), of_tables)


def _complete_machine(one: Machine | None, other: Machine | None) -> Machine | None:
    """The first, with each figure that only the other has."""
    if one is None or other is None or one.provider != other.provider:
        return one or other
    lacking = {field: getattr(other, field) for field in one.__struct_fields__ if getattr(one, field) is None}
    return msgspec.structs.replace(one, **lacking)


def all_machines(provider: Provider, given: Given | None = None) -> tuple[Machine, ...]:
    """Every machine of a provider, those of the user's file in place of those of the tables."""
    found = {one.name: one for one in _table_machines(provider)}
    mine = {
        name: _complete_machine(one, found.get(name)) for name, one in (given or {}).items() if one.provider == provider
    }
    return tuple(one for one in (found | mine).values() if one is not None)


def find_local(provider: str, name: str) -> LocalNvme | None:
    """The measured figures of a type's local NVMe disks; of its family where the table has one row for it."""
    whole = f"{name.partition('.')[0]}.ALL" if provider == "aws" else ""
    rows = [row for row in table("local-nvme-measured.csv") if row["cloud"] == provider]
    row = next((row for wanted in (name, whole) for row in rows if row["type"] == wanted), None)
    if row is None:
        return None
    return LocalNvme(
        name=row["type"],
        scope="all" if row["scope"] == "all" else "disk",
        read_mb_per_s=int(row["read_bytes_per_s"]) / 1e6,
        write_mb_per_s=int(row["write_bytes_per_s"]) / 1e6,
        read_iops=int(row["read_iops"]),
        write_iops=int(row["write_iops"]),
    )


@functools.cache
def table(name: str) -> tuple[dict[str, str], ...]:
    """A table of the package, without the comments at its head."""
    with (table_directory() / name).open(encoding="ascii", newline="") as lines:
        return tuple(csv.DictReader(line for line in lines if not line.startswith("#")))


def _find_row(file: str, name: str) -> dict[str, str] | None:
    """One row by its first field; the others are not split."""
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name, re.ASCII):
        return None
    with (table_directory() / file).open(encoding="ascii", newline="") as lines:
        rows = (line.rstrip("\n") for line in lines if not line.startswith("#"))
        head = next(rows).split(",")
        found = next((line.split(",") for line in rows if line.partition(",")[0] == name), None)
    return dict(zip(head, found, strict=True)) if found else None


def _table_machines(provider: Provider) -> Iterator[Machine]:
    if provider == "azure":
        yield from map(_of_azure, table("azure-vm-sizes.csv"))
        return
    rows = {row["type"]: row for row in table("ec2-instances.csv")}
    older = {row["type"] for row in table("ec2-ebs-limits.csv")}
    fuller = {one.name: one for one in all_instances()}
    for name in (*rows, *sorted(older - rows.keys())):
        yield _of_ec2(name, rows.get(name), fuller.get(name))


def _of_ec2(name: str, row: Mapping[str, str] | None, fuller: Instance | None) -> Machine:
    row = row or {}
    network, most = _parse_number(row.get("network_mbps")), _parse_number(row.get("ebs_max_mbps"))
    return Machine(
        name=name,
        provider="aws",
        vcpus=_parse_number(row.get("vcpus")),
        memory_mib=_parse_number(row.get("memory_mib")),
        volumes=_ebs_fully(fuller, most)
        if fuller
        else (VolumeLimits(most / 8, None, EC2_TABLE, "August 2026", is_maximum=True) if most else None),
        network=NetworkLimits(network, EC2_TABLE, "August 2026") if network else None,
        hypervisor=row.get("hypervisor") or None,
    )


def _ebs_fully(one: Instance, newer_mbps: int | None) -> VolumeLimits:
    """The fuller row of 2023, with the maximum of the newer table where that is another one."""
    found = VolumeLimits(
        mb_per_s=one.base_mb_per_s,
        iops=one.base_iops,
        source=SOURCE,
        dated="2023-05-31",
        burst_mb_per_s=one.max_mb_per_s if one.bursts else None,
        burst_iops=one.max_iops if one.bursts else None,
        burst_seconds=BURST_SECONDS if one.bursts else None,
    )
    if newer_mbps is None or newer_mbps == one.max_mbps:
        return found
    most = newer_mbps / 8
    base = min(one.base_mb_per_s, most) if one.bursts else most
    which = "maximum" if one.bursts and base == one.base_mb_per_s else "MB/s"
    return msgspec.structs.replace(
        found,
        mb_per_s=base,
        burst_mb_per_s=most if one.bursts else None,
        source=f"{EC2_TABLE}; {'base and IOPS' if which == 'maximum' else 'IOPS'}: {SOURCE}",
        dated=f"August 2026 ({which}) and 2023-05-31 ({'base, IOPS' if which == 'maximum' else 'IOPS'})",
        note=f"its maximum was {one.max_mb_per_s:,.0f} MB/s in 2023, and its IOPS may have grown since",
    )


def _of_azure(row: Mapping[str, str]) -> Machine:
    name = row["size"]
    mb_per_s, iops = _parse_number(row["mb_per_s"]), _parse_number(row["iops"])
    burst = (_parse_number(row["burst_mb_per_s"]), _parse_number(row["burst_iops"]))
    bursts = (burst[0] or 0) > (mb_per_s or 0) or (burst[1] or 0) > (iops or 0)
    source, dated = (AZURE_PAGES, "November 2026") if row["read"] == "2026-11" else (AZURE_TABLE, "August 2026")
    known = VolumeLimits(
        mb_per_s,
        iops,
        source,
        dated,
        newer_mb_per_s=_parse_number(row["v2_mb_per_s"]),
        newer_iops=_parse_number(row["v2_iops"]),
        burst_mb_per_s=burst[0] if bursts else None,
        burst_iops=burst[1] if bursts else None,
    )
    return Machine(
        name=name,
        provider="azure",
        vcpus=_parse_number(row["vcpus"]),
        volumes=known if mb_per_s or iops else None,
        most_disks=_parse_number(row["data_disks"]),
        premium=takes_premium(name),
    )


def takes_premium(size: str) -> bool:
    """Whether a VM size takes premium disks, by the "s" that Azure's naming conventions give to those that do:
    Standard_D8s_v5, Standard_E96-24ads_v5, Standard_DS2_v2."""
    return bool(re.match(r"Standard_(?:[A-Z]+\d+(?:-\d+)?[a-z]*s[a-z]*(?:_|$)|[A-Z]+S\d)", size, re.ASCII))


def _parse_number(text: str | None) -> int | None:
    """A count; None for an empty field and for 0, which stands for "not known" in these tables."""
    return int(text) or None if text else None
