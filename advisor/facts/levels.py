"""How members make a device, one row a level: what each member is to it, and what is parity.

Sources: md(4), lvmraid(7), Linux Documentation/admin-guide/device-mapper, and the textbook small-write penalties (Chen
et al., RAID: High-Performance, Reliable Secondary Storage, ACM Computing Surveys 26, 1994).
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

Relation = Literal[
    "stripe", "copy", "parity", "concatenation", "path", "data", "cache", "journal", "metadata", "write-mostly"
]
"""What a member is to the device that it belongs to. ``data`` is the one member that holds all of it: below a thin
volume, encryption, a snapshot, a file."""


BESIDE: frozenset[Relation] = frozenset({"cache", "journal", "metadata", "write-mostly"})
"""Members that are named by what they are: those that do not hold a part of the data, or are not read."""


class Level(msgspec.Struct, frozen=True):
    """``parity`` is how many members' worth of a stripe is parity, ``small_write`` how many operations of members a
    small write costs."""

    relation: Relation
    parity: int = 0
    small_write: int = 1


_WHOLE = Level("data")
LEVELS = {
    "raid0": Level("stripe"),
    "striped": Level("stripe"),
    "raid10": Level("copy", small_write=2),
    "raid1": Level("copy", small_write=2),
    "mirror": Level("copy", small_write=2),
    "raid4": Level("parity", 1, 4),
    "raid5": Level("parity", 1, 4),
    "raid6": Level("parity", 2, 6),
    "linear": Level("concatenation"),
    "multipath": Level("path"),
    **dict.fromkeys(("thin", "thin-pool", "cache", "writecache", "bcache", "snapshot", "snapshot-origin"), _WHOLE),
    **dict.fromkeys(("vdo", "integrity", "crypt", "file", "replica", "zvol"), _WHOLE),
}
STRIPED = frozenset({"raid0", "raid4", "raid5", "raid6", "raid10", "striped"})
PARITY_DISKS = {level: row.parity for level, row in LEVELS.items() if row.parity}
MIRRORS = frozenset({"raid1", "mirror"})


def family_of(level: str | None) -> str | None:
    """The row of a level: ``raid5`` for ``raid5_ls`` and the like; None for one that has no arithmetic here."""
    name = re.sub(r"^(raid[0-9]+)_.*", r"\1", level or "")
    return name if name in LEVELS else None
