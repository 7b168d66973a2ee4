"""Atomic replacement of a file: a reader, a crash or a power cut sees the old content or the new, never a mixture."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from advisor.errors import UsageError
from advisor.host import safe_open as walk

# They vouch for the content, which is another one now.
_OF_THE_CONTENT = frozenset({"security.ima", "security.evm", "security.capability"})
_ACCESS_LIST = "system.posix_acl_access"
_NAME_BYTES = 240  # of 255, so that there is room for what is put around it


def fixed_temporary(path: str) -> str:
    """The temporary name that replacing ``path`` uses under the store's lock: whoever comes later can remove it."""
    parent, name = os.path.split(path)
    return os.path.join(parent, os.fsdecode(_temporary_name(name)))


def _temporary_name(name: str) -> bytes:
    return b".%b.advisor.new" % os.fsencode(name)[:_NAME_BYTES]


def remove_temporary(path: str, *, root: str = "/") -> None:
    """Remove what a killed process has left of a replacement of ``path``. Raises OSError."""
    parent, name = os.path.split(path)
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), walk.directory(parent, root=root) as here:
        os.unlink(_temporary_name(name), dir_fd=here)
        walk.sync(here)


def put_file(
    path: str,
    content: bytes | None,
    *,
    mode: int,
    uid: int,
    gid: int,
    root: str = "/",
    is_alone: bool = False,
    is_durable: bool = True,
) -> None:
    """Make ``path`` hold ``content``, or remove it where that is None. Missing parent directories are made.

    Temporary file in the same directory, fsync, rename, fsync of the directory. What has the name is replaced, be it a
    symbolic link or a FIFO, and neither followed nor opened; the access list and the extended attributes of a file that
    is replaced are kept. ``path`` lies inside ``root`` and is opened as in `advisor.host.safe_open`. With ``is_alone``
    (the caller holds the store's lock) the temporary name is `fixed_temporary`, so that a kill leaves no unknown
    name. Without ``is_durable`` nothing is flushed: for what a power cut makes void.

    Raises OSError; the old file is then untouched.
    """
    parent, name = os.path.split(path if os.path.isabs(path) else os.path.join(os.getcwd(), path))
    if content is None:
        with contextlib.suppress(FileNotFoundError), walk.directory(parent, root=root) as here:
            os.unlink(name, dir_fd=here)
            walk.sync(here)
        return
    with walk.directory(parent, root=root, make=True) as here:
        temporary = (
            _temporary_name(name) if is_alone else b".%b.%d.new" % (os.fsencode(name)[:_NAME_BYTES], os.getpid())
        )
        _replace_file(name, here, temporary, content, mode=mode, uid=uid, gid=gid, is_durable=is_durable)
        if is_durable:
            walk.sync(here)


def _replace_file(
    name: str, here: int, temporary: bytes, content: bytes, *, mode: int, uid: int, gid: int, is_durable: bool
) -> None:
    with contextlib.suppress(FileNotFoundError):
        # Left by a process of this number that a crash ended.
        os.unlink(temporary, dir_fd=here)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=here)
    try:
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(fd, view) :]
            if os.geteuid() == 0:
                os.fchown(fd, uid, gid)
            _keep_attributes(name, here, fd)
            # Last: a change of owner takes set-user-ID away, and the mode bounds what an access list allows.
            os.fchmod(fd, mode)
            if is_durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, name, src_dir_fd=here, dst_dir_fd=here)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=here)
        raise


def _keep_attributes(name: str, here: int, fd: int) -> None:
    """Give ``fd`` the access list, the security label and the other attributes of the file that it will replace."""
    try:
        old = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISREG(os.fstat(old).st_mode):
            return
        wanted = _read_attributes(old)
    finally:
        os.close(old)
    has = _read_attributes(fd)
    if _ACCESS_LIST in has and _ACCESS_LIST not in wanted:
        # Every new file of a directory may be given one.
        os.removexattr(fd, _ACCESS_LIST)
    for attribute, value in wanted.items():
        if has.get(attribute) != value:
            _set_attribute(fd, attribute, value)


def _read_attributes(fd: int) -> dict[str, bytes]:
    """Name and value of each; none where the file system has none."""
    # By way of /proc, since a descriptor that was opened for looking only cannot be asked.
    place = f"/proc/self/fd/{fd}"
    try:
        names = [name for name in os.listxattr(place) if name not in _OF_THE_CONTENT]
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return {}
        raise
    found: dict[str, bytes] = {}
    for name in names:
        try:
            found[name] = os.getxattr(place, name)
        except OSError as error:
            # Taken away in the meantime.
            if error.errno != errno.ENODATA:
                raise
    return found


def _set_attribute(fd: int, name: str, value: bytes) -> None:
    try:
        os.setxattr(fd, name, value)
    except OSError as error:
        # A label that no security module of this kernel answers for.
        if error.errno != errno.ENOTSUP or not name.startswith("security."):
            raise


def remove_empty(path: str, *, root: str = "/") -> None:
    """Remove a directory if it is empty. Raises OSError where it is not, or is no directory."""
    parent, name = os.path.split(path)
    with walk.directory(parent, root=root) as here:
        os.rmdir(name, dir_fd=here)


def check_output(path: str) -> None:
    """Raise UsageError where `save_output` could not write, before the work whose result it is. Leaves nothing."""
    import tempfile  # 4 ms, and few calls write a file

    place = _locate_output(path)
    try:
        # Asking for permission would not do: root is allowed in places where no file can be made.
        with tempfile.TemporaryFile(dir=os.path.dirname(place)):
            pass
    except OSError as error:
        raise _explain_output(path, error) from error


def save_output(path: str, content: bytes, *, mode: int) -> None:
    """Write a file that a user asked for: a new one, or a regular one in place of an earlier.

    Raises UsageError for a directory that is missing and for a path that is a link, a device or a pipe: replacing
    one of those would take something away that is no earlier output.
    """
    place = _locate_output(path)
    try:
        put_file(place, content, mode=mode, uid=os.geteuid(), gid=os.getegid())
    except OSError as error:
        raise _explain_output(path, error) from error


def _locate_output(path: str) -> str:
    place = os.path.abspath(path)
    if not os.path.isdir(os.path.dirname(place)):
        raise UsageError(f"{path}: there is no such directory", hint="make it first")
    if os.path.lexists(place) and (os.path.islink(place) or not os.path.isfile(place)):
        raise UsageError(f"{path}: is there and is no regular file", hint="name a file that is new or may be replaced")
    return place


def _explain_output(path: str, error: OSError) -> UsageError:
    return UsageError(f"{path}: {error.strerror}", hint="name a file in a directory that you can write to")


def sync_directory(path: str) -> None:
    """Make names in a directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
