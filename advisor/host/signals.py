"""Signals during a transaction: the first one stops it, and nothing stops the rollback."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from types import FrameType

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
