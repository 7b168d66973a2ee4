"""Questions that several rules ask of the facts: which link is physical, what is stacked on it, whose CPU is that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from advisor.facts.host_facts import Facts
from advisor.facts.network.link_stack import leader_of
from advisor.facts.network.links import Link
from advisor.facts.processors.cpulist import parse_list
from advisor.facts.processors.numa import near_cpus
from advisor.host.numbers import is_count
from advisor.rules.workload import DeclaredWorkload

if TYPE_CHECKING:
    from advisor.facts.remote.network_storage import Kind, NetworkStorage

JUMBO_FRAMES = "jumbo-frames"
NETWORK_BUFFERS = "socket-buffers-8m"
LLT_FLOW_CONTROL = "llt-highwater-doubled"
NUMA_PINNING = "numa-pinning"
ISCSI = "iscsi"
ISCSI_MULTIPATH = "iscsi-multipath"
BEEGFS_NVME = "beegfs-nvme"

EBS_MODEL = "Amazon Elastic Block Store"

# What a VPC carries: EC2 9001, Google 8896. Azure's own value is not documented well enough to name one, and no page of
# Oracle's was read.
_CLOUD_MTU: Mapping[str, int | None] = {"aws": 9001, "gcp": 8896, "azure": None}
_PARAVIRTUAL = frozenset({"vif", "xen_netfront", "hv_netvsc", "virtio_net"})


def split_ids(text: str | None) -> frozenset[int]:
    """The members of a kernel list string; none where it is unknown or no list."""
    try:
        return frozenset(parse_list(text or ""))
    except ValueError:
        return frozenset()


def sysctl_numbers(facts: Facts, key: str) -> tuple[int, ...]:
    """The integers of a sysctl, none where the kernel lacks it or it holds anything else."""
    words = facts.sysctl.get(key, "").split()
    return tuple(map(int, words)) if words and all(is_count(word) for word in words) else ()


def sysctl_number(facts: Facts, key: str) -> int | None:
    """The one integer of a sysctl; None where the kernel lacks it or it holds anything else."""
    values = sysctl_numbers(facts, key)
    return values[0] if len(values) == 1 else None


def leading_count(text: str | None) -> int | None:
    """The number that begins an attribute of sysfs (``200000 (system)``); None where there is none."""
    word = (text or "").partition(" ")[0]
    return int(word) if is_count(word) and len(word) < 20 else None


def ebs_disks(facts: Facts) -> frozenset[str]:
    """The names of the disks that are EBS volumes by their model; Xen instances do not show it."""
    return frozenset(disk.name for disk in facts.disks if disk.model is not None and disk.model.strip() == EBS_MODEL)


def by_name(facts: Facts) -> dict[str, Link]:
    return {link.name: link for link in facts.links}


def is_physical(link: Link) -> bool:
    """Whether a device of the machine, or of the hypervisor, stands behind the link."""
    return link.pci is not None or (link.driver in _PARAVIRTUAL and link.kind == "ethernet")


def is_up(link: Link) -> bool:
    return link.carrier is not False and link.state in ("up", "unknown") and link.name != "lo"


def _walk_links(start: str, links: Mapping[str, Link], *, up: bool) -> tuple[Link, ...]:
    seen: dict[str, Link] = {}
    pending = [start]
    while pending:
        link = links.get(pending.pop())
        if link is not None and link.name not in seen:
            seen[link.name] = link
            pending.extend(link.upper if up else link.lower)
    return tuple(seen.values())


def links_above(name: str, links: Mapping[str, Link]) -> tuple[Link, ...]:
    """The link and everything stacked on it."""
    return _walk_links(name, links, up=True)


def links_below(name: str, links: Mapping[str, Link]) -> tuple[Link, ...]:
    """The link and everything it is stacked on."""
    return _walk_links(name, links, up=False)


def has_master(link: Link, links: Mapping[str, Link]) -> bool:
    """Whether it is a port of a bond, team, bridge or paired link, which then sets its MTU."""
    return leader_of(link, links) is not None or any(
        upper in links and links[upper].kind in {"bond", "team", "bridge"} for upper in link.upper
    )


def carries_default_route(link: Link, links: Mapping[str, Link]) -> bool | None:
    """Whether a default route leaves by it or by a link stacked on it; None where that is unknown."""
    routes = [upper.default_route for upper in links_above(link.name, links)]
    return True if True in routes else None if None in routes else False


def largest_mtu(facts: Facts, link: Link) -> int | None:
    """The jumbo MTU that the link's driver and the cloud's network carry, in bytes; None where that is unknown."""
    cloud = facts.host.cloud
    network = _CLOUD_MTU.get(cloud.provider) if cloud else 9000
    return None if network is None or link.mtu_max is None else min(network, link.mtu_max)


def has_several_nodes(facts: Facts) -> bool:
    return len(facts.numa.nodes) > 1


def near_link(facts: Facts, link: Link) -> frozenset[int]:
    """The CPUs that the link's interrupts should run on: of its node, where that does any housekeeping."""
    return near_cpus(facts.cpu.sets, facts.numa, link.numa_node, interrupts=True)


def nodes_below(link: Link, links: Mapping[str, Link]) -> frozenset[int]:
    """The nodes of the physical links that a link rests on."""
    return frozenset(root.numa_node for root in links_below(link.name, links) if root.numa_node is not None)


def is_virtual_machine(facts: Facts) -> bool:
    return facts.host.virtualization not in (None, "", "none")


def llt_links(facts: Facts, *types: str) -> tuple[str, ...]:
    """The kernel links under LLT's links, of the given types or of all."""
    found = facts.llt.links if facts.llt else ()
    names = (link.link for link in found if not types or link.type in types)
    return tuple(dict.fromkeys(name for name in names if name is not None))


def kernel_version(facts: Facts) -> tuple[int, int] | None:
    """Major and minor of the running kernel; None where it is unknown."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})", facts.host.kernel or "", re.ASCII)
    return (int(found[1]), int(found[2])) if found else None


# Whether the declared work crosses the network, and by which links: declared, else seen of the storage path.

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
