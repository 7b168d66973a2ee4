"""The records of a ceiling that takes in a whole host or a cluster: stages, what binds, what was measured."""

from __future__ import annotations

from typing import Literal

import msgspec

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
