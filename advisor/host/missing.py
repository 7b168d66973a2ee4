"""What a failed read looks like."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Literal, Protocol, TypeVar

import msgspec


class Missing(msgspec.Struct, frozen=True):
    """A value that could not be had: ``absent`` (does not exist) or ``unreadable`` (exists; ``why`` says more)."""

    state: Literal["absent", "unreadable"]
    why: str

    @property
    def is_absent(self) -> bool:
        return self.state == "absent"


ABSENT = Missing("absent", "does not exist")

# The kernel answers ENODEV or ENXIO for an attribute whose device is gone between the listing and the read.
_ABSENT_ERRNOS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO})


def from_os_error(error: OSError) -> Missing:
    """Absent for a path that is not there, unreadable with the kernel's words for everything else."""
    if error.errno in _ABSENT_ERRNOS:
        return ABSENT
    return Missing("unreadable", os.strerror(error.errno) if error.errno else str(error))


# What identifies a device, whatever its name is now.

# ``("/sys/block/sda/device/wwid", "naa.5000c500…", "shared", "ID_PATH=pci-0000:05:00.0-fc-0x…-lun-1", …)``: a file of
# the device and its words, both empty where the kernel says nothing of it; then marks, in any order:
#   single, shared   whether another device had the same words, or was to be expected
#   ID_PATH=…        udev's name for the place, for arrays MD_UUID=…
#   device=…         where the device link leads to, for SCSI to H:C:T:L
#   diskseq=N@BOOT   the number of the disk within one boot
# A place is recorded only where it distinguishes the device from the others. Earlier versions recorded no marks.
# That of an interrupt is another one: `advisor.host.irqs`.
Identity = tuple[str, ...]


# The reading half of a host, as those parts see it that a host itself is made of.

T = TypeVar("T")


class Reader(Protocol):
    """What `advisor.host.machine.Host` answers of files and links; each with a value or `Missing`."""

    def read(self, path: str) -> str | Missing: ...

    def read_bytes(self, path: str) -> bytes | Missing: ...

    def names(self, path: str) -> tuple[str, ...]: ...

    def real(self, path: str) -> str | Missing: ...

    def exists(self, path: str) -> bool: ...

    def read_once(self, name: str, read: Callable[[], T]) -> T: ...


# How full a mounted file system of the running machine is: statvfs(3), which asks no other process.


def read_statvfs(place: str) -> tuple[int, int, int, int] | Missing:
    """Used bytes, bytes that an ordinary user may still write, inodes and free inodes."""
    try:
        found = os.statvfs(place)
    except OSError as error:
        return from_os_error(error)
    used = (found.f_blocks - found.f_bfree) * found.f_frsize
    return used, found.f_bavail * found.f_frsize, found.f_files, found.f_favail
