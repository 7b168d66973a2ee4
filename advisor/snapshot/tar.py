"""Reading a tar archive that may mean harm: front to back, every size checked before it is believed.

The standard library's reader seeks back (which decompresses again), expands sparse members, takes headers of any size
into memory, and in many of its versions searches them in the square of their length (CVE-2024-6232: minutes for an
archive of 300 bytes). A capture needs little of what it can do: ustar with the long names of GNU tar and of pax.

Format: POSIX.1-2017 pax(1), "ustar Interchange Format" and "pax Header Block"; GNU tar manual, "Basic Tar Format".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import IO, Literal, NamedTuple

from advisor.host.patterns import lazy_regex

BLOCK_BYTES = 512
MAX_HEADER_BYTES = 1 << 20
"""Of a header that holds a long name or pax records; both names of a member fit in many times over."""
RATIO_FLOOR_BYTES = 64 << 20
MAX_RATIO = 800
"""Decompressed to compressed, beyond the floor: captured hosts have up to 250, zeros more than 1000."""
_READ_AHEAD_BYTES = 64 * 1024
TOO_LARGE = "larger than any captured host"

Kind = Literal["file", "directory", "link", "hard link", "other"]

_KINDS: dict[bytes, Kind] = {
    b"0": "file",
    b"\0": "file",
    b"7": "file",
    b"5": "directory",
    b"2": "link",
    b"1": "hard link",
}
_RECORD = lazy_regex(rb"([1-9][0-9]{0,6}) ([^=\n]{1,200})=")


class DamagedError(Exception):
    """The archive is not whole, or claims what cannot be."""


class Member(NamedTuple):
    """What a header says; ``target`` is that of a link, ``modified`` in seconds since the epoch."""

    name: str
    kind: Kind
    size: int
    target: str
    modified: int = 0


class Members(NamedTuple):
    """What was read of an archive, by path. ``left_out`` is what was not taken of a support archive, with the reason;
    ``modified`` is when its files were, in seconds since the epoch."""

    contents: dict[str, bytes]
    links: dict[str, str]
    directories: set[str]
    left_out: dict[str, str]
    modified: dict[str, int]
    hard_links: dict[str, str]


class BoundedStream:
    """A decompressed stream that ends in a DamagedError where it grows beyond ``limit`` bytes or out of proportion.

    ``compressed`` is the file that it comes from, whose position says how much of it was needed.
    """

    def __init__(self, stream: IO[bytes], compressed: IO[bytes], limit: int) -> None:
        self._stream = stream
        self._compressed = compressed
        self.limit = limit
        self._ahead = b""
        self._at = 0
        self.position = 0

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes; fewer at the end only."""
        if self.position + size > self.limit:
            raise DamagedError(TOO_LARGE)
        start, self._at = self._at, self._at + size
        if self._at > len(self._ahead):
            # Two small reads for each member: a slice is cheaper than a call of the stream.
            rest = self._ahead[start:]
            self._ahead = rest + self._stream.read(max(size - len(rest), _READ_AHEAD_BYTES))
            start, self._at = 0, min(size, len(self._ahead))
        self.position += self._at - start
        if self.position > RATIO_FLOOR_BYTES and self.position > MAX_RATIO * max(1, self._compressed.tell()):
            raise DamagedError(f"grows to more than {MAX_RATIO} times its size: {TOO_LARGE}")
        return self._ahead[start : self._at]


