"""How full a mounted file system of the running machine is: statvfs(3), which asks no other process."""

from __future__ import annotations

import os

from advisor.host.missing import Missing, from_os_error


def read_statvfs(place: str) -> tuple[int, int, int, int] | Missing:
    """Used bytes, bytes that an ordinary user may still write, inodes and free inodes."""
    try:
        found = os.statvfs(place)
    except OSError as error:
        return from_os_error(error)
    used = (found.f_blocks - found.f_bfree) * found.f_frsize
    return used, found.f_bavail * found.f_frsize, found.f_files, found.f_favail
