"""The gate of a change that can cut a path: who answers before it must answer after it, small and at the new size.

Before an MTU is raised no packet of the new size can leave, so `gate` asks at the present one. Afterwards `await_gate`
asks those who had answered: a small echo, and one as large as their link now carries. Silence before proves nothing
about the change and is not asked for again.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import msgspec

from advisor.host import Host
from advisor.reach.addresses import Peer, Peers, Unprobeable
from advisor.reach.echo import LARGEST, small_size, version_of
from advisor.reach.path import Ask, Heard, Talk, hinted, hold, measure, why_silent

DEADLINE_SECONDS = 2.0
LINK_SECONDS = 30.0
_COPIES = 3
_LEAST_DEADLINE_SECONDS = 0.4
_PAUSE_SECONDS = 0.2

Reason = Literal["no-answer", "unreachable", "silent", "too-big", "way-back", "link", "link-down"]
"""Why a peer does not pass.

``no-answer``    nothing comes back, not even for a small echo
``unreachable``  the same, and somebody says why
``silent``       small ones are answered, this size vanishes without a word
``too-big``      small ones are answered, and somebody says that this size is too big
``way-back``     this size is answered in fragments
``link``         this size does not leave: the MTU of the own link is below it
``link-down``    a link was not up in time, so nobody was asked
"""


class Passed(msgspec.Struct, frozen=True):
    """The peer answered a small echo and one of ``size`` bytes; with ``is_limited``, no more than that."""

    peer: Peer
    size: int
    rtt_ms: float
    is_limited: bool = False


class NotPassed(msgspec.Struct, frozen=True):
    """The peer did not answer ``size`` bytes whole. ``mtu`` and ``by``: which MTU was named, and by whom."""

    peer: Peer
    size: int
    reason: Reason
    why: str
    mtu: int | None = None
    by: str | None = None
    rtt_ms: float | None = None
    """Of the small echo; None where that was not answered either."""


class PathState(msgspec.Struct, frozen=True):
    """Who answers now. A peer that answers less than it was asked for is in both lists."""

    passing: tuple[Passed, ...]
    failing: tuple[NotPassed, ...]
    unprobeable: tuple[Unprobeable, ...] = ()


class Awaited(msgspec.Struct, frozen=True):
    """What became of those who had passed before.

    ``held`` is true where each of them passes; also where there was none, so look at what was asked. ``link_seconds``
    is when each link was up for good, in seconds from the call; None for one that was not. ``rounds`` counts how often
    those that did not pass yet were asked.
    """

    held: bool
    passing: tuple[Passed, ...]
    failing: tuple[NotPassed, ...]
    link_seconds: Mapping[str, float | None]
    waited_seconds: float
    rounds: int


def passes(peer: Peer, size: int, *, deadline_seconds: float = DEADLINE_SECONDS) -> Passed | NotPassed:
    """Does a packet of ``size`` bytes get to the peer and back whole? Asked three times within the deadline.

    Raises PermissionDeniedError where this process may not send echoes.
    """
    return _ask_peers([(peer, size)], deadline_seconds)[0]


def gate(peers: Peers, size: int | None = None, *, deadline_seconds: float = DEADLINE_SECONDS) -> PathState:
    """Which peers pass ``size`` bytes now; without a size, as much as the link to each carries at present. What passes
    of one that answers less is searched for.

    Raises PermissionDeniedError where this process may not send echoes.
    """
    sizes = [(peer, size or peer.mtu or _small_size(peer)) for peer in peers.asked]
    answers = _ask_peers(sizes, deadline_seconds)
    narrow = {one.peer: one.rtt_ms for one in answers if isinstance(one, NotPassed) and one.rtt_ms is not None}
    reached = measure(tuple(narrow), count=1) if narrow else ()
    limited = [Passed(one.peer, one.path_mtu or _small_size(one.peer), narrow[one.peer], True) for one in reached]
    return PathState(
        passing=(*(answer for answer in answers if isinstance(answer, Passed)), *limited),
        failing=tuple(answer for answer in answers if isinstance(answer, NotPassed)),
        unprobeable=peers.unprobeable,
    )


def await_gate(
    host: Host,
    links: Collection[str],
    passing: Sequence[Passed],
    size: int,
    *,
    window_seconds: float,
    link_seconds: float = LINK_SECONDS,
    deadline_seconds: float = DEADLINE_SECONDS,
) -> Awaited:
    """Ask those who passed before until all of them pass again, or the window is over.

    Each is asked at ``size``, or at the MTU that its link now has where that is less (a VLAN whose own MTU stays); a
    neighbour, and one that did not answer its link's MTU, at no more than before. The window begins when all
    ``links`` are up (carrier, and operstate up or unknown), which is awaited for ``link_seconds`` in all, and begins
    again when one of them goes down meanwhile; the call ends after ``link_seconds + window_seconds`` in any case. Give
    only links that were up before the change (`up_links`): one without a cable never comes up. Raises
    PermissionDeniedError as `passes` does.
    """
    wait = _LinkWait(host, links, link_seconds)
    latest = wait.began + link_seconds + window_seconds
    pending = {one.peer: one for one in passing}
    passed: dict[Peer, Passed] = {}
    failing: dict[Peer, NotPassed] = {}
    rounds = 0
    while pending:
        if not wait.until_up():
            failing = {peer: _link_down(one, size, wait.down) for peer, one in pending.items()}
            break
        left = min(wait.up_since + window_seconds, latest) - time.monotonic()
        if left <= 0 and rounds:
            break
        if rounds:
            time.sleep(min(_PAUSE_SECONDS, left))
        sizes = [(peer, _size_now(host, one, size)) for peer, one in pending.items()]
        answers = _ask_peers(sizes, max(min(deadline_seconds, left), _LEAST_DEADLINE_SECONDS))
        passed.update((one.peer, one) for one in answers if isinstance(one, Passed))
        failing = {one.peer: one for one in answers if isinstance(one, NotPassed)}
        pending = {peer: one for peer, one in pending.items() if peer in failing}
        rounds += 1
    return Awaited(
        held=not failing,
        passing=tuple(passed.values()),
        failing=tuple(failing.values()),
        link_seconds=wait.seconds,
        waited_seconds=round(time.monotonic() - wait.began, 3),
        rounds=rounds,
    )


def up_links(host: Host, links: Collection[str]) -> frozenset[str]:
    """Those of the links that have a carrier and are up."""
    return frozenset(link for link in links if _is_up(host, link))


def _is_up(host: Host, link: str) -> bool:
    # A link that is down has no carrier to read: EINVAL.
    carrier = host.read(f"/sys/class/net/{link}/carrier")
    return carrier == "1" and host.read(f"/sys/class/net/{link}/operstate") in ("up", "unknown")


class _LinkWait:
    """Waits for links within one budget, and keeps when each was up."""

    def __init__(self, host: Host, links: Collection[str], budget_seconds: float) -> None:
        self._host = host
        self._links = sorted(links)
        self._budget = budget_seconds
        self.began = time.monotonic()
        self.up_since = self.began
        self.seconds: dict[str, float | None] = dict.fromkeys(self._links)

    @property
    def down(self) -> list[str]:
        return [link for link, seconds in self.seconds.items() if seconds is None]

    def until_up(self) -> bool:
        """True once all links are up, at once where they still are; false when the budget is spent."""
        while not self._look_again():
            if self._budget <= 0:
                return False
            before = time.monotonic()
            time.sleep(min(_PAUSE_SECONDS, self._budget))
            self.up_since = time.monotonic()
            self._budget -= self.up_since - before
        return True

    def _look_again(self) -> bool:
        now = round(time.monotonic() - self.began, 3)
        for link in self._links:
            if not _is_up(self._host, link):
                self.seconds[link] = None
            elif self.seconds[link] is None:
                self.seconds[link] = now
        return not self.down


def _size_now(host: Host, one: Passed, size: int) -> int:
    if one.is_limited or one.peer.role == "neighbour":
        # Not every host of the network need carry more than before; none may lose what it had.
        size = min(size, one.size)
    mtu = host.read_int(f"/sys/class/net/{one.peer.link}/mtu") if one.peer.link else None
    return min(size, mtu) if isinstance(mtu, int) else size


def _small_size(peer: Peer) -> int:
    return small_size(version_of(peer.address))


def _ask_peers(sizes: Sequence[tuple[Peer, int]], deadline_seconds: float) -> tuple[Passed | NotPassed, ...]:
    wanted = dict(sizes)
    return hold(list(wanted), lambda peer: _question_talk(peer, min(wanted[peer], LARGEST), deadline_seconds))


def _question_talk(peer: Peer, size: int, deadline_seconds: float) -> Talk[Passed | NotPassed]:
    """A small echo, then one of the size; each has half of the deadline."""
    spacing = deadline_seconds / 2 / (_COPIES + 1)
    small = min(_small_size(peer), size)
    heard = yield Ask(small, _COPIES, spacing, 2 * spacing)
    if not heard.rtts_ms or small == size:
        return _judge_answer(peer, heard, heard)
    large = yield Ask(size, _COPIES, spacing, 2 * spacing)
    return _judge_answer(peer, heard, large)


def _judge_answer(peer: Peer, small: Heard, heard: Heard) -> Passed | NotPassed:
    if heard.passed:
        return Passed(peer, heard.size, round(min(small.rtts_ms), 3))
    reason: Reason
    if heard.fragment is not None:
        reason = "way-back"
    elif heard.too_big is not None:
        reason = "link" if heard.too_big.by is None else "too-big"
    elif heard.unreachable is not None:
        reason = "unreachable"
    else:
        reason = "silent" if small.rtts_ms else "no-answer"
    return NotPassed(
        peer=peer,
        size=heard.size,
        reason=reason,
        why=_describe_failure(peer, reason, small, heard),
        mtu=hinted(heard),
        by=heard.too_big.by if heard.too_big else None,
        rtt_ms=round(min(small.rtts_ms), 3) if small.rtts_ms else None,
    )


def _describe_failure(peer: Peer, reason: Reason, small: Heard, heard: Heard) -> str:
    size, mtu = heard.size, hinted(heard)
    named = f", MTU {mtu}" if mtu else ""
    if reason == "way-back":
        return f"{peer.address} answers {size} bytes in fragments of {mtu}: its link, or the way back, carries no more"
    if reason == "link":
        return f"{size} bytes do not leave by {peer.link or 'lo'}{named}"
    if not small.rtts_ms or heard.unreachable is not None:
        return f"{peer.address}: {why_silent(heard)}"
    answered = f"{peer.address} answers {small.size} bytes, but not {size}"
    if heard.too_big is not None:
        return f"{answered}: too big, says {heard.too_big.by}{named}"
    return f"{answered}: larger packets are lost without an error"


def _link_down(one: Passed, size: int, links: Sequence[str]) -> NotPassed:
    return NotPassed(one.peer, size, "link-down", f"{one.peer.address} was not asked: {', '.join(links)} is not up")
