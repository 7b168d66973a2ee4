"""How far away a peer is, and the largest packet that gets there and back whole.

The search is a talk (`advisor.reach.path`): it yields sizes and is sent what was heard. A size counts as not passing
only when every copy of it stayed unanswered, or somebody said that it is too big; the verdict is asked for again before
it is given, so that lost packets do not make a path look narrow.
"""

from __future__ import annotations

import contextlib
import math
import select
import statistics
import time
from collections.abc import Callable, Generator, Sequence
from typing import Generic, TypeVar

import msgspec

from advisor.reach.addresses import Limit, Peer, Reach
from advisor.reach.echo import LARGEST, Echo, Said, least_size, small_size, version_of, words_of

# Many peers at once: each is asked by a generator of its own, and one poll loop serves them all.

T = TypeVar("T")


class Ask(msgspec.Struct, frozen=True):
    """Up to ``copies`` echoes of ``size`` bytes, one every ``spacing_seconds``, until ``enough`` are answered.

    It ends without an answer ``wait_seconds`` after the last copy, or as soon as somebody says that it is too big.
    """

    size: int
    copies: int
    spacing_seconds: float
    wait_seconds: float
    enough: int = 1


class Heard(msgspec.Struct, frozen=True):
    """What became of an `Ask`: round-trip times of the replies, and what was said instead.

    ``fragment`` is the size of the fragments that a reply came in, None where they came whole or none came.
    """

    size: int
    sent: int
    rtts_ms: tuple[float, ...] = ()
    fragment: int | None = None
    too_big: Said | None = None
    unreachable: Said | None = None

    @property
    def passed(self) -> bool:
        """It went there and came back, whole."""
        return bool(self.rtts_ms) and self.fragment is None


Talk = Generator[Ask, Heard, T]


class _Line(Generic[T]):
    """One talk on its socket, or on none where the socket could not be opened: then nothing gets through."""

    def __init__(self, peer: Peer, talk: Talk[T]) -> None:
        self._talk = talk
        self.result: list[T] = []
        self.echo: Echo | None = None
        self._cannot: Said | None = None
        try:
            self.echo = Echo(peer)
        except OSError as error:
            self._cannot = Said("unreachable", words_of(error))
        self._begin_ask(next(talk))

    @property
    def is_over(self) -> bool:
        return bool(self.result)

    def _begin_ask(self, ask: Ask) -> None:
        self._ask = ask
        self._heard = Heard(ask.size, 0)
        self._open: set[int] = set()
        self._is_refused = False
        self.due = 0.0

    def tick(self) -> None:
        """Send what is due, and go on to the next question once this one is answered or given up."""
        while not self.is_over and (self._is_settled() or time.monotonic() >= self.due):
            if not self._is_settled() and self._heard.sent < self._ask.copies:
                outcome = self.echo.send(self._ask.size) if self.echo else self._cannot
                sent = self._heard.sent + 1
                self._heard = msgspec.structs.replace(self._heard, sent=sent)
                self.due = time.monotonic() + (
                    self._ask.wait_seconds if sent == self._ask.copies else self._ask.spacing_seconds
                )
                if isinstance(outcome, int):
                    self._open.add(outcome)
                    # Sending may have brought errors about earlier copies to light.
                    self.listen()
                elif outcome is not None:
                    # This host itself does not send it: a further copy would fare no better.
                    self._is_refused = True
                    self._note_error(outcome)
                continue
            # On a busy host the reply may lie there by now, only not have been read.
            self.listen()
            try:
                self._begin_ask(self._talk.send(self._heard))
            except StopIteration as end:
                self.result.append(end.value)

    def _is_settled(self) -> bool:
        heard = self._heard
        if self._is_refused or heard.too_big is not None or len(heard.rtts_ms) >= self._ask.enough:
            return True
        return heard.sent == self._ask.copies and not self._open

    def listen(self) -> None:
        for one in self.echo.heard() if self.echo else ():
            if one.sequence not in self._open:
                continue
            self._open.discard(one.sequence)
            if isinstance(one, Said):
                self._note_error(one)
            else:
                heard = self._heard
                fragment = max((size for size in (heard.fragment, one.fragment) if size), default=None)
                self._heard = msgspec.structs.replace(heard, rtts_ms=(*heard.rtts_ms, one.rtt_ms), fragment=fragment)

    def _note_error(self, said: Said) -> None:
        name = "too_big" if said.kind == "too-big" else "unreachable"
        self._heard = msgspec.structs.replace(self._heard, **{name: said})

    def close(self) -> None:
        if self.echo is not None:
            self.echo.close()


