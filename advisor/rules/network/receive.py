"""The receive path beyond socket buffers: rings, queues, steering, filters; counters where the kernel keeps some."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from advisor.facts.network.links import Link
from advisor.host.numbers import count_noun
from advisor.rules import sources
from advisor.rules.queries import by_name, crosses_network, is_physical, is_up, links_above, links_below, sysctl_number
from advisor.rules.rule import DeclaredWorkload, Evidence, Facts, Finding, RunShell, SetTunable, rule, set_sysctl

ORDER = 30

_LOST = ("rx_missed_errors", "rx_fifo_errors", "rx_over_errors")
_ERROR_SHARE = 1e-4
_RING_MOST = 4096
_SQUEEZED_SHARE = 1e-3
_FAST_MBPS = 10_000
_NEARLY_FULL = 0.8
_NEIGHBOURS = 4096
# Links that containers and tunnels bring along, and the wireless card of a laptop in its dock: no second way into a
# host of a storage network.
_INSIDE = frozenset(
    {"veth", "tun", "wireguard", "wlan", "dummy", "vxlan", "geneve", "ipip", "ifb", "tap", "virtual", "macvtap"}
)
_RP = "net.ipv4.conf.{}.rp_filter"


def _lost_packets(link: Link) -> int:
    # Several names may count one loss, so the largest is taken and not the sum.
    return max((link.counters.get(name, 0) for name in _LOST), default=0)


@rule(
    id="network.ring-drops",
    severity="advice",
    title="A link lost packets before the kernel saw them",
    what="rx_missed_errors, rx_fifo_errors and rx_over_errors of links with a device, against the length of the ring.",
    why="A card puts packets into a ring of descriptors that the kernel empties; what finds no free one is gone.",
    helps_when="The counter rises under the load that matters and the ring is below its maximum.",
    hurts_when="A long ring costs cache and delay, and changing it interrupts the link; drivers count other losses "
    "under these names too.",
    sources=(sources.RED_HAT_RING, sources.STATISTICS, sources.ENA),
)
def ring_drops(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for link in facts.links:
        if is_physical(link) and _lost_packets(link):
            lost, received = _lost_packets(link), link.counters.get("rx_packets")
            often = received is None or lost >= _ERROR_SHARE * (lost + received)
            wanted = min(link.rings.rx_max, _RING_MOST) if link.rings else 0
            may_grow = link.rings is not None and 0 < link.rings.rx < wanted
            evidence: Evidence = {
                "links": (link.name,),
                **{counter: link.counters[counter] for counter in (*_LOST, "rx_packets") if counter in link.counters},
                "ring_rx": link.rings.rx if link.rings else None,
                "ring_rx_max": link.rings.rx_max if link.rings else None,
            }
            yield ring_drops.found(
                severity="advice" if often else "info",
                title=f"Link {link.name} lost {count_noun(lost, 'packet')} in hardware",
                why="The card had no free descriptor: the CPUs were too slow to refill its ring, or the ring is too "
                "short for the bursts that arrive.",
                evidence=evidence,
                remedy=SetTunable(f"link:{link.name}:ring.rx", str(wanted), "at-least")
                if may_grow
                else (
                    RunShell(f"ethtool -S {shlex.quote(link.name)}", "see which queue loses packets"),
                    "spread the interrupts of that queue; the ring cannot grow",
                ),
            )


def _receive_queues(link: Link) -> int | None:
    """Receive queues in use; None where the driver does not say."""
    return (link.channels.combined + link.channels.rx) or None if link.channels else None


def _most_queues(link: Link) -> tuple[str, int]:
    """The kind of channel that receives, and how many the card has: of its own, where it has no combined ones."""
    channels = link.channels
    if channels is None:
        return "combined", 0
    return ("combined", channels.combined_max) if channels.combined_max else ("rx", channels.rx_max)


def _is_behind(facts: Facts) -> bool:
    """Whether the receive path has dropped, or often stopped with packets waiting."""
    counters = facts.counters
    squeezed, processed = counters.softnet_squeezed or 0, counters.softnet_processed or 0
    return bool(counters.softnet_dropped) or (processed > 0 and squeezed >= _SQUEEZED_SHARE * processed)


@rule(
    id="network.few-queues",
    severity="advice",
    title="A link has fewer receive queues than node cores",
    what="Receive channels of links, not of those known to be below 10 Gbit/s, where the receive path drops or stops "
    "early, or a workload over the network is declared.",
    why="Receive-side scaling spreads flows over queues, and queues over CPUs.",
    helps_when="Many flows.",
    hurts_when="One flow uses one queue however many there are. The fewest queues that do not overflow are the most "
    "efficient; each more is one more interrupt.",
    sources=(sources.SCALING, sources.ENA),
)
def few_queues(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    is_behind, cpus = _is_behind(facts), facts.cpu.cores
    if not cpus or not (is_behind or crosses_network(facts, workload)):
        return
    for link in facts.links:
        kind, most = _most_queues(link)
        wanted = min(most, max(1, cpus // max(1, len(facts.numa.nodes))))
        queues = _receive_queues(link)
        # A paravirtual link has no speed; unknown is not slow.
        is_fast = link.speed_mbps is None or link.speed_mbps >= _FAST_MBPS
        if is_physical(link) and is_up(link) and is_fast and queues and queues < wanted:
            yield few_queues.found(
                severity="advice" if is_behind else "info",
                title=f"Link {link.name} has {queues} receive queue{'s' if queues > 1 else ''} for {wanted} cores",
                why="Each queue is served by one CPU at a time. "
                + (
                    "The counters of the receive path say that the CPUs in use do not keep up."
                    if is_behind
                    else "No counter says that this is too few; the workload uses the network."
                ),
                evidence={"links": (link.name,), "queues": queues, "wanted": wanted, "speed_mbps": link.speed_mbps},
                remedy=SetTunable(f"link:{link.name}:channels.{kind}", str(wanted), "at-least"),
                intent=not is_behind,
            )


def _is_steered(link: Link) -> bool:
    return bool((link.rps_cpus or "").strip("0,"))


@rule(
    id="network.steering-redundant",
    severity="info",
    title="Packets are steered although each CPU has a queue",
    what="rps_cpus of the first receive queue, of links with as many queues as the host has CPUs.",
    why="Receive packet steering does in software what the card's own queues do.",
    helps_when="Latency and CPU time matter.",
    hurts_when="The card spreads the flows badly (tunnels, one flow): then steering may still help.",
    sources=(sources.SCALING,),
)
def steering_redundant(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    threads = facts.cpu.threads
    found = tuple(
        link for link in facts.links if _is_steered(link) and threads and (_receive_queues(link) or 0) >= threads
    )
    if not found:
        return None
    return steering_redundant.found(
        why="Every CPU has a queue of its own already, so steering moves packets from one CPU to another for nothing.",
        evidence={
            "links": tuple(link.name for link in found),
            "detail": tuple(f"{link.name}: {_receive_queues(link)} queues, rps_cpus {link.rps_cpus}" for link in found),
        },
        remedy=tuple(
            SetTunable(f"link:{link.name}:rps.rx-{queue}", "none")
            for link in found
            for queue in range(_receive_queues(link) or 0)
        ),
    )


def _has_one_queue_for_all(link: Link) -> bool:
    is_most = link.channels is not None and max(link.channels.combined_max, link.channels.rx_max) == 1
    return link.rps_cpus is not None and not _is_steered(link) and is_most


@rule(
    id="network.steering-missing",
    severity="advice",
    title="A link with one queue is behind, and not steered",
    what="Links whose card has one receive queue at most and whose rps_cpus is 0, where softnet counters say that the "
    "receive path is behind.",
    why="Receive packet steering hands the work after the interrupt to other CPUs.",
    helps_when="Virtual links with one queue, several flows.",
    hurts_when="One flow stays on one CPU; the hand-over costs an interrupt between CPUs.",
    sources=(sources.SCALING, sources.ENA),
)
def steering_missing(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    threads = facts.cpu.threads or 0
    if not _is_behind(facts) or threads < 2:
        return None
    found = tuple(link for link in facts.links if is_physical(link) and is_up(link) and _has_one_queue_for_all(link))
    if not found:
        return None
    return steering_missing.found(
        why=f"The receive path drops packets or stops early, and one CPU of {threads} does all of its work.",
        evidence={
            "links": tuple(link.name for link in found),
            "softnet_dropped": facts.counters.softnet_dropped,
            "softnet_squeezed": facts.counters.softnet_squeezed,
        },
        remedy=(
            *(SetTunable(f"link:{link.name}:rps.rx-0", facts.cpu.online or "") for link in found),
            "leave out the CPU that takes the interrupt where there are enough others",
        ),
    )


def _networks_of(link: Link) -> set[str]:
    import ipaddress

    found = set()
    for address in link.addresses:
        try:
            interface = ipaddress.ip_interface(address)
        except ValueError:
            continue
        if interface.version == 4:
            found.add(str(interface.network))
    return found


def _home_links(facts: Facts) -> tuple[Link, ...]:
    """The links by which other hosts reach this one over IPv4; a bridge only where one of its ports leads outside."""
    links = by_name(facts)
    return tuple(
        link
        for link in facts.links
        if is_up(link)
        and not link.detail.get("id")
        and link.kind not in _INSIDE
        and (
            link.kind != "bridge" or any(one.kind not in (*_INSIDE, "bridge") for one in links_below(link.name, links))
        )
        and _networks_of(link)
    )


@rule(
    id="network.reverse-path-filter",
    severity="advice",
    title="rp_filter drops what returns by another link",
    what="rp_filter 1 where several links lead to other hosts over IPv4, and either IPReversePathFilter of "
    "/proc/net/netstat has counted drops or two of the links have addresses in one network.",
    why="With two links in one network, or with asymmetric routes, answers come by the other link and are dropped "
    "silently.",
    helps_when="Cluster, iSCSI and BeeGFS hosts with several links.",
    hurts_when="The filter keeps out forged sources: 2 only asks that some route leads back. With routes by source 1 "
    "is right.",
    sources=(sources.IP_SYSCTL, sources.RED_HAT_RP_FILTER, sources.NETAPP_BEEGFS),
    contradictions=("contradiction.several-links-arp",),
)
def reverse_path(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    # The larger of all and the link's own counts; a link's own begins as default's. Looked at before the links, whose
    # addresses are read by ipaddress: loading that is a fiftieth of a scan.
    everywhere, initially = (sysctl_number(facts, f"net.ipv4.conf.{name}.rp_filter") for name in ("all", "default"))
    if not (everywhere == 1 or (everywhere == 0 and initially == 1)):
        return None
    homes, dropped = _home_links(facts), facts.counters.reverse_path_filtered
    twice = tuple(
        link.name
        for link in homes
        if any(_networks_of(link) & _networks_of(other) for other in homes if other is not link)
    )
    if len(homes) < 2 or not (dropped or twice):
        return None
    return reverse_path.found(
        severity="advice" if dropped else "info",
        title=f"{count_noun(dropped, 'packet')} dropped by the reverse path filter" if dropped else None,
        why="rp_filter 1 drops what arrives by another link than the one that leads back to its source. "
        + (
            "The kernel counts such drops since the host started."
            if dropped
            else f"No such drop has been counted yet; {' and '.join(twice)} have addresses in one network, where a "
            "packet may arrive by either."
        ),
        evidence={
            "links": tuple(link.name for link in homes) if dropped else twice,
            "reverse_path_filtered": dropped,
            **{
                f"net.ipv4.conf.{name}.rp_filter": sysctl_number(facts, _RP.format(name)) for name in ("all", "default")
            },
        },
        remedy=(set_sysctl("net.ipv4.conf.all.rp_filter", 2), "or use routes by source"),
        intent=not dropped,
    )


@rule(
    id="network.neighbours-full",
    severity="advice",
    title="The table of neighbours is too small",
    what="Entries and table_fulls of /proc/net/stat/arp_cache against gc_thresh3.",
    why="gc_thresh3 is the most that the table ever holds, for all links together.",
    helps_when="Hundreds of hosts in one network, as in compute clusters.",
    hurts_when="A scan of the network fills any table: then find who scans.",
    sources=(sources.IP_SYSCTL, sources.NETAPP_BEEGFS),
)
def neighbours(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    full, entries = facts.counters.neighbour_table_full or 0, facts.counters.neighbours or 0
    most = sysctl_number(facts, "net.ipv4.neigh.default.gc_thresh3")
    if not full and (most is None or entries < _NEARLY_FULL * most):
        return None
    # The kernel's own marks stand to each other as 1, 4 and 8.
    room = max(_NEIGHBOURS, 1 << (2 * entries).bit_length())
    may_grow = most is None or most < room
    return neighbours.found(
        severity="advice" if may_grow else "info",
        title=f"The table of neighbours was full {count_noun(full, 'time')}"
        if full
        else "The table of neighbours is nearly full",
        why="A packet to a neighbour that finds no place in the table is dropped, and the program sees an error.",
        evidence={"neighbours": entries, "times_full": full, "net.ipv4.neigh.default.gc_thresh3": most},
        remedy=tuple(
            set_sysctl(f"net.ipv4.neigh.default.gc_thresh{n}", room // part, "at-least")
            for n, part in ((1, 8), (2, 2), (3, 1))
        )
        if may_grow
        else (RunShell("ip -4 neigh show", "see who is in the table"), "find who scans the network"),
    )


@rule(
    id="network.lro-forwarded",
    severity="advice",
    title="A link that forwards merges packets in its card",
    what="rx-lro of links under a bridge, or of any on a host that forwards IPv4.",
    why="GRO merges without loss and splits again; LRO does not.",
    helps_when="Bridges of virtual machines and containers, routers.",
    hurts_when="What the host itself receives costs more CPU without LRO, where the card has no hardware GRO.",
    sources=(sources.SEGMENTATION,),
)
def merged_and_forwarded(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    links = by_name(facts)
    forwards = sysctl_number(facts, "net.ipv4.ip_forward") == 1
    found = tuple(
        link.name
        for link in facts.links
        if (link.features or {}).get("rx-lro")
        and is_physical(link)
        and (forwards or any(one.kind == "bridge" for one in links_above(link.name, links)))
    )
    if not found:
        return None
    return merged_and_forwarded.found(
        why="Large receive offload merges packets in a way that cannot be undone, and what is forwarded is then too "
        "large for the next link.",
        evidence={"links": found, "net.ipv4.ip_forward": sysctl_number(facts, "net.ipv4.ip_forward")},
        remedy=tuple(SetTunable(f"link:{name}:feature.rx-lro", "off") for name in found),
    )
