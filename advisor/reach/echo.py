"""A socket that sends ICMP echoes to one peer, never fragmented, and returns what came back.

``IP_MTU_DISCOVER`` is *probe*: don't-fragment is set and a path MTU that the kernel remembers is not heeded, so each
size really goes out. ``IP_RECVERR`` has the kernel hand over who said *too big*, and which MTU (ip(7), ipv6(7)).
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import sys
import time
from collections.abc import Iterable
from typing import Literal

import msgspec

from advisor.errors import PermissionDeniedError
from advisor.reach.addresses import Peer

# ICMP echoes as bytes, and what the kernel's error queue says about them. No sockets here.

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


_MTU_DISCOVER = {4: (socket.IPPROTO_IP, 10), 6: (socket.IPPROTO_IPV6, 23)}
_PROBE = 3
_IPV6_DONTFRAG = 62
_SOL_RAW, _ICMP_FILTER = 255, 1
_ICMP6_FILTER = 1
_TIMESTAMPNS = 35
_SOCKET_BYTES = 1 << 19
_PACKET_BYTES = 1 << 16
_ANCILLARY_BYTES = 512
_MAX_BURST = 64
_GROUP_SECONDS = 1.0
_TRANSIENT = frozenset({errno.ENOBUFS, errno.EAGAIN, errno.ENOMEM})


class Reply(msgspec.Struct, frozen=True):
    """The echo with this sequence number came back as it was sent.

    ``fragment`` is None where it came whole, else the size in bytes of its largest fragment.
    """

    sequence: int
    rtt_ms: float
    fragment: int | None


class _Sent(msgspec.Struct, frozen=True):
    size: int
    monotonic_ns: int
    wall_ns: int


class Echo:
    """Echoes to one peer. Raises PermissionDeniedError where this process may open neither kind of socket, and OSError
    for an address or link that cannot be used now."""

    def __init__(self, peer: Peer) -> None:
        self._version: Version = version_of(peer.address)
        host, _, scope = peer.address.partition("%")
        self._peer = socket.inet_pton(_address_family(self._version), host)
        self._token = new_token()
        self._identifier = int.from_bytes(os.urandom(2), "big")
        self._sequence = 0
        self._pending: dict[int, _Sent] = {}
        self._errors: list[Said] = []
        self._socket, self._is_raw = _open_socket(self._version)
        try:
            s = self._socket
            s.setblocking(False)
            level, option = _MTU_DISCOVER[self._version]
            s.setsockopt(level, option, _PROBE)
            s.setsockopt(level, IPV6_RECVERR if self._version == 6 else IP_RECVERR, 1)
            with contextlib.suppress(OSError):
                # Linux 4.9 and 5.2; without it a reply in fragments passes for a whole one.
                s.setsockopt(level, IPV6_RECVFRAGSIZE if self._version == 6 else IP_RECVFRAGSIZE, 1)
            if self._version == 6:
                s.setsockopt(level, _IPV6_DONTFRAG, 1)
            s.setsockopt(socket.SOL_SOCKET, _TIMESTAMPNS, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BYTES)
            if self._is_raw:
                _only_replies(s, self._version)
            # This host's own addresses are routed over lo, but do not answer a socket that is bound to it.
            link = scope or (peer.link if peer.link != "lo" else None)
            if link:
                # Refused to ordinary users before Linux 5.7; the route takes this link anyway.
                with contextlib.suppress(PermissionError):
                    self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, os.fsencode(link) + b"\0")
            if peer.source:
                self._socket.bind(_socket_address(self._version, peer.source.partition("%")[0], scope))
            self._socket.connect(_socket_address(self._version, host, scope))
        except BaseException:
            self._socket.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, size: int) -> int | Said:
        """Send an echo whose whole packet has ``size`` bytes: its sequence number, or why it did not leave.

        An echo that the kernel had no room for counts as sent: it is lost, as on the way.
        """
        self._sequence = (self._sequence + 1) & 0xFFFF
        sequence = self._sequence
        data = echo_data(self._version, size, self._token_of(sequence))
        packet = echo_request(self._version, self._identifier, sequence, data)
        self._pending[sequence] = _Sent(size, time.monotonic_ns(), time.time_ns())
        why_not = self._send_packet(packet)
        if why_not is None:
            return sequence
        del self._pending[sequence]
        return why_not

    def _token_of(self, sequence: int) -> bytes:
        # Another one for each: the answer to one echo is never taken for that to another.
        return sequence.to_bytes(2, "big") + self._token

    def _send_packet(self, packet: bytes, *, is_repeated: bool = False) -> Said | None:
        """None once it is on its way, else why not.

        The kernel also fails a send for an error about an earlier echo: that one is kept for `heard`.
        """
        try:
            self._socket.send(packet)
        except OSError as error:
            if error.errno in _TRANSIENT:
                return None
            queued = self._read_errors()
            errors = [said for said in queued if said.by is not None]
            self._errors += errors
            if errors and not is_repeated:
                return self._send_packet(packet, is_repeated=True)
            if error.errno == errno.EMSGSIZE:
                known = next((said.mtu for said in queued if said.by is None and said.kind == "too-big"), None)
                return Said("too-big", "too big for the link", None, known)
            return Said("unreachable", words_of(error))
        return None

    def heard(self) -> list[Reply | Said]:
        """What has come since the last call: valid replies, and errors about this socket's echoes."""
        errors, self._errors = [*self._errors, *self._read_errors()], []
        found: list[Reply | Said] = [said for said in errors if self._is_ours(said)]
        for _ in range(_MAX_BURST):
            try:
                packet, ancillary, _, sender = self._socket.recvmsg(_PACKET_BYTES, _ANCILLARY_BYTES)
            except OSError:
                # Nothing more, or an error whose details are in the queue.
                break
            reply = self._parse_reply(packet, ancillary, sender)
            if reply is not None:
                found.append(reply)
        return found

    def _read_errors(self) -> list[Said]:
        """Everything in the error queue; reading it also clears the error that the next send would meet."""
        found = []
        for _ in range(_MAX_BURST):
            try:
                quoted, ancillary, _, _ = self._socket.recvmsg(
                    _PACKET_BYTES, _ANCILLARY_BYTES, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT
                )
            except OSError:
                break
            said = parse_said(ancillary, quoted)
            if said is not None:
                found.append(said)
        return found

    def _is_ours(self, said: Said) -> bool:
        if said.sequence not in self._pending:
            return False
        return not self._is_raw or said.identifier == self._identifier

    def _parse_reply(
        self, packet: bytes, ancillary: list[tuple[int, int, bytes]], sender: tuple[str, int]
    ) -> Reply | None:
        now = time.monotonic_ns()
        parsed = parse_reply(self._version, packet, has_ip_header=self._is_raw and self._version == 4)
        if parsed is None or not self._is_peer(sender[0]):
            return None
        identifier, sequence, data = parsed
        sent = self._pending.get(sequence)
        if sent is None or (self._is_raw and identifier != self._identifier):
            return None
        if data != echo_data(self._version, sent.size, self._token_of(sequence)):
            return None
        del self._pending[sequence]
        return Reply(sequence, _elapsed_ms(sent, now, ancillary), fragment_size(ancillary))

    def _is_peer(self, sender: str) -> bool:
        return socket.inet_pton(_address_family(self._version), sender.partition("%")[0]) == self._peer


