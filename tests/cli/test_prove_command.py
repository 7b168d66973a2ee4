"""``advisor prove --command``: a benchmark of the user's own, whose latency is a known law of a harmless value."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from advisor.proof.archive import load_proof
from advisor.transaction.journal import Store
from tests.cli.test_bad_input import advisor
from tests.proof.conftest import disk
from tests.proof.fakes import CALM

__all__ = ["disk"]

ROOT = Path(__file__).parents[2]
BEFORE, AFTER = 16384, 30000
"""sysctl kernel.msgmnb of a new IPC namespace, and what arm B sets."""

BENCHMARK = """#!{python} -IS
# Throughput and latency as a law of kernel.msgmnb, with 2 % of noise; `fault` says what a later run does.
import os, random, time
here = os.path.dirname(os.path.abspath(__file__))
with open("/proc/sys/kernel/msgmnb") as file:
    value = int(file.read())
with open(os.path.join(here, "log"), "a+") as log:
    log.write(f"{{value}}\\n")
    log.seek(0)
    number = len(log.readlines())
rate = {rate} if value > 20000 else 1.0
tail = {tail} if value > 20000 else 1.0
noise = lambda: 1 + random.Random(number).gauss(0, 0.02)
fault = "{fault}" if number == 6 else ""
if fault == "fails":
    print("ERROR: the connection was closed")
    raise SystemExit(7)
if fault == "hangs":
    time.sleep(600)
if fault == "changes":
    with open("/proc/sys/kernel/msgmnb", "w") as file:
        file.write("12345")
if fault == "no-figure":
    print("nothing was measured")
    raise SystemExit
