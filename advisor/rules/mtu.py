"""MTU: what links could carry, and where two ends of one path disagree about it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from advisor.facts.infoscale_configuration import FSS_UDP, FSS_ZONES
from advisor.facts.links import Link
from advisor.rules import sources
from advisor.rules.data_links import data_links, idle_links
from advisor.rules.infoscale import profile_of, recognition
from advisor.rules.llt_path import private_links, stays_local
from advisor.rules.queries import (
    JUMBO_FRAMES,
    by_name,
    carries_default_route,
    has_master,
    is_physical,
    is_up,
    largest_mtu,
    links_above,
    links_below,
)
from advisor.rules.remedy import Decide, PlanProfile, Remedy, SetTunable, plan_profile
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, rule
from advisor.rules.storage_path import TRANSPORT_GAINS, carriers, crosses_iscsi, crosses_network, seen

if TYPE_CHECKING:
    from advisor.facts.llt import LltLink

ORDER = 10

ETHERNET_MTU = 1500
LLT_UDP_MTU = 8192  # the type's default where llttab says "-"
DATAGRAM_OVERHEAD = {"udp": 28, "udp6": 48}
"""Bytes of the IP and UDP headers before an LLT packet."""
_IP_HEADERS = {"udp": 20, "udp6": 48}  # per fragment; IPv6 adds a fragment header of 8 bytes
_VXLAN_OVERHEAD = {4: 50, 6: 70}
_VXLAN_ENDS = frozenset({"local", "remote", "group", "local6", "remote6", "group6"})


def _is_below_range(facts: Facts, link: Link, links: Mapping[str, Link]) -> bool:
    if link.mtu is None or link.mtu > ETHERNET_MTU:
        return False
    sizes = [largest_mtu(facts, each) for each in links_below(link.name, links)]
    return (min((size for size in sizes if size is not None), default=None) or link.mtu + 1) > link.mtu


def _carried_by(port: Link, links: Mapping[str, Link], data: Collection[str], idle: Collection[str]) -> tuple[str, ...]:
    """The links to name for a port: itself, or the VLANs on it that carry its data, as a VLAN keeps its own MTU when
    the port's is raised. A plan raises what is below a named link with it."""
    vlans = [link for link in links_above(port.name, links) if link.kind == "vlan" and is_up(link)]
    carrying = [link.name for link in vlans if link.name in data]
    if carrying:
        return (*((port.name,) if port.name in data else ()), *carrying)
    addressed = [link.name for link in vlans if link.addresses and link.name not in idle]
    return tuple(addressed) if addressed and not port.addresses else (port.name,)


def _range_text(facts: Facts, link: Link) -> str:
    sizes = [size for each in links_below(link.name, by_name(facts)) if (size := largest_mtu(facts, each)) is not None]
    largest = min(sizes, default=None) if largest_mtu(facts, link) is not None else None
    return f"{link.name}: {link.mtu}, " + (f"could be {largest}" if largest else "its largest MTU is unknown")


def _gains_from_jumbo(facts: Facts, workload: DeclaredWorkload) -> bool:
    """The white paper's cases, and those of the iSCSI article: every load of its over iSCSI gained by its links."""
    if crosses_iscsi(facts, workload):
        return True
    return bool(crosses_network(facts, workload)) and (workload.is_sequential or workload.is_write_heavy)


def _carrying_links(found: tuple[Link, ...], facts: Facts, workload: DeclaredWorkload) -> tuple[Link, ...]:
    """Those of the links that carry the declared work: where the storage path is seen, the links below it."""
    if workload.is_replicated or not (workload.transport is None or crosses_iscsi(facts, workload)):
        return found
    links = by_name(facts)
    carried = {one.name for name in carriers(facts) for one in links_below(name, links)}
    return tuple(link for link in found if link.name in carried) if carried else found


def _gain_words(facts: Facts, workload: DeclaredWorkload) -> str:
    if crosses_iscsi(facts, workload):
        return (
            f"Seen: {'; '.join(seen(facts))}. The article's transport step, of which the MTU is one part, gave "
            f"{TRANSPORT_GAINS}. "
        )
    if workload.transport is None and not workload.is_replicated:
        return f"Seen: {'; '.join(seen(facts))}. {workload.subject} writes or streams over it. "
    return f"{workload.subject} writes or streams over the network. "


