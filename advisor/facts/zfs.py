"""Pools of ZFS: their state by the module's statistics, how full they are by ``zpool``.

Source: OpenZFS module/zfs/spa_stats.c and arc.c below /proc/spl/kstat/zfs; zpool-list(8), -H and -p.
"""

from __future__ import annotations

import msgspec

from advisor.facts.printable import printable
from advisor.facts.rare_subjects import ZFS_POOLS
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, is_count

ARC = f"{ZFS_POOLS}/arcstats"
ZPOOL = ("zpool", "list", "-H", "-p", "-o", "name,health,capacity")
_MAX_POOLS = 256
_LARGEST = (1 << 64) - 1


class ZfsPool(msgspec.Struct, frozen=True):
    """A pool that is imported; ``state`` is ONLINE, DEGRADED, FAULTED, SUSPENDED …, ``used_percent`` of its space."""

    name: str
    state: str | None
    used_percent: int | None


def parse_kstat(text: str) -> dict[str, int]:
    """Named statistics of a kstat file: a name, a type and a value a line."""
    rows = (line.split() for line in text.split("\n"))
    return {row[0]: int(row[2]) for row in rows if len(row) == 3 and is_count(row[2]) and int(row[2]) <= _LARGEST}


def parse_zpool_list(text: str) -> tuple[ZfsPool, ...]:
    """Pools as `ZPOOL` lists them; a capacity that is no number of per cent is None."""
    found = []
    for line in text.split("\n")[:_MAX_POOLS]:
        words = line.split("\t")
        if len(words) == 3 and words[0]:
            share = int(words[2]) if is_count(words[2]) and len(words[2]) < 4 else None
            found.append(ZfsPool(printable(words[0][:256]), printable(words[1][:40]) or None, share))
    return tuple(found)


def pool_names(host: Host) -> tuple[str, ...]:
    """The pools that have statistics of their own; none where ZFS is not loaded."""
    return tuple(name for name in host.names(ZFS_POOLS)[: _MAX_POOLS * 4] if host.exists(f"{ZFS_POOLS}/{name}/state"))


def read_zfs_pools(host: Host, unknown: Unknowns) -> tuple[ZfsPool, ...]:
    """Imported pools; without ``zpool`` their state alone."""
    names = pool_names(host)
    if not names:
        return ()
    done = host.run(ZPOOL)
    if isinstance(done, Missing) or not done.ok:
        unknown.note("zfs.used_percent", done.why if isinstance(done, Missing) else f"zpool returned {done.rc}")
    listed = {} if isinstance(done, Missing) else {one.name: one for one in parse_zpool_list(done.stdout)}
    found = []
    for name in names:
        state = host.read(f"{ZFS_POOLS}/{name}/state")
        known = listed.get(printable(name), ZfsPool(printable(name), None, None))
        if not isinstance(state, Missing) and state.strip():
            known = msgspec.structs.replace(known, state=printable(state.strip()[:40]))
        found.append(known)
    return tuple(found)
