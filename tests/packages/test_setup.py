"""setup.sh checks every requirement before it installs or makes anything; package managers are programs on PATH."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.running import run_text

from .conftest import ROOT, find_python

PLAIN = ("dirname", "sed", "tail", "cat", "cksum", "mktemp", "rm")
TOOLS = ("fio", "ip", "ethtool", "dash", "busybox", "setpriv", "ssh", "ping", "sysctl", "sshd")
JUDGES = ("lintian", "rpmbuild", "rpmlint", "dpkg-source")
OLD = "exit 1"
NEW = '[ "$1" != -m ] || { echo "made $3" >> "$LOG"; exit 9; }'


class Machine:
    """A checkout of setup.sh alone, and a PATH with only the programs that a test puts there."""

    def __init__(self, home: Path, uid: int, **programs: str) -> None:
        self.home, self.bin, self.log = home / "checkout", home / "bin", home / "log"
        self.home.mkdir()
        self.bin.mkdir()
        shutil.copy(ROOT / "setup.sh", self.home)
        shutil.copy(ROOT / "pyproject.toml", self.home)
        for name in PLAIN:
            (self.bin / name).symlink_to(str(shutil.which(name)))
        for name, text in {"id": f"echo {uid}", **programs}.items():
            (self.bin / name).write_text(f"#!/bin/sh\n{text}\n")
            (self.bin / name).chmod(0o755)

    def run(self, word: str) -> tuple[int, str]:
        done = run_text(["/bin/sh", "setup.sh", word], cwd=self.home, env={"PATH": str(self.bin), "LOG": str(self.log)})
        return done.returncode, done.stderr

    def called(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def is_untouched(self) -> bool:
        return not self.called() and sorted(os.listdir(self.home)) == ["pyproject.toml", "setup.sh"]


def apt(candidate: str) -> dict[str, str]:
    policy = f'[ "$2" = python3 ] && echo "  Candidate: {candidate}" || echo "  Candidate: (none)"'
    return {"apt-get": 'echo "apt-get $*" >> "$LOG"', "apt-cache": policy}


def zypper(offered: str) -> dict[str, str]:
    return {"zypper": f'case "$*" in *search*) [ "$5" = {offered} ]; exit ;; esac; echo "zypper $*" >> "$LOG"'}


def apk(offered: str) -> dict[str, str]:
    return {"apk": f'case "$*" in *search*) echo python3-{offered}; exit ;; esac; echo "apk $*" >> "$LOG"'}


def pacman(offered: str) -> dict[str, str]:
    return {"pacman": f'[ "$1" = -Si ] && {{ echo "Version         : {offered}"; exit; }}; echo "pacman $*" >> "$LOG"'}


def dnf(offered: str) -> dict[str, str]:
    return {"dnf": f'[ "$1" = -q ] && {{ [ "$3" = {offered} ]; exit; }}; echo "dnf $*" >> "$LOG"'}


@pytest.mark.parametrize(
    ("programs", "command"),
    [
        (apt("3.11.2-1"), "apt-get install -y python3 python3-venv"),
        (dnf("python3.12"), "dnf install -y python3.12"),
        (zypper("python312"), "zypper install -y python312"),
        (apk("3.12.3-r1"), "apk add python3"),
        (pacman("3.13.1-1"), "pacman -S --needed python"),
    ],
    ids=["apt", "dnf", "zypper", "apk", "pacman"],
)
def test_without_root_one_line_names_packages_and_command(
    tmp_path: Path, programs: dict[str, str], command: str
) -> None:
    machine = Machine(tmp_path, 1000, python3=OLD, **programs)
    code, said = machine.run("scan")
    names = re.sub(r"^(\S+ (?:install -y|add|-S --needed)) ", "", command)
    assert (code, said) == (1, f"setup: missing: {names}; install with: sudo {command}\n")
    assert machine.is_untouched()


def test_the_tools_of_the_tests_are_in_the_same_line(tmp_path: Path) -> None:
    present = dict.fromkeys((one for one in (*TOOLS, *JUDGES) if one not in ("fio", "ping", "sysctl", "rpmbuild")), ":")
    machine = Machine(tmp_path, 1000, python3=OLD, **present, **apt("3.13.5-1"))
    code, said = machine.run("test")
    names = "python3 python3-venv fio iputils-ping procps rpm"
    assert (code, said) == (1, f"setup: missing: {names}; install with: sudo apt-get install -y {names}\n")
    assert machine.is_untouched()


@pytest.mark.parametrize("word", ["scan", "test"])
@pytest.mark.parametrize(
    "programs", [{}, dnf("python3.9"), apt("3.9.2-3"), zypper("python39"), apk("3.9.1-r0"), pacman("3.10.1-1")]
)
def test_a_machine_that_is_too_old_is_refused(tmp_path: Path, programs: dict[str, str], word: str) -> None:
    machine = Machine(tmp_path, 0, python3=OLD, **programs)
    code, said = machine.run(word)
    assert code == 1
    assert "needs Python 3.11 or newer" in said
    # Lists of packages are read into a place that is removed again.
    assert re.fullmatch(r"(apt-get -o Dir::State::Lists=(\S+) -o Dir::Cache=\2 update -qq\n)?", machine.called())
    assert sorted(os.listdir(machine.home)) == ["pyproject.toml", "setup.sh"]


def test_root_installs_what_is_missing_at_once(tmp_path: Path) -> None:
    present = dict.fromkeys((one for one in TOOLS if one not in ("fio", "ip", "sysctl")), ":")
    machine = Machine(tmp_path, 0, python3=NEW, **present, **dnf("python3.12"))
    machine.run("test")
    assert machine.called() == "dnf install -y -q fio iproute procps-ng\nmade .venv\n"


@pytest.mark.parametrize(
    ("programs", "called"),
    [
        (zypper("python312"), "zypper --quiet --non-interactive install --no-recommends fio"),
        (apk("3.12.3-r1"), "apk add -q --no-cache fio"),
        (pacman("3.13.1-1"), "pacman -S --needed --noconfirm --quiet fio"),
    ],
    ids=["zypper", "apk", "pacman"],
)
def test_each_manager_installs_in_its_words(tmp_path: Path, programs: dict[str, str], called: str) -> None:
    machine = Machine(
        tmp_path, 0, python3=NEW, **dict.fromkeys((one for one in TOOLS if one != "fio"), ":"), **programs
    )
    machine.run("test")
    assert machine.called() == f"{called}\nmade .venv\n"


def test_apt_that_knows_too_old_a_python_leaves_its_lists_alone(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 0, python3=OLD, **apt("3.9.2-3"))
    machine.run("scan")
    place = re.search(r"Lists=(\S+)", machine.called())
    assert place
    assert not Path(place[1]).exists()


@pytest.mark.parametrize("name", ["__init__.py", "__main__.py"])
def test_an_old_python_reads_the_module_that_refuses_it(name: str) -> None:
    """Python 3.6 is that of EL 8 and Leap 15: it has no future of annotations. `python` is 2.7 on older hosts: it has
    no annotations and no formatted strings, and takes ASCII alone."""
    text = (ROOT / "advisor" / name).read_text(encoding="ascii")
    tree = ast.parse(text, feature_version=(3, 7))
    assert "from __future__" not in text
    later = (ast.JoinedStr, ast.AnnAssign, ast.AsyncFunctionDef, ast.Nonlocal, ast.NamedExpr, ast.Starred)
    for node in ast.walk(tree):
        assert not isinstance(node, later)
        assert not isinstance(node, ast.arg) or node.annotation is None
        assert not isinstance(node, ast.FunctionDef) or (node.returns is None and not node.args.kwonlyargs)
        assert not isinstance(node, ast.Raise) or node.cause is None


@pytest.mark.parametrize("version", ["2.7", "3.5", "3.6", "3.9", "3.10"])
def test_an_old_python_is_refused_in_one_line(version: str) -> None:
    found = find_python(version)
    done = subprocess.run([str(found), "-m", "advisor", "scan"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"advisor: needs Python 3.11 or newer, this is {version}\n"


@pytest.mark.parametrize("version", ["2.7", "3.5", "3.6", "3.9", "3.10"])
def test_a_bundle_refuses_an_old_python_in_one_line(version: str, tmp_path: Path) -> None:
    """pex would print a page about each interpreter that it found."""
    file, empty = tmp_path / "advisor.pyz", tmp_path / "bin"
    empty.mkdir()
    with file.open("wb") as stream:
        stream.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("__main__.py", "import word\nprint(word.WORD)\n")
            archive.writestr("word.py", "WORD = 'started'\n")
    file.chmod(0o755)
    subprocess.run([sys.executable, ROOT / "packaging/refuse_old.py", file], check=True)
    assert file.stat().st_mode & 0o777 == 0o755
    assert file.read_bytes().startswith(b"#!/usr/bin/env python3\nPK")
    assert subprocess.run([sys.executable, file], capture_output=True, text=True, check=True).stdout == "started\n"
    old = find_python(version)
    (empty / "python3").symlink_to(old)
    done = subprocess.run([str(old), str(file)], env={"PATH": str(empty)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"advisor: needs Python 3.11 or newer, this is {version}\n"
    # Where a newer one is there, pex finds it.
    (empty / "python3.11").symlink_to(sys.executable)
    done = subprocess.run([str(old), str(file)], env={"PATH": str(empty)}, capture_output=True, text=True, check=True)
    assert done.stdout == "started\n"
