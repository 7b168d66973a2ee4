"""Running commands: a deadline, a bound, an environment of our own, and never an exception."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from advisor.host import Completed, LiveCommands, Missing, NoCommands, RecordedCommands
from advisor.host.commands import MAX_OUTPUT_BYTES, SAFE_ENVIRONMENT
from tests.trees import STANDARD_PATH, make_command

COMMANDS = LiveCommands(path=STANDARD_PATH)


def sh(script: str, *words: str, timeout: float = 10.0, stdin: str | None = None) -> Completed | Missing:
    return COMMANDS.run(("sh", "-c", script, "sh", *words), timeout=timeout, stdin=stdin)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


def test_a_command_that_ends() -> None:
    assert sh("echo out; echo err >&2; exit 3") == Completed(3, "out\n", "err\n")
    assert sh("kill -9 $$") == Completed(-9, "", "")
    assert sh("printf '\\377'") == Completed(0, "\ufffd", "")
    assert sh("cat") == Completed(0, "", "")
    assert sh("cat", stdin="é") == Completed(0, "é", "")
    assert sh("pwd") == Completed(0, "/\n", "")
    # One that takes nothing of what it is given.
    assert sh("exit 0", stdin="x" * 1_000_000) == Completed(0, "", "")
    assert sh("cat | wc -c", stdin="x" * 1_000_000) == Completed(0, "1000000\n", "")


def test_words_are_words() -> None:
    assert sh('printf "%s|" "$@"', "a b", "$(id)", "'", "\n", "") == Completed(0, "a b|$(id)|'|\n||", "")


def test_the_callers_environment_has_no_effect(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make_command(tmp_path, "env", "echo poisoned")
    for name, value in {"PATH": str(tmp_path), "LD_PRELOAD": "/nowhere.so", "BASH_ENV": "/x", "LANG": "de_DE"}.items():
        monkeypatch.setenv(name, value)
    done = LiveCommands().run(("env",))
    assert isinstance(done, Completed)
    assert done.stderr == ""
    assert dict(line.split("=", 1) for line in done.stdout.splitlines()) == SAFE_ENVIRONMENT


def test_the_search_path(tmp_path: Path) -> None:
    make_command(tmp_path / "1", "tool", "echo one")
    make_command(tmp_path / "2", "tool", "echo two")
    (tmp_path / "1" / "folder").mkdir()
    (tmp_path / "1" / "plain").write_text("#!/bin/sh\n")
    make_command(tmp_path / "2", "plain", "echo two")
    commands = LiveCommands(path=f":{tmp_path / '1'}:{tmp_path / '2'}")
    assert commands.run(("tool",)) == Completed(0, "one\n", "")
    assert commands.run(("plain",)) == Completed(0, "two\n", "")
    for name in ("folder", "nowhere", "", "nul\0", "\ud800", "/nowhere/x", str(tmp_path / "1" / "folder")):
        missing = commands.run((name,))
        assert isinstance(missing, Missing)
        assert missing.is_absent


def test_what_does_not_start(tmp_path: Path) -> None:
    make_command(tmp_path, "tool", "")
    (tmp_path / "tool").write_text("#!/nowhere/interpreter\n")
    for words in (("tool",), (str(tmp_path / "tool"),), ("/bin/true", "nul\0"), ("/bin/true", "\ud800")):
        missing = LiveCommands(path=str(tmp_path)).run(words)
        assert isinstance(missing, Missing)
        assert "did not start" in missing.why


def test_nothing_is_found_by_way_of_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_command(tmp_path, "tool", "echo found")
    monkeypatch.chdir(tmp_path)
    for path in ("", ".", ":", "..", f"../{tmp_path.name}", "bin"):
        for name in ("tool", "./tool", f"../{tmp_path.name}/tool"):
            assert LiveCommands(path=path).run((name,)) == Missing("absent", f"{name} is not installed")


@pytest.mark.skipif(os.geteuid() != 0, reason="asks what root does")
@pytest.mark.parametrize(
    "loosen",
    [
        lambda there: (there / "tool").chmod(0o775),
        lambda there: (there / "tool").chmod(0o757),
        lambda there: os.chown(there / "tool", 65534, 65534),
        lambda there: there.chmod(0o777),
        lambda there: there.chmod(0o1777),
        lambda there: there.chmod(0o775),
        lambda there: os.chown(there, 65534, 65534),
        lambda there: there.parent.chmod(0o777),
        lambda there: os.chown(there.parent, 65534, 65534),
        lambda there: os.chown(there.parent.parent / "link", 65534, 65534, follow_symlinks=False),
    ],
)
def test_root_runs_nothing_that_others_can_change(loosen: Callable[[Path], object], tmp_path: Path) -> None:
    make_command(tmp_path / "opt" / "bin", "tool", "echo run")
    make_command(tmp_path / "good", "tool", "echo good")
    (tmp_path / "link").symlink_to("opt/bin")
    tool = str(tmp_path / "link" / "tool")
    path = str(tmp_path / "link")
    for name in ("tool", tool):
        assert LiveCommands(path=path).run((name,)) == Completed(0, "run\n", "")
    loosen(tmp_path / "opt" / "bin")
    for name in ("tool", tool):
        why = f"{name} is not run: others than root can change {tool}"
        assert LiveCommands(path=path).run((name,)) == Missing("unreadable", why)
    assert LiveCommands(path=f"{path}:{tmp_path / 'good'}").run(("tool",)) == Completed(0, "good\n", "")


def test_what_the_system_has_is_run() -> None:
    for words in (("sh", "-c", "exit 0"), ("ip", "-V"), ("/bin/true",)):
        assert isinstance(LiveCommands().run(words), Completed)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_deadline_ends_a_command_and_its_children(tmp_path: Path) -> None:
    with within(5):
        missing = sh('sleep 600 & echo $! > "$1"; wait', str(tmp_path / "pid"), timeout=0.3)
    assert missing == Missing("unreadable", "sh did not answer within 0.3 s")
    child = int((tmp_path / "pid").read_text())
    for _ in range(50):
        if not is_running(child):
            break
        time.sleep(0.02)
    assert not is_running(child)


def test_the_deadline_holds_against_one_that_ignores_signals_or_left(tmp_path: Path) -> None:
    with within(5):
        assert isinstance(sh("trap '' TERM INT HUP; while :; do sleep 1; done", timeout=0.2), Missing)
    with within(5):
        # It has left the group and holds the pipe open.
        assert isinstance(
            sh('setsid sh -c "echo \\$\\$ > $1; exec sleep 30" & sleep 30', str(tmp_path / "pid"), timeout=0.5), Missing
        )
    os.kill(int((tmp_path / "pid").read_text()), 9)


@pytest.mark.parametrize("script", ["yes", "yes >&2"])
def test_output_has_a_bound(script: str) -> None:
    with within(15):
        missing = sh(script, timeout=60)
    assert missing == Missing("unreadable", "sh printed more than 8 MiB")


def test_much_output_is_whole() -> None:
    count = MAX_OUTPUT_BYTES // 2
    done = sh(f"head -c {count} /dev/zero | tr '\\0' x; head -c {count} /dev/zero | tr '\\0' y >&2")
    assert done == Completed(0, "x" * count, "y" * count)


def test_nothing_is_left_open() -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = descriptors()
    sh("exit 0", stdin="x")
    sh("sleep 9", timeout=0.05)
    sh("yes")
    assert descriptors() == before


def test_answers_of_a_snapshot() -> None:
    answers: dict[tuple[str, ...], Completed | Missing] = {
        ("ip", "-j"): Completed(0, "[]", ""),
        ("lvs",): Missing("unreadable", "lvs did not answer within 10 s"),
    }
    recorded = RecordedCommands(answers)
    assert [recorded.run(words) for words in answers] == list(answers.values())
    for runner in (recorded, NoCommands()):
        assert runner.run(("ip", "-j", "-d")) == Missing("absent", "no recorded output of ip")


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\0\x94\x35\x77", b"\1\0\0\0", b"", b"1", b"12345"])
def test_four_bytes_are_read_as_od_prints_them(data: bytes, tmp_path: Path) -> None:
    place = tmp_path / "number"
    for read in range(2):
        words = ("od", "-A", "n", "-t", "d4", str(place))
        assert LiveCommands().run(words) == COMMANDS.run(words), f"{read} file"
        place.write_bytes(data)


def test_a_stand_in_of_od_is_asked(tmp_path: Path) -> None:
    (tmp_path / "number").write_bytes(bytes(4))
    make_command(tmp_path, "od", "echo mine")
    words = ("od", "-A", "n", "-t", "d4", str(tmp_path / "number"))
    assert LiveCommands(path=str(tmp_path)).run(words) == Completed(0, "mine\n", "")
