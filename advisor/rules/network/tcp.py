"""Settings of TCP, bonds and MTUs that no counter asks for: mismatches, and matters of intent."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator

from advisor.rules import sources
from advisor.rules.network.mtu import ETHERNET_MTU
from advisor.rules.queries import by_name, carries_default_route, crosses_network, is_physical, is_up, sysctl_number
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, RunShell, SetTunable, rule, set_sysctl

ORDER = 40

_IPV6_MTU = 1280


# Links that lead through narrower networks; those of containers (vxlan, veth) stay inside one.
_TUNNELS = frozenset({"wireguard", "tun", "gre", "gretap", "sit", "ip6tnl", "ip6gre", "vti", "vti6", "xfrm", "ppp"})
_FAR_SECONDS = 5e-3


@rule(
    id="network.mtu-probing",
    severity="info",
    title="Jumbo frames are routed without MTU probing",
    what="tcp_mtu_probing 0 where a link of more than 1500 bytes carries the default route, and a tunnel or a declared "
    "round trip of 5 ms and more says that connections cross another network.",
    why="With 1, TCP tries a smaller size after it has detected a black hole; nothing changes where there is none.",
    helps_when="Paths through firewalls, VPNs and clouds that do not pass ICMP.",
    hurts_when="Loss is taken for a black hole now and then, and the connection goes on with small packets.",
    sources=(sources.IP_SYSCTL, sources.AWS_MTU),
)
def mtu_probing(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if sysctl_number(facts, "net.ipv4.tcp_mtu_probing") != 0:
        return None
    links = by_name(facts)
    found = tuple(
        link.name
        for link in facts.links
        if is_physical(link) and is_up(link) and (link.mtu or 0) > ETHERNET_MTU and carries_default_route(link, links)
    )
    # What says that connections cross a network of smaller frames; None where nothing does.
    tunnels = tuple(link.name for link in facts.links if link.kind in _TUNNELS and is_up(link))
    if tunnels:
        reason = f"the tunnel {tunnels[0]} leads through another network"
    elif workload is not None and workload.rtt_seconds is not None and workload.rtt_seconds >= _FAR_SECONDS:
        reason = f"a round trip of {workload.rtt_seconds * 1e3:g} ms is declared, which leaves this site"
    else:
        reason = None
    if not found or reason is None:
        return None
    return mtu_probing.found(
        why=f"The default route leaves by a link with jumbo frames, and {reason}. Where a firewall on the path drops "
        "the messages of path MTU discovery, a connection hangs at its first large packet.",
        evidence={"links": found, "net.ipv4.tcp_mtu_probing": 0},
        remedy=set_sysctl("net.ipv4.tcp_mtu_probing", 1),
        intent=True,
    )


@rule(
    id="network.bond-by-address",
    severity="advice",
    title="A bond sends everything for one peer by one port",
    what="xmit_hash_policy of bonds of mode 802.3ad and balance-xor with several ports.",
    why="layer3+4 also counts IP addresses and ports, so that several connections to one peer use several ports.",
    helps_when="Few peers and several connections, as storage has.",
    hurts_when="layer3+4 is not strictly 802.3ad: fragments may overtake. One connection is never faster than one "
    "port.",
    sources=(sources.BONDING,),
)
def bond_by_address(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(
        link.name
        for link in facts.links
        if link.kind == "bond"
        and len(link.lower) > 1
        and link.detail.get("mode") in ("802.3ad", "balance-xor")
        and link.detail.get("xmit_hash_policy") == "layer2"
    )
    if not found:
        return None
    declared = bool(crosses_network(facts, workload))
    return bond_by_address.found(
        severity="advice" if declared else "info",
        why="layer2 chooses the port by MAC addresses, so everything to one peer, or to one router, uses one port.",
        evidence={"links": found, "xmit_hash_policy": "layer2"},
        remedy=(
            *(
                RunShell(
                    f"ip link set dev {shlex.quote(name)} type bond xmit_hash_policy layer3+4",
                    f"spread connections over the ports of {name}",
                )
                for name in found
            ),
            "set the same in the bond's own configuration; the switch decides its direction by itself",
        ),
        intent=not declared,
    )


@rule(
    id="network.slow-start-after-idle",
    severity="advice",
    title="TCP replication starts slowly after each pause",
    what="tcp_slow_start_after_idle 1, for a declared workload that is replicated over TCP.",
    why="After a pause of one retransmission timeout the kernel takes what it knew of the path for stale.",
    helps_when="Bursts over a private network that nobody else fills.",
    hurts_when="A shared or wide-area path: a burst at full window meets queues that have filled meanwhile, and loses.",
    sources=(sources.IP_SYSCTL,),
)
def slow_start(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if workload is None or not workload.is_replicated or workload.transport != "tcp":
        return None
    if sysctl_number(facts, "net.ipv4.tcp_slow_start_after_idle") != 1:
        return None
    return slow_start.found(
        why=f"{workload.subject} replicates over TCP; the connection rests between bursts, and after each rest begins "
        "with a small window.",
        evidence={"net.ipv4.tcp_slow_start_after_idle": 1},
        remedy=set_sysctl("net.ipv4.tcp_slow_start_after_idle", 0),
    )


@rule(
    id="links.mtu-below-minimum",
    severity="advice",
    title="A link's MTU is below what IPv6 needs",
    what="Links with a device whose MTU is below 1280.",
    why="IPv6 requires 1280 bytes of every link.",
    helps_when="IPv6 is used, or an MTU was set by mistake.",
    hurts_when="The path carries no more, as some tunnels and radio links do, and IPv6 is not used.",
    sources=(sources.IP_SYSCTL, sources.MEASURED_IPV6),
)
def below_ipv6(facts: Facts, workload: DeclaredWorkload | None) -> tuple[Finding, ...]:
    found = tuple(link for link in facts.links if is_up(link) and is_physical(link) and 0 < (link.mtu or 0) < _IPV6_MTU)
    return tuple(
        below_ipv6.found(
            title=f"MTU of link {link.name} is {link.mtu}, too small for IPv6",
            why="The kernel removed its IPv6 addresses when the MTU fell below 1280, and does not restore those that "
            "were set by hand.",
            evidence={"links": (link.name,), "mtu": link.mtu, "addresses": link.addresses},
            remedy=(SetTunable(f"link:{link.name}:mtu", str(ETHERNET_MTU), "at-least"), "set the IPv6 addresses again"),
        )
        for link in found
    )


def _pace_links(facts: Facts, names: Collection[str] | None = None) -> Iterator[RunShell]:
    """Links that are up keep their qdisc when the default changes. A plan that changes both could not undo theirs."""
    for link in facts.links:
        if is_physical(link) and is_up(link) and (names is None or link.name in names):
            replace = f"tc qdisc replace dev {shlex.quote(link.name)} root fq"
            yield RunShell(replace, f"give {link.name} fq now", f"packets that wait to leave by {link.name} are lost")


@rule(
    id="network.bbr-unpaced",
    severity="info",
    title="BBR runs without fq, the qdisc that paces it",
    what="tcp_congestion_control bbr where net.core.default_qdisc is not fq, or where a link keeps the discipline "
    "that it was made with.",
    why="fq spaces packets for all connections at once, for less CPU time than a timer for each.",
    helps_when="Many connections over lossy wide-area paths, for which BBR was made.",
    hurts_when="The cloud or the card paces by itself, or few connections carry everything. One fq at the root makes "
    "all queues of a card wait for one lock: tc qdisc replace dev IFACE root mq gives each its own default_qdisc.",
    sources=(sources.BBR_PACING, sources.IP_SYSCTL),
)
def unpaced(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    queue = facts.sysctl.get("net.core.default_qdisc")
    # mq takes the default for each queue; a link without any discipline paces by itself.
    kept = {
        link.name: link.qdisc
        for link in facts.links
        if is_physical(link) and is_up(link) and link.qdisc not in (None, "fq", "mq", "noqueue")
    }
    if facts.sysctl.get("net.ipv4.tcp_congestion_control") != "bbr" or queue is None or (queue == "fq" and not kept):
        return None
    if queue == "fq":
        return unpaced.found(
            why="The default holds for links that are set up from now on; a link keeps the discipline that it has.",
            evidence={
                "links": tuple(kept),
                "net.core.default_qdisc": queue,
                "detail": tuple(f"{name}: {discipline}" for name, discipline in kept.items()),
            },
            remedy=tuple(_pace_links(facts, kept)),
            intent=True,
        )
    return unpaced.found(
        why=f"BBR spaces its packets; with the discipline {queue}, TCP keeps a timer for each socket.",
        evidence={"net.ipv4.tcp_congestion_control": "bbr", "net.core.default_qdisc": queue},
        remedy=(
            set_sysctl("net.core.default_qdisc", "fq"),
            *_pace_links(facts),
            RunShell("tc qdisc show", "check the links"),
            "or use cubic, the default, where the network loses nothing",
        ),
        intent=True,
    )
