"""What `tests.transaction.live` does, stopped (SIGSTOP) at its n-th point: a write to disk, or before or after a step.

usage: python -m tests.transaction.hanging N STORE WORDS…
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from advisor.errors import AdvisorError
from advisor.host import Host, Step
from tests.transaction.live import main


def stopping(at: int) -> None:
    left = at

    def point() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGSTOP)

    fsync, do = os.fsync, Host.do

    def stopping_fsync(fd: Any) -> None:
        fsync(fd)
        point()

    def stopping_do(self: Host, step: Step) -> None:
        point()
        do(self, step)
        point()

    os.fsync = stopping_fsync
    Host.do = stopping_do  # type: ignore[method-assign]


if __name__ == "__main__":
    stopping(int(sys.argv[1]))
    try:
        main(sys.argv[2:])
    except AdvisorError as error:
        print(error.message, file=sys.stderr)
        raise SystemExit(error.exit_code) from None
