"""MTU: what links could carry, and where two ends of one path disagree about it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from advisor.facts.clusters.infoscale_configuration import FSS_UDP, FSS_ZONES
from advisor.facts.host_facts import Facts
from advisor.facts.network.link_stack import (
    ENCAPSULATIONS,
    explain_keeper,
    keeper_of,
    overhead_bytes,
    physical_ports,
    ports_of,
    underlays,
)
from advisor.facts.network.links import Link
from advisor.host.numbers import count_noun
from advisor.rules import sources
from advisor.rules.clusters.infoscale import (
    heartbeat_only,
    private_carriers,
    private_links,
    profile_of,
    recognition,
    stays_local,
)
from advisor.rules.queries import (
    JUMBO_FRAMES,
    TRANSPORT_GAINS,
    by_name,
    carriers,
    carries_default_route,
    crosses_iscsi,
    crosses_network,
    has_master,
    is_physical,
    is_up,
    largest_mtu,
    links_above,
    links_below,
    seen,
)
from advisor.rules.rule import Decide, DeclaredWorkload, Finding, PlanProfile, Remedy, SetTunable, plan_profile, rule

if TYPE_CHECKING:
    from advisor.facts.clusters.llt import LltLink

# The links that are seen to carry data: storage over the network, and LLT where writes cross it.


def data_links(facts: Facts) -> tuple[str, ...]:
    """The links by name, each once: those of the storage that is seen, and LLT's private links unless it is certain
    that no write crosses LLT. A storage link with the default route is left out; none where nothing is seen."""
    links = by_name(facts)
    storage = (
        name for name in carriers(facts) if name in links and carries_default_route(links[name], links) is not True
    )
    return tuple(dict.fromkeys((*storage, *(() if stays_local(facts) else private_carriers(facts)))))


def idle_links(facts: Facts) -> frozenset[str]:
    """The links, with all below them, that carry heartbeats of LLT and no data: low-priority links, and every link of
    LLT where disks are shared or the node is alone. Links that carry storage as well are not among them."""
    links = by_name(facts)
    storage = {each.name for name in carriers(facts) for each in links_below(name, links)}
    private = private_carriers(facts) if stays_local(facts) else ()
    return (heartbeat_only(facts) | {each.name for name in private for each in links_below(name, links)}) - storage


ORDER = 10

ETHERNET_MTU = 1500
IPV6_LEAST_MTU = 1280
LLT_UDP_MTU = 8192  # the type's default where llttab says "-"
DATAGRAM_OVERHEAD = {"udp": 28, "udp6": 48}
"""Bytes of the IP and UDP headers before an LLT packet."""
_IP_HEADERS = {"udp": 20, "udp6": 48}  # per fragment; IPv6 adds a fragment header of 8 bytes


def _is_below_range(facts: Facts, link: Link, links: Mapping[str, Link]) -> bool:
    # Outside a known cloud a network below asks for 1280 to 1499: a provider, a tunnel, a container network.
    is_asked = facts.host.cloud is None and link.mtu is not None and IPV6_LEAST_MTU <= link.mtu < ETHERNET_MTU
    if link.mtu is None or link.mtu > ETHERNET_MTU or is_asked:
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
        and link.port_of is None
        and is_up(link)
        and not has_master(link, links)
        and link.name not in idle
        and carries_default_route(link, links) is False
        and keeper_of(link, links) is None
    )
    data = set(data_links(facts))
    meant = {name for port in ports for name in _carried_by(port, links, data, idle)}
    found = tuple(
        link
        for link in facts.links
        if link.name in meant and _is_below_range(facts, link, links) and not _below_own_ports(link, links)
    )
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
    return tuple(port for port in ports_of(link, links) if port.mtu is not None)


@rule(
    id="links.mtu-differs-in-stack",
    severity="warning",
    title="Ports of one bond or bridge have different MTUs",
    what="Bonds, teams and bridges whose ports do not all have the same MTU; not counted are ports of guests and "
    "containers.",
    why="Neither a bridge nor a bond can fragment: what is too large for the port it leaves by is dropped.",
    helps_when="Always: one broadcast domain has one MTU.",
    hurts_when="The small MTU is right because a switch behind that port carries no more: then lower the others.",
    sources=(sources.BONDING, sources.MEASURED_MTU),
)
def mtu_differs_in_stack(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    links = by_name(facts)
    masters = (link for link in facts.links if link.kind in ("bond", "team", "bridge") and not keeper_of(link, links))
    for master, ports in ((master, _own_ports(master, links)) for master in masters):
        if len({port.mtu for port in ports}) > 1:
            names = tuple(port.name for port in ports)
            detail = tuple(f"{port.name}: {port.mtu}" for port in (master, *ports) if port.mtu is not None)
            yield mtu_differs_in_stack.found(
                title=f"Ports of {master.kind} {master.name} have different MTUs",
                why=f"A frame that one port of {master.name} takes in does not fit through another and is dropped "
                "there without an error to the sender.",
                evidence={"link": master.name, "links": names, "detail": detail},
                remedy=_even_ports(master, ports)
                if master.kind == "bridge"
                else plan_profile(JUMBO_FRAMES, links=(master.name,)),
            )


def _own_ports(master: Link, links: Mapping[str, Link]) -> tuple[Link, ...]:
    """The ports that the administrator sets: a guest's or a container's has the MTU that its inside has."""
    return tuple(port for port in _link_ports(master, links) if keeper_of(port, links) is None)


def _even_ports(master: Link, ports: tuple[Link, ...]) -> tuple[Remedy, ...]:
    """The bridge's own MTU for all, where it has the size of the largest port; else that of the smallest."""
    sizes = [port.mtu or 0 for port in ports]
    is_raised = (master.mtu or 0) >= max(sizes)
    wanted = max(sizes) if is_raised else min(sizes)
    return tuple(
        SetTunable(f"link:{port.name}:mtu", str(wanted), "at-least" if is_raised else "at-most")
        for port in ports
        if port.mtu != wanted
    )


