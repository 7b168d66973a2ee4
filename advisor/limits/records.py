"""The records: a ceiling, a path, what binds it, and all of a host. Their JSON is that of ``advisor limits --json``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from advisor.facts.host_facts import Facts
from advisor.limits.cloud_disks import EBS_MODEL
from advisor.limits.declared import Declared, DeclaredVolume
from advisor.limits.figures import Quantity
from advisor.rules.remote.ebs_quotas import IOPS, LIST_COMMAND, NEAR, STORAGE, Default
from advisor.rules.rule import Finding

# The records of a ceiling that takes in a whole host or a cluster: stages, what binds, what was measured.

HostStage = Literal["media", "pcie", "instance", "quota", "network", "clients", "memory", "processor"]
"""Drives and volumes after the arithmetic of their arrays; PCI Express from the drives to the processor; what an EC2
instance carries to its volumes; an account's quota; links that carry storage traffic; the links of a cluster's clients;
memory; processors."""
HostKnown = Literal["known", "partly", "unknown", "not-counted"]
Role = Literal["server", "client", "local", "assumed"]
"""Serves storage over its links; uses storage of others; applications on the host itself use it; nothing says which."""
Direction = Literal["read", "write"]


class StageSum(msgspec.Struct, frozen=True):
    """What one stage lets through for all paths together, each shared part once; None where it is not known or sets no
    limit. ``members`` are the parts that make up the figure. ``why`` says what was added up, or what is missing."""

    stage: HostStage
    members: tuple[str, ...]
    read_mb_s: float | None
    write_mb_s: float | None
    known: HostKnown
    why: str
    read_iops: float | None = None
    write_iops: float | None = None


class Share(msgspec.Struct, frozen=True):
    """How much of a ceiling one stage accounts for, and by which of its parts."""

    stage: HostStage
    members: tuple[str, ...]
    mb_s: float


class Binding(msgspec.Struct, frozen=True):
    """The stage that binds. Where several do, each for a part of the paths, it is that of the largest share; ``shares``
    has them all, and they add up to the ceiling.

    ``lifted_mb_s`` is what all carries together where the binding stage sets no limit. ``next_mb_s`` is the same of a
    host, with ``next_stage`` that binds then; of a cluster it is the sum of the lowest of the other stages that are
    known. Both None where nothing else is known.
    """

    stage: HostStage
    members: tuple[str, ...]
    next_mb_s: float | None
    next_stage: HostStage | None = None
    lifted_mb_s: float | None = None
    shares: tuple[Share, ...] = ()


class IopsBinding(msgspec.Struct, frozen=True):
    """The stage that binds the IOPS. ``next_iops`` is what is reached where it sets no limit, ``next_stage`` what binds
    then; both None where nothing else is known."""

    stage: HostStage
    members: tuple[str, ...]
    next_iops: float | None = None
    next_stage: HostStage | None = None


class MeasuredShare(msgspec.Struct, frozen=True):
    """A figure that was measured, in MB/s, and the fraction of the ceiling that it is; None without a ceiling."""

    direction: Direction
    mb_s: float
    ceiling_mb_s: float | None
    share: float | None


class HostCeiling(msgspec.Struct, frozen=True):
    """The ceiling of a host or cluster, from the stages that are known: unknown ones may lie lower.

    ``binds`` is of reads (of writes where nothing is known of reads), ``write_binds`` of writes. ``role`` says how the
    storage is used, ``paths`` what was added up.
    """

    read_mb_s: float | None
    write_mb_s: float | None
    binds: Binding | None
    write_binds: Binding | None
    stages: tuple[StageSum, ...]
    role: Role
    read_iops: float | None = None
    write_iops: float | None = None
    paths: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    measured: tuple[MeasuredShare, ...] = ()
    machine: str | None = None
    """What the stage ``instance`` is: an EC2 instance, an Azure VM; None off the cloud."""
    iops_binds: IopsBinding | None = None
    """Of reads: what binds ``read_iops``, or ``read_iops_at_most`` where that is not known."""
    write_iops_binds: IopsBinding | None = None
    read_iops_at_most: float | None = None
    """What the other stages carry, where ``read_iops`` is not known as a shared part's IOPS are not."""
    write_iops_at_most: float | None = None
    iops_unknown_of: tuple[str, ...] = ()
    """The shared parts with an IOPS limit that is not known."""


