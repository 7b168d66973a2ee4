"""Counters and levels of memory: kinds ``vm`` (/proc/vmstat), ``memory`` (/proc/meminfo, in bytes), ``node``.

Source: proc_vmstat(5); proc_meminfo(5); Linux Documentation/admin-guide/numastat.rst; mm/vmstat.c.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping

from advisor.host import Host, Missing
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex
from advisor.observe.sample import Reading, parse_counts, parse_named_counts

_COUNTERS = lazy_regex(
    r"oom_kill|pswpin|pswpout|pgpgin|pgpgout|pgmajfault|numa_.*|pgmigrate_\w+|compact_(?:stall|fail|success)|allocstall.*"
    r"|pgscan_(?:direct|kswapd|khugepaged|direct_throttle).*|pgsteal_(?:direct|kswapd).*|workingset_(?:refault|activate).*"
    r"|nr_dirtied|nr_written|nr_throttled_written|nr_vmscan_\w+|thp_fault_(?:alloc|fallback)|thp_split_p\w+|kswapd_\w+"
)
_LEVELS = lazy_regex(r"nr_(?:dirty|writeback|dirty_threshold|dirty_background_threshold|unstable|free_pages)")
_ZONES = ("dma", "dma32", "normal", "high", "movable", "device")
_MEMORY = frozenset(
    {
        *("MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "SwapTotal", "SwapFree", "Dirty", "Writeback"),
        *("Slab", "SReclaimable", "Committed_AS", "CommitLimit", "HardwareCorrupted", "AnonPages", "Shmem"),
    }
)
_KIB_LINE = re.compile(r"^(\w+): +([0-9]{1,18}) kB$", re.MULTILINE | re.ASCII)


def parse_vmstat(text: str) -> tuple[dict[str, int], dict[str, int]]:
    """Of /proc/vmstat the counters of reclaim, swap, NUMA and out of memory, and the levels of dirty pages.

    What kernels before 4.8 count by zone (``allocstall_normal``, ``pgscan_direct_dma``) is added up under the name
    without the zone, as later ones print it.
    """
    counters: dict[str, int] = {}
    levels: dict[str, int] = {}
    for name, value in parse_named_counts(text).items():
        if _LEVELS.fullmatch(name):
            levels[name] = value
        elif _COUNTERS.fullmatch(name):
            stem, _, zone = name.rpartition("_")
            known = stem if zone in _ZONES else name
            counters[known] = counters.get(known, 0) + value
    return counters, levels


def parse_meminfo(text: str) -> dict[str, int]:
    """Levels of /proc/meminfo in bytes, by the kernel's names."""
    return {name: int(kib) * 1024 for name, kib in _KIB_LINE.findall(text) if name in _MEMORY}


def read_memory(host: Host, reading: Reading) -> None:
    reading.ask("vm")
    reading.add("vm", "host", *parse_vmstat(reading.read_file(host, "/proc/vmstat", "vm")))
    reading.add("memory", "host", gauges=parse_meminfo(reading.read_file(host, "/proc/meminfo", "memory")))


def read_nodes(host: Host, reading: Reading) -> None:
    """Allocations of each NUMA node: hit, miss, foreign, local and other."""
    reading.ask("node")
    top = "/sys/devices/system/node"
    for name in host.names(top):
        if name.startswith("node") and is_count(name[4:]):
            text = host.read(f"{top}/{name}/numastat")
            counters: Mapping[str, int] = {} if isinstance(text, Missing) else parse_named_counts(text)
            reading.add("node", name[4:], counters)


# Pressure stall information: kind ``pressure``, names ``cpu``, ``io``, ``memory`` and ``irq``.
#
# Source: Linux Documentation/accounting/psi.rst. Kernels before 4.20 have none; others may have it switched off.

_RESOURCES = ("cpu", "io", "memory")


def parse_pressure(text: str) -> dict[str, int]:
    """Microseconds for which some (``some_us``) or all (``full_us``) tasks that are not idle waited."""
    found = {}
    for line in text.split("\n"):
        kind, _, rest = line.partition(" ")
        count = parse_counts([rest.rpartition("total=")[2]]) if kind in ("some", "full") and "total=" in rest else None
        if count:
            found[f"{kind}_us"] = count[0]
    return found


def read_pressure(host: Host, reading: Reading) -> None:
    reading.ask("pressure")
    names = host.names("/proc/pressure")
    for name in names or _RESOURCES:
        text = host.read(f"/proc/pressure/{name}")
        if not isinstance(text, Missing):
            reading.add("pressure", name, parse_pressure(text))
        elif text.why == os.strerror(errno.EOPNOTSUPP):
            reading.note_missing("pressure", "switched off in this kernel; psi=1 on its command line switches it on")
        else:
            reading.note_missing("pressure", text)
