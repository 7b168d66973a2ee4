"""``advisor bench`` and ``advisor compare`` as commands: exit codes, one document under --json, what is kept where."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from advisor.proof.archive import load_any, save_result
from advisor.proof.records import Proof
from advisor.proof.series import Bench
from advisor.proof.verdict import decide_session
from tests.cli.inside import call_inside
from tests.proof.benches import saved, speeds
from tests.proof.conftest import disk, fake_fio
from tests.proof.fakes import FakeFio
from tests.proof.sessions import WORKLOAD, pair, session

__all__ = ["disk", "fake_fio"]

ROOT = Path(__file__).parents[2]
LATER = "2024-05-18T12:00:00+00:00"
QUICK = ("--quick", "--force", "--budget", "60", "--byte-budget", "600")


def advisor(*words: str | Path, state: Path, fio: FakeFio | None = None) -> subprocess.CompletedProcess[str]:
    path = f"{fio.directory}:{os.environ['PATH']}" if fio else os.environ["PATH"]
    return call_inside(*words, ADVISOR_STATE_DIR=state, PATH=path)


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def proof(factor: float) -> Proof:
    values = zip(speeds(24), speeds(24, around=1000 * factor, seed=2), strict=True)
    return decide_session(
        session([pair(index, *both, order="AB" if index % 3 else "BA") for index, both in enumerate(values)])
    )


def kept(place: Path, result: Bench | Proof) -> Path:
    save_result(place, result, {})
    return place


# -- a command of the user's own ---------------------------------------------------------------------------------------

LOAD = "sh -c 'n=$(cat log 2>/dev/null | wc -l); echo run >> log; echo tps = $((1000 + n)); echo p99 = 5.$n'"
TPS = ("--metric", "regex:tps = ([0-9.]+):higher:tps")
P99 = ("--metric", "regex:p99 = ([0-9.]+):lower:ms")


def test_a_series_of_a_command_of_the_users_own(tmp_path: Path) -> None:
    where = ("--directory", tmp_path, "--command", LOAD, *TPS, *P99)
    done = advisor("bench", "--quick", "--force", "--seed", "3", *where, "--json", state=tmp_path / "state")
    found = document(done)
    assert found["quality"] in ("indicative", "sound"), done.stderr
    tps, p99 = found["workloads"]
    assert (tps["name"], tps["metric"], tps["unit"], tps["better"]) == ("command", "tps", "tps", "higher")
    assert (p99["metric"], p99["unit"], p99["better"]) == ("p99", "ms", "lower")
    # one run on trial and the warm-up come before the rounds that count
    assert tps["runs"] == p99["runs"] == 8
    assert 1003 <= tps["interval"][0] <= tps["median"] <= tps["interval"][1] <= 1020
    assert (tps["latency_p50_us"], tps["iops"], tps["cv"] > 0) == (None, None, True)
    kept_file = next((tmp_path / "state/proofs").glob("*.json.gz"))
    again = advisor("compare", kept_file, "--json", state=tmp_path / "state")
    assert document(again)["workloads"] == found["workloads"]
    text = advisor("compare", kept_file, state=tmp_path / "state").stdout
    assert " by sh -c " in text
    assert "scratch" not in text
    assert "'--metric=regex:tps = ([0-9.]+):higher:tps'" in text
    both = advisor("compare", kept_file, kept_file, state=tmp_path / "state")
    assert both.returncode == 2
    assert "a series of a command is not compared with another result" in both.stderr


def test_a_run_of_a_command_that_fails_ends_its_series(tmp_path: Path) -> None:
    fails = "sh -c 'echo run >> log; [ $(wc -l < log) -lt 6 ] && echo v=1 || { echo broken; exit 3; }'"
    words = ("--directory", tmp_path, "--command", fails, "--metric", "regex:v=([0-9]+)")
    done = advisor("bench", "--quick", "--force", *words, "--json", state=tmp_path / "state")
    assert done.returncode == 1
    (first, *_) = document(done)["reasons"]
    assert first.startswith("sh returned 3: broken; its output is kept in ")


# -- bench -------------------------------------------------------------------------------------------------------------


def test_a_series_is_kept_in_the_state_directory_and_analysed_again(
    fake_fio: FakeFio, disk: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    done = advisor("bench", "--target", disk, "--workload", WORKLOAD, *QUICK, "--json", state=state, fio=fake_fio)
    found = document(done)
    assert found["schema"] == "advisor.bench/1"
    assert done.returncode == (0 if found["quality"] == "sound" else 1)
    assert os.listdir(disk) == []
    (name,) = os.listdir(state / "proofs")
    assert found["saved_to"] == str(state / "proofs" / name)
    assert f"kept in {found['saved_to']}" in done.stderr
    again = advisor("compare", found["saved_to"], "--json", state=state)
    assert (document(again), again.returncode) == (found, done.returncode)
    text = advisor("compare", found["saved_to"], state=state)
    assert "--workload=infoscale.4k-rand-r100" in text.stdout


@pytest.mark.thorough
def test_save_puts_it_where_it_was_asked_for_only(fake_fio: FakeFio, disk: Path, tmp_path: Path) -> None:
    words = ("--target", disk, "--workload", WORKLOAD, *QUICK, "--save", tmp_path / "mine")
    done = advisor("bench", *words, state=tmp_path / "state", fio=fake_fio)
    assert load_any(tmp_path / "mine").fio
    assert not (tmp_path / "state/proofs").exists()
    assert f"kept in {tmp_path / 'mine'}" in done.stderr
    assert "Noise floor" in done.stdout or "fewer than 6" in done.stdout


@pytest.mark.thorough
def test_what_cannot_be_kept_is_still_printed(fake_fio: FakeFio, disk: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    words = ("--target", disk, "--workload", WORKLOAD, *QUICK, "--json")
    done = advisor("bench", *words, state=tmp_path / "file/state", fio=fake_fio)
    found = document(done)
    assert found["saved_to"] is None
    assert any("the result was not saved" in note for note in found["notes"])
    assert found["workloads"][0]["runs"] > 0


# -- compare -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("around", "outcome", "code"), [(1200.0, "better", 0), (800.0, "worse", 1), (1000.0, "inconclusive", 0)]
)
def test_the_exit_code_says_whether_b_is_worse(tmp_path: Path, around: float, outcome: str, code: int) -> None:
    first = kept(tmp_path / "a", saved(speeds(24, noise=0.03)).bench)
    second = kept(tmp_path / "b", saved(speeds(24, around=around, noise=0.03, seed=2), started=LATER).bench)
    done = advisor("compare", first, second, "--json", state=tmp_path / "state")
    found = document(done)
    assert (found["schema"], found["verdict"], found["workloads"][0]["outcome"]) == (
        "advisor.comparison/1",
        "indicative",
        outcome,
    )
    assert done.returncode == code
    assert (found["a"]["source"], found["b"]["source"]) == (str(first), str(second))
    text = advisor("compare", first, second, state=tmp_path / "state")
    assert text.returncode == code
    assert text.stdout.startswith("indicative, no proof: ")


def test_a_comparison_that_is_void_is_a_no(tmp_path: Path) -> None:
    first = kept(tmp_path / "a", saved(speeds(24)).bench)
    second = kept(tmp_path / "b", saved(speeds(24, seed=2), faults=("fio failed",)).bench)
    assert advisor("compare", first, second, state=tmp_path).returncode == 1


@pytest.mark.parametrize(("factor", "verdict", "code"), [(1.3, "gain", 0), (0.7, "loss", 1), (1.0, "no-difference", 1)])
def test_a_proof_alone_gets_the_same_verdict_again(tmp_path: Path, factor: float, verdict: str, code: int) -> None:
    place = kept(tmp_path / "proof", proof(factor))
    done = advisor("compare", place, "--json", state=tmp_path / "state")
    found = document(done)
    assert (found["schema"], found["verdict"], done.returncode) == ("advisor.proof/1", verdict, code)
    assert "analysed again; nothing was measured" in done.stderr
    assert "the rules have changed" not in done.stderr


def test_a_verdict_that_would_be_another_today_is_said(tmp_path: Path) -> None:
    place = kept(tmp_path / "proof", msgspec.structs.replace(proof(1.0), verdict="gain"))
    done = advisor("compare", place, state=tmp_path / "state")
    assert done.returncode == 1
    assert "when it was saved the verdict was gain" in done.stderr


def test_two_proofs_are_compared_by_their_arms_a(tmp_path: Path) -> None:
    first, second = kept(tmp_path / "a", proof(1.3)), kept(tmp_path / "b", proof(0.5))
    found = document(advisor("compare", first, second, "--json", state=tmp_path / "state"))
    assert found["workloads"][0]["outcome"] == "inconclusive"
    assert found["workloads"][0]["runs"] == [24, 24]


# -- pages -------------------------------------------------------------------------------------------------------------


def test_a_proof_analysed_again_has_its_page(tmp_path: Path) -> None:
    again = kept(tmp_path / "proof", proof(1.3))
    done = advisor("compare", again, "--html", tmp_path / "page.html", "--json", state=tmp_path / "state")
    assert (done.returncode, document(done)["schema"]) == (0, "advisor.proof/1")
    assert "<title>gain: " in (tmp_path / "page.html").read_text()


def test_a_page_that_cannot_be_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    place = kept(tmp_path / "a", saved(speeds(8)).bench)
    for words, message in (
        ((tmp_path / "none", "--html", tmp_path / "no/page.html"), "no such directory"),
        ((place, "--html", tmp_path / "page.html"), "one series alone has no page"),
        ((place, "--html", place), "is named for something else"),
        ((tmp_path / "none", place, "--html", tmp_path / "x/../a"), "is named for something else"),
    ):
        done = advisor("compare", *words, state=tmp_path / "state")
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr
    assert os.listdir(tmp_path) == ["a"]
    assert load_any(place)
