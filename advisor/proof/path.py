"""The way that is measured: over which link, and whether it carries what an arm says it should.

A change of links is only worth measuring where the path to the other end goes over them and carries the new size:
TCP shows no mismatch, it stalls or shrinks its segments, and a figure from such an arm says nothing about the profile.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Sequence

from advisor.errors import CommandError, RefusedError
from advisor.facts.host_facts import Facts
from advisor.host import Host
from advisor.planning.records import Plan
from advisor.proof.records import Arm
from advisor.proof.target import MeasuredTarget
from advisor.reach import Passed, Peers, await_gate, gate, peers_of, up_links
from advisor.reach.addresses import Peer as Other
from advisor.transaction.reachability import links_at_risk

WINDOW_SECONDS = 10.0
"""For the other end to answer again, from the links being up."""
LINK_SECONDS = 30.0
"""For the links to have a carrier again."""
_PAUSE_SECONDS = 0.1
_LARGEST_PACKET_BYTES = 65535
_STORAGE = frozenset({"nfs", "iscsi", "nvme"})


class PathCheck:
    """Asks the other end, after each toggle and before anything is measured, whether the path carries the arm's MTU."""

    def __init__(self, host: Host, links: Iterable[str], passing: Sequence[Passed], window_seconds: float) -> None:
        self._host = host
        self._links = up_links(host, frozenset(links))
        self._passing = tuple(passing)
        self._window_seconds = window_seconds

    @property
    def asked(self) -> tuple[str, ...]:
        """The addresses that are asked."""
        return tuple(one.peer.address for one in self._passing)

    def check(self, arm: Arm) -> None:
        """Wait for carrier, then ask. Raises CommandError that names who does not answer what size."""
        deadline = time.monotonic() + LINK_SECONDS
        while down := self._links - up_links(self._host, self._links):
            if time.monotonic() > deadline:
                raise CommandError(f"arm {arm}: {', '.join(sorted(down))} had no carrier after {LINK_SECONDS:g} s")
            time.sleep(_PAUSE_SECONDS)
        after = await_gate(
            self._host, self._links, self._passing, _LARGEST_PACKET_BYTES, window_seconds=self._window_seconds
        )
        if not after.held:
            why = "; ".join(one.why for one in after.failing)
            raise CommandError(f"the path does not carry arm {arm}: {why}", hint="advisor probe shows what it carries")


def path_check(
    host: Host,
    facts: Facts,
    plan: Plan,
    target: MeasuredTarget,
    say: Callable[[str], None],
    *,
    window_seconds: float = WINDOW_SECONDS,
) -> PathCheck | None:
    """The check for a plan that interrupts links; ``None`` where it does not.

    Who is asked: the peer of ``--peer``, else the storage servers behind these links. Raises RefusedError
    where the measured peer is not reached over them, or does not answer even now.
    """
    links = links_at_risk(plan)
    if not links:
        return None
    extra = [target.peer_address] if target.peer_address else []
    found = peers_of(host, facts, links=links, extra=extra)
    outside = next((one for one in found.unprobeable if one.role == "named"), None)
    if outside is not None:
        raise RefusedError(
            f"--peer {outside.what}: {outside.why}: the effect of this profile cannot show there",
            hint="name the peer's address on the link that is changed, or choose the links with --set links=",
        )
    now = gate(Peers(tuple(peer for peer in found.asked if _is_measured(peer, target))))
    for silent in now.failing:
        if silent.peer.role == "named":
            raise RefusedError(
                f"{silent.why}, and that before anything was changed",
                hint="the peer must answer pings (ICMP echoes) at the present MTU: advisor probe shows what is carried",
            )
    check = PathCheck(host, links, now.passing, window_seconds)
    if check.asked:
        names = ", ".join(check.asked)
        say(f"after each toggle, asked whether the path carries the arm's MTU: {names}")
    else:
        say("nobody beyond these links can be asked whether the path carries the arm's MTU")
    return check


def _is_measured(other: Other, target: MeasuredTarget) -> bool:
    if target.peer_address:
        return other.role == "named"
    if target.file_system in ("nfs", "nfs4"):
        return other.role == "nfs" and target.mount_point in other.why
    return other.role in _STORAGE


def require_other_way_in(host: Host, facts: Facts, plan: Plan, *, force: bool) -> None:
    """Raise RefusedError where the ssh session that this runs in goes over a link that the plan interrupts."""
    links = links_at_risk(plan)
    client = ssh_client() if links and not force else None
    if client is None:
        return
    over = [peer for peer in peers_of(host, facts, links=links, extra=[client]).asked if peer.role == "named"]
    if over:
        raise RefusedError(
            f"the ssh session from {client} that this runs in goes over {over[0].link}, which each toggle interrupts",
            hint="log in over another link or the console; --force does it all the same",
        )


def ssh_client() -> str | None:
    """The address from which the ssh session of this process came; sudo removes it from the environment, but not from
    those of its parents."""
    import psutil

    found = os.environ.get("SSH_CONNECTION")
    for parent in psutil.Process().parents():
        with contextlib.suppress(psutil.Error):
            found = found or parent.environ().get("SSH_CONNECTION")
    return found.split()[0] if found else None