class TarReader:
    """The members of an archive, in its order; ``content`` gives that of the member that was given last."""

    def __init__(self, stream: BoundedStream) -> None:
        self._stream = stream
        self._left = 0
        self._last = ""

    def __iter__(self) -> Iterator[Member]:
        """Raises ValueError for what is no tar archive at all, DamagedError for what is wrong further on."""
        name = target = None
        size: int | None = None
        while (header := self._next_header()) is not None:
            if header.member is not None and name is None and target is None and size is None:
                self._last, self._left = header.member.name, header.member.size
                yield header.member
            elif header.kind in (b"x", b"X"):
                records = _parse_records(self._read_long(header))
                name, target = records.get(b"path", name), records.get(b"linkpath", target)
                size = _pax_size(records[b"size"]) if b"size" in records else size
            elif header.kind == b"g":
                if _parse_records(self._read_long(header)).keys() & {b"path", b"linkpath", b"size"}:
                    raise self._make_damage("one name or size for all members")
            elif header.kind == b"L":
                name = _until_nul(self._read_long(header))
            elif header.kind == b"K":
                target = _until_nul(self._read_long(header))
            else:
                member = _make_member(header, name, target, size)
                self._last, self._left = member.name, member.size
                yield member
                name = target = size = None
        # Read what fills the archive up: the checksums of compressed data come with its last byte.
        limit = self._stream.position + MAX_HEADER_BYTES
        while self._stream.read(1 << 16):
            if self._stream.position > limit:
                raise DamagedError("goes on after its end")

    def content(self) -> bytes:
        """Of the member that was given last; empty for one that is no file."""
        size, self._left = self._left, 0
        return self._read_whole(size)

    def _next_header(self) -> _Header | None:
        """The next header; None at the mark of the end."""
        while self._left:
            self._left -= len(self._read_whole(min(self._left, 1 << 20)))
        is_first = not self._stream.position
        block = self._stream.read(BLOCK_BYTES)
        if block == bytes(BLOCK_BYTES):
            return None
        header = _parse_header(block)
        if header is not None:
            return header
        if not is_first:
            raise self._make_damage("damaged or cut off")
        raise ValueError("no tar archive" if block else "empty file")

    def _read_long(self, header: _Header) -> bytes:
        if header.size > MAX_HEADER_BYTES:
            raise self._make_damage(f"a header of {header.size} bytes, {TOO_LARGE},")
        return self._read_whole(header.size)

    def _read_whole(self, size: int) -> bytes:
        """So many bytes, and those that fill up their last block."""
        whole = size + -size % BLOCK_BYTES
        data = self._stream.read(whole)
        if len(data) < whole:
            raise self._make_damage("damaged or cut off")
        return data[:size]

    def _make_damage(self, what: str) -> DamagedError:
        return DamagedError(f"{what} after {self._last[:80]!r}" if self._last else f"{what} in its first member")


class _Header(NamedTuple):
    """``member`` where the header says by itself what it is of; None where it says more of the next one."""

    name: bytes
    kind: bytes
    size: int
    target: bytes
    modified: int
    member: Member | None = None


# Archives of like hosts hold like headers: the same names and sizes, and advisor's writer sets no times.
@lru_cache(maxsize=4096)
def _parse_header(block: bytes) -> _Header | None:
    if len(block) < BLOCK_BYTES:
        return None
    size = _parse_number(block[124:136])
    if size is None or not _is_sound(block):
        return None
    name, prefix = _until_nul(block[:100]), _until_nul(block[345:500])
    if prefix and block[257:263] == b"ustar\0":
        name = prefix + b"/" + name
    header = _Header(name, block[156:157], size, _until_nul(block[157:257]), _parse_number(block[136:148]) or 0)
    return header._replace(member=_make_member(header)) if header.kind in _KINDS else header


def _make_member(
    header: _Header, name: bytes | None = None, target: bytes | None = None, size: int | None = None
) -> Member:
    """What a header says, where headers before it did not say it better."""
    path = header.name if name is None else name
    # A file whose name ends in a slash: as archives older than ustar have a directory.
    is_directory = header.kind == b"\0" and path.endswith(b"/")
    kind = "directory" if is_directory else _KINDS.get(header.kind, "other")
    content = (header.size if size is None else size) if kind == "file" else 0
    return Member(
        _decode_name(path), kind, content, _decode_name(header.target if target is None else target), header.modified
    )


def _is_sound(block: bytes) -> bool:
    """Whether the sum of the bytes is right, its own field counted as blanks."""
    blanked = block[:148] + b" " * 8 + block[156:]
    claimed, total = _parse_number(block[148:156]), sum(blanked)
    # Some old programs summed signed bytes.
    return claimed == total or claimed == total - 256 * sum(byte > 127 for byte in blanked)


def _parse_number(field: bytes) -> int | None:
    """Octal digits, or with the highest bit set a binary number; none that is negative."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    found = re.fullmatch(rb" *([0-7]*)[ \0]*", field)
    return int(found[1] or b"0", 8) if found else None


def _parse_records(data: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    at = 0
    while at < len(data):
        head = _RECORD.match(data, at)
        end = at + int(head[1]) if head else 0
        if head is None or not head.end() < end <= len(data) or data[end - 1 : end] != b"\n":
            raise DamagedError("damaged pax records")
        if head[2].startswith(b"GNU.sparse."):
            raise DamagedError("a sparse member, which no captured host has")
        found[head[2]] = data[head.end() : end - 1]
        at = end
    return found


def _pax_size(value: bytes) -> int:
    if not re.fullmatch(rb"[0-9]{1,20}", value):
        raise DamagedError("damaged pax records")
    return int(value)


def _until_nul(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _decode_name(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
