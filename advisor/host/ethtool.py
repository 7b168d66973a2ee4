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
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from advisor.host.missing import Missing, from_os_error

if TYPE_CHECKING:
    from advisor.host.steps import DriverGroup

SIOCETHTOOL = 0x8946
_GLINKSETTINGS = 0x4C
_GDRVINFO, _GSTRINGS, _GSTATS, _GSSET_INFO, _GFEATURES, _SFEATURES = 0x03, 0x1B, 0x1D, 0x37, 0x3A, 0x3B
_SS_STATS, _SS_FEATURES = 1, 4
_MOST_STATISTICS = 20_000
_STRING_BYTES = 32
_IFNAMSIZ = 16

Answer = dict[str, int | str | bool]


class _Layout(msgspec.Struct, frozen=True):
    """A structure of 32-bit words after its command: the commands that get and set it, and the words that are read."""

    get: int
    set: int
    length: int
    words: Mapping[str, int]
    switches: frozenset[str] = frozenset()


_RINGS = ("rx_max", "rx_mini_max", "rx_jumbo_max", "tx_max", "rx", "rx_mini", "rx_jumbo", "tx")
_CHANNELS = ("rx_max", "tx_max", "other_max", "combined_max", "rx", "tx", "other", "combined")
_COALESCE = {"rx-usecs": 0, "rx-frames": 1, "tx-usecs": 4, "tx-frames": 5, "adaptive-rx": 9, "adaptive-tx": 10}
_PAUSE = ("autoneg", "rx", "tx")

_LAYOUTS: Mapping[DriverGroup, _Layout] = {
    "rings": _Layout(0x10, 0x11, 8, {name: place for place, name in enumerate(_RINGS)}),
    "channels": _Layout(0x3C, 0x3D, 8, {name: place for place, name in enumerate(_CHANNELS)}),
    "coalesce": _Layout(0x0E, 0x0F, 22, _COALESCE, frozenset({"adaptive-rx", "adaptive-tx"})),
    "pause": _Layout(0x12, 0x13, 3, {name: place for place, name in enumerate(_PAUSE)}, frozenset(_PAUSE)),
}

# Words of the answer about features, per block of 32.
_CHANGEABLE, _REQUESTED, _ACTIVE = 0, 1, 2

UNSUPPORTED = Missing("absent", "the driver does not answer this query")
NOT_RECORDED = Missing("absent", "no recorded ethtool answer")


class Ethtool:
    """Asks drivers over one socket, opened at the first query and closed with the object.

    Kept between queries: the kernel's one table of feature names, and the sets of features that were decoded from it.
    """

    def __init__(self) -> None:
        self._fd: int | None = None
        self.feature_names: tuple[str, ...] | None = None
        self.feature_sets: dict[tuple[int, ...], Answer] = {}

    def query(self, link: str, what: str) -> Answer | Missing:
        """One query. ``what``: rings, channels, driver, coalesce, pause, modes, statistics or features; of features
        also changeable (those that are not ``[fixed]``) and requested (what was asked for, which another feature may
        prevent).

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
            on = bool(value)
            names = _names(device)
            if key not in names:
                raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
            blocks = (len(names) + 31) // 32
            feature_words = [0] * blocks * 2
            at, bit = divmod(names.index(key), 32)
            feature_words[2 * at], feature_words[2 * at + 1] = 1 << bit, on << bit
            device.ask(struct.pack(f"II{blocks * 2}I", _SFEATURES, blocks, *feature_words))
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
    fields = struct.unpack_from("32s32s32s32s", device.ask(struct.pack("I", _GDRVINFO).ljust(196, b"\0")), 4)
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


def _names(device: _Device) -> tuple[str, ...]:
    control = device.control
    if control.feature_names is None:
        control.feature_names = _set_names(device, _SS_FEATURES)
    return control.feature_names


def _set_names(device: _Device, which: int) -> tuple[str, ...]:
    """The strings of one of the driver's sets; none where it has no such set."""
    info = device.ask(struct.pack("IIQI", _GSSET_INFO, 0, 1 << which, 0).ljust(24, b"\0"))
    has, count = struct.unpack_from("Q", info, 8)[0], struct.unpack_from("I", info, 16)[0]
    if not has or count > _MOST_STATISTICS:
        return ()
    strings = device.ask(struct.pack("III", _GSTRINGS, which, count).ljust(12 + count * _STRING_BYTES, b"\0"))
    places = range(12, 12 + count * _STRING_BYTES, _STRING_BYTES)
    return tuple(strings[at : at + _STRING_BYTES].split(b"\0")[0].decode("ascii", "replace") for at in places)


