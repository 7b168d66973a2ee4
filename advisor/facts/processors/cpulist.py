"""Kernel list strings (``0-3,8``) and masks (``00000000,0000000f``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from advisor.host import Host, Missing, lazy_regex

MAX_ID = 1 << 16  # no kernel is built for more CPUs or nodes; bounds what a hostile file can make us build

_PART = lazy_regex(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9})/(\d{1,9}))?)?", re.ASCII)
_WORD_DIGITS = 8
_FOLD_FROM = 4
_MASK = lazy_regex(r"(?:0x)?[0-9a-fA-F]+(?:,[0-9a-fA-F]{1,8})*")


def parse_list(text: str) -> tuple[int, ...]:
    """Ids of a kernel list string, sorted; strides as in ``0-31:2/4`` are understood (cpuset(7)).

    Raises ValueError for anything else.
    """
    ids: set[int] = set()
    for part in text.replace("\0", "").split(","):
        if part := part.strip():
            ids.update(_expand_span(part))
    return tuple(sorted(ids))


def _expand_span(part: str) -> Iterable[int]:
    found = _PART.fullmatch(part)
    if not found:
        raise ValueError(f"not a kernel list: {part[:40]!r}")
    first = int(found[1])
    last = int(found[2] or first)
    used, size = int(found[3] or 1), int(found[4] or 1)
    if not first <= last < MAX_ID or not 0 < used <= size:
        raise ValueError(f"not a kernel list: {part[:40]!r}")
    if used == size:
        return range(first, last + 1)
    return (number for number in range(first, last + 1) if (number - first) % size < used)


def format_list(ids: Iterable[int]) -> str:
    """Shortest kernel list string: ``0-3,8``; empty for no ids."""
    spans: list[list[int]] = []
    for number in sorted(set(ids)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def fold_list(ids: Iterable[int]) -> str:
    """The same ids for people, exact: ``0-3, 8``, and ``0, 8, 16 … 568`` where four spans or more follow each other in
    equal steps (of ranges too: ``0-3, 8-11, 16-19 … 56-59``); empty for no ids."""
    spans = format_list(ids).split(",")
    ends = [tuple(map(int, span.split("-"))) for span in spans if span]
    found: list[str] = []
    at = 0
    while at < len(ends):
        alike = _count_alike(ends[at:])
        run = spans[at : at + alike]
        found.append(", ".join(run) if alike < _FOLD_FROM else f"{', '.join(run[:3])} … {run[-1]}")
        at += alike
    return ", ".join(found)


def _count_alike(ends: list[tuple[int, ...]]) -> int:
    """How many spans from the first are as wide as that and in steps as that to the second; one where these are not
    enough to be folded."""
    first, *others = ends
    count = 1
    for rank, one in enumerate(others, start=1):
        step = others[0][0] - first[0]
        if one[-1] - one[0] != first[-1] - first[0] or one[0] != first[0] + rank * step:
            break
        count += 1
    return count if count >= _FOLD_FROM else 1


def parse_mask(text: str) -> tuple[int, ...]:
    """Ids of a hexadecimal mask in groups of 32 bits, most significant first; none for an empty one.

    Raises ValueError for anything else.
    """
    text = text.replace("\0", "").strip()
    if not text:
        return ()
    if not _MASK.fullmatch(text):
        raise ValueError(f"not a kernel mask: {text[:40]!r}")
    first, *groups = text.split(",")
    mask = int(first + "".join(group.zfill(8) for group in groups), 16)
    if mask.bit_length() > MAX_ID:
        raise ValueError("mask too wide")
    return tuple(number for number in range(mask.bit_length()) if mask >> number & 1)


def mask_words(digits: str) -> str:
    """The digits of a mask in the kernel's groups of 32 bits: ``3ffffffff`` is ``3,ffffffff``."""
    ends = range(len(digits), 0, -_WORD_DIGITS)
    return ",".join(reversed([digits[max(end - _WORD_DIGITS, 0) : end] for end in ends]))


def read_list(host: Host, path: str) -> tuple[int, ...] | Missing:
    """Ids of a file that holds a kernel list; unreadable where it holds something else."""
    text = host.read(path)
    if isinstance(text, Missing):
        return text
    try:
        return parse_list(text)
    except ValueError as error:
        return Missing("unreadable", str(error))


