"""A tree in which one limit in two units behaves as in the kernel: a write of the one zeroes the other.

The keys ``vm.*`` are the machine's, and in no namespace. fanotify(7) reports each write, and holds up whoever opens one
of the files until all earlier writes are dealt with: what is read after a write is what the kernel would show. What the
kernel refuses is not imitated.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import struct
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLASS_CONTENT, _MARK_ADD = 0x4, 0x1
_CLOSE_WRITE, _OPEN_PERM, _ON_CHILD = 0x8, 0x10000, 0x08000000
_ALLOW = 0x1
_AT_FDCWD = -100
_EVENT = struct.Struct("=IBBHQii")

PAIRS: Mapping[str, str] = {
    "dirty_bytes": "dirty_ratio",
    "dirty_background_bytes": "dirty_background_ratio",
    "overcommit_kbytes": "overcommit_ratio",
}
_TWINS = {one: other for pair in PAIRS.items() for one, other in (pair, pair[::-1])}
# These two zero the other only where the value changes: dirty_ratio_handler, dirty_bytes_handler (mm/page-writeback.c).
_IF_CHANGED = ("dirty_bytes", "dirty_ratio")


class Zeroing:
    """Serves ``directory``, which stands for /proc/sys/vm, until it is closed."""

    def __init__(self, directory: Path) -> None:
        # Open from the start: to open one later would wait for ourselves.
        self._files = {name: os.open(directory / name, os.O_RDWR) for name in _TWINS if (directory / name).exists()}
        self._values = {name: self._read(name) for name in self._files}
        self._names = {os.fstat(number).st_ino: name for name, number in self._files.items()}
        self._events = _checked(_LIBC.fanotify_init(_CLASS_CONTENT, os.O_RDONLY))
        mask = _CLOSE_WRITE | _OPEN_PERM | _ON_CHILD
        path = os.fsencode(directory)
        _checked(_LIBC.fanotify_mark(self._events, _MARK_ADD, ctypes.c_uint64(mask), _AT_FDCWD, path))
        self._end, self._ended = os.pipe()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        os.close(self._ended)
        self._thread.join()
        for number in (*self._files.values(), self._end):
            os.close(number)

    def _read(self, name: str) -> str:
        return os.pread(self._files[name], 100, 0).decode().strip()

    def _serve(self) -> None:
        try:
            while True:
                ready, _, _ = select.select([self._events, self._end], [], [])
                if self._end in ready:
                    return
                self._handle(os.read(self._events, 65536))
        finally:
            # The kernel lets everybody go on then.
            os.close(self._events)

    def _handle(self, events: bytes) -> None:
        while events:
            length, _, _, _, mask, number, _ = _EVENT.unpack_from(events)
            events = events[length:]
            if number < 0:
                continue
            if mask & _CLOSE_WRITE:
                self._written(self._names.get(os.fstat(number).st_ino, ""))
            if mask & _OPEN_PERM:
                os.write(self._events, struct.pack("=iI", number, _ALLOW))
            os.close(number)

    def _written(self, name: str) -> None:
        twin = _TWINS.get(name)
        if twin is None:
            return
        was, self._values[name] = self._values[name], self._read(name)
        if name in _IF_CHANGED and was == self._values[name]:
            return
        self._values[twin] = "0"
        os.ftruncate(self._files[twin], 0)
        os.pwrite(self._files[twin], b"0\n", 0)


def _checked(number: int) -> int:
    if number < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return number


@contextlib.contextmanager
def zeroing(directory: Path) -> Iterator[None]:
    """The files of ``directory`` as the kernel's, for as long as the block lasts."""
    served = Zeroing(directory)
    try:
        yield
    finally:
        served.close()
