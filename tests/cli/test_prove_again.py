"""``advisor prove --again``: a kept proof is repeated with the profile rolled back, and with it active."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.inside import call_inside
from tests.cli.test_prove_command import AFTER, BEFORE, CALM_HOST, ROOT, TPS, OwnHost, needs_namespaces

SEQUENCE = """
advisor() { "$python" -m advisor "$@" || echo "code $?"; }
value() { [ -z "$1" ] || echo "$1" >/proc/sys/kernel/msgmnb; cat /proc/sys/kernel/msgmnb; }
python=$1; benchmark=$2; shift 2
advisor prove sysctl:kernel.msgmnb=AFTER --command "$benchmark" "$@" --quick --seed 1 --budget 10m --json >/dev/null
advisor bench --command true --metric time --quick >/dev/null
advisor prove --again last --json; value ""
echo ==; value AFTER; advisor prove --again last --pairs 4 --json; value ""
echo ==; value 12345; advisor prove --again last --json
""".replace("AFTER", str(AFTER)).replace("BEFORE", str(BEFORE))


@needs_namespaces
def test_a_proof_is_repeated_from_both_states_and_from_no_third(tmp_path: Path) -> None:
    host = OwnHost(tmp_path, 1.3, 1.0, "")
    inside = ["unshare", "--ipc", "--mount", "sh", "-c", CALM_HOST, "sh", str(tmp_path)]
    done = subprocess.run(
        [*inside, "sh", "-c", SEQUENCE, "sh", sys.executable, str(host.benchmark), *TPS],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "ADVISOR_STATE_DIR": str(tmp_path / "state"),
             "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    first, active, other = done.stdout.split("==\n")
    found, live = _document(first)
    assert (found["gains"][0]["state"], found["repetitions"], found["is_inverted"]) == ("there", 1, False), done.stderr
    assert live == str(BEFORE)
    # With the value active it is taken away in turn: the gain reads the same, and the value is back.
    found, live = _document(active.partition("\n")[2])
    assert (found["repetitions"], found["is_inverted"], found["gains"][0]["pairs"]) == (2, True, 7)
    assert found["gains"][0]["effect"] == pytest.approx(0.3, abs=0.1)
    assert live == str(AFTER)
    error, live = _document(other.partition("\n")[2].replace("code 3\n", ""))
    assert "code 3" in other
    assert f"expected {BEFORE} or {AFTER} as in the proof, found 12345" in error["error"]["message"]
    assert live == "12345"


def _document(text: str) -> tuple[Any, str]:
    """What advisor printed, and the live value after it."""
    body, _, live = text.rstrip().rpartition("\n")
    return json.loads(body), live


@needs_namespaces
def test_a_value_of_the_environment_that_is_not_recorded_is_asked_for(tmp_path: Path) -> None:
    host = OwnHost(tmp_path, 1.3, 1.0, "")
    code, _, err, _ = host.prove(*TPS, "--env", "TOKEN=secret")
    assert code == 0, err
    done = call_inside("prove", "--again", "last", ADVISOR_STATE_DIR=tmp_path / "state")
    assert done.returncode == 3
    assert "TOKEN of --env is not set here, and its value is not recorded" in done.stderr
    assert "hint: TOKEN=VALUE advisor prove --again 20" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--again", "last", "--quick"), "--quick and --again exclude each other"),
        (("jumbo-frames", "--again", "last"), "PROFILE and --again exclude each other"),
        (("--again", "2099"), "there is no such proof"),
        (("--self-test", "--target", "/tmp", "--pairs", "3"), "--pairs belongs to --again"),
    ],
)
def test_a_call_that_cannot_be_is_said(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = call_inside("prove", *words, ADVISOR_STATE_DIR=tmp_path / "state")
    assert done.returncode == 2
    assert said in done.stderr
