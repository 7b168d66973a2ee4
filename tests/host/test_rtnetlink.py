"""What the kernel says about links and addresses; the running one is asked in tests/facts/test_links_live.py."""

from __future__ import annotations

import struct

import pytest

from advisor.host.rtnetlink import parse_plain_links


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def message(kind: int, body: bytes, flags: int = 2) -> bytes:
    return struct.pack("IHHII", 16 + len(body), kind, flags, 1, 0) + body + bytes(-len(body) % 4)


def number(value: int) -> bytes:
    return struct.pack("I", value)


ETHERNET = {
    **{1: bytes.fromhex("020000000001"), 3: b"eth0\0", 4: number(1500), 13: number(1000), 16: b"\6", 50: number(68)},
    **{51: number(9000), 54: bytes.fromhex("020000000002")},
}
ADDRESS = struct.pack("BBBBI", 2, 24, 0, 0, 2) + attribute(1, bytes([10, 0, 0, 2])) + attribute(2, bytes([10, 0, 0, 1]))


def link(given: dict[int, bytes], kind: int = 1, index: int = 2, flags: int = 0x10001) -> bytes:
    body = struct.pack("BBHiII", 0, 0, kind, index, flags, 0)
    return body + b"".join(attribute(*one) for one in given.items())


DONE = message(3, bytes(4))
ANSWERS = message(16, link(ETHERNET)) + DONE + message(20, ADDRESS) + DONE


def test_a_link_with_its_address() -> None:
    assert parse_plain_links(ANSWERS) == [
        {
            **{"ifindex": 2, "ifname": "eth0", "flags": ["UP", "LOWER_UP"], "link_type": "ether", "operstate": "UP"},
            **{"address": "02:00:00:00:00:01", "permaddr": "02:00:00:00:00:02", "mtu": 1500, "txqlen": 1000},
            **{"min_mtu": 68, "max_mtu": 9000},
            "addr_info": [{"family": "inet", "local": "10.0.0.1", "prefixlen": 24}],
        }
    ]


def test_names_stand_for_the_indexes_of_a_master_and_of_the_other_end() -> None:
    one = message(16, link({**ETHERNET, 5: number(3), 10: number(3)}))
    other = message(16, link({**ETHERNET, 3: b"eth1\0"}, index=3))
    found = parse_plain_links(one + other + DONE)
    assert found is not None
    assert (found[0]["link"], found[0]["master"]) == ("eth1", "eth1")
    # Without the other one.
    assert parse_plain_links(one + DONE) is None


@pytest.mark.parametrize(
    "answers",
    [
        message(16, link(ETHERNET), flags=0x12) + DONE,
        message(2, number(1)) + DONE,
        message(16, link(ETHERNET, kind=32)) + DONE,
        message(16, link({**ETHERNET, 18: attribute(1, b"bond\0") + attribute(2, attribute(1, b"\1"))})) + DONE,
        message(16, link({**ETHERNET, 18: attribute(4, b"bond\0") + attribute(5, attribute(1, b"\1"))})) + DONE,
        message(16, link({3: b"eth0\0"})) + DONE,
        message(20, ADDRESS) + DONE,
        message(16, link(ETHERNET) + b"\2\0\0\0") + DONE,
        b"\1" * 16,
    ],
    ids=["changed", "error", "infiniband", "bond", "member", "bare", "address alone", "damaged", "no message"],
)
def test_what_is_left_to_ip(answers: bytes) -> None:
    assert parse_plain_links(answers) is None
