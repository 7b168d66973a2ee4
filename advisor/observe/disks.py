"""Counters of block devices: kind ``disk``.

Source: Linux Documentation/admin-guide/iostats.rst and block/stat.rst; /proc/diskstats has these columns after major,
minor and name, /sys/block/DEV/stat has them alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from advisor.facts.mounts import read_mounts
from advisor.facts.rare_subjects import ZFS_POOLS
from advisor.facts.space import KINDS, read_spaces
from advisor.facts.zfs import ARC, parse_kstat, pool_names
from advisor.host import Host, Missing
from advisor.observe.sample import Reading, parse_counts

_FIELDS = (
    *("reads", "reads_merged", "sectors_read", "read_ms", "writes", "writes_merged", "sectors_written", "write_ms"),
    *("busy_ms", "weighted_ms", "discards", "discards_merged", "sectors_discarded", "discard_ms"),
    *("flushes", "flush_ms"),
)
"""All columns but the ninth, which is a level: requests in flight. Discards came with 4.18, flushes with 5.5."""
_OF_PARTITION = ("reads", "sectors_read", "writes", "sectors_written")
"""What kernels before 2.6.25 count of a partition."""
_IN_FLIGHT = 8
_LEAST_WORDS = 11


class DiskCounts(NamedTuple):
    counters: Mapping[str, int]
    in_flight: int | None


def parse_diskstats(text: str) -> dict[str, DiskCounts]:
    """/proc/diskstats by the name in sysfs (``cciss!c0d0`` of cciss/c0d0), RAM disks left out; lines that are not whole
    are left out too."""
    found = {}
    for line in text.split("\n"):
        words = line.split()
        if len(words) > 3 and not words[2].startswith("ram") and (counts := _parse_columns(words[3:])) is not None:
            found[words[2].replace("/", "!")] = counts
    return found


def parse_stat(text: str) -> DiskCounts | None:
    """/sys/block/DEV/stat; None for what is no such text."""
    return _parse_columns(text.split())


def parse_inflight(text: str) -> tuple[int, int] | None:
    """/sys/block/DEV/inflight: reads and writes that were issued and are not completed."""
    words = text.split()
    counts = parse_counts(words) if len(words) == 2 else None
    return (counts[0], counts[1]) if counts else None


def _parse_columns(words: list[str]) -> DiskCounts | None:
    if len(words) == len(_OF_PARTITION):
        counts = parse_counts(words)
        return None if counts is None else DiskCounts(dict(zip(_OF_PARTITION, counts, strict=True)), None)
    if len(words) < _LEAST_WORDS:
        return None
    # Some kernels have printed fewer than no requests in flight: the other columns are good.
    in_flight = words.pop(_IN_FLIGHT)
    counts = parse_counts(words[: len(_FIELDS)])
    if counts is None:
        return None
    level = parse_counts([in_flight])
    return DiskCounts(dict(zip(_FIELDS, counts, strict=False)), level[0] if level else None)


def read_disks(host: Host, reading: Reading) -> None:
    """Every block device and partition; reads and writes in flight apart where there are any."""
    reading.ask("disk")
    text = host.read("/proc/diskstats")
    if isinstance(text, Missing):
        found = _read_each(host)
        if not found:
            reading.note_missing("disk", text)
    else:
        found = parse_diskstats(text)
        if text and not found:
            reading.note_missing("disk", "/proc/diskstats: no line that can be read")
    for name, disk in found.items():
        gauges: dict[str, float] = {}
        if disk.in_flight is not None:
            gauges["in_flight"] = disk.in_flight
            if disk.in_flight:
                inflight = host.read(f"/sys/block/{name}/inflight")
                both = None if isinstance(inflight, Missing) else parse_inflight(inflight)
                gauges |= {} if both is None else {"reads_in_flight": both[0], "writes_in_flight": both[1]}
        reading.add("disk", name, disk.counters, gauges)


def _read_each(host: Host) -> dict[str, DiskCounts]:
    """Where /proc/diskstats is hidden, as in some containers: whole disks by sysfs."""
    found = {}
    for name in host.names("/sys/block"):
        text = "" if re.match(r"ram[0-9]", name) else host.read(f"/sys/block/{name}/stat")
        counts = None if isinstance(text, Missing) else parse_stat(text)
        if counts is not None:
            found[name] = counts
    return found


# States and synchronisation of md arrays: kind ``array``. Source: Linux Documentation/admin-guide/md.rst.

_WORDS = {"array_state": "state", "sync_action": "sync_action"}
_LEVELS = {"degraded": "degraded", "sync_speed": "sync_kib_per_s", "mismatch_cnt": "mismatched_sectors"}


def parse_sync_completed(text: str) -> tuple[int, int] | None:
    """``sync_completed``: sectors done and all; None for ``none``, ``delayed`` and what is no progress."""
    counts = parse_counts(text.replace("/", " ").split()) if "/" in text else None
    return (counts[0], counts[1]) if counts and len(counts) == 2 else None


def read_arrays(host: Host, reading: Reading) -> None:
    reading.ask("array")
    for name in host.names("/sys/block"):
        if not re.match(r"md[0-9_]", name):
            continue
        texts = {file: host.read(f"/sys/block/{name}/md/{file}") for file in (*_WORDS, *_LEVELS, "sync_completed")}
        known = {file: text for file, text in texts.items() if not isinstance(text, Missing) and text}
        counts = {field: parse_counts([known[file]]) for file, field in _LEVELS.items() if file in known}
        levels: dict[str, float] = {field: count[0] for field, count in counts.items() if count}
        progress = parse_sync_completed(known.get("sync_completed", ""))
        if progress:
            levels |= {"sync_done_sectors": progress[0], "sync_all_sectors": progress[1]}
        words = {field: known[file][:40] for file, field in _WORDS.items() if file in known}
        reading.add("array", name, gauges=levels, words=words)


# How full file systems are (kind ``space``, by mount point), pools of ZFS (``zfs``) and its cache (``arc``).
#
# Source: statvfs(3), df(1); OpenZFS module/zfs/spa_stats.c (/proc/spl/kstat/zfs/POOL/state) and arc.c (arcstats).

_ARC_COUNTERS = ("memory_throttle_count", "hits", "misses", "arc_no_grow")
_ARC_LEVELS = ("size", "c", "c_max")


def read_space(host: Host, reading: Reading) -> None:
    """File systems on devices of this host or in its memory that may be written: one that is only read is as full as it
    was made."""
    reading.ask("space")
    mounts = read_mounts(host)
    found = read_spaces(host, mounts, KINDS | {"tmpfs"})
    if isinstance(found, Missing):
        reading.note_missing("space", found)
        return
    read_only = (
        {one.target for one in mounts if "ro" in one.options.split(",")} if not isinstance(mounts, Missing) else {}
    )
    for target, space in found.items():
        if target in read_only:
            continue
        levels = {"used_bytes": space.used_bytes, "available_bytes": space.available_bytes}
        levels |= {"inodes": space.inodes, "free_inodes": space.free_inodes}
        reading.add("space", target, gauges=levels, words={"kind": space.kind})


def read_zfs(host: Host, reading: Reading) -> None:
    """States of pools, and how often the cache made writers wait for memory."""
    reading.ask("arc")
    for name in pool_names(host):
        state = host.read(f"{ZFS_POOLS}/{name}/state")
        if not isinstance(state, Missing):
            reading.add("zfs", name, words={"state": state[:40]})
    text = host.read(ARC)
    counts = {} if isinstance(text, Missing) else parse_kstat(text)
    reading.add(
        "arc",
        "host",
        {name: counts[name] for name in _ARC_COUNTERS if name in counts},
        {name: counts[name] for name in _ARC_LEVELS if name in counts},
    )
