"""ICMP echoes as bytes, and what the kernel's error queue says about them. No sockets here.

RFC 792 and RFC 4443 for the packets; ip(7), ``IP_RECVERR``, and linux/errqueue.h for the error queue.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from collections.abc import Iterable
from typing import Literal

import msgspec

ICMP_HEADER = 8
SMALL_DATA = 56
LARGEST = 65535

IP_RECVERR = 11
IP_RECVFRAGSIZE = 25
IPV6_RECVERR = 25
IPV6_RECVFRAGSIZE = 77

_ECHO = {4: (8, 0), 6: (128, 129)}
_IP_HEADER = {4: 20, 6: 40}
_TOKEN_BYTES = 6
_FILL = bytes(range(256)) * (LARGEST // 256 + 1)

# struct sock_extended_err of linux/errqueue.h, in the host's own byte order.
_EXTENDED = struct.Struct("=IBBBBII")
_LOCAL, _ICMP, _ICMP6 = 1, 2, 3
_MAX_ERRNO = 4095
_UNREACHABLE4 = {
    0: "network unreachable",
    1: "host unreachable",
    2: "protocol unreachable",
    3: "port unreachable",
    5: "source route failed",
    9: "network administratively prohibited",
    10: "host administratively prohibited",
    13: "communication administratively prohibited",
}
_UNREACHABLE6 = {
    0: "no route to the destination",
    1: "communication administratively prohibited",
    2: "beyond the scope of the source address",
    3: "address unreachable",
    4: "port unreachable",
    5: "source address failed policy",
    6: "route rejected",
}

Ancillary = Iterable[tuple[int, int, bytes]]
Version = Literal[4, 6]


class Said(msgspec.Struct, frozen=True):
    """What the network, or this host's own kernel, said instead of a reply.

    ``by`` is the address that said it, None for this host's kernel. ``mtu`` is the largest packet that would do, None
    where that was not said. ``sequence`` and ``identifier`` are those of the echo it is about, where it quotes them.
    """

    kind: Literal["too-big", "unreachable"]
    words: str
    by: str | None = None
    mtu: int | None = None
    identifier: int | None = None
    sequence: int | None = None


def version_of(address: str) -> Version:
    return 6 if ":" in address else 4


def small_size(version: Version) -> int:
    """The whole packet of what ping(8) sends: 84 bytes over IPv4, 104 over IPv6."""
    return _IP_HEADER[version] + ICMP_HEADER + SMALL_DATA


def least_size(version: Version) -> int:
    """An echo without any data."""
    return _IP_HEADER[version] + ICMP_HEADER


def echo_data(version: Version, size: int, token: bytes) -> bytes:
    """The data of an echo whose whole packet has ``size`` bytes: the token, then a pattern."""
    return (token + _FILL)[: max(size - least_size(version), 0)]


def new_token() -> bytes:
    """What makes our data unlike anybody else's."""
    return os.urandom(_TOKEN_BYTES)


def echo_request(version: Version, identifier: int, sequence: int, data: bytes) -> bytes:
    """An echo request. The checksum of ICMPv6 covers addresses and is the kernel's to fill in."""
    kind = _ECHO[version][0]
    packet = struct.pack("!BBHHH", kind, 0, 0, identifier, sequence) + data
    if version == 6:
        return packet
    # RFC 1071.
    padded = packet + b"\0" * (len(packet) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!BBHHH", kind, 0, ~total & 0xFFFF, identifier, sequence) + data


def parse_reply(version: Version, packet: bytes, *, has_ip_header: bool) -> tuple[int, int, bytes] | None:
    """Identifier, sequence number and data of an echo reply; None for anything else.

    Raw IPv4 sockets deliver the IP header too.
    """
    if has_ip_header:
        length = (packet[0] & 0x0F) * 4 if packet else 0
        packet = packet[length:] if length >= _IP_HEADER[4] else b""
    if len(packet) < ICMP_HEADER:
        return None
    kind, code, _, identifier, sequence = struct.unpack_from("!BBHHH", packet)
    return None if kind != _ECHO[version][1] or code != 0 else (identifier, sequence, packet[ICMP_HEADER:])


def fragment_size(ancillary: Ancillary) -> int | None:
    """Bytes of the largest fragment that a reply came in; None for one that came whole (IP_RECVFRAGSIZE)."""
    for level, kind, data in ancillary:
        is_size = (level, kind) in ((socket.IPPROTO_IP, IP_RECVFRAGSIZE), (socket.IPPROTO_IPV6, IPV6_RECVFRAGSIZE))
        if is_size and len(data) == 4:
            return int.from_bytes(data, sys.byteorder) or None
    return None


def parse_said(ancillary: Ancillary, quoted: bytes) -> Said | None:
    """One message of the error queue: its control messages, and the part of our own packet that it quotes.

    None for what says nothing about reaching anybody (time stamps) or is cut short.
    """
    for level, kind, data in ancillary:
        if (level, kind) in ((socket.IPPROTO_IP, IP_RECVERR), (socket.IPPROTO_IPV6, IPV6_RECVERR)):
            if len(data) < _EXTENDED.size:
                return None
            number, origin, kind, code, _, info, _ = _EXTENDED.unpack_from(data)
            if origin == _LOCAL:
                if number == errno.EMSGSIZE:
                    return Said("too-big", "too big for the link", None, info or None)
                return Said("unreachable", _errno_text(number))
            if origin not in (_ICMP, _ICMP6):
                return None
            identifier, sequence = _quoted_echo(quoted)
            by = _offender_address(data[_EXTENDED.size :])
            is_too_big = (origin, kind, code) == (_ICMP, 3, 4) or (origin, kind) == (_ICMP6, 2)
            if is_too_big:
                return Said("too-big", "too big", by, info or None, identifier, sequence)
            is_time = (origin, kind) in ((_ICMP, 11), (_ICMP6, 3))
            if is_time:
                error = "time to live exceeded" if code == 0 else "a fragment did not arrive in time"
            elif (origin, kind) == (_ICMP, 3) and code in _UNREACHABLE4:
                error = _UNREACHABLE4[code]
            elif (origin, kind) == (_ICMP6, 1) and code in _UNREACHABLE6:
                error = _UNREACHABLE6[code]
            else:
                error = _errno_text(number)
            return Said("unreachable", error, by, None, identifier, sequence)
    return None


def _quoted_echo(quoted: bytes) -> tuple[int | None, int | None]:
    if len(quoted) < ICMP_HEADER:
        return None, None
    kind, _, _, identifier, sequence = struct.unpack_from("!BBHHH", quoted)
    return (identifier, sequence) if kind in (_ECHO[4][0], _ECHO[6][0]) else (None, None)


def _offender_address(address: bytes) -> str | None:
    """The sockaddr_in or sockaddr_in6 behind the record; its family is AF_UNSPEC where nobody is named."""
    if len(address) < 8:
        return None
    (family,) = struct.unpack_from("=H", address)
    if family == socket.AF_INET:
        return socket.inet_ntop(family, address[4:8])
    if family == socket.AF_INET6 and len(address) >= 24:
        return socket.inet_ntop(family, address[8:24])
    return None


def _errno_text(number: int) -> str:
    return os.strerror(number).lower() if number <= _MAX_ERRNO else f"error {number}"
