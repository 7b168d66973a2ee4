"""What else the host was doing: the gate before a session, and the blind judgement on each run.

A pair is judged on these covariates only, never on its results, and its two arms taken together against earlier
pairs: a change that itself costs CPU or adds I/O does so in every pair, and what is repeated cannot lean to one arm.

Counters are read through the host, and so from captured trees as well. psutil has neither pressure nor protocol
counters; its CPU and disk counters are the same numbers of the same files.

Sources: Documentation/accounting/psi.rst, admin-guide/iostats.rst and admin-guide/md.rst of Linux; proc_stat(5).
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from advisor.host import Host, Missing
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex
from advisor.proof.metrics import RunFigures
from advisor.proof.statistics import median

# Which other processes use the CPUs and the storage while the advisor measures, by name, from psutil.

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


SECTOR_BYTES = 512  # diskstats counts in these whatever the device's own block size
MAX_PSI_CPU_PERCENT = 20.0
MAX_PSI_IO_FULL_PERCENT = 20.0
MAX_FOREIGN_SHARE = 0.05
QUIET_BYTES_PER_S = 64 << 10
"""What logging alone may write: tolerated even with a single slow disk."""
MAX_DIRTY_BYTES = 64 << 20

BACKUP_COMMANDS = frozenset(
    {
        *("restic", "borg", "duplicity", "rsnapshot", "xfsdump", "bpbkar", "bpbkar32", "dsmc", "rdiff-backup"),
        *("xfs_scrub", "e2scrub", "fstrim", "xfs_fsr", "btrfs-scrub"),
    }
)
"""Commands that only exist while a backup or a maintenance pass runs; daemons that idle are left out."""


class CovariateCounters(msgspec.Struct, frozen=True):
    """Running totals at one moment; ``None`` where the host does not have them. CPU in clock ticks of all CPUs,
    pressure stalls in microseconds, ``at_seconds`` on the session's clock."""

    at_seconds: float
    disk_bytes: int | None = None
    cpu_total_ticks: int | None = None
    cpu_busy_ticks: int | None = None
    cpu_steal_ticks: int | None = None
    psi_cpu_some_us: int | None = None
    psi_io_full_us: int | None = None


class Covariates(msgspec.Struct, frozen=True):
    """What else happened during one run; shares are 0 to 1 (``foreign_share`` may exceed 1), ``None`` is unknown.

    ``foreign_share`` is the I/O of others on the target's device over fio's own; ``foreign_cpu_share`` the busy
    CPU time that was not fio's, over all CPUs.
    """

    seconds: float
    foreign_bytes: int | None = None
    foreign_share: float | None = None
    foreign_cpu_share: float | None = None
    steal_share: float | None = None
    psi_cpu_share: float | None = None
    psi_io_full_share: float | None = None


class Lamp(msgspec.Struct, frozen=True):
    """One covariate that can spoil a pair: by how much it may exceed what is usual."""

    field: str
    excess: float


LAMPS: Mapping[str, Lamp] = {
    "disk": Lamp("foreign_share", MAX_FOREIGN_SHARE),
    "cpu": Lamp("foreign_cpu_share", 0.10),
    "steal": Lamp("steal_share", 0.05),
    "cpu-pressure": Lamp("psi_cpu_share", MAX_PSI_CPU_PERCENT / 100),
    "io-pressure": Lamp("psi_io_full_share", MAX_PSI_IO_FULL_PERCENT / 100),
}
"""Contamination lamps by the name under which progress shows them."""

_ZERO_BASELINE = ("foreign_share", "steal_share")
"""Expected to be nothing at all, so judged even before there is a median; the others include fio's own load."""


_COUNT = lazy_regex(r"[0-9]{1,20}")
_NUMBER = lazy_regex(r"[0-9]{1,20}(?:\.[0-9]{1,20})?")


def parse_pressure(text: str) -> dict[str, dict[str, float]]:
    """``{"some": {"avg10": …, "total": …}, "full": …}`` of a PSI file."""
    found: dict[str, dict[str, float]] = {}
    for kind, *pairs in filter(None, map(str.split, text.splitlines())):
        values = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        found[kind] = {key: float(value) for key, value in values.items() if _NUMBER.fullmatch(value)}
    return found


