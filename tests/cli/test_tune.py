"""``advisor tune``: candidates raced and confirmed by a command whose speed is a known law of a harmless value."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from advisor.proof.archive import load_proof
from advisor.transaction.journal import Store
from tests.cli.own_profile import profile_text
from tests.cli.test_bad_input import advisor
from tests.cli.test_prove_command import ROOT, needs_namespaces
from tests.proof.conftest import disk, fake_fio
from tests.proof.fakes import CALM, FakeFio
from tests.report.pasted import lines_too_wide
from tests.running import run_text
from tests.schemas import judge

__all__ = ["disk", "fake_fio"]

BEFORE = 16384
"""sysctl kernel.msgmnb of a new IPC namespace."""

BENCHMARK = """#!{python} -IS
# A rate as a law of kernel.msgmnb, with 2 % of noise; run number {at} does what `fault` says.
import os, random, signal, time
here = os.path.dirname(os.path.abspath(__file__))
with open("/proc/sys/kernel/msgmnb") as file:
    value = int(file.read())
with open(os.path.join(here, "log"), "a+") as log:
    log.write(f"{{value}}\\n")
    log.seek(0)
    number = len(log.readlines())
if number == {at}:
    if "{fault}" == "changes":
        with open("/proc/sys/kernel/msgmnb", "w") as file:
            file.write("12345")
    elif "{fault}" == "busy":
        with open(os.path.join(here, "pressure", "cpu"), "w") as file:
            file.write("some avg10=80.00 avg60=80.00 avg300=80.00 total=90000000\\n")
    elif "{fault}":
        os.kill(os.getppid(), getattr(signal, "{fault}"))
        time.sleep(1)
rate = {law}.get(value, 1.0)
print(f"rate: {{1000 * rate * (1 + random.Random(number).gauss(0, 0.02)):.2f}}")
"""

CALM_HOST = """
mount --bind "$1/pressure" /proc/pressure && mount --bind "$1/stat" /proc/stat
place=$1
shift
"$@"
code=$?
echo "LIVE $(cat /proc/sys/kernel/msgmnb)"
if [ -n "$RESUME" ]; then
    id=$(ls "$place/state/searches" | sed 's/[.]json$//')
    "$1" -m advisor tune --resume "$id" --json
    code=$?
    echo "LIVE $(cat /proc/sys/kernel/msgmnb)"
