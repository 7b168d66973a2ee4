"""``advisor fleet why``: spans of many hosts on the command line, and the span that the capture script takes."""

from __future__ import annotations

import fnmatch
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advisor.diagnosis.observation import read_context
from advisor.host import Host, MemoryFiles
from advisor.observe.rates import take_sample
from advisor.observe.sample import encode_span
from advisor.planner import read_for_scan_and_plans
from advisor.snapshot.archive import SPAN, capture_host, save_snapshot
from advisor.snapshot.open import open_observed
from advisor.snapshot.remote import manifest
from advisor.snapshot.remote.capture import capture_script, read_moments
from tests.cases import read_cases
from tests.cli.inside import call_inside
from tests.diagnosis.cases import CASES
from tests.diagnosis.moments import Machine, host_at, span_of
from tests.fleet.captures import run_script
from tests.fleet.test_capture import SHELLS, shell
from tests.fleet.test_capture_complete import Asked
from tests.fleet.test_peers import machine
from tests.schemas import judge

DATA = read_cases(__file__)


def run(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return call_inside("fleet", "why", *words, **{"COLUMNS": "80", **environment})


def save_machine(path: Path, one: Machine) -> None:
    def read_all(host: Host) -> None:
        read_for_scan_and_plans(host)
        read_context(host)

    save_snapshot(capture_host(host_at(one, 1000), read_all, {SPAN: encode_span(span_of(one, 2), 1.7e9)}), path)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight hosts of two drives each; node07 has one that is slow."""
    place = tmp_path_factory.mktemp("fleet")
    for at in range(8):
        save_machine(place / f"node{at:02}.tar.gz", machine(slow=8 if at == 7 else 1, seed=at))
    return place


def test_a_slow_drive_comes_first(fleet: Path) -> None:
    done = run(*sorted(fleet.glob("*.tar.gz")))
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("8 hosts observed: 1 figure stands out from its peers")
    text = " ".join(done.stdout.split())
    assert "node07: nvme1n1 is " in text
    assert "than the 15 like it" in text
    assert "smartctl -a /dev/nvme1n1" in text
    assert "16 × nvme, 1,024 GB" in text


def test_the_document_has_every_host_and_validates(fleet: Path) -> None:
    done = run(*sorted(fleet.glob("*.tar.gz")), "--json")
    document: dict[str, Any] = judge(done.stdout, done.returncode)
    assert document["schema"] == "advisor.fleet-why/1"
    assert [one["name"] for one in document["hosts"]] == [f"node{at:02}" for at in range(8)]
    (found,) = document["outliers"]
    assert (found["host"], found["device"], found["count"]) == ("node07", "nvme1n1", 15)
    assert document["failed"] == {}


def test_what_binds_a_host_is_listed_and_a_host_without_a_span_named(fleet: Path, tmp_path: Path) -> None:
    bound = next(case for case in CASES if case.name == "CPU steal")
    save_machine(tmp_path / "bound.tar.gz", bound.machine)
    (tmp_path / "bad.tar.gz").write_bytes(b"no archive")
    done = run(fleet / "node00.tar.gz", tmp_path / "bound.tar.gz", tmp_path / "bad.tar.gz")
    assert done.returncode == 4
    assert "cpu.steal 1 host: bound" in " ".join(done.stdout.split())
    assert "bad" in done.stdout.partition("Without a span")[2]


@pytest.mark.parametrize(("words", "message"), DATA["a_call_that_is_wrong_exits_2"])
def test_a_call_that_is_wrong_exits_2(words: tuple[str, ...], message: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_a_mistyped_name_is_no_host_and_hosts_without_a_span_are_not_judged(fleet: Path, tmp_path: Path) -> None:
    done = run(fleet / "node00.tar.gz", tmp_path / "nope")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{tmp_path / 'nope'}: no such file" in done.stderr
    (tmp_path / "bad.tar.gz").write_bytes(b"no archive")
    done = run(tmp_path / "bad.tar.gz")
    assert done.returncode == 4
    assert done.stdout.splitlines()[0].rstrip() == "0 hosts observed: nothing was judged"


@pytest.mark.repeats(1)
@pytest.mark.parametrize("name", SHELLS)
def test_the_script_takes_the_counters_of_this_machine(name: str, tmp_path: Path) -> None:
    done = run_script(shell(name), text=capture_script(1))
    assert done.returncode == 0, done.stderr.decode()
    path = tmp_path / "here.capture"
    path.write_bytes(done.stdout)
    host, span, taken_at = open_observed(path)
    assert span.seconds >= 0.9
    assert taken_at == host.captured_at
    disks = [line.split()[2] for line in Path("/proc/diskstats").read_text().splitlines()]
    assert set(span.names("disk")) <= set(disks)
    assert span.names("link-errors")
    assert span.delta("cpu", "all", "resting_ticks") is not None
    asked = [sys.executable, "-m", "advisor", "why", "--snapshot", str(path), "--json"]
    judged = subprocess.run(asked, capture_output=True, text=True, check=False)
    document = json.loads(judged.stdout)
    assert document["seconds"] == round(span.seconds, 3), judged.stderr
    if shutil.which("df"):
        assert [one for one in document["unknown"] if one["fact"] == "space of file systems"] == []


def is_taken(path: str) -> bool:
    patterns = (*manifest.EACH_MOMENT, *manifest.AT_THE_ENDS)
    if path.startswith("/sys/fs/cgroup/"):
        return any(fnmatch.fnmatchcase(path.rpartition("/")[2], name) for name in manifest.CGROUP_FILES)
    listed = [f"{place}/{name}" for place, names in manifest.ATTRIBUTES for name in names]
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in (*patterns, *listed))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_script_takes_every_file_that_a_sample_reads(case: Any) -> None:
    make: Callable[[float], Machine] = case.machine if callable(case.machine) else lambda at: case.machine
    host = host_at(make(0.0), 1000)
    asked = Asked(host.files)
    take_sample(Host(asked, host.commands, is_root=True))
    read = {path for path, found in asked.reads.items() if isinstance(found, bytes)}
    assert {path for path in read if not is_taken(path)} == set()


FILES = {"/span/0/proc/stat": b"cpu 1 0 0 9\n", "/span/1/proc/stat": b"cpu 2 0 0 18\n"}


@pytest.mark.parametrize(
    "times",
    [
        {"/span/0.time": b"5.00\n"},
        {"/span/0.time": b"5.00\n", "/span/1.time": b"5.00\n"},
        {"/span/0.time": b"6.00\n", "/span/1.time": b"5.00\n"},
        {"/span/0.time": b"nan\n", "/span/1.time": b"inf\n"},
        {"/span/0.time": b"1\n", "/span/1.time": b"\xc2\xb2\n"},
        {f"/span/{at}.time": str(at).encode() for at in range(manifest.MOST_MOMENTS + 2)},
    ],
)
def test_moments_that_are_no_span_give_none(times: dict[str, bytes]) -> None:
    assert read_moments({**FILES, **times}, MemoryFiles({}), ({}, {}), is_root=True) is None
