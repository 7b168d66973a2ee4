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

from tests.cases import read_cases
from tests.fleet.hosts import Hosts, Kind, why_not
from tests.fleet.test_role import recap
from tests.running import run_text

DATA = read_cases(__file__)

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
    return run_text([str(word) for word in words], cwd=cwd, env=place)


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


@pytest.mark.thorough
def test_ansible_lint_finds_nothing_in_its_strictest_profile(tmp_path: Path) -> None:
    place = tmp_path / "ansible_collections/advisor/host"
    shutil.copytree(SOURCE, place, ignore=shutil.ignore_patterns(".ansible", "__pycache__"))
    words = ("--offline", "--nocolor", "--profile", "production")
    done = alone(BIN / "ansible-lint", *words, cwd=place, home=tmp_path, collections=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


# Those that need nothing but ansible-core; the others install what they need.
BARE = ("action-plugin-docs", "changelog", "compile", "empty-init", "ignores", "line-endings", "no-assert", "shebang")
BARE_TESTS = [word for name in BARE for word in ("--test", name)]


def sanity(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    tree = place / "ansible_collections/advisor/host"
    shutil.copytree(SOURCE, tree, ignore=shutil.ignore_patterns(".ansible", "__pycache__"))
    version = "{}.{}".format(*sys.version_info)
    return alone(BIN / "ansible-test", "sanity", "--local", "--python", version, *words, cwd=tree, home=place)


def test_ansible_test_finds_nothing_that_needs_no_network(tmp_path: Path) -> None:
    done = sanity(tmp_path, *BARE_TESTS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "compile" in done.stdout + done.stderr


def program(place: Path) -> dict[str, str]:
    """advisor on the search path of a host: the machine's own Python, as the tests' own one is not there."""
    words = f"PYTHONPATH={place} PYTHONDONTWRITEBYTECODE=1 exec {SYSTEM_PYTHON} -m advisor"
    return {"advisor": f'#!/bin/sh\n{words} "$@"\n', "half-advisor": HALF}


# An advisor whose apply ends half way.
HALF = DATA["HALF"]


def can_run_there() -> bool:
    version = subprocess.run([SYSTEM_PYTHON, "-V"], capture_output=True, text=True, check=False).stdout
    return version.startswith("Python {}.{}.".format(*sys.version_info))


@pytest.fixture(scope="module")
def hosts(installed: Path, readable_copy: Path) -> Iterator[Hosts]:
    """node01 has advisor, node02 has nothing, not even Python."""
    if not can_run_there():
        pytest.skip("the machine's own Python is another one than that of the tests")
    links = {"s0": 1500, "s1": 1500}
    first = Kind(has_python=True, programs=program(readable_copy), links=links, user="keeper", sudo_password="")
    with Hosts(2, node01=first, node02=Kind(links=links)) as made:
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
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_predicted_applied_once_and_rolled_back(hosts: Hosts, installed: Path, *, whole: bool) -> None:
    """In the common run without the predictions of a roll-back, and of what is there."""
    task = profile("jumbo-frames", parameters={"links": ["s0"]})
    undo = profile("jumbo-frames", state="rolled_back")
    output = play(hosts, installed, [task], "--check", "--diff")
    assert recap(output) == everywhere(hosts, (1, 0)), output
    assert output.count("-link:s0:mtu = 1500") == output.count("+link:s0:mtu = 9000") == 2, output
    assert {mtu(hosts, name) for name in hosts.names} == {1500}
    assert not whole or recap(play(hosts, installed, [undo], "--check")) == everywhere(hosts, (0, 0))
    output = play(hosts, installed, [task])
    assert recap(output) == everywhere(hosts, (1, 0)), output
    assert {mtu(hosts, name) for name in hosts.names} == {9000}
    for words in ((), ("--check",)) if whole else ((),):
        output = play(hosts, installed, [task], *words)
        assert recap(output) == everywhere(hosts, (0, 0)), output
        assert [f"ok: [{name}]" in output for name in hosts.names] == [True, True], output
    if whole:
        output = play(hosts, installed, [undo], "--check", "--diff")
        assert recap(output) == everywhere(hosts, (1, 0)), output
        assert output.count("+link:s0:mtu = 1500") == 2, output
        assert {mtu(hosts, name) for name in hosts.names} == {9000}
    output = play(hosts, installed, [undo])
    assert recap(output) == everywhere(hosts, (1, 0)), output
    assert {mtu(hosts, name) for name in hosts.names} == {1500}
    assert not whole or recap(play(hosts, installed, [undo])) == everywhere(hosts, (0, 0))


def values(hosts: Hosts, name: str) -> str:
    return hosts.shell(name, "sysctl -n net.ipv4.tcp_keepalive_time net.ipv4.tcp_keepalive_intvl").replace("\n", " ")


WANTED = ["sysctl:net.ipv4.tcp_keepalive_time=600", "sysctl:net.ipv4.tcp_keepalive_intvl=30"]


@needs_hosts
def test_the_role_applies_a_list_and_rolls_back_what_is_no_longer_wanted(hosts: Hosts, installed: Path) -> None:
    given = {"advisor_controller_executable": str(BIN / "advisor")}
    output = play(hosts, installed, "advisor.host.advisor", advisor_profiles=WANTED, **given)
    assert recap(output) == everywhere(hosts, (1, 0)), output
    assert {values(hosts, name) for name in hosts.names} == {"600 30 "}
    output = play(hosts, installed, "advisor.host.advisor", advisor_profiles=WANTED, **given)
    assert recap(output) == everywhere(hosts, (0, 0)), output
    output = play(hosts, installed, "advisor.host.advisor", advisor_rolled_back=[], advisor_profiles=[], **given)
    assert recap(output) == everywhere(hosts, (0, 0)), output
    undo = profile(WANTED, state="rolled_back")
    output = play(hosts, installed, [undo])
    assert recap(output) == everywhere(hosts, (1, 0)), output
    assert {values(hosts, name) for name in hosts.names} == {"7200 75 "}


def answers(output: str) -> list[dict[str, Any]]:
    """The results of failed tasks."""
    return [json.loads(found) for found in re.findall(r"^fatal: \[\w+\]: FAILED! => (.*)$", output, re.MULTILINE)]


@pytest.mark.repeats(1)
@needs_hosts
@pytest.mark.parametrize("via", ["host", "controller"])
@pytest.mark.parametrize("words", [(), ("--check",)])
def test_what_cannot_be_done_fails_cleanly(hosts: Hosts, installed: Path, via: str, words: tuple[str, ...]) -> None:
    """The exit codes of the contract; nothing is changed."""
    tasks = [profile("nonsense", via=via), profile("jumbo-frames", via=via)]
    found = []
    for task in tasks:
        output = play(hosts, installed, [task], "--limit", "node01", *words)
        assert recap(output) == {"node01": (0, 1)}, output
        found += answers(output)
    assert [one["rc"] for one in found] == [2, 3], found
    assert "nonsense" in found[0]["msg"]
    assert "links=" in found[1]["msg"]
    assert {one["changed"] for one in found} == {False}


@needs_hosts
def test_without_root_a_plan_is_shown_and_nothing_is_applied(hosts: Hosts, installed: Path) -> None:
    task = {**profile("jumbo-frames", parameters={"links": "s0"}), "vars": {"ansible_become": False}}
    output = play(hosts, installed, [task], "--check", "--limit", "node01")
    assert recap(output) == {"node01": (1, 0)}, output
    (found,) = answers(play(hosts, installed, [task], "--limit", "node01"))
    assert (found["rc"], found["changed"]) == (6, False)
    assert mtu(hosts, "node01") == 1500


@needs_hosts
def test_what_could_not_be_restored_is_listed_with_its_command(hosts: Hosts, installed: Path) -> None:
    task = profile("jumbo-frames", parameters={"links": "s0"}, executable="/usr/local/bin/half-advisor")
    (found,) = answers(play(hosts, installed, [task], "--limit", "node01"))
    assert (found["rc"], found["changed"]) == (5, True)
    assert found["not_restored"] == [{"what": "link:s0:mtu", "by_hand": "ip link set dev s0 mtu 1500"}]
    assert "by hand: ip link set dev s0 mtu 1500" in found["msg"]


@needs_hosts
def test_a_host_without_advisor_says_how_to_get_it(hosts: Hosts, installed: Path) -> None:
    output = play(hosts, installed, [profile("jumbo-frames", via="host")], "--limit", "node02")
    (found,) = answers(output)
    assert "not installed on this host" in found["msg"]
    assert "docs/packages.md" in found["msg"]


@needs_hosts
def test_a_host_with_advisor_but_no_python_for_ansible_is_captured(installed: Path, readable_copy: Path) -> None:
    tasks: list[dict[str, Any]] = [
        {
            "advisor.host.facts": {"gather": ["host"], "controller_executable": str(BIN / "advisor")},
            "register": "asked",
        },
        {"ansible.builtin.debug": {"msg": "by {{ asked.via }}"}},
    ]
    with Hosts(1, node01=Kind(programs=program(readable_copy))) as hosts:
        output = play(hosts, installed, tasks)
        assert recap(output) == {"node01": (0, 0)}, output
        assert "by controller" in output


@needs_hosts
def test_facts_of_a_host_with_advisor_and_of_one_with_nothing(hosts: Hosts, installed: Path) -> None:
    show = "{{ ansible_facts.advisor.host.hostname }} {{ ansible_facts.advisor.links | map(attribute='name') | sort }}"
    tasks: list[dict[str, Any]] = [
        {"advisor.host.facts": {"gather": ["host", "links"], "controller_executable": str(BIN / "advisor")}},
        {"ansible.builtin.debug": {"msg": f"facts {show} {{{{ ansible_facts.advisor.keys() | sort | join(',') }}}}"}},
    ]
    output = play(hosts, installed, tasks)
    assert recap(output) == everywhere(hosts, (0, 0)), output
    for name in hosts.names:
        assert f"facts {name} ['eth0', 'lo', 's0', 's0-far', 's1', 's1-far'] host,links,schema" in output, output
