"""The way to a file that root writes: walked one open directory at a time, so that nobody else decides where it ends.

Whoever can write to a directory on the way can put a symbolic link there, also between a look and a write. So every
name is opened relative to the directory before it, never by its whole path, and root follows a link only where the link
and the directory that holds it are root's own: ``/etc/systemd`` may well be one, and sysfs is full of them. Without
root's rights every link is followed, as it could lead nowhere that its owner cannot go.

Paths are absolute paths inside ``root``; no link, absolute or with ``..``, leads out of it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from advisor.errors import InvalidInputError, PermissionDeniedError, RefusedError
from advisor.host.files import MAX_LINKS

DIRECTORY_MODE = 0o755
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITABLE_FOR_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class AstrayError(OSError):
    """A path that leads, or could be led, elsewhere; ``why`` names the place."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(number, why)
        self.why = why


@contextlib.contextmanager
def directory(path: str, *, root: str = "/", make: bool = False) -> Iterator[int]:
    """A descriptor of a directory, good as ``dir_fd`` only.

    With ``make``, directories that are missing are made, each of mode 0755 whatever the umask, and durable. Raises
    OSError, AstrayError among them.
    """
    with contextlib.closing(_Walk(root)) as walk:
        walk.follow(path, make=make)
        if walk.file is not None:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        yield walk.here


@contextlib.contextmanager
def existing_file(path: str, flags: int, *, root: str = "/") -> Iterator[int]:
    """A regular file that is there already and has no second name, opened with ``flags``.

    What is no regular file (a device, a FIFO) is not even opened. Raises OSError, AstrayError among them.
    """
    with contextlib.closing(_Walk(root)) as walk:
        walk.follow(path)
        if walk.file is None:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        status = os.fstat(walk.file)
        if not stat.S_ISREG(status.st_mode):
            raise AstrayError(errno.EINVAL, f"{path}: not a regular file")
        if status.st_nlink > 1:
            raise AstrayError(errno.EMLINK, f"{path}: has more than one name, so that another file would change too")
        # The very file that was looked at, whatever its name means by now.
        fd = os.open(f"/proc/self/fd/{walk.file}", flags | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)


def is_roots_alone(path: str) -> bool:
    """Whether a file is there that nobody but root can change or put another one in the place of.

    Root's own are the file, the directory that holds it, each link that leads to it, and all directories on the way;
    only those above it may be written to by others, and only where the sticky bit keeps what is root's.
    """
    try:
        with contextlib.closing(_Walk("/", wants_roots=True)) as walk:
            walk.follow(path)
            return walk.file is not None and not os.fstat(walk.here).st_mode & _WRITABLE_FOR_OTHERS
    except (OSError, ValueError):
        return False


class _Walk:
    """The open directories from ``root`` down to where a walk has come, and ``file``, what else it ended at."""

    def __init__(self, root: str, *, wants_roots: bool = False) -> None:
        self._wants_roots = wants_roots
        self._fds = [os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)]
        self.file: int | None = None

    @property
    def here(self) -> int:
        return self._fds[-1]

    def close(self) -> None:
        self._back_to(0)
        if self.file is not None:
            os.close(self.file)

    def _back_to(self, depth: int) -> None:
        while len(self._fds) > depth:
            os.close(self._fds.pop())

    def follow(self, path: str, *, make: bool = False) -> None:
        """Go down ``path``, links included."""
        names = [name for name in path.split("/") if name not in ("", ".")]
        # Each with the part of the path that it ends; the names of a link's target are never made.
        pending = [(name, "/" + "/".join(names[: at + 1]), make) for at, name in enumerate(names)][::-1]
        links = 0
        while pending:
            name, place, may_make = pending.pop()
            if self.file is not None:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            if name == "..":
                self._back_to(max(1, len(self._fds) - 1))
                continue
            try:
                target = self._enter_name(name, place, make=may_make)
            except FileNotFoundError as error:
                if make and not may_make:
                    # On another day, or on this machine instead of in a tree, it may well lead somewhere.
                    raise AstrayError(errno.ENOENT, f"{place}: a symbolic link to what is not there") from error
                raise
            if target is None:
                continue
            links += 1
            if links > MAX_LINKS:
                raise AstrayError(errno.ELOOP, f"{place}: too many levels of symbolic links")
            if target.startswith("/"):
                self._back_to(1)
            pending += [(part, place, False) for part in reversed(target.split("/")) if part not in ("", ".")]

    def _enter_name(self, name: str, place: str, *, make: bool) -> str | None:
        """Step onto ``name``; the target of a link that is to be followed."""
        try:
            self._fds.append(self._open_name(name, make=make))
            self._check_owner(self.here, place, is_directory=True)
            return None
        except NotADirectoryError:
            fd = os.open(name, _LOOK, dir_fd=self.here)
        status = os.fstat(fd)
        if not stat.S_ISLNK(status.st_mode):
            self.file = fd
            self._check_owner(fd, place, is_directory=False)
            return None
        try:
            if (self._wants_roots or os.geteuid() == 0) and not self._is_roots_own(status):
                raise AstrayError(errno.ELOOP, f"{place}: a symbolic link that others than root may have put there")
            return os.readlink("", dir_fd=fd)
        finally:
            os.close(fd)

    def _open_name(self, name: str, *, make: bool) -> int:
        # With O_DIRECTORY a file system that is mounted on demand is mounted.
        try:
            return os.open(name, _LOOK | os.O_DIRECTORY, dir_fd=self.here)
        except FileNotFoundError:
            if not make:
                raise
        # A directory of mode 0755 whatever the umask, durable; one that is there already is left as it is.
        before = os.umask(0o777 & ~DIRECTORY_MODE)
        try:
            # Not by a chmod afterwards: by then the name may mean another directory.
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, DIRECTORY_MODE, dir_fd=self.here)
        finally:
            os.umask(before)
        sync(self.here)
        return os.open(name, _LOOK | os.O_DIRECTORY, dir_fd=self.here)

    def _check_owner(self, fd: int, place: str, *, is_directory: bool) -> None:
        if not self._wants_roots:
            return
        status = os.fstat(fd)
        is_guarded = not status.st_mode & _WRITABLE_FOR_OTHERS or (is_directory and status.st_mode & stat.S_ISVTX)
        if status.st_uid != 0 or not is_guarded:
            raise AstrayError(errno.EPERM, f"{place}: others than root can change it")

    def _is_roots_own(self, link: os.stat_result) -> bool:
        """Whether nobody but root can have made a link, or moved it to where it is."""
        around = os.fstat(self.here)
        return link.st_uid == around.st_uid == 0 and not around.st_mode & _WRITABLE_FOR_OTHERS


def sync(dir_fd: int) -> None:
    """Make the names in a directory durable."""
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# Directories and files that root acts upon later: made so that nobody else can write there, and read only if so.

TRUSTED_DIRECTORY_MODE = 0o700
FILE_MODE = 0o600


def make_own_directory(path: str) -> None:
    """A directory that its owner alone can go into, its parents of mode 0755. Raises RefusedError, OSError."""
    place = os.path.abspath(path)
    with directory(os.path.dirname(place), make=True) as here:
        try:
            os.mkdir(os.path.basename(place), TRUSTED_DIRECTORY_MODE, dir_fd=here)
            sync(here)
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
            f"{path}: not a directory that only its owner can write to", hint=_make_own(path, TRUSTED_DIRECTORY_MODE)
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
