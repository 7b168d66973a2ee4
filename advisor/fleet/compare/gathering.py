"""Captures of many hosts become summaries, one host's facts in memory at a time, on as many CPUs as there are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from advisor.errors import AdvisorError
from advisor.facts.host_facts import scan
from advisor.fleet.compare.advisor_state import read_standing
from advisor.fleet.compare.columns import Fleet
from advisor.fleet.compare.summary import HostContext, HostSummary, summarise_host
from advisor.host import Missing
from advisor.snapshot.archive import open_snapshot
from advisor.snapshot.remote.capture import open_capture
from advisor.snapshot.remote.stream import is_capture

LLT_CLUSTER = "llt-cluster"
MAX_PROCESSES = 16
_FEW = 12
"""Of fewer hosts, starting processes would take longer than it saves."""

Progress = Callable[[int, int], None]
T = TypeVar("T")


class CaptureSource(msgspec.Struct, frozen=True):
    """A capture to read. ``is_capture`` says that ``advisor fleet`` made it, which looks for journals, too."""

    name: str
    path: str
    group: str | None = None
    skew_seconds: float | None = None
    is_capture: bool = False


class Unread(msgspec.Struct, frozen=True):
    """A capture of which nothing is known, and why."""

    name: str
    message: str


def read_source(source: CaptureSource) -> HostSummary | Unread:
    """The summary of one capture; one that cannot be read is named, and never raises."""
    try:
        path = Path(source.path)
        # An archive, or what the capture script printed on a host, kept by hand.
        host = open_capture(path) if is_capture(path) else open_snapshot(path)
        words = host.read("/proc/cmdline")
        context = HostContext(
            name=source.name,
            group=source.group,
            skew_seconds=source.skew_seconds,
            standing=read_standing(host, has_looked=source.is_capture and host.is_root),
            command_line=None if isinstance(words, Missing) else words,
        )
        return summarise_host(scan(host), context)
    except AdvisorError as error:
        return Unread(source.name, error.message)
    except (OSError, MemoryError) as error:
        return Unread(source.name, f"{source.path}: {error or 'too large for this memory'}")


def gather_hosts(
    sources: Sequence[CaptureSource],
    *,
    group_by: str | None = None,
    processes: int | None = None,
    progress: Progress = lambda done, total: None,
) -> tuple[Fleet, dict[str, str]]:
    """The fleet, and the hosts of which nothing could be read with the reason.

    ``group_by`` llt-cluster makes each host's LLT cluster its group. ``processes`` is how many read at once; by default
    one for each CPU.
    """
    fleet = Fleet()
    failed = {}
    for done, one in enumerate(read_sources(sources, read_source, processes), 1):
        if isinstance(one, Unread):
            failed[one.name] = one.message
        else:
            fleet.add(_with_group(one) if group_by == LLT_CLUSTER else one)
        progress(done, len(sources))
    return fleet, failed


def _with_group(summary: HostSummary) -> HostSummary:
    group = f"cluster {summary.cluster}" if summary.cluster else "no cluster"
    return msgspec.structs.replace(summary, group=group)


def read_sources(
    sources: Sequence[CaptureSource], read: Callable[[CaptureSource], T], processes: int | None = None
) -> Iterator[T]:
    """What ``read`` makes of each capture, in their order. ``read`` is a function of a module, and never raises."""
    hosts = len(sources)
    if processes is not None:
        count = max(processes, 1)
    else:
        count = 1 if hosts < _FEW else min(len(os.sched_getaffinity(0)), MAX_PROCESSES)
    if count == 1:
        yield from map(read, sources)
        return
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    done = 0
    try:
        with ProcessPoolExecutor(count) as pool:
            for one in pool.map(read, sources, chunksize=max(1, min(16, len(sources) // (4 * count)))):
                yield one
                done += 1
    except BrokenProcessPool:
        # A process was killed (the system ran out of memory): on alone, which takes the least.
        yield from map(read, sources[done:])


def named_sources(paths: Iterable[Path]) -> tuple[CaptureSource, ...]:
    """Plain snapshot files: a host is called as its file, without the ending; with its directory where that is not
    enough to distinguish two."""
    listed = list(dict.fromkeys(paths))
    stems: dict[str, int] = {}
    for path in listed:
        stems[_host_name(path)] = stems.get(_host_name(path), 0) + 1
    return tuple(
        CaptureSource(_host_name(path) if stems[_host_name(path)] == 1 else str(path), str(path)) for path in listed
    )


def _host_name(path: Path) -> str:
    name = path.name
    for ending in (".gz", ".bz2", ".xz", ".tar", ".tgz", ".snapshot", ".capture"):
        name = name.removesuffix(ending)
    return name or path.name


def grouped_by(variable: str, groups: Sequence[str], variables: Mapping[str, str]) -> str:
    """The group of an inventory's host: the value of a variable, else, where ``variable`` is ``group``, its groups."""
    if variable == "group":
        return ", ".join(groups) or "ungrouped"
    return f"{variable} {variables[variable]}" if variable in variables else f"no {variable}"
