"""Paths that the kernel makes: routers with a smaller link, bridges that drop without a word, and the way back."""

from __future__ import annotations

import random

import pytest

from advisor.reach.addresses import Peer, Reach
from advisor.reach.path import measure
from advisor.reach.path_check import NotPassed, Passed, passes
from tests.reach.space import Spaces
from tests.reach.wire import Request, far_end

V4, V6 = "192.0.2.130", "2001:db8:b::2"


def routed(spaces: Spaces, *, near: int = 9000, beyond: int = 9000) -> None:
    """here (h0) — router (r0, r1) — there (t0). ``near`` and ``beyond`` are the MTUs on both sides of the router."""
    spaces.add("here", "router", "there")
    spaces.wire(("here", "h0"), ("router", "r0"), near)
    spaces.wire(("router", "r1"), ("there", "t0"), beyond)
    spaces.address("here", "h0", "192.0.2.1/25", "2001:db8:a::1/64")
    spaces.address("router", "r0", "192.0.2.2/25", "2001:db8:a::2/64")
    spaces.address("router", "r1", "192.0.2.129/25", "2001:db8:b::1/64")
    spaces.address("there", "t0", f"{V4}/25", f"{V6}/64")
    spaces.set("router", "net/ipv4/ip_forward", "1")
    spaces.set("router", "net/ipv6/conf/all/forwarding", "1")
    spaces.run("here", "ip route add default via 192.0.2.2")
    spaces.run("here", "ip -6 route add default via 2001:db8:a::2")
    spaces.run("there", "ip route add default via 192.0.2.129")
    spaces.run("there", "ip -6 route add default via 2001:db8:b::1")


def bridged(spaces: Spaces, *, middle: int) -> None:
    """here (h0) — a bridge whose far port has the MTU ``middle`` — there (t0); both ends have 9000."""
    spaces.add("here", "bridge", "there")
    spaces.wire(("here", "h0"), ("bridge", "p0"), 9000)
    spaces.wire(("there", "t0"), ("bridge", "p1"), 9000)
    spaces.run("bridge", "ip link add br0 type bridge")
    for port in ("p0", "p1"):
        spaces.run("bridge", f"ip link set {port} master br0")
    spaces.run("bridge", f"ip link set p1 mtu {middle}")
    spaces.run("bridge", "ip link set br0 up")
    spaces.address("here", "h0", "192.0.2.1/24", "2001:db8::1/64")
    spaces.address("there", "t0", "192.0.2.3/24", "2001:db8::3/64")


def peer(address: str, link: str | None = "h0", mtu: int | None = 9000) -> Peer:
    return Peer(address, "named", link, "named", mtu=mtu)


def reached(spaces: Spaces, *peers: Peer, space: str = "here") -> tuple[Reach, ...]:
    return spaces.inside(space, lambda: measure(peers, count=3))


def test_a_wide_path_ends_at_the_own_link(spaces: Spaces) -> None:
    routed(spaces)
    for one in reached(spaces, peer(V4), peer(V6), peer(V4, None, None)):
        assert (one.path_mtu, one.limit, one.lost, one.said_mtu) == (9000, "link", 0, None)
        assert one.rtt_ms_min is not None
        assert one.rtt_ms_median is not None
        assert 0 < one.rtt_ms_min <= one.rtt_ms_median


@pytest.mark.parametrize("beyond", [1280, 1400, 4000])
def test_routers_say_what_they_carry(spaces: Spaces, beyond: int) -> None:
    routed(spaces, beyond=beyond)
    for one, router in zip(reached(spaces, peer(V4), peer(V6)), ("192.0.2.2", "2001:db8:a::2"), strict=True):
        assert (one.path_mtu, one.limit, one.limited_by, one.said_mtu) == (beyond, "too-big", router, beyond)


def test_routers_that_say_nothing_of_it(spaces: Spaces) -> None:
    """As behind a firewall that drops all ICMP but echoes; the kernel needs a route for what it says."""
    routed(spaces, beyond=1500)
    spaces.run("router", "ip route add prohibit default")
    spaces.run("router", "ip rule add from all iif lo ipproto icmp lookup 77")
    spaces.run("router", "ip route add blackhole default table 77")
    (one,) = reached(spaces, peer(V4, mtu=1501))
    assert (one.path_mtu, one.limit, one.limited_by) == (1500, "silent", None)


