"""Echoes on a real wire: what counts as a reply, what does not, and who may send any."""

from __future__ import annotations

import select
import time
from collections.abc import Sequence

import pytest

from advisor.errors import PermissionDeniedError
from advisor.reach.addresses import Peer
from advisor.reach.echo import Echo, Reply, Said
from advisor.reach.path import Ask, Heard, Talk, hold, measure
from tests.reach.space import Spaces
from tests.reach.wire import Request, far_end

NOBODY = 65534
GROUPS = "net/ipv4/ping_group_range"
PEER = Peer("192.0.2.9", "named", "n0", "named", mtu=9000)


def ask_once(peers: Sequence[Peer], *asks: Ask) -> tuple[Heard, ...]:
    """What was heard of the last of these, by each peer."""

    def talk(_: Peer) -> Talk[Heard]:
        for ask in asks:
            heard = yield ask
        return heard

    return hold(peers, talk)


def honest(request: Request) -> list[bytes]:
    return [request.reply()]


def heard_of(spaces: Spaces, behave: object, *asks: Ask, peer: Peer = PEER) -> Heard:
    with far_end(spaces, behave, peer.address):  # type: ignore[arg-type]
        return spaces.inside("near", lambda: ask_once([peer], *asks))[0]


SMALL = Ask(84, 2, 0.05, 0.1)


@pytest.mark.parametrize("size", [28, 33, 34, 35, 84, 9000])
def test_sizes_with_little_room_for_data(spaces: Spaces, size: int) -> None:
    heard = heard_of(spaces, honest, Ask(size, 1, 0, 1))
    assert heard.passed
    assert len(heard.rtts_ms) == 1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda request: request.reply(data=request.data[:-1]),
        lambda request: request.reply(data=request.data + b"x"),
        lambda request: request.reply(data=request.data[:-1] + b"?"),
        lambda request: request.reply(data=b""),
        lambda request: request.reply(source="192.0.2.77"),
        lambda request: request.reply(identifier=request.identifier ^ 1),
        lambda request: request.reply(sequence=request.sequence ^ 0x100),
        lambda request: request.packet,
        lambda request: b"E" + bytes(40),
    ],
    ids=[
        "cut",
        "longer",
        "changed",
        "empty",
        "from another",
        "to another",
        "of another",
        "the request itself",
        "garbage",
    ],
)
def test_what_is_no_reply(spaces: Spaces, spoil: object) -> None:
    heard = heard_of(spaces, lambda request: [spoil(request)], SMALL)  # type: ignore[operator]
    assert (heard.rtts_ms, heard.sent) == ((), 2)


def test_a_ping_socket_takes_replies_of_its_peer_only(spaces: Spaces) -> None:
    """The kernel hands it those of others, too, where their identifier is the same."""
    with far_end(spaces, lambda request: [request.reply(source="192.0.2.77")], PEER.address):
        spaces.set("near", GROUPS, "0 65535")
        (heard,) = spaces.inside("near", lambda: ask_once([PEER], SMALL))
    assert heard.rtts_ms == ()


def test_errors_about_other_packets_are_not_ours(spaces: Spaces) -> None:
    def spoof(request: Request) -> list[bytes]:
        errors = []
        # The identifier, and the sequence number.
        for at in (24, 26):
            quoted = request.packet[:at] + bytes([request.packet[at] ^ 0xFF]) + request.packet[at + 1 :]
            other = Request(0, request.source, request.target, 0, 0, b"", quoted, True)
            errors += [other.too_big(576), other.prohibited()]
        return [*errors, request.reply()]

    heard = heard_of(spaces, spoof, Ask(84, 1, 0, 5))
    assert heard.passed
    assert heard.too_big is heard.unreachable is None


def test_a_refusal_on_the_way_does_not_stop_the_next_copy(spaces: Spaces) -> None:
    """As while a neighbour is not found yet: an error first, the reply after it."""

    def behave(request: Request) -> list[bytes]:
        return [request.prohibited()] if request.number == 0 else [request.reply()]

    heard = heard_of(spaces, behave, Ask(84, 3, 0.05, 1))
    assert heard.passed
    assert heard.unreachable is not None
    assert heard.unreachable.words == "communication administratively prohibited"


