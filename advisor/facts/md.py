"""An md array, apart from where it was read: its health, its geometry, its record."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from advisor.facts.array import Array, losses_left
from advisor.facts.block import natural
from advisor.facts.levels import PARITY_DISKS

DOING = {
    "recover": "recovering",
    "recovery": "recovering",
    "resync": "resyncing",
    "reshape": "reshaping",
    "check": "checking",
    "repair": "repairing",
}


class Device(msgspec.Struct, frozen=True):
    """A device of an array: its slot, None where it has none, and the kernel's words for its state."""

    name: str
    slot: int | None
    words: frozenset[str]


class Md(msgspec.Struct, frozen=True):
    """What is known of an array, from whichever source. During a reshape ``disks`` is what it will have."""

    name: str
    level: str | None
    at_rest: str | None
    """``clean``, ``active``, ``inactive`` …: the state apart from health and from work in progress."""
    disks: int | None = None
    missing: int | None = None
    contradicts: str | None = None
    """What its source says that cannot all be true of ``missing``."""
    chunk_bytes: int | None = None
    near_copies: int | None = None
    far_copies: int | None = None
    size_bytes: int | None = None
    action: str | None = None
    progress_percent: float | None = None
    devices: tuple[Device, ...] = ()
    detail: Mapping[str, str] = {}

    def having(self, word: str) -> tuple[str, ...]:
        return tuple(sorted((one.name for one in self.devices if word in one.words), key=natural))


def state_of(md: Md) -> str | None:
    """One word for the health and work of an array; see `Array`."""
    if md.at_rest in ("inactive", "failed", None):
        return md.at_rest
    left = losses(md)
    if md.missing and left is not None and left < 0:
        return "failed"
    doing = DOING.get(md.action or "")
    if md.missing or md.contradicts:
        return "recovering" if doing == "recovering" else "degraded"
    return doing or md.at_rest


def losses(md: Md) -> int | None:
    """How many more members it can lose, as `losses_left` has it."""
    serving = {one.slot for one in md.devices if one.slot is not None and "in_sync" in one.words}
    serving = serving or {slot for slot, letter in enumerate(md.detail.get("pattern", "")) if letter == "U"}
    return losses_left(
        md.level, md.disks, md.missing, serving=serving, near_copies=md.near_copies, far_copies=md.far_copies
    )


def data_disks(md: Md) -> int | None:
    """Members that carry data in one stripe; RAID 10 as the kernel advertises it (raid10.c, raid10_nr_stripes)."""
    if not md.disks or not md.chunk_bytes or md.level is None:
        return None
    if md.level == "raid0":
        return md.disks
    if md.level in PARITY_DISKS:
        return max(md.disks - PARITY_DISKS[md.level], 1)
    if md.level == "raid10" and md.near_copies:
        return md.disks // md.near_copies if md.disks % md.near_copies == 0 else md.disks
    return None


def to_array(
    md: Md,
    *,
    disks: tuple[str, ...],
    numa_nodes: tuple[int, ...],
    mountpoints: tuple[str, ...],
    queue: Mapping[str, str],
) -> Array:
    """The array's record; where it lies and what is mounted from it is for the caller to know."""
    marks = ("write_mostly", "replacement", "want_replacement", "blocked")
    detail = {**md.detail, **{word: " ".join(names) for word in marks if (names := md.having(word))}}
    if md.disks is not None:
        detail.setdefault("raid_disks", str(md.disks))
    return Array(
        name=md.name,
        manager="md",
        device=md.name,
        level=md.level,
        chunk_bytes=md.chunk_bytes,
        data_disks=data_disks(md),
        state=state_of(md),
        missing=md.missing,
        members=tuple(sorted((one.name for one in md.devices), key=natural)),
        spares=md.having("spare"),
        failed=md.having("faulty"),
        journal=md.having("journal"),
        numa_nodes=numa_nodes,
        size_bytes=md.size_bytes,
        progress_percent=md.progress_percent if md.action else None,
        mountpoints=mountpoints,
        detail=detail,
        disks=disks,
        queue=queue,
        expected=md.disks,
        survives=losses(md),
    )
