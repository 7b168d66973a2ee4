"""Where file contents come from: a directory (``/`` on a live host) or an archive held in memory.

Paths are absolute host paths (``/sys/class/net``). A directory that is not ``/`` is treated as a root of its own:
a symbolic link inside it, absolute or with ``..``, never leads out of it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import IO, Protocol

from advisor.errors import InvalidInputError
from advisor.host.missing import ABSENT, Missing, from_os_error

MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_LINKS = 40  # the kernel's own MAXSYMLINKS
UNRECORDED = "not recorded in this snapshot"
"""Why a file that was seen and never read cannot be read where its archive is opened."""

IS_DIRECTORY = Missing("unreadable", os.strerror(errno.EISDIR))
BYTES_OF_STEP = 16


class ReadBudget:
    """Counted steps that all reads of one captured host may take together, whatever its archive holds.

    A step is a look at one name on the way to a file, one name of a listing, or `BYTES_OF_STEP` bytes of content: some
    microseconds for the reader, the rules and the page together.
    """

    def __init__(self, where: str, steps: int) -> None:
        self._where = where
        self._steps = self._left = steps

    def spend(self, steps: int) -> None:
        """Raises InvalidInputError once they are used up."""
        self._left -= steps
        if self._left < 0:
            raise InvalidInputError(
                f"{self._where}: reading it takes more than {self._steps} steps; a captured host is never so big",
                hint="capture the host again, or remove from the archive what is not of it",
            )


class FileSource(Protocol):
    """Reads of one host's files. Every method takes an absolute host path and never raises for a bad one."""

    def read(self, path: str) -> bytes | Missing: ...

    def listdir(self, path: str) -> tuple[str, ...] | Missing: ...

    def readlink(self, path: str) -> str | Missing: ...

    def real(self, path: str) -> str | Missing: ...

    def is_dir(self, path: str) -> bool: ...


def _missing_from(error: OSError | ValueError) -> Missing:
    # ValueError: a name with a NUL or a lone surrogate, which no file can have.
    return from_os_error(error) if isinstance(error, OSError) else ABSENT


def _holds_procfs(root: str) -> bool:
    """Whether the kernel's own proc(5) is mounted below it, by the number of its first inode (``PROC_ROOT_INO``)."""
    try:
        found = os.stat(f"{root}/proc")
        return found.st_ino == 1 and found.st_dev != os.stat(root).st_dev and os.path.isdir(f"{root}/proc/1")
    except (OSError, ValueError):
        return False


class DirectoryFiles:
    """Files below ``root``; ``/`` reads the running host without any detour."""

    def __init__(self, root: str = "/") -> None:
        self.root = os.path.realpath(root)
        self._live = self.root == "/"
        self._is_node = not self._live and _holds_procfs(self.root)

    def locate(self, path: str) -> str | Missing:
        """The path on this machine that the host path means, every link resolved inside the root."""
        if self._live:
            return path
        real = self._resolve_links(path)
        return real if isinstance(real, Missing) else self.root + real

    def read(self, path: str) -> bytes | Missing:
        place = path if self._live else self.locate(path)
        if isinstance(place, Missing):
            return place
        try:
            # A FIFO or a device node in a captured tree must not hang a scan, and opening one may do things.
            if not self._live and not stat.S_ISREG(kind := os.lstat(place).st_mode):
                return IS_DIRECTORY if stat.S_ISDIR(kind) else Missing("unreadable", "not a regular file")
            fd = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except (OSError, ValueError) as error:
            return _missing_from(error)
        try:
            chunks: list[bytes] = []
            total = 0
            while total < MAX_FILE_BYTES and (chunk := os.read(fd, 65536)):
                chunks.append(chunk)
                total += len(chunk)
            return b"".join(chunks)
        except OSError as error:
            return from_os_error(error)
        finally:
            os.close(fd)

    def listdir(self, path: str) -> tuple[str, ...] | Missing:
        place = self.locate(path)
        if isinstance(place, Missing):
            return place
        try:
            return tuple(sorted(os.listdir(place)))
        except (OSError, ValueError) as error:
            return _missing_from(error)

    def readlink(self, path: str) -> str | Missing:
        parent, _, name = path.rstrip("/").rpartition("/")
        place = self.locate(parent or "/")
        if isinstance(place, Missing):
            return place
        try:
            return os.readlink(f"{place}/{name}")
        except (OSError, ValueError):
            return ABSENT

    def real(self, path: str) -> str | Missing:
        if not self._live:
            return self._resolve_links(path)
        try:
            return os.path.realpath(path, strict=True)
        except (OSError, ValueError) as error:
            return _missing_from(error)

    def is_dir(self, path: str) -> bool:
        place = self.locate(path)
        return not isinstance(place, Missing) and os.path.isdir(place)

    def _resolve_links(self, path: str) -> str | Missing:
        return resolve(path, self._link_target)

    def _link_target(self, path: str) -> str | Missing | None:
        # The /proc of a host that a container has mounted: its own mounts and network are those of the first process,
        # where `self` is this one with those of the container.
        if self._is_node and path == "/proc/self":
            return "1"
        try:
            return os.readlink(self.root + path)
        except (OSError, ValueError) as error:
            # EINVAL: it exists and is no link.
            return None if isinstance(error, OSError) and error.errno == errno.EINVAL else _missing_from(error)


