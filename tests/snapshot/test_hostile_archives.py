"""Archives that mean harm, or were harmed: one error that names what is wrong; nothing is read outside or written."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.errors import InvalidInputError
from advisor.facts.host_facts import scan
from advisor.host import Host, MemoryFiles, NoCommands
from advisor.snapshot import archive as snapshot
from advisor.snapshot import tar as tarball
from advisor.snapshot.archive import INDEX, SCHEMA, capture_host, open_snapshot
from tests.fuzz.hosts import ARTICLES, parts_of

GOOD: Mapping[str, Any] = {
    **{"schema": SCHEMA, "is_root": True, "links": {}, "directories": []},
    **{"unreadable": {}, "commands": [], "ethtool": []},
}


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int | None = None) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, target, size or 0
    return info


def archive(*members: tarfile.TarInfo | tuple[str, bytes], form: str = "w:gz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=form) as tar:  # type: ignore[call-overload]
        for one in members:
            if isinstance(one, tuple):
                tar.addfile(member(one[0], size=len(one[1])), io.BytesIO(one[1]))
            else:
                tar.addfile(one, io.BytesIO(bytes(one.size)) if one.size > 0 else None)
    return buffer.getvalue()


def index(**parts: Any) -> tuple[str, bytes]:
    return INDEX, json.dumps({**GOOD, **parts}).encode()


def opened(data: bytes) -> Host:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        return open_snapshot(Path(file.name))


def refusal(data: bytes) -> str:
    with pytest.raises(InvalidInputError) as caught:
        opened(data)
    return caught.value.message


SYS = ("sys/x", b"1")


@pytest.mark.parametrize("form", ["w:gz", "w:xz", "w:bz2", "w:"])
def test_what_is_sound_opens(form: str) -> None:
    host = opened(archive(index(links={"/l": "f"}), ("root/f", b"x"), form=form))
    assert (host.read("/l"), host.exists("/root/f")) == ("x", False)
    bare = opened(archive(("./host/proc/x", b"1"), member("./host/sys", tarfile.DIRTYPE), form=form))
    assert (bare.read("/proc/x"), bare.listdir("/")) == ("1", ("proc", "sys"))


@pytest.mark.parametrize(
    "one",
    [
        *map(member, ("../x", "sys/../../x", "/etc/passwd", "//x", "sys/" * 64 + "x", "sys/" + "x" * 4097)),
        *(member("sys/link", tarfile.SYMTYPE, target) for target in ("/etc/passwd", "../../x", "../sys/../../x")),
        *(member("sys/node", kind) for kind in (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"Z")),
        member("sys/hard", tarfile.LNKTYPE, "sys/x"),
        member("sys/large", size=snapshot.MAX_MEMBER_BYTES + 1),
    ],
    ids=lambda one: f"{one.name[:20]}-{one.type.decode()}-{one.linkname}",
)
def test_a_member_that_is_refused_is_named(one: tarfile.TarInfo) -> None:
    for first in (SYS, index()):
        said = refusal(archive(first, one))
        assert repr(one.name)[:60].rstrip("'") in said


def test_links_of_the_kernels_own() -> None:
    links = (member("proc/1/exe", tarfile.SYMTYPE, "/usr/bin/x"), member("proc/1/fd/3", tarfile.SYMTYPE, "socket:[7]"))
    inside = member("sys/up", tarfile.SYMTYPE, "../proc/./1")
    # Of a tree that was moved: one step too far, and no further than the top.
    moved = member("sys/devices/up", tarfile.SYMTYPE, "../../../../proc/1")
    host = opened(archive(("proc/1/x", b"1"), *links, inside, moved))
    assert host.listdir("/proc/1") == ("x",)
    assert host.read("/sys/up/x") == host.read("/sys/devices/up/x") == "1"


def claiming(field: bytes) -> bytes:
    """A header whose size is what it says."""
    header = bytearray(member("sys/x").tobuf())
    header[124:136] = field.ljust(12, b"\0")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


@pytest.mark.parametrize(
    "field", [b"\xff" * 12, b"\xff" * 11 + b"\0", b"\x80" + b"\xff" * 11, b"77777777777", b"-1", b"x"]
)
def test_a_size_that_cannot_be(field: bytes) -> None:
    with no_hang():
        refusal(archive(SYS, form="w:")[:1024] + claiming(field) * 3 + bytes(1024))


def header(name: str, kind: bytes, size: int) -> bytes:
    """A header of this kind alone: the library's writer would turn it into something else."""
    info = member(name, kind, size=size)
    return info.create_ustar_header(info.get_info(), "utf-8", "surrogateescape")


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def record(key: str, value: bytes) -> bytes:
    body = b" %s=%s\n" % (key.encode(), value)
    length = len(body) + len(str(len(body)))
    return b"%d" % (length + (len(str(length)) != len(str(len(body))))) + body


