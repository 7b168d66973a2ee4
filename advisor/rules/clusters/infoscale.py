"""InfoScale: which of the white paper's five configurations this is, and what mirroring its writes costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from advisor.facts.clusters.infoscale_configuration import (
    FSS_TCP,
    FSS_UDP,
    FSS_ZONES,
    LONG_ROUND_TRIP_SECONDS,
    MIRRORED,
    SHARED_DISK,
    SINGLE_NODE,
    TITLES,
    InfoScaleSigns,
    Recognition,
    recognised,
)
from advisor.facts.network.links import Link
from advisor.rules import sources
from advisor.rules.queries import by_name, links_below
from advisor.rules.rule import Facts, Finding, RunShell, rule
from advisor.rules.workload import DeclaredWorkload, RecognisedWorkload, Replication, Transport

if TYPE_CHECKING:
    from advisor.facts.clusters.beegfs import BeegfsService
    from advisor.facts.clusters.llt import LltLink

ORDER = 90

PROFILE_PREFIX = "infoscale-"

MIRRORED_IOPS_SHARE = 0.5
"""Of a local disk's IOPS where two nodes of one zone mirror it (about, from a chart); less across zones."""
MIRRORING_CPU_PERCENT = 2.0
"""The most that mirroring took of the CPUs in the paper, in points; a little more over TCP than over UDP."""


def profile_of(configuration: str) -> str:
    """The name of the profile of a configuration."""
    return f"{PROFILE_PREFIX}{configuration}"


def serial_writes_per_second(rtt_seconds: float) -> float:
    """The most that one writer gets who waits for each mirrored write: a round trip for each."""
    return 1 / rtt_seconds


def recognition(facts: Facts, workload: DeclaredWorkload | None) -> Recognition | None:
    """The configuration by what was seen; a declaration fills in what was not. None where InfoScale is not here."""
    if facts.infoscale is None:
        return None
    signs = facts.infoscale.signs
    return recognised(signs if workload is None else _with_declared(signs, workload))


def _with_declared(signs: InfoScaleSigns, workload: DeclaredWorkload) -> InfoScaleSigns:
    said: list[str] = []
    transports, mirrors, place, is_cluster = signs.transports, signs.mirrors, signs.place, signs.is_cluster
    if is_cluster is None and workload.name == SINGLE_NODE:
        is_cluster = False
        said.append("a single node (declared)")
    if not transports and workload.transport in ("tcp", "udp"):
        transports = (workload.transport,)
        said.append(f"over {workload.transport} (declared)")
    if mirrors is None and workload.replication is not None:
        mirrors = workload.is_replicated
        said.append(f"writes are {'' if mirrors else 'not '}mirrored to another node (declared)")
    if place is None and workload.rtt_seconds is not None:
        place = "several-zones" if workload.rtt_seconds > LONG_ROUND_TRIP_SECONDS else "one-zone"
        said.append(f"a round trip of {workload.rtt_seconds * 1e3:g} ms (declared)")
    elif place is None and workload.name in (FSS_TCP, FSS_UDP):
        place = "one-zone"
        said.append(f"inside one zone, as {workload.name} means (declared)")
    return msgspec.structs.replace(
        signs, is_cluster=is_cluster, transports=transports, mirrors=mirrors, place=place, seen=(*signs.seen, *said)
    )


def recognised_workload(facts: Facts) -> DeclaredWorkload | None:
    """What the recognised configuration says about the load, where nothing was declared; None where none is certain.

    Only what follows from the configuration: neither block size, nor order, nor share of writes can be seen.
    """
    found = recognition(facts, None)
    if found is None or found.configuration is None:
        return None
    name = found.configuration
    over: Transport | None = None if name not in MIRRORED else "tcp" if name == FSS_TCP else "udp"
    mirrored: Replication = "sync" if name in MIRRORED else "none"
    return RecognisedWorkload(transport=over, replication=mirrored)


def _describe_contradiction(facts: Facts, workload: DeclaredWorkload | None) -> str:
    seen = recognition(facts, None)
    is_local = seen is not None and seen.configuration in (SINGLE_NODE, SHARED_DISK)
    if not is_local or workload is None or not workload.is_replicated:
        return ""
    return " The declared workload mirrors its writes, which contradicts this: what was seen counts."