def hold(peers: Sequence[Peer], talk: Callable[[Peer], Talk[T]]) -> tuple[T, ...]:
    """Hold a talk with each peer, all at the same time; the results in the order of the peers.

    Raises PermissionDeniedError where this process may not send echoes.
    """
    with contextlib.ExitStack() as stack:
        lines: list[_Line[T]] = []
        for peer in peers:
            lines.append(_Line(peer, talk(peer)))
            stack.callback(lines[-1].close)
        _serve_lines(lines)
        return tuple(result for line in lines for result in line.result)


def _serve_lines(lines: Sequence[_Line[T]]) -> None:
    poll = select.poll()
    by_fd = {line.echo.fileno(): line for line in lines if line.echo is not None}
    for fd in by_fd:
        poll.register(fd, select.POLLIN)
    while True:
        for line in lines:
            line.tick()
        dues = [line.due for line in lines if not line.is_over]
        if not dues:
            return
        for fd, _ in poll.poll(max(min(dues) - time.monotonic(), 0) * 1000):
            by_fd[fd].listen()


DEFAULT_COUNT = 5
MAX_COUNT = 100

_FIRST_COPIES = 5
_FIRST_SPACING_SECONDS = 0.25
_FIRST_WAIT_SECONDS = 1.0
_ECHO_SPACING_SECONDS = 0.1
_LEAST_WAIT_SECONDS = 0.2
_LEAST_SPACING_SECONDS = 0.05
_MOST_WAIT_SECONDS = 1.5
_WAIT_ROUND_TRIPS = 2
_COPIES = 3
_MOST_COPIES = 10
_CHANCE_OF_ALL_LOST = 0.001

# Where paths end in practice: jumbo frames, FDDI, Ethernet, PPPoE, tunnels of several kinds, what IPv6 and IPv4 demand.
_PLATEAUS = (9216, 9000, 8900, 4352, 1500, 1492, 1480, 1460, 1450, 1430, 1420, 1400, 1380, 1280, 1006, 576)
_ETHERNET = 1500


class ProbePace(msgspec.Struct, frozen=True):
    """How to ask for one size, after what the small echoes have shown of this path."""

    copies: int
    wait_seconds: float

    def ask(self, size: int) -> Ask:
        # Many copies take no longer than the usual ones, so that a lossy path is not a slow one too.
        spacing = max(self.wait_seconds * _COPIES / self.copies, _LEAST_SPACING_SECONDS)
        return Ask(size, self.copies, spacing, 2 * self.wait_seconds)


class SearchEnd(msgspec.Struct, frozen=True):
    """The end of a search: ``size`` passes, and ``beyond`` is what was heard of more; None where more cannot leave."""

    size: int
    beyond: Heard | None
    is_gone: bool = False
    """The peer answered no small echo either in the end."""


def measure(peers: Sequence[Peer], *, count: int = DEFAULT_COUNT) -> tuple[Reach, ...]:
    """Round-trip time from ``count`` small echoes, and the path MTU, of all peers at the same time.

    Takes two seconds or so; some ten where large packets are lost without an error. Raises PermissionDeniedError where
    this process may not send echoes.
    """
    return hold(peers, lambda peer: explore(peer, count))


def explore(peer: Peer, count: int) -> Talk[Reach]:
    """The talk behind `measure`."""
    version = version_of(peer.address)
    top = min(peer.mtu or LARGEST, LARGEST)
    small = max(min(small_size(version), top), least_size(version))
    # The first one also waits for the neighbour to be found; that is no part of the round trip.
    heard = yield Ask(small, _FIRST_COPIES, _FIRST_SPACING_SECONDS, _FIRST_WAIT_SECONDS)
    if heard.rtts_ms or count > _FIRST_COPIES:
        heard = yield Ask(small, count, _ECHO_SPACING_SECONDS, _FIRST_WAIT_SECONDS, enough=count)
    if not heard.rtts_ms:
        return Reach(
            peer=peer,
            rtt_ms_min=None,
            rtt_ms_median=None,
            lost=heard.sent,
            sent=heard.sent,
            path_mtu=None,
            limit="unknown",
            limited_by=None,
            answered=False,
            why_not=why_silent(heard),
        )
    found = yield from search(small, top, pace_for(heard))
    return _measured_reach(peer, heard, found)


