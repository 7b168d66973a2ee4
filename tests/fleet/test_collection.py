"""The collection advisor.host, built, installed and run on hosts: one with advisor, one with nothing installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.hosts import Hosts, Kind, why_not

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "packaging/ansible"
BIN = Path(sys.executable).parent
needs_hosts = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
SYSTEM_PYTHON = Path("/usr/bin/python3")


def alone(
    *words: str | Path, cwd: Path, home: Path, collections: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """A program of Ansible that asks no host, away from the caller's own settings."""
    place = {"HOME": str(home), "ANSIBLE_HOME": str(home), "PATH": f"{BIN}:{os.environ['PATH']}", "NO_COLOR": "1"}
    if collections is not None:
        place["ANSIBLE_COLLECTIONS_PATH"] = str(collections)
    return subprocess.run(
        [str(word) for word in words], cwd=cwd, env=place, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for ANSIBLE_COLLECTIONS_PATH, with the collection as a user installs it."""
    place = tmp_path_factory.mktemp("collections")
    shutil.copytree(SOURCE, place / "source", ignore=shutil.ignore_patterns(".ansible", "__pycache__"))
    galaxy = BIN / "ansible-galaxy"
    built = alone(galaxy, "collection", "build", "source", cwd=place, home=place)
    assert built.returncode == 0, built.stdout + built.stderr
    (archive,) = place.glob("advisor-host-*.tar.gz")
    words = ("collection", "install", "--offline", "-p", place / "installed", archive)
    done = alone(galaxy, *words, cwd=place, home=place)
    assert done.returncode == 0, done.stdout + done.stderr
    return place / "installed"


def test_ansible_lint_finds_nothing_in_its_strictest_profile(tmp_path: Path) -> None:
    place = tmp_path / "ansible_collections/advisor/host"
    shutil.copytree(SOURCE, place, ignore=shutil.ignore_patterns(".ansible", "__pycache__"))
    words = ("--offline", "--nocolor", "--profile", "production")
    done = alone(BIN / "ansible-lint", *words, cwd=place, home=tmp_path, collections=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def program(place: Path) -> dict[str, str]:
    """advisor on the search path of a host: the machine's own Python, as the tests' own one is not there."""
    packages = next(path for path in map(Path, sys.path) if path.name == "site-packages")
    words = f"PYTHONPATH={place}:{packages} PYTHONDONTWRITEBYTECODE=1 exec {SYSTEM_PYTHON} -m advisor"
    return {"advisor": f'#!/bin/sh\n{words} "$@"\n'}


def can_run_there() -> bool:
    version = subprocess.run([SYSTEM_PYTHON, "-V"], capture_output=True, text=True, check=False).stdout
    return version.startswith("Python {}.{}.".format(*sys.version_info))


@pytest.fixture(scope="module")
def hosts(installed: Path) -> Iterator[Hosts]:
    """node01 has advisor, node02 has nothing, not even Python."""
    if not can_run_there():
        pytest.skip("the machine's own Python is another one than that of the tests")
    links = {"s0": 1500, "s1": 1500}
    with Hosts(2, node01=Kind(has_python=True, programs=program(ROOT), links=links), node02=Kind(links=links)) as made:
        yield made


def play(hosts: Hosts, installed: Path, tasks: Sequence[dict[str, Any]] | str, *words: str, **more: Any) -> str:
    """What ansible-playbook prints of these tasks, or of a role with these variables."""
    body = {"roles": [{"role": tasks, **more}]} if isinstance(tasks, str) else {"tasks": tasks}
    book = hosts.home / "play.yml"
    book.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "become": False, **body}]))
    done = hosts.run(
        BIN / "ansible-playbook",
        "-i",
        hosts.inventory(),
        book,
        *words,
        more={"ANSIBLE_COLLECTIONS_PATH": str(installed), "ANSIBLE_NOCOLOR": "1"},
    )
    return done.stdout + done.stderr


def recap(output: str) -> dict[str, tuple[int, int]]:
    """Changed and failed (or unreachable) tasks of each host."""
    lines = re.findall(r"^(\w+) +: ok=\d+ +changed=(\d+) +unreachable=(\d+) +failed=(\d+)", output, re.MULTILINE)
    assert lines, output
    return {name: (int(changed), int(unreachable) + int(failed)) for name, changed, unreachable, failed in lines}


def profile(name: str | list[str], **arguments: Any) -> dict[str, Any]:
    given = {"name": name, "controller_executable": str(BIN / "advisor"), **arguments}
    return {"name": "Profile", "advisor.host.profile": given}


def mtu(hosts: Hosts, name: str, link: str = "s0") -> int:
    """What the kernel says, by ip."""
    (found,) = json.loads(hosts.shell(name, f"ip -j link show {link}"))
    return int(found["mtu"])


def everywhere(hosts: Hosts, value: tuple[int, int]) -> dict[str, tuple[int, int]]:
    return dict.fromkeys(hosts.names, value)


@needs_hosts
def test_predicted_applied_once_and_rolled_back(hosts: Hosts, installed: Path) -> None:
    task = profile("jumbo-frames", parameters={"links": ["s0"]})
    undo = profile("jumbo-frames", state="rolled_back")
    output = play(hosts, installed, [task], "--check", "--diff")
    assert recap(output) == everywhere(hosts, (1, 0)), output
    assert output.count("-link:s0:mtu = 1500") == output.count("+link:s0:mtu = 9000") == 2, output
    assert {mtu(hosts, name) for name in hosts.names} == {1500}
    assert recap(play(hosts, installed, [undo], "--check")) == everywhere(hosts, (0, 0))
    output = play(hosts, installed, [task])
    assert recap(output) == everywhere(hosts, (1, 0)), output
    assert {mtu(hosts, name) for name in hosts.names} == {9000}
    for words in ((), ("--check",)):
        output = play(hosts, installed, [task], *words)
        assert recap(output) == everywhere(hosts, (0, 0)), output
    output = play(hosts, installed, [undo], "--check", "--diff")
    assert recap(output) == everywhere(hosts, (1, 0)), output
    assert output.count("+link:s0:mtu = 1500") == 2, output
    assert {mtu(hosts, name) for name in hosts.names} == {9000}
    output = play(hosts, installed, [undo])
    assert recap(output) == everywhere(hosts, (1, 0)), output
    assert {mtu(hosts, name) for name in hosts.names} == {1500}
    assert recap(play(hosts, installed, [undo])) == everywhere(hosts, (0, 0))
