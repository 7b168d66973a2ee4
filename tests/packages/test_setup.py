"""setup.sh checks every requirement before it installs or makes anything; package managers are programs on PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import ROOT

PLAIN = ("dirname", "sed", "tail", "cat", "cksum")
TOOLS = ("fio", "ip", "ethtool", "dash", "busybox", "setpriv", "ssh", "ping", "sshd")
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
        done = subprocess.run(
            ["/bin/sh", "setup.sh", word],
            cwd=self.home,
            env={"PATH": str(self.bin), "LOG": str(self.log)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    def called(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def is_untouched(self) -> bool:
        return not self.called() and sorted(os.listdir(self.home)) == ["pyproject.toml", "setup.sh"]


def apt(candidate: str) -> dict[str, str]:
    policy = f'[ "$2" = python3 ] && echo "  Candidate: {candidate}" || echo "  Candidate: (none)"'
    return {"apt-get": 'echo "apt-get $*" >> "$LOG"', "apt-cache": policy}


def dnf(offered: str) -> dict[str, str]:
    return {"dnf": f'[ "$1" = -q ] && {{ [ "$3" = {offered} ]; exit; }}; echo "dnf $*" >> "$LOG"'}


@pytest.mark.parametrize(
    ("programs", "command"),
    [
        (apt("3.11.2-1"), "apt-get install -y python3 python3-venv"),
        (dnf("python3.12"), "dnf install -y python3.12"),
    ],
    ids=["apt", "dnf"],
)
def test_without_root_one_line_names_packages_and_command(
    tmp_path: Path, programs: dict[str, str], command: str
) -> None:
    machine = Machine(tmp_path, 1000, python3=OLD, **programs)
    code, said = machine.run("scan")
    names = command.partition("-y ")[2]
    assert (code, said) == (1, f"setup: missing: {names}; install with: sudo {command}\n")
    assert machine.is_untouched()


def test_the_tools_of_the_tests_are_in_the_same_line(tmp_path: Path) -> None:
    present = dict.fromkeys((one for one in TOOLS if one not in ("fio", "ping")), ":")
    machine = Machine(tmp_path, 1000, python3=OLD, **present, **apt("3.13.5-1"))
    code, said = machine.run("test")
    names = "python3 python3-venv fio iputils-ping"
    assert (code, said) == (1, f"setup: missing: {names}; install with: sudo apt-get install -y {names}\n")
    assert machine.is_untouched()


@pytest.mark.parametrize("word", ["scan", "test"])
@pytest.mark.parametrize("programs", [{}, dnf("python3.9"), apt("3.9.2-3")], ids=["none", "dnf", "apt"])
def test_a_machine_that_is_too_old_is_refused(tmp_path: Path, programs: dict[str, str], word: str) -> None:
    machine = Machine(tmp_path, 0, python3=OLD, **programs)
    code, said = machine.run(word)
    assert code == 1
    assert "needs Python 3.11 or newer" in said
    assert "install" not in machine.called()
    assert sorted(os.listdir(machine.home)) == ["pyproject.toml", "setup.sh"]


def test_root_installs_what_is_missing_at_once(tmp_path: Path) -> None:
    present = dict.fromkeys((one for one in TOOLS if one not in ("fio", "ip")), ":")
    machine = Machine(tmp_path, 0, python3=NEW, **present, **dnf("python3.12"))
    machine.run("test")
    assert machine.called() == "dnf install -y -q fio iproute\nmade .venv\n"
