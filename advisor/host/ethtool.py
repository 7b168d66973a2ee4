"""Driver facts over the ethtool ioctl (``ethtool -g -l -k -i -c -a``), without a process per link.

Layouts follow linux/ethtool.h (ETHTOOL_GRINGPARAM and its siblings); all of these queries are open to ordinary users.
The ioctl that sets a value stands in where the kernel is too old (before 5.7) for ethtool's netlink family, which
`advisor.host.netlink` speaks and which says why it refuses.
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import struct
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from advisor.host.missing import Missing, from_os_error
from advisor.host.steps import DriverGroup

SIOCETHTOOL: Final = 0x8946
_GDRVINFO, _GSTRINGS, _GSSET_INFO, _GFEATURES, _SFEATURES = 0x03, 0x1B, 0x37, 0x3A, 0x3B
_SS_FEATURES = 4
_STRING_BYTES = 32
_IFNAMSIZ = 16

Answer = dict[str, int | str | bool]


class _Layout(NamedTuple):
    """A structure of 32-bit words after its command: the commands that get and set it, and the words that are read."""

    get: int
    set: int
    length: int
    words: Mapping[str, int]
    switches: frozenset[str] = frozenset()


_RINGS: Final = ("rx_max", "rx_mini_max", "rx_jumbo_max", "tx_max", "rx", "rx_mini", "rx_jumbo", "tx")
_CHANNELS: Final = ("rx_max", "tx_max", "other_max", "combined_max", "rx", "tx", "other", "combined")
_COALESCE: Final = {"rx-usecs": 0, "rx-frames": 1, "tx-usecs": 4, "tx-frames": 5, "adaptive-rx": 9, "adaptive-tx": 10}
_PAUSE: Final = ("autoneg", "rx", "tx")

_LAYOUTS: Final[Mapping[DriverGroup, _Layout]] = {
    "rings": _Layout(0x10, 0x11, 8, {name: place for place, name in enumerate(_RINGS)}),
    "channels": _Layout(0x3C, 0x3D, 8, {name: place for place, name in enumerate(_CHANNELS)}),
    "coalesce": _Layout(0x0E, 0x0F, 22, _COALESCE, frozenset({"adaptive-rx", "adaptive-tx"})),
    "pause": _Layout(0x12, 0x13, 3, {name: place for place, name in enumerate(_PAUSE)}, frozenset(_PAUSE)),
}

# Words of the answer about features, per block of 32.
_CHANGEABLE, _REQUESTED, _ACTIVE = 0, 1, 2

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
        """One query. ``what``: rings, channels, driver, coalesce, pause or features; of features also changeable (those
        that are not ``[fixed]``) and requested (what was asked for, which another feature may prevent).

        Absent where the driver does not know the query (EOPNOTSUPP) or the link is not there; unreadable with the
        kernel's words for everything else. An answer may be shared between links: do not change it.
        """
        try:
            return _QUERIES[what](self._open_device(link))
        except OSError as error:
            return UNSUPPORTED if error.errno == errno.EOPNOTSUPP else from_os_error(error)

    def set(self, link: str, group: DriverGroup, key: str, value: int) -> None:
        """Set one value, a switch as 0 or 1; a feature that the kernel does not change then reads as before.

        Raises OSError.
        """
        device = self._open_device(link)
        if group == "features":
            _set_feature(device, key, on=bool(value))
            return
        layout = _LAYOUTS[group]
        words = list(device.words(layout.get, layout.length))
        words[layout.words[answer_key(group, key)]] = value
        device.ask(struct.pack(f"{layout.length + 1}I", layout.set, *words))

    def _open_device(self, link: str) -> _Device:
        if self._fd is None:
            # The C part alone: socket itself makes enumerations of all constants first.
            import _socket as socket

            self._fd = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC).detach()
        return _Device(self._fd, link, self)

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


def answer_key(group: str, key: str) -> str:
    """The name that an answer has for a key of ethtool(8): ``rx-jumbo`` → ``rx_jumbo``."""
    return key.replace("-", "_") if group == "rings" else key


def _group_reader(group: DriverGroup) -> Callable[[_Device], Answer]:
    layout = _LAYOUTS[group]

    def read(device: _Device) -> Answer:
        words = device.words(layout.get, layout.length)
        return {
            name: bool(words[place]) if name in layout.switches else words[place]
            for name, place in layout.words.items()
        }

    return read


def _read_driver(device: _Device) -> Answer:
    reply = device.ask(struct.pack("I", _GDRVINFO).ljust(196, b"\0"))
    fields = struct.unpack_from("32s32s32s32s", reply, 4)
    driver, version, firmware, bus = (field.split(b"\0")[0].decode("ascii", "replace") for field in fields)
    return {"driver": driver, "version": version, "firmware": firmware, "bus": bus}


def _features_reader(which: int) -> Callable[[_Device], Answer]:
    def read(device: _Device) -> Answer:
        control = device.control
        names = _names(device)
        blocks = (len(names) + 31) // 32
        reply = device.ask(struct.pack("II", _GFEATURES, blocks).ljust(8 + blocks * 16, b"\0"))
        words = struct.unpack_from(f"{blocks * 4}I", reply, 8)
        # The fourth word of a block are features that nobody can change, whatever the driver says.
        bits = tuple(
            words[at + which] & ~(words[at + 3] if which == _CHANGEABLE else 0) for at in range(0, blocks * 4, 4)
        )
        if bits not in control.feature_sets:
            switches = ((name, bool(bits[bit // 32] >> (bit % 32) & 1)) for bit, name in enumerate(names))
            control.feature_sets[bits] = dict(sorted((name, on) for name, on in switches if name))
        return control.feature_sets[bits]

    return read


def _set_feature(device: _Device, name: str, *, on: bool) -> None:
    names = _names(device)
    if name not in names:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    blocks = (len(names) + 31) // 32
    words = [0] * blocks * 2
    at, bit = divmod(names.index(name), 32)
    words[2 * at], words[2 * at + 1] = 1 << bit, on << bit
    device.ask(struct.pack(f"II{blocks * 2}I", _SFEATURES, blocks, *words))


def _names(device: _Device) -> tuple[str, ...]:
    control = device.control
    if control.feature_names is None:
        control.feature_names = _feature_names(device)
    return control.feature_names


def _feature_names(device: _Device) -> tuple[str, ...]:
    info = device.ask(struct.pack("IIQI", _GSSET_INFO, 0, 1 << _SS_FEATURES, 0).ljust(24, b"\0"))
    count: int = struct.unpack_from("I", info, 16)[0]
    strings = device.ask(struct.pack("III", _GSTRINGS, _SS_FEATURES, count).ljust(12 + count * _STRING_BYTES, b"\0"))
    places = range(12, 12 + count * _STRING_BYTES, _STRING_BYTES)
    return tuple(strings[at : at + _STRING_BYTES].split(b"\0")[0].decode("ascii", "replace") for at in places)


_QUERIES: Final[dict[str, Callable[[_Device], Answer]]] = {
    **{group: _group_reader(group) for group in _LAYOUTS},
    "driver": _read_driver,
    "features": _features_reader(_ACTIVE),
    "changeable": _features_reader(_CHANGEABLE),
    "requested": _features_reader(_REQUESTED),
}
