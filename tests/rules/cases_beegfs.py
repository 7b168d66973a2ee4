"""BeeGFS servers for the rules about them: the article's own at its best, and what each rule fires on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from advisor.facts.beegfs import StripePattern
from advisor.facts.beegfs_text import EntryInfo
from advisor.facts.host_facts import Facts
from tests.beegfs_client import TUNED, client
from tests.beegfs_server import CPUS, layout, server
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
ALL: tuple[tuple[str, str | None, Facts, Facts], ...] = (
    ("beegfs.not-bound", None, unbound(), calm()),
    ("beegfs.wrong-node", None, process(calm(), cpus_allowed=CPUS[1]), calm()),
    ("beegfs.memory-not-bound", None, process(calm(), numa_policy=None, numa_mask=None), calm()),
    ("beegfs.service-spans-nodes", None, both_zones(), calm()),
    ("beegfs.uneven-zones", None, server(targets=layout("storage")[:4], arp=QUIET_ARP), calm("meta")),
    ("beegfs.metadata-not-mirrored", None, with_level("raid6", "meta"), calm("meta")),
    ("beegfs.storage-on-parity", None, with_level("raid6", "storage"), calm("meta")),
    ("beegfs.links-in-one-subnet", None, server(), calm()),
    ("beegfs.interfaces", None, changed(calm(), interfaces=("ib1", "ib0")), calm()),
    ("beegfs.socket-buffers", None, with_buffer("8388608"), with_buffer("524288")),
    ("beegfs.buffer-memory", None, small(16 << 30), calm()),
    ("beegfs.workers", None, server("meta", arp=QUIET_ARP), calm("meta")),
    ("beegfs.worker-buffer", None, changed(calm(), settings={"tuneFileReadSize": "4m"}), calm()),
    ("beegfs.rdma-buffers", None, with_pattern(calm(), 2 << 20, 3), with_pattern(calm(), 512 << 10, 3)),
    ("beegfs.same-port", None, changed(STOPPED_ONE, settings={"connStoragePortTCP": "9001"}), STOPPED_ONE),
    ("beegfs.stripes", None, with_pattern(calm(), 512 << 10, 4), with_pattern(calm(), 512 << 10, 3)),
    ("beegfs.storage-on-mirror", None, with_level("raid10", "storage"), calm("meta")),
    ("beegfs.client-connections", None, client(), client(TUNED)),
    ("beegfs.client-interfaces", None, client(), client(TUNED)),
    ("beegfs.client-stripes", None, client(), client(pattern=("2M", 3))),
    ("beegfs.client-fsync", None, client({"tuneRemoteFSync": "false"}), client()),
    ("beegfs.rdma-off", None, client({"connUseRDMA": "false"}), client()),
    ("beegfs.memory-settings", "beegfs", calm(), small(16 << 30)),
)
