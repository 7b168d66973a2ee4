"""The gate of a change: who answered before answers after it, on wires that do and that do not carry the new size."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.host import live_host
from advisor.reach.addresses import Peer, Peers
from advisor.reach.path_check import Awaited, Passed, PathState, await_gate, gate, up_links
from tests.cases import cases
from tests.reach.space import Spaces
from tests.reach.test_path import bridged, routed
from tests.trees import host_of, make_tree

CASES = cases(__file__)

HASTE = 0.4
WIRED = Peer("192.0.2.2", "gateway", "h0", "default gateway", mtu=1500)
WIRED6 = Peer("2001:db8:a::2", "gateway", "h0", "default gateway", mtu=1500)
BEYOND = Peer("192.0.2.130", "nfs", "h0", "NFS server of /data", mtu=1500)
NOBODY = Peer("192.0.2.77", "named", "h0", "named", mtu=1500)


def before(spaces: Spaces, *peers: Peer, size: int | None = None) -> PathState:
    return spaces.inside("here", lambda: gate(Peers(peers), size, deadline_seconds=HASTE))


def after(spaces: Spaces, passing: tuple[Passed, ...], size: int, *, window: float = 0.5, wait: float = 5) -> Awaited:
    def ask() -> Awaited:
        return await_gate(
            live_host(), {"h0"}, passing, size, window_seconds=window, link_seconds=wait, deadline_seconds=HASTE
        )

    return spaces.inside("here", ask)


def set_mtu(spaces: Spaces, mtu: int, *ends: tuple[str, str]) -> None:
    for space, link in ends:
        spaces.run(space, f"ip link set {link} mtu {mtu}")


def test_a_wire_that_carries_the_new_size(spaces: Spaces) -> None:
    routed(spaces, near=1500, beyond=1500)
    found = before(spaces, WIRED, WIRED6, NOBODY)
    assert [(one.peer, one.size, one.is_limited) for one in found.passing] == [
        (peer, 1500, False) for peer in (WIRED, WIRED6)
    ]
    assert [(one.peer, one.reason, one.rtt_ms) for one in found.failing] == [(NOBODY, "no-answer", None)]
    set_mtu(spaces, 9000, ("here", "h0"), ("router", "r0"))
    awaited = after(spaces, found.passing, 9000)
    assert awaited.held
    assert {one.peer.address: one.size for one in awaited.passing} == {WIRED.address: 9000, WIRED6.address: 9000}
    assert awaited.failing == ()
    assert awaited.rounds == 1
    assert awaited.link_seconds.keys() == {"h0"}


def test_the_other_end_stays_small(spaces: Spaces) -> None:
    routed(spaces, near=1500, beyond=1500)
    found = before(spaces, WIRED, WIRED6)
    set_mtu(spaces, 9000, ("here", "h0"))
    awaited = after(spaces, found.passing, 9000)
    assert not awaited.held
    assert [(one.peer, one.size, one.reason) for one in awaited.failing] == [
        (peer, 9000, "silent") for peer in (WIRED, WIRED6)
    ]


def test_the_other_end_takes_it_but_cuts_its_answer(spaces: Spaces) -> None:
    routed(spaces, near=1500, beyond=1500)
    found = before(spaces, WIRED)
    set_mtu(spaces, 1504, ("here", "h0"))
    (failing,) = after(spaces, found.passing, 1504).failing
    assert (failing.reason, failing.mtu) == ("way-back", 1500)


def test_a_router_says_that_it_is_too_big(spaces: Spaces) -> None:
    routed(spaces, near=1500, beyond=1500)
    found = before(spaces, WIRED, BEYOND)
    assert len(found.passing) == 2
    set_mtu(spaces, 9000, ("here", "h0"), ("router", "r0"))
    awaited = after(spaces, found.passing, 9000)
    assert not awaited.held
    assert [one.peer for one in awaited.passing] == [WIRED]
    (failing,) = awaited.failing
    assert (failing.peer, failing.reason, failing.by, failing.mtu) == (BEYOND, "too-big", "192.0.2.2", 1500)


def test_who_answers_less_than_its_link_carries_keeps_that(spaces: Spaces) -> None:
    """A path that is broken for large packets already: the change must not cut the rest of it."""
    bridged(spaces, middle=1500)
    peer = Peer("192.0.2.3", "named", "h0", "named", mtu=9000)
    found = before(spaces, peer)
    assert [(one.size, one.is_limited) for one in found.passing] == [(1500, True)]
    assert [one.reason for one in found.failing] == ["silent"]
    assert after(spaces, found.passing, 9000).held
    spaces.run("bridge", "ip link set p1 mtu 1400")
    assert [(one.size, one.reason) for one in after(spaces, found.passing, 9000).failing] == [(1500, "silent")]
    spaces.run("there", "ip link set t0 down")
    assert [one.reason for one in after(spaces, found.passing, 9000).failing] == ["no-answer"]


def test_a_link_on_top_keeps_its_own_mtu(spaces: Spaces) -> None:
    """A child of the changed link is asked as much as it carries itself."""
    routed(spaces, near=9000, beyond=1500)
    spaces.run("here", "ip link add m0 link h0 mtu 1500 type macvlan mode bridge")
    spaces.run("here", "ip link set m0 up")
    spaces.address("here", "m0", "192.0.2.3/25")
    child = Peer("192.0.2.2", "named", "m0", "named", mtu=1500)
    found = before(spaces, child)
    (passed,) = after(spaces, found.passing, 9000).passing
    assert passed.size == 1500


def test_a_link_that_comes_back_late(spaces: Spaces) -> None:
    """The window begins when the link is up, however long that took."""
    routed(spaces, near=1500, beyond=1500)
    found = before(spaces, WIRED)
    spaces.run("here", "ip link set h0 down")

    def up_later(ready: Callable[[], None]) -> None:
        ready()
        time.sleep(1)
        subprocess.run(["ip", "link", "set", "h0", "up"], check=True)
        time.sleep(60)

    with spaces.running("here", up_later):
        awaited = after(spaces, found.passing, 1500, window=0.9, wait=20)
    assert awaited.held
    assert (awaited.link_seconds["h0"] or 0) > 0.5


def test_a_link_that_does_not_come_back(spaces: Spaces) -> None:
    routed(spaces, near=1500, beyond=1500)
    found = before(spaces, WIRED)
    spaces.run("router", "ip link set r0 down")
    awaited = after(spaces, found.passing, 1500, wait=0.3)
    assert not awaited.held
    assert (awaited.link_seconds, awaited.rounds) == ({"h0": None}, 0)
    assert [one.reason for one in awaited.failing] == ["link-down"]


def test_the_window_begins_again_when_the_link_goes_down_meanwhile(spaces: Spaces) -> None:
    """As where a driver resets itself a moment after the write."""
    routed(spaces, near=1500, beyond=1500)
    found = before(spaces, WIRED)

    def flap(ready: Callable[[], None]) -> None:
        subprocess.run(["ip", "address", "del", "192.0.2.2/25", "dev", "r0"], check=True)
        ready()
        time.sleep(0.3)
        subprocess.run(["ip", "link", "set", "r0", "down"], check=True)
        time.sleep(1.3)
        subprocess.run(["ip", "address", "add", "192.0.2.2/25", "dev", "r0"], check=True)
        subprocess.run(["ip", "link", "set", "r0", "up"], check=True)
        time.sleep(60)

    with spaces.running("router", flap):
        awaited = after(spaces, found.passing, 1500, window=1.2, wait=20)
    assert awaited.held
    assert awaited.rounds > 1
    assert (awaited.link_seconds["h0"] or 0) > 0.5


@pytest.mark.parametrize(("carrier", "operstate", "is_up"), CASES["when a link is up"])
def test_when_a_link_is_up(tmp_path: Path, carrier: str | None, operstate: str | None, is_up: bool) -> None:
    given = {"carrier": carrier, "operstate": operstate}
    files = {f"/sys/class/net/eth1/{name}": f"{value}\n" for name, value in given.items() if value is not None}
    host = host_of(make_tree(tmp_path, {"/proc/version": "Linux\n", **files}))
    assert up_links(host, ["eth1"]) == ({"eth1"} if is_up else set())
