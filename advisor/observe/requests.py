"""Requests of block devices, each with its time, from the events of a private tracing instance.

A request begins where it is inserted into the scheduler's queue, or issued where there is none, and ends where it is
completed. Merged requests are one, of the size with which they were completed. Source: the kernel's
include/trace/events/block.h, Documentation/trace/ftrace.rst.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from advisor.observe.trace_pages import PageLayout, TraceEvent, decode_pages

SECTOR_BYTES = 512
INSERT, ISSUE, COMPLETE = EVENTS = ("block/block_rq_insert", "block/block_rq_issue", "block/block_rq_complete")
_MINOR_BITS = 20


class BlockRequest(NamedTuple):
    """A request that was completed: when it began, how long it took, who asked (0 where that is not known)."""

    at_seconds: float
    seconds: float
    pid: int
    is_write: bool
    sector: int
    size_bytes: int

    @property
    def end_seconds(self) -> float:
        return self.at_seconds + self.seconds


class DeviceRequests:
    """What one device did: its requests in the order of completion, and what is no read or write."""

    def __init__(self) -> None:
        self.requests: list[BlockRequest] = []
        self.flushes: list[tuple[float, float]] = []
        """When each flush began and ended."""
        self.discards = 0
        self.durable_writes = 0
        """Writes that are on the medium when they are completed (FUA)."""
        self.unmatched = 0
        """Completions of which no beginning was seen, but for those that were in flight at the start."""


class _Operation(NamedTuple):
    """What the kernel's letters mean: the kind (the first letter is F where a flush goes before it), and FUA."""

    kind: str
    is_durable: bool


def _read_operation(letters: bytes) -> _Operation:
    text = letters.partition(b"\0")[0].decode("ascii", "replace")
    kind = text[1] if text[:1] == "F" and len(text) > 1 else text[:1]
    return _Operation(kind, text.find("F", 1) > 0)


class RequestMatcher:
    """Makes requests of the pages of all CPUs, as they are read. ``names`` are the events by their numbers."""

    def __init__(self, layout: PageLayout, names: Mapping[int, str]) -> None:
        self.devices: dict[str, DeviceRequests] = {}
        self.pids: set[int] = set()
        """Who asked since this was last emptied."""
        self._layout = layout
        self._inserts = {number for number, name in names.items() if name == INSERT}
        self._completes = {number for number, name in names.items() if name == COMPLETE}
        self._operations: dict[bytes, _Operation] = {}
        self._found: dict[int, DeviceRequests] = {}
        self._begun: dict[tuple[int, int, str], tuple[int, int]] = {}
        self._flushing: dict[int, int] = {}
        self._waiting: list[TraceEvent] = []
        self._known_ns = 0

    def add_pages(self, pages: Iterable[Sequence[bytes]]) -> None:
        """Take what each CPU has written since the last call.

        CPUs are read one after the other: what is later than the last event of the call before may lack what another
        CPU wrote meanwhile, and waits for the next call, or for `finish`.
        """
        for one in pages:
            self._waiting += decode_pages(self._layout, one)
        self._waiting.sort(key=itemgetter(0))
        ready = bisect_right(self._waiting, self._known_ns, key=itemgetter(0))
        self._match_events(self._waiting[:ready])
        del self._waiting[:ready]
        self._known_ns = self._waiting[-1][0] if self._waiting else self._known_ns

    def finish(self) -> None:
        """Take what waits."""
        self._match_events(self._waiting)
        self._waiting = []

    def _match_events(self, events: Sequence[TraceEvent]) -> None:
        begun, devices, operations, pids = self._begun, self._found, self._operations, self.pids
        inserts, completes, flushing = self._inserts, self._completes, self._flushing
        # The loop takes what a second of CPU time is spent on: each event costs one pass and no call that can be saved.
        for at, number, pid, device, sector, sectors, letters in events:
            found = devices.get(device)
            if found is None:
                name = f"{device >> _MINOR_BITS},{device & (1 << _MINOR_BITS) - 1}"
                found = devices[device] = self.devices[name] = DeviceRequests()
            operation = operations.get(letters)
            if operation is None:
                operation = operations[letters] = _read_operation(letters)
            kind = operation.kind
            is_end = number in completes
            if kind not in ("R", "W"):
                if kind == "F":
                    # A queue has one at a time.
                    if not is_end:
                        flushing.setdefault(device, at)
                    elif device in flushing:
                        found.flushes.append((flushing.pop(device) / 1e9, at / 1e9))
                elif is_end:
                    found.discards += kind == "D"
                continue
            key = (device, sector, kind)
            if not is_end:
                # An issue after an insert is the same request. One that was inserted and merged never ends by itself:
                # the next insert of the sector takes its place.
                if number in inserts or key not in begun:
                    begun[key] = at, pid
                    pids.add(pid)
            elif sectors:
                start = begun.pop(key, None)
                if start is None:
                    found.unmatched += 1
                else:
                    size = sectors * SECTOR_BYTES
                    found.requests.append(
                        BlockRequest(start[0] / 1e9, (at - start[0]) / 1e9, start[1], kind == "W", sector, size)
                    )
                    found.durable_writes += operation.is_durable
            # The flush before or after a write is completed by itself, in the name of the write, with no sectors.
