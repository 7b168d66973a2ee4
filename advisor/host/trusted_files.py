"""Directories and files that root acts upon later: made so that nobody else can write there, and read only if so.

A journal says what is written into the kernel and into which file, so one that somebody else can write is as good as a
root shell. Owner and mode are asked of the open file, not of its name.
"""

from __future__ import annotations

import errno
import os
import stat

from advisor.errors import InvalidInputError, PermissionDeniedError, RefusedError
from advisor.host import safe_open as walk

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
_WRITABLE_FOR_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def make_own_directory(path: str) -> None:
    """A directory that its owner alone can go into, its parents of mode 0755. Raises RefusedError, OSError."""
    place = os.path.abspath(path)
    with walk.directory(os.path.dirname(place), make=True) as here:
        try:
            os.mkdir(os.path.basename(place), DIRECTORY_MODE, dir_fd=here)
            walk.sync(here)
        except FileExistsError:
            check_own_directory(path)


def named_directory() -> str | None:
    """The directory that ADVISOR_STATE_DIR names in place of the usual one, if it does."""
    return os.environ.get("ADVISOR_STATE_DIR") or None


def check_own_directory(path: str) -> None:
    """Raises RefusedError for a directory that others can write to, or that is none; OSError where it is not there."""
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        if stat.S_ISLNK(status.st_mode):
            hint = f"name the directory itself: ADVISOR_STATE_DIR={_quote_path(os.path.realpath(path))}"
            raise RefusedError(f"{path}: a symbolic link, which is not followed here", hint=hint)
        is_named = named_directory() is not None or stat.S_ISCHR(status.st_mode)
        raise RefusedError(
            f"{path}: not a directory that only its owner can write to",
            hint="name another directory: ADVISOR_STATE_DIR" if is_named else _see_and_remove(path),
        )
    if not _is_own(status):
        raise RefusedError(
            f"{path}: not a directory that only its owner can write to", hint=_make_own(path, DIRECTORY_MODE)
        )


def open_own_file(path: str, flags: int) -> int:
    """A regular file that its owner alone can write to; one that is made for ``os.O_CREAT`` is.

    Raises RefusedError for any other, OSError where it cannot be opened.
    """
    try:
        # O_NONBLOCK: a FIFO must not hold us up.
        fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, FILE_MODE)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise RefusedError(f"{path}: not a regular file", hint=_see_and_remove(path)) from error
        raise
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise RefusedError(f"{path}: not a regular file", hint=_see_and_remove(path))
        check_trusted(fd, path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def check_trusted(fd: int, path: str) -> None:
    """Raises RefusedError for an open file that anybody but root and this user can write to."""
    if not _is_own(os.fstat(fd)):
        raise RefusedError(f"{path}: not a file that only its owner can write to", hint=_make_own(path, FILE_MODE))


def read_own_file(path: str, *, limit: int) -> bytes:
    """The content of one of advisor's files in one of advisor's directories.

    Raises RefusedError where somebody else could have written it, InvalidInputError where it holds more than ``limit``
    bytes, OSError.
    """
    check_own_directory(os.path.dirname(path))
    with open(open_own_file(path, os.O_RDONLY), "rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise InvalidInputError(f"{path}: larger than {limit >> 20} MiB, which nothing that advisor writes is")
    return content


def _is_own(status: os.stat_result) -> bool:
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & _WRITABLE_FOR_OTHERS


def _see_and_remove(path: str) -> str:
    return f"see what it is, then: rm {_quote_path(path)}"


def _make_own(path: str, mode: int) -> str:
    owner = "root" if os.geteuid() == 0 else str(os.geteuid())
    return f"if you trust what it holds: chown {owner} {_quote_path(path)} && chmod {mode:o} {_quote_path(path)}"


def _quote_path(path: str) -> str:
    from shlex import quote

    return quote(path)


def need_root() -> None:
    """Raises PermissionDeniedError for anybody else."""
    if os.geteuid() != 0:
        raise PermissionDeniedError("changing a host needs root", hint="run it with sudo; advisor plan needs no root")
