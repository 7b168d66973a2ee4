"""What BeeGFS goes over on this host, as its files and links say: RDMA passes the sockets, TCP does not.

``connUseRDMA`` is true by default (BeeGFS configuration files); RDMA is then used between hosts whose links have an
RDMA port, and TCP else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from advisor.facts.host_facts import Facts
from advisor.facts.links import Link
from advisor.rules.workload import DeclaredWorkload, Transport

if TYPE_CHECKING:
    from advisor.facts.beegfs import BeegfsService

_DATA = ("storage", "meta", "client")


def is_beegfs(workload: DeclaredWorkload | None) -> bool:
    """Whether the declared workload is BeeGFS, by the word of the trade or by one of its measured patterns."""
    return workload is not None and (workload.name or "").partition(".")[0] == "beegfs"


def has_rdma(link: Link) -> bool:
    """Whether a link has an RDMA port: InfiniBand, or a RoCE port that the kernel lists."""
    return link.kind == "infiniband" or "rdma_device" in link.detail


def is_rdma_off(service: BeegfsService) -> bool:
    """Whether a configuration file says connUseRDMA = false."""
    return service.settings.get("connUseRDMA", "").lower() in {"false", "0", "no"}


def transport_seen(facts: Facts) -> Transport | None:
    """``rdma`` or ``tcp``; None on a host without BeeGFS, or whose links are not known."""
    services = [one for one in (facts.beegfs.services if facts.beegfs else ()) if one.kind in _DATA]
    ports = [link for link in facts.links if link.kind != "loopback"]
    if not services or not ports:
        return None
    is_off = all(map(is_rdma_off, services))
    return "tcp" if is_off or not any(map(has_rdma, ports)) else "rdma"


def with_transport_seen(facts: Facts, workload: DeclaredWorkload | None) -> DeclaredWorkload | None:
    """A declared BeeGFS workload with the transport of this host: its name alone says RDMA."""
    if workload is None or not is_beegfs(workload) or workload.transport == "local":
        return workload
    seen = transport_seen(facts)
    return msgspec.structs.replace(workload, transport=seen) if seen else workload
