"""Runs over real hosts (namespaces with an sshd each): waves, gates, failures, kills. Judged by ip(8) on the hosts."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.hosts import Hosts, Kind, why_not
from tests.schemas import judge
from tests.waiting import until

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")

JUMBO = ("jumbo-frames", "--set", "links=eth0")


def plain(**more: Any) -> Kind:
    """A host with a ping, by which the gates ask."""
    if not shutil.which("ping"):
        pytest.skip("ping is not installed")
    return Kind(**more)


@contextlib.contextmanager
def fleet(number: int, **kinds: Kind) -> Iterator[Hosts]:
    names = [f"node{at:02}" for at in range(1, number + 1)]
    with Hosts(number, **{name: kinds.get(name, plain()) for name in names}) as found:
        yield found


def words(*arguments: str | Path) -> list[str | Path]:
    return [sys.executable, "-P", "-m", "advisor", "fleet", *arguments]


def advisor(hosts: Hosts, *arguments: str | Path, code: int = 0) -> Any:
    """The document that the command prints; fails where it ends otherwise than with ``code``."""
    done = hosts.run(*words(*arguments, "--json"), timeout=600)
    assert done.returncode == code, done.stdout + done.stderr
    return judge(done.stdout)


def apply(hosts: Hosts, *more: str | Path, code: int = 0, window: int = 60) -> Any:
    arguments = ("apply", *JUMBO, "-i", hosts.inventory(), "--confirm-within", str(window), *more)
    return advisor(hosts, *arguments, code=code)


def mtu(hosts: Hosts, name: str) -> int:
    return int(json.loads(hosts.shell(name, "ip -j link show eth0"))[0]["mtu"])


def mtus(hosts: Hosts) -> list[int]:
    return [mtu(hosts, name) for name in hosts.names]


def network(hosts: Hosts, name: str) -> tuple[Any, ...]:
    """Links, addresses, routes and settings of a host, as the kernel prints them, its addresses settled."""
    until(lambda: "tentative" not in hosts.shell(name, "ip address"))
    asked = (
        "ip -j link",
        "ip -j address",
        "ip -j route",
        "ip -j -6 route",
        "sysctl -a -r '^net[.]ipv[46]' 2>/dev/null",
    )
    return tuple(hosts.shell(name, command) for command in asked)


def files(hosts: Hosts, name: str) -> str:
    return hosts.shell(name, "cd /etc && find . -type f -exec cksum {} + | sort")


def states(document: Any) -> dict[str, str]:
    return {host["name"]: host["state"] for host in document["hosts"]}


def journal(hosts: Hosts, run: str = "0001") -> str:
    path = hosts.home / "state/fleet/runs" / run / "journal"
    return path.read_text() if path.exists() else ""


@pytest.mark.thorough
def test_four_hosts_in_three_waves_there_and_back() -> None:
    with fleet(4) as hosts:
        before = {name: (network(hosts, name), files(hosts, name)) for name in hosts.names}
        done = apply(hosts, "--canary", "node03", "--batch", "2")
        assert [wave["hosts"] for wave in done["waves"]] == [["node03"], ["node01", "node02"], ["node04"]]
        assert mtus(hosts) == [9000] * 4
        assert all(gate["held"] for gate in done["gates"])
        assert any("answers 9000 bytes" in one for gate in done["gates"] for one in gate["passing"])

        assert advisor(hosts, "verify")["ok"] is True
        hosts.shell("node02", "ip link set eth0 mtu 4000")
        drifted = advisor(hosts, "verify", "1", code=1)
        assert states(drifted) == {"node01": "as-set", "node02": "drifted", "node03": "as-set", "node04": "as-set"}
        assert [one["what"] for host in drifted["hosts"] for one in host["drift"]] == ["link:eth0:mtu"]
        hosts.shell("node02", "ip link set eth0 mtu 9000")

        back = advisor(hosts, "rollback")
        assert back["state"] == "rolled-back"
        assert {name: (network(hosts, name), files(hosts, name)) for name in hosts.names} == before


@pytest.mark.thorough
def test_a_switch_that_does_not_carry_it_stops_the_second_wave_and_the_first_stays() -> None:
    with fleet(2) as hosts:
        before = network(hosts, "node02")
        # The switch's port to the second host takes small packets alone.
        subprocess.run(hosts._words("ip", "link", "set", "h12", "mtu", "1500"), check=True)
        done = apply(hosts, code=4)
        assert states(done) == {"node01": "applied", "node02": "rolled-back"}
        assert mtus(hosts) == [9000, 1500]
        assert network(hosts, "node02") == before
        assert [gate["held"] for gate in done["gates"]] == [True, False]
        assert any("192.0.2.11" in why and "9000" in why for why in done["gates"][1]["failing"])
        # Whoever resumes it with the port mended does not touch the first again.
        subprocess.run(hosts._words("ip", "link", "set", "h12", "mtu", "9000"), check=True)
        resumed = advisor(hosts, "apply", "--resume", "last", "--yes")
        assert states(resumed) == {"node01": "applied", "node02": "applied"}
        assert mtus(hosts) == [9000, 9000]
        assert hosts.shell("node01", "ls /var/lib/advisor/transactions") == "0001\n"


@pytest.mark.thorough
def test_a_gate_command_that_fails_on_one_host_puts_its_whole_wave_back() -> None:
    with fleet(2) as hosts:
        done = apply(hosts, "--canary", "0", "--batch", "2", "--gate-command", 'test "$(hostname)" = node01', code=4)
        assert states(done) == {"node01": "rolled-back", "node02": "rolled-back"}
        assert mtus(hosts) == [1500, 1500]
        assert done["gates"][0]["failing"] == ["node02: the gate command ended with 1"]


def test_nodes_of_a_failover_group_are_never_changed_together() -> None:
    other = plain(links={"eth9": 1500})
    with fleet(3, node01=other, node02=other) as hosts:
        inventory = hosts.inventory(more="[storage:vars]\nadvisor_failover_group=trio")
        arguments = ("jumbo-frames", "--set", "links=eth9", "-i", inventory, "--canary", "0", "--batch", "100%")
        planned = advisor(hosts, "plan", *arguments, code=3)
        assert [wave["hosts"] for wave in planned["waves"]] == [["node01"], ["node02"]]
        # Other hardware: the third has no such link, which is reported for it alone.
        assert planned["failed"] == ["node03"]
        assert "eth9" in planned["hosts"][2]["message"]
        assert mtus(hosts) == [1500] * 3


@pytest.mark.thorough
@pytest.mark.parametrize("moment", ['"event":"wave-begun"', '"verb":"apply"', '"event":"gate"', '"verb":"confirm"'])
def test_a_killed_controller_leaves_each_host_as_before_or_after_and_can_be_resumed(moment: str) -> None:
    with fleet(3) as hosts:
        stop_at(hosts, moment, window=20, number=signal.SIGKILL)
        # After its window each host is as it was, or as it was asked to be.
        until(lambda: not any("watch.sh" in line for name in hosts.names for line in hosts.processes(name)))
        assert set(mtus(hosts)) <= {1500, 9000}
        resumed = advisor(hosts, "apply", "--resume", "last", "--yes")
        assert set(states(resumed).values()) == {"applied"}
        assert mtus(hosts) == [9000] * 3


def stop_at(hosts: Hosts, moment: str, *, window: int, number: int) -> int:
    """Send the controller a signal when its journal reports of the moment; its exit code."""
    arguments = ("apply", *JUMBO, "-i", hosts.inventory(), "--yes", "--confirm-within", str(window), "--batch", "2")
    process = hosts.popen(*words(*arguments, "--canary", "0"))
    until(lambda: moment in journal(hosts) or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    os.kill(process.pid, number)
    _, said = process.communicate(timeout=300)
    if number == signal.SIGINT:
        assert "run 0001: nothing is active of wave 1 (" in said, said
        assert "advisor fleet apply --resume 0001" in said
    return process.returncode


@pytest.mark.thorough
def test_an_interrupt_puts_the_open_wave_back_at_once() -> None:
    with fleet(2) as hosts:
        assert stop_at(hosts, '"verb":"apply"', window=300, number=signal.SIGINT) == 130
        assert mtus(hosts) == [1500, 1500]
        until(lambda: not any("watch.sh" in line for name in hosts.names for line in hosts.processes(name)))
        assert advisor(hosts, "status")["runs"][0]["state"] == "stopped"


@pytest.mark.thorough
def test_a_host_that_loses_power_in_the_middle_is_told_as_unknown_and_the_others_of_its_wave_go_back() -> None:
    with fleet(2) as hosts:
        arguments = ("apply", *JUMBO, "-i", hosts.inventory(), "--yes", "--json", "--confirm-within", "8")
        process = hosts.popen(*words(*arguments, "--canary", "0", "--batch", "2"))
        until(lambda: journal(hosts).count('"verb":"apply"') == 2 or process.poll() is not None)
        hosts.kill("node02")
        out, err = process.communicate(timeout=300)
        assert process.returncode == 5, out + err
        document = json.loads(out)
        assert states(document) == {"node01": "rolled-back", "node02": "unknown"}
        assert mtu(hosts, "node01") == 1500
        by_hand = next(host["by_hand"] for host in document["hosts"] if host["name"] == "node02")
        assert "rollback" in by_hand
        assert "node02.sh" in by_hand
        hosts.start("node02")
        assert mtu(hosts, "node02") == 1500