class PathFigures(msgspec.Struct, frozen=True):
    """What binds one path by itself, for as long as one likes; None where it is not known."""

    read_mb_s: float | None
    write_mb_s: float | None
    read_iops: float | None
    write_iops: float | None
    usable_bytes: int | None


class PathChange(msgspec.Struct, frozen=True):
    """A storage path before and after; None where it is only on one side."""

    name: str
    before: PathFigures | None
    after: PathFigures | None


class WhatIf(msgspec.Struct, frozen=True):
    """The ceiling with other hardware or settings. ``given`` says each change and what it comes to on this host;
    ``changes_ceiling`` whether the host's ceiling is another; ``paths`` are those whose figures differ."""

    given: tuple[str, ...]
    host: HostCeiling
    changes_ceiling: bool
    paths: tuple[PathChange, ...] = ()
    notes: tuple[str, ...] = ()


# The quotas of the AWS account that the declared volumes count against, each with its default and its command.


class AccountQuota(msgspec.Struct, frozen=True):
    """One quota of the account in its region, by AWS' name and code.

    ``provisioned`` is what the declared volumes have of it, ``default`` what an account begins with, both in ``unit``;
    ``share`` is the one over the other. ``own`` is the account's own value where it is declared, else unknown.
    """

    name: str
    code: str
    unit: Literal["IOPS", "TiB"]
    provisioned: float
    default: int
    share: float
    own: int | None
    command: str


def account_quotas(declared: Declared) -> tuple[AccountQuota, ...]:
    """Those of the types that are declared: IOPS of io1 and io2, then storage."""
    own = declared.quota.iops if declared.quota else None
    return (*_iops_quotas(declared.volume, own), *_storage_quotas(declared.volume))


def _iops_quotas(volumes: Sequence[DeclaredVolume], own: int | None) -> Iterator[AccountQuota]:
    for kind, default in IOPS.items():
        if found := sum(one.iops or 0 for one in volumes if one.type == kind):
            yield _make_quota(default, found, own)


def _storage_quotas(volumes: Sequence[DeclaredVolume]) -> Iterator[AccountQuota]:
    for kind, default in STORAGE.items():
        if found := sum(one.gib or 0 for one in volumes if one.type == kind):
            yield _make_quota(default, round(found / 1024, 2), None)


def _make_quota(default: Default, provisioned: float, own: int | None) -> AccountQuota:
    share = round(provisioned / default.value, 4)
    return AccountQuota(
        default.name, default.code, default.unit, provisioned, default.value, share, own, default.command
    )


def account_notes(quotas: Sequence[AccountQuota]) -> Iterator[str]:
    """Provisioned IOPS always, as they are what an account has least of; storage where it is near its default."""
    for one in quotas:
        if one.own is None and (one.unit == "IOPS" or one.share >= NEAR):
            default = f"the default of {one.default:,} {one.unit}"
            if one.provisioned > one.default:
                share = f"more than {default}: AWS must have raised it, or they cannot be bought"
            else:
                share = f"{100 * one.share:.0f} % of {default}"
            yield (
                f"quota “{one.name}”: the declared volumes have {one.provisioned:,.10g} {one.unit}, "
                f"{share}. "
                "All volumes of the account in the region count together, those of a mirror's other member too. The "
                f"account's own quota is unknown; ask: {one.command}"
            )


def unknown_quota(facts: Facts, declared: Declared) -> str | None:
    """Why nothing can be said about the account's quota; None where it is declared, or no EBS volume is here."""
    in_cloud = facts.host.cloud is not None and facts.host.cloud.provider == "aws"
    if declared.quota is not None or not (in_cloud or any(disk.model == EBS_MODEL for disk in facts.disks)):
        return None
    own = f"AWS alone knows the account's own values: {LIST_COMMAND}"
    return own if declared.volume else f"no volume's type and IOPS are declared (--volumes FILE), and {own}"


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
