"""A state directory that has become read-only holds no rollback up: what could not be recorded is reported, and is
recorded once it can be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advisor.transaction.status import rollback_transactions
from tests.running import network_namespace, run_text
from tests.transaction.layered import BASE, apply, build, host_at, live
from tests.transaction.test_layers import HIGH, LOW, SWAP
from tests.transaction.test_script import SHELLS
from tests.transaction.test_script_notes import host_files, store_in
from tests.trees import STANDARD_PATH, listing

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a namespace needs root")
BOUND = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
Done = subprocess.CompletedProcess[str]


def read_only(where: Path, *command: str | Path) -> Done:
    """The command, in a mount namespace in which the state directory cannot be written to."""
    state = store_in(where).directory
    words = ["unshare", "-m", "sh", "-c", BOUND, str(state), *map(str, command)]
    path = {"PATH": f"{where / 'bin'}:{STANDARD_PATH}", "ADVISOR_STATE_DIR": str(state)}
    return subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, **path}, timeout=60)


def rolled_back(where: Path, how: str) -> dict[str, Any]:
    done = read_only(where, sys.executable, "-m", "tests.transaction.read_only", "tree", where, how)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads(done.stdout))


def one(where: Path) -> None:
    apply(host_at(where), store_in(where), "aa", {SWAP: "10", HIGH: "1000"})


def three(where: Path) -> None:
    """In layers: each upper one has found what a lower one has set."""
    for profile, wanted in (("aa", {SWAP: "10", HIGH: "1000"}), ("bb", {SWAP: "20", LOW: "90"}), ("cc", {SWAP: "30"})):
        apply(host_at(where), store_in(where), profile, wanted)


def interrupted(where: Path) -> None:
    """As a kill leaves it after its first step."""
    one(where)
    place = store_in(where).script_path("0001").parent
    lines = (place / "journal").read_bytes().splitlines(keepends=True)
    (place / "journal").write_bytes(b"".join(lines[:-1]) + lines[-1][:9])
    (place / "length").unlink()
    (place / "pending").touch()


@pytest.mark.parametrize("made", [one, three, interrupted])
def test_everything_is_restored_and_recorded_later(tmp_path: Path, made: Callable[[Path], None]) -> None:
    build(tmp_path)
    before = host_files(tmp_path)
    made(tmp_path)
    state = listing(store_in(tmp_path).directory)
    found = rolled_back(tmp_path, "all")
    assert found["code"] == 0, found
    assert any("cannot be written" in one and "advisor rollback 0001" in one for one in found["warnings"]), found
    assert (live(host_at(tmp_path)), host_files(tmp_path)) == (BASE, before)
    assert listing(store_in(tmp_path).directory) == state
    rollback_transactions(host_at(tmp_path), None, everything=True, force=False, store=store_in(tmp_path))
    assert {one.state for one in store_in(tmp_path).read_records()} == {"rolled-back"}
    assert host_files(tmp_path) == before


def test_what_the_journals_of_others_would_have_to_say_is_refused(tmp_path: Path) -> None:
    build(tmp_path)
    three(tmp_path)
    before = listing(tmp_path)
    found = rolled_back(tmp_path, "1")
    assert (found["code"], "cannot be written" in found["said"]) == (3, True), found
    assert listing(tmp_path) == before
    assert rolled_back(tmp_path, "last")["code"] == 0
    assert live(host_at(tmp_path))[SWAP] == "20"


@pytest.mark.parametrize("made", [one, interrupted])
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_by_the_rollback_script(tmp_path: Path, shell: list[str], made: Callable[[Path], None]) -> None:
    build(tmp_path)
    before = host_files(tmp_path)
    made(tmp_path)
    script = store_in(tmp_path).script_path("0001")
    done = read_only(tmp_path, *shell, script, "--root", tmp_path / "root")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cannot be written" in done.stderr
    assert host_files(tmp_path) == before
    rollback_transactions(host_at(tmp_path), None, everything=True, force=False, store=store_in(tmp_path))
    assert host_files(tmp_path) == before
    assert {one.state for one in store_in(tmp_path).read_records()} == {"rolled-back"}


def test_the_lock_holds_on_a_read_only_store(tmp_path: Path) -> None:
    build(tmp_path)
    one(tmp_path)
    with store_in(tmp_path).hold_lock():
        assert rolled_back(tmp_path, "all")["code"] == 3
    assert live(host_at(tmp_path))[SWAP] == "10"


@pytest.mark.repeats(1)
@pytest.mark.parametrize("how", ["kept", "waiting", "killed"])
def test_a_live_transaction_and_its_watchdog(tmp_path: Path, how: str) -> None:
    name = f"ro{os.getpid()}"
    with network_namespace(name):
        subprocess.run(["ip", "-n", name, "link", "add", "d0", "type", "veth", "peer", "name", "d1"], check=True)
        words = [sys.executable, "-m", "tests.transaction.read_only", "live", str(tmp_path), how]
        done = run_text(["ip", "netns", "exec", name, *words], timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        found = json.loads(done.stdout)
    assert found["applied"]["mtu"] == 9000, found
    assert found["read-only"]["mtu"] == 1500, found
    if how == "kept":
        assert (found["read-only"]["code"], "cannot be written" in found["read-only"]["said"]) == (0, True), found
    if how == "waiting":
        assert (found["confirmed"]["code"], "too late" in found["confirmed"]["said"]) == (3, True), found
    assert found["writable"]["mtu"] == 1500, found
    assert found["writable"]["states"] == ["rolled-back"], found
