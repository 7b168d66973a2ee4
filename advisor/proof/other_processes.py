"""Which other processes use the CPUs and the storage while the advisor measures, by name, from psutil.

The counters of whole CPUs, disks and links are not psutil's: `advisor.proof.covariates` reads them through the host, so
that they can come from a captured tree, and pressure and protocol counters are unknown to psutil.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import NamedTuple

from advisor.host import Host

SAMPLE_SECONDS = 0.5
MIN_CPU_SHARE = 0.05
MIN_BYTES_PER_S = 64 << 10
MAX_NAMES = 3


class ProcessUse(NamedTuple):
    """What a process has used since it started: CPU time in seconds, bytes read from and written to storage."""

    name: str
    cpu_seconds: float
    storage_bytes: int


class ProcessSample(NamedTuple):
    """Every process of this machine but the advisor's own, by PID and start; ``at_seconds`` on the monotonic clock."""

    at_seconds: float
    processes: dict[tuple[int, float], ProcessUse]


def sample_processes(host: Host) -> ProcessSample:
    """What runs now; nothing for a captured host. Without root the storage of others' processes counts as 0 bytes."""
    processes: dict[tuple[int, float], ProcessUse] = {}
    if host.is_live:
        import psutil

        own = psutil.Process()
        mine = {own.pid, *(child.pid for child in own.children(recursive=True))}
        for process in psutil.process_iter(["name", "create_time", "cpu_times", "io_counters"]):
            found = process.info
            if process.pid not in mine and found["cpu_times"] is not None:
                cpu, storage = found["cpu_times"], found["io_counters"]
                moved = storage.read_bytes + storage.write_bytes if storage is not None else 0
                use = ProcessUse(found["name"] or "?", cpu.user + cpu.system, moved)
                processes[process.pid, found["create_time"]] = use
    return ProcessSample(time.monotonic(), processes)


def name_cpu_users(before: ProcessSample, after: ProcessSample) -> str:
    """The commands that used most CPU time between two samples, as ``NAME 1.2 CPUs, …``; empty if none used any."""
    found = _process_rates(before, after, "cpu_seconds")
    return ", ".join(f"{name} {rate:.1f} CPUs" for name, rate in found if rate >= MIN_CPU_SHARE)


def name_storage_users(before: ProcessSample, after: ProcessSample) -> str:
    """The commands that read and wrote most between two samples, as ``NAME 1.2 MB/s, …``; empty if none did."""
    found = _process_rates(before, after, "storage_bytes")
    return ", ".join(f"{name} {rate / 1e6:.1f} MB/s" for name, rate in found if rate >= MIN_BYTES_PER_S)


def _process_rates(before: ProcessSample, after: ProcessSample, field: str) -> list[tuple[str, float]]:
    """Processes of one name together, the largest first; one that started between the samples counts from 0."""
    seconds = max(after.at_seconds - before.at_seconds, 1e-3)
    total: Counter[str] = Counter()
    for key, use in after.processes.items():
        earlier = before.processes.get(key)
        used = getattr(use, field) - (getattr(earlier, field) if earlier is not None else 0)
        total[use.name] += used
    return [(name, used / seconds) for name, used in total.most_common(MAX_NAMES)]
