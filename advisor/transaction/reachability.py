"""Asking the other ends before and after a change of links, and nothing else than what passed before.

Joins a plan (which links it puts at risk) with ``advisor.reach`` (who is there, and who answers).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from advisor.errors import CommandError, RefusedError
from advisor.host import Host
from advisor.planning.records import Plan

if TYPE_CHECKING:
    from advisor.reach import NotPassed

WINDOW_SECONDS = 10.0
"""For everybody to answer again, from the links being up."""

_LARGEST_PACKET_BYTES = 65535

Ask = Callable[[], int]


def gate_for(host: Host, plan: Plan, named: Sequence[str], say: Callable[[str], None]) -> Ask | None:
    """Ask everybody beyond the links that ``plan`` puts at risk now; gives what asks those who answered once more, and
    returns how many did. Where nobody answers, the links' broadcast addresses and all-nodes groups are asked.

    ``named`` are addresses that must answer. None where no link is at risk. Raises UsageError for a name that means no
    host, RefusedError where a named peer does not answer even before the change.
    """
    links = links_at_risk(plan)
    if not links:
        if named:
            raise RefusedError("--peer: this plan changes no link", hint="leave --peer out")
        return None
    from advisor.reach import await_gate, gate, group_peers, peers_of, read_peer_facts, up_links

    facts = read_peer_facts(host)
    peers = peers_of(host, facts, links=links, extra=named)
    for one in peers.unprobeable:
        if one.role == "named":
            raise RefusedError(f"--peer {one.what}: {one.why}", hint="name one that these links lead to, or none")
    before = gate(peers)
    _refuse_silent(before.failing)
    silent = [one.why for one in before.failing if one.rtt_ms is None]
    if not before.passing:
        before = gate(group_peers(host, facts, links))
    up = up_links(host, links)
    answering = [
        f"{one.peer.address} ({one.size} bytes at most)" if one.is_limited else one.peer.address
        for one in before.passing
    ]
    say(_summarize_answers(answering, silent))

    def ask() -> int:
        # As large as each link now carries.
        after = await_gate(host, up, before.passing, _LARGEST_PACKET_BYTES, window_seconds=WINDOW_SECONDS)
        for link, seconds in sorted(after.link_seconds.items()):
            if seconds:
                say(f"{link}: up after {seconds:.1f} s")
        if not after.held:
            raise CommandError(
                "; ".join(one.why for one in after.failing) or "somebody who answered before does not answer any more",
                hint="advisor probe shows what each path carries",
            )
        if after.passing:
            sizes = sorted({one.size for one in after.passing})
            say(f"{len(after.passing)} of {len(before.passing)} answer again, at {_join_words(sizes)} bytes")
        return len(after.passing)

    return ask


def links_at_risk(plan: Plan) -> frozenset[str]:
    """The links that the plan may interrupt."""
    return frozenset(change.tunable.split(":")[1] for change in plan.changes if change.risk == "link")


def _refuse_silent(failing: Iterable[NotPassed]) -> None:
    for one in failing:
        if one.peer.role == "named":
            raise RefusedError(
                f"--peer: {one.why}, and that before anything was changed",
                hint="leave it out, or mend the path first: advisor probe shows what it carries",
            )


def _summarize_answers(answering: Sequence[str], silent: Sequence[str]) -> str:
    parts = [
        "no peer answers over these links, nor an echo to all on them: none can confirm afterwards that the path still "
        "works; --peer ADDRESS names one to ask"
    ]
    if answering:
        names = f"{_join_words(answering[:6])}{', …' if len(answering) > 6 else ''}"
        parts = [f"these answer over these links: {names}"]
    if silent:
        names = "; ".join(silent[:6])
        parts.append(f"{len(silent)} do not, and will not be asked again: {names}")
    return "; ".join(parts)


def _join_words(words: Sequence[object]) -> str:
    return ", ".join(str(word) for word in words)
