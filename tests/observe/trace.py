"""Pages of a ring buffer as the kernel lays them out, made of events: for tests."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from advisor.observe.tracing import COMPLETE, EVENTS, INSERT, ISSUE, PageLayout, make_layout
from tests.cases import read_cases

DATA = read_cases(__file__)

HEADER: Final = """\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
"""
# Linux 4.18: eight letters of the operation, no I/O priority.
FORMAT: Final = DATA["FORMAT"]
NAMES: Final = dict(enumerate(EVENTS, 100))
NUMBERS: Final = {name: number for number, name in NAMES.items()}


class Event(NamedTuple):
    """At a time in microseconds; of the disk 8,16."""

    at_us: int
    name: str
    sector: int
    sectors: int = 8
    letters: str = "W"
    pid: int = 7

    def packed(self, delta_ns: int = 5) -> bytes:
        body = struct.pack(
            "=HBBiI4xQIi8s",
            NUMBERS[self.name],
            0,
            0,
            self.pid,
            8 << 20 | 16,
            self.sector,
            self.sectors,
            0,
            self.letters.encode(),
        )
        return struct.pack("=I", len(body) // 4 | delta_ns << 5) + body


def layout() -> PageLayout:
    return make_layout(HEADER, [FORMAT.format(number=number) for number in NAMES])


def page_of(events: Sequence[Event], *, at_ns: int = 1 << 40, more: bytes = b"") -> bytes:
    data, before = b"", 0
    for one in events:
        data += one.packed((one.at_us - before) * 1000)
        before = one.at_us
    data += more
    return struct.pack("=QQ", at_ns, len(data) | 1 << 31) + data


__all__ = ["COMPLETE", "INSERT", "ISSUE", "NAMES", "Event", "layout", "page_of"]