print(f"transactions: {{1000 * rate * noise():.2f}} per second")
print(f"p99: {{5 * tail * noise():.4f}} ms")
"""

CALM_HOST = """
mount --bind "$1/pressure" /proc/pressure && mount --bind "$1/stat" /proc/stat
shift && "$@"
code=$?
cat /proc/sys/kernel/msgmnb
exit $code
"""

needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="makes namespaces: needs root"
)


class OwnHost:
    """An IPC namespace of its own on a calm host, with a benchmark that reads its value."""

    def __init__(self, place: Path, rate: float, tail: float, fault: str) -> None:
        self.place = place
        (place / "pressure").mkdir(parents=True)
        (place / "pressure/cpu").write_text(CALM)
        (place / "pressure/io").write_text(CALM)
        (place / "stat").write_text("cpu  100 0 100 1000 0 0 0 0 0 0\n")
        self.benchmark = place / "own-benchmark"
        self.benchmark.write_text(BENCHMARK.format(python=sys.executable, rate=rate, tail=tail, fault=fault))
        self.benchmark.chmod(0o755)

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = ("prove", f"sysctl:kernel.msgmnb={AFTER}", "--command", str(self.benchmark), *words, "--json")
        inside = ["unshare", "--ipc", "--mount", "sh", "-c", CALM_HOST, "sh", str(self.place)]
        return subprocess.Popen(
            [*inside, sys.executable, "-m", "advisor", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "ADVISOR_STATE_DIR": str(self.place / "state"), "PYTHONPATH": str(ROOT)},
        )

    def prove(self, *words: str) -> tuple[int, dict[str, object], str, str]:
        """Exit code, the document, standard error, and the live value after it."""
        process = self.start("--quick", "--dead-time", "0.1", "--seed", "1", *words)
        out, err = process.communicate(timeout=120)
        text, _, live = out.rstrip().rpartition("\n")
        return process.returncode, json.loads(text) if text else {}, err, live


TPS = ("--metric", "tps=regex:transactions: ([0-9.]+):higher:tps")
P99 = ("--metric", "p99=regex:p99: ([0-9.]+):lower:ms")


@needs_namespaces
@pytest.mark.parametrize(
    ("rate", "tail", "code", "verdict"),
    [(1.2, 1.0, 0, "gain"), (1.2, 1.4, 1, "gain-with-cost"), (0.8, 1.0, 1, "loss"), (1.0, 1.0, 1, "inconclusive")],
)
def test_a_known_law_is_found(rate: float, tail: float, code: int, verdict: str, disk: Path) -> None:
    host = OwnHost(disk / "host", rate, tail, "")
    returncode, document, err, live = host.prove(*TPS, *P99)
    assert returncode == code, err
    assert document["verdict"] == verdict
    assert live == str(BEFORE)
    claim, guardrail = document["workloads"][0], document["guardrails"][0]  # type: ignore[index]
    assert (claim["name"], claim["metric"], claim["unit"], claim["better"]) == ("command", "tps", "tps", "higher")
    assert (guardrail["metric"], guardrail["unit"], guardrail["better"]) == ("p99", "ms", "lower")
    assert claim["ratio"] == pytest.approx(rate, rel=0.05)
    assert guardrail["ratio"] == pytest.approx(tail, rel=0.05)
    # both arms ran in turn: each pair has one run of each
    seen = host.place.joinpath("log").read_text().split()
    assert seen.count(str(AFTER)) >= 8
    assert [record.state for record in Store(str(host.place / "state")).read_records()] == ["rolled-back"]
    kept = next((host.place / "state/proofs").glob("*.json.gz"))
    again = advisor("compare", str(kept), "--json", where=disk)
    assert json.loads(again.stdout)["verdict"] == verdict
    shown = advisor("compare", str(kept), where=disk).stdout
    assert "judged by" in shown
    assert f"--command={host.benchmark}" in shown
    both = advisor("compare", str(kept), str(kept), where=disk)
    assert both.returncode == 2
    assert "such a proof is not compared with another result" in both.stderr


@needs_namespaces
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("fails", "own-benchmark returned 7: ERROR: the connection was closed"),
        ("hangs", "own-benchmark did not end within 1 s and was killed with all that it started"),
        ("no-figure", "metric tps (regex:transactions: ([0-9.]+)): no match; the last lines: nothing was measured"),
    ],
)
def test_a_run_that_fails_ends_the_session_with_the_value_from_before(fault: str, message: str, disk: Path) -> None:
    host = OwnHost(disk / "host", 1.2, 1.0, fault)
    returncode, document, err, live = host.prove(*TPS, "--command-timeout", "1")
    assert returncode == 1, err
    assert document["verdict"] == "invalid"
    kept = host.place / "state/proofs/failed-command.txt"
    assert document["reasons"][0].startswith(message)  # type: ignore[index]
    assert str(kept) in document["reasons"][0]  # type: ignore[index]
    assert kept.exists()
    assert live == str(BEFORE)


@needs_namespaces
def test_a_value_that_somebody_else_changes_ends_the_session(disk: Path) -> None:
    host = OwnHost(disk / "host", 1.2, 1.0, "changes")
    returncode, document, err, live = host.prove(*TPS)
    assert returncode == 5, err
    assert "modified externally (12345)" in str(document["error"])
    proof = load_proof(next((host.place / "state/proofs").glob("*.json.gz"))).proof
    assert proof.verdict == "invalid"
    assert proof.reasons[0] == (
        f"sysctl:kernel.msgmnb: expected {BEFORE}, found 12345: modified externally during the session"
    ) or proof.reasons[0].startswith(f"sysctl:kernel.msgmnb: expected {AFTER}, found 12345")
    # what somebody else has set is theirs
    assert live == "12345"


@needs_namespaces
def test_a_command_that_does_not_run_is_found_before_anything_is_changed(disk: Path) -> None:
    host = OwnHost(disk / "host", 1.2, 1.0, "")
    returncode, document, _err, live = host.prove("--metric", "regex:queries = ([0-9]+)")
    assert returncode == 4
    assert "no match; the last lines: transactions:" in str(document["error"])
    assert live == str(BEFORE)
    assert host.place.joinpath("log").read_text().split() == [str(BEFORE)]


@needs_namespaces
def test_a_signal_ends_the_session_and_the_run(disk: Path) -> None:
    host = OwnHost(disk / "host", 1.2, 1.0, "hangs")
    process = host.start("--quick", "--dead-time", "0.1", *TPS)
    log = host.place / "log"
    for _ in range(3000):
        if log.exists() and len(log.read_text().split()) >= 6:
            break
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGTERM)
    process.communicate(timeout=60)
    assert [record.state for record in Store(str(host.place / "state")).read_records()] == ["rolled-back"]


def test_an_ended_self_test_says_that_nothing_was_changed(tmp_path: Path) -> None:
    command = f"sh -c 'echo 1 >> {tmp_path}/log; sleep 0.2'"
    words = ("prove", "--self-test", "--quick", "--force", "--command", command, "--metric", "time")
    with subprocess.Popen(
        [sys.executable, "-m", "advisor", *words],
        cwd=ROOT,
        env={**os.environ, "ADVISOR_STATE_DIR": str(tmp_path / "state"), "LC_ALL": "C"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        log = tmp_path / "log"
        for _ in range(3000):
            if log.exists() and len(log.read_text().split()) >= 3:
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "pairs; nothing was changed\n" in err


def test_the_noise_of_a_command_needs_no_root(disk: Path, as_nobody: tuple[str, ...]) -> None:
    disk.chmod(0o755)
    words = ("--command", "sleep 0.01", "--metric", "time", "--directory", "/", "--quick", "--force", "--json")
    done = advisor("prove", "--self-test", *words, where=disk, before=as_nobody)
    document = json.loads(done.stdout)
    assert document["workloads"][0]["metric"] == "time", done.stderr
    assert document["workloads"][0]["pairs"] == 8
