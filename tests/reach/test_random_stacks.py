"""Random stacks of links: no MTU that is applied to one of them loses a peer that answered before."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.reach.space import Spaces, advisor

SIZES = (1200, 1280, 1400, 1500, 4000, 9000)


class Pair(NamedTuple):
    """Who asks whom: a space, an address in another."""

    space: str
    address: str


def has_kind(spaces: Spaces, kind: str, words: str) -> bool:
    """Whether this kernel makes links of a kind; the lab's guest has those that a small kernel lacks."""
    try:
        spaces.run("here", f"ip link add {kind}0 {words}")
    except AssertionError:
        return False
    spaces.run("here", f"ip link del {kind}0")
    return True


class Stack:
    """Links in the space ``here`` over one or two wires to ``there``, with all that may answer beyond them."""

    def __init__(self, spaces: Spaces, chance: random.Random) -> None:
        self.spaces, self.chance = spaces, chance
        self.names: list[str] = []
        self.pairs: list[Pair] = []
        spaces.add("here", "there", "guest")
        size = chance.choice((1500, 4000, 9000))
        spaces.wire(("here", "h0"), ("there", "t0"), mtu=size)
        ends = ("h0", "t0")
        self.names.append("h0")
        if chance.random() < 0.5 and has_kind(spaces, "bond", "type bond"):
            ends = self._bond(size)
        lowest = ends
        if chance.random() < 0.5 and has_kind(spaces, "vlan", "link h0 type vlan id 9"):
            ends = self._over(ends, "v", "link {} name {} type vlan id 7")
        is_port = chance.random() < 0.7
        if is_port:
            ends = self._bridge(ends[0]), ends[1]
        if chance.random() < 0.3 and (lowest[1] != ends[1] or not is_port):
            self._address(*lowest, "198.51.100")
        if chance.random() < 0.3:
            ends = self._over(ends, "m", "link {} name {} type macvlan mode bridge")
        self._address(*ends, "192.0.2")
        for pair in self.pairs:
            spaces.run(pair.space, f"ping -c 1 -W 2 {pair.address}")

    def _size(self, link: str, space: str = "here") -> None:
        """Keep the kernel's MTU, or set one that the stack may or may not carry."""
        if self.chance.random() < 0.4:
            size = self.chance.choice(SIZES[3:])
            below = [self.mtus()[name] for name in self.names]
            self.spaces.run(space, f"ip link set {link} mtu {size if link == 'br0' else min(size, *below)}")

    def _bond(self, size: int) -> tuple[str, str]:
        mode = self.chance.choice(("active-backup", "balance-xor"))
        self.spaces.wire(("here", "h1"), ("there", "t1"), mtu=size)
        for space, name in (("here", "h"), ("there", "t")):
            self.spaces.run(space, f"ip link add {name}b type bond mode {mode} miimon 100")
            for port in (f"{name}0", f"{name}1"):
                self.spaces.run(space, f"ip link set {port} down")
                self.spaces.run(space, f"ip link set {port} master {name}b")
            self.spaces.run(space, f"ip link set {name}b mtu {size} up")
        self.names += ["h1", "hb"]
        return "hb", "tb"

    def _over(self, ends: tuple[str, str], letter: str, words: str) -> tuple[str, str]:
        made = (f"h{letter}", f"t{letter}")
        for space, below, name in zip(("here", "there"), ends, made, strict=True):
            if letter == "m" and space == "there":
                return made[0], below
            self.spaces.run(space, f"ip link add {words.format(below, name)}")
            self.spaces.run(space, f"ip link set {name} up")
        self._size(made[0])
        self.names.append(made[0])
        return made

    def _bridge(self, port: str) -> str:
        run = self.spaces.run
        run("here", "ip link add br0 type bridge")
        run("here", f"ip link set {port} master br0")
        run("here", "ip link set br0 up")
        self._size("br0")
        if self.chance.random() < 0.7:
            self.spaces.wire(("here", "g0"), ("guest", "eth0"), mtu=self.chance.choice(SIZES[3:]))
            run("here", "ip link set g0 master br0")
            self.spaces.address("guest", "eth0", "192.0.2.3/24")
            self.pairs += [Pair("here", "192.0.2.3"), Pair("guest", "192.0.2.2")]
            self.names.append("g0")
        if self.chance.random() < 0.4:
            run("here", "ip tuntap add tap0 mode tap")
            run("here", "ip link set tap0 master br0 up")
            self.names.append("tap0")
        self.names.append("br0")
        return "br0"

    def _address(self, near: str, far: str, network: str) -> None:
        self.spaces.address("here", near, f"{network}.1/24")
        self.spaces.address("there", far, f"{network}.2/24")
        self.pairs.insert(0, Pair("here", f"{network}.2"))
        if network == "192.0.2" and self.chance.random() < 0.5:
            self.spaces.address("here", near, "2001:db8::1/64")
            self.spaces.address("there", far, "2001:db8::2/64")
            self.pairs.append(Pair("here", "2001:db8::2"))

    def mtus(self) -> dict[str, int]:
        read = "grep . /sys/class/net/{0}/mtu"
        return {name: int(self.spaces.run("here", read.format(name)).strip()) for name in self.names}

    def answered(self, asked: Sequence[tuple[Pair, int]]) -> list[bool]:
        """Whether packets of so many bytes get to each and back whole; all are asked at once."""
        words = [
            f"ip netns exec {self.spaces.name(pair.space)} "
            f"ping -q -M do -s {size - (48 if ':' in pair.address else 28)} -c 3 -i 0.2 -W 1 {pair.address}"
            for pair, size in asked
        ]
        pings = [subprocess.Popen(line.split(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for line in words]
        return [b" 0% packet loss" in ping.communicate()[0] for ping in pings]

    def carried(self) -> dict[Pair, int]:
        """The largest size that each pair answers; 0 for none."""
        asked = [(pair, size) for pair in self.pairs for size in SIZES]
        passed = [one for one, is_whole in zip(asked, self.answered(asked), strict=True) if is_whole]
        return {pair: max((size for other, size in passed if other == pair), default=0) for pair in self.pairs}

    def leaves_at(self, pair: Pair) -> int:
        """The MTU of the link that leads to the address: more is refused by the sender itself."""
        words = self.spaces.run(pair.space, f"ip route get {pair.address}").split()
        link = words[words.index("dev") + 1]
        return int(self.spaces.run(pair.space, f"cat /sys/class/net/{link}/mtu"))


@pytest.mark.repeats(2)
@pytest.mark.parametrize("seed", range(60))
def test_no_mtu_of_a_stack_loses_a_peer(spaces: Spaces, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    stack = Stack(spaces, chance)
    carried = stack.carried()
    told = [f"{stack.mtus()} {carried}"]
    for number in range(3):
        before = stack.mtus()
        link, size, force = chance.choice(stack.names), chance.choice(SIZES), chance.random() < 0.4
        words = [f"link:{link}:mtu={size}", "-y", "--runtime-only", *(("--force",) if force else ())]
        store = tmp_path / str(number)
        done = advisor(spaces, "here", store, "apply", *words)
        told.append(f"{words}: {done.returncode} {stack.mtus()}\n{done.stdout}{done.stderr}")
        story = "\n".join(told)
        assert done.returncode in (0, 3, 4), story
        if done.returncode:
            assert stack.mtus() == before, story
        # A guest's frames to others are judged by a scan of the plan's outcome, which --force overrules.
        meant = [pair for pair, most in carried.items() if most and (pair.space == "here" or not force)]
        asked = [(pair, min(carried[pair], stack.leaves_at(pair))) for pair in meant]
        lost = [one for one, is_whole in zip(asked, stack.answered(asked), strict=True) if not is_whole]
        assert not lost, f"no longer answered: {lost}\n{story}"
        if not done.returncode:
            advisor(spaces, "here", store, "rollback")
            assert stack.mtus() == before, story
    assert stack.carried() == carried
