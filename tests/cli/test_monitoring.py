"""``advisor verify`` for monitoring, and the examples of docs/monitoring.md, as far as this machine can run them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor.host import live_host
from advisor.planning.records import FileChange
from advisor.report.monitoring import VerifyState
from advisor.transaction.journal import Applied, Store
from tests.report.exposition import Sample, metrics_text, samples
from tests.report.test_change import change, plan
from tests.report.test_monitoring import FILE, LIVE, UNREAD, failed, state

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs/examples/monitoring"
ADVISOR = Path(sys.executable).with_name("advisor")
SERVICE = EXAMPLES / "advisor-verify.service"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may keep transactions")


def call(home: Path, *words: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ADVISOR_STATE_DIR": str(home / "state"), "PYTHONPATH": str(ROOT)}
    command = [*before, sys.executable, "-m", "advisor", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=home, check=False)


def make_transaction(home: Path, *, value: str | None = None) -> Path:
    """A active transaction whose value is what this machine has, or another one; gives the file that it wrote."""
    live = live_host().read("/proc/sys/vm/swappiness")
    assert isinstance(live, str)
    path = home / "90-advisor-p.conf"
    path.write_text("vm.swappiness = 10\n")
    file = FileChange(
        path=str(path),
        before=None,
        after=path.read_bytes(),
        mode=0o644,
        uid=0,
        gid=0,
        mode_before=None,
        reload=(),
        tunables=("sysctl:vm.swappiness",),
        edits=(),
    )
    made = plan(change(before="1", after=live if value is None else value), files=(file,))
    store = Store(str(home / "state"))
    with store.hold_lock(), store.begin_journal(made, version="0", data=None) as journal:
        journal.write_entry(Applied(time.time(), {}))
        store.watchdog_of(store.read_records()[-1].id).close_files()
    return path


def written(file: Path) -> dict[Sample, float]:
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert [one.name for one in file.parent.iterdir() if one.name.startswith(".")] == []
    return samples(file.read_text())


@needs_root
def test_the_metrics_file_beside_the_usual_answer(tmp_path: Path) -> None:
    path = make_transaction(tmp_path)
    metrics = tmp_path / "advisor.prom"
    done = call(tmp_path, "verify", "--prometheus", str(metrics))
    assert (done.returncode, done.stdout) == (0, "Active: 1 value and 1 file match.\n")
    found = written(metrics)
    assert found["advisor_verify_success", ()] == 1
    assert found["advisor_transactions_in_force", ()] == 1
    path.unlink()
    done = call(tmp_path, "verify", "--prometheus", str(metrics), "--json")
    assert done.returncode == 1
    assert '"advisor.verify/1"' in done.stdout
    labels = (("kind", "persisted"), ("transaction", "0001"), ("tunable", str(path)))
    assert written(metrics)["advisor_drift", labels] == 1


@needs_root
def test_the_metrics_alone_on_standard_output(tmp_path: Path) -> None:
    make_transaction(tmp_path, value="7777")
    done = call(tmp_path, "verify", "--prometheus", "-")
    assert done.returncode == 1
    labels = (("kind", "live"), ("transaction", "0001"), ("tunable", "sysctl:vm.swappiness"))
    assert samples(done.stdout)["advisor_drift", labels] == 1


@needs_root
def test_a_failure_takes_the_success_of_last_time_away(tmp_path: Path) -> None:
    make_transaction(tmp_path)
    metrics = tmp_path / "advisor.prom"
    assert call(tmp_path, "verify", "--prometheus", str(metrics)).returncode == 0
    journal = tmp_path / "state/transactions/0001/journal"
    journal.write_bytes(b"damaged\n" + journal.read_bytes())
    done = call(tmp_path, "verify", "--prometheus", str(metrics))
    assert done.returncode == 2
    assert "damaged" in done.stderr
    found = written(metrics)
    assert found["advisor_verify_success", ()] == 0
    assert not [name for name, _ in found if "drift" in name or "in_force" in name]


@needs_root
def test_a_file_that_cannot_be_written_is_an_error_and_not_a_silence(tmp_path: Path) -> None:
    make_transaction(tmp_path)
    done = call(tmp_path, "verify", "--prometheus", "/dev/full")
    assert done.returncode == 2
    assert "no regular file" in done.stderr
    assert call(tmp_path, "verify", "--prometheus", str(tmp_path / "nowhere/x.prom")).returncode == 2


def test_two_documents_on_standard_output_are_refused(tmp_path: Path) -> None:
    done = call(tmp_path, "verify", "--prometheus", "-", "--json")
    assert done.returncode == 2
    assert done.stdout.startswith('{\n  "error"')
    asked = call(tmp_path, "verify", "--nagios", "--json")
    assert asked.returncode == 3
    assert asked.stdout.startswith("ADVISOR UNKNOWN - --nagios and --json")


@needs_root
def test_the_plugin_answers_with_its_own_exit_codes(tmp_path: Path) -> None:
    path = make_transaction(tmp_path)
    done = call(tmp_path, "verify", "--nagios")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "ADVISOR OK - 1 value and 1 file match | drift=0;;;0 unknown=0;;;0 waiting=0;;;0 transactions=1;;;0\n"
    )
    path.unlink()
    done = call(tmp_path, "verify", "--nagios")
    assert done.returncode == 1
    assert f"{path}: wanted its content, was removed (0001)" in done.stdout
    make_transaction(tmp_path, value="7777")
    done = call(tmp_path, "verify", "--nagios", "--prometheus", str(tmp_path / "x.prom"))
    assert done.returncode == 2
    assert done.stdout.startswith("ADVISOR CRITICAL - 1 value drifted (sysctl:vm.swappiness)")
    assert written(tmp_path / "x.prom")["advisor_drift_items", (("kind", "live"),)] == 1


def test_the_plugin_says_unknown_where_only_root_may_look(open_path: Path, as_nobody: tuple[str, ...]) -> None:
    make_transaction(open_path)
    done = call(open_path, "verify", "--nagios", before=as_nobody)
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stdout.startswith("ADVISOR UNKNOWN - ")
    assert "root" in done.stdout
    assert "drift=U;;;0" in done.stdout


@needs_root
def test_a_damaged_journal_is_unknown(tmp_path: Path) -> None:
    make_transaction(tmp_path)
    (tmp_path / "state/transactions/0001/journal").write_bytes(b"0\n1\n")
    done = call(tmp_path, "verify", "--nagios")
    assert done.returncode == 3
    assert "damaged" in done.stdout.split("\n")[0]


# -- the examples --------------------------------------------------------------------------------------------------


def setting(unit: Path, name: str) -> list[str]:
    return re.findall(rf"^{name}=(.*)$", unit.read_text(), re.MULTILINE)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_units_are_units(tmp_path: Path) -> None:
    for unit in (SERVICE, EXAMPLES / "advisor-verify.timer"):
        text = unit.read_text().replace("/usr/bin/advisor", str(ADVISOR))
        (tmp_path / unit.name).write_text(text)
    for name in ("advisor-verify.service", "advisor-verify.timer"):
        command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@needs_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_the_service_runs_with_the_capability_that_it_keeps(tmp_path: Path) -> None:
    """Without systemd: its command, its capabilities, and a system on which nothing but the metrics can be written."""
    make_transaction(tmp_path)
    (tmp_path / "metrics").mkdir()
    command = setting(SERVICE, "ExecStart")[0].replace("/usr/bin/advisor ", "")
    assert setting(SERVICE, "ReadWritePaths")[0] in command
    words = shlex.split(command.replace(setting(SERVICE, "ReadWritePaths")[0], str(tmp_path / "metrics")))
    capability = setting(SERVICE, "CapabilityBoundingSet")[0].lower().removeprefix("cap_")
    metrics = shlex.quote(str(tmp_path / "metrics"))
    system = f"mount --rbind / / && mount -o remount,ro,bind / && mount --bind {metrics} {metrics} && "
    keep = ("--no-new-privs", "--bounding-set", f"-all,+{capability}", "--inh-caps", "-all")
    script = f'{system} mount -o remount,rw,bind {metrics} && exec setpriv {" ".join(keep)} "$@"'
    done = call(tmp_path, *words, before=("unshare", "--mount", "sh", "-c", script, "sh"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert written(tmp_path / "metrics/advisor.prom")["advisor_verify_success", ()] == 1


def test_the_service_takes_drift_for_an_answer_and_the_timer_starts_it() -> None:
    assert setting(SERVICE, "SuccessExitStatus") == ["1"]
    assert setting(EXAMPLES / "advisor-verify.timer", "WantedBy") == ["timers.target"]


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((EXAMPLES / "advisor.rules.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_each_alert_asks_for_metrics_and_labels_that_there_are() -> None:
    text = metrics_text({None: state(LIVE, FILE, UNREAD)})
    names = {name for name, _ in samples(text)}
    labels = {key for _, pairs in samples(text) for key, _ in pairs} | {"instance"}
    for rule in rules():
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert set(re.findall(r"advisor_\w+", rule["expr"])) <= names
        used = re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values()))
        assert set(used) <= labels


# What each alert's expression comes to, without Prometheus: the one comparison that it makes.
COMPARISON = re.compile(r"(?:(time\(\)) - )?(advisor_\w+) (>|==) ([0-9]+)")


def fires(rule: dict[str, Any], found: dict[Sample, float], now: float) -> bool:
    match = COMPARISON.fullmatch(rule["expr"])
    assert match, rule["expr"]
    values = [now - value if match[1] else value for (name, _), value in found.items() if name == match[2]]
    assert values or found["advisor_verify_success", ()] == 0
    return any(value > int(match[4]) if match[3] == ">" else value == int(match[4]) for value in values)


@pytest.mark.parametrize(
    ("one", "age", "expected"),
    [
        (state(), 300, set()),
        (state(LIVE), 300, {"AdvisorDrift"}),
        (state(FILE), 300, {"AdvisorDrift"}),
        (state(UNREAD), 300, {"AdvisorUnknown"}),
        (state(state="applying"), 300, {"AdvisorInterrupted"}),
        (failed(), 300, {"AdvisorVerifyFails"}),
        (state(), 3600, {"AdvisorVerifyStale"}),
    ],
)
def test_each_alert_fires_for_its_own_reason(one: VerifyState, age: int, expected: set[str]) -> None:
    found = samples(metrics_text({None: one}))
    assert {rule["alert"] for rule in rules() if fires(rule, found, one.time + age)} == expected


@needs_root
def test_the_plugin_calls_of_the_examples_are_one_and_run(tmp_path: Path) -> None:
    make_transaction(tmp_path)
    nrpe = re.search(r"command\[check_advisor\]=(.*)", (EXAMPLES / "advisor-nagios.cfg").read_text())
    icinga = re.search(r"command = \[(.*)\]", (EXAMPLES / "advisor-icinga2.conf").read_text())
    sudoers = re.search(r"NOPASSWD: (.*)", (EXAMPLES / "advisor.sudoers").read_text())
    assert nrpe
    assert icinga
    assert sudoers
    words = shlex.split(nrpe[1])
    assert [word.strip(' "') for word in icinga[1].split(",")] == words
    assert ["/usr/bin/sudo", "-n", *shlex.split(sudoers[1])] == words
    assert call(tmp_path, *words[3:]).stdout.startswith("ADVISOR OK - ")


@pytest.mark.skipif(shutil.which("visudo") is None, reason="visudo is not installed")
def test_the_sudoers_file_is_one() -> None:
    assert subprocess.run(["visudo", "-cf", str(EXAMPLES / "advisor.sudoers")], check=False).returncode == 0