@rule(
    id="links.mtu-above-port",
    severity="warning",
    title="A link has a larger MTU than what carries it",
    what="Bridges above all of their ports, VLANs, macvlans and bonds above a link below, VFs above their port.",
    why="A frame that does not fit through the link below is dropped, and the sender is told nothing.",
    helps_when="Always: raise the link below, or lower the one above.",
    hurts_when="Nothing of full size is ever sent there.",
    sources=(sources.BONDING, sources.MEASURED_MTU),
)
def mtu_above_port(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    links = by_name(facts)
    ports = physical_ports(facts.links)
    for link in facts.links:
        below = (links[ports[link.name]],) if ports.get(link.name) in links else _own_ports(link, links)
        # A VRF carries no frames of its own; its MTU is the kernel's largest.
        if link.kind in (*ENCAPSULATIONS, "vrf") or link.mtu is None or not below or keeper_of(link, links):
            continue
        # A bridge's frames leave by each port: links.mtu-differs-in-stack names those that differ.
        carried = max if link.kind == "bridge" else min
        narrow = carried(below, key=lambda port: port.mtu or 0)
        if narrow.mtu is not None and narrow.mtu < link.mtu:
            what = "virtual function" if link.port_of else link.kind
            yield mtu_above_port.found(
                title=f"MTU of {what} {link.name} is above that of {narrow.name}",
                why=f"{link.name} sends frames of up to {link.mtu} bytes, and {narrow.name} below it carries "
                f"{narrow.mtu}: full ones vanish.",
                evidence={"link": link.name, "links": (narrow.name,), "mtu": link.mtu, "mtu_largest": narrow.mtu},
                remedy=(
                    SetTunable(f"link:{narrow.name}:mtu", str(link.mtu), "at-least"),
                    Decide(f"or lower {link.name} to {narrow.mtu}, if the network carries no more"),
                ),
            )


def _below_own_ports(link: Link, links: Mapping[str, Link]) -> bool:
    """Whether a bond, team or bridge has 1500 bytes at most over ports that all have more, those of guests among
    them; a VLAN may mean to."""
    sizes = [port.mtu or 0 for port in _link_ports(link, links)]
    is_master = link.kind in ("bond", "team", "bridge")
    return is_master and link.mtu is not None and link.mtu <= ETHERNET_MTU < min(sizes, default=0)


@rule(
    id="links.mtu-below-ports",
    severity="advice",
    title="A bond or bridge has a smaller MTU than its ports",
    what="Bonds, teams and bridges whose MTU is at most 1500 above ports that all have more.",
    why="The ports were raised and the link above was not: nothing of it is sent in jumbo frames.",
    helps_when="Peers and switches carry the larger MTU.",
    hurts_when="The network ends at 1500 on purpose: then lower the ports.",
    sources=(sources.BONDING, sources.MEASURED_MTU),
)
def mtu_below_ports(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    links = by_name(facts)
    found = tuple(
        link for link in facts.links if is_up(link) and keeper_of(link, links) is None and _below_own_ports(link, links)
    )
    if not found:
        return None
    names = tuple(link.name for link in found)
    return mtu_below_ports.found(
        title=f"MTU of {names[0]} is below that of its ports" if len(names) == 1 else None,
        why="Frames of that link stay at its own MTU, whatever its ports carry.",
        evidence={
            "links": names,
            "detail": tuple(f"{port.name}: {port.mtu}" for link in found for port in (link, *_own_ports(link, links))),
        },
        remedy=plan_profile(JUMBO_FRAMES, links=names),
    )


@rule(
    id="links.route-mtu",
    severity="warning",
    title="A route has another MTU than its link",
    what="Routes with an MTU of their own over links above 1500 bytes: more than the link's, and less, but for default "
    "routes, which lead out of the segment.",
    why="TCP takes the route's MTU: less, and the link's jumbo frames carry nothing there; more, and its packets are "
    "fragmented or refused. With lock, path MTU discovery is off as well.",
    helps_when="The hosts behind the route carry the link's MTU.",
    hurts_when="The network behind the route carries no more: then the route is right.",
    sources=(sources.IP_ROUTE,),
)
def route_mtu(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    links = by_name(facts)
    for link in (link for link in facts.links if link.route_mtus and keeper_of(link, links) is None):
        mtu = link.mtu or 0
        other = {to: own for to, own in link.route_mtus.items() if own > mtu or (own < mtu and "default" not in to)}
        is_above = any(own > mtu for own in other.values())
        if other:
            yield route_mtu.found(
                severity="warning" if is_above else "advice",
                title=f"Routes over {link.name} have another MTU than its {mtu:,}",
                why=f"{count_noun(len(other), 'route')} over {link.name} "
                + ("asks for more than the link carries." if is_above else "keeps smaller packets."),
                evidence={"link": link.name, "mtu": mtu, "detail": tuple(f"{to}: {own}" for to, own in other.items())},
                remedy=Decide("take mtu from the route, in the file of the manager that makes it, or set the link's"),
            )


def _excess(link: Link, links: Mapping[str, Link]) -> tuple[Link, int] | None:
    """The underlay and the largest MTU that it leaves to an encapsulating link, where that has more."""
    lowest = min((one for one in underlays(link, links) if one.mtu), key=lambda port: port.mtu or 0, default=None)
    # Open vSwitch gives its tunnels 65,000 bytes: what enters them counts.
    if link.mtu is None or lowest is None or lowest.mtu is None or _is_flow_tunnel(link):
        return None
    room = lowest.mtu - overhead_bytes(link)
    return (lowest, room) if link.mtu > room else None


def _is_flow_tunnel(link: Link) -> bool:
    return "_sys" in link.name


def _switched_excess(facts: Facts, links: Mapping[str, Link]) -> Iterator[tuple[Link, Link, int]]:
    """Ports of Open vSwitch on the host with more than its tunnels have room for."""
    tunnels = [
        (link, low) for link in facts.links if _is_flow_tunnel(link) for low in underlays(link, links) if low.mtu
    ]
    if tunnels:
        tunnel, low = min(tunnels, key=lambda pair: (pair[1].mtu or 0) - overhead_bytes(pair[0]))
        room = (low.mtu or 0) - overhead_bytes(tunnel)
        for link in facts.links:
            is_inside = link.kind == "openvswitch" and is_up(link) and link.addresses and link.default_route is not True
            if is_inside and (link.mtu or 0) > room:
                yield link, low, room


@rule(
    id="links.vxlan-mtu-above-underlay",
    severity="warning",
    title="MTU of a tunnel does not fit its underlay",
    what="VXLAN, Geneve, GRE, IP-in-IP, WireGuard and MACsec links, and ports of Open vSwitch beside tunnels, whose "
    "MTU exceeds that of the link below less the headers (VXLAN 50 bytes over IPv4 and 70 over IPv6, WireGuard 60 and "
    "80, MACsec 32).",
    why="A tunnel takes its MTU from the underlay once, when it is made, and keeps it.",
    helps_when="Always: full-size frames inside the tunnel are lost or fragmented.",
    hurts_when="Never inside the tunnel; connections that are open keep their segment size until they notice.",
    sources=(sources.MEASURED_VXLAN,),
)
def vxlan_mtu_above_underlay(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    links = by_name(facts)
    own = ((link, *excess) for link in facts.links if (excess := _excess(link, links)))
    for link, underlay, room in (*own, *_switched_excess(facts, links)):
        kept = explain_keeper(link, links, room)
        yield vxlan_mtu_above_underlay.found(
            title=f"MTU of {link.name} does not fit its underlay {underlay.name}",
            why=f"A full frame of {link.name} (MTU {link.mtu}) no longer fits into {underlay.name} (MTU "
            f"{underlay.mtu}) once the headers are added; the kernel does not follow when the underlay shrinks.",
            evidence={"link": link.name, "links": (underlay.name,), "mtu": link.mtu, "mtu_largest": room},
            remedy=Decide(f"{link.name} {kept}") if kept else SetTunable(f"link:{link.name}:mtu", str(room), "at-most"),
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
    id="llt.mtu-below-links",
    severity="advice",
    title="LLT's packets are held below its links' MTU",
    what="The MTU field of LLT's links of type udp and udp6, low-priority ones left out, against the kernel links.",
    why="LLT cuts its packets to the MTU of its own line: jumbo frames on the link carry nothing of them.",
    helps_when="Replication over LLT with UDP: fewer packets for each block.",
    hurts_when="Another node's link carries no more: set the field alike on every node.",
    sources=(sources.VCS_UDP, sources.WHITE_PAPER),
)
def llt_below_links(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    links = by_name(facts)
    found = {
        carried.tag: (carried, link.mtu)
        for carried in private_links(facts, *DATAGRAM_OVERHEAD)
        if (link := links.get(carried.link or "")) and link.mtu and carried.mtu
        if carried.mtu <= ETHERNET_MTU < link.mtu
    }
    if not found or stays_local(facts):
        return None
    return llt_below_links.found(
        why="The links were raised, and LLT was not told.",
        evidence={
            "links": tuple(carried.link or "" for carried, _ in found.values()),
            "detail": tuple(f"{tag}: {carried.mtu} of {mtu}" for tag, (carried, mtu) in found.items()),
        },
        remedy=(
            *(
                SetTunable(f"file:/etc/llttab:link.{tag}.mtu", str(min(LLT_UDP_MTU, mtu - DATAGRAM_OVERHEAD[one.type])))
                for tag, (one, mtu) in found.items()
            ),
            "set the same on every node, and restart LLT",
        ),
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
