"""Where a namespace of this machine can be entered (namespaces(7)): by its name, or by a process that is in it."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator

_NAMED = "/run/netns"
_OWN_SYSFS = "unshare --mount sh -c 'mount -t sysfs sysfs /sys && exec \"$@\"' sh"
"""sysfs shows the links of the namespace that it was mounted in."""


def entering_words(kind: str, inode: int) -> str | None:
    """The words before a command that run it in the namespace of that inode number; None where nothing leads to it, so
    that what was set in it is gone. Needs root."""
    if kind == "net":
        for path in glob.glob(f"{_NAMED}/*"):
            with contextlib.suppress(OSError):
                if os.stat(path).st_ino == inode:
                    return f"ip netns exec {os.path.basename(path)}"
    place = next(_places(kind, inode), None)
    if place is None:
        return None
    return f"nsenter --{kind}={place}" + (f" {_OWN_SYSFS}" if kind == "net" else "")


def first_words(kind: str) -> str:
    """The words before a command that run it in the namespaces of process 1."""
    return f"nsenter --target 1 --{kind} --mount"


def _places(kind: str, inode: int) -> Iterator[str]:
    """Files that are the namespace: of processes, and of what holds it open or has it mounted."""
    text = f"{kind}:[{inode}]"
    for pattern in (f"/proc/[0-9]*/ns/{kind}", "/proc/[0-9]*/fd/*"):
        for path in glob.iglob(pattern):
            with contextlib.suppress(OSError):
                if os.readlink(path) == text:
                    yield path
    for path in glob.iglob("/proc/[0-9]*/mountinfo"):
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                fields = line.split()
                if len(fields) > 4 and fields[3] == text:
                    yield f"{os.path.dirname(path)}/root{fields[4]}"
