"""The role by itself, as a person with plain playbooks uses it: clean, without effect under --check, idempotent, and
one failed host rolls its whole batch back."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.fleet.engine import PLAYBOOKS
from tests.fleet.hosts import Hosts, why_not

BIN = Path(sys.executable).parent
NAMES = sorted(path.name for path in PLAYBOOKS.glob("*.yml"))
needs_hosts = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def alone(*words: str | Path, home: Path) -> subprocess.CompletedProcess[str]:
    """A program of Ansible that asks no host, away from the caller's own settings."""
    place = {"HOME": str(home), "ANSIBLE_HOME": str(home), "PATH": f"{BIN}:{os.environ['PATH']}", "NO_COLOR": "1"}
    reported = [str(word) for word in words]
    return subprocess.run(reported, cwd=PLAYBOOKS, env=place, capture_output=True, text=True, check=False)


def test_ansible_lint_finds_nothing_in_its_strictest_profile(tmp_path: Path) -> None:
    words = ("--offline", "--nocolor", "--profile", "production", "--project-dir", ".")
    done = alone(BIN / "ansible-lint", *words, home=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_playbook_is_one(tmp_path: Path) -> None:
    assert {"apply.yml", "capture.yml", "confirm.yml", "rollback.yml", "run.yml", "verify.yml"} <= {*NAMES}
    done = alone(BIN / "ansible-playbook", "--syntax-check", "-i", "localhost,", *NAMES, home=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def fleet() -> Iterator[Hosts]:
    with Hosts(2) as made:
        yield made


@pytest.fixture(scope="module")
def scripts(fleet: Hosts) -> Path:
    """A transaction script for each host, out of a capture that the role took."""
    assert recap(play(fleet, "capture")) == dict.fromkeys(fleet.names, (0, 0))
    place = fleet.home / "scripts"
    place.mkdir()
    for name in fleet.names:
        archive = fleet.home / f"out/captures/{name}.tar.gz"
        words = ("apply-script", "jumbo-frames", "--set", "links=eth0", "--snapshot", archive)
        done = fleet.run(BIN / "advisor", *words, "-o", place / f"{name}.sh")
        assert done.returncode == 0, done.stderr
    return place


def play(fleet: Hosts, name: str, *words: str, scripts: Path | None = None) -> str:
    more = ["-e", f"advisor_output={fleet.home}/out", "-e", json.dumps({"advisor_command": [f"{BIN}/advisor"]})]
    if scripts is not None:
        more += ["-e", f"advisor_scripts={scripts}"]
    done = fleet.run(BIN / "ansible-playbook", "-i", fleet.inventory(), PLAYBOOKS / f"{name}.yml", *more, *words)
    return done.stdout + done.stderr


def recap(output: str) -> dict[str, tuple[int, int]]:
    """Changed and failed (or unreachable) tasks of each host."""
    lines = re.findall(r"^(\w+) +: ok=\d+ +changed=(\d+) +unreachable=(\d+) +failed=(\d+)", output, re.MULTILINE)
    assert lines, output
    return {name: (int(changed), int(unreachable) + int(failed)) for name, changed, unreachable, failed in lines}


def state(fleet: Hosts, name: str) -> str:
    """Files and settings of a host that a plan could touch."""
    files = "find /etc /var/lib /run /tmp /root -xdev -type f -exec cksum {} + | sort"
    return fleet.shell(name, f"{files}; cat /sys/class/net/eth0/mtu; ip -o address show eth0")


@needs_hosts
def test_check_mode_changes_nothing_and_says_what_would_be(fleet: Hosts, scripts: Path) -> None:
    before = {name: state(fleet, name) for name in fleet.names}
    output = play(fleet, "apply", "--check", "--diff", scripts=scripts)
    assert recap(output) == dict.fromkeys(fleet.names, (1, 0))
    assert output.count("link:eth0:mtu: 1500 -> 9000") == len(fleet.names), output
    assert recap(play(fleet, "rollback", "--check", scripts=scripts)) == dict.fromkeys(fleet.names, (0, 0))
    assert {name: state(fleet, name) for name in fleet.names} == before


@pytest.mark.thorough
@needs_hosts
def test_applied_once_verified_and_rolled_back(fleet: Hosts, scripts: Path) -> None:
    before = {name: state(fleet, name) for name in fleet.names}
    assert recap(play(fleet, "apply", scripts=scripts)) == dict.fromkeys(fleet.names, (1, 0))
    assert {fleet.shell(name, "cat /sys/class/net/eth0/mtu") for name in fleet.names} == {"9000\n"}
    again = play(fleet, "apply", "-e", "advisor_serial=2", scripts=scripts)
    assert recap(again) == dict.fromkeys(fleet.names, (0, 0)), again
    assert recap(play(fleet, "apply", "--check", scripts=scripts)) == dict.fromkeys(fleet.names, (0, 0))
    assert recap(play(fleet, "rollback", "--check", scripts=scripts)) == dict.fromkeys(fleet.names, (1, 0))
    assert recap(play(fleet, "verify", scripts=scripts)) == dict.fromkeys(fleet.names, (0, 0))
    fleet.shell("node02", "ip link set eth0 mtu 9100")
    assert recap(play(fleet, "verify", scripts=scripts)) == {"node01": (0, 0), "node02": (0, 1)}
    fleet.shell("node02", "ip link set eth0 mtu 9000")
    assert recap(play(fleet, "rollback", scripts=scripts)) == dict.fromkeys(fleet.names, (1, 0))
    for name in fleet.names:
        assert fleet.shell(name, "cat /sys/class/net/eth0/mtu") == "1500\n"
        assert _of_etc(state(fleet, name)) == _of_etc(before[name])


@pytest.mark.thorough
@needs_hosts
def test_one_failed_host_puts_its_batch_back_and_stops_the_play(fleet: Hosts, scripts: Path, tmp_path: Path) -> None:
    before = {name: _of_etc(state(fleet, name)) for name in fleet.names}
    for name in fleet.names:
        (tmp_path / f"{name}.sh").write_text((scripts / f"{name}.sh").read_text())
    good = (scripts / "node02.sh").read_text()
    (tmp_path / "node02.sh").write_text('[ "$1" != apply ] || exit 4\n' + good)
    output = play(fleet, "apply", "-e", "advisor_serial=2", scripts=tmp_path)
    assert recap(output)["node01"][1] == 1, output
    assert recap(output)["node02"][1] == 1, output
    assert "1 of 2 hosts of this batch failed" in output, output
    for name in fleet.names:
        assert fleet.shell(name, "cat /sys/class/net/eth0/mtu") == "1500\n"
        assert _of_etc(state(fleet, name)) == before[name]


def _of_etc(text: str) -> list[str]:
    return [line for line in text.splitlines() if " /etc/" in line]
