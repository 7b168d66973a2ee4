"""How long requests wait for a remote path that is lost, against what stands behind it: one row a transport."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from advisor.facts.host_facts import Facts

FOR_EVER = 1 << 32


class Wait(NamedTuple):
    """Seconds: at most ``latest`` where another path can take over, at least ``earliest`` where nothing can."""

    latest: int
    earliest: int


WAITS = {"iscsi": Wait(30, 60), "fc": Wait(10, 30), "nvme": Wait(30, 60)}


def fault_finder(facts: Facts) -> Callable[[str, Iterable[str], int], Literal["late", "early"] | None]:
    """What judges a transport's disks that share a path, and after how many seconds their requests fail."""
    maps = {name: one for one in facts.arrays if one.manager == "dm-multipath" for name in one.members}
    mapped = frozenset(facts.iscsi.multipath_disks if facts.iscsi else ())

    def behind(disk: str) -> Literal["path", "queue", "nothing"] | None:
        # A map of one path hands its requests to no other; it queues them, or fails them with its path. None where
        # its table could not be read.
        over = maps.get(disk)
        if over is None:
            return "path" if disk in mapped else "nothing"
        if len(over.members) > 1:
            return "path"
        if not over.detail:
            return None
        return "queue" if "queue_if_no_path" in over.detail.get("features", "") else "nothing"

    def fault(transport: str, disks: Iterable[str], seconds: int) -> Literal["late", "early"] | None:
        found = {behind(name) for name in disks}
        if "path" in found:
            return "late" if seconds > WAITS[transport].latest else None
        return "early" if "nothing" in found and seconds < WAITS[transport].earliest else None

    return fault
