"""``advisor profiles import``: what it takes, what it writes, what it refuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.cli.library import lint
from advisor.operations.imports import import_profile, save_profile
from advisor.operations.library import lint_file
from advisor.profiles.lint import lint_profile
from tests.cases import read_cases
from tests.running import run_text
from tests.trees import make_tree


def _profile(directory: Path, text: str) -> str:
    """A profile of TuneD in a directory of its own."""
    directory.mkdir()
    (directory / "tuned.conf").write_text(text)
    return str(directory)


def advisor(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_text(
        [sys.executable, "-m", "advisor", "profiles", "import", *arguments], cwd=cwd, env={**os.environ, **environment}
    )


def test_the_command_writes_a_profile_that_lints(tmp_path: Path) -> None:
    source = _profile(tmp_path / "fast", "[main]\nsummary=Fast\n[sysctl]\nnet.core.rmem_max=8388608\n")
    target = tmp_path / "fast-network.toml"
    done = advisor(source, "--mode", "faithful", "-o", str(target))
    assert done.returncode == 0, done.stderr
    assert "by hand" in done.stdout
    assert lint_profile(target).name == "fast-network"


def test_the_command_prints_one_document(tmp_path: Path) -> None:
    done = advisor(_profile(tmp_path / "fast", "[sysctl]\nvm.swappiness=1\n"), "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "advisor.import/1"
    assert document["mode"] == "intent"
    assert document["toml"].startswith("# Imported from tuned:fast")


def test_a_harmful_value_is_judged_as_in_a_scan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = _profile(tmp_path / "fast", "[sysctl]\nnet.ipv4.tcp_window_scaling=0\nvm.dirty_ratio=21\n")
    found = import_profile(source)
    judged = {one.key: [(said.id, said.severity) for said in one.judged] for one in found.settings}
    assert judged == {
        "net.ipv4.tcp_window_scaling": [("advice.tcp-window-scaling-off", "warning")],
        "vm.dirty_ratio": [],
    }
    _, target = save_profile(found, tmp_path / "fast.toml")
    assert [(word, said.id) for word, said in lint_file(target).judged] == [
        ("sysctl:net.ipv4.tcp_window_scaling=0", "advice.tcp-window-scaling-off")
    ]
    assert lint([target]) == 0
    assert "advice.tcp-window-scaling-off" in capsys.readouterr().out


def test_the_report_names_file_and_line_of_what_does_not_come_over(tmp_path: Path) -> None:
    directory = tmp_path / "sysctl.d"
    directory.mkdir()
    (directory / "10.conf").write_text("# why\nvm.swappiness=1\njunk\n")
    (directory / "20.conf").write_text("\nvm.overcommit_memory=7\n")
    (directory / "30.conf").mkdir()
    done = advisor(f"sysctl:{directory}", COLUMNS="80")
    assert done.returncode == 0, done.stderr
    report = " ".join(done.stderr.split())
    assert f"passes over it ({directory}/10.conf:3)" in report
    assert f"sysctl/vm.rst) ({directory}/20.conf:2)" in report
    assert f"refused vm.overcommit_memory ({directory}/20.conf:2)" in report
    assert "10.conf:2" not in report
    assert f"{directory}/30.conf not a regular file" in report
    assert max(map(len, done.stderr.splitlines())) <= max(80, 6 + len(f"({directory}/20.conf:2)"))
    source = _profile(tmp_path / "fast", "[sysctl]\nvm.swappiness=1\n[vm]\ntransparent_hugepagez=never\n")
    report = " ".join(advisor(source, COLUMNS="80").stderr.split())
    assert f"and goes on ({source}/tuned.conf:4)" in report


def test_the_command_reads_the_hosts_own_tuned(tmp_path: Path) -> None:
    root = make_tree(
        tmp_path, {"/proc/sys/vm/swappiness": "60\n", "/usr/lib/tuned/x/tuned.conf": "[sysctl]\nvm.swappiness=1\n"}
    )
    listed = advisor("--list", "--root", str(root))
    assert listed.stdout == "tuned:x  /usr/lib/tuned/x/tuned.conf\n"
    done = advisor("tuned:x", "--root", str(root))
    assert done.returncode == 0, done.stderr
    assert 'tunable = "sysctl:vm.swappiness"' in done.stdout
    assert "1 tunable" in done.stderr


DATA = read_cases(__file__)


@pytest.mark.parametrize("arguments", DATA["wrong_calls_are_told"])
def test_wrong_calls_are_told(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = advisor(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("advisor: ")
    assert "Traceback" not in done.stderr


def test_a_broken_file_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "tuned.conf").write_text("[sysctl]\nvm.swappiness=1\nwhat\n")
    done = advisor(str(tmp_path / "tuned.conf"))
    assert done.returncode == 2
    assert "tuned.conf: line 3: neither a section nor NAME=VALUE" in done.stderr


def test_a_wrong_name_of_the_output_writes_nothing(tmp_path: Path) -> None:
    source = _profile(tmp_path / "fast", "[sysctl]\nvm.swappiness=1\n")
    for name in ("Fast.toml", "fast.conf"):
        assert advisor(source, "-o", str(tmp_path / name)).returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["fast"]


def test_a_host_like_another(tmp_path: Path) -> None:
    """A snapshot of one tree, brought to another."""
    trees = {
        name: make_tree(
            tmp_path / name,
            {
                "/proc/sys/kernel/hostname": f"{name}\n",
                "/proc/sys/vm/swappiness": f"{swappiness}\n",
                "/proc/sys/net/core/somaxconn": "4096\n",
                "/proc/meminfo": "MemTotal: 1000 kB\n",
            },
        )
        for name, swappiness in (("here", 60), ("there", 10))
    }
    archive = tmp_path / "there.tar.gz"
    taken = subprocess.run(
        [sys.executable, "-m", "advisor", "snapshot", "-o", str(archive), "--root", str(trees["there"])],
        capture_output=True,
        check=False,
    )
    assert taken.returncode == 0, taken.stderr
    done = advisor("--from-host", str(archive), "--root", str(trees["here"]), "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["name"] == "like-there"
    assert {one["tunable"]: one["value"] for one in document["settings"] if one["outcome"] == "tunable"} == {
        "sysctl:vm.swappiness": "10"
    }


def test_kinds_of_files_are_told_apart(tmp_path: Path) -> None:
    texts = DATA["kinds_of_files_are_told_apart"]
    for name, (text, origin) in texts.items():
        (tmp_path / name).write_text(text)
        document = json.loads(advisor(str(tmp_path / name), "--json").stdout)
        assert document["origin"].startswith(origin)
        assert document["counts"] == {"ignored": 0, "manual": 0, "tunable": 1}


def test_a_path_behind_the_kind(tmp_path: Path) -> None:
    """As ``sysctl:PATH``, also below --root."""
    note = '[version]\n# X-NOTE=1 CATEGORY=x VERSION=2 DATE=1.1.2026 NAME="n"\n[sysctl]\nvm.swappiness=5\n'
    root = make_tree(
        tmp_path / "root",
        {"/proc/sys/vm/swappiness": "60\n", "/srv/note": note, "/srv/fast/tuned.conf": "[sysctl]\nvm.swappiness=5\n"},
    )
    _profile(tmp_path / "slow", "[sysctl]\nvm.swappiness=9\n")
    wanted = {"saptune:/srv/note": "5", "tuned:/srv/fast": "5", "tuned:/srv/fast/tuned.conf": "5"}
    for source, value in wanted.items():
        done = advisor(source, "--root", str(root), "--json")
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        assert [one["value"] for one in document["settings"]] == [value]
        assert document["name"] in ("saptune-note", "tuned-fast")
    assert 'value = "9"' in advisor(f"tuned:{tmp_path}/slow").stdout


def test_a_large_file_is_told_as_what_it_is(tmp_path: Path) -> None:
    large = tmp_path / "large.conf"
    large.write_text("vm.swappiness=1\n" * 20_000)
    for source, what in ((f"sysctl:{large}", "file of sysctl(8)"), (f"saptune:{large}", "note of saptune")):
        done = advisor(source)
        assert done.returncode == 2
        assert f"larger than 256 KiB: no {what} is" in done.stderr
        assert "TuneD" not in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a process an /etc of its own")
def test_what_is_said_of_a_written_file_is_true(tmp_path: Path) -> None:
    """The command that it names brings the profile where plan finds it; run with an /etc of its own."""
    source = _profile(tmp_path / "fast", "[sysctl]\nvm.swappiness=1\n")
    place = tmp_path / "a place"
    place.mkdir()
    done = advisor(source, "-o", str(place / "fast.toml"))
    assert done.returncode == 0, done.stderr
    said = re.search(r"`(install [^`]*)`; then advisor plan fast", done.stderr)
    assert said is not None, done.stderr
    plan = f"{sys.executable} -m advisor plan fast --root /"
    script = f"mount -t tmpfs tmpfs /etc || exit 99; {plan} && exit 3; {said[1]} || exit 4; {plan}"
    planned = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    if planned.returncode == 99 or "unshare:" in planned.stderr:
        pytest.skip(f"no mount namespace here: {planned.stderr.strip()[-120:]}")
    assert planned.returncode == 0, planned.stderr
    assert "vm.swappiness" in planned.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a process an /etc of its own")
def test_installing_it_and_what_is_in_the_way(tmp_path: Path) -> None:
    """In a mount namespace whose /etc is empty: this machine's own is not touched."""
    source = _profile(tmp_path / "fast", "[sysctl]\nvm.swappiness=1\n")
    command = f"{sys.executable} -m advisor profiles import {source} --install"
    place = "/etc/advisor/profiles/tuned-fast.toml"
    script = f"""
        mount -t tmpfs tmpfs /etc || exit 99
        {command} >/dev/null || exit 1
        {command} >/dev/null || exit 2
        head -n 1 {place}
        echo 'name = "tuned-fast"' > {place}
        {command} && exit 3
        cat {place}
        """
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    if done.returncode == 99 or "unshare:" in done.stderr:
        pytest.skip(f"no mount namespace here: {done.stderr.strip()[-120:]}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# Imported from tuned:fast")
    assert done.stdout.endswith('name = "tuned-fast"\n')
    assert "is there, and was not imported" in done.stderr