class RememberedFiles:
    """Files of another source, each of which is read once: for a scan or a plan, which reads many and changes none."""

    def __init__(self, source: FileSource) -> None:
        # Not of the class: the answers are those of one source.
        self.read = cache(source.read)
        self.listdir = cache(source.listdir)
        self.readlink = cache(source.readlink)
        self.real = cache(source.real)
        self.is_dir = cache(source.is_dir)


class LinkTarget(Protocol):
    """The target of a link, None for what is no link, Missing for what is not there."""

    def __call__(self, path: str) -> str | Missing | None: ...


def resolve(path: str, target_of: LinkTarget) -> str | Missing:
    """Resolve every symbolic link of an absolute path inside a root, as ``chroot`` would."""
    pending = [part for part in path.split("/") if part not in ("", ".")][::-1]
    done: list[str] = []
    followed = 0
    while pending:
        part = pending.pop()
        if part in ("", "."):
            continue
        if part == "..":
            if done:
                done.pop()
            continue
        target = target_of("/" + "/".join([*done, part]))
        if isinstance(target, Missing):
            return target
        if target is None:
            done.append(part)
            continue
        followed += 1
        if followed > MAX_LINKS:
            return Missing("unreadable", "too many levels of symbolic links")
        if target.startswith("/"):
            done = []
        pending.extend(target.split("/")[::-1])
    return "/" + "/".join(done)


