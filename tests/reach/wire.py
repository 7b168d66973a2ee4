"""A peer in user space at the far end of a veth: it sees every packet, and answers as the test wants it to.

It needs no address in its namespace: the near end has a permanent neighbour entry for each peer.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
from collections.abc import Callable, Iterator

import msgspec

from tests.reach.space import Spaces

ETH_P_IP = 0x0800


class Request(msgspec.Struct, frozen=True):
    """An echo request as it arrived. ``number`` counts all requests, from 0; ``packet`` is the whole IP packet."""

    number: int
    source: str
    target: str
    identifier: int
    sequence: int
    data: bytes
    packet: bytes
    may_be_fragmented: bool

    @property
    def size(self) -> int:
        return len(self.packet)

    def reply(
        self,
        *,
        data: bytes | None = None,
        source: str | None = None,
        identifier: int | None = None,
        sequence: int | None = None,
    ) -> bytes:
        """An echo reply; what is given replaces what an honest one would have."""
        body = self.data if data is None else data
        first = self.identifier if identifier is None else identifier
        second = self.sequence if sequence is None else sequence
        return ipv4(source or self.target, self.source, icmp(0, 0, first << 16 | second, body))

    def too_big(self, mtu: int, source: str = "192.0.2.254") -> bytes:
        """*Fragmentation needed*, with the head of this packet, as RFC 1191 has it."""
        return ipv4(source, self.source, icmp(3, 4, mtu, self.packet[:28]))

    def prohibited(self, source: str = "192.0.2.254") -> bytes:
        """*Communication administratively prohibited*."""
        return ipv4(source, self.source, icmp(3, 13, 0, self.packet[:28]))


Behaviour = Callable[[Request], list[bytes]]


@contextlib.contextmanager
def far_end(spaces: Spaces, behave: Behaviour, *peers: str, mtu: int = 9000) -> Iterator[None]:
    """Spaces ``near`` (192.0.2.1/24 on ``n0``) and ``far``, where ``behave`` answers for all ``peers``."""
    spaces.add("near", "far")
    spaces.set("far", "net/ipv6/conf/default/disable_ipv6", "1")
    spaces.wire(("near", "n0"), ("far", "f0"), mtu)
    spaces.address("near", "n0", "192.0.2.1/24")
    mac = spaces.run("far", "cat /sys/class/net/f0/address").strip()
    for peer in peers:
        spaces.run("near", f"ip neigh add {peer} lladdr {mac} dev n0 nud permanent")
    with spaces.running("far", lambda ready: _serve("f0", behave, ready)):
        yield


def _serve(link: str, behave: Behaviour, ready: Callable[[], None]) -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP)) as wire:
        wire.bind((link, ETH_P_IP))
        ready()
        number = 0
        while True:
            frame, (_, _, kind, _, _) = wire.recvfrom(70000)
            request = parse_request(frame[14:], number) if kind != socket.PACKET_OUTGOING else None
            if request is not None:
                number += 1
                for packet in behave(request):
                    wire.send(frame[6:12] + frame[:6] + frame[12:14] + packet)


def parse_request(packet: bytes, number: int) -> Request | None:
    """An IPv4 echo request; None for anything else."""
    if len(packet) < 28 or packet[9] != socket.IPPROTO_ICMP or packet[20] != 8:
        return None
    total, _, flags = struct.unpack_from("!HHH", packet, 2)
    identifier, sequence = struct.unpack_from("!HH", packet, 24)
    return Request(
        number=number,
        source=socket.inet_ntoa(packet[12:16]),
        target=socket.inet_ntoa(packet[16:20]),
        identifier=identifier,
        sequence=sequence,
        data=packet[28:total],
        packet=packet[:total],
        may_be_fragmented=not flags & 0x4000,
    )


def icmp(kind: int, code: int, rest: int, data: bytes) -> bytes:
    head = struct.pack("!BBHI", kind, code, 0, rest)
    return head[:2] + struct.pack("!H", checksum(head + data)) + head[4:] + data


def ipv4(source: str, target: str, payload: bytes) -> bytes:
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 7, 0, 64, socket.IPPROTO_ICMP, 0)
    ends = ipaddress.IPv4Address(source).packed + ipaddress.IPv4Address(target).packed
    return head[:10] + struct.pack("!H", checksum(head + ends)) + ends + payload


def checksum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
