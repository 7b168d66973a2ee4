"""BeeGFS servers for the rules about them: the article's own at its best, and what each rule fires on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from advisor.facts.clusters.beegfs import EntryInfo, StripePattern
from advisor.facts.host_facts import Facts
from tests import beegfs_client
from tests.beegfs_server import server
from tests.cases import read_cases
from tests.rules.build import replaced

QUIET_ARP = {"arp_ignore": 1, "arp_announce": 2, "rp_filter": 2}


@cache
def _calm(role: Any) -> Facts:
    settings = {"tuneNumWorkers": "24"} if role == "meta" else {}
    return server(role, arp=QUIET_ARP, settings=settings)


def calm(role: str = "storage") -> Facts:
    """The article's server, at its best."""
    return _calm(role)


def changed(facts: Facts, number: int = 0, **parts: Any) -> Facts:
    """The facts with parts of one BeeGFS service replaced; ``settings`` are added to its own."""
    assert facts.beegfs is not None
    services = list(facts.beegfs.services)
    old = services[number]
    if "settings" in parts:
        parts["settings"] = {**old.settings, **parts["settings"]}
    services[number] = msgspec.structs.replace(old, **parts)
    return replaced(facts, {"beegfs": msgspec.structs.replace(facts.beegfs, services=tuple(services))})


def process(facts: Facts, number: int = 0, **parts: Any) -> Facts:
    """The same of its unit."""
    assert facts.beegfs is not None
    one = facts.beegfs.services[number].service
    assert one is not None
    return changed(facts, number, service=msgspec.structs.replace(one, **parts))


def everywhere(facts: Facts, **settings: str) -> Facts:
    assert facts.beegfs is not None
    for number in range(len(facts.beegfs.services)):
        facts = changed(facts, number, settings=settings)
    return facts


def with_pattern(facts: Facts, chunk: int | None, count: int | None) -> Facts:
    assert facts.beegfs is not None
    pattern = StripePattern("/mnt/beegfs", EntryInfo("RAID0", chunk, count))
    return replaced(facts, {"beegfs": msgspec.structs.replace(facts.beegfs, patterns=(pattern,))})


def with_level(level: str | None, kind: str, **target: Any) -> Facts:
    """The metadata server with the targets of one kind on another level."""
    facts = calm("meta")
    assert facts.beegfs is not None
    for number, one in enumerate(facts.beegfs.services):
        if one.kind == kind:
            targets = tuple(msgspec.structs.replace(each, level=level, **target) for each in one.targets)
            facts = changed(facts, number, targets=targets)
    return facts


def small(memory_bytes: int, facts: Facts | None = None) -> Facts:
    base = facts or calm()
    return replaced(base, {"memory": replaced(base.memory, {"total_bytes": memory_bytes})})


def unbound(**parts: Any) -> Facts:
    return process(calm(), cpus_allowed="0-95", **parts)


STOPPED: Mapping[str, Any] = {"main_pid": None, "cpus_allowed": None, "mems_allowed": None}


def both_zones() -> Facts:
    facts = calm()
    assert facts.beegfs is not None
    targets = (*facts.beegfs.services[0].targets, *facts.beegfs.services[5].targets)
    return changed(facts, targets=targets)


STOPPED_ONE = process(calm(), **STOPPED)


def with_buffer(size: str) -> Facts:
    """A service that asks for a receive buffer, on a kernel of 208 KiB by default and 4 MiB at most."""
    sysctl = {**calm().sysctl, "net.core.rmem_default": "212992", "net.core.rmem_max": "4194304"}
    return changed(replaced(calm(), {"sysctl": sysctl}), settings={"connTCPRcvBufSize": size})


# Rule, declared workload, a host that needs it, a host that does not.
DATA = read_cases(__file__, beegfs_client, globals())

ALL: tuple[tuple[str, str | None, Facts, Facts], ...] = DATA["ALL"]
