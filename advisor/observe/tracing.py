"""Block requests of the running host for some seconds, from a private tracing instance."""

from __future__ import annotations

import re
import struct
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

import msgspec

from advisor.errors import RefusedError
from advisor.host import Host, Missing
from advisor.host.numbers import is_count
from advisor.host.trace_instance import TraceInstance, open_trace
from advisor.observe.cgroups import unit_of_cgroup
from advisor.observe.processes import parse_process_cgroup

# Pages of the kernel's ring buffer (``trace_pipe_raw``), as events of block requests.

_FIELD = re.compile(
    r"^\s{0,4}field: {0,4}([^;\n]{1,80});\s{0,4}offset:([0-9]{1,5});\s{0,4}size:([0-9]{1,5});", re.MULTILINE | re.ASCII
)
_ID = re.compile(r"^ID: ([0-9]{1,5})$", re.MULTILINE | re.ASCII)
_COMMIT_MASK = 0xFFFFF
"""Bits above it say that events are missing before the page."""
_WORD_BYTES = 4
_TYPE_BITS, _DELTA_BITS = 5, 27
_PADDING, _TIME_EXTEND, _TIME_STAMP = 29, 30, 31
_STAMP_BITS = 59
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
_FIELDS = ("common_type", "common_pid", "dev", "sector", "nr_sector", "rwbs")
"""What is taken of an event, in the order in which every kernel has them."""


TraceEvent = tuple[int, int, int, int, int, int, bytes]
"""An event of a request: nanoseconds, number of the event, process, device as the kernel has it, sector, sectors, and
the letters of the operation with zeros."""


class PageLayout(NamedTuple):
    """Where things are in a page (bytes) and in each kind of event by its number."""

    commit: int
    commit_bytes: int
    data: int
    events: Mapping[int, struct.Struct]


def parse_fields(text: str) -> dict[str, tuple[int, int]]:
    """Offset and size in bytes of each field of a ``format`` or of ``header_page``."""
    found = {}
    for declared, offset, size in _FIELD.findall(text):
        name = declared.split(" ")[-1].partition("[")[0]
        found[name] = int(offset), int(size)
    return found


def parse_event_id(text: str) -> int | None:
    """The number of an event by its ``format``."""
    found = _ID.search(text)
    return int(found[1]) if found else None


def make_layout(header_page: str, formats: Sequence[str]) -> PageLayout:
    """The layout by what the kernel says about it. Raises ValueError for a format without the fields of a request."""
    header = parse_fields(header_page)
    if not {"commit", "data"} <= header.keys() or header["commit"][1] not in (4, 8):
        raise ValueError("header_page")
    events = {}
    for text in formats:
        number = parse_event_id(text)
        if number is None:
            raise ValueError("ID")
        events[number] = _make_struct(parse_fields(text))
    return PageLayout(*header["commit"], header["data"][0], events)


def _make_struct(fields: Mapping[str, tuple[int, int]]) -> struct.Struct:
    layout, at = "=", 0
    for name in _FIELDS:
        offset, size = fields.get(name, (-1, 0))
        code = f"{size}s" if name == "rwbs" else _CODES.get(size, "")
        if offset < at or not code or size > 64:
            raise ValueError(name)
        layout += f"{offset - at}x{code}"
        at = offset + size
    return struct.Struct(layout)


def committed_bytes(layout: PageLayout, page: bytes) -> int:
    """How many bytes of a page are events, after ``layout.data``."""
    word = page[layout.commit : layout.commit + layout.commit_bytes]
    return min(int.from_bytes(word, sys.byteorder) & _COMMIT_MASK, max(0, len(page) - layout.data))


def decode_pages(layout: PageLayout, pages: Sequence[bytes]) -> list[TraceEvent]:
    """The events of pages of one CPU, oldest first. Other events and what is cut off are left out."""
    found: list[TraceEvent] = []
    take = found.append
    events = layout.events
    is_little = sys.byteorder == "little"
    read_word = struct.Struct("=I").unpack_from
    read_head = struct.Struct("=IH").unpack_from
    room = bytes(max((one.size for one in events.values()), default=0) + 2 * _WORD_BYTES)
    for page in pages:
        if len(page) < layout.data:
            continue
        time = int.from_bytes(page[:8], sys.byteorder)
        at = layout.data
        end = at + committed_bytes(layout, page)
        page = page[:end] + room
        # A second of CPU time is spent on this loop: each event costs two reads and no call that can be saved.
        while at < end:
            word, number = read_head(page, at)
            kind, delta = (word & 31, word >> _TYPE_BITS) if is_little else (word >> _DELTA_BITS, word & (1 << 27) - 1)
            at += _WORD_BYTES
            if kind < _PADDING:
                time += delta
                size = kind * _WORD_BYTES
                if not kind:
                    size = (read_word(page, at)[0] + 3) & ~3
                    number = read_head(page, at)[1]
                layout_of = events.get(number)
                if layout_of is not None:
                    take((time, *layout_of.unpack_from(page, at if kind else at + _WORD_BYTES)))
                at += size
            elif kind == _PADDING:
                if not delta:
                    break
                time += delta
                at += read_word(page, at)[0]
            else:
                long = delta | read_word(page, at)[0] << _DELTA_BITS
                # A stamp has the lower bits of a time; the upper ones are those of the page.
                time = time + long if kind == _TIME_EXTEND else time >> _STAMP_BITS << _STAMP_BITS | long
                at += _WORD_BYTES
    return found