def extended(kind: bytes, data: bytes) -> bytes:
    return header("x", kind, len(data)) + padded(data)


PLAIN_MEMBER = header("sys/x", b"0", 0)
END = bytes(1024)


@contextmanager
def no_hang() -> Iterator[None]:
    """The bombs below took from minutes to hours where they worked; no machine is so slow that this hides it."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    ("data", "words"),
    [
        # 280 bytes that keep the library's own reader busy for minutes: CVE-2024-6232.
        (extended(b"x", b"1" * 500_000), "damaged pax records"),
        (extended(b"x", b"6 a=b\n" * (8 << 18)), "larger than any captured host"),
        (extended(b"L", b"x" * (8 << 20)), "larger than any captured host"),
        (extended(b"g", b"x" * (8 << 20)), "larger than any captured host"),
        (extended(b"x", b"6 a=b\n") * 20_000 + PLAIN_MEMBER * 2 + END, "'sys/x': is there twice"),
        (PLAIN_MEMBER + bytes(200 << 20), "goes on after its end"),
        (b"".join(header(f"sys/{number}", b"0", 32 << 20) + bytes(32 << 20) for number in range(4)), "grows to more"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_little_that_becomes_much(data: bytes, words: str) -> None:
    small = gzip.compress(data)
    with no_hang():
        assert words in refusal(small)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (header("sys/s", b"S", 0), "'sys/s': a sparse file"),
        (extended(b"x", record("GNU.sparse.major", b"1")) + header("sys/y", b"0", 0), "a sparse file"),
        (header("sys/s", b"S", 0)[:482] + b"1", "damaged or cut off"),
        (extended(b"g", record("path", b"sys/z")), "one name or size for all members"),
        (extended(b"x", record("size", b"-9")) + PLAIN_MEMBER, "damaged pax records"),
        (extended(b"x", b"99 a="), "damaged pax records"),
        (extended(b"x", b"9 a=bcde\t"), "damaged pax records"),
        (extended(b"x", b"\0\0\0"), "damaged pax records"),
        (extended(b"x", record("path", b"a\0b")) + PLAIN_MEMBER, "no file can have such a name"),
        (extended(b"x", record("path", b"../a")) + PLAIN_MEMBER, "must lie inside the archive"),
        (header("sys/" + "x" * 90, b"0", 5) + b"12", "damaged or cut off after 'sys/xxxx"),
        (header("sys/a", b"0", 0) + header("sys/a", b"0", 0) + END, "'sys/a': is there twice"),
        (header("sys/a", b"5", 0) + header("sys/a", b"0", 0) + END, "'sys/a': is there twice"),
        (header("sys/a", b"0", 0) + header("./sys//a", b"5", 0) + END, "'./sys//a/': is there twice"),
        (header("sys/a", b"0", 0) + header("sys/a/b/c", b"0", 0) + END, "'sys/a/b/c': lies below what is no directory"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_tricks(data: bytes, words: str) -> None:
    assert words in refusal(PLAIN_MEMBER + data)


def test_a_link_and_what_lies_below_it() -> None:
    link = member("sys/a", tarfile.SYMTYPE, "x")
    assert "'sys/a/b': lies below what is no directory" in refusal(archive(SYS, link, ("sys/a/b", b"1")))
    for target in ("y" * 5000, "y/../" * 1000):
        assert "none that a file system can hold" in refusal(archive(SYS, member("sys/l", tarfile.SYMTYPE, target)))


@settings(deadline=None)
@given(
    st.dictionaries(st.text("abé/. \udcff", min_size=1, max_size=120), st.binary(max_size=1500), max_size=5),
    st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
)
def test_what_the_librarys_reader_reads(files: dict[str, bytes], form: int) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form, errors="surrogateescape") as tar:
        for name, data in files.items():
            with suppress(ValueError):
                tar.addfile(member(name, size=len(data)), io.BytesIO(data))
        tar.addfile(member("link" * 30, tarfile.SYMTYPE, "target" * 30)) if form != tarfile.USTAR_FORMAT else None
        tar.addfile(member("folder", tarfile.DIRTYPE))
    theirs = []
    with tarfile.open(fileobj=io.BytesIO(buffer.getvalue())) as tar:
        for one in tar:
            opened = tar.extractfile(one) if one.isreg() else None
            theirs.append((one.name.rstrip("/"), one.linkname if one.issym() else "", opened.read() if opened else b""))
    plain = io.BytesIO(buffer.getvalue())
    reader = tarball.TarReader(tarball.BoundedStream(plain, plain, 1 << 30))
    ours = [(one.name.rstrip("/"), one.target, reader.content()) for one in reader]
    assert ours == theirs


def test_bombs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MAX_TOTAL_BYTES", 1 << 20)
    monkeypatch.setattr(snapshot, "MAX_MEMBERS", 100)
    monkeypatch.setattr(snapshot, "MAX_MEMBER_BYTES", 1 << 19)
    parts = [member(f"sys/{number}", size=1 << 19) for number in range(3)]
    assert "'sys/2': too large" in refusal(archive(*parts))
    assert "more than 100 members" in refusal(archive(*(member(f"sys/{number}") for number in range(101))))
    # Read whole by the library before a member is seen at all.
    for kind in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME):
        assert "larger than any captured host" in refusal(archive(SYS, member("sys/long", kind, size=1 << 23)))
    headers = [member("sys/long", tarfile.GNUTYPE_LONGNAME, size=512)] * 3000
    refusal(archive(*headers))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a snapshot archive: empty file"),
        (b"not a tar at all", "not a snapshot archive"),
        (bytes(10240), "holds neither"),
        (gzip.compress(b"not a tar at all" * 100), "not a snapshot archive"),
        (b"\x1f\x8b" + b"x" * 100, ""),
        (b"\xfd7zXZ\0" + b"x" * 100, ""),
        (b"BZh9" + b"x" * 100, ""),
        (lzma.compress(b"x"), "not a snapshot archive"),
        (archive(), "holds neither"),
        (archive(("only", b"x")), "holds neither"),
        (archive((".", b"x")), "holds neither"),
        (archive(("a", b""), ("b", b"")), "holds neither"),
        (archive((INDEX, b"")), f"{INDEX}: "),
        (archive((INDEX, b"\xff")), f"{INDEX}: "),
        (archive((INDEX, b"[]")), f"{INDEX}: "),
        (archive((INDEX, b"[" * 200_000)), f"{INDEX}: "),
        (archive((INDEX, b'{"a":' * 200_000)), f"{INDEX}: "),
        (archive((INDEX, b"1" * 5000)), f"{INDEX}: "),
        (archive(index(schema="advisor.snapshot/9")), f"{INDEX}: schema is 'advisor.snapshot/9'"),
        (archive((INDEX, b'{"schema": "advisor.snapshot/9"}')), f"{INDEX}: schema is 'advisor.snapshot/9'"),
        (archive(index(links=[])), f"{INDEX}: "),
        (archive(index(links={"/a": 1})), f"{INDEX}: "),
        (archive(index(links={"/a": "./" * 5000})), f"{INDEX}: '/a'"),
        (archive(index(links={"/a" * 5000: "b"})), f"{INDEX}: '/a/a"),
        (archive(index(directories=["relative"])), f"{INDEX}: 'relative'"),
        (archive(index(directories=["/a/../b"])), f"{INDEX}: '/a/../b'"),
        (archive(index(unreadable={"/x" * 65: "w"})), f"{INDEX}: '/x/x"),
    ],
)
def test_what_is_no_snapshot(data: bytes, words: str) -> None:
    assert words in refusal(data)


def test_other_things_in_its_place(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "zip", "w") as zipped:
        zipped.writestr("sys/x", "1")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    others = {"nowhere": "no such file", "": "Is a directory", **dict.fromkeys(("fifo", "zeros"), "not a regular file")}
    for name, words in {"zip": "not a snapshot archive", **others}.items():
        with pytest.raises(InvalidInputError, match=words):
            open_snapshot(tmp_path / name)


SOURCE = MemoryFiles({f"/sys/{name}": name.encode() * 300 for name in "abcdefgh"})


def read_all(host: Host) -> list[object]:
    return [host.read(f"/sys/{name}") for name in host.names("/sys")]


SMALL = capture_host(Host(SOURCE, NoCommands()), read_all)
PLAIN = gzip.decompress(SMALL)
WHOLE = read_all(Host(SOURCE, NoCommands()))


def whole_or_refused(data: bytes) -> None:
    try:
        host = opened(data)
    except InvalidInputError:
        return
    assert read_all(host) == WHOLE


@pytest.mark.parametrize("data", [SMALL, PLAIN, lzma.compress(PLAIN)], ids=["gz", "tar", "xz"])
def test_a_part_of_an_archive_is_none(data: bytes) -> None:
    for end in {*range(0, len(data), max(1, len(data) // 60)), *range(0, len(data), 512)}:
        whole_or_refused(data[:end])


def test_a_checksum_that_comes_last_is_minded() -> None:
    stored = gzip.compress(PLAIN, compresslevel=0)
    assert refusal(stored.replace(b"eeee", b"eeEe", 1))


@settings(deadline=None)
@given(st.integers(0, len(SMALL) - 1), st.binary(min_size=1, max_size=9))
def test_damage_to_a_compressed_archive(at: int, instead: bytes) -> None:
    whole_or_refused(SMALL[:at] + instead + SMALL[at + len(instead) :])


@settings(deadline=None)
@given(st.integers(0, len(PLAIN) - 1), st.binary(min_size=1, max_size=9))
def test_damage_to_an_archive(at: int, instead: bytes) -> None:
    try:
        host = opened(PLAIN[:at] + instead + PLAIN[at + len(instead) :])
    except InvalidInputError:
        return
    read_all(host)


@given(st.binary(max_size=2000))
def test_any_bytes(data: bytes) -> None:
    assert refusal(data)


WATCH = """
import os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from advisor.errors import InvalidInputError
from advisor.snapshot.archive import open_snapshot
import gzip, bz2, lzma, zlib
seen = []
def watch(event, words):
    if event == "open" and (words[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        seen.append(words[0])
    if event in ("os.mkdir", "os.symlink", "os.link", "os.rename", "os.chmod", "os.remove", "subprocess.Popen"):
        seen.append(event)
sys.addaudithook(watch)
for path in sys.argv[2:]:
    try:
        open_snapshot(Path(path)).read("/l")
    except InvalidInputError as error:
        print(error.message)
print(seen)
"""


def test_nothing_is_written(tmp_path: Path) -> None:
    out = member("sys/link", tarfile.SYMTYPE, "../../etc/passwd")
    sound = archive(index(links={"/l": "f"}), ("root/f", b"x"))
    parts = [sound, archive(SYS), archive(SYS, out), archive(member("../x"))]
    paths = [tmp_path / str(number) for number in range(len(parts))]
    for path, data in zip(paths, parts, strict=True):
        path.write_bytes(data)
    words = [sys.executable, "-c", WATCH, str(Path(__file__).parents[2]), *map(str, paths)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "[]"
    assert len(done.stdout.splitlines()) == 3


# -- a budget for all reads together -----------------------------------------------------------------------------------


def steps_of(host: Host) -> int:
    """Counted steps that were taken of a host's budget."""
    budget = host.files._spend.__self__  # type: ignore[attr-defined]
    return int(budget._steps - budget._left)


MANY = 3000
HOSTILE_TREES: Mapping[str, Any] = {
    "links": lambda count: [(f"sys/class/net/e{number}/mtu", b"1500") for number in range(count)],
    "disks": lambda count: [(f"sys/block/sd{number}/size", b"1") for number in range(count)],
    "processors": lambda count: [
        (f"sys/devices/system/cpu/cpu{number}/topology/core_id", b"1") for number in range(count)
    ],
    "links to themselves": lambda count: [
        member(f"sys/block/s{number}", tarfile.SYMTYPE, "../block") for number in range(count)
    ],
    "mounts": lambda count: [
        (
            "proc/self/mountinfo",
            b"".join(b"%d 1 8:%d / /m%d rw - xfs /dev/s%d rw\n" % ((one,) * 4) for one in range(count)),
        )
    ],
    "arrays": lambda count: [
        ("proc/mdstat", b"".join(b"md%d : active raid1 sda%d[0]\n 9 blocks\n\n" % (one, one) for one in range(count)))
    ],
}


@pytest.mark.parametrize("kind", [one for one in HOSTILE_TREES if one != "links to themselves"])
def test_the_steps_of_a_scan_are_linear_in_the_members(kind: str) -> None:
    taken = []
    for count in (MANY // 2, MANY):
        host = opened(archive(("proc/version", b"L"), *HOSTILE_TREES[kind](count)))
        scan(host)
        taken.append(steps_of(host))
    assert taken[0] * 1.5 < taken[1] < taken[0] * 2.5


@pytest.mark.parametrize("kind", HOSTILE_TREES)
def test_an_archive_that_takes_more_steps_than_any_host_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MAX_READ_STEPS", 2000)
    host = opened(archive(("proc/version", b"L"), *HOSTILE_TREES[kind](MANY)))
    with pytest.raises(
        InvalidInputError, match="reading it takes more than 2000 steps; a captured host is never so big"
    ):
        scan(host)


def test_content_and_answers_of_commands_count_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"argv": ["x"], "answer": {"rc": 0, "stdout": "y" * 160_000, "stderr": ""}, "missing": None}
    host = opened(archive(index(commands=[answer], directories=["/sys"]), ("root/sys/x", b"1" * 160_000)))
    began = steps_of(host)
    assert host.run(["x"]) is not None
    assert steps_of(host) - began >= 10_000
    began = steps_of(host)
    host.read("/sys/x")
    assert steps_of(host) - began >= 10_000


def test_too_many_directories_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MAX_DIRECTORIES", 1000)
    deep = [("/".join(["sys", f"d{number}", *["e"] * 50, "x"]), b"1") for number in range(30)]
    assert "more than 1000 directories" in refusal(archive(*deep))
    assert "more than 1000 directories" in refusal(archive(index(directories=[f"/{name}" for name, _ in deep])))


@pytest.mark.parametrize("article", list(ARTICLES)[::7])
def test_a_captured_host_needs_a_small_part_of_the_budget(article: str) -> None:
    host = parts_of(ARTICLES[article]()).host()
    copy = snapshot.open_archive(capture_host(host, scan), "copy")
    scan(copy)
    assert 0 < steps_of(copy) < snapshot.MAX_READ_STEPS / 50
