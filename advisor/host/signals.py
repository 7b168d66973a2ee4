"""Signals during a transaction: the first one stops it, and nothing stops the rollback."""

from __future__ import annotations

import contextlib
import glob
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType

# Where a namespace of this machine can be entered (namespaces(7)): by its name, or by a process that is in it.

_NAMED = "/run/netns"
_OWN_SYSFS = "unshare --mount sh -c 'mount -t sysfs sysfs /sys && exec \"$@\"' sh"
"""sysfs shows the links of the namespace that it was mounted in."""
_SO_NETNS_COOKIE = 71
_CLONE_NEWNET = 0x40000000


def entering_words(kind: str, inode: int, cookie: int | None = None) -> str | None:
    """The words before a command that run it in the namespace of that inode number, and of that cookie where one is
    known; None where nothing leads to it, so that what was set in it is gone. Needs root."""
    if kind == "net":
        for path in glob.glob(f"{_NAMED}/*"):
            with contextlib.suppress(OSError):
                if os.stat(path).st_ino == inode and _is_of(path, cookie):
                    return f"ip netns exec {os.path.basename(path)}"
    place = next((path for path in _places(kind, inode) if kind != "net" or _is_of(path, cookie)), None)
    if place is None:
        return None
    return f"nsenter --{kind}={place}" + (f" {_OWN_SYSFS}" if kind == "net" else "")


def first_words(kind: str) -> str:
    """The words before a command that run it in the namespaces of process 1."""
    return f"nsenter --target 1 --{kind} --mount"


def network_cookie() -> int | None:
    """Of the network namespace of this thread: a number that no later namespace has, where the kernel has given inode
    numbers anew. None before Linux 5.14."""
    import socket  # 3 ms, and few calls ask

    try:
        with socket.socket(socket.AF_UNIX) as one:
            return int.from_bytes(one.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8), sys.byteorder)
    except OSError:
        return None


def _is_of(path: str, cookie: int | None) -> bool:
    """Is the network namespace at ``path`` the one of that cookie? Yes where it is not known; no where the path cannot
    be opened, which nobody can enter by it."""
    found: list[int | None] = []

    def enter(descriptor: int) -> None:
        import ctypes  # 2 ms, and few calls ask

        if ctypes.CDLL(None).setns(descriptor, _CLONE_NEWNET) == 0:
            found.append(network_cookie())

    if cookie is None:
        return True
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    # A thread's namespaces are its own and end with it.
    thread = threading.Thread(target=enter, args=(descriptor,))
    thread.start()
    thread.join()
    os.close(descriptor)
    return not found or found[0] in (None, cookie)


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


_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal asks to stop. Not an Exception: only a rollback may catch it.

    ``rolled_back`` is the transaction of which nothing is left, once its rollback is complete.
    """

    def __init__(self, number: int = signal.SIGINT, *, rolled_back: str | None = None) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.rolled_back = rolled_back


@contextlib.contextmanager
def interruptible(numbers: Sequence[signal.Signals] = _STOPPING) -> Iterator[None]:
    """Turn the first SIGINT, SIGTERM or SIGHUP, or of ``numbers``, into `Interrupted`; ignore the next until the end.

    SIGPIPE is ignored as well: a pager that goes away must not end a transaction half-way.
    """
    earlier = {number: signal.getsignal(number) for number in (*numbers, signal.SIGPIPE)}

    def stop(number: int, _frame: FrameType | None) -> None:
        for one in numbers:
            signal.signal(one, signal.SIG_IGN)
        raise Interrupted(number)

    for number in numbers:
        # A signal that whoever started us chose to ignore (nohup) stays ignored.
        if earlier[number] is not signal.SIG_IGN:
            signal.signal(number, stop)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process group; one that has gone is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