def pace_for(heard: Heard) -> ProbePace:
    """More copies where small echoes were lost, so that losing all of them stays unlikely; longer waits where slow."""
    lost = 1 - len(heard.rtts_ms) / heard.sent
    copies = math.ceil(math.log(_CHANCE_OF_ALL_LOST) / math.log(lost)) if lost else _COPIES
    wait = _LEAST_WAIT_SECONDS + _WAIT_ROUND_TRIPS * max(heard.rtts_ms) / 1000
    return ProbePace(copies=min(max(copies, _COPIES), _MOST_COPIES), wait_seconds=min(wait, _MOST_WAIT_SECONDS))


def search(small: int, top: int, pace: ProbePace) -> Generator[Ask, Heard, SearchEnd]:
    """The largest size from ``small`` (which passes) to ``top`` that passes while one byte more does not."""
    passing = small
    failed: dict[int, Heard] = {}
    while True:
        end = min((size for size in failed if size > passing), default=top + 1)
        if passing + 1 < end:
            heard = yield pace.ask(next_size(passing, end, failed))
        elif end > top or hinted(failed[end]):
            return SearchEnd(passing, failed.get(end))
        elif named := [one for size, one in failed.items() if size > passing and hinted(one) == passing]:
            # Routers limit how often they say it; somebody did, and named this very size.
            return SearchEnd(passing, named[0])
        else:
            # Silence is also what lost packets leave behind: ask again, and whether anybody is there at all.
            alive = yield pace.ask(small)
            heard = yield pace.ask(end)
            if not alive.rtts_ms and not heard.rtts_ms:
                return SearchEnd(passing, failed[end], is_gone=True)
            if not heard.passed:
                return SearchEnd(passing, heard)
        if heard.passed:
            passing = max(passing, heard.size)
        else:
            failed[heard.size] = heard


def next_size(passing: int, end: int, failed: dict[int, Heard]) -> int:
    """A size between one that passes and one that does not (``end``), both exclusive; the likeliest limit first."""
    if not failed:
        return end - 1
    hint = hinted(failed[end]) if end in failed else None
    if hint and passing < hint < end:
        return hint
    if passing == hint or passing in _PLATEAUS:
        # Most paths end just there.
        return passing + 1
    between = [size for size in _PLATEAUS if passing < size < end]
    if _ETHERNET in between:
        return _ETHERNET
    return between[len(between) // 2] if between else (passing + end) // 2


def hinted(heard: Heard) -> int | None:
    """The size that somebody named instead: a next-hop MTU, or the size of the fragments that came back."""
    return heard.too_big.mtu if heard.too_big else heard.fragment


def why_silent(heard: Heard) -> str:
    """Why there was no reply: what somebody said, or that nobody said anything."""
    said = heard.unreachable or heard.too_big
    if said is None:
        if heard.sent == 1:
            return f"no answer to 1 echo of {heard.size} bytes"
        return f"no answer to {heard.sent} echoes of {heard.size} bytes"
    if said.by is None:
        return f"{said.words} (this host)"
    return f"{said.words} ({said.by})"


def _measured_reach(peer: Peer, heard: Heard, found: SearchEnd) -> Reach:
    limit = limit_of(found)
    said = found.beyond.too_big if found.beyond else None
    return Reach(
        peer=peer,
        rtt_ms_min=round(min(heard.rtts_ms), 3),
        rtt_ms_median=round(statistics.median(heard.rtts_ms), 3),
        lost=heard.sent - len(heard.rtts_ms),
        sent=heard.sent,
        path_mtu=None if limit == "unknown" else found.size,
        limit=limit,
        limited_by=(said.by if said else None) if limit == "too-big" else None,
        answered=True,
        why_not=_why_unknown(found) if limit == "unknown" else None,
        said_mtu=hinted(found.beyond) if found.beyond and limit in ("too-big", "way-back") else None,
    )


def limit_of(found: SearchEnd) -> Limit:
    """Which of the five ends a search found."""
    beyond = found.beyond
    if beyond is None or (beyond.too_big is not None and beyond.too_big.by is None):
        return "link"
    if beyond.too_big is not None:
        return "too-big"
    if beyond.fragment is not None:
        return "way-back"
    return "unknown" if found.is_gone or beyond.unreachable else "silent"


def _why_unknown(found: SearchEnd) -> str:
    beyond = found.beyond
    if beyond is not None and beyond.unreachable is not None:
        return f"{found.size} bytes pass; of {beyond.size}: {why_silent(beyond)}"
    return f"stopped answering while it was asked; {found.size} bytes had passed"
