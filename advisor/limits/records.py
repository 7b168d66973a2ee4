"""The records: a ceiling, a path, what binds it, and all of a host. Their JSON is that of ``advisor limits --json``."""

from __future__ import annotations

from typing import Literal

import msgspec

from advisor.limits.account import AccountQuota
from advisor.limits.figures import Quantity
from advisor.limits.host_records import HostCeiling as HostCeiling
from advisor.limits.host_records import WhatIf
from advisor.rules.finding import Finding

Known = Literal["host", "table", "declared", "measured", "unknown"]
"""Read from the host, from a table with its source, declared by the user, measured by others on such a machine, or not
known."""
Measure = Literal["mb_per_s", "iops"]
Stage = Literal["quota", "instance", "network", "wire", "pcie", "volume", "medium"]
"""Where on the path: what an account and an EC2 instance may carry, the links to networked storage, a link's own wire,
PCI Express, an EBS volume, a drive itself."""


class Rate(msgspec.Struct, frozen=True):
    """MB/s (10^6 bytes) and operations a second; None where the part sets no limit to it, or none that is known."""

    read_mb_per_s: float | None = None
    write_mb_per_s: float | None = None
    read_iops: float | None = None
    write_iops: float | None = None


class PathCeiling(msgspec.Struct, frozen=True):
    """What one part of a path lets through, in the measure of the whole path: of an array, after its arithmetic.

    ``sustained`` holds for as long as one likes, ``burst`` for ``burst_seconds`` from full credits at the full rate;
    None where nothing is better than sustained. ``why`` says where the figures are from, or why there are none.
    """

    stage: Stage
    what: str
    where: tuple[str, ...]
    known: Known
    why: str
    sustained: Rate = Rate()
    burst: Rate | None = None
    burst_seconds: float | None = None
    source: str | None = None
    """The document that a table or a formula is from."""


class Bound(msgspec.Struct, frozen=True):
    """The smallest of the known ceilings: an upper bound of the path, as unknown ones may lie below it."""

    quantity: Quantity
    value: float
    ceiling: int
    """Index into the path's ceilings."""
    stage: Stage
    what: str


class ObservedShare(msgspec.Struct, frozen=True):
    """A measured median against what binds. ``share`` is a fraction of the ceiling, above 1 where it was exceeded;
    ``seconds`` is how long a full bucket of burst credits lasts at that rate, None where none is drawn on."""

    workload: str
    measure: Measure
    read_share: float
    value: float
    ceiling: float | None
    share: float | None
    in_burst: bool = False
    seconds: float | None = None


class Capacity(msgspec.Struct, frozen=True):
    """``raw_bytes`` of the drives, ``usable_bytes`` of the device less 1 % for a file system."""

    raw_bytes: int
    usable_bytes: int


class StoragePath(msgspec.Struct, frozen=True):
    """One path by itself, with nothing else running on what it shares with others.

    ``layers`` name what it leads through, from the device that an application opens down to what the drives are in.
    """

    kind: Literal["storage", "network"]
    name: str
    device: str
    layers: tuple[str, ...]
    disks: tuple[str, ...]
    ceilings: tuple[PathCeiling, ...]
    sustained: tuple[Bound, ...]
    burst: tuple[Bound, ...]
    """Only what is higher than sustained."""
    file_system: str | None = None
    capacity: Capacity | None = None
    observed: tuple[ObservedShare, ...] = ()
    notes: tuple[str, ...] = ()
    spread: Rate | None = None
    """What load that falls on every segment at once can reach; None where the device has no parts that lie one behind
    the other. ``sustained`` is then that of one of them, the fastest: a stream is in one at a time."""
    floor: Rate | None = None
    """The same of the slowest one, where it is lower than ``sustained``."""
    holds: tuple[str, ...] = ()
    """What a database keeps there: of each instance, its journal, WIJ and databases."""


class Bought(msgspec.Struct, frozen=True):
    """All declared volumes together against what the instance carries; ``unusable`` is the fraction beyond it."""

    quantity: Quantity
    volumes: float
    instance: float
    unusable: float


class QuotaUse(msgspec.Struct, frozen=True):
    """IOPS of provisioned volumes (io1, io2) against the account's quota. ``bought`` are those that are declared,
    ``elsewhere`` those of other hosts; ``left`` is negative where they are more than the quota."""

    iops: int
    bought: int
    elsewhere: int
    left: int


class NotKnown(msgspec.Struct, frozen=True):
    """A ceiling that every path has and that is unknown."""

    what: str
    why: str


class Limits(msgspec.Struct, frozen=True):
    """All paths of a host."""

    hostname: str | None
    instance_type: str | None
    paths: tuple[StoragePath, ...]
    bought: tuple[Bought, ...] = ()
    unknown: tuple[NotKnown, ...] = ()
    notes: tuple[str, ...] = ()
    quota: QuotaUse | None = None
    host: HostCeiling | None = None
    """All data paths at once."""
    what_if: WhatIf | None = None
    findings: tuple[Finding, ...] = ()
    """Of rules that judge what the user declares."""
    account_quotas: tuple[AccountQuota, ...] = ()
    """Of each declared volume type; empty where no EBS volume is declared."""
