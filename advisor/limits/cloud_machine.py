"""The cloud machine that a host is: its type by the firmware or by the user's word, and what is known of the type."""

from __future__ import annotations

import msgspec

from advisor.facts.host_facts import Facts
from advisor.limits.declared import Declared
from advisor.limits.machines import Given, LocalNvme, Machine, find_local, find_machine
from advisor.limits.media import local_disks


class Hired(msgspec.Struct, frozen=True):
    """``provider`` and ``name`` None off the cloud or where they are unknown; ``local``: measured figures of its
    local disks, where it has any."""

    provider: str | None = None
    name: str | None = None
    machine: Machine | None = None
    local: LocalNvme | None = None


def hired_machine(facts: Facts, declared: Declared, given: Given | None = None) -> Hired:
    """What the firmware says of the type; the user's word only where it says nothing."""
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
    return "azure" if name.startswith(("Standard_", "Basic_")) else "aws"
