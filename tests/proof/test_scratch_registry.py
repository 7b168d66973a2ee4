"""A killed session's scratch file is found and removed by the next one, and nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from advisor.host import Host
from advisor.proof.scratch import MIB
from advisor.proof.scratch_registry import ScratchEntry, register_scratch, start_ticks, sweep_scratch
from advisor.proof.session import bench
from tests.known import known

from .fakes import FakeFio
from .sessions import WORKLOAD
from .test_bench import settings

KILLED = """
import os, sys
from advisor.proof.scratch import MIB, make_scratch
from advisor.proof.scratch_registry import register_scratch
from advisor.proof.target import read_target
from advisor.host import live_host
made = make_scratch(read_target(live_host(), sys.argv[1]), MIB, on_made=register_scratch)
print("made", flush=True)
sys.stdin.read()
"""


pytestmark = pytest.mark.usefixtures("state")


def entries(state: Path) -> list[str]:
    return sorted(os.listdir(state / "scratch")) if (state / "scratch").is_dir() else []


def killed_session(disk: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(disk)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert known(process.stdout).readline() == "made\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    known(process.stdout).close()
    known(process.stdin).close()


def test_the_next_session_removes_what_a_killed_one_left(
    fake_fio: FakeFio, host: Host, disk: Path, state: Path
) -> None:
    killed_session(disk)
    (left,) = disk.iterdir()
    assert [entry.name for entry in left.iterdir()] == ["scratch"]
    assert entries(state) == [left.name]
    found = bench(host, (WORKLOAD,), settings(disk, seconds=0.1, budget_seconds=9.0), runner=fake_fio.runner)
    assert f"{left}: left by a session that was killed, removed" in found.notes
    assert list(disk.iterdir()) == []
    assert entries(state) == []


def test_a_session_leaves_no_entry(fake_fio: FakeFio, host: Host, disk: Path, state: Path) -> None:
    bench(host, (WORKLOAD,), settings(disk, seconds=0.1, budget_seconds=9.0), runner=fake_fio.runner)
    assert entries(state) == []


def test_a_directory_of_another_identity_is_left_alone_and_named(disk: Path, state: Path) -> None:
    killed_session(disk)
    (left,) = disk.iterdir()
    left.rename(disk / "elsewhere")
    left.mkdir()
    (left / "scratch").write_text("of another owner")
    assert sweep_scratch() == [f"{left}: not the directory that a killed session made; left alone"]
    assert (left / "scratch").read_text() == "of another owner"
    assert entries(state) == []
    assert sweep_scratch() == []


def test_a_link_in_its_place_is_not_followed(disk: Path) -> None:
    killed_session(disk)
    (left,) = disk.iterdir()
    other = disk / "precious"
    left.rename(other)
    left.symlink_to(other)
    (line,) = sweep_scratch()
    assert "not removed" in line
    assert (other / "scratch").stat().st_size == MIB


def test_a_running_session_keeps_its_own(disk: Path, state: Path) -> None:
    made = disk / ".advisor-proof-1"
    made.mkdir()
    register_scratch(str(made), made.stat().st_dev, made.stat().st_ino)
    assert sweep_scratch() == []
    assert made.is_dir()
    assert entries(state) == [made.name]
    entry = msgspec.json.decode((state / "scratch" / made.name).read_bytes(), type=ScratchEntry)
    assert (entry.pid, entry.started_ticks) == (os.getpid(), start_ticks(os.getpid()))


def test_a_torn_entry_is_dropped(state: Path) -> None:
    (state / "scratch").mkdir(parents=True, mode=0o700)
    (state / "scratch" / "torn").write_bytes(b'{"directory": "/x", "dev')
    assert sweep_scratch() == []
    assert entries(state) == []


def test_without_a_state_directory_a_session_goes_on(
    fake_fio: FakeFio, host: Host, disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "file"
    place.write_text("no directory")
    monkeypatch.setenv("ADVISOR_STATE_DIR", str(place / "below"))
    found = bench(host, (WORKLOAD,), settings(disk, seconds=0.1, budget_seconds=9.0), runner=fake_fio.runner)
    assert found.series.rounds
