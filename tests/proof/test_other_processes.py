"""Who uses CPUs and storage while the advisor measures: real processes of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from advisor.host import live_host, tree_host
from advisor.proof.covariates import ProcessSample, name_cpu_users, name_storage_users, read_gate, sample_processes
from tests.cases import read_cases
from tests.running import run_text
from tests.waiting import until

from .fakes import CALM, calm_tree

DATA = read_cases(__file__)

# Of one name together, so that on a busy machine, too, few others use more.
BURN = "import os\nfor _ in range(2): os.fork()\nwhile True: pass"
WRITE = DATA["WRITE"]


@contextmanager
def stranger(directory: Path, name: str, code: str, *words: Path) -> Iterator[int]:
    """Processes of that name that are no children of this one, in a group of their own."""
    program = directory / name
    program.symlink_to(os.path.realpath(sys.executable))
    start = 'exe=$1; shift; setsid "$exe" -IS "$@" >/dev/null 2>&1 & echo $!'
    made = run_text(["sh", "-c", start, "sh", program, "-c", code, *words], check=True)
    pid = int(made.stdout)
    try:
        yield pid
    finally:
        os.killpg(pid, signal.SIGKILL)


@pytest.mark.alone
def test_processes_that_compute_or_write_are_named(tmp_path: Path, disk: Path) -> None:
    """Those that began between the samples count from 0."""
    before = sample_processes(live_host())
    with stranger(tmp_path, "cruncher", BURN), stranger(tmp_path, "scribbler", WRITE, disk / "file"):
        # On a busy machine it takes a while until both had a CPU.
        until(lambda: is_named(before, sample_processes(live_host())), "they are not named")
        # The start of a program reads it from the disk: only later samples tell who goes on.
        started = sample_processes(live_host())
        until(lambda: "scribbler" in name_storage_users(started, sample_processes(live_host())), "no writer is named")
        after = sample_processes(live_host())
    assert "cruncher" not in name_storage_users(started, after)


def is_named(before: ProcessSample, after: ProcessSample) -> bool:
    return "cruncher" in name_cpu_users(before, after) and "scribbler" in name_storage_users(before, after)


def test_the_advisor_and_its_children_are_no_others() -> None:
    with subprocess.Popen([sys.executable, "-IS", "-c", "while True: pass"]) as child:
        found = {pid for pid, _ in sample_processes(live_host()).processes}
        child.kill()
    assert os.getpid() not in found
    assert child.pid not in found
    assert os.getppid() in found


def test_a_captured_host_has_no_processes(tmp_path: Path) -> None:
    nobody = sample_processes(tree_host(str(tmp_path)))
    assert nobody.processes == {}
    assert name_cpu_users(nobody, nobody) == name_storage_users(nobody, nobody) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a mount namespace: needs root")
@pytest.mark.alone
def test_a_host_under_pressure_is_refused_with_the_names_of_those_that_press(tmp_path: Path) -> None:
    calm_tree(tmp_path)
    (tmp_path / "proc/pressure/cpu").write_text(CALM.replace("avg10=0.00", "avg10=31.00", 1))
    code = (
        "from advisor.host import live_host; from advisor.proof.covariates import read_gate; "
        "print(read_gate(live_host()))"
    )
    mount = 'mount --bind "$1/proc/pressure" /proc/pressure && shift && exec "$@"'
    with stranger(tmp_path, "cruncher", BURN):
        done = run_text(
            ["unshare", "--mount", "sh", "-c", mount, "sh", tmp_path, sys.executable, "-c", code], check=True
        )
    assert "cpu pressure: 31 % of the last 10 s (some), limit 20 % (" in done.stdout
    assert "cruncher" in done.stdout
    assert read_gate(tree_host(str(tmp_path))).busy == ("cpu pressure: 31 % of the last 10 s (some), limit 20 %",)
