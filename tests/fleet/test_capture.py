"""The capture script on this machine: under every shell, as root and not, and what it leaves behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import read_cases
from tests.fleet.captures import captured, differences, replayed, script
from tests.running import run_text

DATA = read_cases(__file__)

ROOT = Path(__file__).parents[2]
SHELLS = {"dash": ("dash",), "bash": ("bash",), "bash-posix": ("bash", "--posix"), "busybox": ("busybox", "sh")}
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces")


def shell(name: str) -> tuple[str, ...]:
    if shutil.which(SHELLS[name][0]) is None:
        pytest.skip(f"no {SHELLS[name][0]} here")
    return SHELLS[name]


@pytest.mark.repeats(2)
@pytest.mark.parametrize("name", SHELLS)
def test_the_scan_and_all_plans_of_a_capture_are_those_of_the_host_itself(name: str) -> None:
    assert differences(replayed(captured(shell(name)))) == {}


# Links of every kind that this kernel may have, and names that a shell would stumble over.
LINKS = DATA["LINKS"]


@needs_root
def test_links_of_all_kinds_are_captured_as_they_are() -> None:
    inside = [sys.executable, "-m", "tests.fleet.captures"]
    argv = ["unshare", "--net", "--mount", "sh", "-c", LINKS, "sh", *inside]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode == 99 or "unshare failed" in done.stderr or "Unknown device type" in done.stderr:
        pytest.skip(f"this kernel cannot build the links: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout)
    assert reported["differences"] == {}
    assert {"va", "br0", "vx0", "if0", "tu0", 'q"\\$(x)', "a'b*"} <= set(reported["links"])


def test_shellcheck_finds_nothing(tmp_path: Path) -> None:
    file = tmp_path / "capture.sh"
    file.write_text(script())
    done = run_text([Path(sys.executable).parent / "shellcheck", file])
    assert done.returncode == 0, done.stdout


def test_the_command_prints_the_script_and_scans_what_it_printed(tmp_path: Path) -> None:
    advisor = [sys.executable, "-m", "advisor"]
    file, stream = tmp_path / "capture.sh", tmp_path / "host.capture"
    assert (
        subprocess.run([*advisor, "snapshot", "--script"], capture_output=True, check=True).stdout == script().encode()
    )
    subprocess.run([*advisor, "snapshot", "--script", "-o", file], capture_output=True, check=True)
    with stream.open("wb") as output:
        subprocess.run(["sh", file], stdout=output, check=True)
    done = subprocess.run([*advisor, "scan", "--json", "--snapshot", stream], capture_output=True, check=True)
    assert json.loads(done.stdout)["schema"] == "advisor.scan/1"
    stream.write_bytes(stream.read_bytes()[:-30])
    refused = subprocess.run([*advisor, "scan", "--json", "--snapshot", stream], capture_output=True, check=False)
    assert refused.returncode == 2
    assert "truncated" in json.loads(refused.stdout)["error"]["message"]
    for words in (["--script", "--root", "/"], []):
        assert subprocess.run([*advisor, "snapshot", *words], capture_output=True, check=False).returncode == 2
