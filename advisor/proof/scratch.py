"""The scratch file: the one thing that fio may write to, made by us and proven to be ours before every use.

What is guarded against (each was seen): a mistyped device name that becomes a regular file, a path that is
swapped for a link or for another file, sparse files whose reads are faked at memory speed, file systems in memory,
and a file system run full. Names are resolved relative to directory descriptors, never through links.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import msgspec

from advisor.errors import CommandError, RefusedError, UsageError
from advisor.host.patterns import lazy_regex
from advisor.proof.target import MeasuredTarget
from advisor.proof.workloads import THREADS_MAX

MIB = 1024 * 1024
GIB = 1024 * MIB
CHUNK_BYTES = 4 * MIB
SYNC_EVERY_BYTES = 64 * MIB
KEEP_FREE_BYTES = 5 * GIB
KEEP_FREE_SHARE = 0.10
MINIMUM_SCRATCH_BYTES = 64 * MIB
DIRECTORY_PREFIX = ".advisor-proof-"
FILE_NAME = "scratch"

Identity = tuple[int, int]
"""``st_dev`` and ``st_ino``."""


class ScratchChangedError(CommandError):
    """The scratch file or its directory is no longer the one that was made; it is not written to nor removed."""

    kind = "scratch-changed"


class Keep(msgspec.Struct, frozen=True):
    """What must stay free on the file system: the larger of the two, of the bytes no more than a quarter of it."""

    free_bytes: int = KEEP_FREE_BYTES
    free_share: float = KEEP_FREE_SHARE

    def of(self, size_bytes: int) -> int:
        """Bytes to keep free on a file system of that size."""
        return max(min(self.free_bytes, size_bytes // 4), int(size_bytes * self.free_share))

    def room_of(self, size_bytes: int, free_bytes: int) -> int:
        """Bytes that may be filled on a file system of that size."""
        return max(0, free_bytes - self.of(size_bytes))


DEFAULT_KEEP = Keep()


class Area(Protocol):
    """What fio may touch: a scratch file, or a disk that is held."""

    @property
    def file_name(self) -> str:
        """The name that fio opens."""

    @property
    def is_read_only(self) -> bool:
        """Whether fio must not write."""

    def opened(self) -> AbstractContextManager[int]:
        """A descriptor of the directory to start fio in, after the check that all is as it was."""

    def after_remount(self) -> Area:
        """The same after file systems were remounted."""

    def remove(self) -> None:
        """Leave it as it is to be left."""


class Scratch(msgspec.Struct, frozen=True):
    """A scratch file that exists: its directory, its size, and who it was when it was made."""

    directory: str
    size_bytes: int
    directory_identity: Identity
    file_identity: Identity

    @property
    def path(self) -> str:
        return f"{self.directory}/{FILE_NAME}"

    @property
    def file_name(self) -> str:
        """Relative to the directory that `opened` gives."""
        return FILE_NAME

    @property
    def is_read_only(self) -> bool:
        return False

    def check(self) -> None:
        """Raise ScratchChangedError unless directory and file are still the ones that were made."""
        with self.opened():
            pass

    @contextmanager
    def opened(self) -> Iterator[int]:
        """A descriptor of the directory, after the check: fio starts in it and names the file relatively."""
        descriptor = _open_directory(self.directory)
        try:
            if _file_identity(os.fstat(descriptor)) != self.directory_identity:
                raise ScratchChangedError(f"{self.directory} is not the directory that was made; left alone")
            try:
                found = os.stat(FILE_NAME, dir_fd=descriptor, follow_symlinks=False)
            except OSError as error:
                raise ScratchChangedError(f"{self.path}: {os.strerror(error.errno or 0)}") from error
            if _file_identity(found) != self.file_identity or not stat.S_ISREG(found.st_mode):
                raise ScratchChangedError(f"{self.path} is not the file that was made; left alone")
            if found.st_size != self.size_bytes:
                raise ScratchChangedError(f"{self.path} has {found.st_size} bytes instead of {self.size_bytes}")
            yield descriptor
        finally:
            os.close(descriptor)

    def after_remount(self) -> Scratch:
        """The same file after a remount of its file system, which may give it another device number.

        Raises ScratchChangedError where inode numbers or the size are no longer the same.
        """
        try:
            directory = os.stat(self.directory, follow_symlinks=False)
            file = os.stat(self.path, follow_symlinks=False)
        except OSError as error:
            raise ScratchChangedError(f"{self.path} after the remount: {os.strerror(error.errno or 0)}") from error
        if (directory.st_ino, file.st_ino) != (self.directory_identity[1], self.file_identity[1]):
            raise ScratchChangedError(f"{self.path} is not the file that was made before the remount; left alone")
        found = msgspec.structs.replace(
            self, directory_identity=_file_identity(directory), file_identity=_file_identity(file)
        )
        found.check()
        return found

    def remove(self) -> None:
        """Unlink file and directory, if they are still ours. Raises ScratchChangedError if not."""
        with self.opened() as descriptor:
            os.unlink(FILE_NAME, dir_fd=descriptor)
        try:
            os.rmdir(self.directory)
        except OSError as error:
            raise ScratchChangedError(f"{self.directory}: {os.strerror(error.errno or 0)}") from error


def _file_identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino


def _open_directory(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise ScratchChangedError(f"{path}: {os.strerror(error.errno or 0)}") from error


def require_space(target: MeasuredTarget, size_bytes: int, keep: Keep = DEFAULT_KEEP) -> None:
    """Raise RefusedError where the scratch file would leave too little free."""
    kept = keep.of(target.size_bytes)
    if target.free_bytes - size_bytes < kept:
        raise RefusedError(
            (
                f"{target.path}: {target.free_bytes // MIB} MiB free; a scratch file of {size_bytes // MIB} MiB "
                f"would leave less than the {kept // MIB} MiB that stay free"
            ),
            hint=f"--file-size {room // MIB}MiB leaves enough"
            if (room := target.free_bytes - kept) >= MINIMUM_SCRATCH_BYTES
            else f"free {(MINIMUM_SCRATCH_BYTES - room) // MIB + 1} MiB, or choose another --target",
        )


def left_behind(target: MeasuredTarget) -> tuple[str, ...]:
    """Scratch directories that a session left there which was killed; or one that is running has them now."""
    try:
        with os.scandir(target.path) as found:
            names = sorted(one.name for one in found if one.name.startswith(DIRECTORY_PREFIX) and one.is_dir())
    except OSError:
        return ()
    return tuple(f"{target.path}/{name}" for name in names)


def has_holes(descriptor: int, size_bytes: int) -> bool:
    """Whether any part of an open file is not allocated (lseek(2), SEEK_HOLE)."""
    return os.lseek(descriptor, 0, os.SEEK_HOLE) < size_bytes


@contextmanager
def scratch_file(
    target: MeasuredTarget, size_bytes: int, *, keep: Keep = DEFAULT_KEEP, check_stop: Callable[[], None] = lambda: None
) -> Iterator[Scratch]:
    """`make_scratch` for the time of the block; removed at its end."""
    scratch = make_scratch(target, size_bytes, keep=keep, check_stop=check_stop)
    try:
        yield scratch
    finally:
        scratch.remove()


def make_scratch(
    target: MeasuredTarget,
    size_bytes: int,
    *,
    keep: Keep = DEFAULT_KEEP,
    check_stop: Callable[[], None] = lambda: None,
    on_made: Callable[[str, int, int], None] = lambda _path, _device, _inode: None,
) -> Scratch:
    """A fully written scratch file of that size inside the target.

    ``on_made`` is called with the directory, its device and its inode before anything is written into it.

    ``check_stop`` is called between the chunks and may raise. Raises RefusedError where space is short, and
    CommandError with the kernel's words where writing fails; nothing is left behind in either case.
    """
    require_space(target, size_bytes, keep)
    parent = _open_directory(target.path)
    name = DIRECTORY_PREFIX + secrets.token_hex(8)
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
        try:
            return _make_in(parent, name, target, size_bytes, check_stop, on_made)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(f"{name}/{FILE_NAME}", dir_fd=parent)
            with contextlib.suppress(OSError):
                os.rmdir(name, dir_fd=parent)
            raise
    except OSError as error:
        raise CommandError(f"{target.path}/{name}: {os.strerror(error.errno or 0)}") from error
    finally:
        os.close(parent)


def _make_in(
    parent: int,
    name: str,
    target: MeasuredTarget,
    size_bytes: int,
    check_stop: Callable[[], None],
    on_made: Callable[[str, int, int], None],
) -> Scratch:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    directory = os.open(name, flags, dir_fd=parent)
    try:
        made = os.fstat(directory)
        if made.st_uid != os.geteuid() or stat.S_IMODE(made.st_mode) != 0o700:
            raise ScratchChangedError(f"{target.path}/{name} is not the directory that was made")
        on_made(f"{target.path}/{name}", made.st_dev, made.st_ino)
        creating = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(FILE_NAME, creating, 0o600, dir_fd=directory)
        try:
            # Random data: what compresses or deduplicates well is stored nowhere and read back at memory speed.
            written = 0
            while written < size_bytes:
                check_stop()
                chunk = memoryview(os.urandom(min(CHUNK_BYTES, size_bytes - written)))
                while chunk:
                    done = os.write(descriptor, chunk)
                    chunk = chunk[done:]
                    written += done
                if written % SYNC_EVERY_BYTES == 0:
                    # in steps, so that a signal is not kept waiting by one long flush
                    os.fdatasync(descriptor)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            if has_holes(descriptor, size_bytes):
                raise CommandError(f"{target.path}/{name}/{FILE_NAME} has holes although it was fully written")
            identity = _file_identity(os.fstat(descriptor))
        finally:
            os.close(descriptor)
        return Scratch(f"{target.path}/{name}", size_bytes, _file_identity(made), identity)
    finally:
        os.close(directory)


# Sizes of scratch files as a person writes them, and thread counts of a sweep.

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = lazy_regex(r"([0-9]{1,15})(?:([kmgt])i?b?)?", re.IGNORECASE | re.ASCII)
_TIMES_MEMORY = lazy_regex(r"([0-9]{1,2}(?:\.[0-9])?)x", re.ASCII)
_COUNT = lazy_regex(r"[0-9]{1,6}", re.ASCII)


def file_size(text: str, memory_bytes: int | None) -> int:
    """The size of a scratch file in bytes, whole MiB: ``64GiB``, ``512M`` or ``1048576`` (units are binary), or ``2x``
    for that many times this host's memory, so that no cache holds the file. Raises UsageError."""
    times = _TIMES_MEMORY.fullmatch(text.strip().lower())
    if times is None:
        match = _SIZE.fullmatch(text.strip())
        if match is None or int(match[1]) == 0:
            raise UsageError(f"--file-size {text}: expected a size such as 512MiB or 64GiB")
        wanted = int(match[1]) * _UNITS[(match[2] or "").lower()]
    else:
        wanted = int(float(times[1]) * (memory_bytes or 0))
        if wanted <= 0:
            raise UsageError(f"--file-size {text}: the memory of this host is unknown", hint="--file-size 64GiB")
    return -(-wanted // MIB) * MIB


def thread_counts(text: str) -> tuple[int, ...]:
    """``1,4,16`` or ``1..1024`` (powers of two from the first to the last, which is included). Raises UsageError."""
    first, dots, last = text.partition("..")
    words = [first, last] if dots else text.split(",")
    if not all(_COUNT.fullmatch(word.strip()) for word in words):
        raise UsageError(f"--threads {text}: expected numbers such as 1,4,16 or a range such as 1..1024")
    found = [int(word) for word in words]
    if not all(1 <= one <= THREADS_MAX for one in found) or (dots and found[0] > found[1]):
        raise UsageError(f"--threads {text}: expected 1 to {THREADS_MAX} threads, the smaller number first")
    if dots:
        low, high = found
        found = [low]
        while found[-1] * 2 < high:
            found.append(found[-1] * 2)
        found += [high] if high > low else []
    return tuple(sorted(set(found)))
