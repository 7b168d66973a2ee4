"""The cloud machine that a host is: its type by the firmware or by the user's word, what is known of it, network."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from advisor.facts.host_facts import Facts
from advisor.limits.declared import Declared
from advisor.limits.google_disks import is_machine_type
from advisor.limits.machines import (
    FLOW_MBPS,
    FLOW_SOURCE,
    PLACED_FLOW_MBPS,
    Given,
    LocalNvme,
    Machine,
    find_local,
    find_machine,
)
from advisor.limits.media import local_disks
from advisor.limits.records import PathCeiling, Rate
from advisor.limits.wire import mb_per_s


class Hired(msgspec.Struct, frozen=True):
    """``provider`` and ``name`` None off the cloud or where they are unknown; ``local``: measured figures of its
    local disks, where it has any."""

    provider: str | None = None
    name: str | None = None
    machine: Machine | None = None
    local: LocalNvme | None = None


def hired_machine(facts: Facts, declared: Declared, given: Given | None = None) -> Hired:
    """What the firmware says about the type; the user's word only where it says nothing."""
    cloud = facts.host.cloud
    name = (cloud.instance_type if cloud else None) or declared.instance_type
    provider = cloud.provider if cloud else _provider_of(name)
    if provider is None or name is None:
        return Hired(provider, name)
    local = find_local(provider, name) if local_disks(facts) else None
    return Hired(provider, name, find_machine(provider, name, given), local)


def _provider_of(name: str | None) -> str | None:
    """By the form of a declared type."""
    if name is None:
        return None
    if is_machine_type(name):
        return "gcp"
    return "azure" if name.startswith(("Standard_", "Basic_")) else "aws"


def network_ceiling(hired: Hired) -> PathCeiling | None:
    """What an EC2 instance carries over all its links, each way; None elsewhere. Headers are not taken off."""
    if hired.provider != "aws":
        return None
    name, machine = hired.name, hired.machine
    found = machine.network if machine else None
    if found is None:
        why = "the firmware does not report the instance type" if name is None else f"{name} is not in the tables"
        if machine is not None:
            why = f"the tables have no network bandwidth of {name}"
        return PathCeiling("instance", "EC2 network", (name,) if name else (), "unknown", why)
    value = mb_per_s(found.mbps)
    most = mb_per_s(found.most_mbps) if found.most_mbps else None
    kind = "file" if found.is_declared else "table"
    return PathCeiling(
        stage="instance",
        what="EC2 network",
        where=(name,) if name else (),
        known="declared" if found.is_declared else "table",
        why=f"{name}, baseline of all its links together; {kind} of {found.dated}",
        sustained=Rate(value, value),
        burst=Rate(most, most) if most else None,
        source=found.source,
    )


def flow_notes(hired: Hired) -> Iterator[str]:
    """What one flow carries, whatever the machine does."""
    if hired.provider == "aws":
        yield (
            f"one flow carries {FLOW_MBPS // 1000} Gbit/s ({mb_per_s(FLOW_MBPS):,.0f} MB/s) at most, or "
            f"{PLACED_FLOW_MBPS // 1000} Gbit/s to instances of the same cluster placement group ({FLOW_SOURCE})"
        )
