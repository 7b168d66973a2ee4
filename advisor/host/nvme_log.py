"""Log pages of NVMe controllers, and what a namespace says about itself, over the kernel's ioctl: reading them changes
nothing, and needs root.

Source: include/uapi/linux/nvme_ioctl.h (struct nvme_passthru_cmd); NVM Express Base Specification, Get Log Page and
Identify.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable

from advisor.host.missing import Missing, from_os_error

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
