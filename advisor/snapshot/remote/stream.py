"""The frame of a capture: a magic line, a header, text in base64, and a last line with length and checksum.

``advisor-capture 1``, then lines ``KEY VALUE``, an empty line, base64, and ``end BYTES CKSUM`` over all that stands
before it, as cksum(1) counts (POSIX.1-2017). It travels through terminals and login shells: what stands before the
magic line (a banner) and behind the last one is passed over, and a carriage return before a line feed is dropped.
"""

from __future__ import annotations

import binascii
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

from advisor.errors import InvalidInputError
from advisor.host.files import open_given
from advisor.host.patterns import lazy_regex

MAGIC = "advisor-capture"
VERSION = 1
MAX_BANNER_BYTES = 64 << 10
MAX_HEADER_LINES = 64
MAX_LINE_BYTES = 8192
MAX_STREAM_BYTES = 128 << 20

_FIRST = lazy_regex(rb"advisor-capture ([0-9]{1,4})\n")
_ANYWHERE = lazy_regex(rb"(?m)^advisor-capture [0-9]{1,4}\r?$")
_ARCHIVES = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0")
_END = lazy_regex(rb"end ([0-9]{1,12}) ([0-9]{1,10})\n")
_HEADER = lazy_regex(rb"([a-z][a-z-]{0,30}) ([^\n]*)\n")
_BODY = lazy_regex(rb"[A-Za-z0-9+/]+={0,2}\n")
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


class Stream(NamedTuple):
    """A whole stream whose checksum is right."""

    header: Mapping[str, str]
    data: bytes


class Checksum:
    """What cksum(1) prints: a CRC-32 that takes the highest bit first, so that zlib does it on mirrored bits."""

    def __init__(self) -> None:
        self._crc = 0xFFFFFFFF
        self.length = 0

    def add(self, data: bytes) -> None:
        self._crc = zlib.crc32(data.translate(_REVERSED), self._crc)
        self.length += len(data)

    @property
    def value(self) -> int:
        length = self.length.to_bytes((self.length.bit_length() + 7) // 8, "little")
        crc = zlib.crc32(length.translate(_REVERSED), self._crc)
        return int(f"{crc:032b}"[::-1], 2)


def is_capture(path: Path) -> bool:
    """Whether a file is one, a banner before it apart; not so for one that cannot be read."""
    try:
        with open_given(path) as file:
            start = file.read(MAX_BANNER_BYTES)
    except (OSError, InvalidInputError):
        return False
    return not start.startswith(_ARCHIVES) and _ANYWHERE.search(start) is not None


def read_stream(file: IO[bytes], where: str) -> Stream:
    """The header and the decoded text. Raises InvalidInputError that says what is wrong; reads nothing behind the end.

    Memory: at most `MAX_STREAM_BYTES`, and three quarters of that for what it decodes to.
    """
    checksum = Checksum()
    lines = _read_lines(file, where)
    _skip_banner(lines, checksum, where)
    header = _read_header(lines, checksum, where)
    parts: list[bytes] = []
    for line in lines:
        if found := _END.fullmatch(line):
            if (int(found[1]), int(found[2])) != (checksum.length, checksum.value):
                raise InvalidInputError(f"{where}: damaged capture: its checksum does not fit")
            return Stream(header, b"".join(parts))
        checksum.add(line)
        if checksum.length > MAX_STREAM_BYTES:
            raise InvalidInputError(f"{where}: larger than any capture")
        parts.append(_decode_line(line, where))
    raise InvalidInputError(
        f"{where}: truncated capture: its last line is missing", hint="the host was lost, or the script was ended"
    )


def _read_lines(file: IO[bytes], where: str) -> Iterator[bytes]:
    while line := file.readline(MAX_LINE_BYTES):
        yield line[:-2] + b"\n" if line.endswith(b"\r\n") else line


def _skip_banner(lines: Iterator[bytes], checksum: Checksum, where: str) -> None:
    skipped = 0
    for line in lines:
        if found := _FIRST.fullmatch(line):
            if int(found[1]) != VERSION:
                raise InvalidInputError(
                    f"{where}: capture of version {int(found[1])}, this version reads {VERSION}",
                    hint="capture the host with the script of this version: advisor snapshot --script",
                )
            checksum.add(line)
            return
        skipped += len(line)
        if skipped > MAX_BANNER_BYTES:
            break
    if not skipped:
        raise InvalidInputError(f"{where}: the host sent nothing")
    raise InvalidInputError(f"{where}: not a capture: there is no line '{MAGIC} {VERSION}'")


def _read_header(lines: Iterator[bytes], checksum: Checksum, where: str) -> dict[str, str]:
    header: dict[str, str] = {}
    for line in lines:
        checksum.add(line)
        if line == b"\n":
            return header
        found = _HEADER.fullmatch(line)
        if not line.endswith(b"\n") and len(line) < MAX_LINE_BYTES:
            break
        if found is None or len(header) >= MAX_HEADER_LINES:
            raise InvalidInputError(f"{where}: damaged capture: {line[:40]!r} is no line of its header")
        header[found[1].decode()] = found[2].decode("utf-8", "replace")
    raise InvalidInputError(f"{where}: truncated capture: it ends in its header")


def _decode_line(line: bytes, where: str) -> bytes:
    if not line.endswith(b"\n") and len(line) < MAX_LINE_BYTES:
        raise InvalidInputError(f"{where}: truncated capture: its last line is missing")
    try:
        if _BODY.fullmatch(line):
            return binascii.a2b_base64(line)
    except binascii.Error:
        pass
    raise InvalidInputError(f"{where}: damaged capture: {line[:40]!r} is no base64")
