"""A benchmark of the user's own: which figure counts, and what becomes of a run that fails, hangs or floods."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
import threading
import time
from pathlib import Path

import pytest

from advisor.errors import AdvisorError, RefusedError, UsageError
from advisor.operations.prove import choose_command, choose_live
from advisor.proof.command_runner import CommandProcess, RunFailedError
from advisor.proof.own_command import CommandMetric, CommandOutput, MetricError, parse_metrics, parse_path, read_figure
from advisor.proof.process import Stop, StoppedError
from tests.known import known
from tests.trees import make_command

pytestmark = pytest.mark.usefixtures("state")

# -- what the user writes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("regex:tps = ([0-9.]+)", CommandMetric("tps", "regex", "tps = ([0-9.]+)")),
        ("regex:tps = ([0-9.]+):higher:tps", CommandMetric("tps", "regex", "tps = ([0-9.]+)", "higher", "tps")),
        # the expression holds colons: the last two fields alone are taken from the right
        ("lat=regex:p99: ([0-9.]+):lower:ms", CommandMetric("lat", "regex", "p99: ([0-9.]+)", "lower", "ms")),
        ("regex:a:b", CommandMetric("a", "regex", "a:b")),
        ("regex:x:lower:lower", CommandMetric("x", "regex", "x:lower", "lower")),
        ("json:.end.sum[0].bps", CommandMetric("end.sum[0].bps", "json", ".end.sum[0].bps")),
        ("time", CommandMetric("time", "time", "", "lower", "s")),
        ("time:higher", CommandMetric("time", "time", "", "higher", "s")),
        ("time:lower:seconds", CommandMetric("time", "time", "", "lower", "seconds")),
        ("command:cat /tmp/x", CommandMetric("metric-1", "command", "cat /tmp/x")),
    ],
)
def test_a_metric_as_it_is_written(text: str, expected: CommandMetric) -> None:
    assert parse_metrics([text]) == (expected,)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["tps"], "expected [NAME=]KIND:EXPRESSION"),
        (["1=time"], "expected [NAME=]KIND:EXPRESSION"),
        (["regex:"], "expected an expression after regex:"),
        (["regex::lower"], "expected an expression after regex:"),
        (["regex:("], "missing ), unterminated subpattern"),
        (["json:latency"], "expected a path such as .latency.p99"),
        (["json:.a[x]"], "found '[x]'"),
        (["time:5"], "time takes no expression"),
        (["command:'"], "No closing quotation"),
        (["time", "time"], "a metric is named time already"),
        (["time"] * 9, "expected at most 8, found 9"),
    ],
)
def test_a_metric_that_is_none_is_named(texts: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_metrics(texts)
    assert message in caught.value.message


def test_steps_of_a_path_and_last_lines_of_an_output() -> None:
    assert parse_path('.a.b[0]["c d"]."e f"[-1]') == ["a", "b", 0, "c d", "e f", -1]
    text = "".join(f"line {number}\n" for number in range(9)) + "\x1b[31mred\n"
    assert printed(text).last_lines == "line 5 / line 6 / line 7 / line 8 / ?[31mred"


# -- what a run printed ------------------------------------------------------------------------------------------------


def printed(stdout: str, stderr: str = "") -> CommandOutput:
    return CommandOutput(stdout, stderr, 1.5, 0)


@pytest.mark.parametrize(
    ("spec", "output", "expected"),
    [
        ("regex:tps = ([0-9.]+)", printed("tps = 1\ntps = 812.5 (with)\n"), 812.5),
        ("regex:^[0-9]+$", printed("a\n17\nb\n"), 17),
        ("regex:([0-9.]+) MB/s", printed("", "1048576 bytes, 0.1 s, 93.5 MB/s"), 93.5),
        ("regex:v=(.*)", printed("v= 1.5e3 "), 1500),
        ("json:.latency.p99", printed('text\n{"latency": {"p99": 2.25}}\n'), 2.25),
        ("json:.runs[-1].mean", printed('{"runs": [{"mean": 1}, {"mean": "3.5"}]}'), 3.5),
        ("json:[1]", printed("[4, 5]"), 5),
        ("time", printed(""), 1.5),
    ],
)
def test_the_figure_of_a_run(spec: str, output: CommandOutput, expected: float) -> None:
    assert read_figure(parse_metrics([spec])[0], output) == expected


@pytest.mark.parametrize(
    ("spec", "output", "message"),
    [
        (
            "tps=regex:tps = ([0-9.]+)",
            printed("one\n\ntwo\n"),
            "metric tps (regex:tps = ([0-9.]+)): no match; the last",
        ),
        ("regex:tps = (.*)", printed("tps = 1,234"), "'1,234' is no number"),
        ("regex:tps = (.*)", printed("tps = \N{ARABIC-INDIC DIGIT ONE}"), "is no number"),
        ("regex:tps = (.*)", printed("tps = -5"), "-5 is not above 0"),
        ("regex:tps = (.*)", printed("tps = 0.0"), "0 is not above 0"),
        ("regex:(a)|b", printed("b"), "the first group took no part"),
        ("json:.a", printed("no"), "the output holds no JSON"),
        ("json:.a", printed("{"), "the JSON cannot be read"),
        ("json:.a.x", printed('{"a": {"b": 1}}'), "nothing at 'x'; there are b"),
        ("json:.a[0]", printed('{"a": []}'), "nothing at 0"),
        ("json:.a", printed('{"a": true}'), "true is no number"),
        ("json:.a", printed('{"a": NaN}'), "NaN is no number"),
        ("json:.a", printed('{"a": 1e999}'), "inf cannot be judged: expected 1e-09 to 1e+18"),
        ("regex:tps = (.*)", printed("tps = 1e400"), "1e400 cannot be judged: expected"),
        ("regex:tps = (.*)", printed("tps = 1e308"), "1e308 cannot be judged: expected"),
        ("regex:tps = (.*)", printed("tps = 1e-10"), "1e-10 cannot be judged: expected"),
    ],
)
def test_a_figure_that_is_not_there_is_named_with_the_last_lines(
    spec: str, output: CommandOutput, message: str
) -> None:
    with pytest.raises(MetricError) as caught:
        read_figure(parse_metrics([spec])[0], output)
    assert message in caught.value.message


def test_an_expression_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advisor.proof.own_command.SEARCH_SECONDS", 0.05)
    with pytest.raises(MetricError, match="was still searching"):
        read_figure(parse_metrics(["regex:(a+)+$"])[0], printed("a" * 60 + "b"))


# -- a run -------------------------------------------------------------------------------------------------------------


def script(directory: Path, text: str) -> str:
    return make_command(directory, "own-benchmark", text)


def own(command: str, *metrics: str, directory: Path, **others: object) -> CommandProcess:
    found = known(choose_command(command, metrics or ("time",), directory=directory, **others))  # type: ignore[arg-type]
    return found


def test_a_run_with_its_figures_and_its_output(tmp_path: Path) -> None:
    path = script(tmp_path, 'echo "tps = $SPEED"; pwd >&2; sleep 0.2; echo "$LC_ALL"')
    runner = own(path, "regex:tps = (.*)", "time", "command:echo 7", directory=tmp_path, env=["SPEED=12.5"])
    figures, record = runner.run_command(Stop())
    assert figures.measures["tps"] == 12.5
    assert figures.measures["metric-3"] == 7
    assert 0.2 <= figures.measures["time"] < 30
    assert figures.measures["time"] == figures.runtime_seconds
    assert str(tmp_path) in record
    assert '"stdout": "tps = 12.5\\nC\\n"' in record


def test_words_are_no_shell_and_what_cannot_be_run_is_refused(tmp_path: Path) -> None:
    runner = own("echo '$HOME;' 5", "regex:; ([0-9])", directory=tmp_path)
    assert runner.run_command(Stop())[0].measures == {"metric-1": 5}
    shell = own("sh -c 'echo $((2 + 3))'", "regex:[0-9]", directory=tmp_path)
    assert shell.run_command(Stop())[0].measures == {"metric-1": 5}
    with pytest.raises(RefusedError, match="no-such-benchmark is not installed"):
        own("no-such-benchmark", directory=tmp_path).run_command(Stop())
    stop = Stop()
    stop.request(15)
    with pytest.raises(StoppedError):
        own("sleep 600", directory=tmp_path).run_command(stop)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("echo out; echo 'cannot connect' >&2; exit 3", "own-benchmark returned 3: cannot connect"),
        ("kill -9 $$", "own-benchmark was killed by signal 9"),
        ("echo done", "metric tps (regex:tps = (.*)): no match; the last lines: done"),
    ],
)
def test_a_run_that_fails_ends_with_its_output_in_a_file(text: str, message: str, tmp_path: Path, state: Path) -> None:
    runner = own(script(tmp_path, text), "regex:tps = (.*)", directory=tmp_path)
    with pytest.raises(AdvisorError) as caught:
        runner.run_command(Stop())
    assert message in caught.value.message
    kept = state / "proofs/failed-command.txt"
    assert caught.value.hint == f"its output is kept in {kept}"
    assert "--- standard error" in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def is_gone(pid: int) -> bool:
    """Whether a process has ended, or does soon: it was killed, and the kernel takes its time."""
    for _ in range(500):
        try:
            state = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state in "ZX":
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize(
    "text", ["sleep 600 & echo $! > pid; sleep 600", "trap '' TERM; sleep 600 & echo $! > pid; wait"]
)
def test_a_command_that_hangs_is_killed_with_all_that_it_started(text: str, tmp_path: Path) -> None:
    runner = own(script(tmp_path, text), directory=tmp_path, command_timeout=0.5)
    with pytest.raises(RunFailedError, match=r"did not end within 0\.5 s and was killed"):
        runner.run_command(Stop())
    assert is_gone(int((tmp_path / "pid").read_text()))


def test_what_a_run_leaves_behind_goes_with_it(tmp_path: Path) -> None:
    runner = own(script(tmp_path, "sleep 600 > /dev/null 2>&1 & echo $! > pid"), directory=tmp_path)
    runner.run_command(Stop())
    assert is_gone(int((tmp_path / "pid").read_text()))


AWAY = "setsid sh -c 'echo $$ > pid; exec sleep 600'"
"""A process of a session of its own: a signal to the group does not reach it."""


@pytest.mark.parametrize("output", ["> /dev/null 2>&1", ""])
def test_what_left_the_process_group_goes_too(output: str, tmp_path: Path) -> None:
    path = script(tmp_path, f"{AWAY} {output} &\nuntil test -s pid; do sleep 0.01; done; echo tps = 5")
    assert own(path, "regex:tps = (.*)", directory=tmp_path).run_command(Stop())[0].measures == {"tps": 5}
    pid = int((tmp_path / "pid").read_text())
    assert not (Path("/proc") / str(pid)).exists()
    # the output was read to its end: none holds it open
    assert "advisor-output" not in [thread.name for thread in threading.enumerate()]


def test_what_others_started_is_left_alone(tmp_path: Path) -> None:
    """Children of this process from before, and one that is started in its session while the command runs."""
    with (
        subprocess.Popen(["sleep", "600"], start_new_session=True) as before,
        subprocess.Popen(["sleep", "600"]) as mine,
    ):
        try:
            own(script(tmp_path, f"{AWAY} > /dev/null & sleep 0.1"), directory=tmp_path).run_command(Stop())
            assert (before.poll(), mine.poll()) == (None, None)
        finally:
            before.kill()
            mine.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs commands as others")
def test_root_runs_what_others_can_change_only_as_them(open_path: Path) -> None:
    path = script(open_path, "id -un > /dev/null; id -u; echo $HOME")
    os.chown(path, pwd.getpwnam("nobody").pw_uid, -1)
    with pytest.raises(RefusedError, match="others than root can change") as caught:
        own(path, directory=open_path).run_command(Stop())
    assert caught.value.hint == "--as-user USER runs it as a user who may"
    figures, _ = own(path, "regex:^[0-9]+", directory=open_path, as_user="nobody").run_command(Stop())
    assert figures.measures == {"metric-1": pwd.getpwnam("nobody").pw_uid}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs commands as others")
def test_a_directory_that_the_user_cannot_enter_is_refused_before_anything_runs(open_path: Path) -> None:
    closed = open_path / "closed"
    inner = closed / "inner"
    inner.mkdir(parents=True)
    message = f"--directory {inner}: user nobody cannot enter {closed}"
    closed.chmod(0o700)
    for call in (
        lambda: own("true", directory=inner, as_user="nobody"),
        lambda: choose_live(["host:disk-wait"], as_user="nobody", directory=inner),
    ):
        with pytest.raises(UsageError) as caught:
            call()
        assert caught.value.message == message
        assert caught.value.hint == "name one that the user can enter, such as --directory /"
    # who runs advisor may enter it, and so may they when it is opened
    own("true", directory=inner)
    own("true", directory=inner, as_user="root")
    closed.chmod(0o711)
    assert own("true", directory=inner, as_user="nobody").run_command(Stop())
    inner.chmod(0o700)
    with pytest.raises(UsageError, match=f"user nobody cannot enter {inner}$"):
        own("true", directory=inner, as_user="nobody")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"command": None, "metric": ["time"]}, "--metric belongs to --command"),
        ({"command": None, "as_user": "root"}, "--as-user belongs to --command"),
        ({"command": "true"}, "--command needs --metric"),
        ({"command": "'", "metric": ["time"]}, "No closing quotation"),
        ({"command": " ", "metric": ["time"]}, "expected a command, found nothing"),
        ({"command": "true", "metric": ["time"], "command_timeout": 0.0}, "above 0, up to a day"),
        ({"command": "true", "metric": ["time"], "command_timeout": float("nan")}, "above 0, up to a day"),
        ({"command": "true", "metric": ["time"], "as_user": "no-such-user"}, "there is no such user"),
        ({"command": "true", "metric": ["time"], "directory": Path("/no/such")}, "there is no such directory"),
        ({"command": "true", "metric": ["time"], "env": ["=1"]}, "expected NAME=VALUE or NAME"),
        ({"command": "true", "metric": ["time"], "env": ["NOT_SET"]}, "the variable is not set here"),
    ],
)
def test_what_cannot_be_is_told_before_anything_runs(words: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose_command(**words)  # type: ignore[arg-type]
    assert message in caught.value.message