_SPEEDS: tuple[tuple[int, int, int], ...] = (
    *((0, 1, 10), (2, 3, 100), (4, 5, 1000), (12, 12, 10_000), (15, 15, 2500), (17, 17, 1000), (18, 20, 10_000)),
    *((21, 22, 20_000), (23, 26, 40_000), (27, 30, 56_000), (31, 33, 25_000), (34, 35, 50_000), (36, 39, 100_000)),
    *((40, 40, 50_000), (41, 41, 1000), (42, 46, 10_000), (47, 47, 2500), (48, 48, 5000), (52, 56, 50_000)),
    *((57, 61, 100_000), (62, 66, 200_000), (67, 67, 100), (68, 68, 1000), (69, 73, 400_000), (75, 79, 100_000)),
    *((80, 84, 200_000), (85, 89, 400_000), (90, 91, 100), (92, 92, 10), (93, 98, 800_000)),
)
"""First and last bit of ETHTOOL_LINK_MODE_* and their speed in Mbit/s (include/uapi/linux/ethtool.h)."""
_SETTINGS_BYTES = 48
_WORDS_AT = 15


def best_mode_mbps(supported: int, advertised: int) -> int:
    """The fastest of the modes that a link both supports and advertises, as bit masks; 0 for none."""
    both = supported & advertised
    return max((mbps for first, last, mbps in _SPEEDS if both >> first & (1 << last - first + 1) - 1), default=0)


def _read_modes(device: _Device) -> Answer:
    """``best_mbps``: asked twice, as the kernel says first how many words its masks have."""
    head = struct.pack("I", _GLINKSETTINGS).ljust(_SETTINGS_BYTES, b"\0")
    words = -struct.unpack_from("b", device.ask(head), _WORDS_AT)[0]
    if not 0 < words <= 16:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    request = bytearray(head.ljust(_SETTINGS_BYTES + 12 * words, b"\0"))
    request[_WORDS_AT] = words
    reply = device.ask(bytes(request))
    masks = (reply[at : at + 4 * words] for at in (_SETTINGS_BYTES, _SETTINGS_BYTES + 4 * words))
    return {"best_mbps": best_mode_mbps(*(int.from_bytes(mask, "little") for mask in masks))}


def _read_statistics(device: _Device) -> Answer:
    """The driver's own counters (``ethtool -S``); those of one name are added: vmxnet3 has one set for each queue."""
    names = _set_names(device, _SS_STATS)
    reply = device.ask(struct.pack("II", _GSTATS, len(names)).ljust(8 + 8 * len(names), b"\0")) if names else b""
    # A driver may have fewer by now: it says how many it filled.
    count = min(len(names), struct.unpack_from("I", reply, 4)[0]) if names else 0
    found: Counter[str] = Counter()
    for name, value in zip(names, struct.unpack_from(f"{count}Q", reply, 8) if count else (), strict=False):
        found[name] += value
    return dict(found)


_QUERIES: dict[str, Callable[[_Device], Answer]] = {
    **{group: _group_reader(group) for group in _LAYOUTS},
    "driver": _read_driver,
    "modes": _read_modes,
    "statistics": _read_statistics,
    "features": _features_reader(_ACTIVE),
    "changeable": _features_reader(_CHANGEABLE),
    "requested": _features_reader(_REQUESTED),
}
