"""Block requests of the running host for some seconds, from a private tracing instance."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

import msgspec

from advisor.errors import RefusedError
from advisor.host import Host, Missing
from advisor.host.numbers import is_count
from advisor.host.trace_instance import TraceInstance, open_trace
from advisor.observe.cgroups import unit_of_cgroup
from advisor.observe.processes import parse_process_cgroup
from advisor.observe.requests import COMPLETE, INSERT, ISSUE, DeviceRequests, RequestMatcher
from advisor.observe.trace_pages import committed_bytes, make_layout, parse_event_id

READ_SECONDS = 0.1
"""So often the trace is read: long before its buffers are full."""
MAX_TRACE_BYTES = 26 << 20
"""An observation ends early with so much, about 200,000 requests: they say what a load is like, and more would only
take memory."""
_MINOR_BITS = 20


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
