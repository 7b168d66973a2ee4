"""Links on links in a network namespace: order, children, addresses and routes, judged by ``ip``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.running import network_namespace
from tests.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a network namespace needs root")


class Namespace:
    def __init__(self, name: str, store: Path) -> None:
        self.name = name
        self.store = store

    def ip(self, line: str) -> None:
        subprocess.run(["ip", "-n", self.name, *line.split()], check=True)

    def json(self, line: str) -> Any:
        done = subprocess.run(["ip", "-n", self.name, "-j", *line.split()], check=True, capture_output=True, text=True)
        return json.loads(done.stdout or "[]")

    def command(self, *words: str) -> list[str]:
        program = [sys.executable, "-m", "tests.transaction.live", str(self.store)]
        return ["ip", "netns", "exec", self.name, *program, *words]

    def run(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(self.command(*words), capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def script(self, shell: str, *options: str) -> str:
        path = sorted(self.store.glob("transactions/*"))[-1] / "rollback.sh"
        words = ["ip", "netns", "exec", self.name, *shell.split(), str(path), "--any-host", *options]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def mtus(self) -> dict[str, int]:
        return {link["ifname"]: link["mtu"] for link in self.json("link show")}

    def state(self) -> dict[str, Any]:
        """Links, addresses and the routes that lead anywhere."""
        addresses = {
            link["ifname"]: sorted((one["local"], one["prefixlen"]) for one in link["addr_info"])
            for link in self.json("address show")
        }
        routes = sorted(
            json.dumps({key: value for key, value in one.items() if key != "flags"}, sort_keys=True)
            for version in "46"
            for one in self.json(f"-{version} route show table all")
            if one.get("type", "unicast") == "unicast"
        )
        return {"mtus": self.mtus(), "addresses": addresses, "routes": routes}

    def settled(self) -> dict[str, Any]:
        """The state once the kernel has made its own link-local addresses and their routes again."""
        last = None
        for _ in range(40):
            now = self.state()
            if now == last:
                break
            last = now
            time.sleep(0.25)
        assert last is not None
        return last


@pytest.fixture
def namespace(tmp_path: Path) -> Iterator[Namespace]:
    one = Namespace(f"advisor{os.getpid()}", tmp_path / "state")
    with network_namespace(one.name):
        one.ip("link set lo up")
        one.ip("link add a0 mtu 1500 type veth peer name b0 mtu 9000")
        for link in ("a0", "b0"):
            one.ip(f"link set {link} up")
        one.ip("address add 192.0.2.1/24 dev a0")
        one.ip("address add 2001:db8:1::1/64 dev a0 nodad")
        one.ip("route add 198.51.100.0/24 via 192.0.2.254 dev a0 metric 7")
        one.ip("route add 2001:db8:99::/48 via 2001:db8:1::fe dev a0 metric 9")
        yield one


def stacked(namespace: Namespace) -> None:
    namespace.ip("link add br0 type bridge")
    namespace.ip("link add m0 link a0 type macvlan mode bridge")
    namespace.ip("link add x0 type vxlan id 5 dstport 4789 dev a0 remote 192.0.2.9")
    for link in ("br0", "m0", "x0"):
        namespace.ip(f"link set {link} up")
    namespace.ip("address add 2001:db8:2::1/64 dev m0 nodad")
    namespace.ip("route add 2001:db8:98::/48 via 2001:db8:2::fe dev m0")


@pytest.mark.repeats(1)
@pytest.mark.parametrize("way", ["rollback", "dash", "busybox sh"])
def test_addresses_and_routes_that_a_small_mtu_takes_come_back(namespace: Namespace, way: str) -> None:
    stacked(namespace)
    before = namespace.settled()
    namespace.run("apply", "link:a0:mtu=1200")
    lost = namespace.state()["addresses"]
    assert ("2001:db8:1::1", 64) not in lost["a0"], "the kernel deletes IPv6 addresses below 1280 bytes"
    assert ("2001:db8:2::1", 64) not in lost["m0"], "and those of what follows the link"
    said = namespace.run("rollback") if way == "rollback" else namespace.script(way)
    assert "addresses" in said
    assert namespace.settled() == before


@pytest.mark.parametrize("shell", ["dash", "busybox sh"])
def test_early_in_the_next_boot_addresses_and_routes_are_their_managers(namespace: Namespace, shell: str) -> None:
    """The link is there with the kernel's own size, not up, and nobody has given it an address yet."""
    namespace.run("apply", "link:a0:mtu=1400")
    for line in ("link set a0 down", "link set a0 mtu 1500", "address flush dev a0"):
        namespace.ip(line)
    said = namespace.script(shell, "--after-boot")
    assert "everything is as it was before" in said
    assert namespace.state()["addresses"]["a0"] == []


def test_a_failure_gives_them_back_at_once(namespace: Namespace) -> None:
    stacked(namespace)
    before = namespace.settled()
    said = namespace.run("apply", "link:a0:mtu=1200", "--fail-gate", code=4)
    assert "the gate says no" in said
    assert namespace.settled() == before


def test_children_are_raised_after_their_parents_and_lowered_before_them(namespace: Namespace) -> None:
    stacked(namespace)
    before = namespace.settled()
    namespace.run("apply", "link:a0:mtu=9000", "link:m0:mtu=9000", "link:x0:mtu=8950")
    mtus = namespace.mtus()
    assert (mtus["a0"], mtus["m0"], mtus["x0"]) == (9000, 9000, 8950)
    said = namespace.run("rollback")
    assert said.index("link:x0:mtu") < said.index("link:m0:mtu") < said.index("link:a0:mtu")
    assert namespace.settled() == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_while_it_works_puts_it_back_before_it_ends(namespace: Namespace, number: signal.Signals) -> None:
    before = namespace.settled()
    # Stopped at a step after the link was changed.
    words = [sys.executable, "-m", "tests.transaction.hanging", "17", str(namespace.store), "apply", "link:a0:mtu=9000"]
    process = subprocess.Popen(["ip", "netns", "exec", namespace.name, *words], stdout=subprocess.DEVNULL)
    until(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
    assert namespace.mtus()["a0"] == 9000
    for each in (number, signal.SIGCONT):
        os.kill(process.pid, each)
    assert process.wait(PATIENCE_SECONDS) != 0
    assert namespace.settled() == before
