"""RAID arithmetic: what an array makes of the figures of its members.

Reads: every level spreads them over all working members, and a healthy array reads no parity: with parity spread over
the members (RAID 5, 6) all of them serve data, RAID 4 reads its data members only. Writes in full stripes: RAID 0
writes N, RAID 10 N/2, RAID 5 N-1, RAID 6 N-2 members' worth.
Small writes cost 1 (RAID 0), 2 (RAID 1, 10), 4 (RAID 5) or 6 (RAID 6) operations of the members. A stripe is as
fast as its slowest member. Sources: md(4), lvmraid(7), and the textbook small-write penalties (Chen et al., RAID:
High-Performance, Reliable Secondary Storage, ACM Computing Surveys 26, 1994).
"""

from __future__ import annotations

from collections.abc import Sequence

from advisor.limits.figures import Figures, lowest, total

FILE_SYSTEM_SHARE = 0.01
"""What a file system takes for itself (Dell EMC, BeeGFS reference architecture)."""

_STRIPED = frozenset({"raid0", "striped"})
_ONE_AFTER_THE_OTHER = frozenset({"linear"})
_MIRRORS = frozenset({"raid1", "mirror"})
_PARITY = {"raid4": 1, "raid5": 1, "raid6": 2}
_PENALTY = {"raid5": 4, "raid6": 6}


def family_of(level: str | None) -> str | None:
    """``raid5`` for ``raid5_ls`` and the like; None for a level that has no arithmetic here."""
    if level is None:
        return None
    if level in _STRIPED | _ONE_AFTER_THE_OTHER | _MIRRORS or level == "multipath":
        return level
    return next((name for name in ("raid10", *_PARITY) if level == name or level.startswith(f"{name}_")), None)


def combined(
    family: str, members: Sequence[Figures], *, missing: int = 0, copies: float = 2, one_medium: bool = False
) -> Figures:
    """The figures of an array of these working members, ``missing`` more of which it lacks.

    ``family`` is one of `family_of`. ``copies`` is how often RAID 10 keeps each block. ``one_medium`` is for what lies
    behind all paths of a multipath device at once.
    """
    count, slowest = len(members), lowest(members)
    if family in _ONE_AFTER_THE_OTHER:
        # An upper bound, reached only where the load falls on all members.
        return total(members)
    if family == "multipath":
        return slowest if one_medium else total(members)
    if family in _STRIPED:
        return _multiply_figures(slowest, count, count, count, count)
    if family in _MIRRORS:
        return _multiply_figures(slowest, count, 1, count, 1)
    if family == "raid10":
        written = (count + missing) / copies
        return _multiply_figures(slowest, count, written, count, written)
    whole = count + missing
    data = max(whole - _PARITY[family], 1)
    reading = min(count, data) if family == "raid4" else count
    small = 0.5 if family == "raid4" else whole / _PENALTY[family]
    return _multiply_figures(slowest, reading, data, reading, small)


def _multiply_figures(one: Figures, read: float, write: float, read_iops: float, write_iops: float) -> Figures:
    return Figures(
        one.read_mb_per_s * read, one.write_mb_per_s * write, one.read_iops * read_iops, one.write_iops * write_iops
    )


def usable_bytes(size_bytes: int) -> int:
    """Of a device, what is left for files."""
    return round(size_bytes * (1 - FILE_SYSTEM_SHARE))
