"""Who is at the other end of this host's links, and what the path to each of them carries.

Sockets are opened here and nowhere else: ICMP echoes that must not be fragmented. Everything that is read from the
host (routes, mounts, sysfs) goes through `advisor.host`. Sizes are those of whole IP packets in bytes, as an MTU is.

    peers = peers_of(host, facts, links={"eth1"}, extra=["192.0.2.2"])
    before = gate(peers)                                       # who answers at the present MTU
    …                                                          # the change
    after = await_gate(host, {"eth1"}, before.passing, 9000, window_seconds=20)
    if not after.held: …                                       # roll back; after.failing says which peer and why
"""

from __future__ import annotations

from advisor.reach.addresses import Peer, Peers, Reach, Unprobeable
from advisor.reach.path import measure
from advisor.reach.path_check import Awaited, NotPassed, Passed, PathState, await_gate, gate, passes, up_links
from advisor.reach.peers import PeerFactsRead, group_peers, named_peers, peers_of, read_peer_facts

__all__ = [
    "Awaited",
    "NotPassed",
    "Passed",
    "PathState",
    "Peer",
    "PeerFactsRead",
    "Peers",
    "Reach",
    "Unprobeable",
    "await_gate",
    "gate",
    "group_peers",
    "measure",
    "named_peers",
    "passes",
    "peers_of",
    "read_peer_facts",
    "up_links",
]
