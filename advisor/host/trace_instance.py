"""A private tracing instance of the kernel: events of this program alone, apart from the one that everybody shares.

The instance is removed when its block ends. One that a killed process left is removed by the next: whoever uses an
instance holds a lock on its directory, and the kernel drops that with the process. Where nobody has mounted tracefs, it
is mounted for this process alone, under no path. Source: Documentation/trace/ftrace.rst, fsopen(2), flock(2).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import platform
import re
import secrets
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence

from advisor.errors import PermissionDeniedError, RefusedError
from advisor.host.missing import Missing, from_os_error

# The kernel's own log of the running machine, read without waiting for more of it.

_RECORD_BYTES = 8192
_MAX_RECORDS = 60_000


def read_kernel_log() -> str | Missing:
    """The records that the kernel still holds, oldest first, a line each and lines of keys below it; root may read
    them, an ordinary user where ``kernel.dmesg_restrict`` is 0."""
    found: list[bytes] = []
    try:
        fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return from_os_error(error)
    try:
        for _ in range(_MAX_RECORDS):
            try:
                found.append(os.read(fd, _RECORD_BYTES))
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.EPIPE:
                    return from_os_error(error)
    finally:
        os.close(fd)
    return b"".join(found).decode("utf-8", "replace")


# Log pages of NVMe controllers, and what a namespace says about itself, over the kernel's ioctl: reading them changes
# nothing, and needs root.

_ADMIN_COMMAND = 0xC0484E41
_NAMESPACE_ID = 0x4E40
_GET_LOG_PAGE = 0x02
_IDENTIFY = 0x06
IDENTIFY_BYTES = 4096
_ANY_NAMESPACE = 0xFFFFFFFF
_TIMEOUT_MS = 2000
_COMMAND = struct.Struct("=BBHIIIQQIIIIIIIIII")


def pack_command(log_page: int, length: int, address: int, namespace: int) -> bytes:
    """The command that asks for a log page of ``length`` bytes, a multiple of 4, into memory at ``address``."""
    words = length // 4 - 1
    return _pack(_GET_LOG_PAGE, namespace, address, length, log_page | (words & 0xFFFF) << 16, words >> 16)


def pack_identify(address: int, namespace: int) -> bytes:
    """The command that asks a namespace for its own structure, 4096 bytes into memory at ``address``."""
    return _pack(_IDENTIFY, namespace, address, IDENTIFY_BYTES, 0, 0)


def _pack(opcode: int, namespace: int, address: int, length: int, word10: int, word11: int) -> bytes:
    words = (word10, word11, 0, 0, 0, 0)
    return _COMMAND.pack(opcode, 0, 0, namespace, 0, 0, 0, address, 0, length, *words, _TIMEOUT_MS, 0)


def read_log_page(device: str, log_page: int, length: int, *, namespace: int = _ANY_NAMESPACE) -> bytes | Missing:
    """The bytes of a log page of ``/dev/DEVICE`` of this machine; a command that fails becomes `Missing`."""
    return _send(device, length, lambda fd, address: pack_command(log_page, length, address, namespace))


def identify_namespace(device: str) -> bytes | Missing:
    """What the namespace ``/dev/DEVICE`` of this machine says about its formats and features."""
    return _send(device, IDENTIFY_BYTES, lambda fd, address: pack_identify(address, fcntl.ioctl(fd, _NAMESPACE_ID)))


def _send(device: str, length: int, pack: Callable[[int, int], bytes]) -> bytes | Missing:
    import ctypes  # 2 ms, and few calls ask a drive

    memory = ctypes.create_string_buffer(length)
    try:
        fd = os.open(f"/dev/{device}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            status = fcntl.ioctl(fd, _ADMIN_COMMAND, bytearray(pack(fd, ctypes.addressof(memory))))
        finally:
            os.close(fd)
    except OSError as error:
        return from_os_error(error)
    return Missing("unreadable", f"the controller answers with status {status:#x}") if status else memory.raw


PREFIX = "advisor-observe-"
BUFFER_KIB = 4096
"""Of each CPU; all together take at most `ALL_BUFFERS_KIB`."""
ALL_BUFFERS_KIB = 128 * 1024
_LEAST_BUFFER_KIB = 256
_READ_BYTES = 1 << 16
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MOST_PAGES = 2 * (BUFFER_KIB << 10) // _PAGE_BYTES
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# The numbers of calls that came with Linux 5.2 are the same on every architecture but alpha.
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
_CREATE, _CLOSE_ON_EXEC = 6, 1
_CLOCKS = ("mono", "global")
"""Clocks that are the same on each CPU, the better one first."""
_STATS = re.compile(r"^(?:overrun|commit overrun|dropped events): ([0-9]{1,19})$", re.MULTILINE | re.ASCII)


class TraceInstance:
    """An instance that this process holds; `open_trace` makes one."""

    def __init__(self, directory: int) -> None:
        self._directory = directory
        self._pipes: list[int] = []

    def write_setting(self, name: str, text: str) -> None:
        """Write one file of the instance. Raises OSError."""
        fd = os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=self._directory)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)

    def read_setting(self, name: str) -> str:
        """The text of one file of the instance. Raises OSError."""
        return _read_text(name, self._directory)

    def read_pages(self) -> list[list[bytes]]:
        """Of each CPU the pages of events since the last call, oldest first, as the kernel has them."""
        if not self._pipes:
            per_cpu = os.open("per_cpu", _DIRECTORY, dir_fd=self._directory)
            try:
                for cpu in os.listdir(per_cpu):
                    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
                    self._pipes.append(os.open(f"{cpu}/trace_pipe_raw", flags, dir_fd=per_cpu))
            finally:
                os.close(per_cpu)
        found: list[list[bytes]] = []
        for pipe in self._pipes:
            pages: list[bytes] = []
            with contextlib.suppress(BlockingIOError):
                # A busy CPU writes while it is read: the rest is for the next call.
                while len(pages) < _MOST_PAGES and (page := os.read(pipe, _PAGE_BYTES)):
                    pages.append(page)
            found.append(pages)
        return found

    def count_lost(self) -> int:
        """How many events the buffers could not take."""
        per_cpu = os.open("per_cpu", _DIRECTORY, dir_fd=self._directory)
        try:
            return sum(sum_lost(_read_text(f"{cpu}/stats", per_cpu)) for cpu in os.listdir(per_cpu))
        finally:
            os.close(per_cpu)

    def close_pipes(self) -> None:
        """Close what the kernel would not remove the instance with."""
        while self._pipes:
            os.close(self._pipes.pop())


def sum_lost(text: str) -> int:
    """Of the statistics of one CPU's buffer: events that were overwritten or not taken."""
    return sum(map(int, _STATS.findall(text)))


