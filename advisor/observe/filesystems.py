"""How full file systems are (kind ``space``, by mount point), pools of ZFS (``zfs``) and its cache (``arc``).

Source: statvfs(3), df(1); OpenZFS module/zfs/spa_stats.c (/proc/spl/kstat/zfs/POOL/state) and arc.c (arcstats).
"""

from __future__ import annotations

from advisor.facts.mounts import read_mounts
from advisor.facts.rare_subjects import ZFS_POOLS
from advisor.facts.space import read_spaces
from advisor.facts.zfs import ARC, parse_kstat, pool_names
from advisor.host import Host, Missing
from advisor.observe.sample import Reading

_ARC_COUNTERS = ("memory_throttle_count", "hits", "misses", "arc_no_grow")
_ARC_LEVELS = ("size", "c", "c_max")


def read_space(host: Host, reading: Reading) -> None:
    """File systems on devices of this host that may be written: one that is only read is as full as it was made."""
    reading.ask("space")
    mounts = read_mounts(host)
    found = read_spaces(host, mounts)
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
        reading.add("space", target, gauges=levels)


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
