"""``advisor prove-values``, and ``prove-arms`` with ``--command``: values of a namespace, a known law."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.profiles.profile import load_file
from advisor.proof.archive import load_proof
from advisor.transaction.journal import Store
from tests.cli.own_profile import profile_text
from tests.cli.test_bad_input import advisor
from tests.proof.conftest import disk
from tests.proof.fakes import CALM
from tests.waiting import until

__all__ = ["disk"]

ROOT = Path(__file__).parents[2]
VALUES = {"kernel.msgmnb": (16384, 30000), "kernel.msgmax": (8192, 10000), "kernel.shmmni": (4096, 5000)}
"""Values of a new IPC namespace, and what is tried."""
BENCHMARK = """#!/bin/sh
# A law of two of the values, with 2 % of noise that the number of the run draws.
place=$(dirname "$0")
echo run >> "$place/log"
number=$(wc -l < "$place/log")
mnb=$(cat /proc/sys/kernel/msgmnb) mni=$(cat /proc/sys/kernel/shmmni)
exec awk -v number="$number" -v mnb="$mnb" -v mni="$mni" 'BEGIN {
    srand(number); noise = 0; for (i = 0; i < 12; i++) noise += rand()
    rate = 1000 * (1 + (noise - 6) * 0.02)
    if (mnb > 20000) rate *= 1.3
    if (mni > 4500) rate *= 0.8
    printf "tps: %.3f\\n", rate }'
