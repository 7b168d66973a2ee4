"""What a comparison of hosts says: records only, in the order in which they matter."""

from __future__ import annotations

from typing import Literal

import msgspec

from advisor.fleet.compare.collected import Value
from advisor.fleet.paths.matrix import Matrix
from advisor.rules.finding import Severity


class HeldValue(msgspec.Struct, frozen=True):
    """A value, and the hosts that have it."""

    value: Value
    hosts: tuple[str, ...]


class AttributeDifference(msgspec.Struct, frozen=True):
    """One attribute in which hosts differ.

    With a majority (more than half of the hosts that are known) ``majority`` is its value, None where the majority
    does not have the attribute at all, and ``groups`` are the outliers. Without one, ``groups`` are all values, the
    most frequent first. ``absent`` are hosts that do not have it, where that is not the majority's way; ``unknown``
    those where it could not be read, which never count as differing.
    """

    attribute: str
    has_majority: bool
    majority: Value | None
    majority_count: int
    groups: tuple[HeldValue, ...]
    absent: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def outliers(self) -> tuple[str, ...]:
        """The hosts that are not as the majority; all of them where there is none."""
        return (*(host for held in self.groups for host in held.hosts), *self.absent)


class FleetFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What differs, on which ``hosts``, why it matters, what to do, when that would hurt, and who says so.

    ``scope`` is within which hosts it was compared, empty for all. ``differences`` of one topic on the same hosts are
    one finding. ``goes_with`` are attributes that differ with it and are a consequence. ``commands`` run on the
    controller where an inventory is known, else on the host that they name.
    """

    id: str
    severity: Severity
    title: str
    hosts: tuple[str, ...]
    scope: str = ""
    why: str
    differences: tuple[AttributeDifference, ...] = ()
    goes_with: tuple[str, ...] = ()
    advice: str
    commands: tuple[str, ...] = ()
    hurts_when: str
    sources: tuple[str, ...]
    rank: int = 99
    seen: tuple[str, ...] = ()
    """What was seen, in words, where it is no attribute."""


class HardwareGroup(msgspec.Struct, frozen=True):
    """Hosts of one type of machine; ``label`` says what it is."""

    label: str
    hosts: tuple[str, ...]


class HostLine(msgspec.Struct, frozen=True):
    """A host of the comparison. ``state`` is compared or failed; ``message`` why it failed."""

    name: str
    state: Literal["compared", "failed"]
    hostname: str | None = None
    group: str | None = None
    cluster: str | None = None
    hardware: str | None = None
    findings: int = 0
    """In how many findings it is an outlier."""
    message: str | None = None


class UnknownOn(msgspec.Struct, frozen=True):
    """Attributes that other hosts have and that could not be read on these."""

    hosts: tuple[str, ...]
    attributes: tuple[str, ...]


class Network(msgspec.Struct, frozen=True):
    """A network with at least two hosts in it; ``mtus`` and ``speeds`` each value with the hosts that have it."""

    network: str
    scope: str
    hosts: int
    mtus: tuple[HeldValue, ...]
    speeds: tuple[HeldValue, ...]


class HostComparison(msgspec.Struct, frozen=True):
    """Hosts against each other; ``attributes`` is how many were compared, ``alike`` in how many all agree."""

    hosts: tuple[HostLine, ...]
    findings: tuple[FleetFinding, ...]
    types: tuple[HardwareGroup, ...]
    networks: tuple[Network, ...]
    unknown: tuple[UnknownOn, ...]
    attributes: int
    alike: int
    pair: tuple[str, str] | None = None
    group_by: str | None = None
    matrix: Matrix | None = None
    """What the paths between the hosts carry, where that was asked."""

    @property
    def failed(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.hosts if one.state == "failed")

    @property
    def compared(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.hosts if one.state == "compared")
