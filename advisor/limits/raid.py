"""The arithmetic of arrays: what a device makes of the figures of its members.

Reads: every level spreads them over all working members, and a healthy array reads no parity: with parity spread over
the members (RAID 5, 6) all of them serve data, RAID 4 reads its data members only. Of a mirror each copy serves reads
by itself, those marked write-mostly none while another one is left. Writes in full stripes: RAID 0 writes N, RAID 10
N/2, RAID 5 N-1, RAID 6 N-2 members' worth. Small writes cost `Level.small_write` operations, and no more than there are
members: the rest of a stripe is read where that is less than the old data and parity. A stripe is as fast as its
slowest member. A journal takes every write, parity too (md's raid5-cache.rst); a cache may answer every read, and what
is written reaches the device behind it in the end. Sources: those of `advisor.facts.levels`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from advisor.facts.block_graph import BlockNode
from advisor.facts.levels import LEVELS, MIRRORS
from advisor.limits.figures import Figures, lowest, total

FILE_SYSTEM_SHARE = 0.01
"""What a file system takes for itself (Dell EMC, BeeGFS reference architecture)."""


def combine(node: BlockNode, leaf: Callable[[str], Figures], *, one_medium: bool = False) -> Figures:
    """The figures of a tree from those of its disks. Of a device whose level is not known, the sum of its members:
    more than that no arrangement gives. ``one_medium`` is for what lies behind all paths of a multipath device at
    once."""
    if not node.members:
        return leaf(node.device)
    by_relation: dict[str, list[Figures]] = {}
    for member in node.members:
        by_relation.setdefault(member.relation, []).append(combine(member, leaf, one_medium=one_medium))
    journals, caches, idle = (by_relation.pop(name, []) for name in ("journal", "cache", "write-mostly"))
    by_relation.pop("metadata", None)
    serving = [one for figures in by_relation.values() for one in figures]
    family = node.family or "linear"
    found = combined(family, serving or idle, missing=node.missing, copies=node.copies, one_medium=one_medium)
    if serving and idle:
        slowest = lowest((found, *idle))
        found = Figures(found.read_mb_per_s, slowest.write_mb_per_s, found.read_iops, slowest.write_iops)
    if caches:
        cache, reads = lowest(caches), total((found, *caches))
        is_passed = node.level == "writecache"
        writes = lowest((found, cache)) if is_passed else found
        found = Figures(reads.read_mb_per_s, writes.write_mb_per_s, reads.read_iops, writes.write_iops)
    if journals and LEVELS[family].parity:
        whole = len(serving) + node.missing
        data = max(whole - LEVELS[family].parity, 1)
        most = min(one.write_mb_per_s for one in journals) * data / whole
        found = msgspec.structs.replace(found, write_mb_per_s=min(found.write_mb_per_s, most))
    return found


def combined(
    family: str, members: Sequence[Figures], *, missing: int = 0, copies: float = 2, one_medium: bool = False
) -> Figures:
    """The figures of a device of these working members, ``missing`` more of which it lacks.

    ``family`` is one of `advisor.facts.levels.family_of`. ``copies`` is how often RAID 10 keeps each block.
    ``one_medium`` as in `combine`.
    """
    level, slowest, whole = LEVELS[family], lowest(members), len(members) + missing
    if level.relation in ("concatenation", "data") or (level.relation == "path" and not one_medium):
        # An upper bound, reached only where the load falls on all members.
        return total(members)
    if level.relation == "path":
        return slowest
    if family in MIRRORS:
        reads = total(members)
        return Figures(reads.read_mb_per_s, slowest.write_mb_per_s, reads.read_iops, slowest.write_iops)
    data = max(whole - level.parity, 1)
    written = data / (copies if level.relation == "copy" else 1)
    reading = min(len(members), data) if family == "raid4" else len(members)
    small = written if not level.parity else 0.5 if family == "raid4" else whole / min(whole, level.small_write)
    # What a missing member held is made of the others, of as many as carry data.
    random = reading if not level.parity else reading * whole / (len(members) + missing * data)
    return Figures(
        slowest.read_mb_per_s * reading,
        slowest.write_mb_per_s * written,
        slowest.read_iops * random,
        slowest.write_iops * small,
    )


def usable_bytes(size_bytes: int) -> int:
    """Of a device, what is left for files."""
    return round(size_bytes * (1 - FILE_SYSTEM_SHARE))
