"""Driver facts over the ethtool ioctl (``ethtool -g -l -k -i -c -a``), without a process per link.

Layouts follow linux/ethtool.h (ETHTOOL_GRINGPARAM and its siblings); all of these queries are open to ordinary users.
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import struct
from collections.abc import Callable
from typing import Final

from advisor.host.missing import Missing, from_os_error

SIOCETHTOOL: Final = 0x8946
_GDRVINFO, _GCOALESCE, _GRINGPARAM, _GPAUSEPARAM = 0x03, 0x0E, 0x10, 0x12
_GSTRINGS, _GSSET_INFO, _GFEATURES, _GCHANNELS = 0x1B, 0x37, 0x3A, 0x3C
_SS_FEATURES = 4
_STRING_BYTES = 32
_IFNAMSIZ = 16

Answer = dict[str, int | str | bool]

UNSUPPORTED: Final = Missing("absent", "the driver does not answer this query")
NOT_RECORDED: Final = Missing("absent", "no recorded ethtool answer")


class Ethtool:
    """Asks drivers over one socket, opened at the first query and closed with the object.

    Kept between queries: the kernel's one table of feature names, and the sets of features that were decoded from it.
    """

    def __init__(self) -> None:
        self._fd: int | None = None
        self.feature_names: tuple[str, ...] | None = None
        self.feature_sets: dict[tuple[int, ...], Answer] = {}

    def query(self, link: str, what: str) -> Answer | Missing:
        """One query. ``what``: rings, channels, driver, coalesce, pause or features.

        Absent where the driver does not know the query (EOPNOTSUPP) or the link is not there; unreadable with the
        kernel's words for everything else. An answer may be shared between links: do not change it.
        """
        try:
            if self._fd is None:
                import socket

                self._fd = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC).detach()
            return _QUERIES[what](_Device(self._fd, link, self))
        except OSError as error:
            return UNSUPPORTED if error.errno == errno.EOPNOTSUPP else from_os_error(error)

    def __del__(self) -> None:
        if self._fd is not None:
            os.close(self._fd)


class _Device:
    def __init__(self, fd: int, link: str, control: Ethtool) -> None:
        self._name = os.fsencode(link)
        if len(self._name) >= _IFNAMSIZ:
            raise OSError(errno.ENODEV, "no link has so long a name")
        self._fd = fd
        self.control = control

    def ask(self, request: bytes) -> bytes:
        buffer = array.array("B", request)
        address, _ = buffer.buffer_info()
        fcntl.ioctl(self._fd, SIOCETHTOOL, struct.pack("16sP16x", self._name, address))
        return buffer.tobytes()

    def words(self, command: int, count: int) -> tuple[int, ...]:
        """The ``count`` 32-bit words that follow the command word."""
        size = 4 * (count + 1)
        return struct.unpack(f"{count + 1}I", self.ask(struct.pack("I", command).ljust(size, b"\0")))[1:]


def _rings(device: _Device) -> Answer:
    rx_max, _, _, tx_max, rx, _, _, tx = device.words(_GRINGPARAM, 8)
    return {"rx": rx, "tx": tx, "rx_max": rx_max, "tx_max": tx_max}


def _channels(device: _Device) -> Answer:
    names = ("rx_max", "tx_max", "other_max", "combined_max", "rx", "tx", "other", "combined")
    return dict(zip(names, device.words(_GCHANNELS, 8), strict=True))


def _driver(device: _Device) -> Answer:
    reply = device.ask(struct.pack("I", _GDRVINFO).ljust(196, b"\0"))
    fields = struct.unpack_from("32s32s32s32s", reply, 4)
    driver, version, firmware, bus = (field.split(b"\0")[0].decode("ascii", "replace") for field in fields)
    return {"driver": driver, "version": version, "firmware": firmware, "bus": bus}


def _pause(device: _Device) -> Answer:
    autoneg, rx, tx = device.words(_GPAUSEPARAM, 3)
    return {"autoneg": bool(autoneg), "rx": bool(rx), "tx": bool(tx)}


def _coalesce(device: _Device) -> Answer:
    words = device.words(_GCOALESCE, 22)
    return {
        "rx-usecs": words[0],
        "rx-frames": words[1],
        "tx-usecs": words[4],
        "tx-frames": words[5],
        "adaptive-rx": bool(words[9]),
        "adaptive-tx": bool(words[10]),
    }


def _features(device: _Device) -> Answer:
    control = device.control
    if control.feature_names is None:
        control.feature_names = _feature_names(device)
    blocks = (len(control.feature_names) + 31) // 32
    reply = device.ask(struct.pack("II", _GFEATURES, blocks).ljust(8 + blocks * 16, b"\0"))
    # Per block of 32 features: available, requested, active, never_changed.
    active = struct.unpack_from(f"{blocks * 4}I", reply, 8)[2::4]
    if active not in control.feature_sets:
        bits = ((name, bool(active[bit // 32] >> (bit % 32) & 1)) for bit, name in enumerate(control.feature_names))
        control.feature_sets[active] = dict(sorted((name, on) for name, on in bits if name))
    return control.feature_sets[active]


def _feature_names(device: _Device) -> tuple[str, ...]:
    info = device.ask(struct.pack("IIQI", _GSSET_INFO, 0, 1 << _SS_FEATURES, 0).ljust(24, b"\0"))
    count: int = struct.unpack_from("I", info, 16)[0]
    strings = device.ask(struct.pack("III", _GSTRINGS, _SS_FEATURES, count).ljust(12 + count * _STRING_BYTES, b"\0"))
    places = range(12, 12 + count * _STRING_BYTES, _STRING_BYTES)
    return tuple(strings[at : at + _STRING_BYTES].split(b"\0")[0].decode("ascii", "replace") for at in places)


_QUERIES: Final[dict[str, Callable[[_Device], Answer]]] = {
    "rings": _rings,
    "channels": _channels,
    "driver": _driver,
    "pause": _pause,
    "coalesce": _coalesce,
    "features": _features,
}
