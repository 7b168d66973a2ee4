"""LLT: flow control against the declared workload, its own order, and what /etc/llttab would set."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping

from advisor.facts.clusters.infoscale_configuration import LONG_ROUND_TRIP_SECONDS, MIRRORED
from advisor.facts.clusters.llt import HIGH_WATER_MARKS, Llt, LltLink, MarkDefault, mark_defaults
from advisor.facts.settings.value import KEY, parse_ports, ports_text
from advisor.rules import sources
from advisor.rules.clusters.infoscale import profile_of, recognition, stays_local
from advisor.rules.queries import LLT_FLOW_CONTROL, by_name, sysctl_numbers
from advisor.rules.rule import (
    Decide,
    DeclaredWorkload,
    Facts,
    Finding,
    PlanProfile,
    Remedy,
    Rule,
    RunShell,
    SetTunable,
    plan_profile,
    rule,
    set_sysctl,
)

ORDER = 70

_PACKET_BYTES = 8192
# the smaller must stay below the larger
_ORDER = (("lowwater", "highwater"), ("rportlowwater", "rporthighwater"), ("ackval", "window"), ("sws", "window"))


def _mark_defaults_of(llt: Llt) -> dict[str, MarkDefault]:
    live = {name: llt.flow_control[name] for name in HIGH_WATER_MARKS if name in llt.flow_control}
    return mark_defaults(live, llt.llttab)


def _is_case(facts: Facts, workload: DeclaredWorkload) -> bool:
    """Mirrored writes: many, or some over a long round trip. A round trip by itself fills no queue, but where the
    disks are seen to be mirrored, a long one is the configuration for which the white paper recommends the marks."""
    far = workload.rtt_seconds is not None and workload.rtt_seconds > LONG_ROUND_TRIP_SECONDS
    signs = facts.infoscale.signs if facts.infoscale else None
    if far and signs is not None and signs.mirrors and workload.replication != "none" and workload.write_share != 0:
        return True
    return workload.mirrors_writes and (workload.is_write_heavy or (far and bool(workload.write_share)))


@rule(
    id="llt.flow-control-default",
    severity="advice",
    title="LLT flow control is at its default",
    what="highwater and rporthighwater as lltconfig -F query prints them, against LLT's default: the live value where "
    "/etc/llttab does not set it and releases ship with it (200, 1,000); 400 and 2,000 in /etc/llttab are doubled.",
    why="While flow control holds a queue back, the replicated write waits.",
    helps_when="Write-heavy replication over a long round trip, such as between availability zones.",
    hurts_when="Little memory (the queue may hold highwater × 8 KiB for each peer) or latency that matters more than "
    "throughput: a deeper queue is a longer one. No gain where flow control never sets in.",
    sources=(sources.WHITE_PAPER, sources.VCS_FLOW),
    contradictions=("contradiction.llt-flow-control-defaults",),
)
def flow_control_default(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if (
        facts.llt is None
        or (workload is not None and not (workload.replication != "none" and workload.write_share != 0))
        or stays_local(facts)
    ):
        return None
    in_file = facts.llt.llttab.flow if facts.llt.llttab else {}
    values = {
        name: one.packets
        for name, one in _mark_defaults_of(facts.llt).items()
        if one.packets is not None
        and min(facts.llt.flow_control[name], in_file.get(name, facts.llt.flow_control[name])) < 2 * one.packets
    }
    unknown = list(dict.fromkeys(one.why for one in _mark_defaults_of(facts.llt).values() if one.packets is None))
    wanted = workload is not None and _is_case(facts, workload)
    if not values:
        return (
            flow_control_default.found(
                severity="info",
                title="Default high-water marks of LLT are unknown",
                why="Whether they are raised already is not known: the default differs between releases.",
                evidence={"detail": tuple(unknown)},
                remedy=(
                    plan_profile(LLT_FLOW_CONTROL),
                    "add --set default=PACKETS with the value of an untouched node of the same release",
                ),
            )
            if unknown and wanted
            else None
        )
    highest = max(values.values())
    return flow_control_default.found(
        severity="advice" if wanted else "info",
        why="LLT stops taking packets when a queue reaches its high-water mark and goes on at the low one. "
        + (
            "Writes are mirrored, many or over a long round trip, which fills the queues in bursts. "
            "The value is one for the cluster: the same on every node."
            if workload is not None and wanted
            else "Whether that ever happens here is unknown without a declared workload."
        ),
        evidence={
            **values,
            **{f"{name}_wanted": 2 * value for name, value in values.items()},
            "queue_bytes_per_peer": 2 * highest * _PACKET_BYTES,
            "rtt_seconds": workload.rtt_seconds if workload else None,
        },
        remedy=plan_profile(LLT_FLOW_CONTROL),
        intent=not wanted,
    )


def _out_of_order(values: Mapping[str, int], where: str) -> tuple[str, ...]:
    pairs = ((low, high) for low, high in _ORDER if low in values and high in values and values[low] >= values[high])
    return tuple(f"{where}: {low} {values[low]} is not below {high} {values[high]}" for low, high in pairs)


@rule(
    id="llt.flow-control-order",
    severity="warning",
    title="LLT flow control values contradict each other",
    what="lowwater < highwater, rportlowwater < rporthighwater, ackval < window and sws < window, live and in "
    "/etc/llttab.",
    why="The marks are meant to lie apart so that a queue drains before it takes more.",
    helps_when="Always.",
    hurts_when="Set in the wrong order the values contradict each other for a moment: raise the high mark first.",
    sources=(sources.VCS_FLOW, sources.LLTCONFIG),
)
def flow_control_order(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if facts.llt is None:
        return None
    at_boot = {**facts.llt.flow_control, **(facts.llt.llttab.flow if facts.llt.llttab else {})}
    wrong = _out_of_order(facts.llt.flow_control, "live")
    if facts.llt.llttab is not None and facts.llt.llttab.flow:
        wrong += _out_of_order(at_boot, "/etc/llttab")
    if not wrong:
        return None
    return flow_control_order.found(
        why="A low-water mark that is not below its high one, or an acknowledgement that is due only after the window "
        "is full, makes LLT start and stop by turns or wait for a timer.",
        evidence={"detail": wrong},
        remedy=(
            "decide which of the values is wrong, set it with advisor apply llt:NAME=VALUE, and write the same "
            "set-flow line in /etc/llttab",
            RunShell("lltconfig -F query", "see the live values"),
        ),
    )


def drift(
    drifted: Rule, live: Mapping[str, int], in_file: Mapping[str, int], *, why: str, prefix: str, line: str
) -> Finding | None:
    """What /etc/llttab says otherwise than LLT does: tunables of ``prefix`` set it, ``line`` of llttab keeps it."""
    names = tuple(name for name in sorted(in_file) if name in live and live[name] != in_file[name])
    if not names:
        return None
    return drifted.found(
        why=why,
        evidence={
            "names": names,
            "detail": tuple(f"{name}: live {live[name]}, /etc/llttab {in_file[name]}" for name in names),
        },
        remedy=(
            *(SetTunable(f"llt:{prefix}{name}", str(in_file[name])) for name in names),
            f"that is where the file is right; else correct {line} in /etc/llttab",
        ),
    )


@rule(
    id="llt.flow-control-drift",
    severity="advice",
    title="Live LLT flow control differs from /etc/llttab",
    what="What lltconfig -F query prints against the set-flow lines.",
    why="The next restart of LLT would change the behaviour of the cluster.",
    helps_when="All nodes should come back as they ran.",
    hurts_when="The live value is an experiment that is meant to end with the restart.",
    sources=(sources.LLTCONFIG, sources.WHITE_PAPER),
)
def flow_control_drift(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if facts.llt is None or facts.llt.llttab is None:
        return None
    why = "lltconfig -F holds until LLT restarts; from then on /etc/llttab counts."
    return drift(flow_control_drift, facts.llt.flow_control, facts.llt.llttab.flow, why=why, prefix="", line="set-flow")


def _networks_of(addresses: tuple[str, ...]) -> frozenset[str]:
    found = set()
    for address in addresses:
        try:
            interface = ipaddress.ip_interface(address)
        except ValueError:
            continue
        if not interface.ip.is_link_local and interface.network.num_addresses > 1:
            found.add(str(interface.network))
    return frozenset(found)


def _broadcast_lines(lines: Iterable[LltLink]) -> Iterator[tuple[str, LltLink]]:
    """Lines with an address of their own and the broadcast of a subnet; 255.255.255.255 is no subnet's."""
    for line in lines:
        try:
            address, broadcast = ipaddress.IPv4Address(line.address or ""), ipaddress.IPv4Address(line.broadcast or "")
        except ValueError:
            continue
        if int(broadcast) not in (0, 0xFFFFFFFF) and address != broadcast:
            yield str(broadcast), line


