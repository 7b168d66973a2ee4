"""Nodes on a bridge for a test of the matrix: a namespace each, wired to a namespace that is the switch."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from advisor.fleet.compare.collected import Membership
from advisor.fleet.compare.path_matrix import Answer, Matrix, choose_targets, make_matrix, parse_answer, probe_script
from tests.reach.space import Spaces

NETWORK = "198.51.100.0/24"


class Wires:
    """``add("a")`` is a node whose link, and the trunk between its switch and the others', have these MTUs."""

    def __init__(self, spaces: Spaces) -> None:
        self.spaces = spaces
        self.members: dict[str, list[Membership]] = {}
        spaces.add("switch")
        spaces.run("switch", "ip link add br0 mtu 9000 type bridge")
        spaces.run("switch", "ip link set br0 up")

    def add(self, name: str, mtu: int = 9000, trunk: int = 9000) -> None:
        run, number = self.spaces.run, len(self.members) + 1
        self.spaces.add(name)
        self.spaces.wire((name, "eth1"), ("switch", f"p{number}"), mtu=9000)
        run(name, f"ip link set eth1 mtu {mtu}")
        if trunk < 9000:
            # A switch of its own, since a sender learns what the other end of its own wire refuses.
            run("switch", f"ip link add br{number} mtu 9000 type bridge")
            run("switch", f"ip link add t{number} mtu {trunk} type veth peer name u{number} mtu {trunk}")
            run("switch", f"ip link set t{number} master br{number}")
            run("switch", f"ip link set u{number} master br0")
            for link in (f"br{number}", f"t{number}", f"u{number}"):
                run("switch", f"ip link set {link} up")
        bridge = f"br{number}" if trunk < 9000 else "br0"
        run("switch", f"ip link set p{number} master {bridge}")
        for link in ("br0", bridge):
            run("switch", f"ip link set {link} mtu 9000")
        address = f"198.51.100.{number}"
        self.spaces.address(name, "eth1", f"{address}/24")
        self.members[name] = [member(address, mtu=mtu)]

    def script(self, name: str) -> str:
        return probe_script(choose_targets(self.members).by_host[name])

    def matrix(self, ping: str | Path, home: Path, *, interpreter: str = "sh") -> Matrix:
        """Every node asks, at the same time."""
        environment = {**os.environ, "PATH": f"{path_with(ping, home)}:/usr/sbin:/usr/bin:/sbin:/bin"}
        targets = choose_targets(self.members)
        running = {}
        for name, asked in targets.by_host.items():
            (home / f"{name}.sh").write_text(probe_script(asked))
            words = ["ip", "netns", "exec", self.spaces.name(name), interpreter, str(home / f"{name}.sh")]
            running[name] = subprocess.Popen(
                words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True
            )
        answers: dict[str, Answer | str] = {}
        for name, process in running.items():
            text, errors = process.communicate()
            assert errors == ""
            assert process.returncode == 0
            answers[name] = parse_answer(text)
        return make_matrix(targets, answers)


def member(
    address: str, *, link: str = "eth1", mtu: int | None = 9000, network: str = NETWORK, role: str = "eth1"
) -> Membership:
    return Membership(network, address, link, role, mtu, None, carries_llt=role.startswith("llt"))


def path_with(ping: str | Path, home: Path) -> Path:
    """A directory whose ``ping`` is this one."""
    place = home / "bin"
    place.mkdir(exist_ok=True)
    (place / "ping").unlink(missing_ok=True)
    (place / "ping").symlink_to(ping)
    return place


def pings() -> Mapping[str, str]:
    """The kinds of ping(8) that are here."""
    found = {"iputils": shutil.which("ping"), "busybox": shutil.which("busybox")}
    return {name: os.path.realpath(path) for name, path in found.items() if path}


@contextmanager
def wires() -> Iterator[Wires]:
    spaces = Spaces()
    try:
        yield Wires(spaces)
    finally:
        spaces.remove()
