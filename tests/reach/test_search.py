"""The search for the path MTU against simulated paths: no sockets, no clock, every kind of limit and any loss."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.reach.addresses import Peer, Reach
from advisor.reach.echo import Said
from advisor.reach.path import Ask, Heard, ProbePace, SearchEnd, explore, limit_of, pace_for, search

SMALL = 84
ROUTER = "192.0.2.254"
PEER = Peer("192.0.2.9", "named", "eth1", "named", mtu=9000)
Path = Callable[[int], Heard]


def echo(size: int) -> Heard:
    return Heard(size, 1, (0.1,))


def nothing(size: int) -> Heard:
    return Heard(size, 3)


def too_big(size: int, mtu: int | None, by: str | None = ROUTER) -> Heard:
    return Heard(size, 1, too_big=Said("too-big", "too big", by, mtu))


def fragments(size: int, mtu: int) -> Heard:
    return Heard(size, 1, (0.1,), fragment=mtu)


def silent(limit: int) -> Path:
    return lambda size: echo(size) if size <= limit else nothing(size)


def saying(limit: int, hint: int | None) -> Path:
    return lambda size: echo(size) if size <= limit else too_big(size, hint)


def found(path: Path, top: int = 9000) -> tuple[SearchEnd, list[int]]:
    """The end of a search, and every size that it asked."""
    asked: list[int] = []
    talk = search(SMALL, top, ProbePace(3, 0.25))
    ask = next(talk)
    while True:
        asked.append(ask.size)
        try:
            ask = talk.send(path(ask.size))
        except StopIteration as end:
            return end.value, asked


def test_what_a_router_names_is_tried_and_one_byte_more() -> None:
    end, asked = found(saying(1400, 1400))
    assert (end.size, limit_of(end)) == (1400, "too-big")
    assert asked == [9000, 1400, 1401]


@given(st.integers(SMALL, 9000), st.integers(SMALL + 1, 9000))
def test_silence_is_found_to_the_byte(limit: int, top: int) -> None:
    end, asked = found(silent(limit), top)
    assert end.size == min(limit, top)
    assert limit_of(end) == ("link" if limit >= top else "silent")
    assert len(asked) <= 25


@given(st.integers(SMALL, 9000), st.none() | st.integers(0, 70000))
def test_a_router_that_names_nonsense_is_not_believed(limit: int, hint: int | None) -> None:
    end, asked = found(saying(limit, hint))
    assert end.size == limit
    assert limit_of(end) == ("link" if limit == 9000 else "too-big")
    assert len(asked) <= 30


@given(st.integers(SMALL, 9000))
def test_a_router_that_says_it_once_only(limit: int) -> None:
    said: list[int] = []

    def path(size: int) -> Heard:
        if size <= limit:
            return echo(size)
        said.append(size)
        return too_big(size, limit) if len(said) == 1 else nothing(size)

    end, _ = found(path)
    assert end.size == limit
    assert limit_of(end) == ("link" if limit == 9000 else "too-big")


@given(st.integers(600, 8000))
def test_answers_in_fragments(limit: int) -> None:
    end, _ = found(lambda size: echo(size) if size <= limit else fragments(size, limit - limit % 8))
    assert (end.size, limit_of(end)) == (limit, "way-back")


def test_the_own_link_is_smaller_than_it_was_thought_to_be() -> None:
    end, asked = found(lambda size: echo(size) if size <= 1500 else too_big(size, 1500, by=None), top=65535)
    assert (end.size, limit_of(end)) == (1500, "link")
    assert asked == [65535, 1500, 1501]


@given(st.integers(SMALL, 9000), st.integers(0, 2**32), st.floats(0, 0.3))
def test_loss_never_makes_a_path_wider(limit: int, seed: int, chance: float) -> None:
    lottery = random.Random(seed)

    def path(size: int) -> Heard:
        return echo(size) if size <= limit and lottery.random() >= chance else nothing(size)

    end, _ = found(path)
    assert end.size <= limit


def test_a_false_silence_is_asked_again() -> None:
    seen: list[int] = []

    def path(size: int) -> Heard:
        seen.append(size)
        return nothing(size) if seen.count(size) == 1 and size in (9000, 1501) else echo(size)

    end, asked = found(path)
    assert (end.size, limit_of(end)) == (9000, "link")
    assert asked.count(1501) == asked.count(9000) == 2


def test_a_peer_that_falls_silent_meanwhile() -> None:
    asked: list[int] = []

    def path(size: int) -> Heard:
        asked.append(size)
        return echo(size) if len(asked) < 4 and size <= 1500 else nothing(size)

    end, _ = found(path)
    assert end.is_gone
    assert limit_of(end) == "unknown"


@pytest.mark.parametrize(("sent", "replies", "copies"), [(5, 5, 3), (5, 4, 5), (10, 5, 10), (100, 99, 3), (10, 1, 10)])
def test_more_copies_where_small_ones_are_lost(sent: int, replies: int, copies: int) -> None:
    assert pace_for(Heard(SMALL, sent, (0.2,) * replies)).copies == copies


def reported(path: Path, count: int = 5, peer: Peer = PEER) -> tuple[Reach, list[Ask]]:
    talk = explore(peer, count)
    asks = [next(talk)]
    while True:
        heard = path(asks[-1].size)
        if heard.rtts_ms and asks[-1].enough > 1:
            heard = Heard(heard.size, asks[-1].copies, (0.2, 0.1, 0.4, 0.3))
        try:
            asks.append(talk.send(heard))
        except StopIteration as end:
            return end.value, asks


@pytest.mark.parametrize("mtu", [68, 84, 85, 576])
def test_links_that_carry_less_than_an_echo_of_ping(mtu: int) -> None:
    reach, asks = reported(silent(mtu), peer=Peer("192.0.2.9", "named", "eth1", "named", mtu=mtu))
    assert (reach.path_mtu, reach.limit) == (mtu, "link")
    assert max(ask.size for ask in asks) == mtu
