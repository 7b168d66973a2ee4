"""Links and addresses of the running kernel, asked over rtnetlink without a process.

Of plain links alone: Ethernet and loopback, with no settings of their kind and of no bond or bridge. What ip(8) has
words for beyond that is ip's to say.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

_REQUEST_DUMP: Final = 0x301
_ERROR, _DONE, _NEW_LINK, _GET_LINK, _NEW_ADDRESS, _GET_ADDRESS = 2, 3, 16, 18, 20, 22
_DUMP_INTERRUPTED: Final = 0x10
# linux/if_link.h, and of ifi_flags linux/if.h.
_ADDRESS, _NAME, _MTU, _LINK, _MASTER, _QUEUE_LENGTH, _STATE, _INFO, _NAMESPACE = 1, 3, 4, 5, 10, 13, 16, 18, 37
_LEAST_MTU, _MOST_MTU, _PERMANENT_ADDRESS = 50, 51, 54
_INFO_KIND, _INFO_DATA, _INFO_OF_MEMBER = 1, 2, 5
_FLAGS: Final = {"UP": 1, "LOWER_UP": 1 << 16}
_TYPES: Final = {1: "ether", 772: "loopback"}
_STATES: Final = ("UNKNOWN", "NOTPRESENT", "DOWN", "LOWERLAYERDOWN", "TESTING", "DORMANT", "UP")
_FAMILIES: Final = {2: "inet", 10: "inet6"}
# IFLA_EXT_MASK with RTEXT_FILTER_SKIP_STATS: no counters.
_NO_COUNTERS: Final = struct.pack("HHI", 8, 29, 8)

LinkEntry = dict[str, Any]


class _NotPlainError(Exception):
    """A link of which ip has more to say."""


def read_plain_links() -> list[LinkEntry] | None:
    """Each link with its addresses, as the list of ``ip -j -d addr show`` has it, by the same keys; None where a link
    is not plain, or the kernel does not answer."""
    # The C part alone: socket itself makes enumerations of all constants first.
    import _socket as socket

    try:
        netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
        try:
            answers = _ask_kernel(netlink, _GET_LINK, bytes(16) + _NO_COUNTERS)
            answers += _ask_kernel(netlink, _GET_ADDRESS, bytes(8))
        finally:
            netlink.close()
    except OSError:
        return None
    return parse_plain_links(answers)


def _ask_kernel(netlink: Any, kind: int, request: bytes) -> bytes:
    """The messages that answer a request for a whole table."""
    netlink.send(struct.pack("IHHII", 16 + len(request), kind, _REQUEST_DUMP, 1, 0) + request)
    answers: list[bytes] = []
    while not answers or not any(kind in (_DONE, _ERROR) for kind, _, _ in _messages(answers[-1])):
        answers.append(netlink.recv(1 << 16))
    return b"".join(answers)


def parse_plain_links(answers: bytes) -> list[LinkEntry] | None:
    """As `read_plain_links`, of the kernel's messages: the links, then the addresses."""
    found: dict[int, LinkEntry] = {}
    try:
        for kind, flags, body in _messages(answers):
            if kind == _ERROR or flags & _DUMP_INTERRUPTED:
                return None
            if kind == _NEW_LINK:
                entry = _link_entry(body)
                found[entry["ifindex"]] = entry
            elif kind == _NEW_ADDRESS:
                index, address = _address_entry(body)
                found[index]["addr_info"].append(address)
        for entry in found.values():
            for key in entry.keys() & {"link", "master"}:
                # A link of which the index alone is known has come or gone meanwhile.
                entry[key] = found[entry[key]]["ifname"]
    except (_NotPlainError, LookupError, ValueError, struct.error):
        return None
    return list(found.values())


def _messages(answers: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Type, flags and body of each message; one of an impossible length is an error as the kernel's are."""
    at = 0
    while at + 16 <= len(answers):
        length, kind, flags = struct.unpack_from("IHH", answers, at)
        if not 16 <= length <= len(answers) - at:
            yield _ERROR, 0, b""
            return
        yield kind, flags, answers[at + 16 : at + length]
        at += (length + 3) & ~3


def _attributes(data: bytes, at: int) -> dict[int, bytes]:
    found = {}
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("HH", data, at)
        if length < 4:
            raise ValueError("an attribute shorter than its head")
        found[kind & 0x3FFF] = data[at + 4 : at + length]
        at += (length + 3) & ~3
    return found


def _link_entry(body: bytes) -> LinkEntry:
    """``link`` and ``master`` are indexes still."""
    kind, index, flags = struct.unpack_from("2xHiI", body)
    given = _attributes(body, 16)
    info = _attributes(given.get(_INFO, b""), 0)
    if kind not in _TYPES or info.get(_INFO_DATA) or info.get(_INFO_OF_MEMBER):
        raise _NotPlainError
    numbers = {"mtu": _MTU, "min_mtu": _LEAST_MTU, "max_mtu": _MOST_MTU, "txqlen": _QUEUE_LENGTH}
    indexes = {"link_netnsid": _NAMESPACE, "master": _MASTER, "link": _LINK}
    if _NAMESPACE in given:
        # The index is one of the other namespace.
        del indexes["link"]
    entry: LinkEntry = {
        "ifindex": index,
        "ifname": _decode_text(given[_NAME]),
        "flags": [name for name, bit in _FLAGS.items() if flags & bit],
        "link_type": _TYPES[kind],
        "operstate": _STATES[given[_STATE][0]],
        "address": given[_ADDRESS].hex(":"),
        "addr_info": [],
    }
    entry |= {key: struct.unpack("I", given[one])[0] for key, one in (numbers | indexes).items() if one in given}
    if _INFO_KIND in info:
        entry["linkinfo"] = {"info_kind": _decode_text(info[_INFO_KIND])}
    permanent = given.get(_PERMANENT_ADDRESS)
    if permanent is not None and permanent != given[_ADDRESS]:
        entry["permaddr"] = permanent.hex(":")
    # What ip leaves out.
    return {key: value for key, value in entry.items() if value or key not in ("txqlen", "link")}


def _address_entry(body: bytes) -> tuple[int, LinkEntry]:
    import _socket as socket

    family, length, index = struct.unpack_from("BB2xI", body)
    if family not in _FAMILIES:
        raise _NotPlainError
    given = _attributes(body, 8)
    # IFA_LOCAL, which is IFA_ADDRESS where that is no peer's.
    local = socket.inet_ntop(family, given[2] if 2 in given else given[1])
    return index, {"family": _FAMILIES[family], "local": local, "prefixlen": length}


def _decode_text(value: bytes) -> str:
    return value.rstrip(b"\0").decode("utf-8", "replace")
