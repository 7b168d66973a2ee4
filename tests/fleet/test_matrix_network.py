"""The probe of the matrix by real pings between network namespaces: a switch, its ports, and what they drop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.fleet.compare.path_findings import judge_matrix
from advisor.fleet.compare.path_matrix import Matrix, MatrixCell
from tests.fleet.wires import Wires, member, pings, wires
from tests.reach.space import can_have_namespaces

PINGS = pings()


@pytest.fixture(scope="module")
def _namespaces() -> None:
    if not can_have_namespaces():
        pytest.skip("needs root and network namespaces")


@pytest.fixture
def network(_namespaces: None) -> Iterator[Wires]:
    with wires() as made:
        yield made


def ping(kind: str) -> str:
    if kind not in PINGS:
        pytest.skip(f"{kind} ping is not installed")
    return PINGS[kind]


def between(found: Matrix, source: str, target: str) -> MatrixCell:
    return next(cell for cell in found.cells if (cell.source, cell.target) == (source, target))


def ids(found: Matrix) -> list[str]:
    return [one.id for one in judge_matrix(found)]


def test_iputils_on_a_network_with_one_of_each(network: Wires, tmp_path: Path) -> None:
    """a and b are jumbo, c's link stays at 1500, and so does the trunk behind d's switch."""
    for name, mtu, trunk in (("a", 9000, 9000), ("b", 9000, 9000), ("c", 1500, 9000), ("d", 9000, 1500)):
        network.add(name, mtu=mtu, trunk=trunk)
    found = network.matrix(ping("iputils"), tmp_path, interpreter="dash")
    assert [one.received for one in found.cells] == [6] * 12
    assert all(one.rtt_us and one.rtt_us[0] <= one.rtt_us[1] <= one.rtt_us[2] for one in found.cells)
    assert (between(found, "a", "b").path_mtu, between(found, "a", "b").limit) == (9000, "link")
    assert (between(found, "a", "c").path_mtu, between(found, "a", "c").wanted) == (1500, 1500)
    # Linux lets a VLAN tag more through a port in one direction.
    assert [between(found, *pair).path_mtu in (1500, 1504) for pair in (("a", "d"), ("d", "a"))] == [True, True]
    assert between(found, "b", "d").limit == "silent"
    assert ids(found) == ["fleet.path-black-hole"]
    assert judge_matrix(found)[0].hosts == ("d",)


@pytest.mark.repeats(1)
@pytest.mark.parametrize("kind", ["iputils", "busybox"])
def test_a_node_that_drops_echoes(network: Wires, tmp_path: Path, kind: str) -> None:
    for name in "abc":
        network.add(name)
    network.spaces.set("c", "net/ipv4/icmp_echo_ignore_all", "1")
    found = network.matrix(ping(kind), tmp_path)
    assert between(found, "c", "a").answered
    assert between(found, "a", "c").error == "no answer to 6 echoes"
    assert ids(found) == ["fleet.drops-echoes"]


def test_a_router_between_that_says_too_big(network: Wires, tmp_path: Path) -> None:
    """Proxy ARP: both nodes think that they are in one network, and a router with a smaller MTU is between them."""
    spaces = network.spaces
    spaces.add("a", "b", "router")
    spaces.wire(("a", "eth1"), ("router", "ra"), mtu=9000)
    spaces.wire(("b", "eth1"), ("router", "rb"), mtu=9000)
    for name, link, address in (("a", "ra", "198.51.100.1"), ("b", "rb", "198.51.100.2")):
        spaces.address(name, "eth1", f"{address}/24")
        spaces.address("router", link, "198.51.100.254/32")
        spaces.run("router", f"ip route add {address}/32 dev {link}{' mtu lock 1400' if name == 'b' else ''}")
        spaces.set("router", f"net/ipv4/conf/{link}/proxy_arp", "1")
        spaces.set("router", f"net/ipv4/neigh/{link}/proxy_delay", "0")
        network.members[name] = [member(address)]
    spaces.set("router", "net/ipv4/ip_forward", "1")
    found = network.matrix(ping("iputils"), tmp_path)
    there = between(found, "a", "b")
    assert (there.path_mtu, there.limit, there.said_mtu, there.limited_by) == (1400, "too-big", 1400, "198.51.100.254")
    assert "fleet.path-mtu-smaller" in ids(found)
