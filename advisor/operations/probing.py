"""What peers answer, and over which path MTU."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from advisor.host import live_host
from advisor.reach.peers import Survey, survey


def probe_peers(
    names: Sequence[str] = (),
    *,
    mtu: int | None = None,
    count: int = 5,
    progress: Callable[[str], None] = lambda _: None,
) -> Survey:
    """Return the round-trip time and path MTU to peers, by default to every host that this one is connected to.

    Sends ``count`` small ICMP echoes to each, and larger ones that must not be fragmented; ``mtu`` in bytes is what
    must be carried. Raises UsageError for a name that is none.
    """
    return survey(live_host(), list(names), mtu=mtu, count=count, progress=progress)
