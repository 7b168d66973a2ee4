"""Changing a host: what each step does, says when it cannot, and leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from advisor.errors import CommandError
from advisor.host import Host, MemoryFiles, Missing, NoCommands, PutFile, RunCommand, SetMtu, Step, WriteFile, live_host
from advisor.host.putfile import put_file
from tests.trees import host_of, listing, make_command, make_tree

UID, GID = os.geteuid(), os.getegid()
needs_root = pytest.mark.skipif(UID != 0, reason="needs root")


def put(path: str, content: bytes | None = b"new", *, prune: tuple[str, ...] = ()) -> PutFile:
    return PutFile(path, content, 0o640, UID, GID, prune)


def refused(host: Host, step: Step) -> str:
    with pytest.raises(CommandError) as caught:
        host.do(step)
    return caught.value.message


def test_what_each_step_does(tmp_path: Path) -> None:
    make_command(tmp_path / "bin", "tool", 'echo "$@" > "${0%/*}/said"')
    root = make_tree(
        tmp_path / "root",
        {"/proc/sys/vm/swappiness": "60000", "/sys/devices/eth1/mtu": "1500"},
        {"/sys/net": "devices"},
    )
    host = host_of(root, tmp_path / "bin")
    host.do(WriteFile("/proc/sys/vm/swappiness", "10"))
    host.do(WriteFile("/sys/net/eth1/mtu", "9000"))
    host.do(RunCommand(("tool", "a b", "$x")))
    host.do(put("/etc/new/f.conf"))
    assert (root / "proc/sys/vm/swappiness").read_text() == "10\n"
    assert (root / "sys/devices/eth1/mtu").read_text() == "9000\n"
    assert (tmp_path / "bin" / "said").read_text() == "a b $x\n"
    assert (root / "etc/new/f.conf").read_bytes() == b"new"
    host.do(put("/etc/new/f.conf", None, prune=("/etc/new", "/etc", "/sys")))
    assert sorted(os.listdir(root)) == ["proc", "sys"]


def test_a_link_of_a_tree_has_its_mtu_in_a_file(tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"/sys/devices/eth1/mtu": "1500"}, {"/sys/class/net/eth1": "../../devices/eth1"})
    host_of(root).do(SetMtu("eth1", 9000))
    assert (root / "sys/devices/eth1/mtu").read_text() == "9000\n"


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (WriteFile("/proc/nowhere", "1"), "/proc/nowhere: does not exist"),
        (WriteFile("/d", "1"), "/d: writing '1': Is a directory"),
        (WriteFile("/fifo", "1"), "/fifo: "),
        (WriteFile("/a\0b", "1"), "does not exist"),
        (WriteFile("/loop", "1"), "/loop: too many levels of symbolic links"),
        (SetMtu("eth9", 9000), "does not exist"),
        (RunCommand(("nowhere",)), "nowhere: nowhere is not installed"),
        (RunCommand(("tool", "a")), "tool a: returned 3: no such value"),
        (RunCommand(("quiet",)), "quiet: returned 1: no message"),
        (put("/d"), "/d: Is a directory"),
        (put("/f/x"), "/f/x: "),
        (put("/loop/x"), "/loop/x: the directory /loop: too many levels of symbolic links"),
        (put("/dangling/x"), "/dangling/x: the directory /dangling: a symbolic link to what is not there"),
        (put("/escape/deep/x"), "a symbolic link to what is not there"),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_said_and_nothing_made(step: Step, words: str, tmp_path: Path) -> None:
    make_command(tmp_path / "bin", "tool", "echo no such value >&2; exit 3")
    make_command(tmp_path / "bin", "quiet", "exit 1")
    outside = tmp_path / "outside"
    outside.mkdir()
    # Inside the tree there is no such directory; on this machine there is.
    links = {"/loop": "loop", "/dangling": "nowhere", "/escape": str(outside)}
    root = make_tree(tmp_path / "root", {"/d/f": "x", "/f": "x"}, links)
    os.mkfifo(root / "fifo")
    before = listing(root / "d")
    assert words in refused(host_of(root, tmp_path / "bin"), step)
    assert listing(root / "d") == before
    assert sorted(os.listdir(root)) == ["d", "dangling", "escape", "f", "fifo", "loop"]
    assert os.listdir(outside) == []


def test_a_snapshot_cannot_be_changed() -> None:
    host = Host(MemoryFiles({"/f": b"x"}), NoCommands())
    for step in (WriteFile("/f", "1"), put("/f"), put("/f", None), SetMtu("eth0", 9000), RunCommand(("true",))):
        assert refused(host, step)
    assert host.read("/f") == "x"


def test_reads(tmp_path: Path) -> None:
    texts = {"/n": "42\n", "/x": "0x1f\n", "/word": "many", "/empty": "", "/under": "1_0", "/long": "9" * 5000}
    host = host_of(make_tree(tmp_path, {**texts, "/text": b"a\xff \n\0"}, {"/l": "n"}))
    assert (host.read_int("/n"), host.read_int("/x", 16)) == (42, 31)
    for path in ("/word", "/empty", "/under", "/long"):
        assert isinstance(found := host.read_int(path), Missing)
        assert not found.is_absent
        assert len(found.why) < 80
    assert host.read_int("/nowhere") == Missing("absent", "does not exist")
    assert (host.read("/text"), host.read_bytes("/text")) == ("a\ufffd", b"a\xff \n\0")
    assert (host.names("/nowhere"), host.names("/")) == ((), ("empty", "l", "long", "n", "text", "under", "word", "x"))
    assert (host.exists("/l"), host.exists("/nowhere")) == (True, False)
    assert host.owner("/nowhere") == Missing("absent", "does not exist")
    assert host.owner("/l") == Missing("unreadable", "not a regular file")
    (tmp_path / "n").chmod(0o604)
    assert host.owner("/n") == (0o604, UID, GID)


def test_drivers_are_asked_on_a_live_host_only(tmp_path: Path) -> None:
    assert live_host().ethtool("no-such-link", "rings") == Missing("absent", "does not exist")
    assert host_of(tmp_path).ethtool("lo", "driver") == Missing("absent", "no recorded ethtool answer")


def test_put_file_keeps_its_word(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        put_file(str(tmp_path / "a/b/f"), b"1", mode=0o664, uid=UID, gid=GID)
    finally:
        os.umask(old)
    assert {path: mode for path, (_, mode, _) in listing(tmp_path).items()} == {
        "a": 0o755,
        "a/b": 0o755,
        "a/b/f": 0o664,
    }


@needs_root
def test_the_owner_is_kept(tmp_path: Path) -> None:
    put_file(str(tmp_path / "f"), b"", mode=0o4755, uid=65534, gid=1)
    status = (tmp_path / "f").stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (65534, 1, 0o4755)


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"old")
    for content in (b"new", None):
        (tmp_path / "f").unlink(missing_ok=True)
        (tmp_path / "f").symlink_to("target")
        put_file(str(tmp_path / "f"), content, mode=0o644, uid=UID, gid=GID)
        assert not (tmp_path / "f").is_symlink()
        assert (tmp_path / "target").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["target"]


def test_what_a_crash_left_does_not_stop_it(tmp_path: Path) -> None:
    (tmp_path / f".f.{os.getpid()}.new").symlink_to(tmp_path / "elsewhere")
    put_file(str(tmp_path / "f"), b"new", mode=0o644, uid=UID, gid=GID)
    assert sorted(os.listdir(tmp_path)) == ["f"]


def test_a_reader_sees_the_old_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "f"
    contents = (b"a" * 300_000, b"b" * 200_000)
    path.write_bytes(contents[0])
    seen: list[bytes] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.append(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(100):
        put_file(str(path), contents[turn % 2], mode=0o644, uid=UID, gid=GID)
    stop.set()
    reader.join()
    assert set(seen) == set(contents)


FULL_DISK = """
import os, sys
sys.path.insert(0, sys.argv[1])
from advisor.host.putfile import put_file
os.chdir(sys.argv[2])
put_file(os.path.abspath("f"), b"old", mode=0o644, uid=0, gid=0)
try:
    put_file(os.path.abspath("f"), bytes(1 << 20), mode=0o644, uid=0, gid=0)
except OSError as error:
    print(error.errno, os.listdir("."), open("f").read())
"""


@needs_root
def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    words = [sys.executable, "-c", FULL_DISK, str(Path(__file__).parents[2]), str(tmp_path)]
    script = 'mount -t tmpfs -o size=64k none "$1" && shift && exec "$@"'
    unshared = ["unshare", "-m", "sh", "-c", script, "sh", str(tmp_path), *words]
    done = subprocess.run(unshared, capture_output=True, text=True, check=False)
    if done.returncode and ("unshare" in done.stderr or "mount" in done.stderr):
        pytest.skip(f"no mount namespace here: {done.stderr.strip()}")
    assert (done.stdout, done.stderr) == ("28 ['f'] old\n", "")
