"""Captures of many hosts become summaries, one host's facts in memory at a time, on as many CPUs as there are."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from advisor.errors import AdvisorError
from advisor.facts.host_facts import scan
from advisor.fleet.compare.columns import Fleet
from advisor.fleet.compare.summary import CaptureSource, HostSummary, read_standing, summarise_host
from advisor.snapshot.open import open_host

LLT_CLUSTER = "llt-cluster"
MAX_PROCESSES = 16
_FEW = 12
"""Of fewer hosts, starting processes would take longer than it saves."""

Progress = Callable[[int, int], None]
T = TypeVar("T")


class Unread(msgspec.Struct, frozen=True):
    """Why nothing is known of a capture."""

    message: str


def read_source(source: CaptureSource) -> HostSummary:
    """The summary of one capture."""
    host = open_host(snapshot=Path(source.path))
    standing = read_standing(host, has_looked=source.is_capture and host.is_root is True)
    return summarise_host(scan(host), source, standing, host.read_text("/proc/cmdline"))


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
    failed: dict[str, str] = {}
    for _, one in read_sources(sources, read_source, failed, progress, processes):
        fleet.add(_with_group(one) if group_by == LLT_CLUSTER else one)
    return fleet, failed


def _with_group(summary: HostSummary) -> HostSummary:
    group = f"cluster {summary.cluster}" if summary.cluster else "no cluster"
    return msgspec.structs.replace(summary, group=group)


def read_sources(
    sources: Sequence[CaptureSource],
    read: Callable[[CaptureSource], T],
    failed: dict[str, str],
    progress: Progress = lambda done, total: None,
    processes: int | None = None,
) -> Iterator[tuple[str, T]]:
    """Host and what ``read``, a function of a module, makes of its capture, in their order. Those that cannot be read
    are added to ``failed`` with the reason. ``processes`` read at once; by default one for each CPU."""
    for done, (source, one) in enumerate(zip(sources, _read_each(sources, read, processes), strict=True), 1):
        if isinstance(one, Unread):
            failed[source.name] = one.message
        else:
            yield source.name, one
        progress(done, len(sources))


def _read_each(
    sources: Sequence[CaptureSource], read: Callable[[CaptureSource], T], processes: int | None
) -> Iterator[T | Unread]:
    few = 1 if len(sources) < _FEW else min(len(os.sched_getaffinity(0)), MAX_PROCESSES)
    count, read_one = few if processes is None else processes, partial(_read_one, read)
    done = 0
    if count > 1:
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool

        # A process may be killed (the system ran out of memory): on alone, which takes the least.
        with suppress(BrokenProcessPool), ProcessPoolExecutor(count) as pool:
            for one in pool.map(read_one, sources, chunksize=max(1, min(16, len(sources) // (4 * count)))):
                yield one
                done += 1
    yield from map(read_one, sources[done:])


def _read_one(read: Callable[[CaptureSource], T], source: CaptureSource) -> T | Unread:
    try:
        return read(source)
    except AdvisorError as error:
        return Unread(error.message)
    except (OSError, MemoryError) as error:
        return Unread(f"{source.path}: {error or 'too large for this memory'}")


def named_sources(paths: Iterable[Path]) -> tuple[CaptureSource, ...]:
    """Plain snapshot files: a host is called as its file, without the ending; with its directory where that is not
    enough to distinguish two."""
    named = {path: _host_name(path) for path in paths}
    counts = Counter(named.values())
    return tuple(CaptureSource(name if counts[name] == 1 else str(path), str(path)) for path, name in named.items())


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