def parse_disk_bytes(text: str, device: str) -> int | None:
    """Bytes read and written by a device since boot; ``None`` where diskstats does not list it whole."""
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 10 and fields[2] == device and all(map(_COUNT.fullmatch, (fields[5], fields[9]))):
            return (int(fields[5]) + int(fields[9])) * SECTOR_BYTES
    return None


def parse_cpu_ticks(text: str) -> tuple[int, int, int] | None:
    """Total, busy and stolen ticks of all CPUs together. Guest time is contained in user time already."""
    fields = text.split("\n", 1)[0].split()
    if len(fields) < 9 or fields[0] != "cpu" or not all(map(_COUNT.fullmatch, fields[1:9])):
        return None
    user, nice, system, idle, iowait, irq, softirq, steal = (int(field) for field in fields[1:9])
    busy = user + nice + system + irq + softirq
    return busy + idle + iowait + steal, busy, steal


def is_resyncing(mdstat: str) -> bool:
    """Whether any md array resyncs, recovers, reshapes or is checked. A delayed or pending one counts too."""
    return re.search(r"\b(resync|recovery|reshape|check)\s*=", mdstat) is not None


def _read_pressure(host: Host, what: str, kind: str, field: str) -> float | None:
    text = host.read(f"/proc/pressure/{what}")
    return None if isinstance(text, Missing) else parse_pressure(text).get(kind, {}).get(field)


def _int_or_none(value: float | None) -> int | None:
    return None if value is None else int(value)


def read_counters(host: Host, device: str | None, at_seconds: float) -> CovariateCounters:
    """The totals now. ``device`` is the kernel name of the target's block device."""
    disk = host.read("/proc/diskstats")
    stat = host.read("/proc/stat")
    ticks = None if isinstance(stat, Missing) else parse_cpu_ticks(stat)
    total, busy, steal = ticks or (None, None, None)
    return CovariateCounters(
        at_seconds=at_seconds,
        disk_bytes=None if isinstance(disk, Missing) or device is None else parse_disk_bytes(disk, device),
        cpu_total_ticks=total,
        cpu_busy_ticks=busy,
        cpu_steal_ticks=steal,
        psi_cpu_some_us=_int_or_none(_read_pressure(host, "cpu", "some", "total")),
        psi_io_full_us=_int_or_none(_read_pressure(host, "io", "full", "total")),
    )


def _counter_delta(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)