def test_bridges_drop_without_a_word(spaces: Spaces) -> None:
    bridged(spaces, middle=1500)
    reaches = reached(spaces, peer("192.0.2.3"), peer("2001:db8::3"), peer(link_local(spaces, "there", "t0") + "%h0"))
    assert [(one.answered, one.path_mtu, one.limit) for one in reaches] == [(True, 1500, "silent")] * 3


def link_local(spaces: Spaces, space: str, link: str) -> str:
    line = spaces.run(space, f"ip -o -6 address show dev {link} scope link")
    return line.split()[3].partition("/")[0]


def test_the_way_back_is_narrower(spaces: Spaces) -> None:
    """A veth takes in a few bytes more than its MTU: the echo arrives, the reply has to be cut."""
    routed(spaces)
    spaces.run("router", "ip link set r0 mtu 1500")
    four, six = reached(spaces, peer("192.0.2.2"), peer("2001:db8:a::2"))
    for one in (four, six):
        assert (one.path_mtu, one.limit, one.limited_by) == (1500, "way-back", None)
    # Each fragment but the last carries a multiple of eight bytes.
    assert (four.said_mtu, six.said_mtu) == (1500, 1496)


def test_peers_that_are_not_there(spaces: Spaces) -> None:
    routed(spaces)
    spaces.run("there", "ip link set t0 down")
    nobody, beyond, gone = reached(spaces, peer("192.0.2.77"), peer(V4), peer("198.51.100.1"))
    assert not nobody.answered | beyond.answered | gone.answered
    assert (nobody.path_mtu, nobody.limit) == (None, "unknown")
    assert gone.why_not == "network unreachable (192.0.2.2)"


def test_a_link_that_is_down(spaces: Spaces) -> None:
    routed(spaces)
    spaces.run("here", "ip link set h0 down")
    four, six = reached(spaces, peer(V4), peer(V6))
    assert not four.answered | six.answered
    assert four.why_not == "network is unreachable (this host)"


def test_a_third_of_all_packets_is_lost(spaces: Spaces) -> None:
    """The path is as wide as it is, and what is lost is counted."""
    lottery = random.Random(3)

    def lossy(request: Request) -> list[bytes]:
        return [request.reply()] if request.size <= 1500 and lottery.random() > 1 / 3 else []

    with far_end(spaces, lossy, "192.0.2.9"):
        (one,) = spaces.inside("near", lambda: measure([peer("192.0.2.9", "n0", 1501)], count=10))
    assert (one.path_mtu, one.limit) == (1500, "silent")
    assert 1 <= one.lost <= 8
    assert one.sent == 10


def test_the_address_that_is_asked_from(spaces: Spaces) -> None:
    seen: list[str] = []

    def only_from_second(request: Request) -> list[bytes]:
        seen.append(request.source)
        return [request.reply()] if request.source == "192.0.2.5" else []

    with far_end(spaces, only_from_second, "192.0.2.9"):
        spaces.address("near", "n0", "192.0.2.5/24")
        there = Peer("192.0.2.9", "llt", "n0", "LLT", source="192.0.2.5", mtu=9000)
        assert spaces.inside("near", lambda: measure([there], count=1))[0].path_mtu == 9000


def test_the_link_that_is_asked_over(spaces: Spaces) -> None:
    """Two links into one network: the peer behind the second is not behind the one that the route takes."""
    spaces.add("here", "left", "right")
    for space in ("left", "right"):
        spaces.wire(("here", f"to-{space}"), (space, "e0"))
    spaces.address("left", "e0", "192.0.2.10/24")
    spaces.address("right", "e0", "192.0.2.20/24")
    spaces.address("here", "to-left", "192.0.2.1/24")
    spaces.address("here", "to-right", "192.0.2.2/24")

    def ask(link: str) -> Passed | NotPassed:
        return passes(peer("192.0.2.20", link, 1500), 1500, deadline_seconds=0.4)

    assert isinstance(spaces.inside("here", lambda: ask("to-left")), NotPassed)
    assert isinstance(spaces.inside("here", lambda: ask("to-right")), Passed)
