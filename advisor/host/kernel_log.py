"""The kernel's own log of the running machine, read without waiting for more of it.

Source: Linux Documentation/ABI/testing/dev-kmsg: one record for each read; EPIPE where records were overwritten.
"""

from __future__ import annotations

import errno
import os

from advisor.host.missing import Missing, from_os_error

_RECORD_BYTES = 8192
_MAX_RECORDS = 60_000


def read_kernel_log() -> str | Missing:
    """The records that the kernel still holds, oldest first, a line each and lines of keys below it; root may read
    them, an ordinary user where ``kernel.dmesg_restrict`` is 0."""
    found: list[bytes] = []
    try:
        fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return from_os_error(error)
    try:
        for _ in range(_MAX_RECORDS):
            try:
                found.append(os.read(fd, _RECORD_BYTES))
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.EPIPE:
                    return from_os_error(error)
    finally:
        os.close(fd)
    return b"".join(found).decode("utf-8", "replace")
