"""Echoes as bytes, and what the kernel's error queue says about them, in every state of damage."""

from __future__ import annotations

import errno
import socket
import struct

from hypothesis import given
from hypothesis import strategies as st

from advisor.reach.echo import IP_RECVERR, IPV6_RECVERR, Said, echo_request, parse_reply, parse_said
from tests.reach.wire import checksum

V4 = (socket.IPPROTO_IP, IP_RECVERR)
V6 = (socket.IPPROTO_IPV6, IPV6_RECVERR)
LOCAL, ICMP, ICMP6 = 1, 2, 3
ROUTER = struct.pack("=HH", socket.AF_INET, 0) + socket.inet_aton("192.0.2.254") + bytes(8)


def extended(number: int, origin: int, kind: int, code: int, info: int) -> bytes:
    return struct.pack("=IBBBBII", number, origin, kind, code, 0, info, 0)


@given(st.integers(0, 65535), st.integers(0, 65535), st.binary(max_size=200))
def test_a_request_has_a_right_checksum(identifier: int, sequence: int, data: bytes) -> None:
    assert checksum(echo_request(4, identifier, sequence, data)) == 0


@given(st.integers(0, 65535), st.integers(0, 65535), st.binary(max_size=200), st.integers(5, 15))
def test_a_reply(identifier: int, sequence: int, data: bytes, words: int) -> None:
    head = struct.pack("!BBHHH", 0, 0, 0, identifier, sequence)
    assert parse_reply(4, head + data, has_ip_header=False) == (identifier, sequence, data)
    with_header = bytes([0x40 | words]) + bytes(words * 4 - 1) + head + data
    assert parse_reply(4, with_header, has_ip_header=True) == (identifier, sequence, data)
    head6 = struct.pack("!BBHHH", 129, 0, 0, identifier, sequence)
    assert parse_reply(6, head6 + data, has_ip_header=False) == (identifier, sequence, data)


@given(st.binary(max_size=80), st.sampled_from([4, 6]), st.booleans())
def test_no_packet_breaks_it(packet: bytes, version: int, header: bool) -> None:
    parsed = parse_reply(4 if version == 4 else 6, packet, has_ip_header=header)
    assert parsed is None or parsed[2] in packet


def test_too_big_without_an_mtu() -> None:
    """As routers before RFC 1191 say it."""
    said = parse_said([(*V4, extended(errno.EMSGSIZE, ICMP, 3, 4, 0) + ROUTER)], b"")
    assert said == Said("too-big", "too big", "192.0.2.254")


def test_unreachable_in_words() -> None:
    def words(pair: tuple[int, int], number: int, origin: int, kind: int, code: int) -> str | None:
        said = parse_said([(*pair, extended(number, origin, kind, code, 0) + ROUTER)], b"")
        assert said is not None
        assert said.kind == "unreachable"
        return said.words

    assert words(V4, errno.EHOSTUNREACH, ICMP, 3, 1) == "host unreachable"
    assert words(V4, errno.EHOSTUNREACH, ICMP, 3, 13) == "communication administratively prohibited"
    assert words(V4, errno.EHOSTUNREACH, ICMP, 11, 0) == "time to live exceeded"
    assert words(V6, errno.EACCES, ICMP6, 1, 1) == "communication administratively prohibited"
    assert words(V6, errno.EHOSTUNREACH, ICMP6, 1, 3) == "address unreachable"
    assert words(V6, errno.EHOSTUNREACH, ICMP6, 3, 0) == "time to live exceeded"
    assert words(V4, errno.EHOSTUNREACH, ICMP, 3, 99) == "no route to host"


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([LOCAL, ICMP, ICMP6]),
    st.integers(0, 255),
    st.integers(0, 255),
    st.integers(0, 2**32 - 1),
    st.binary(max_size=40),
    st.binary(max_size=40),
)
def test_no_message_breaks_it(
    number: int, origin: int, kind: int, code: int, info: int, offender: bytes, quoted: bytes
) -> None:
    said = parse_said([(*V4, extended(number, origin, kind, code, info) + offender)], quoted)
    assert said is not None
    assert said.words
