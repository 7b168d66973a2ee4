"""Scratch directories that exist, in the state directory: what a killed session leaves is found and removed later.

An entry is written before the first byte of a scratch file and removed after the file. The next `prove` or `bench`
looks at every entry whose process is gone: the directory is removed where it is still the one that was made (device and
inode), and named where it is not. Without a state directory of one's own (an ordinary user) nothing is registered.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from advisor.errors import AdvisorError
from advisor.host.safe_open import make_own_directory
from advisor.proof.scratch import FILE_NAME
from advisor.transaction.journal import Store


class ScratchEntry(msgspec.Struct, frozen=True):
    """A scratch directory: its path and identity, and the process that made it."""

    directory: str
    device: int
    inode: int
    pid: int
    started_ticks: int


def _registry_directory() -> Path:
    return Store().directory.absolute() / "scratch"


def start_ticks(pid: int) -> int:
    """Clock ticks after boot at which a process started (proc_pid_stat(5)). Raises OSError where there is none."""
    text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    return int(text[text.rfind(")") + 2 :].split()[19])


def register_scratch(directory: str, device: int, inode: int) -> None:
    """Note a directory that was just made. What cannot be noted is not: the session does not depend on it."""
    pid = os.getpid()
    with contextlib.suppress(OSError, AdvisorError):
        entry = ScratchEntry(directory, device, inode, pid, start_ticks(pid))
        place = _registry_directory()
        for one in (place.parent, place):
            make_own_directory(str(one))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(place / os.path.basename(directory), flags, 0o600), "wb") as file:
            file.write(msgspec.json.encode(entry))
            file.flush()
            os.fsync(file.fileno())


def forget_scratch(directory: str) -> None:
    """The directory is gone, or is not ours any more."""
    with contextlib.suppress(OSError):
        (_registry_directory() / os.path.basename(directory)).unlink()


def sweep_scratch() -> list[str]:
    """Remove what killed sessions left; what was done and what could not be, a line each."""
    try:
        names = sorted(os.listdir(_registry_directory()))
    except OSError:
        return []
    return [line for name in names if (line := _settle_entry(_registry_directory() / name)) is not None]


def _settle_entry(path: Path) -> str | None:
    try:
        entry = msgspec.json.decode(path.read_bytes(), type=ScratchEntry)
    except (OSError, msgspec.DecodeError):
        # Torn by the same kill: it names nothing. A session's notes name directories that are left in its target.
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    try:
        is_running = start_ticks(entry.pid) == entry.started_ticks
    except (OSError, ValueError, IndexError):
        is_running = False
    if is_running:
        return None
    line = _remove_directory(entry)
    forget_scratch(entry.directory)
    return line


def _remove_directory(entry: ScratchEntry) -> str | None:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(entry.directory, flags)
    except FileNotFoundError:
        return None
    except OSError as error:
        return _not_removed(entry, error)
    try:
        found = os.fstat(descriptor)
        if (found.st_dev, found.st_ino) != (entry.device, entry.inode):
            return f"{entry.directory}: not the directory that a killed session made; left alone"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(FILE_NAME, dir_fd=descriptor)
        os.rmdir(entry.directory)
    except OSError as error:
        return _not_removed(entry, error)
    finally:
        os.close(descriptor)
    return f"{entry.directory}: left by a session that was killed, removed"


def _not_removed(entry: ScratchEntry, error: OSError) -> str:
    return f"{entry.directory}: left by a session that was killed, and not removed: {error.strerror}"