@contextlib.contextmanager
def open_trace(events: Mapping[str, str | None]) -> Iterator[TraceInstance]:
    """An instance in which these events (``block/block_rq_issue``) are recorded, each with its filter, if any.

    Removes instances that killed processes left. Raises PermissionDeniedError without root, RefusedError where the
    kernel has no such events or does not permit it; nothing is left then.
    """
    with contextlib.ExitStack() as stack:
        try:
            instances = stack.enter_context(_opened_instances())
            remove_left(instances)
            trace = stack.enter_context(_held_instance(instances))
            cpus = os.cpu_count() or 1
            size = max(_LEAST_BUFFER_KIB, min(BUFFER_KIB, ALL_BUFFERS_KIB // cpus))
            trace.write_setting("buffer_size_kb", str(size))
            for clock in _CLOCKS:
                try:
                    trace.write_setting("trace_clock", clock)
                    break
                except OSError as error:
                    if error.errno != errno.EINVAL or clock == _CLOCKS[-1]:
                        raise
            for event, condition in events.items():
                if condition is not None:
                    trace.write_setting(f"events/{event}/filter", condition)
                trace.write_setting(f"events/{event}/enable", "1")
        except PermissionError as error:
            raise PermissionDeniedError(
                f"tracing block requests: {os.strerror(error.errno or 0)}",
                hint="run it as root; in a container and under kernel lockdown it may be forbidden to root, too",
            ) from error
        except OSError as error:
            raise RefusedError(
                f"tracing block requests: {os.strerror(error.errno or 0)} ({error.filename or 'tracefs'})",
                hint="the kernel needs CONFIG_EVENT_TRACING and CONFIG_BLOCK",
            ) from error
        yield trace


@contextlib.contextmanager
def _held_instance(instances: int) -> Iterator[TraceInstance]:
    name, directory = _make_instance(instances)
    trace = TraceInstance(directory)
    try:
        yield trace
    finally:
        trace.close_pipes()
        # The lock goes with the descriptor: only after the instance has gone.
        try:
            os.rmdir(name, dir_fd=instances)
        finally:
            os.close(directory)


def remove_left(instances: int) -> list[str]:
    """Remove the instances of processes that have gone; returns their names."""
    removed = []
    for name in os.listdir(instances):
        if not name.startswith(PREFIX):
            continue
        with contextlib.suppress(OSError):
            directory = os.open(name, _DIRECTORY, dir_fd=instances)
            try:
                fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.rmdir(name, dir_fd=instances)
                removed.append(name)
            finally:
                os.close(directory)
    return removed


def _make_instance(instances: int) -> tuple[str, int]:
    while True:
        name = f"{PREFIX}{secrets.token_hex(6)}"
        os.mkdir(name, 0o700, dir_fd=instances)
        with contextlib.suppress(FileNotFoundError, BlockingIOError):
            directory = os.open(name, _DIRECTORY, dir_fd=instances)
            try:
                # Between these two lines another process may take it for one that was left: then it removes it.
                fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.stat(name, dir_fd=instances), os.fstat(directory)):
                    return name, directory
            except OSError:
                os.close(directory)
                raise
            os.close(directory)


@contextlib.contextmanager
def _opened_instances() -> Iterator[int]:
    """A descriptor of the directory of instances, wherever tracefs is."""
    for place in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            directory = os.open(f"{place}/instances", _DIRECTORY)
            break
    else:
        root = _mount_detached()
        try:
            directory = os.open("instances", _DIRECTORY, dir_fd=root)
        finally:
            os.close(root)
    try:
        yield directory
    finally:
        os.close(directory)


def _mount_detached() -> int:
    """tracefs, mounted under no path: it goes with the last descriptor."""
    if platform.machine() == "alpha":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), "fsopen")
    context = _call("fsopen", _FSOPEN, b"tracefs", _CLOSE_ON_EXEC)
    try:
        _call("fsconfig", _FSCONFIG, context, _CREATE, None, None, 0)
        return _call("fsmount", _FSMOUNT, context, _CLOSE_ON_EXEC, 0)
    finally:
        os.close(context)


def _call(name: str, number: int, *arguments: bytes | int | None) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    words: Sequence[object] = [
        ctypes.c_long(one) if isinstance(one, int) else ctypes.c_char_p(one) for one in arguments
    ]
    found: int = library.syscall(ctypes.c_long(number), *words)
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)
    return found


def _read_text(name: str, directory: int) -> str:
    fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
    try:
        parts = []
        while data := os.read(fd, _READ_BYTES):
            parts.append(data)
        return b"".join(parts).decode("utf-8", "replace")
    finally:
        os.close(fd)
