"""Counters of block devices: kind ``disk``.

Source: Linux Documentation/admin-guide/iostats.rst and block/stat.rst; /proc/diskstats has these columns after major,
minor and name, /sys/block/DEV/stat has them alone.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

from advisor.facts.block.mounts import KINDS, read_mounts, read_spaces
from advisor.facts.block.stacked import ARC, parse_kstat, pool_names
from advisor.facts.unknown import ZFS_POOLS
from advisor.host import Host, Missing
from advisor.host.trace_instance import read_log_page
from advisor.observe.sample import LARGEST, Reading, parse_counts

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


# What NVMe drives say about their own health, by log page 0x02: kind ``smart``, by controller.

DRIVE_LOG_PAGE = 0x02
DRIVE_LOG_BYTES = 512
_HEAD = struct.Struct("<BHBBB")
_MEDIA_ERRORS = slice(160, 176)
_TIMES_AT = 192
_THROTTLE_AT = 216
_KELVIN = 273

ReadLog = Callable[[str, int, int], bytes | Missing]


def parse_smart_log(data: bytes) -> tuple[dict[str, int], dict[str, float]] | None:
    """Counters and levels of log page 0x02; None for a page that is too short or all zero.

    ``critical_warning`` is its bits, temperatures are in °C; the times above the drive's warning and critical
    temperature are in minutes, those of its thermal management (light and heavy) in seconds.
    """
    if len(data) < DRIVE_LOG_BYTES or not any(data[:DRIVE_LOG_BYTES]):
        return None
    warning, kelvin, spare, threshold, used = _HEAD.unpack_from(data)
    warm, hot = struct.unpack_from("<II", data, _TIMES_AT)
    light, heavy, light_s, heavy_s = struct.unpack_from("<IIII", data, _THROTTLE_AT)
    counters = {
        "media_errors": min(int.from_bytes(data[_MEDIA_ERRORS], "little"), LARGEST),
        "warning_temperature_minutes": warm,
        "critical_temperature_minutes": hot,
        "light_throttles": light,
        "heavy_throttles": heavy,
        "light_throttled_s": light_s,
        "heavy_throttled_s": heavy_s,
    }
    levels: dict[str, float] = {
        "critical_warning": warning,
        "spare_percent": spare,
        "spare_threshold_percent": threshold,
    }
    levels |= {"used_percent": used} | ({"temperature_celsius": kelvin - _KELVIN} if kelvin else {})
    return counters, levels


def read_drives(host: Host, reading: Reading, read_log: ReadLog = read_log_page) -> None:
    """Local NVMe controllers of the running machine; as root. A controller over a network has no drive of its own."""
    reading.ask("smart")
    for name in host.names("/sys/class/nvme"):
        if not re.fullmatch(r"nvme[0-9]+", name) or host.read(f"/sys/class/nvme/{name}/transport") in _FABRICS:
            continue
        if not host.is_live:
            reading.note_missing("smart", "log pages are read on the running host alone")
            return
        data = read_log(name, DRIVE_LOG_PAGE, DRIVE_LOG_BYTES)
        found = None if isinstance(data, Missing) else parse_smart_log(data)
        if found is not None:
            reading.add("smart", name, *found)
        elif isinstance(data, Missing) and not host.is_root:
            reading.note_missing("smart", f"{data.why}; root reads log pages")
            return
        elif isinstance(data, Missing):
            reading.note_missing(f"smart {name}", data)
        else:
            reading.note_missing(f"smart {name}", "no health log")


_FABRICS = frozenset({"tcp", "rdma", "fc", "loop"})


# What a cloud says about its own limits: kinds ``ebs`` (volumes on Nitro) and ``allowance`` (ENA links).

VOLUME_LOG_PAGE = 0xD0
VOLUME_LOG_BYTES = 4096
MAGIC = 0x3C23B510
_VOLUME_HEAD = struct.Struct("<II11Q")
_VOLUME_FIELDS = (
    *("reads", "writes", "read_bytes", "write_bytes", "read_us", "write_us"),
    *("volume_iops_us", "volume_throughput_us", "instance_iops_us", "instance_throughput_us"),
)
_MODEL = "Amazon Elastic Block Store"
_ALLOWANCES = re.compile(r"^[ \t]*([a-z_]+_allowance_exceeded): ([0-9]{1,20})$", re.MULTILINE | re.ASCII)


def parse_ebs_log(data: bytes) -> tuple[dict[str, int], int] | None:
    """Counters of log page 0xD0 (times in microseconds) and the volume's queue; None for another page."""
    if len(data) < _VOLUME_HEAD.size:
        return None
    magic, _, *values = _VOLUME_HEAD.unpack_from(data)
    return (dict(zip(_VOLUME_FIELDS, values[:-1], strict=True)), values[-1]) if magic == MAGIC else None


def parse_allowances(text: str) -> dict[str, int]:
    """``ethtool -S``: how many packets each allowance of the instance held up (bw_in, bw_out, pps, conntrack …)."""
    return {name: int(count) for name, count in _ALLOWANCES.findall(text) if int(count) <= LARGEST}


def read_volumes(host: Host, reading: Reading, read_log: ReadLog = read_log_page) -> None:
    """EBS volumes of the running machine by their disk's name; as root."""
    reading.ask("ebs")
    for name in host.names("/sys/block"):
        controller = re.fullmatch(r"(nvme[0-9]+)n[0-9]+", name)
        model = host.read(f"/sys/block/{name}/device/model") if controller else ""
        if controller is None or isinstance(model, Missing) or model.strip() != _MODEL:
            continue
        if not host.is_live:
            reading.note_missing(f"ebs {name}", "log pages are read on the running host alone")
            continue
        data = read_log(controller[1], VOLUME_LOG_PAGE, VOLUME_LOG_BYTES)
        found = None if isinstance(data, Missing) else parse_ebs_log(data)
        if found is None:
            why = data.why if isinstance(data, Missing) else "no statistics of an EBS volume"
            reading.note_missing(f"ebs {name}", f"{why}; root reads them on Nitro instances")
        else:
            reading.add("ebs", name, found[0], {"queue": found[1]})


def read_allowances(host: Host, reading: Reading) -> None:
    """Links of the driver ``ena``."""
    reading.ask("allowance")
    for name in host.names("/sys/class/net"):
        driver = host.readlink(f"/sys/class/net/{name}/device/driver")
        if isinstance(driver, Missing) or driver.rpartition("/")[2] != "ena":
            continue
        done = host.run(("ethtool", "-S", name))
        if isinstance(done, Missing) or not done.ok:
            why = done.why if isinstance(done, Missing) else f"ethtool: {done.stderr.strip()[:200]}"
            reading.note_missing(f"allowance {name}", why)
        else:
            reading.add("allowance", name, parse_allowances(done.stdout))
