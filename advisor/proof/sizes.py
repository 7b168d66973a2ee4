"""Sizes of scratch files as a person writes them, and thread counts of a sweep."""

from __future__ import annotations

import re

from advisor.errors import UsageError
from advisor.host.patterns import lazy_regex
from advisor.proof.scratch import MIB
from advisor.proof.workloads import THREADS_MAX

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = lazy_regex(r"([0-9]{1,15})(?:([kmgt])i?b?)?", re.IGNORECASE | re.ASCII)
_TIMES_MEMORY = lazy_regex(r"([0-9]{1,2}(?:\.[0-9])?)x", re.ASCII)
_COUNT = lazy_regex(r"[0-9]{1,6}", re.ASCII)


def file_size(text: str, memory_bytes: int | None) -> int:
    """The size of a scratch file in bytes, whole MiB: ``64GiB``, ``512M`` or ``1048576`` (units are binary), or ``2x``
    for that many times this host's memory, so that no cache holds the file. Raises UsageError."""
    times = _TIMES_MEMORY.fullmatch(text.strip().lower())
    if times is None:
        match = _SIZE.fullmatch(text.strip())
        if match is None or int(match[1]) == 0:
            raise UsageError(f"--file-size {text}: expected a size such as 512MiB or 64GiB")
        wanted = int(match[1]) * _UNITS[(match[2] or "").lower()]
    else:
        wanted = int(float(times[1]) * (memory_bytes or 0))
        if wanted <= 0:
            raise UsageError(f"--file-size {text}: the memory of this host is unknown", hint="--file-size 64GiB")
    return -(-wanted // MIB) * MIB


def thread_counts(text: str) -> tuple[int, ...]:
    """``1,4,16`` or ``1..1024`` (powers of two from the first to the last, which is included). Raises UsageError."""
    first, dots, last = text.partition("..")
    words = [first, last] if dots else text.split(",")
    if not all(_COUNT.fullmatch(word.strip()) for word in words):
        raise UsageError(f"--threads {text}: expected numbers such as 1,4,16 or a range such as 1..1024")
    found = [int(word) for word in words]
    if not all(1 <= one <= THREADS_MAX for one in found) or (dots and found[0] > found[1]):
        raise UsageError(f"--threads {text}: expected 1 to {THREADS_MAX} threads, the smaller number first")
    if dots:
        low, high = found
        found = [low]
        while found[-1] * 2 < high:
            found.append(found[-1] * 2)
        found += [high] if high > low else []
    return tuple(sorted(set(found)))
