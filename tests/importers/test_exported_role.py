"""The exported role, run by ansible-playbook on files in the place of the kernel's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.exporters import Exported, export_form
from advisor.exporters.settings import ExportedSetting, write_bundle
from advisor.host import WriteFile
from advisor.host.probes import ReadFile
from advisor.planning.records import Plan
from advisor.tunables.edits import Persisted
from advisor.tunables.kind import Sense
from tests.cases import read_cases
from tests.running import run_text

BIN = Path(sys.executable).parent


def setting(path: Path, value: str, sense: Sense | tuple[Sense, ...] = "exactly") -> ExportedSetting:
    name, step = f"sysctl:test.{path.name}", WriteFile(str(path), value)
    return ExportedSetting(name, value, "W.", "", (), ReadFile(str(path), "words"), (step,), Persisted("/etc/x"), sense)


def role(place: Path, *settings: ExportedSetting) -> Path:
    """The exported files, in a new directory."""
    plan = Plan(("p",), None, (), (), (), (), ())
    write_bundle(export_form(Exported("p", plan, settings, (), (), "node1"), "ansible"), place / "out")
    return place / "out"


def play(out: Path, *words: str) -> tuple[str, dict[str, int]]:
    """What ansible-playbook prints, and its counts."""
    environment = {
        **{**os.environ, "HOME": str(out.parent), "ANSIBLE_NOCOLOR": "1", "ANSIBLE_PIPELINING": "1"},
        **{"ANSIBLE_PYTHON_INTERPRETER": sys.executable, "ANSIBLE_LOCAL_TEMP": str(out.parent / "tmp")},
    }
    done = run_text(
        [
            *(os.environ.get("ADVISOR_ANSIBLE_PLAYBOOK", str(BIN / "ansible-playbook")), "-i", "node1,", "-c", "local"),
            *("-e", "ansible_become=false", *words, "site.yml"),
        ],
        cwd=out,
        env=environment,
    )
    counts = {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", done.stdout.rpartition("RECAP")[2])}
    assert counts.get("ok"), done.stdout + done.stderr
    return done.stdout, counts


def test_check_mode_shows_the_live_values_and_changes_none(tmp_path: Path) -> None:
    place = tmp_path / "value"
    place.write_text("1500\n")
    out = role(tmp_path, setting(place, "9000"))
    reported, counts = play(out, "--check", "--diff")
    assert counts["changed"] == 1
    assert "1500" in reported
    assert "sysctl:test.value is wanted to be 9000" in reported
    assert place.read_text() == "1500\n"
    _, counts = play(out)
    assert (counts["changed"], place.read_text()) == (1, "9000\n")
    for words in ((), ("--check", "--diff")):
        reported, counts = play(out, *words)
        assert counts["changed"] == 0, reported


def settings_sh(out: Path, verb: str) -> subprocess.CompletedProcess[str]:
    return run_text(["sh", str(out / "roles/p/files/settings.sh"), verb])


TRIPLE: tuple[Sense, ...] = ("exactly", "at-least", "at-least")


DATA = read_cases(__file__)


@pytest.mark.parametrize(("live", "wanted", "sense", "after"), DATA["a_live_value_that_is_better_is_left"])
def test_a_live_value_that_is_better_is_left_alone(
    live: str, wanted: str, sense: Sense | tuple[Sense, ...], after: str | None, tmp_path: Path
) -> None:
    place = tmp_path / "value"
    place.write_text(f"{live}\n")
    out = role(tmp_path, setting(place, wanted, sense))
    assert bool(settings_sh(out, "differ").stdout) == (after is not None)
    done = settings_sh(out, "set")
    assert (done.returncode, done.stderr) == (0, "")
    assert place.read_text() == f"{after or live}\n"
    assert settings_sh(out, "differ").stdout == ""


def test_a_value_that_is_better_in_part_is_told_and_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "value"
    place.write_text("4096 16384 33554432\n")
    out = role(tmp_path, setting(place, "4096 131072 8388608", TRIPLE))
    done = settings_sh(out, "set")
    assert done.returncode == 1
    assert "export the profile on this host" in done.stderr
    assert place.read_text() == "4096 16384 33554432\n"
