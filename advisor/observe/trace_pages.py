"""Pages of the kernel's ring buffer (``trace_pipe_raw``), as events of block requests.

The kernel does not format them, which is most of what a trace as text costs. Where the fields are, it says itself:
``events/header_page`` and ``events/…/format``. Source: Documentation/trace/ring-buffer-design.rst,
include/linux/ring_buffer.h, kbuffer-parse.c of libtraceevent.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_FIELD = re.compile(
    r"^\s{0,4}field: {0,4}([^;\n]{1,80});\s{0,4}offset:([0-9]{1,5});\s{0,4}size:([0-9]{1,5});", re.MULTILINE | re.ASCII
)
_ID = re.compile(r"^ID: ([0-9]{1,5})$", re.MULTILINE | re.ASCII)
_COMMIT_MASK = 0xFFFFF
"""Bits above it say that events are missing before the page."""
_WORD_BYTES = 4
_TYPE_BITS, _DELTA_BITS = 5, 27
_PADDING, _TIME_EXTEND, _TIME_STAMP = 29, 30, 31
_STAMP_BITS = 59
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
_FIELDS = ("common_type", "common_pid", "dev", "sector", "nr_sector", "rwbs")
"""What is taken of an event, in the order in which every kernel has them."""


TraceEvent = tuple[int, int, int, int, int, int, bytes]
"""An event of a request: nanoseconds, number of the event, process, device as the kernel has it, sector, sectors, and
the letters of the operation with zeros."""


class PageLayout(NamedTuple):
    """Where things are in a page (bytes) and in each kind of event by its number."""

    commit: int
    commit_bytes: int
    data: int
    events: Mapping[int, struct.Struct]


def parse_fields(text: str) -> dict[str, tuple[int, int]]:
    """Offset and size in bytes of each field of a ``format`` or of ``header_page``."""
    found = {}
    for declared, offset, size in _FIELD.findall(text):
        name = declared.split(" ")[-1].partition("[")[0]
        found[name] = int(offset), int(size)
    return found


def parse_event_id(text: str) -> int | None:
    """The number of an event by its ``format``."""
    found = _ID.search(text)
    return int(found[1]) if found else None


def make_layout(header_page: str, formats: Sequence[str]) -> PageLayout:
    """The layout by what the kernel says about it. Raises ValueError for a format without the fields of a request."""
    header = parse_fields(header_page)
    if not {"commit", "data"} <= header.keys() or header["commit"][1] not in (4, 8):
        raise ValueError("header_page")
    events = {}
    for text in formats:
        number = parse_event_id(text)
        if number is None:
            raise ValueError("ID")
        events[number] = _make_struct(parse_fields(text))
    return PageLayout(*header["commit"], header["data"][0], events)


def _make_struct(fields: Mapping[str, tuple[int, int]]) -> struct.Struct:
    layout, at = "=", 0
    for name in _FIELDS:
        offset, size = fields.get(name, (-1, 0))
        code = f"{size}s" if name == "rwbs" else _CODES.get(size, "")
        if offset < at or not code or size > 64:
            raise ValueError(name)
        layout += f"{offset - at}x{code}"
        at = offset + size
    return struct.Struct(layout)


def committed_bytes(layout: PageLayout, page: bytes) -> int:
    """How many bytes of a page are events, after ``layout.data``."""
    word = page[layout.commit : layout.commit + layout.commit_bytes]
    return min(int.from_bytes(word, sys.byteorder) & _COMMIT_MASK, max(0, len(page) - layout.data))


def decode_pages(layout: PageLayout, pages: Sequence[bytes]) -> list[TraceEvent]:
    """The events of pages of one CPU, oldest first. Other events and what is cut off are left out."""
    found: list[TraceEvent] = []
    take = found.append
    events = layout.events
    is_little = sys.byteorder == "little"
    read_word = struct.Struct("=I").unpack_from
    read_head = struct.Struct("=IH").unpack_from
    room = bytes(max((one.size for one in events.values()), default=0) + 2 * _WORD_BYTES)
    for page in pages:
        if len(page) < layout.data:
            continue
        time = int.from_bytes(page[:8], sys.byteorder)
        at = layout.data
        end = at + committed_bytes(layout, page)
        page = page[:end] + room
        # A second of CPU time is spent on this loop: each event costs two reads and no call that can be saved.
        while at < end:
            word, number = read_head(page, at)
            kind, delta = (word & 31, word >> _TYPE_BITS) if is_little else (word >> _DELTA_BITS, word & (1 << 27) - 1)
            at += _WORD_BYTES
            if kind < _PADDING:
                time += delta
                size = kind * _WORD_BYTES
                if not kind:
                    size = (read_word(page, at)[0] + 3) & ~3
                    number = read_head(page, at)[1]
                layout_of = events.get(number)
                if layout_of is not None:
                    take((time, *layout_of.unpack_from(page, at if kind else at + _WORD_BYTES)))
                at += size
            elif kind == _PADDING:
                if not delta:
                    break
                time += delta
                at += read_word(page, at)[0]
            else:
                long = delta | read_word(page, at)[0] << _DELTA_BITS
                # A stamp has the lower bits of a time; the upper ones are those of the page.
                time = time + long if kind == _TIME_EXTEND else time >> _STAMP_BITS << _STAMP_BITS | long
                at += _WORD_BYTES
    return found