# Requests of block devices, each with its time, from the events of a private tracing instance.

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


READ_SECONDS = 0.1
"""So often the trace is read: long before its buffers are full."""
MAX_TRACE_BYTES = 26 << 20
"""An observation ends early with so much, about 200,000 requests: they say what a load is like, and more would only
take memory."""


class TracedRequests(msgspec.Struct, frozen=True):
    """What was traced: by device (``MAJOR,MINOR``), and what each process belongs to by its number."""

    devices: Mapping[str, DeviceRequests]
    owners: Mapping[int, str]
    seconds: float
    lost: int
    is_cut: bool
    """Whether it ended early, as there were so many requests."""


class RequestTracer:
    """Reads a trace bit by bit: `collect` is called about ten times a second.

    Pages are kept and read at the end, so that the load is disturbed as little as can be; at once where ``owner_of``
    is given, as who has asked may be gone in a second.
    """

    def __init__(
        self, trace: TraceInstance, events: Iterable[str], owner_of: Callable[[int], str] | None = None
    ) -> None:
        self._trace = trace
        self._owner_of = owner_of
        formats = {name: trace.read_setting(f"events/{name}/format") for name in events}
        try:
            self._layout = make_layout(trace.read_setting("events/header_page"), [*formats.values()])
        except ValueError as error:
            raise RefusedError(
                f"tracing block requests: this kernel has no {error!s} where others do",
                hint="report it with the files below /sys/kernel/tracing/events/block",
            ) from error
        names = {number: name for name, text in formats.items() if (number := parse_event_id(text)) is not None}
        self._matcher = RequestMatcher(self._layout, names)
        self._batches: list[list[list[bytes]]] = []
        self._bytes = 0
        self._owners: dict[int, str] = {}
        self._began = time.monotonic()

    def collect(self) -> bool:
        """Take what was traced since the last call; False where that is enough."""
        batch: list[list[bytes]] = []
        for pages in self._trace.read_pages():
            lengths = [committed_bytes(self._layout, page) for page in pages]
            self._bytes += sum(lengths)
            batch.append([page[: self._layout.data + size] for page, size in zip(pages, lengths, strict=True) if size])
        if any(batch):
            self._batches.append(batch)
        if self._owner_of is not None:
            self._match_batches()
        return self._bytes < MAX_TRACE_BYTES

    def _match_batches(self) -> None:
        self._batches.reverse()
        while self._batches:
            self._matcher.add_pages(self._batches.pop())
        self._ask_owners()

    def _ask_owners(self) -> None:
        if self._owner_of is not None:
            for pid in self._matcher.pids - self._owners.keys():
                self._owners[pid] = self._owner_of(pid)
        self._matcher.pids.clear()

    def finish(self) -> TracedRequests:
        """All that was traced. Call it while the instance is there."""
        seconds = time.monotonic() - self._began
        is_cut = not self.collect()
        lost = self._trace.count_lost()
        self._match_batches()
        self._matcher.finish()
        # What waited for an earlier page to come is matched only now.
        self._ask_owners()
        return TracedRequests(self._matcher.devices, self._owners, seconds, lost, is_cut)


def trace_requests(
    seconds: float,
    events: Mapping[str, str | None],
    owner_of: Callable[[int], str] | None = None,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> TracedRequests:
    """The requests of the next ``seconds``. Raises what `open_trace` does, and what ``sleep`` does."""
    with open_trace(events) as trace:
        tracer = RequestTracer(trace, events, owner_of)
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            sleep(min(left, READ_SECONDS))
            if not tracer.collect():
                break
        return tracer.finish()


def events_of(host: Host, device: str | None) -> dict[str, str | None]:
    """The events to trace, in the order in which they are to be enabled, with the filter for one whole disk; all of
    them for any device.

    Completions come first, as each event takes milliseconds to enable: a request that begins and ends before the other
    is enabled would be one that never ends, until another at the same place ends for it, seconds later. Without a
    scheduler a request is not inserted, and tracing that would only cost.
    """
    if device is None:
        return dict.fromkeys((COMPLETE, INSERT, ISSUE))
    number = device_number(host, device)
    condition = None
    if number is not None:
        major, minor = map(int, number.split(","))
        condition = f"dev == {major << _MINOR_BITS | minor}"
    scheduler = host.read(f"/sys/block/{device}/queue/scheduler")
    has_none = isinstance(scheduler, Missing) or "[none]" in scheduler or scheduler.strip() == "none"
    return dict.fromkeys((COMPLETE, ISSUE) if has_none else (COMPLETE, INSERT, ISSUE), condition)


def device_number(host: Host, device: str) -> str | None:
    """``MAJOR,MINOR`` of a block device by its kernel name, as the trace has it."""
    text = host.read(f"/sys/class/block/{device}/dev")
    if isinstance(text, Missing):
        return None
    major, _, minor = text.strip().partition(":")
    good = is_count(major) and is_count(minor)
    return f"{major},{minor}" if good else None


def unit_of_process(host: Host, pid: int) -> str:
    """The service or scope that a process or thread belongs to; empty where that is not known."""
    text = host.read(f"/proc/{pid}/cgroup")
    cgroup = None if isinstance(text, Missing) else parse_process_cgroup(text)
    return unit_of_cgroup(cgroup or "") or ""
