"""Space on disk that a transaction needs until its end, taken before its first step.

It is one file in the transaction's directory. A write there that finds the disk full removes it and tries once more.
The scripts do the same (``templates/transaction_journal.sh.j2``).
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from advisor.host.safe_open import open_own_file
from advisor.shell.state_table import RESERVE

T = TypeVar("T")

_FULL = (errno.ENOSPC, errno.EDQUOT)
_READ_ONLY = (errno.EROFS, errno.EPERM, errno.EACCES)
"""A read-only file system; for root also an immutable file, or one on NFS that maps root to nobody."""
_BLOCK_BYTES = 4096
_SMALL_FILES = 16
"""State files, directory blocks and inodes: one block each."""
_ITEM_BYTES = 700
"""Of journal and outcome for each item: two announcements, what became of it, the line of the rollback script."""


def needed_bytes(plan_bytes: int, script_bytes: int, items: int) -> int:
    """What a transaction may still write, in bytes: entries that hold the plan again, its scripts, a line each item."""
    exact = 2 * plan_bytes + 2 * script_bytes + items * _ITEM_BYTES
    return (-(-exact // _BLOCK_BYTES) + _SMALL_FILES) * _BLOCK_BYTES


def reserve_space(directory: Path, size: int) -> None:
    """Take ``size`` bytes for the transaction in ``directory``. Raises OSError with nothing left there."""
    path = directory / RESERVE
    fd = open_own_file(str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)


def release_space(directory: Path) -> bool:
    """Give the space free. False where none was taken."""
    try:
        os.unlink(directory / RESERVE)
    except OSError:
        return False
    return True


def is_full(error: OSError) -> bool:
    return error.errno in _FULL


def is_read_only(error: OSError) -> bool:
    return error.errno in _READ_ONLY


def with_reserve(directory: Path, write: Callable[[], T]) -> T:
    """What ``write`` returns; where the disk is full it is tried again with the reserved space. Raises OSError."""
    try:
        return write()
    except OSError as error:
        if not is_full(error) or not release_space(directory):
            raise
    return write()


def ignore_errors(write: Callable[[], object]) -> bool:
    """Whether ``write`` could be done: for what a rollback writes, and must not depend on."""
    with contextlib.suppress(OSError):
        write()
        return True
    return False
