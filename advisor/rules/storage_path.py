"""Whether the declared work crosses the network, and by which links: declared, else seen of the storage path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from advisor.facts.host_facts import Facts
from advisor.rules.workload import DeclaredWorkload

if TYPE_CHECKING:
    from advisor.facts.network_storage import Kind, NetworkStorage

ISCSI_KINDS = frozenset({"iscsi", "iscsi-target"})
_TITLES: Mapping[Kind, str] = {
    "iscsi": "over iSCSI",
    "iscsi-target": "exported over iSCSI",
    "nvme": "over NVMe fabrics",
    "nfs": "over NFS",
    "cifs": "over SMB",
    "beegfs": "on BeeGFS",
    "ceph": "on Ceph",
    "lustre": "on Lustre",
    "glusterfs": "on GlusterFS",
}
_NAMED = 4

TRANSPORT_GAINS = (
    "+28 % (RealLife: 8 KiB, 60 % random), +40 % (random 8 KiB), +63 % and +208 % (sequential 32 KiB, half and all "
    "reads)"
)
"""What the iSCSI article's step over the links gave its four loads, in requests a second."""


def crosses_network(facts: Facts, workload: DeclaredWorkload | None) -> bool | None:
    """Whether the data of the declared work crosses the network: what is declared decides, else the storage that is
    seen. None where neither shows it."""
    if workload is None:
        return None
    if workload.is_replicated or workload.transport is not None:
        return workload.uses_network
    return True if facts.network_storage else None


def crosses_iscsi(facts: Facts, workload: DeclaredWorkload | None) -> bool:
    """Whether it crosses iSCSI sessions or targets of this host that are seen. A declared transport other than TCP
    says that it does not."""
    if workload is None or not crosses_network(facts, workload) or workload.transport in ("udp", "rdma"):
        return False
    return any(one.kind in ISCSI_KINDS for one in facts.network_storage)


def seen(facts: Facts) -> tuple[str, ...]:
    """What carries data over the network, in words: ``sdb, sdc over iSCSI (eth1, eth2)``."""
    found: dict[Kind, list[NetworkStorage]] = {}
    for one in facts.network_storage:
        found.setdefault(one.kind, []).append(one)
    return tuple(_describe_kind(kind, those) for kind, those in found.items())


def _describe_kind(kind: Kind, those: list[NetworkStorage]) -> str:
    more = len(those) - _NAMED
    names = ", ".join(one.name for one in those[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    links = carriers_of(those)
    return f"{names} {_TITLES[kind]}" + (f" ({', '.join(links)})" if links else "")


def carriers(facts: Facts) -> tuple[str, ...]:
    """The links that are known to carry storage over the network, each once."""
    return carriers_of(facts.network_storage)


def carriers_of(those: tuple[NetworkStorage, ...] | list[NetworkStorage]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for one in those for name in one.links))
