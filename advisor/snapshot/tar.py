"""Reading a tar archive that may mean harm: front to back, every size checked before it is believed.

The standard library's reader seeks back (which decompresses again), expands sparse members, takes headers of any size
into memory, and in many of its versions searches them in the square of their length (CVE-2024-6232: minutes for an
archive of 300 bytes). A capture needs little of what it can do: ustar with the long names of GNU tar and of pax.

Format: POSIX.1-2017 pax(1), "ustar Interchange Format" and "pax Header Block"; GNU tar manual, "Basic Tar Format".
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from typing import IO, Literal, NamedTuple

from advisor.host.patterns import lazy_regex

BLOCK_BYTES = 512
MAX_HEADER_BYTES = 1 << 20
"""Of a header that holds a long name or pax records; both names of a member fit in many times over."""
RATIO_FLOOR_BYTES = 64 << 20
MAX_RATIO = 800
"""Decompressed to compressed, beyond the floor: captured hosts have up to 250, zeros more than 1000."""
_READ_AHEAD_BYTES = 256 * 1024
_END = bytes(BLOCK_BYTES)
TOO_LARGE = "larger than any captured host"

Kind = Literal["file", "directory", "link", "hard link", "sparse", "other"]

_KINDS: dict[bytes, Kind] = {
    b"0": "file",
    b"\0": "file",
    b"7": "file",
    b"5": "directory",
    b"2": "link",
    b"1": "hard link",
}
_OCTAL = lazy_regex(rb" *([0-7]*)[ \0]*")
_LONG = {b"L": b"path", b"K": b"linkpath"}
_EMPTY = b"346V"
"""Devices, pipes and labels: what the size of their header says, no content follows."""
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
        self._at = self._taken = 0
        self.position = 0

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes; fewer at the end only."""
        if self.position + size > self.limit:
            raise DamagedError(TOO_LARGE)
        start, self._at = self._at, self._at + size
        if self._at > len(self._ahead):
            # Two small reads for each member: a slice is cheaper than a call of the stream.
            rest = self._ahead[start:]
            self._read_ahead(rest, max(size - len(rest), _READ_AHEAD_BYTES))
            start, self._at = 0, min(size, len(self._ahead))
        self.position += self._at - start
        return self._ahead[start : self._at]

    def skip(self, size: int) -> bool:
        """Pass over so many bytes; whether there were as many."""
        self.position += size
        if self.position > self.limit:
            raise DamagedError(TOO_LARGE)
        while (beyond := self._at + size - len(self._ahead)) > 0:
            self._at, size = 0, beyond
            if not self._read_ahead(b"", _READ_AHEAD_BYTES):
                return False
        self._at += size
        return True

    def _read_ahead(self, rest: bytes, size: int) -> bool:
        """Put what comes next behind ``rest``; whether anything did."""
        data = self._stream.read(size)
        self._ahead = rest + data
        self._taken += len(data)
        if self._taken > RATIO_FLOOR_BYTES and self._taken > MAX_RATIO * max(1, self._compressed.tell()):
            raise DamagedError(f"grows to more than {MAX_RATIO} times its size: {TOO_LARGE}")
        return bool(data)


class TarReader:
    """The members of an archive, in its order; ``content`` gives that of the member that was given last."""

    def __init__(self, stream: BoundedStream) -> None:
        self._stream = stream
        self._left = 0
        self._last = ""

    def __iter__(self) -> Iterator[Member]:
        """Raises ValueError for what is no tar archive at all, DamagedError for what is wrong further on."""
        more: dict[bytes, bytes] = {}
        while (header := self._next_header()) is not None:
            if header.kind in (b"x", b"X"):
                more |= _parse_records(self._read_long(header))
            elif header.kind == b"g":
                if _parse_records(self._read_long(header)).keys() & {b"path", b"linkpath", b"size"}:
                    raise self._make_damage("one name or size for all members")
            elif header.kind in _LONG:
                more[_LONG[header.kind]] = _until_nul(self._read_long(header))
            else:
                member = _make_member(header, more)
                self._last, self._left = member.name, member.size
                yield member
                more = {}
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
        if self._left and not self._stream.skip(self._left + -self._left % BLOCK_BYTES):
            raise self._make_damage("damaged or cut off")
        self._left = 0
        is_first = not self._stream.position
        block = self._stream.read(BLOCK_BYTES)
        if block == _END:
            return None
        header = _parse_header(block)
        if header is not None:
            # The map of an old sparse file goes on in blocks of its own (tar.h, GNU: isextended, 21 and 42 entries).
            more = header.kind == b"S" and block[482]
            while more:
                more = self._read_whole(BLOCK_BYTES)[504]
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
    name: bytes
    kind: bytes
    size: int
    target: bytes
    modified: int


def _parse_header(block: bytes) -> _Header | None:
    size = _parse_number(block[124:136]) if len(block) == BLOCK_BYTES and _is_sound(block) else None
    if size is None:
        return None
    name, kind = _until_nul(block[:100]), block[156:157]
    if block[345] and block[257:263] == b"ustar\0":
        name = _until_nul(block[345:500]) + b"/" + name
    target = _until_nul(block[157:257]) if block[157] else b""
    return _Header(name, kind, size, target, _parse_number(block[136:148]) or 0)


def _make_member(header: _Header, more: Mapping[bytes, bytes]) -> Member:
    """What a header says, where headers before it did not say it better."""
    path, size, target, is_sparse = header.name, header.size, header.target, header.kind == b"S"
    if more:
        path = more.get(b"GNU.sparse.name", more.get(b"path", path))
        target = more.get(b"linkpath", target)
        size = _pax_size(more[b"size"]) if b"size" in more else size
        is_sparse |= any(key.startswith(b"GNU.sparse.") for key in more)
    # A file whose name ends in a slash: as archives older than ustar have a directory.
    is_directory = header.kind == b"\0" and path.endswith(b"/")
    kind = "sparse" if is_sparse else "directory" if is_directory else _KINDS.get(header.kind, "other")
    content = size if kind in ("file", "sparse", "other") and header.kind not in _EMPTY else 0
    return Member(path.decode("utf-8", "surrogateescape"), kind, content, _decode_name(target), header.modified)


def _is_sound(block: bytes) -> bool:
    """Whether the sum of the bytes is right, its own field counted as blanks."""
    # The low half of Adler-32 is the sum of the bytes and one, modulo 65521 (RFC 1950): a tenth of the time of sum().
    claimed = _parse_number(block[148:156])
    blanked = block[:148] + b"        " + block[156:]
    if claimed is not None and (claimed + 1) % 65521 == zlib.adler32(blanked) & 0xFFFF:
        return True
    # Some old programs summed signed bytes.
    return claimed == sum(blanked) - 256 * sum(byte > 127 for byte in blanked)


def _parse_number(field: bytes) -> int | None:
    """Octal digits, or with the highest bit set a binary number; none that is negative."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    found = _OCTAL.fullmatch(field)
    return int(found[1] or b"0", 8) if found else None


def _parse_records(data: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    at = 0
    while at < len(data):
        head = _RECORD.match(data, at)
        end = at + int(head[1]) if head else 0
        if head is None or not head.end() < end <= len(data) or data[end - 1 : end] != b"\n":
            raise DamagedError("damaged pax records")
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
