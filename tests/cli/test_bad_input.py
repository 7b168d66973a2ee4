"""Bad input at the command line: each its own message and exit code, one document under --json, never a traceback."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from advisor.proof.archive import save_result
from tests.cli.inside import call_inside
from tests.proof.benches import OTHER, saved, speeds
from tests.running import run_text
from tests.schemas import judge

ADVISOR = [sys.executable, "-m", "advisor"]
ROOT = Path(__file__).parent.parent.parent


def advisor(*words: str, where: Path, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ADVISOR_STATE_DIR": str(where / "state"), "PYTHONPATH": str(ROOT)}
    command = [*before, *ADVISOR, *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert "Traceback" not in done.stderr
    assert not (where / "state").exists(), "a call that is refused makes nothing"
    return done


def archive(path: Path, name: str, target: str = "") -> Path:
    with tarfile.open(path, "w:gz") as made:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = (tarfile.SYMTYPE, target) if target else (tarfile.REGTYPE, "")
        made.addfile(member, io.BytesIO())
    return path


CASES = [line.split(" | ", 2) for line in Path(__file__).with_name("wrong_calls.txt").read_text().splitlines()[1:]]
CASES.append(["2", "plan jumbo-frames --set 'links=[a]{odd}'", "not UTF-8"])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with files that are no archives, profiles or results, and with two saved series."""
    where = tmp_path_factory.mktemp("wrong")
    (where / "text").write_text("no archive")
    (where / "list.json").write_text("[1, 2]")
    (where / "broken.toml").write_text('name = "broken"\ntitle = \n')
    os.mkfifo(where / "pipe")
    archive(where / "up.tar.gz", "proc/../../etc/passwd")
    archive(where / "tree.tar.gz", "proc/mdstat")
    archive(where / "absolute.tar.gz", "proc", "/etc")
    save_result(where / "a", saved(speeds(8)).bench, {})
    save_result(where / "other", saved({OTHER: speeds(8)}).bench, {})
    return where


@pytest.mark.parametrize(("code", "call", "message"), CASES, ids=[call for _, call, _ in CASES])
def test_a_message_a_code_and_nothing_changed(code: str, call: str, message: str, place: Path, tmp_path: Path) -> None:
    words = [word.replace("{tmp}", str(place)).replace("{odd}", "\udcff") for word in shlex.split(call)]
    message, before, state = message.replace("{tmp}", str(place)), os.listdir(place), tmp_path / "state"
    done = call_inside(*words, ADVISOR_STATE_DIR=state)
    assert (done.returncode, done.stdout) == (int(code), ""), done.stderr
    assert message in done.stderr
    assert "observing for" not in done.stderr
    if words[0] not in ("mcp", "observe", "snapshot", "rollback-script") and words[:2] != ["profiles", "lint"]:
        error = judge(call_inside(*words, "--json", ADVISOR_STATE_DIR=state).stdout)["error"]
        assert error["code"] == int(code)
        assert message.removeprefix("hint: ") in error["message"] + str(error["hint"])
    assert not state.exists(), "a call that is refused makes nothing"
    assert os.listdir(place) == before


@pytest.mark.parametrize(
    "command", [("apply", "socket-buffers-8m", "--yes"), ("rollback",), ("prove", "numa-pinning", "--target", "/tmp")]
)
def test_without_root_it_says_so(command: tuple[str, ...], open_path: Path, as_nobody: tuple[str, ...]) -> None:
    done = advisor(*command, where=open_path, before=as_nobody)
    assert done.returncode == 6
    assert "root" in done.stderr


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_standard_output_that_fails_is_told_once(form: list[str], tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*ADVISOR, "scan", *form], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "advisor: standard output: No space left on device\n"


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    done = run_text(["sh", "-c", f"{sys.executable} -m advisor profiles show numa-pinning | head -n 1"], cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
