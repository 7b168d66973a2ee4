"""How much each path of a multipath map carries: the disks' own counters (kernel: Documentation/block/stat.rst).

Since each path was added, or over an interval. Equal load per path is the test of the iSCSI article.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

import msgspec

from advisor.facts.array import Array
from advisor.facts.block import SECTOR_BYTES
from advisor.host import Host, is_count


class PathLoad(msgspec.Struct, frozen=True):
    """A priority group of a map. ``requests`` and ``bytes_moved`` count by path (`Disk.name`); ``seconds`` is the
    interval, None where the counts run since each path was added."""

    array: str
    group: int
    requests: Mapping[str, int]
    bytes_moved: Mapping[str, int]
    seconds: float | None = None


def read_path_load(host: Host, arrays: Iterable[Array]) -> tuple[PathLoad, ...]:
    """Groups of several paths whose counters could all be read. A group without all of its counters is left out."""
    found = (_of_group(host, array, at) for array in arrays for at in range(len(array.path_groups)))
    return tuple(one for one in found if one is not None)


def over_interval(
    host: Host, arrays: tuple[Array, ...], seconds: float, sleep: Callable[[float], None] = time.sleep
) -> tuple[PathLoad, ...]:
    """The same over ``seconds``: what the counters rose by. A path whose counters began again is left out whole."""
    before, start = read_path_load(host, arrays), time.monotonic()
    sleep(seconds)
    after, took = read_path_load(host, arrays), time.monotonic() - start
    earlier = {(one.array, one.group): one for one in before}
    pairs = ((earlier.get((one.array, one.group)), one) for one in after)
    found = (_rate_between(old, new, round(max(took, seconds), 3)) for old, new in pairs if old is not None)
    return tuple(one for one in found if one is not None)


def _of_group(host: Host, array: Array, at: int) -> PathLoad | None:
    paths = [path for path in array.path_groups[at].paths if path not in array.failed]
    counts = {path: _read_counts(host, path) for path in paths}
    known = {path: count for path, count in counts.items() if count is not None}
    if len(known) < 2 or len(known) < len(counts):
        return None
    return PathLoad(
        array.name,
        at,
        {path: requests for path, (requests, _) in known.items()},
        {path: sectors * SECTOR_BYTES for path, (_, sectors) in known.items()},
    )


def _read_counts(host: Host, disk: str) -> tuple[int, int] | None:
    """Requests and sectors, read and written together; None where they cannot be read."""
    words = host.read_or_empty(f"/sys/block/{disk}/stat").split()
    if len(words) < 11 or not all(is_count(word) and len(word) < 20 for word in words[:11]):
        return None
    return int(words[0]) + int(words[4]), int(words[2]) + int(words[6])


def _rate_between(old: PathLoad, new: PathLoad, seconds: float) -> PathLoad | None:
    if old.requests.keys() != new.requests.keys():
        return None
    requests = {path: count - old.requests[path] for path, count in new.requests.items()}
    moved = {path: count - old.bytes_moved[path] for path, count in new.bytes_moved.items()}
    if min(*requests.values(), *moved.values()) < 0:
        return None
    return PathLoad(new.array, new.group, requests, moved, seconds)
