"""Stands in for iputils' ping where none is installed: real echoes that must not be fragmented, by its own options.

Known are: -V, -4, -6, -n, -q, -c COUNT, -i SECONDS, -W SECONDS, -M do, -s BYTES, -I SOURCE, ADDRESS. Exit code 0
where one is answered, else 1.
"""

import getopt
import os
import select
import socket
import struct
import sys
import time

DO = 2


def main() -> int:
    options, rest = getopt.getopt(sys.argv[1:], "V46nqc:i:W:M:s:I:")
    given = dict(options)
    if "-V" in given:
        print("ping from iputils 20221126 (a stand-in)")
        return 0
    is_six = ":" in rest[0]
    family = socket.AF_INET6 if is_six else socket.AF_INET
    link = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_ICMPV6 if is_six else socket.IPPROTO_ICMP)
    link.setsockopt(socket.IPPROTO_IPV6 if is_six else socket.IPPROTO_IP, 23 if is_six else 10, DO)
    body = bytes(int(given.get("-s", "56")))
    for number in range(int(given.get("-c", "1"))):
        packet = struct.pack("!BBHHH", 128 if is_six else 8, 0, 0, os.getpid() & 0xFFFF, number) + body
        if not is_six:
            packet = packet[:2] + struct.pack("!H", checksum(packet)) + packet[4:]
        try:
            link.sendto(packet, (rest[0], 0))
        except OSError:
            continue
        if answered(link, 129 if is_six else 0, 0 if is_six else 20, number, float(given.get("-W", "1"))):
            return 0
    return 1


def answered(link: socket.socket, kind: int, skipped: int, number: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([link], [], [], left)[0]:
            data = link.recv(65536)[skipped:]
            if data[:1] == bytes([kind]) and struct.unpack("!HH", data[4:8]) == (os.getpid() & 0xFFFF, number):
                return True
    return False


def checksum(data: bytes) -> int:
    padded = data + b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return int(~total & 0xFFFF)


if __name__ == "__main__":
    sys.exit(main())