def _same_broadcast(lines: Iterable[LltLink]) -> dict[str, tuple[LltLink, ...]]:
    """Lines of /etc/llttab whose addresses differ and whose broadcast, and so whose subnet, is one."""
    found: dict[str, dict[str, LltLink]] = {}
    for broadcast, line in _broadcast_lines(lines):
        found.setdefault(broadcast, {}).setdefault(line.address or "", line)
    return {broadcast: tuple(each.values()) for broadcast, each in found.items() if len(each) > 1}


@rule(
    id="llt.same-subnet",
    severity="warning",
    title="Two LLT links over UDP are in one subnet",
    what="The subnets of the kernel links that carry LLT links of type udp and udp6; else the broadcast addresses of "
    "their lines in /etc/llttab.",
    why="Routing chooses one link for a subnet, whatever address LLT sends from.",
    helps_when="Two links were set up so that one may fail.",
    hurts_when="The change needs LLT down on the node: one node at a time.",
    sources=(sources.VCS_UDP, sources.IP_SYSCTL),
)
def same_subnet(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    links = by_name(facts)
    udp = [link for link in (facts.llt.links if facts.llt else ()) if link.type in ("udp", "udp6")]
    carriers = tuple(dict.fromkeys(link.link for link in udp if link.link in links))
    networks = {name: _networks_of(links[name].addresses) for name in carriers if name is not None}
    shared = {
        net: tuple(name for name in networks if net in networks[name]) for nets in networks.values() for net in nets
    }
    doubled = {net: names for net, names in sorted(shared.items()) if len(names) > 1}
    same_broadcast = {} if doubled else _same_broadcast(udp)
    if not doubled and not same_broadcast:
        return None
    return same_subnet.found(
        why="With two links in one subnet the kernel may send both links' packets out of the same one, and either may "
        "answer for the other's address: one failure can then take both.",
        evidence={
            "links": tuple(dict.fromkeys(name for names in doubled.values() for name in names))
            or tuple(link.tag for lines in same_broadcast.values() for link in lines),
            "detail": (
                *(f"{net}: {', '.join(names)}" for net, names in doubled.items()),
                *(
                    f"broadcast {address}: " + ", ".join(f"{link.tag} at {link.address}" for link in lines)
                    for address, lines in same_broadcast.items()
                ),
            ),
        },
        remedy="give each LLT link a subnet of its own and name it in its link line of /etc/llttab, on every node",
    )


def llt_ports(facts: Facts) -> tuple[int, ...]:
    """The ports of LLT's links over UDP and TCP, low-priority ones too, in order."""
    lines = facts.llt.links if facts.llt else ()
    texts = (one.port for one in lines if one.type in ("udp", "udp6", "tcp"))
    found = {int(text) for text in texts if text and re.fullmatch("[0-9]{1,5}", text, re.ASCII)}
    return tuple(sorted(port for port in found if 0 < port < 65536))


def open_ports(facts: Facts) -> tuple[int, ...]:
    """LLT's ports that the kernel may hand out to another program."""
    span = sysctl_numbers(facts, "net.ipv4.ip_local_port_range")
    if len(span) != 2:
        return ()
    reserved = parse_ports(facts.sysctl.get(KEY, "")) or frozenset()
    return tuple(port for port in llt_ports(facts) if span[0] <= port <= span[1] and port not in reserved)


def _reserve_ports(facts: Facts, ports: tuple[int, ...]) -> Remedy:
    """The value, and the profile of the recognised configuration, which has it. The key holds the whole list, so those
    that are reserved already go into it with the new ones."""
    there = parse_ports(facts.sysctl[KEY])
    if there is None:
        listed = ports_text(ports)
        return Decide(f"reserve {listed} in {KEY}, with what is reserved already, which could not be read")
    value = set_sysctl(KEY, ports_text(there.union(ports)))
    found = recognition(facts, None)
    if found is not None and found.configuration in MIRRORED:
        return PlanProfile(profile_of(found.configuration), only=(value,))
    return value


@rule(
    id="llt.port-not-reserved",
    severity="advice",
    title="An LLT port is in the kernel's ephemeral range",
    what="The UDP and TCP ports of LLT links against ip_local_port_range and ip_local_reserved_ports.",
    why="Reserved ports are still free for a program that names them, and are not given to one that takes any.",
    helps_when="LLT restarts on a host that has been up and busy.",
    hurts_when="Never; but the key holds the whole list, so add to it.",
    sources=(sources.VCS_UDP, sources.IP_SYSCTL),
)
def port_not_reserved(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    span, open_ = sysctl_numbers(facts, "net.ipv4.ip_local_port_range"), open_ports(facts)
    if not open_ or KEY not in facts.sysctl:
        return None
    return port_not_reserved.found(
        why="The kernel hands out ports of this range to any program; one that comes first keeps an LLT link down "
        "after a restart.",
        evidence={
            "ports": tuple(str(port) for port in open_),
            "net.ipv4.ip_local_port_range": f"{span[0]} {span[1]}",
            KEY: facts.sysctl[KEY],
        },
        remedy=_reserve_ports(facts, open_),
    )
