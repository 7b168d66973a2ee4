"""A state directory that has become read-only holds no rollback up by the script that applied it, nor its watchdog."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from advisor.transaction.status import rollback_transactions
from tests.cases import read_cases
from tests.exporters.apply_script.stage import SHELLS, Answer, Stage, answer_of
from tests.waiting import until_unwatched

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a namespace needs root")
BOUND = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
# The watchdog is started in the namespace, so that it cannot write either.
DATA = read_cases(__file__)

TURNED = DATA["TURNED"]
each_shell = pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])


def in_namespace(stage: Stage, program: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    command = ["unshare", "-m", "sh", "-c", program, str(stage.where / "state"), *words]
    return subprocess.run(command, capture_output=True, check=False, env=stage.environment(), timeout=60, cwd="/")


def read_only(stage: Stage, *verb: str, shell: list[str]) -> Answer:
    done = in_namespace(stage, BOUND, *stage.words(*verb, under=shell))
    return answer_of(done.returncode, done.stdout, done.stderr)


def recorded_later(stage: Stage) -> None:
    assert stage.call("rollback").code == 0
    assert stage.record().state == "rolled-back"


@each_shell
def test_rolled_back_and_recorded_later(tmp_path: Path, shell: list[str]) -> None:
    stage = Stage(tmp_path)
    before = stage.listing()
    assert stage.call("apply", "--confirm-within", "0").code == 0
    for verb in ("status", "verify"):
        assert read_only(stage, verb, shell=shell).state == "applied"
    # That of busybox calls everything writable for root.
    for verb in ("check", "apply")[shell[0] == "busybox" :]:
        refused = read_only(stage, verb, shell=shell)
        assert (refused.code, "cannot be written" in refused.last["message"]) == (3, True)
    done = read_only(stage, "rollback", shell=shell)
    assert (done.code, done.state) == (0, "rolled-back"), done
    assert "cannot be written" in done.errors
    assert stage.listing() == before
    assert stage.record().state == "applied"
    recorded_later(stage)
    assert stage.listing() == before


@pytest.mark.repeats(1)
@each_shell
def test_one_that_waits_is_rolled_back_by_its_watchdog(tmp_path: Path, shell: list[str]) -> None:
    stage = Stage(tmp_path)
    (tmp_path / "state").mkdir(mode=0o700)
    before = stage.listing()
    done = in_namespace(stage, TURNED, *stage.words("apply", "--guard", "--confirm-within", "4", under=shell))
    assert done.returncode == 0, (tmp_path / "said").read_text()
    assert stage.listing() == before
    until_unwatched(stage.store)
    late = stage.call("confirm", under=shell)
    assert (late.code, "too late" in late.last["message"]) == (3, True), late
    rollback_transactions(stage.host, None, everything=False, force=False, store=stage.store)
    assert stage.listing() == before
    assert stage.record().state == "rolled-back"
