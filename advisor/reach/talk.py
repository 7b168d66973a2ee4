"""Many peers at once: each is asked by a generator of its own, and one poll loop serves them all.

A talk yields what to ask next and is sent what was heard; what it returns is its result. So ten silent peers take as
long as one, and how to search is written without a socket in sight.
"""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Callable, Generator, Sequence
from typing import Generic, TypeVar

import msgspec

from advisor.reach.echo import Echo, words_of
from advisor.reach.icmp import Said
from advisor.reach.records import Peer

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