fi
exit $code
"""


INSIDE = ("unshare", "--ipc", "--mount", "sh", "-c")


class TunedHost:
    """An IPC namespace of its own on a calm host, with a benchmark that reads its value."""

    def __init__(self, place: Path, law: dict[int, float], fault: str = "", at: int = 0) -> None:
        self.place = place
        (place / "pressure").mkdir(parents=True)
        (place / "pressure/cpu").write_text(CALM)
        (place / "pressure/io").write_text(CALM)
        (place / "stat").write_text("cpu  100 0 100 1000 0 0 0 0 0 0\nbtime 1700000000\n")
        self.benchmark = place / "own-benchmark"
        self.benchmark.write_text(BENCHMARK.format(python=sys.executable, law=law, fault=fault, at=at))
        self.benchmark.chmod(0o755)

    def tune(
        self, candidates: tuple[str, ...], *words: str, budget: str = "10m", resume: bool = False, as_json: bool = True
    ) -> tuple[int, str, str, list[str]]:
        """Exit code, standard output without the live values, standard error, and the live values after each call."""
        named = [word for one in candidates for word in ("--candidates", one)]
        judged = ("--command", str(self.benchmark), "--metric", "regex:rate: ([0-9.]+):higher:ops")
        call = [
            "tune",
            *named,
            *judged,
            "--budget",
            budget,
            "--seed",
            "5",
            "--dead-time",
            "0.1",
            *words,
            *(["--json"] if as_json else []),
        ]
        done = run_text(
            [*INSIDE, CALM_HOST, "sh", str(self.place), sys.executable, "-m", "advisor", *call],
            timeout=240,
            env={
                **os.environ,
                "ADVISOR_STATE_DIR": str(self.place / "state"),
                "PYTHONPATH": str(ROOT),
                "RESUME": "1" if resume else "",
                "COLUMNS": "80",
            },
        )
        live = re.findall(r"^LIVE (.*)$", done.stdout, re.MULTILINE)
        return done.returncode, re.sub(r"(?m)^LIVE .*\n", "", done.stdout), done.stderr, live

    @property
    def runs(self) -> list[str]:
        """The value that each run of the benchmark found."""
        return self.place.joinpath("log").read_text().split()


SAME = ("sysctl:kernel.msgmnb=20000", "sysctl:kernel.msgmnb=30000")


@needs_namespaces
def test_the_best_of_several_is_found_confirmed_and_not_kept(disk: Path) -> None:
    host = TunedHost(disk / "host", {20000: 1.2, 30000: 0.8})
    others = ("sysctl:kernel.msgmax=9000", "sysctl:kernel.msgmax=9500")
    code, out, err, live = host.tune((*SAME, *others, "numa-pinning"))
    assert code == 0, err
    assert live == [str(BEFORE)]
    document = judge(out)
    assert document["verdict"] == "gain"
    assert document["winner"]["name"] == SAME[0]
    assert document["kept"] is False
    session = document["session"]
    # both values of each tunable were arms of their own, and what cannot be raced is named
    assert sorted(session["arms"]) == sorted(["present", "placebo", *SAME, *others])
    assert [one["name"] for one in session["left_out"]] == ["numa-pinning"]
    assert host.runs.count("30000") >= 3
    # the confirmation was registered before it started, and is a proof of its own on data of its own
    registered, proof = session["registration"], document["confirmation"]
    assert registered["registered"] <= proof["session"]["started"]
    assert (registered["candidate"], registered["pairs"]) == (SAME[0], proof["session"]["schedule"]["pairs"])
    assert proof["workloads"][0]["ratio"] == pytest.approx(1.2, rel=0.05)
    assert load_proof(proof["saved_to"]).proof.verdict == "gain"
    assert {record.state for record in Store(str(host.place / "state")).read_records()} == {"rolled-back"}
    # each block: every survivor once, in an order that changes
    orders = [[run["arm"] for run in block["runs"]] for block in session["blocks"]]
    assert all(sorted(order) == sorted(set(order)) and 0 in order for order in orders)
    assert len({tuple(order) for order in orders}) > 1
    # a standing, and no figure before the end
    assert "ahead so far, which may be chance" in err
    assert not re.search(r"[+-][0-9.]+ %", err)
    assert not list((host.place / "state/searches").glob("*"))
    shown = advisor("compare", document["saved_to"], where=disk)
    assert shown.returncode == 2
    assert "a saved search, and no proof" in shown.stderr
    assert advisor("compare", proof["saved_to"], where=disk).returncode == 0


@pytest.mark.thorough
@needs_namespaces
def test_where_nothing_helps_nothing_is_claimed(disk: Path) -> None:
    host = TunedHost(disk / "host", {})
    code, out, err, live = host.tune(SAME, as_json=False)
    assert code == 1, err
    assert live == [str(BEFORE)]
    assert out.startswith("no winner: no candidate is shown to be better")
    assert "The race chooses and proves nothing" in out
    assert "given on the command line" in out
    assert not lines_too_wide(out, 80)
    assert host.runs.count("20000") >= 10


@needs_namespaces
def test_a_budget_that_is_too_small_is_refused_with_what_is_needed(disk: Path) -> None:
    host = TunedHost(disk / "host", {})
    code, out, _, live = host.tune(SAME, budget="0.05m")
    assert code == 3
    error = json.loads(out)["error"]
    assert error["message"].startswith("a budget of 3s is too small: a run took ")
    # the trial alone
    assert (host.runs, live) == ([str(BEFORE)], [str(BEFORE)])
    named = error["hint"].removeprefix("--budget ").partition(",")[0]
    assert f"10 blocks of 4 arms and a confirmation of 16 pairs need {named}" in error["message"]
    code, out, _, live = host.tune(SAME, budget=named)
    assert json.loads(out)["schema"] == "advisor.tune/1"
    assert (code, live) == (1, [str(BEFORE)])


@pytest.mark.repeats(1)
@needs_namespaces
@pytest.mark.parametrize("at", [16, 50])
def test_a_search_that_is_killed_goes_on(at: int, disk: Path) -> None:
    """In the race, and in the confirmation: after SIGKILL the next call restores the value and keeps the blocks."""
    host = TunedHost(disk / "host", {20000: 1.2, 30000: 0.8}, "SIGKILL", at)
    code, out, err, live = host.tune(SAME, resume=True)
    # the level of a confirmation holds for one
    assert code == (0 if at == 16 else 1), err
    document = judge(out)
    assert document["verdict"] == ("gain" if at == 16 else "indicative")
    assert document["winner"]["name"] == SAME[0]
    assert live[-1] == str(BEFORE)
    # the one of the two values that is not the transaction's own
    assert at != 16 or host.runs[at - 1] == "30000"
    assert {record.state for record in Store(str(host.place / "state")).read_records()} == {"rolled-back"}
    indices = [block["index"] for block in document["session"]["blocks"]]
    assert indices == list(range(len(indices)))
    # what was measured before the kill is not measured again
    raced = sum(len(block["runs"]) for block in document["session"]["blocks"])
    attempts = document["session"]["registration"]["attempts"]
    assert attempts == (1 if at == 16 else 2)
    assert len(host.runs) < 1 + raced + 5 + attempts * (1 + 6 + 2 * document["session"]["registration"]["pairs"])


@needs_namespaces
def test_a_signal_restores_the_values_and_says_how_to_go_on(disk: Path) -> None:
    host = TunedHost(disk / "host", {}, "SIGTERM", 9)
    code, out, _, live = host.tune(SAME)
    assert code == 130
    assert live == [str(BEFORE)]
    error = json.loads(out)["error"]
    assert error["message"] == "stopped by SIGTERM; every value is as before"
    assert re.fullmatch(r"advisor tune --resume [0-9]{8}-[0-9]{6} goes on", error["hint"])


@needs_namespaces
def test_a_value_that_somebody_else_changes_ends_the_search_and_stays_theirs(disk: Path) -> None:
    host = TunedHost(disk / "host", {}, "changes", 9)
    code, out, _, live = host.tune(SAME)
    assert code == 5
    (item,) = json.loads(out)["error"]["items"]
    assert item["what"] == "sysctl:kernel.msgmnb"
    assert live == ["12345"]


PAIR = ("sysctl:kernel.msgmnb", "sysctl:kernel.msgmax")


@pytest.mark.thorough
@needs_namespaces
def test_the_winner_is_reduced_to_the_value_that_did_it_and_that_is_confirmed(disk: Path) -> None:
    # Killed while it is examined: the blocks of the race are kept, and what examines the values starts again.
    host = TunedHost(disk / "host", {20000: 1.2, 30000: 0.8}, "SIGKILL", 64)
    profile = disk / "two-queues.toml"
    profile.write_text(profile_text("two-queues", dict(zip(PAIR, (20000, 9000), strict=True))))
    code, out, err, live = host.tune((str(profile), SAME[1]), resume=True)
    assert code == 0, err
    assert live[-1] == str(BEFORE)
    document = judge(out)
    assert sum(len(block["runs"]) for block in document["session"]["blocks"]) < 64 - 1
    ablation = document["session"]["ablation"]
    assert (ablation["kept"], ablation["dropped"]) == ([PAIR[0]], [PAIR[1]])
    assert document["ablated"] is True
    assert document["winner"]["words"] == [f"{PAIR[0]}=20000"]
    # what was registered and confirmed is the reduced one
    assert document["session"]["registration"]["candidate"] == document["winner"]["name"] == "two-queues (reduced)"
    assert [one["tunable"] for one in document["confirmation"]["values"]] == [PAIR[0]]
    assert {record.state for record in Store(str(host.place / "state")).read_records()} == {"rolled-back"}


@needs_namespaces
def test_a_host_that_gets_busy_during_the_race_is_confirmed_on(disk: Path) -> None:
    host = TunedHost(disk / "host", {20000: 1.3, 30000: 0.8}, "busy", 20)
    code, out, err, live = host.tune(SAME, "--no-ablation")
    assert live == [str(BEFORE)]
    assert code == 0, err
    document = judge(out)
    assert (document["verdict"], document["confirmation"]["verdict"]) == ("gain", "gain")
    assert document["confirmation"]["gate"]["busy"]


@needs_namespaces
def test_a_winner_that_is_not_to_be_reduced_is_confirmed_whole(disk: Path) -> None:
    host = TunedHost(disk / "host", {20000: 1.2, 30000: 0.8})
    profile = disk / "two-queues.toml"
    profile.write_text(profile_text("two-queues", dict(zip(PAIR, (20000, 9000), strict=True))))
    code, out, err, _ = host.tune((str(profile), SAME[1]), "--no-ablation", as_json=False)
    assert code == 0, err
    text = " ".join(out.split())
    assert "Which of the 2 values of two-queues did it was not examined." in text
    assert f"prove-values {profile}" in text
    assert "--no-ablation" in text


@needs_namespaces
def test_a_pattern_of_fio_judges_a_search(fake_fio: FakeFio, disk: Path) -> None:
    host = TunedHost(disk / "host", {})
    for name in ("diskstats", "target/.keep"):
        (host.place / name).parent.mkdir(exist_ok=True)
        (host.place / name).touch()
    # a new IPC namespace has 16384, which makes 900 IOPS here; the null engine does not read the value
    fake_fio.plan(iops=900 / BEFORE, control_factor=float(BEFORE))
    (fake_fio.directory / "speed").symlink_to("/proc/sys/kernel/msgmnb")
    named = [word for value in (20000, 9000) for word in ("--candidates", f"sysctl:kernel.msgmnb={value}")]
    target = host.place / "target"
    judged = ("--workload", "infoscale.4k-rand-r100", "--target", str(target), "--seconds", "0.1", "--file-size", "1M")
    call = ["tune", *named, *judged, "--budget", "20m", "--seed", "5", "--dead-time", "0.1", "--json"]
    shell = CALM_HOST.replace("&& mount", '&& mount --bind "$1/diskstats" /proc/diskstats && mount', 1)
    done = run_text(
        [*INSIDE, shell, "sh", str(host.place), sys.executable, "-m", "advisor", *call],
        timeout=240,
        env={
            **os.environ,
            "PATH": f"{fake_fio.directory}:{os.environ['PATH']}",
            "ADVISOR_STATE_DIR": str(host.place / "state"),
            "PYTHONPATH": str(ROOT),
            "RESUME": "",
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr
    out, _, live = done.stdout.rstrip().rpartition("\n")
    assert live == f"LIVE {BEFORE}"
    document = judge(out)
    assert document["winner"]["name"] == SAME[0]
    session = document["session"]
    assert session["command"] is None
    assert session["pattern"]["metric"]["name"] == session["registration"]["metric"] == "iops"
    assert document["confirmation"]["workloads"][0]["name"] == "infoscale.4k-rand-r100"
    assert document["confirmation"]["workloads"][0]["ratio"] == pytest.approx(20000 / BEFORE, rel=0.05)
    # the scratch file of the race and that of the confirmation are gone
    assert [one.name for one in target.iterdir()] == [".keep"]


def test_a_search_that_has_ended_cannot_go_on(tmp_path: Path) -> None:
    done = advisor("tune", "--resume", "20250131-142500", where=tmp_path)
    assert done.returncode == 2
    assert "--resume 20250131-142500: there is no such search" in done.stderr
    assert "one that has ended cannot go on; its result is in " in done.stderr
