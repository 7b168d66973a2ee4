"""A thousand hosts: a page that can be read, memory that does not grow, forks as Ansible has them, and going on after a
controller that was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.errors import UsageError
from advisor.fleet.inventory import configured_forks
from advisor.fleet.scan import FleetScan, FoundHere, HostScan, RuleFinding
from advisor.operations.fleet import parse_age
from advisor.report.fleet.scan import fleet_scan_text
from advisor.rules.rule import Finding
from tests.fleet.test_first_use import run
from tests.waiting import until


def made_up(count: int) -> FleetScan:
    """Every host has the same advice; of fifty one has no answer, and one host alone has a warning."""
    advice = Finding(
        "link.mtu", "advice", "An MTU of 1500 on a storage link", "why", {}, "do", None, "never", ("test",)
    )
    alone = Finding("disk.path", "warning", "A path is offline", "why", {}, "do", None, "never", ("test",))
    hosts = []
    for at in range(count):
        name = f"node{at:04}"
        if at % 50 == 7:
            hosts.append(HostScan(name, "unreachable", "Connection timed out"))
            continue
        found = [FoundHere(alone.id, alone.severity, alone.title)] if at == count // 2 else []
        found.append(FoundHere(advice.id, advice.severity, advice.title))
        hosts.append(HostScan(name, "ok", "", name, "Debian", "6.1", None, True, 70, tuple(found), 0, 0.0, 1.0))
    having = tuple(host.name for host in hosts if host.state == "ok")
    rules = (RuleFinding(alone, (f"node{count // 2:04}",), True), RuleFinding(advice, having, True))
    return FleetScan(tuple(hosts), rules, (), ())


@pytest.mark.parametrize("width", [80, 132])
def test_a_thousand_hosts_fit_a_screen_with_those_first_that_stand_out(width: int) -> None:
    page = fleet_scan_text(made_up(1000), width=width, color=False)
    lines = page.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= width
    assert page.index("node0500: A path is offline") < page.index("An MTU of 1500") < page.index("unreachable")
    assert "980 of 1000 hosts captured" in lines[0]
    whole = fleet_scan_text(made_up(1000), width=width, color=False, is_whole=True)
    assert all(host.name in whole for host in made_up(1000).hosts)


def test_forks_are_those_of_ansibles_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANSIBLE_FORKS", raising=False)
    monkeypatch.setenv("ANSIBLE_CONFIG", str(tmp_path / "ansible.cfg"))
    (tmp_path / "ansible.cfg").write_text("[defaults]\ntimeout = 7\n")
    assert configured_forks() == 20
    (tmp_path / "ansible.cfg").write_text("[defaults]\nforks = 33\n")
    assert configured_forks() == 33
    monkeypatch.setenv("ANSIBLE_FORKS", "44")
    assert configured_forks() == 44


@pytest.mark.parametrize("text", ["", "h", "-1", "1w", "1.5h", "1h\n"])
def test_an_age_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_age(text)


@pytest.mark.repeats(1)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_scan_that_is_stopped_goes_on_with_the_hosts_that_are_left(tmp_path: Path, number: signal.Signals) -> None:
    """The hosts are this machine, read over Ansible's local connection under eight names."""
    hosts = tmp_path / "hosts.ini"
    hosts.write_text("".join(f"n{at} ansible_connection=local\n" for at in range(8)))
    words = ("scan", "-i", hosts, "-o", tmp_path / "kept", "--forks", "1")
    environment = {**os.environ, "ADVISOR_STATE_DIR": str(tmp_path)}
    argv = [sys.executable, "-m", "advisor", "fleet", *map(str, words)]
    process = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    place = tmp_path / "kept/captures"
    until(lambda: len(list(place.glob("n*.json"))) >= 2)
    ansible = children(process.pid)
    process.send_signal(number)
    errors = process.communicate()[1]
    if number == signal.SIGKILL:
        for pid in ansible:
            os.killpg(pid, signal.SIGKILL)
    else:
        assert process.returncode == 130
        assert "--max-age" in errors
    before = {path.name: path.stat().st_mtime_ns for path in place.glob("n*.json")}
    assert 2 <= len(before) < 8
    out, _ = run(tmp_path, *words, "--max-age", "1h", "--json", code=0)
    after = {path.name: path.stat().st_mtime_ns for path in place.glob("n*.json")}
    assert len(after) == 8
    assert {name: after[name] for name in before} == before
    assert [host["state"] for host in json.loads(out)["hosts"]] == ["ok"] * 8


def test_one_machine_under_two_names_is_planned_for_once(tmp_path: Path) -> None:
    (tmp_path / "hosts.ini").write_text("a ansible_connection=local\nb ansible_connection=local\n")
    words = ("plan", "net.ipv4.tcp_keepalive_time=617", "-i", tmp_path / "hosts.ini", "--canary", "b", "--json")
    plan = json.loads(run(tmp_path, *words, code=0)[0])
    assert [(one["name"], one["state"], one["wave"]) for one in plan["hosts"]] == [
        ("a", "same", None),
        ("b", "change", 1),
    ]


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
