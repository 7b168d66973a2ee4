"""The stream of a capture: what it may be wrapped in, and that nothing less than all of it is taken for it."""

from __future__ import annotations

import base64
import gzip
import io
import random
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from advisor.errors import InvalidInputError
from advisor.host import Missing
from advisor.snapshot.remote.capture import capture_host, decode_capture, open_capture
from advisor.snapshot.remote.stream import Checksum, is_capture, read_stream
from tests.cases import read_cases

DATA = read_cases(__file__)

FILES = DATA["FILES"]


def packed(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), mtime=0)


def framed(
    data: bytes, header: str = "hostname one\nmachine-id m\nboot-id b\ntime 1700000000\nuid 0\nencoding gzip\n"
) -> bytes:
    body = f"advisor-capture 1\n{header}\n".encode() + base64.encodebytes(data)
    checksum = Checksum()
    checksum.add(body)
    return body + b"end %d %d\n" % (checksum.length, checksum.value)


STREAM = framed(packed(FILES))


def refusal(data: bytes) -> str:
    with pytest.raises(InvalidInputError) as refused:
        decode_capture(data, "node7")
    assert refused.value.message.startswith("node7: ")
    return refused.value.message


def test_a_stream_is_taken_apart() -> None:
    found = decode_capture(STREAM, "node7")
    assert (found.hostname, found.machine_id, found.boot_id, found.time, found.uid) == ("one", "m", "b", 1700000000, 0)
    host = capture_host(STREAM, "node7")
    assert host.is_root
    assert host.read("/proc/sys/kernel/hostname") == "one"
    assert host.read("/etc/shadowed") == Missing("unreadable", "Permission denied")
    assert host.exists("/run/udev/control")
    assert host.run(("lltconfig",)) == Missing("unreadable", "lltconfig did not answer within 10 s")
    assert host.run(("storcli", "show")) == Missing("absent", "storcli is not installed")


def test_any_prefix_is_refused() -> None:
    for end in range(len(STREAM)):
        refusal(STREAM[:end])


def test_any_changed_byte_is_refused() -> None:
    chance = random.Random(1)
    for at in range(len(STREAM)):
        for bit in {chance.randrange(8), chance.randrange(8)}:
            changed = bytearray(STREAM)
            changed[at] ^= 1 << bit
            refusal(bytes(changed))


@pytest.mark.parametrize("before", [b"", b"Welcome\n\n   to node7\n", b"\xff\xfe\0\n", b"x" * 20000 + b"\n"])
@pytest.mark.parametrize("after", [b"", b"\nlogout\n", b"\0\xff"])
def test_what_a_login_shell_says_is_passed_over(before: bytes, after: bytes) -> None:
    assert read_stream(io.BytesIO(before + STREAM + after), "node7") == read_stream(io.BytesIO(STREAM), "node7")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "sent nothing"),
        (b"sh: advisor: not found\n", "not a capture"),
        (STREAM.replace(b"capture 1\n", b"capture 2\n"), "version 2"),
        (STREAM.replace(b"\nuid 0\n", b"\nUID=0\n"), "header"),
        (framed(b"no gzip at all"), "damaged"),
        (framed(gzip.compress(b"no tar at all" * 100)), "damaged"),
        (framed(packed(FILES)[:-20]), "damaged"),
        (framed(gzip.compress(bytes(300 << 20), 9)), "damaged"),
    ],
    ids=["empty", "words", "version", "header", "gzip", "tar", "short", "bomb"],
)
def test_what_is_no_capture_is_named(data: bytes, words: str) -> None:
    assert words in refusal(data)


def test_a_file_with_a_stream_is_told_from_an_archive(tmp_path: Path) -> None:
    stream, archive = tmp_path / "a.capture", tmp_path / "a.tar.gz"
    stream.write_bytes(b"Welcome\r\n" + STREAM)
    archive.write_bytes(decode_capture(STREAM, "node7").archive)
    assert (is_capture(stream), is_capture(archive), is_capture(tmp_path / "none")) == (True, False, False)
    assert open_capture(stream).read("/proc/sys/kernel/hostname") == "one"
    checksum = Checksum()
    checksum.add(STREAM)
    done = subprocess.run(["cksum"], input=STREAM, capture_output=True, check=True)
    assert tuple(map(int, done.stdout.split())) == (checksum.value, checksum.length)
