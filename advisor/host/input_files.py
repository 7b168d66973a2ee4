"""Files that a user names as input: a profile, a snapshot."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

from advisor.errors import InvalidInputError


def open_given(path: Path) -> IO[bytes]:
    """A regular file, open for reading. Raises InvalidInputError for any other kind, and OSError.

    A FIFO could keep us waiting for ever, a device has no end, and to open some of those does something already.
    """
    if "\0" in str(path):
        # Python refuses such a path with a ValueError; a saved document may name one.
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    kind = path.stat().st_mode
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(kind):
        raise InvalidInputError(f"{path}: not a regular file")
    # It may be another by now: do not wait for it.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise InvalidInputError(f"{path}: not a regular file")
    return open(fd, "rb")
