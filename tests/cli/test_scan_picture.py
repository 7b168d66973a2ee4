"""``advisor scan --svg``, ``--html`` and ``--picture`` as a command: files, standard output, bad places."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from advisor.cli.pages import check_files
from advisor.errors import UsageError
from advisor.facts.system.services import LIST_RUNNING, parse_running, read_storage_services, show_command
from advisor.facts.unknown import Unknowns
from advisor.host import Completed, Host, MemoryFiles, RecordedCommands
from advisor.planner import read_for_scan_and_plans
from advisor.snapshot.archive import capture_host, save_snapshot
from tests import beegfs_server
from tests.test_imports import HEAVY, loaded_by

ROOT = Path(__file__).parents[2]
SNAPSHOT = ROOT / "tests/fixtures/storage-host-root.tar.gz"


def advisor(*words: str | Path, where: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "advisor", "scan", "--snapshot", str(SNAPSHOT), *map(str, words)]
    whole = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=whole, cwd=where, timeout=60, check=False)
    assert "Traceback" not in done.stderr
    return done


def test_both_files_beside_the_page_of_the_scan(tmp_path: Path) -> None:
    done = advisor("--svg", "host.svg", "--html", "host.html", where=tmp_path)
    assert done.returncode == 0
    assert "Details: advisor scan --all" in done.stdout
    assert "host.svg: the host as a picture" in done.stderr
    assert ElementTree.fromstring((tmp_path / "host.svg").read_text()).tag.endswith("svg")
    assert (tmp_path / "host.html").read_text().startswith("<!DOCTYPE html>")
    assert sorted(os.listdir(tmp_path)) == ["host.html", "host.svg"]


def test_with_json_the_document_stands_alone_on_standard_output(tmp_path: Path) -> None:
    done = advisor("--svg", tmp_path / "a.svg", "--json", "--fail-on", "info")
    assert json.loads(done.stdout)["schema"] == "advisor.scan/1"
    assert (tmp_path / "a.svg").stat().st_size > 1000
    assert done.returncode == 1, "a severity decides as ever"


def test_standard_output_in_place_of_the_page() -> None:
    done = advisor("--svg", "-")
    assert ElementTree.fromstring(done.stdout).tag.endswith("svg")


@pytest.mark.parametrize(
    ("files", "printing", "message"),
    [
        ({"--svg": "none/a.svg"}, None, "--svg none/a.svg: there is no such directory"),
        ({"--html": "."}, None, "--html .: is there and is no regular file"),
        ({"--svg": "-"}, "--json", "--svg -: --json prints there"),
        ({"--html": "-"}, "--picture", "--html -: --picture prints there"),
        ({"--svg": "a", "--html": "./a"}, None, "--svg and --html name the same file"),
        ({"--svg": "-", "--html": "-"}, None, "--svg and --html name the same file"),
    ],
)
def test_what_cannot_be_is_refused_before_the_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], printing: str | None, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=re.escape(message)):
        check_files({option: Path(name) for option, name in files.items()}, printing=printing)
    assert os.listdir(tmp_path) == []


def test_a_refusal_is_exit_code_2_and_a_document_under_json(tmp_path: Path) -> None:
    done = advisor("--svg", "none/a.svg", "--json", where=tmp_path)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["kind"] == "usage"
    assert os.listdir(tmp_path) == []


def test_a_place_that_turns_out_to_be_read_only_is_an_error_of_its_own() -> None:
    done = advisor("--svg", "/proc/self/a.svg")
    assert done.returncode == 2
    assert "/proc/self/a.svg" in done.stderr
    assert done.stdout == ""


def test_the_terminal_gets_boxes_and_one_without_utf_8_gets_ascii() -> None:
    assert "┌─ Node 0 ─" in advisor("--picture", PYTHONIOENCODING="utf-8").stdout
    plain = advisor("--picture", PYTHONIOENCODING="ascii").stdout
    assert "+- Node 0 -" in plain
    assert plain.isascii()


def test_templates_are_loaded_only_where_they_are_needed(tmp_path: Path) -> None:
    assert not {name.partition(".")[0] for name in loaded_by("scan", "--json")} & HEAVY
    loaded = {name.partition(".")[0] for name in loaded_by("scan", "--json", "--svg", str(tmp_path / "a.svg"))}
    assert loaded & HEAVY == {"jinja2"}


# -- the services of the picture -------------------------------------------------------------------------------------

UNITS = """beegfs-mgmtd.service loaded active running BeeGFS Management
cron.service         loaded active running Regular background program processing daemon
pinned.service       loaded active running Somebody's own
"""
SHOWN = "\n\n".join(
    f"Id={unit}.service\nLoadState=loaded\nMainPID={pid}"
    for unit, pid in (("beegfs-mgmtd", 10), ("cron", 11), ("pinned", 12))
)
STATUS = "Cpus_allowed_list:\t{}\nMems_allowed_list:\t0\n"
NAMES = ("beegfs-mgmtd.service", "cron.service", "pinned.service")


def running(units: Completed) -> Host:
    files = {"/sys/devices/system/cpu/online": "0-3\n"}
    files |= {f"/proc/{pid}/status": STATUS.format(cpus) for pid, cpus in ((10, "0-3"), (11, "0-3"), (12, "2-3"))}
    answers = {LIST_RUNNING: units, show_command(NAMES): Completed(0, SHOWN, "")}
    return Host(MemoryFiles({path: text.encode() for path, text in files.items()}), RecordedCommands(answers))


def test_services_of_storage_and_those_that_are_placed_are_found() -> None:
    unknown = Unknowns()
    found = read_storage_services(running(Completed(0, UNITS, "")), unknown)
    assert [one.unit for one in found] == ["beegfs-mgmtd.service", "pinned.service"]
    assert not unknown.listed()


def test_without_systemd_they_are_unknown_with_the_reason() -> None:
    unknown = Unknowns()
    assert read_storage_services(running(Completed(1, "", "Access denied\n")), unknown) == ()
    assert [(one.fact, one.why) for one in unknown.listed()] == [("services", "systemctl returned 1: Access denied")]


@pytest.mark.parametrize("text", ["", "\n\n", "x.socket loaded\n", "a;b.service x\n", "\0.service"])
def test_lines_that_name_no_service(text: str) -> None:
    assert parse_running(text) == ()


def test_a_snapshot_carries_what_the_picture_needs(tmp_path: Path) -> None:
    tree = beegfs_server.tree()
    tree.answer(LIST_RUNNING, "pinned.service loaded active running x\n")
    tree.answer(show_command(("pinned.service",)), "Id=pinned.service\nLoadState=loaded\nMainPID=99\n")
    tree.files["/proc/99/status"] = STATUS.format("24-47")
    save_snapshot(capture_host(tree.host(), read_for_scan_and_plans), tmp_path / "s.tar.gz")
    done = advisor("--snapshot", tmp_path / "s.tar.gz", "--picture", PYTHONIOENCODING="utf-8")
    (line,) = (line for line in done.stdout.split("\n") if "pinned" in line)
    assert "CPUs 24-47" in done.stdout
    assert line.index("pinned") > 0
