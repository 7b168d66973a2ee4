"""Bad input at the command line: each its own message and exit code, one document under --json, never a traceback."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.cli.inside import call_inside

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


CASES = [
    (("scan", "--interval", "1", "--root", "/proc"), 2, "a capture has one reading"),
    (("scan", "--interval", "nan"), 2, "--interval: expected 0.1 to 3600, found nan"),
    (("plan", "jumbo"), 2, "there is no profile 'jumbo'"),
    (("plan", "jumbo"), 2, "did you mean jumbo-frames?"),
    (("scan", "--al"), 2, "No such option: --al. Did you mean --all?"),
    (("scan", "--frobnicate"), 2, "No such option: --frobnicate"),
    (("scann",), 2, "Did you mean 'scan'?"),
    (("profiles", "check"), 2, "export, import, list, show, lint"),
    (("apply", "jumbo", "--yes"), 2, "there is no profile 'jumbo'"),
    (("plan", "jumbo-frames", "--set", "mtu=70000"), 2, "1280..65535"),
    (("plan", "jumbo-frames", "--set", "mtu=1_500"), 2, "not a whole number"),
    (("plan", "jumbo-frames", "--set", "mtu"), 2, "NAME=VALUE"),
    (("plan", "jumbo-frames", "--set", "mtu=9000", "--set", "mtu=8000"), 2, "given twice"),
    (("plan", "jumbo-frames", "--set", "speed=1"), 2, "no such parameter"),
    (("plan", "jumbo-frames", "--set", "links=none9"), 2, "there is no link 'none9'"),
    (("plan", "jumbo-frames", "--set", "links=[a]\udcff"), 2, "not UTF-8"),
    (("scan", "--lang", "de"), 2, "--lang: was removed"),
    (("verify", "--junit", "x"), 2, "--junit: was removed"),
    (("scan", "--snapshot", "{tmp}/none.tar.gz"), 2, "no such file"),
    (("scan", "--snapshot", "{tmp}/text"), 2, "not a snapshot archive"),
    (("scan", "--snapshot", "{tmp}/text"), 2, "hint: --snapshot takes what advisor snapshot -o FILE wrote"),
    (("plan", "{tmp}/none.toml"), 2, "hint: advisor profiles list names those of the library"),
    (("scan", "--snapshot", "{tmp}/up.tar.gz"), 2, "must lie inside"),
    (("scan", "--snapshot", "{tmp}/absolute.tar.gz"), 2, "leads out of the archive"),
    (("scan", "--root", "{tmp}"), 2, "neither proc nor sys"),
    (("scan", "--fail-on", "loud"), 2, "info, advice, warning, critical"),
    (("scan", "--bogus"), 2, "--bogus"),
    (("scan", "--prometheus", ""), 2, "--prometheus: empty"),
    (("recommend", "--workload", "read=70%,write=70%"), 2, "read=70% and write=70%: only one of both is taken"),
    (("recommend", "--workload", "rtt=1ms", "--workload", "rtt=2ms"), 2, "rtt is given twice"),
    (("recommend", "--workload", "{tmp}/list.json"), 2, "the JSON is no object"),
    (("profiles", "lint", "{tmp}/broken.toml"), 2, "line 2"),
    (("profiles", "show", "nothing"), 2, "no profile"),
    (("explain", "nothing:here"), 2, "nothing:here"),
    (("snapshot", "-o", "{tmp}/no/such/file"), 2, "no such directory"),
    (("snapshot", "-o", "{tmp}/pipe"), 2, "no regular file"),
    (("rollback-script", "nothing"), 2, "no profile"),
    (("rollback",), 3, "no transaction"),
    (("prove", "numa-pinning", "--target", "/no/such", "--workload", "none"), 2, "none"),
]


@pytest.mark.parametrize(
    ("words", "code", "message"), CASES, ids=lambda value: "-".join(value) if isinstance(value, tuple) else ""
)
def test_a_message_a_code_and_nothing_changed(words: tuple[str, ...], code: int, message: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no archive")
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "broken.toml").write_text('name = "broken"\ntitle = \n')
    os.mkfifo(tmp_path / "pipe")
    archive(tmp_path / "up.tar.gz", "proc/../../etc/passwd")
    archive(tmp_path / "absolute.tar.gz", "proc", "/etc")
    filled = [word.format(tmp=tmp_path) for word in words]
    state = tmp_path / "state"
    done = call_inside(*filled, ADVISOR_STATE_DIR=state)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert message in done.stderr
    if words[0] not in ("snapshot", "rollback-script") and words[:2] != ("profiles", "lint"):
        document = json.loads(call_inside(*filled, "--json", ADVISOR_STATE_DIR=state).stdout)
        assert document["error"]["code"] == code
        assert message.removeprefix("hint: ") in document["error"]["message"] + str(document["error"]["hint"])
    assert not state.exists(), "a call that is refused makes nothing"


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
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m advisor profiles show numa-pinning | head -n 1"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
