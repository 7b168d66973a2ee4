"""What a command has started and left behind: it is adopted while the command runs, and killed after it.

Whoever makes itself a session of its own (setsid, a daemon) leaves its process group, and its parent's end gives it to
the init process. A child subreaper gets it instead. Source: PR_SET_CHILD_SUBREAPER(2const), proc_pid_stat(5).
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator

from advisor.host.numbers import is_count

_SET_CHILD_SUBREAPER = 36
_GET_CHILD_SUBREAPER = 37
_PAUSE_SECONDS = 0.01


class AdoptedProcesses:
    """The processes of one run whose parents have ended, as children of this process.

    Children from before are not among them, nor are those that this process starts in its own session: what a run
    starts is in the run's session or in one of its own.
    """

    def __init__(self) -> None:
        self._others = set(_list_children())

    def keep(self, pid: int) -> None:
        """Leave this child to whoever started it."""
        self._others.add(pid)

    def reap_ended(self) -> None:
        """Take the ended ones off the process table, on which a long run could fill it."""
        with contextlib.suppress(ChildProcessError, ProcessLookupError):
            while (seen := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                if seen.si_pid in self._others or os.getsid(seen.si_pid) == os.getsid(0):
                    return
                os.waitpid(seen.si_pid, os.WNOHANG)

    def kill_all(self, seconds: float) -> None:
        """Kill and reap them until none is left, for at most so long: the children of one that ends come next.

        One of another user, which this process may not kill, stays.
        """
        deadline = time.monotonic() + seconds
        while found := [pid for pid in _list_children() if pid not in self._others]:
            for pid in found:
                try:
                    os.kill(pid, signal.SIGKILL)
                except PermissionError:
                    self._others.add(pid)
                except ProcessLookupError:
                    continue
            for pid in found:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            if time.monotonic() > deadline:
                return
            time.sleep(_PAUSE_SECONDS)


@contextlib.contextmanager
def adopted_processes() -> Iterator[AdoptedProcesses]:
    """Adopt what loses its parent in the block; a kernel that cannot leaves it to the init process."""
    import ctypes  # 2 ms, and few calls run a command

    library = ctypes.CDLL(None)
    before = ctypes.c_int(0)
    library.prctl(_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    adopted = AdoptedProcesses()
    library.prctl(_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0)
    try:
        yield adopted
    finally:
        library.prctl(_SET_CHILD_SUBREAPER, ctypes.c_ulong(before.value), 0, 0, 0)


def _list_children() -> list[int]:
    """The children of this process that are not in its own session, ended ones too."""
    own, session = os.getpid(), os.getsid(0)
    found = []
    for name in os.listdir("/proc"):
        if not is_count(name):
            continue
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            # The name of the program is in brackets and may hold anything.
            fields = file.read().rpartition(b")")[2].split()
            if int(fields[1]) == own and int(fields[3]) != session:
                found.append(int(name))
    return found