def _below_range(facts: Facts, found: tuple[Link, ...], gains: str) -> Finding:
    """``gains`` says why the declared work gains by it; empty where it is a matter of intent."""
    names = tuple(link.name for link in found)
    return mtu_below_range.found(
        severity="advice" if gains else "info",
        why="Each frame carries at most 1,500 bytes, so a block of 8 KiB crosses the network in six. "
        + gains
        + "What the peers and the switches carry cannot be seen from here: probe it before raising the MTU.",
        evidence={"links": names, "detail": tuple(_range_text(facts, link) for link in found)},
        remedy=plan_profile(JUMBO_FRAMES, links=names),
        intent=not gains,
    )


@rule(
    id="links.mtu-below-range",
    severity="advice",
    title="MTU below what the link could carry",
    what="Physical links and bonds that are up, carry no default route and run at an MTU of 1500 or less although "
    "their driver allows more.",
    why="A block larger than the MTU is cut into frames, each of which costs a header, a descriptor and a share of an "
    "interrupt on both hosts.",
    helps_when="Blocks larger than the MTU: sequential, batch or write-heavy replication, and storage over iSCSI under "
    "any load, inside one network segment in which every host and switch carries the same MTU.",
    hurts_when="One peer or switch port stays at 1500: TCP goes on, datagrams vanish without an error. Small writes "
    "get a little slower. Not for links that lead to the Internet or over a VPN.",
    sources=(sources.WHITE_PAPER, sources.OPENFILER, sources.AWS_MTU, sources.GCP_MTU, sources.MEASURED_MTU),
)
def mtu_below_range(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    links = by_name(facts)
    idle = idle_links(facts)
    ports = (
        link
        for link in facts.links
        if (is_physical(link) or link.kind in ("bond", "team"))
        and link.kind not in ("infiniband", "loopback")
        and is_up(link)
        and not has_master(link, links)
        and link.name not in idle
        and carries_default_route(link, links) is False
    )
    data = set(data_links(facts))
    meant = {name for port in ports for name in _carried_by(port, links, data, idle)}
    found = tuple(link for link in facts.links if link.name in meant and _is_below_range(facts, link, links))
    if not found or (
        workload is not None
        and (
            workload.transport == "local" or (workload.block_bytes is not None and workload.block_bytes < ETHERNET_MTU)
        )
    ):
        return None
    if not facts.network_storage and stays_local(facts) and (workload is None or workload.transport is None):
        return None
    if workload is None or not _gains_from_jumbo(facts, workload):
        return _below_range(facts, found, "")
    wanted = _carrying_links(found, facts, workload)
    return _below_range(facts, wanted, _gain_words(facts, workload)) if wanted else _below_range(facts, found, "")


def _link_ports(link: Link, links: Mapping[str, Link]) -> tuple[Link, ...]:
    return tuple(links[name] for name in link.lower if name in links and links[name].mtu is not None)


@rule(
    id="links.mtu-differs-in-stack",
    severity="warning",
    title="Ports of one bond or bridge have different MTUs",
    what="Bonds, teams and bridges whose ports do not all have the same MTU.",
    why="Neither a bridge nor a bond can fragment: what is too large for the port it leaves by is dropped.",
    helps_when="Always: one broadcast domain has one MTU.",
    hurts_when="The small MTU is the right one because a guest or a switch behind that port carries no more: then "
    "lower the others instead.",
    sources=(sources.BONDING, sources.MEASURED_MTU),
)
def mtu_differs_in_stack(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    links = by_name(facts)
    masters = (link for link in facts.links if link.kind in ("bond", "team", "bridge"))
    for master, ports in ((master, _link_ports(master, links)) for master in masters):
        if len({port.mtu for port in ports}) > 1:
            names = tuple(port.name for port in ports)
            detail = tuple(f"{port.name}: {port.mtu}" for port in (master, *ports) if port.mtu is not None)
            smallest = min(port.mtu or 0 for port in ports)
            yield mtu_differs_in_stack.found(
                title=f"Ports of {master.kind} {master.name} have different MTUs",
                why=f"A frame that one port of {master.name} takes in does not fit through another and is dropped "
                "there without an error to the sender.",
                evidence={"link": master.name, "links": names, "detail": detail},
                remedy=tuple(
                    SetTunable(f"link:{port.name}:mtu", str(smallest), "at-most")
                    for port in ports
                    if port.mtu != smallest
                )
                if master.kind == "bridge"
                else plan_profile(JUMBO_FRAMES, links=(master.name,)),
            )


def _vxlan_excess(link: Link, links: Mapping[str, Link]) -> tuple[Link, int] | None:
    """The underlay and the largest MTU it leaves to the VXLAN link, where that has more."""
    lowest = min(_link_ports(link, links), key=lambda port: port.mtu or 0, default=None)
    if link.kind != "vxlan" or link.mtu is None or lowest is None or lowest.mtu is None:
        return None
    ends = (
        value
        for key, value in link.detail.items()
        if key.rpartition("_")[2] in ("local", "remote", "group", "local6", "remote6", "group6")
    )
    room = lowest.mtu - _VXLAN_OVERHEAD[6 if any(":" in end for end in ends) else 4]
    return (lowest, room) if link.mtu > room else None


@rule(
    id="links.vxlan-mtu-above-underlay",
    severity="warning",
    title="MTU of a VXLAN link does not fit its underlay",
    what="VXLAN links whose MTU exceeds that of the link below less the encapsulation (50 bytes over IPv4, 70 over "
    "IPv6).",
    why="VXLAN takes its MTU from the underlay once, when it is made, and keeps it.",
    helps_when="Always: full-size frames inside the tunnel are lost or fragmented.",
    hurts_when="Never inside the tunnel; connections that are open keep their segment size until they notice.",
    sources=(sources.MEASURED_VXLAN,),
)
def vxlan_mtu_above_underlay(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    links = by_name(facts)
    found = ((link, excess) for link in facts.links if (excess := _vxlan_excess(link, links)))
    for link, (underlay, room) in found:
        yield vxlan_mtu_above_underlay.found(
            title=f"MTU of {link.name} does not fit its underlay {underlay.name}",
            why=f"A full frame of {link.name} (MTU {link.mtu}) no longer fits into {underlay.name} (MTU "
            f"{underlay.mtu}) once the VXLAN headers are added; the kernel does not follow when the underlay shrinks.",
            evidence={"link": link.name, "links": (underlay.name,), "mtu": link.mtu, "mtu_largest": room},
            remedy=SetTunable(f"link:{link.name}:mtu", str(room), "at-most"),
        )


def fragments(payload_bytes: int, mtu: int, link_type: str) -> int:
    """IP packets that one LLT datagram of ``payload_bytes`` becomes on a link of ``mtu`` (type udp or udp6)."""
    if payload_bytes + DATAGRAM_OVERHEAD[link_type] <= mtu:
        return 1
    per_fragment = max(8, (mtu - _IP_HEADERS[link_type]) // 8 * 8)
    return -(-(payload_bytes + 8) // per_fragment)


def _fragmented_links(facts: Facts, links: Mapping[str, Link]) -> Iterable[tuple[LltLink, Link, int]]:
    for carried in private_links(facts, *DATAGRAM_OVERHEAD):
        link = links.get(carried.link or "")
        if link is not None and link.mtu is not None:
            count = fragments(carried.mtu or LLT_UDP_MTU, link.mtu, carried.type)
            if count > 1:
                yield carried, link, count


def _fits_datagram(facts: Facts, carried: LltLink, link: Link, links: Mapping[str, Link]) -> bool:
    need = (carried.mtu or LLT_UDP_MTU) + DATAGRAM_OVERHEAD[carried.type]
    return (largest_mtu(facts, link) or 0) >= need and carries_default_route(link, links) is not True


def _fragment_text(carried: LltLink, link: Link, count: int) -> str:
    size = f"{carried.mtu}" if carried.mtu else f"{LLT_UDP_MTU} (default)"
    return f"LLT link {carried.tag} over {link.name}: MTU {size} on a link MTU of {link.mtu} = {count} fragments"


def _lower_llt_mtu(
    found: tuple[tuple[LltLink, Link, int], ...], facts: Facts, workload: DeclaredWorkload | None
) -> Iterator[Remedy]:
    recognised = recognition(facts, workload)
    name = recognised.configuration if recognised else None
    lower = tuple(
        SetTunable(f"file:/etc/llttab:link.{carried.tag}.mtu", str((link.mtu or 0) - DATAGRAM_OVERHEAD[carried.type]))
        for carried, link, _ in found
    )
    if name in (FSS_UDP, FSS_ZONES):
        yield PlanProfile(profile_of(name), only=lower)
    else:
        yield from lower
    yield Decide("set the MTU field of the link lines in /etc/llttab on every node, and restart LLT")


@rule(
    id="llt.mtu-fragments",
    severity="warning",
    title="LLT packets are cut into IP fragments",
    what="LLT links of type udp or udp6, low-priority ones left out, whose MTU field (8192 where it says -) with "
    "headers exceeds the MTU of the kernel link that carries them; not where disks are shared or the node is alone, as "
    "no write crosses LLT there.",
    why="An LLT datagram of 8,192 bytes crosses a link of MTU 1500 as six IP fragments.",
    helps_when="Replication over LLT with UDP: fewer packets, no reassembly, no fragment limit in the cloud.",
    hurts_when="A jumbo MTU that not every node and switch carries: heartbeats vanish. A smaller LLT MTU means more "
    "packets per block.",
    sources=(sources.VCS_UDP, sources.ENA, sources.WHITE_PAPER, sources.MEASURED_MTU),
)
def llt_fragments(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    links = by_name(facts)
    found = tuple(_fragmented_links(facts, links))
    if not found or stays_local(facts):
        return None
    names = tuple(dict.fromkeys(link.name for _, link, _ in found))
    can_rise = all(_fits_datagram(facts, carried, link, links) for carried, link, _ in found)
    most = max(count for _, _, count in found)
    is_aws = facts.host.cloud is not None and facts.host.cloud.provider == "aws"
    return llt_fragments.found(
        severity="warning" if is_aws else "advice",
        title=f"LLT packets become {most} IP fragments each",
        why="The LLT links send datagrams that are larger than the links below them carry. The loss of one fragment "
        "loses the packet, and each costs its own header and interrupt"
        + (", and EC2 caps the fragments that a network interface may send per second." if is_aws else "."),
        evidence={"links": names, "detail": tuple(_fragment_text(*each) for each in found)},
        remedy=plan_profile(JUMBO_FRAMES, links=names) if can_rise else _lower_llt_mtu(found, facts, workload),
    )


@rule(
    id="llt.mtu-differs",
    severity="warning",
    title="The private LLT links have different MTUs",
    what="The kernel links under LLT's links, low-priority ones left out.",
    why="LLT spreads packets over its links and moves them to the other when one fails, so all should carry the same.",
    helps_when="Always, unless the difference is meant.",
    hurts_when="The smaller link cannot be raised because its switch carries no more: then lower the other.",
    sources=(sources.VCS_UDP, sources.MEASURED_MTU),
)
def llt_mtu_differs(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    links = by_name(facts)
    pairs = tuple((each.tag, links[each.link]) for each in private_links(facts) if each.link in links)
    if len({link.mtu for _, link in pairs if link.mtu is not None}) < 2:
        return None
    names = tuple(dict.fromkeys(link.name for _, link in pairs))
    return llt_mtu_differs.found(
        why="Traffic that moves from one LLT link to the other meets another packet size: what went whole over the "
        "larger is fragmented or lost on the smaller.",
        evidence={"links": names, "detail": tuple(f"{tag} over {link.name}: {link.mtu}" for tag, link in pairs)},
        remedy=plan_profile(JUMBO_FRAMES, links=names),
    )
