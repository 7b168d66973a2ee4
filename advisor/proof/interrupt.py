"""Signals during a session: whatever would end the process asks it to stop instead, all in the same way.

A handler that raised could cut a change to the host in half, or the cleaning up itself. So the handlers only
note the signal; the session asks at points where stopping is safe, and waits in short slices.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from advisor.errors import AdvisorError

SIGNALS = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),
    # what batch systems and resource limits send before they kill
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU, signal.SIGALRM),
)
SLICE_SECONDS = 0.05


class StoppedError(AdvisorError):
    """A signal asked the session to stop."""

    exit_code = 130
    kind = "interrupted"


class Stop:
    """Whether a signal came; ``signal_number`` is 0 until then."""

    def __init__(self) -> None:
        self.signal_number = 0

    def check(self) -> None:
        """Raise StoppedError if a signal came."""
        if self.signal_number:
            raise StoppedError(f"stopped by {signal.Signals(self.signal_number).name}")

    def sleep(self, seconds: float) -> None:
        """Wait, but raise StoppedError soon after a signal."""
        end = time.monotonic() + seconds
        self.check()
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(SLICE_SECONDS, left))
            self.check()

    def request(self, number: int, _frame: FrameType | None = None) -> None:
        """The signal handler. The first signal counts."""
        self.signal_number = self.signal_number or number


@contextmanager
def caught_signals() -> Iterator[Stop]:
    """Direct `SIGNALS` to a `Stop` for the time of the block. A signal that is ignored stays ignored
    (nohup), and outside the main thread, where Python cannot take signals, nothing is changed."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    taken = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    try:
        for number in taken:
            signal.signal(number, stop.request)
        yield stop
    finally:
        for number in taken:
            # None: a handler that was not set from Python, which Python cannot restore
            signal.signal(number, before[number] or signal.SIG_DFL)