def _share_of(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def covariates_between(before: CovariateCounters, after: CovariateCounters, figures: RunFigures | None) -> Covariates:
    """What happened between two moments, apart from fio's own work (``None``: fio did not run)."""
    seconds = after.at_seconds - before.at_seconds
    own_bytes = figures.read_bytes + figures.written_bytes if figures else 0
    disk = _counter_delta(before.disk_bytes, after.disk_bytes)
    foreign = None if disk is None else max(0, disk - own_bytes)
    ticks = _counter_delta(before.cpu_total_ticks, after.cpu_total_ticks)
    busy = _counter_delta(before.cpu_busy_ticks, after.cpu_busy_ticks)
    own_ticks = (figures.cpu_seconds if figures else 0.0) * os.sysconf("SC_CLK_TCK")
    window_us = seconds * 1e6
    return Covariates(
        seconds=seconds,
        foreign_bytes=foreign,
        foreign_share=_share_of(foreign, own_bytes),
        foreign_cpu_share=_share_of(None if busy is None else max(0.0, busy - own_ticks), ticks),
        steal_share=_share_of(_counter_delta(before.cpu_steal_ticks, after.cpu_steal_ticks), ticks),
        psi_cpu_share=_share_of(_counter_delta(before.psi_cpu_some_us, after.psi_cpu_some_us), window_us),
        psi_io_full_share=_share_of(_counter_delta(before.psi_io_full_us, after.psi_io_full_us), window_us),
    )


def judge_group(group: Sequence[Covariates], history: Sequence[Sequence[Covariates]]) -> tuple[str, ...]:
    """Names of the lamps that a workload's runs of one pair (or round) light: added up, against the median of earlier
    ones.

    It knows no arms. A pair gets the same answer whichever arm was hit, so of the pairs that are left the coin alone
    decides the sign, however much of the time others are busy.
    """
    return tuple(name for name, lamp in LAMPS.items() if _is_lit(lamp, group, history))


def _is_lit(lamp: Lamp, group: Sequence[Covariates], history: Sequence[Sequence[Covariates]]) -> bool:
    value = _lamp_total(lamp, group)
    known = [total for earlier in history if (total := _lamp_total(lamp, earlier)) is not None]
    if value is None or not (known or lamp.field in _ZERO_BASELINE):
        return False
    return value > (median(known) if known else 0.0) + lamp.excess


def stand_out(groups: Sequence[Sequence[Covariates]]) -> list[bool]:
    """For each group of runs, whether more went on during it than during most: as `judge_group`, but with hindsight."""
    found = [False] * len(groups)
    for lamp in LAMPS.values():
        totals = [_lamp_total(lamp, group) for group in groups]
        known = [total for total in totals if total is not None]
        usual = median(known) if known else 0.0
        for number, total in enumerate(totals):
            found[number] |= total is not None and total > usual + lamp.excess
    return found


def _lamp_total(lamp: Lamp, group: Sequence[Covariates]) -> float | None:
    values: list[float | None] = [getattr(run, lamp.field) for run in group]
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


class CalmGate(msgspec.Struct, frozen=True):
    """Why the host is not calm enough (``busy``), and what could not be determined (``unknown``)."""

    busy: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def read_gate(host: Host) -> CalmGate:
    """The state of the host before a session: pressure (with the processes behind it), md resync, running backups."""
    busy: list[str] = []
    unknown: list[str] = []
    for what, kind, limit, name_users in (
        ("cpu", "some", MAX_PSI_CPU_PERCENT, name_cpu_users),
        ("io", "full", MAX_PSI_IO_FULL_PERCENT, name_storage_users),
    ):
        stalled = _read_pressure(host, what, kind, "avg10")
        if stalled is None:
            unknown.append(f"{what} pressure (/proc/pressure/{what} does not exist)")
        elif stalled >= limit:
            before = sample_processes(host)
            time.sleep(SAMPLE_SECONDS if before.processes else 0.0)
            users = name_users(before, sample_processes(host))
            reason = f"{what} pressure: {stalled:g} % of the last 10 s ({kind}), limit {limit:g} %"
            busy.append(f"{reason} ({users})" if users else reason)
    mdstat = host.read("/proc/mdstat")
    if not isinstance(mdstat, Missing) and is_resyncing(mdstat):
        busy.append("an md array is being resynced or checked (/proc/mdstat)")
    pids = (name for name in host.names("/proc") if is_count(name))
    texts = (host.read(f"/proc/{pid}/comm") for pid in pids)
    running = sorted(
        {name for name in [text for text in texts if not isinstance(text, Missing)] if name in BACKUP_COMMANDS}
    )
    busy.extend(f"{name} is running" for name in running)
    return CalmGate(tuple(busy), tuple(unknown))


def foreign_io(idle: Covariates, expected_bytes_per_s: float) -> str | None:
    """The reason to refuse where others already move more than 5 % of what fio is expected to move."""
    if idle.foreign_bytes is None or idle.seconds <= 0:
        return None
    rate = idle.foreign_bytes / idle.seconds
    if rate <= max(MAX_FOREIGN_SHARE * expected_bytes_per_s, QUIET_BYTES_PER_S):
        return None
    share = rate / expected_bytes_per_s if expected_bytes_per_s else 1.0
    return f"others already move {rate / 1e6:.1f} MB/s on the device, {share:.0%} of what the workload moves"


def wait_for_writeback(host: Host, sleep: Callable[[float], None], seconds: float = 10.0) -> bool:
    """Wait until little is dirty or under writeback, at most that long. Whether it came to that."""
    for _ in range(max(1, round(seconds / 0.5))):
        text = host.read("/proc/meminfo")
        if isinstance(text, Missing) or dirty_bytes(text) <= MAX_DIRTY_BYTES:
            return True
        sleep(0.5)
    return False


def dirty_bytes(meminfo: str) -> int:
    """Dirty and Writeback of /proc/meminfo together."""
    found = re.findall(r"^(?:Dirty|Writeback):\s+([0-9]+) kB", meminfo, re.MULTILINE)
    return sum(int(kib) for kib in found) * 1024


def memory_bytes(host: Host) -> int | None:
    """MemTotal of the host."""
    found = re.search(r"^MemTotal:\s+([0-9]+) kB", host.read_or_empty("/proc/meminfo"), re.MULTILINE)
    return int(found[1]) * 1024 if found else None
