"""``advisor probe`` on a real kernel, over paths that lose packets, against ping(8).

Nothing of the guest's own links is used: three namespaces in a row, wired with veth, lossy by netem.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from .guest import Machine

pytestmark = pytest.mark.thorough

PATH = """
set -e
for space in here router there; do ip netns add probe-$space; ip -n probe-$space link set lo up; done
ip -n probe-here link add h0 mtu 9000 type veth peer name r0 mtu 9000 netns probe-router
ip -n probe-router link add r1 mtu 1400 type veth peer name t0 mtu 1400 netns probe-there
add() { ip -n probe-$1 addr add $3 dev $2; ip -n probe-$1 addr add $4 dev $2 nodad; ip -n probe-$1 link set $2 up; }
add here h0 198.51.100.1/25 2001:db8:a::1/64
add router r0 198.51.100.2/25 2001:db8:a::2/64
add router r1 198.51.100.129/25 2001:db8:b::1/64
add there t0 198.51.100.130/25 2001:db8:b::2/64
ip netns exec probe-router sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
ip -n probe-here route add default via 198.51.100.2
ip -n probe-here -6 route add default via 2001:db8:a::2
ip -n probe-there route add default via 198.51.100.129
ip -n probe-there -6 route add default via 2001:db8:b::1
"""
AWAY = "for space in here router there; do ip netns del probe-$space; done"
FOUR, SIX = "198.51.100.130", "2001:db8:b::2"


@pytest.fixture(scope="module")
def path(guest: Machine) -> Iterator[Machine]:
    guest.run(PATH, timeout=60).check()
    yield guest
    guest.run(AWAY, timeout=60)


def probed(machine: Machine, *words: str, code: int = 0) -> dict[str, dict[str, Any]]:
    command = f"ip netns exec probe-here advisor probe --json {' '.join(words)}"
    done = machine.run(command, timeout=180)
    assert done.rc == code, f"{done.stdout}\n{done.stderr}"
    return {one["address"]: one for one in json.loads(done.stdout)["peers"]}


def answered(machine: Machine, address: str, size: int) -> bool:
    """Whether ping gets a packet of this size there and back; three tries."""
    data = size - (48 if ":" in address else 28)
    command = f"ip netns exec probe-here ping -n -c 3 -i 0.2 -W 1 -M do -s {data} {address}"
    return " 0 received" not in machine.run(command, timeout=60).stdout


def test_it_finds_what_ping_finds(path: Machine) -> None:
    found = probed(path, FOUR, SIX, "198.51.100.2", "--mtu", "1400")
    assert {one: (peer["path_mtu"], peer["limit"]) for one, peer in found.items()} == {
        FOUR: (1400, "too-big"),
        SIX: (1400, "too-big"),
        "198.51.100.2": (9000, "link"),
    }
    assert answered(path, "198.51.100.2", 9000)
    for address in (FOUR, SIX):
        assert answered(path, address, 1400)
        assert not answered(path, address, 1401)
    assert probed(path, FOUR, "--mtu", "1401", code=1)[FOUR]["carries"] is False


def test_lost_packets_do_not_narrow_a_path(path: Machine) -> None:
    """One echo in three is lost, either way; the limits are those of the path without loss."""
    for space, link in (("here", "h0"), ("there", "t0")):
        path.run(f"tc -n probe-{space} qdisc add dev {link} root netem loss 18%", timeout=30).check()
    try:
        found = probed(path, FOUR, SIX, "198.51.100.2", "--count", "40")
    finally:
        for space, link in (("here", "h0"), ("there", "t0")):
            path.run(f"tc -n probe-{space} qdisc del dev {link} root", timeout=30).check()
    assert {one: (peer["path_mtu"], peer["limit"]) for one, peer in found.items()} == {
        FOUR: (1400, "too-big"),
        SIX: (1400, "too-big"),
        "198.51.100.2": (9000, "link"),
    }
    assert 4 <= found[FOUR]["lost"] <= 24
    assert found[FOUR]["sent"] == 40


def test_a_slow_path_is_not_a_silent_one(path: Machine) -> None:
    path.run("tc -n probe-router qdisc add dev r0 root netem delay 400ms", timeout=30).check()
    try:
        found = probed(path, FOUR, "--count", "3")[FOUR]
    finally:
        path.run("tc -n probe-router qdisc del dev r0 root", timeout=30).check()
    assert (found["path_mtu"], found["limit"], found["lost"]) == (1400, "too-big", 0)
    assert found["rtt_ms_min"] >= 400