"""
INSIDE = """
mount --bind "$1/pressure" /proc/pressure && mount --bind "$1/stat" /proc/stat
shift
"$@" &
echo $! > "$PLACE/pid"
wait $!
code=$?
until [ "$code" != 137 ] || [ -e "$PLACE/done" ]; do sleep 0.1; done
cat /proc/sys/kernel/msgmnb /proc/sys/kernel/msgmax /proc/sys/kernel/shmmni
exit $code
"""
TPS = ("--metric", "tps=regex:tps: ([0-9.]+):higher:tps")

needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="makes namespaces: needs root"
)


class OwnHost:
    """An IPC namespace on a calm host, with a benchmark that follows its values."""

    def __init__(self, place: Path) -> None:
        self.place = place
        (place / "pressure").mkdir(parents=True)
        (place / "pressure/cpu").write_text(CALM)
        (place / "pressure/io").write_text(CALM)
        (place / "stat").write_text("cpu  100 0 100 1000 0 0 0 0 0 0\n")
        self.benchmark = place / "own-benchmark"
        self.benchmark.write_text(BENCHMARK)
        self.benchmark.chmod(0o755)
        self.state = place / "state"

    def start(self, *words: str) -> subprocess.Popen[str]:
        common = ("--command", str(self.benchmark), *TPS, "--quick", "--dead-time", "0.1", "--seed", "4", "--json")
        inside = ["unshare", "--ipc", "--mount", "sh", "-c", INSIDE, "sh", str(self.place)]
        return subprocess.Popen(
            [*inside, sys.executable, "-m", "advisor", *words, *common],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "ADVISOR_STATE_DIR": str(self.state),
                "PYTHONPATH": str(ROOT),
                "PLACE": str(self.place),
                "XDG_CONFIG_HOME": str(self.place / "config"),
            },
        )


def ended(process: subprocess.Popen[str]) -> tuple[dict[str, object], str, list[str]]:
    """The document, standard error, and the live values at the end."""
    out, err = process.communicate(timeout=300)
    *text, one, two, three = out.splitlines()
    return json.loads("\n".join(text) or "{}"), err, [one, two, three]


WORDS = [f"sysctl:{name}={after}" for name, (_, after) in VALUES.items()]
BEFORE = [str(before) for before, _ in VALUES.values()]


@needs_namespaces
def test_the_values_that_do_something_are_found_and_the_profile_is_reduced(disk: Path) -> None:
    host, reduced = OwnHost(disk / "host"), disk / "only-one.toml"
    drawn = ("--html", str(disk / "page.html"), "--svg", str(disk / "bars.svg"))
    process = host.start("prove-values", *WORDS, "--reduced-profile", str(reduced), *drawn)
    document, err, live = ended(process)
    assert process.returncode == 0, err
    assert live == BEFORE
    effects = {one["arm"]: one for one in document["workloads"]}  # type: ignore[attr-defined]
    assert effects["sysctl:kernel.msgmnb"]["verdict"] == "gain"
    assert effects["sysctl:kernel.msgmnb"]["ratio"] == pytest.approx(1.3, rel=0.03)
    assert effects["sysctl:kernel.shmmni"]["verdict"] == "loss"
    assert effects["sysctl:kernel.shmmni"]["ratio"] == pytest.approx(0.8, rel=0.03)
    assert effects["sysctl:kernel.msgmax"]["verdict"] in ("inconclusive", "no-difference")
    low, high = effects["sysctl:kernel.msgmax"]["ci95"]
    assert 0.9 < low <= 1 <= high < 1.1
    assert [record.state for record in Store(str(host.state)).read_records()] == ["rolled-back"]
    # each block has each of the 8 combinations once
    kept = next((host.state / "proofs").glob("*.json.gz"))
    for block in load_proof(kept).proof.session.pairs:
        assert len({run.arm for run in block.runs}) == len(block.runs) == 8
    # what is offered is a profile
    profile = load_file(reduced)
    assert [one.tunable for one in profile.tunables] == ["sysctl:kernel.msgmnb"]
    assert "not proven" in profile.notes
    assert advisor("profiles", "lint", str(reduced), where=disk).returncode == 0
    shown = " ".join(advisor("compare", str(kept), where=disk).stdout.split())
    assert "no effect larger than" in shown
    assert "advisor prove sysctl:kernel.msgmnb=30000 --quick" in shown
    assert f"prove-values {' '.join(WORDS)} --quick --command={host.benchmark}" in shown
    page = advisor("compare", str(kept), "--html", str(disk / "again.html"), where=disk)
    assert page.returncode == 0, page.stderr
    assert (disk / "again.html").read_text() == (disk / "page.html").read_text()
    assert (disk / "bars.svg").read_text().startswith("<svg")


@needs_namespaces
def test_a_killed_session_leaves_the_values_from_before(disk: Path) -> None:
    """SIGKILL while combinations are switched: the watchdog restores all of them."""
    host = OwnHost(disk / "host")
    process = host.start("prove-values", *WORDS)
    log = host.place / "log"
    until(lambda: log.exists() and len(log.read_text().split()) > 12, "the session did not begin")
    os.kill(int((host.place / "pid").read_text()), signal.SIGKILL)
    store = Store(str(host.state))
    until(lambda: [record.state for record in store.read_records()] == ["rolled-back"], "it was not rolled back")
    (host.place / "done").touch()
    _, _, live = ended(process)
    assert live == BEFORE


@needs_namespaces
def test_arms_are_judged_by_the_command(disk: Path) -> None:
    host = OwnHost(disk / "host")
    library = host.place / "config/advisor/profiles"
    library.mkdir(parents=True)
    for name, tunable in (("more-queue", "kernel.msgmnb"), ("more-segments", "kernel.shmmni")):
        (library / f"{name}.toml").write_text(profile_text(name, {f"sysctl:{tunable}": VALUES[tunable][1]}))
    process = host.start("prove-arms", "more-queue", "more-segments")
    document, err, live = ended(process)
    assert process.returncode == 0, err
    assert live == BEFORE
    calls = {one["arm"]: one["verdict"] for one in document["workloads"]}  # type: ignore[attr-defined]
    assert calls == {"more-queue": "gain", "more-segments": "loss"}
    assert document["best"] == {"command": "more-queue"}
    kept = next((host.state / "proofs").glob("*.json.gz"))
    shown = " ".join(advisor("compare", str(kept), where=disk).stdout.split())
    assert f"command {host.benchmark}" in shown
    assert f"advisor prove-arms more-queue more-segments --quick --command={host.benchmark}" in shown
