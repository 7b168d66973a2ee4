"""A snapshot answers as its host did: the same scan, byte for byte."""

from __future__ import annotations

import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from advisor.errors import UsageError
from advisor.facts.host_facts import Facts, scan
from advisor.host import Completed, DirectoryFiles, Host, MemoryFiles, Missing, NoCommands, RecordedCommands, live_host
from advisor.host.ethtool import Answer
from advisor.snapshot.archive import capture_host, open_snapshot, save_snapshot
from tests import captured
from tests.planning.system import PORTS, Link, llt, system


def encoded(facts: Facts) -> bytes:
    return msgspec.json.encode(facts)


def replayed(data: bytes, where: Path) -> Host:
    save_snapshot(data, where / "snapshot")
    return open_snapshot(where / "snapshot")


def test_the_scan_of_a_tree(tmp_path: Path) -> None:
    links = (*PORTS, Link("eth3", node=1, irqs={40: "0-7"}), Link("bond0", "bond", on=("eth3",)))
    host = system(tmp_path, links, {"/etc/llttab": "set-node a\n", "/proc/bytes": "x"}, llt(tmp_path))
    data = capture_host(host, scan)
    once = replayed(data, tmp_path)
    assert encoded(scan(once)) == encoded(scan(host))
    again = replayed(capture_host(once, scan), tmp_path)
    assert encoded(scan(again)) == encoded(scan(host))
    assert stat.S_IMODE((tmp_path / "snapshot").stat().st_mode) == 0o600


def test_the_scan_of_this_machine(tmp_path: Path) -> None:
    seen: list[Facts] = []
    data = capture_host(live_host(), lambda host: seen.append(scan(host)))
    host = replayed(data, tmp_path)
    assert encoded(scan(host)) == encoded(seen[0])
    assert len(seen[0].links) > 0
    again = replayed(capture_host(host, scan), tmp_path)
    assert encoded(scan(again)) == encoded(seen[0])


TREE = {"/sys/a/f": b"1", "/sys/b/g": b"\xff\0", "/proc/1/x": b"", "/deep/er/f": b"2"}
LINKS = {"/sys/l": "a", "/sys/b/up": "../a/f", "/proc/self": "1", "/abs": "/sys/b", "/loop": "loop", "/no": "where"}
UNREADABLE = {"/sys/a/closed": "Permission denied", "/locked": "Permission denied"}
SOURCE = MemoryFiles(TREE, LINKS, frozenset({"/sys/empty", "/locked"}), UNREADABLE)
NAMES = "sys a b l f g up self proc 1 x abs loop no .. closed locked empty"
PATHS = st.lists(st.sampled_from(NAMES.split()), max_size=4).map(lambda names: "/" + "/".join(names))
ASKED = st.lists(
    st.tuples(st.sampled_from(["read", "listdir", "readlink", "real", "is_dir", "exists"]), PATHS), max_size=8
)


def answers(host: Host, asked: list[tuple[str, str]]) -> list[object]:
    return [getattr(host, verb)(path) for verb, path in asked]


@example(asked=[("listdir", "/abs/up"), ("readlink", "/abs/up")], first=True)  # a file that nobody reads
@example(asked=[("read", "/proc/..")], first=True)  # the way leads through a directory that nothing else names
@given(ASKED, st.booleans())
def test_whatever_was_asked_is_answered_alike(
    tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[str, str]], first: bool
) -> None:
    host = Host(SOURCE, NoCommands())
    # What is listed but not read afterwards must not hide what was read before.
    asked = [*asked, ("listdir", "/sys/a")] if first else [("listdir", "/"), *asked]
    data = capture_host(host, lambda recording: answers(recording, asked))
    there = replayed(data, tmp_path_factory.getbasetemp())
    assert answers(there, asked) == answers(host, asked)


def test_every_kind_of_answer_survives(tmp_path: Path) -> None:
    commands = RecordedCommands(
        {
            ("ip", "-j"): Completed(1, "out\n", "err\ufffd"),
            ("lvs",): Missing("unreadable", "lvs did not answer within 10 s"),
        }
    )
    ethtool: dict[tuple[str, str], Answer | Missing] = {
        ("eth0", "rings"): {"rx": 512},
        ("eth0", "pause"): Missing("unreadable", "Operation not permitted"),
    }
    host = Host(SOURCE, commands, is_root=True, ethtool_answers=ethtool)

    def ask(host: Host) -> list[object]:
        many = [host.ethtool(link, what) for link in ("eth0", "eth1") for what in ("rings", "pause")]
        some = [host.read_bytes("/sys/b/g"), host.read("/sys/a/closed"), host.read("/nowhere"), host.listdir("/locked")]
        return [*some, host.run(("ip", "-j")), host.run(("lvs",)), host.run(("vgs",)), many, host.is_root]

    there = replayed(capture_host(host, ask), tmp_path)
    assert ask(there) == ask(host)
    assert not there.is_live


def test_names_that_are_not_utf_8(tmp_path: Path) -> None:
    name = b"caf\xe9".decode("utf-8", "surrogateescape")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / name).write_bytes(b"x")
    (tmp_path / "root" / "l").symlink_to(name)
    (tmp_path / "root" / "zażółć").write_bytes(b"y")
    host = Host(DirectoryFiles(str(tmp_path / "root")), NoCommands())

    def ask(host: Host) -> list[object]:
        return [host.listdir("/"), host.readlink("/l"), host.read("/l"), host.read("/zażółć"), host.run((name, "x"))]

    there = replayed(capture_host(host, ask), tmp_path)
    assert ask(there) == ask(host)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="folder: is there and is no regular file"):
        save_snapshot(b"", tmp_path / "folder")


@pytest.mark.captured
@pytest.mark.parametrize(
    "name", [*(f"hwloc/{name}" for name in captured.HWLOC_HOSTS), *(f"pepc/{name}" for name in captured.PEPC_HOSTS)]
)
def test_a_bare_tree_opens(name: str, tmp_path: Path) -> None:
    host = open_snapshot(captured.captured_file(f"{name}.tar.xz"))
    found = encoded(scan(host))
    assert found == encoded(scan(captured.on_disk(name)))
    assert encoded(scan(replayed(capture_host(host, scan), tmp_path))) == found