class MemoryFiles:
    """Files of an opened archive: contents, links and directories, none of them ever written to disk.

    ``unreadable`` maps a path to the reason for which the captured host could not read it.
    """

    def __init__(
        self,
        contents: Mapping[str, bytes],
        links: Mapping[str, str] | None = None,
        directories: frozenset[str] = frozenset(),
        unreadable: Mapping[str, str] | None = None,
        budget: ReadBudget | None = None,
    ) -> None:
        self._spend = _spend_nothing if budget is None else budget.spend
        self._contents = contents
        self._links = links or {}
        self._unreadable = unreadable or {}
        names = (*contents,), (*self._links.items(),), (*self._unreadable,)
        self._children, self._directories, self._is_plain = _directory_shape(*names, directories)

    def with_contents(self, contents: Mapping[str, bytes]) -> MemoryFiles:
        """These files, with others or newer ones by any path that leads to them."""
        placed = {self._place(path): data for path, data in contents.items()}
        unreadable = {path: why for path, why in self._unreadable.items() if path not in placed}
        made = MemoryFiles({**self._contents, **placed}, self._links, frozenset(self._children), unreadable)
        made._spend = self._spend
        return made

    def _place(self, path: str) -> str:
        """Where a path leads; what lies below a directory that is not known stays below it."""
        below = ""
        while path and isinstance(self.real(path), Missing):
            path, _, name = path.rpartition("/")
            below = f"/{name}{below}"
        return f"{self.real(path) if path else ''}{below}"

    def read(self, path: str) -> bytes | Missing:
        if self._is_plain and (content := self._contents.get(path)) is not None:
            self._spend(1 + len(content) // BYTES_OF_STEP)
            return content
        real = self.real(path)
        if isinstance(real, Missing):
            return real
        if real in self._unreadable:
            return Missing("unreadable", self._unreadable[real])
        content = self._contents.get(real)
        if content is None:
            return IS_DIRECTORY if real in self._children else ABSENT
        self._spend(len(content) // BYTES_OF_STEP)
        return content

    def listdir(self, path: str) -> tuple[str, ...] | Missing:
        real = self.real(path)
        if isinstance(real, Missing):
            return real
        why = self._unreadable.get(real, UNRECORDED)
        if why != UNRECORDED:  # What is merely unrecorded is a file, and has no listing.
            return Missing("unreadable", why)
        names = self._children.get(real)
        if names is None:
            return ABSENT
        self._spend(len(names))
        return tuple(sorted(names))

    def readlink(self, path: str) -> str | Missing:
        parent, _, name = path.rstrip("/").rpartition("/")
        real = self.real(parent or "/")
        return real if isinstance(real, Missing) else self._links.get(f"{real.rstrip('/')}/{name}", ABSENT)

    def real(self, path: str) -> str | Missing:
        # A scan asks for many names in few directories, and an archive does not change: each is resolved once.
        parent, _, name = path.rpartition("/")
        if name in ("", ".", "..") or not parent:
            return resolve(path, self._link_target)
        above = self._directories.get(parent)
        if above is None:
            above = self._directories[parent] = resolve(parent, self._link_target)
        if isinstance(above, Missing):
            return above
        here = f"{above}/{name}" if above != "/" else f"/{name}"
        target = self._link_target(here)
        return here if target is None else target if isinstance(target, Missing) else resolve(path, self._link_target)

    def is_dir(self, path: str) -> bool:
        real = self.real(path)
        return not isinstance(real, Missing) and real in self._children

    def _link_target(self, path: str) -> str | Missing | None:
        self._spend(1)
        target = self._links.get(path)
        if target is not None:
            return target
        known = path in self._contents or path in self._children or path in self._unreadable
        return None if known else ABSENT


def _spend_nothing(_steps: int) -> None:
    """For a host that no archive holds."""


@lru_cache(maxsize=2)
def _directory_shape(
    contents: tuple[str, ...],
    links: tuple[tuple[str, str], ...],
    unreadable: tuple[str, ...],
    directories: frozenset[str],
) -> tuple[Mapping[str, Collection[str]], dict[str, str | Missing], bool]:
    """The names in each directory, where directories lead that have been asked for, and whether each file is what its
    path says: none is a link or unreadable as well, and none lies below a link.

    Nothing but names goes into it, so hosts of one kind, whose archives hold the same names, share it.
    """
    linked = {path for path, _target in links}
    children = _list_children([*contents, *linked, *directories, *unreadable], directories)
    is_plain = linked.isdisjoint(children) and not linked.union(unreadable).intersection(contents)
    return children, {}, is_plain


def _list_children(paths: list[str], directories: frozenset[str]) -> dict[str, set[str]]:
    children: dict[str, set[str]] = {"/": set()}
    for directory in directories:
        children.setdefault(directory, set())
    for path in paths:
        while path != "/":
            parent, _, name = path.rpartition("/")
            parent = parent or "/"
            known = children.setdefault(parent, set())
            if name in known:
                break
            known.add(name)
            path = parent
    return children


# Files that a user names as input: a profile, a snapshot.


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
