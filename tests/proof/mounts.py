"""Real mounts for one test, in a mount namespace of its own: gone with the process that made them."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tests.forked import forked

T = TypeVar("T")

_NEWNS, _PRIVATE_RECURSIVE = 0x00020000, 1 << 18 | 1 << 14
_libc = ctypes.CDLL(None, use_errno=True)


def can_mount() -> bool:
    """Root, and a kernel and sandbox that let it mount."""
    if os.geteuid() != 0:
        return False
    try:
        return in_own_mounts(lambda: command("mount", "-t", "tmpfs", "none", "/mnt") == "")
    except (OSError, AssertionError):
        return False


def in_own_mounts(function: Callable[[], T]) -> T:
    """What the function returns (or raises) in a child process with a mount namespace of its own."""
    return forked(function, enter=_own_mounts)


def _own_mounts() -> None:
    if _libc.unshare(_NEWNS) or _libc.mount(b"none", b"/", None, _PRIVATE_RECURSIVE, None):
        raise OSError(ctypes.get_errno(), "no mount namespace")


def command(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    return done.stdout


def mount_line(place: Path) -> list[str]:
    """The words of the mount in mountinfo, the sixth its options; none where nothing is mounted there."""
    escaped = str(place).replace(" ", "\\040")
    lines: Sequence[list[str]] = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return next((words for words in reversed(lines) if words[4] == escaped), [])