def ask_group(link: str, group: str) -> tuple[str, ...]:
    """Return the addresses that answer one echo to a link's broadcast address or its all-nodes group.

    No router passes it on: its time to live is 1. Empty where nobody answers, and where it cannot be sent.
    """
    version = version_of(group)
    found: dict[str, None] = {}
    with contextlib.suppress(OSError), _open_socket(version)[0] as s:
        level = socket.IPPROTO_IPV6 if version == 6 else socket.IPPROTO_IP
        s.setsockopt(level, socket.IPV6_MULTICAST_HOPS if version == 6 else socket.IP_TTL, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        with contextlib.suppress(PermissionError):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, os.fsencode(link) + b"\0")
        token = new_token()
        data = echo_data(version, small_size(version), token)
        s.sendto(echo_request(version, 0, 1, data), _socket_address(version, group, link))
        end = time.monotonic() + _GROUP_SECONDS
        while (left := end - time.monotonic()) > 0 and len(found) < _MAX_BURST:
            s.settimeout(left)
            packet, sender = s.recvfrom(_PACKET_BYTES)
            # A raw socket hands over all that arrives; the token is in our answers alone.
            if packet.endswith(data) and sender[0] not in found:
                found[str(sender[0])] = None
    return tuple(found)


def words_of(error: OSError) -> str:
    """The kernel's words, in lower case as in the middle of a sentence."""
    return os.strerror(error.errno or errno.EIO).lower()


def _address_family(version: Version) -> socket.AddressFamily:
    return socket.AF_INET6 if version == 6 else socket.AF_INET


def _socket_address(version: Version, host: str, scope: str) -> tuple[str, int] | tuple[str, int, int, int]:
    if version == 4:
        return host, 0
    return host, 0, 0, socket.if_nametoindex(scope) if scope else 0


def _open_socket(version: Version) -> tuple[socket.socket, bool]:
    """A ping socket where the user's group may have one, else a raw socket; and whether it is raw."""
    protocol = socket.IPPROTO_ICMPV6 if version == 6 else socket.IPPROTO_ICMP
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            return socket.socket(
                _address_family(version), kind | socket.SOCK_CLOEXEC, protocol
            ), kind == socket.SOCK_RAW
        except PermissionError:
            continue
        except OSError as error:
            # A kernel without ping sockets, as small ones are.
            if kind == socket.SOCK_RAW or error.errno not in (errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT):
                raise
    raise PermissionDeniedError(
        "sending ICMP echoes needs root, CAP_NET_RAW, or a group within net.ipv4.ping_group_range",
        hint="run it with sudo, or allow it to everybody: sysctl -w net.ipv4.ping_group_range='0 2147483647'",
    )


def _only_replies(s: socket.socket, version: Version) -> None:
    """A raw socket sees every ICMP packet of the host: let the kernel pass on echo replies alone."""
    if version == 4:
        s.setsockopt(_SOL_RAW, _ICMP_FILTER, struct.pack("=I", ~1 & 0xFFFFFFFF))
        return
    words = [0xFFFFFFFF] * 8
    words[129 // 32] &= ~(1 << 129 % 32)
    s.setsockopt(socket.IPPROTO_ICMPV6, _ICMP6_FILTER, struct.pack("=8I", *words))


def _elapsed_ms(sent: _Sent, now_ns: int, ancillary: list[tuple[int, int, bytes]]) -> float:
    """Until the kernel received it, or until we read it where the kernel's stamp cannot be (its clock was set)."""
    read_ns = now_ns - sent.monotonic_ns
    stamps = [data for level, kind, data in ancillary if (level, kind) == (socket.SOL_SOCKET, _TIMESTAMPNS)]
    if stamps and len(stamps[0]) == 16:
        seconds, nanoseconds = struct.unpack("=qq", stamps[0])
        stamped_ns = seconds * 1_000_000_000 + nanoseconds - sent.wall_ns
        if 0 < stamped_ns < read_ns:
            return float(stamped_ns / 1e6)
    return read_ns / 1e6
