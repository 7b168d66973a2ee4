"""What LLT carries here: what was seen outranks what is declared, and low-priority links carry heartbeats only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from advisor.facts.host_facts import Facts
from advisor.facts.infoscale_configuration import MIRRORED, SHARED_DISK, SINGLE_NODE, TITLES
from advisor.rules.beegfs_transport import with_transport_seen
from advisor.rules.infoscale import recognised_workload, recognition
from advisor.rules.queries import by_name, links_below
from advisor.rules.workload import DeclaredWorkload, Transport

if TYPE_CHECKING:
    from advisor.facts.llt import LltLink

DATAGRAMS = ("udp", "udp6")
_SAME: Mapping[str, Transport] = {"tcp": "tcp", "rdma": "rdma"}
_PAST_SOCKETS = {"ether": "Ethernet", "rdma": "RDMA"}


def private_links(facts: Facts, *types: str) -> tuple[LltLink, ...]:
    """LLT's links that are not of low priority, of the given types or of all: those that carry mirrored writes."""
    found = facts.llt.links if facts.llt else ()
    return tuple(one for one in found if not one.low_priority and (not types or one.type in types))


def private_carriers(facts: Facts, *types: str) -> tuple[str, ...]:
    """The kernel links under LLT's private links."""
    return tuple(dict.fromkeys(one.link for one in private_links(facts, *types) if one.link is not None))


def heartbeat_only(facts: Facts) -> frozenset[str]:
    """Kernel links, with all that is below them, which carry LLT's low-priority links and none of its private ones."""
    links = by_name(facts)
    lines = facts.llt.links if facts.llt else ()
    low, private = (
        {each.name for one in lines if one.low_priority is is_low and one.link for each in links_below(one.link, links)}
        for is_low in (True, False)
    )
    return frozenset(low - private)


def stays_local(facts: Facts) -> str | None:
    """The configuration, where it is certain by what was seen that no write crosses LLT: single-node, shared-disk."""
    found = recognition(facts, None)
    name = found.configuration if found else None
    return name if name in (SINGLE_NODE, SHARED_DISK) else None


def past_sockets(facts: Facts) -> str | None:
    """``Ethernet`` or ``RDMA`` where writes cross LLT by it alone: no socket, so no socket buffer, has a part in
    them."""
    types = {one.type for one in private_links(facts)}
    words = " and ".join(_PAST_SOCKETS[one] for one in sorted(types & _PAST_SOCKETS.keys()))
    return words if words and types <= _PAST_SOCKETS.keys() and not stays_local(facts) else None


def contradicts_seen(facts: Facts, workload: DeclaredWorkload | None) -> str | None:
    """What was seen where the declared workload says the opposite: that its writes are mirrored to another node."""
    name = stays_local(facts)
    if name is None or workload is None or not workload.is_replicated:
        return None
    return (
        f"Seen: this host is {TITLES[name]}, so no write crosses LLT. The declared workload mirrors its writes, which "
        "contradicts it."
    )


def _is_mirrored(facts: Facts) -> bool:
    """Whether it is certain by what was seen that writes cross LLT."""
    found = recognition(facts, None)
    return found is not None and found.configuration in MIRRORED


def as_seen(facts: Facts, workload: DeclaredWorkload | None) -> DeclaredWorkload | None:
    """The declared workload with what was seen of its path: no mirror where the disks are shared or the node is alone,
    and LLT's transport where the workload is mirrored and names none, or mirroring over LLT is certain."""
    workload = with_transport_seen(facts, workload)
    if workload is None:
        return None
    if workload.is_replicated and stays_local(facts):
        # Storage over the network is another path, and decides for itself.
        transport: Transport | None = None if facts.network_storage else "local"
        return msgspec.structs.replace(workload, replication="none", transport=transport)
    if workload.is_replicated and (workload.transport is None or _is_mirrored(facts)):
        # What all of LLT's private links run over; None where that is none of the three, or several.
        over: set[Transport | None] = {
            "udp" if one.type in DATAGRAMS else _SAME.get(one.type) for one in private_links(facts)
        }
        return msgspec.structs.replace(
            workload, transport=(next(iter(over)) if len(over) == 1 else None) or workload.transport
        )
    known = recognised_workload(facts)
    says_nothing = workload.replication is None and workload.transport is None
    if says_nothing and known is not None and _is_mirrored(facts):
        return msgspec.structs.replace(workload, replication=known.replication, transport=known.transport)
    return workload
