"""All peers of a host, or those whom the user names, measured: what `advisor probe` is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from advisor.errors import RefusedError, UsageError
from advisor.host import Host
from advisor.reach.icmp import LARGEST
from advisor.reach.path import MAX_COUNT, measure
from advisor.reach.peers import named_peers, peers_of, read_peer_facts
from advisor.reach.records import Peers, Reach, Unprobeable

LEAST_MTU = 68
"""The least that IPv4 allows a link to carry (RFC 791)."""


class Survey(msgspec.Struct, frozen=True):
    """The paths to all peers. ``mtu`` is the size in bytes that they are wanted to carry, None where none is."""

    reaches: tuple[Reach, ...]
    unprobeable: tuple[Unprobeable, ...]
    mtu: int | None

    def carries(self, reach: Reach) -> bool | None:
        """Whether the path carries packets of the wanted size; None where no size is wanted."""
        return None if self.mtu is None else reach.path_mtu is not None and reach.path_mtu >= self.mtu

    @property
    def is_carried(self) -> bool:
        """No peer fails to carry the wanted size; true where none is wanted."""
        return not any(self.carries(reach) is False for reach in self.reaches)


def survey(host: Host, names: Sequence[str], *, mtu: int | None, count: int, progress: Callable[[str], None]) -> Survey:
    """Measure the path to each peer: those who are named, else all that the host talks to.

    Raises UsageError for a name or number that makes no sense, RefusedError where there is nobody to ask, and
    PermissionDeniedError where this process may not send echoes.
    """
    if mtu is not None and not LEAST_MTU <= mtu <= LARGEST:
        raise UsageError(f"--mtu {mtu}: expected {LEAST_MTU} to {LARGEST} bytes", hint="--mtu 9000")
    if not 1 <= count <= MAX_COUNT:
        raise UsageError(f"--count {count}: expected 1 to {MAX_COUNT}", hint="--count 10")
    facts = read_peer_facts(host)
    peers = named_peers(host, facts, names) if names else peers_of(host, facts)
    if not peers.asked:
        raise RefusedError(_describe_nobody(peers), hint="name somebody: advisor probe ADDRESS")
    if len(peers.asked) > 1:
        progress(f"asking {len(peers.asked)} peers ...")
    else:
        progress(f"asking {peers.asked[0].address} ...")
    return Survey(measure(peers.asked, count=count), peers.unprobeable, mtu)


def _describe_nobody(peers: Peers) -> str:
    message = "there is nobody to ask: no default gateway, no LLT node over IP, no NFS, iSCSI or NVMe over IP in use"
    left = "; ".join(f"{one.what}: {one.why}" for one in peers.unprobeable)
    return f"{message} ({left})" if left else message
