"""What a failed read looks like."""

from __future__ import annotations

import errno
import os
from typing import Literal

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