def read_ids(host: Host, *paths: str) -> tuple[int, ...] | Missing:
    """Ids of the first of some files that exists: a path that ends in ``list`` holds a list, another one a mask.

    Old kernels (2.6.18 of RHEL 5) have masks only.
    """
    missing = Missing("absent", "does not exist")
    for path in paths:
        found = read_list(host, path) if path.endswith("list") else _read_mask(host, path)
        if not isinstance(found, Missing):
            return found
        missing = found if missing.is_absent else missing
    return missing


def _read_mask(host: Host, path: str) -> tuple[int, ...] | Missing:
    text = host.read(path)
    if isinstance(text, Missing):
        return text
    try:
        return parse_mask(text)
    except ValueError as error:
        return Missing("unreadable", str(error))


# CPUs and memory nodes that a process may use: its affinity (status in proc(5)) and its cpuset (cpuset(7)).

Resource = Literal["cpus", "mems"]
_UNRESTRICTED = Missing("absent", "no affinity and no cpuset is shown")


def read_allowed(host: Host, resource: Resource) -> tuple[int, ...] | Missing:
    """Ids that the calling process may use; absent where neither its status nor a cpuset says anything.

    The status counts first, as it holds affinity and cpuset in one. Captured hosts of old kernels have a cpuset only.
    """
    own = read_process_allowed(host, "self", resource)
    if not isinstance(own, Missing):
        return own
    limit = _read_cpuset(host, resource)
    return own if isinstance(limit, Missing) and limit.is_absent and not own.is_absent else limit


def read_process_allowed(host: Host, pid: int | str, resource: Resource) -> tuple[int, ...] | Missing:
    """Ids of ``Cpus_allowed`` or ``Mems_allowed`` in /proc/PID/status."""
    text = host.read(f"/proc/{pid}/status")
    return text if isinstance(text, Missing) else parse_allowed(text, resource)


def parse_allowed(status: str, resource: Resource) -> tuple[int, ...] | Missing:
    """Ids in the text of a status file: from the list, or from the mask of kernels that print no list."""
    word = {"cpus": "Cpus_allowed", "mems": "Mems_allowed"}[resource]
    for suffix, parse in (("_list", parse_list), ("", parse_mask)):
        _, is_there, rest = f"\n{status}".partition(f"\n{word}{suffix}:")
        if is_there:
            words = rest.partition("\n")[0].split()
            try:
                return parse(words[0] if words else "")
            except ValueError as error:
                return Missing("unreadable", str(error))
    return Missing("absent", f"no {word} in the status")


def _read_cpuset(host: Host, resource: Resource) -> tuple[int, ...] | Missing:
    # The process' cpuset as a path below the mount point, "" for the root.
    text = host.read("/proc/self/cpuset")
    cpuset_name = _cpuset_of_cgroup(host) if isinstance(text, Missing) else text
    name = cpuset_name.rstrip("/") if cpuset_name is not None and cpuset_name.startswith("/") else None
    if name is None:
        return _UNRESTRICTED
    for place in _cpuset_mounts(host):
        for group in _and_parents(name):
            for file in (
                f"cpuset.{resource}.effective",
                f"cpuset.effective_{resource}",
                f"cpuset.{resource}",
                resource,
            ):
                found = read_list(host, f"{place}{group}/{file}")
                # In version 2 a file that is empty, or not there, means "as the parent has it".
                if not isinstance(found, Missing) and found:
                    return found
    return _UNRESTRICTED


def _and_parents(group: str) -> Iterator[str]:
    while group:
        yield group
        group = group.rpartition("/")[0]
    yield ""


def _cpuset_of_cgroup(host: Host) -> str | None:
    text = host.read("/proc/self/cgroup")
    if isinstance(text, Missing):
        return None
    lines = [line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2]
    named = [path for _, controllers, path in lines if "cpuset" in controllers.split(",")]
    unified = [path for number, controllers, path in lines if number == "0" and not controllers]
    return next(iter(named + unified), None)


def _cpuset_mounts(host: Host) -> Iterator[str]:
    mounts = host.read("/proc/self/mounts")
    if isinstance(mounts, Missing):
        mounts = host.read_or_empty("/proc/mounts")
    for line in mounts.splitlines():
        _, place, kind, options = (line.split() + [""] * 4)[:4]
        if kind == "cpuset" or kind == "cgroup2" or (kind == "cgroup" and "cpuset" in options.split(",")):
            yield place
    yield from ("/dev/cpuset", "/sys/fs/cgroup/cpuset", "/sys/fs/cgroup")
