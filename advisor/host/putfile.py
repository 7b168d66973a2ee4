"""Atomic replacement of a file: a reader, a crash or a power cut sees the old content or the new, never a mixture."""

from __future__ import annotations

import contextlib
import os

from advisor.errors import UsageError


def put_file(path: str, content: bytes | None, *, mode: int, uid: int, gid: int) -> None:
    """Make ``path`` hold ``content``, or remove it where that is None. Missing parent directories are made.

    Temporary file in the same directory, fsync, rename, fsync of the directory. A symbolic link in the last
    place is replaced, not followed. Raises OSError; the old file is then untouched.
    """
    parent, name = os.path.split(path)
    if content is None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
            sync_directory(parent)
        return
    _make_directory(parent)
    temporary = f"{parent}/.{name}.{os.getpid()}.new"
    with contextlib.suppress(FileNotFoundError):
        # Left by a process of this number that a crash ended.
        os.unlink(temporary)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(fd, view) :]
            if os.geteuid() == 0:
                os.fchown(fd, uid, gid)
            os.fchmod(fd, mode)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    sync_directory(parent)


def _make_directory(path: str) -> None:
    """With its parents, each of mode 0755 whatever the umask, and durable."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    _make_directory(parent)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path)
        os.chmod(path, 0o755)
        sync_directory(parent)


def save_output(path: str, content: bytes, *, mode: int) -> None:
    """Write a file that a user asked for: a new one, or a regular one in place of an earlier.

    Raises UsageError for a directory that is missing and for a path that is a link, a device or a pipe: replacing
    one of those would take something away that is no earlier output.
    """
    place = os.path.abspath(path)
    if not os.path.isdir(os.path.dirname(place)):
        raise UsageError(f"{path}: there is no such directory", hint="make it first")
    if os.path.lexists(place) and (os.path.islink(place) or not os.path.isfile(place)):
        raise UsageError(f"{path}: is there and is no regular file", hint="name a file that is new or may be replaced")
    try:
        put_file(place, content, mode=mode, uid=os.geteuid(), gid=os.getegid())
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}", hint="name a file in a directory that you can write to"
        ) from error


def sync_directory(path: str) -> None:
    """Make names in a directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
