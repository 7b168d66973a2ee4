"""Kind ``clock``: whether the kernel's clock is synchronised, and how many seconds it is ahead of the time since boot.

Source: adjtimex(2), clock_gettime(2); read only, no rights needed.
"""

from __future__ import annotations

import ctypes
import time

from advisor.host import Host
from advisor.observe.sample import Reading

_TIMEX_WORDS = 64
"""More room than struct timex needs on any architecture."""
_TIME_ERROR = 5


def read_clock(host: Host, reading: Reading) -> None:
    reading.ask("clock")
    if not host.is_live:
        reading.note_missing("clock", "the kernel of the running host alone says whether it is synchronised")
        return
    state = ctypes.CDLL(None, use_errno=True).adjtimex((ctypes.c_long * _TIMEX_WORDS)())
    if state < 0:
        reading.note_missing("clock", "adjtimex is not permitted here")
    else:
        ahead = time.clock_gettime(time.CLOCK_REALTIME) - time.clock_gettime(time.CLOCK_BOOTTIME)
        word = "unsynchronised" if state == _TIME_ERROR else "synchronised"
        reading.add("clock", "host", gauges={"ahead_s": ahead}, words={"state": word})