_WHY = {
    SINGLE_NODE: "Nothing of its storage crosses the network, so none of the white paper's three tunings has anything "
    "to carry; its IOPS are those of the disk.",
    SHARED_DISK: "In the white paper it was as fast as a single node: LLT carries heartbeats and locks and no writes, "
    "so none of the three tunings has anything to carry. Inside one zone the paper prefers it to mirrors.",
    FSS_TCP: "Every write also goes to the peer over LLT: in the white paper MTU 9000 was the best of the three "
    "tunings (4 KiB sequential, half reads).",
    FSS_UDP: "Every write also goes to the peer over LLT: in the white paper the buffers were slightly the best of the "
    "three tunings (64 KiB sequential, half reads), with little difference.",
    FSS_ZONES: "Every write waits for a peer in another zone: in the white paper doubled high-water marks of LLT were "
    "the best of the three tunings (4 KiB sequential, half reads).",
}


@rule(
    id="infoscale.configuration",
    severity="info",
    title="InfoScale: which of five configurations this is",
    what="/etc/llttab, /etc/llthosts, lltstat, the resources of main.cf, the states of vxdisk list, the subnets of "
    "LLT's peers, and the declared transport, round trip and replication where those do not say.",
    why="Which tuning helps depends on whether writes are mirrored, over what, and how far.",
    helps_when="Choosing among the three tunings.",
    hurts_when="It is taken for a declaration: neither block size nor order nor share of writes can be seen.",
    sources=(sources.WHITE_PAPER, sources.VCS_UDP),
    judges_declared=True,
)
def configuration(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = recognition(facts, workload)
    if found is None:
        return None
    name = found.configuration
    possible = tuple(one for one in TITLES if found.fits[one] == "possible")
    is_open = f" setup is not certain ({', '.join(possible)})"
    return configuration.found(
        title="InfoScale"
        + (f": {TITLES[name]}" if name else is_open if possible else ": none of the five configurations"),
        why=_WHY[name] + _describe_contradiction(facts, workload)
        if name
        else "What was seen leaves it open, and the three tunings help each one differently."
        if possible
        else "What was seen is known, and the white paper has no such cluster: its figures are of none like it.",
        evidence={
            "configuration": name,
            "possible": possible,
            "detail": (*found.evidence, *(f"not known: {text}" for text in found.untold if possible))
            or ("nothing but that InfoScale is installed",),
        },
        remedy=(
            RunShell("advisor recommend", "see what fits"),
            RunShell(f"advisor explain {profile_of(name)}", "read about its profile"),
        )
        if name
        else f"to know more: {'; '.join(found.untold)}"
        if possible
        else (
            "read what fits without the paper's figures: the links, MTU and flow control of LLT are judged one by one",
            RunShell("advisor recommend", "see what fits"),
        ),
        intent=workload is None,
    )


@rule(
    id="infoscale.mirroring-cost",
    severity="info",
    title="Mirroring over LLT costs about half of the IOPS",
    what="A recognised or declared cluster that mirrors disks between its nodes, and the declared round trip.",
    why="A mirrored write is done when the peer has it too: a round trip, and the peer's disk.",
    helps_when="Expectations are set, or a topology is chosen: inside one zone the paper prefers shared disks; across "
    "zones there are none.",
    hurts_when="It is taken for a bound: the paper's are charts of one load on a t2.large with gp2, without numbers.",
    sources=(sources.WHITE_PAPER,),
    judges_declared=True,
)
def mirroring_cost(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    # Certainly by what was seen, or declared for a cluster of LLT's.
    found = recognition(facts, workload)
    if found is not None:
        is_mirrored = found.configuration in MIRRORED
    else:
        is_mirrored = facts.llt is not None and workload is not None and workload.is_replicated
    if not is_mirrored:
        return None
    rtt = workload.rtt_seconds if workload else None
    serial = None if rtt is None else round(serial_writes_per_second(rtt))
    waiting = f" One writer that waits for each write gets at most {serial:,} a second." if serial else ""
    return mirroring_cost.found(
        why="In the white paper a mirrored disk gave about half of the IOPS of a local or shared one inside one zone, "
        f"less across zones, and took at most {MIRRORING_CPU_PERCENT:g} % of the CPUs.{waiting}",
        evidence={
            "expected_iops_share": MIRRORED_IOPS_SHARE,
            "expected_cpu_percent": MIRRORING_CPU_PERCENT,
            "rtt_seconds": rtt,
            "serial_writes_per_second": serial,
        },
        remedy="measure both: advisor bench --workload infoscale.4k-rand-rw50 --target DIR, on a mirrored and on a "
        "local volume, then advisor compare",
        intent=workload is None or not workload.is_replicated,
    )


# What BeeGFS goes over on this host, as its files and links say: RDMA passes the sockets, TCP does not.

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


# What LLT carries here: what was seen outranks what is declared, and low-priority links carry heartbeats only.

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