@pytest.mark.parametrize("range_of_groups", ["1 0", "0 65535"], ids=["raw socket", "ping socket"])
def test_an_error_about_an_earlier_echo_does_not_keep_the_next_from_leaving(
    spaces: Spaces, range_of_groups: str
) -> None:
    """The kernel holds it against the socket, and would have the next send fail."""

    def ask() -> tuple[int | Said, list[Reply | Said]]:
        echo = Echo(PEER)
        echo.send(84)
        poll = select.poll()
        poll.register(echo.fileno(), select.POLLIN)
        assert poll.poll(10_000) == [(echo.fileno(), select.POLLERR)]
        return echo.send(84), echo.heard()

    with far_end(spaces, lambda request: [request.prohibited()], PEER.address):
        spaces.set("near", GROUPS, range_of_groups)
        second, heard = spaces.inside("near", ask)
    assert second == 2
    assert [one.sequence for one in heard if isinstance(one, Said)][:1] == [1]


def test_a_packet_that_cannot_leave_the_own_link(spaces: Spaces) -> None:
    heard = heard_of(spaces, honest, Ask(9001, 3, 5, 5))
    assert heard.too_big is not None
    assert (heard.too_big.by, heard.too_big.mtu, heard.sent) == (None, 9000, 1)


def test_the_kernels_memory_of_a_smaller_path_is_not_heeded(spaces: Spaces) -> None:
    def narrow_once(request: Request) -> list[bytes]:
        return [request.too_big(1400)] if request.number == 0 else [request.reply()]

    big = Ask(9000, 1, 0, 1)
    with far_end(spaces, narrow_once, PEER.address):
        assert spaces.inside("near", lambda: ask_once([PEER], big))[0].too_big
        assert "mtu 1400" in spaces.run("near", f"ip route get {PEER.address}")
        assert spaces.inside("near", lambda: ask_once([PEER], big))[0].passed


@pytest.mark.parametrize("range_of_groups", ["1 0", "0 65535"], ids=["raw socket", "ping socket"])
def test_both_kinds_of_socket_give_the_same(spaces: Spaces, range_of_groups: str) -> None:
    def behave(request: Request) -> list[bytes]:
        return [request.too_big(1400)] if request.size > 1400 else [request.reply()]

    with far_end(spaces, behave, PEER.address):
        spaces.set("near", GROUPS, range_of_groups)
        (reach,) = spaces.inside("near", lambda: measure([PEER], count=2))
    assert (reach.path_mtu, reach.limit, reach.limited_by, reach.lost) == (1400, "too-big", "192.0.2.254", 0)


def test_an_ordinary_user_whose_group_may_not(spaces: Spaces) -> None:
    spaces.add("near")
    spaces.set("near", GROUPS, "1 0")
    with pytest.raises(PermissionDeniedError) as denied:
        spaces.inside("near", lambda: measure([Peer("127.0.0.1", "named", "lo", "named")]), uid=NOBODY)
    assert "ping_group_range" in denied.value.message
    assert denied.value.exit_code == 6


def test_a_reply_that_is_read_late_is_a_reply(spaces: Spaces) -> None:
    """As on a host that is too busy to let us run: it came in time, and lies there."""

    def talk(peer: Peer) -> Talk[Heard]:
        if peer.address == "192.0.2.8":
            yield Ask(84, 1, 0, 0.3)
            time.sleep(0.5)
        return (yield Ask(84, 1, 0, 0.3 if peer.address == "192.0.2.8" else 0.6))

    def late(request: Request) -> list[bytes]:
        if request.number > 0:
            time.sleep(0.4)
        return [request.reply()] if request.target == "192.0.2.9" else []

    peers = [Peer(address, "named", "n0", "named") for address in ("192.0.2.8", "192.0.2.9")]
    with far_end(spaces, late, *[peer.address for peer in peers]):
        heard = spaces.inside("near", lambda: hold(peers, talk))
    assert [one.passed for one in heard] == [False, True]
