"""What the records have in common inside the lab guest: values that are restored, and tables."""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_NETWORK = 0x40000000
"""CLONE_NEWNET of unshare(2) and setns(2)."""
AGENT = Path("/usr/local/lib/lab-agent.py")


def require_guest() -> None:
    """End unless this is the lab guest: the records change sysctls of the whole machine."""
    if not AGENT.exists():
        sys.exit("this is not the lab guest: run python -m benchmarks.profile_records NAME on the host")


def read_sysctl(name: str) -> str:
    """The value as it is, with single spaces."""
    return " ".join(_path(name).read_text().split())


@contextlib.contextmanager
def sysctl(name: str, value: str | int) -> Iterator[None]:
    """A sysctl with another value, restored at the end. The pairs in bytes and percent reset each other: restoring
    a zero would be refused, so the one that was not zero is restored."""
    partner = name.replace("_bytes", "_ratio") if name.endswith("_bytes") else ""
    before = read_sysctl(name)
    if partner and before == "0":
        restored, before = partner, read_sysctl(partner)
    else:
        restored = name
    _path(name).write_text(str(value))
    try:
        yield
    finally:
        _path(restored).write_text(before)


def _path(name: str) -> Path:
    return Path("/proc/sys", *name.split("."))


def shell(command: str, *, timeout: float = 900) -> str:
    """Standard output of a shell line that has to succeed."""
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode:
        raise RuntimeError(f"{command!r} exited with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def counters(path: str) -> dict[str, int]:
    """Lines of a name and a number, as in /proc/meminfo (kB), /proc/vmstat and /proc/PID/status."""
    found = {}
    for line in Path(path).read_text().splitlines():
        words = line.replace(":", " ").split()
        if len(words) > 1 and words[1].isdigit():
            found[words[0]] = int(words[1])
    return found


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A Markdown table on standard output."""
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row) + " |", flush=True)
