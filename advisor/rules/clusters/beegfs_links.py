"""BeeGFS over its links: which one a service is reached by, who answers for whose address, and sockets' buffers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from advisor.facts.clusters.beegfs import BeegfsService
from advisor.facts.network.link_stack import SharedSubnet, SubnetLink
from advisor.facts.processors.numa import Numa
from advisor.host.numbers import is_count
from advisor.rules import sources
from advisor.rules.clusters.beegfs import placed, profile_applies
from advisor.rules.processors.locality import data_links
from advisor.rules.queries import BEEGFS_NVME, by_name, sysctl_numbers
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, Remedy, plan_profile, rule, set_beegfs, set_sysctl

ORDER = 290


def _own_settings(links: Iterable[str]) -> Iterator[Remedy]:
    """Values of the links alone: conf.all would change every other link as well."""
    for name in sorted(set(links)):
        for key, value in (("arp_ignore", 1), ("arp_announce", 2), ("rp_filter", 2)):
            yield set_sysctl(f"net.ipv4.conf.{name.replace('.', '/')}.{key}", value)


def _why_astray(link: SubnetLink, subnet: SharedSubnet) -> str:
    wrong = []
    if link.arp_filter and subnet.source_rules is False:
        wrong.append("arp_filter 1 without routing by source: it answers for its address only if the route leads there")
    if not link.arp_filter and link.arp_ignore == 0:
        wrong.append("arp_ignore 0")
    if link.arp_announce is not None and link.arp_announce < 2:
        wrong.append(f"arp_announce {link.arp_announce}")
    if link.rp_filter == 1 and subnet.source_rules is False:
        wrong.append("rp_filter 1")
    return f"{link.link} in {subnet.network}: {', '.join(wrong)}" if wrong else ""


@rule(
    id="beegfs.links-in-one-subnet",
    severity="advice",
    title="Links of a BeeGFS host share one subnet",
    what="IPv4 networks with two links and more; rp_filter, arp_filter, arp_ignore and arp_announce as they take "
    "effect; rules by source address (ip rule).",
    why="By default Linux answers ARP for any of its addresses on any link. NetApp sets rp_filter 1, arp_filter 1, "
    "arp_announce 2 and arp_ignore 2, with routes by source; Red Hat 53031 says rp_filter 2. The article refers to Red "
    "Hat 30564.",
    helps_when="Each zone has a link of its own and both are in one network, as in the article.",
    hurts_when="arp_filter 1 without routes by source makes an address unreachable; rp_filter 2 checks sources less "
    "than 1. conf.all and the link's own value: the larger one counts, so the links' own suffice.",
    sources=(sources.DELL_BEEGFS, sources.NETAPP_BEEGFS, sources.RED_HAT_RP_FILTER, sources.IP_SYSCTL),
    contradictions=("contradiction.several-links-arp",),
)
def one_subnet(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = []
    for subnet in facts.beegfs.shared_subnets if facts.beegfs else ():
        wrong = tuple(why for one in subnet.links if (why := _why_astray(one, subnet)))
        if wrong:
            found.append((subnet, wrong))
    if not found:
        return None
    applies = profile_applies(facts)
    return one_subnet.found(
        why="Any link answers for the address of every other, so what should come in on one node's link comes in on "
        "another's; and a strict check drops what arrives by the link that the routing table does not name. arp_ignore "
        "1, arp_announce 2 and rp_filter 2 need nothing else; a network for each link does as well, or routes by "
        "source with rp_filter 1 and arp_filter 1.",
        evidence={
            "networks": tuple(subnet.network for subnet, _ in found),
            "links": tuple(one.link for subnet, _ in found for one in subnet.links),
            "detail": tuple(why for _, wrong in found for why in wrong),
        },
        remedy=plan_profile(BEEGFS_NVME)
        if applies
        else tuple(_own_settings(one.link for subnet, _ in found for one in subnet.links)),
    )


def _why_far(numa: Numa, service: BeegfsService, node: int, nodes: Mapping[str, int | None]) -> str:
    near = numa.nearest(node, {one for one in nodes.values() if one is not None})
    if set(nodes.values()) <= near:
        return ""
    if not service.settings.get("connInterfacesFile"):
        return f"{service.label}: no connInterfacesFile, targets on node {node}"
    first = next((name for name in service.interfaces or () if name in nodes), None)
    if first is None or nodes[first] is None or nodes[first] in near:
        return ""
    return f"{service.label}: {first} of node {nodes[first]} comes first, targets on node {node}"


@rule(
    id="beegfs.interfaces",
    severity="advice",
    title="BeeGFS services do not use their own node's link",
    what="connInterfacesFile of services whose targets lie on one node, where data links are on two nodes and more.",
    why="In the article traffic of zone 0 goes over ib0 and that of zone 1 over ib1.",
    helps_when="One link for each zone, services bound to zones.",
    hurts_when="A link that is not in the file is never used, also when the other one fails.",
    sources=(sources.DELL_BEEGFS, sources.BEEGFS_STORAGE_CONF),
)
def interfaces_not_chosen(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    nodes = {link.name: link.numa_node for link in data_links(facts, by_name(facts))}
    if len({node for node in nodes.values() if node is not None}) < 2:
        return None
    far = tuple(why for one, node, _ in placed(facts) if (why := _why_far(facts.numa, one, node, nodes)))
    if not far:
        return None
    return interfaces_not_chosen.found(
        why="Clients receive every address of a service and use the first that answers, whichever zone it is in.",
        evidence={"detail": far, "links": tuple(f"{name} on node {node}" for name, node in sorted(nodes.items()))},
        remedy="give each instance a connInterfacesFile below /etc/beegfs, with the link nearest to its node in "
        "the first line and the other link after it",
    )


def _honest_buffers(services: Iterable[BeegfsService], most: int, default: int) -> Iterator[Remedy]:
    """Room for what is asked for; 0, which stands for connRDMABufNum × connRDMABufSize, for what is ignored."""
    asked = [(one, key, size) for one in services for key, size in _asked_sizes(one)]
    if (largest := max((size for _, _, size in asked), default=0)) > most:
        yield set_sysctl("net.core.rmem_max", largest, "at-least")
    for one, key, size in asked:
        if 0 < size < default:
            yield set_beegfs(one.path, key, "0")


def _asked_sizes(service: BeegfsService) -> Iterator[tuple[str, int]]:
    for key in ("connTCPRcvBufSize", "connUDPRcvBufSize"):
        text = service.settings.get(key, "")
        yield key, int(text) if is_count(text) and len(text) < 12 else 0


def _why_in_vain(service: BeegfsService, most: int, default: int) -> Iterator[str]:
    for key, asked in _asked_sizes(service):
        if asked > most:
            yield f"{service.label}: {key} {asked} is cut to net.core.rmem_max {most}"
        elif 0 < asked < default:
            yield f"{service.label}: {key} {asked} is below net.core.rmem_default {default}, so it is ignored"


@rule(
    id="beegfs.socket-buffers",
    severity="info",
    title="BeeGFS gets smaller socket buffers than it asks",
    what="connTCPRcvBufSize and connUDPRcvBufSize, where a file gives a number, against net.core.rmem_max and "
    "net.core.rmem_default.",
    why="The kernel cuts what is asked for to net.core.rmem_max, and BeeGFS does not ask for less than the default.",
    helps_when="Clients are reached over TCP.",
    hurts_when="Over RDMA these sockets carry next to nothing.",
    sources=(sources.BEEGFS_STORAGE_CONF, sources.SOCKET),
)
def socket_buffers(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    most, default = (sysctl_numbers(facts, f"net.core.rmem_{name}") for name in ("max", "default"))
    if not most or not default:
        return None
    services = facts.beegfs.services if facts.beegfs else ()
    found = tuple(why for one in services for why in _why_in_vain(one, most[0], default[0]))
    if not found:
        return None
    return socket_buffers.found(
        why="The size that is asked for is not the size that sockets get.",
        evidence={"detail": found},
        remedy=tuple(_honest_buffers(services, most[0], default[0])),
    )
