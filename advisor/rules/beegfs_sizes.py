"""Arithmetic of BeeGFS: streams and stripes over targets, and the memory that workers and connections take.

Sources: the comments of BeeGFS' own configuration files (tuneWorkerBufSize is allocated twice for each worker; an RDMA
connection takes connRDMABufNum × connRDMABufSize, once to send and once to receive), and Dell's article (33 targets,
three to a file: eleven streams).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from advisor.host.numbers import is_count

if TYPE_CHECKING:
    from advisor.facts.beegfs import BeegfsService

MIB = 1 << 20
DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "storage": {"tuneNumWorkers": "12", "connMaxInternodeNum": "12"},
    "meta": {"tuneNumWorkers": "0", "connMaxInternodeNum": "32"},
    "client": {"connMaxInternodeNum": "12"},
}
"""What holds where a configuration file does not give a key, by kind of service; `COMMON` for all kinds."""
COMMON: Mapping[str, str] = {
    "connRDMABufNum": "70",
    "connRDMABufSize": "8192",
    "tuneFileReadSize": "128k",
    "tuneFileWriteSize": "128k",
    "tuneUsePerTargetWorkers": "true",
    "tuneWorkerBufSize": "4m",
}


def streams_for_all_targets(targets: int, stripe_count: int) -> int:
    """How many files must be read or written at once before every target has work; each has ``stripe_count``."""
    return -(-targets // max(stripe_count, 1))


def stripe_counts(targets_per_zone: int) -> tuple[int, ...]:
    """Numbers of targets for a file that fill the targets of a zone evenly: the divisors, the largest first."""
    return tuple(count for count in range(targets_per_zone, 0, -1) if targets_per_zone % count == 0)


def connection_bytes(*, clients: int, connections: int, buffers: int, buffer_bytes: int) -> int:
    """Memory of a server in RDMA buffers, those to send and those to receive."""
    return clients * connections * buffers * buffer_bytes * 2


def worker_bytes(*, workers: int, buffer_bytes: int) -> int:
    """Memory in the buffers of workers, of which each has two."""
    return workers * buffer_bytes * 2


def value(service: BeegfsService, key: str) -> str:
    """What a key says, or its default; empty where BeeGFS has none that is known here."""
    return service.settings.get(key) or DEFAULTS.get(service.kind, {}).get(key) or COMMON.get(key, "")


def number(service: BeegfsService, key: str) -> int | None:
    """`value` as a whole number; None for anything else."""
    text = value(service, key)
    return int(text) if is_count(text) and len(text) < 10 else None


def size(service: BeegfsService, key: str) -> int | None:
    """`value` in bytes; None for anything else."""
    from advisor.facts.beegfs_text import size_bytes

    return size_bytes(value(service, key))


def workers(service: BeegfsService, threads: int | None) -> int | None:
    """Workers that a service starts: of a storage service for each target, of metadata by default two for each of
    ``threads`` CPUs. None where that is not known."""
    count = number(service, "tuneNumWorkers")
    if count == 0 and service.kind == "meta":
        return 2 * threads if threads else None
    if count is None or service.kind != "storage":
        return count
    is_each = value(service, "tuneUsePerTargetWorkers").lower() in {"true", "1", "yes"}
    return count * (len(service.targets) if is_each else 1)


def buffers_of_workers(services: Iterable[BeegfsService], threads: int | None) -> int | None:
    """Bytes in the buffers of all workers of these services; None where one is not known."""
    total = 0
    for service in services:
        count, each = workers(service, threads), size(service, "tuneWorkerBufSize")
        if count is None or each is None:
            return None
        total += worker_bytes(workers=count, buffer_bytes=each)
    return total
