"""What goes wrong between hosts, not on one: networks with several MTUs, things that may be there once and are twice,
clocks that run apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.fleet import MAX_SKEW_SECONDS
from advisor.fleet.compare.collected import Membership
from advisor.fleet.compare.columns import Fleet, JudgedRow, explains_effect
from advisor.fleet.compare.comparison import (
    LINK_FLAP,
    OWN_PURPOSE,
    AttributeDifference,
    FleetFinding,
    HeldValue,
    Network,
)
from advisor.fleet.compare.remedies import CommandOrigin, raise_mtu
from advisor.fleet.compare.summary import HostSummary
from advisor.host.numbers import group_pairs
from advisor.host.patterns import lazy_regex
from advisor.rules import sources
from advisor.rules.rule import Severity

SKEW_WARNING_SECONDS = 300.0
"""RFC 4120: Kerberos refuses more."""
_ETHERNET_MTU = 1500
_NO_NAME = frozenset({"localhost", "localhost.localdomain", "(none)"})
_MACHINE_ID = "machine-id(5): it must be another on every machine"

Member = tuple[HostSummary, Membership]


class Shared(msgspec.Struct, frozen=True):
    """A network and who is in it. ``scope`` distinguishes networks of one address: an LLT cluster has its own."""

    network: str
    scope: str
    members: tuple[Member, ...]

    @property
    def hosts(self) -> int:
        return len({row.name for row, _ in self.members})


def shared_networks(rows: Sequence[HostSummary]) -> tuple[Shared, ...]:
    """Networks with two hosts at least, by address.

    Where LLT of several clusters runs in a network of one address, these are several networks: each has its own wire.
    """
    found = group_pairs((one.network, (row, one)) for row in rows for one in row.memberships)
    shared = (part for network in sorted(found) for part in _by_cluster(network, found[network]))
    return tuple(one for one in shared if one.hosts > 1)


def _by_cluster(network: str, members: Sequence[Member]) -> Iterator[Shared]:
    clusters = {row.cluster for row, one in members if one.carries_llt and row.cluster}
    if len(clusters) < 2:
        is_own = all(one.carries_llt for _, one in members)
        yield Shared(network, "".join(f"cluster {one}" for one in clusters if is_own), tuple(members))
        return
    parts = group_pairs(
        (f"cluster {member[0].cluster}" if member[0].cluster in clusters else "", member) for member in members
    )
    yield from (Shared(network, scope, tuple(some)) for scope, some in sorted(parts.items()))


def told_network(one: Shared) -> Network:
    """The network as the document has it."""
    mtus = _by_value(one.members, "mtu")
    return Network(one.network, one.scope, one.hosts, mtus, _by_value(one.members, "speed_mbps"))


def _by_value(members: Iterable[Member], name: str) -> tuple[HeldValue, ...]:
    """Each known value with the hosts whose link has it, the most frequent first."""
    pairs = dict.fromkeys((getattr(one, name), row.name) for row, one in members)
    values = group_pairs(pair for pair in pairs if pair[0] is not None)
    return tuple(
        HeldValue(value, tuple(hosts))
        for value, hosts in sorted(values.items(), key=lambda item: (-len(item[1]), item[0]))
    )


def _value_difference(attribute: str, groups: Sequence[HeldValue], unknown: Sequence[str] = ()) -> AttributeDifference:
    """Values of hosts; with a majority, where more than half have one of them."""
    everyone = {host for held in groups for host in held.hosts}
    # A host with two links in the network may have both values: it is not with the majority.
    usual = everyone - {host for held in groups[1:] for host in held.hosts}
    if 2 * len(usual) <= len(everyone) or len(everyone) < 3:
        return AttributeDifference(attribute, False, None, 0, tuple(groups), (), tuple(unknown))
    return AttributeDifference(attribute, True, groups[0].value, len(usual), tuple(groups[1:]), (), tuple(unknown))


def network_findings(shared: Iterable[Shared], controller: CommandOrigin) -> Iterator[FleetFinding]:
    """MTU and speed along each network; what several networks on the same links show is reported once."""
    for one, networks in _by_links(shared):
        mtus = _by_value(one.members, "mtu")
        if len(mtus) > 1:
            yield _mtu_finding(one, networks, mtus, controller)
        speeds = _by_value(one.members, "speed_mbps")
        if len(speeds) > 1:
            yield _speed_finding(one, networks, speeds)


def _by_links(shared: Iterable[Shared]) -> Iterator[tuple[Shared, str]]:
    """The first of the networks on the same links, and all of them in words: IPv4 and IPv6 run over one wire."""
    alike = group_pairs(
        ((one.scope, frozenset((row.name, member.link) for row, member in one.members)), one) for one in shared
    )
    yield from ((some[0], ", ".join(one.network for one in some[:4])) for some in alike.values())


def _mtu_finding(one: Shared, networks: str, mtus: tuple[HeldValue, ...], controller: CommandOrigin) -> FleetFinding:
    known = {host for held in mtus for host in held.hosts}
    unknown = tuple(dict.fromkeys(row.name for row, _ in one.members if row.name not in known))
    difference = _value_difference(f"network.{one.network}.mtu", mtus, unknown)
    wanted = difference.majority if isinstance(difference.majority, int) else max(int(held.value) for held in mtus)
    odd = [(row, member) for row, member in one.members if member.mtu not in (None, wanted)]
    links = ", ".join(f"{member.link} of {row.name} ({member.mtu})" for row, member in odd[:4])
    more = f" and {len(odd) - 4} more" if len(odd) > 4 else ""
    # The profile raises to jumbo frames, and the links below with it.
    smaller = [(row.name, member.link) for row, member in odd if (member.mtu or 0) < wanted]
    if wanted > _ETHERNET_MTU and smaller:
        commands = raise_mtu(smaller, wanted, controller)
    else:
        by_link = group_pairs((member.link, row.name) for row, member in odd)
        commands = tuple(controller.apply([f"link:{link}:mtu={wanted}"], hosts) for link, hosts in by_link.items())
    return FleetFinding(
        id="fleet.mtu-in-network",
        severity="warning",
        title=f"{len(mtus)} MTUs in one network: {networks}",
        hosts=difference.outliers,
        scope=one.scope,
        why="Hosts in one network segment must have one MTU. A large packet from the host with the larger one is "
        "dropped by the other without an error: TCP goes on, LLT and other datagrams vanish; the ring breaks.",
        differences=(difference,),
        advice=f"bring {links}{more} to {wanted}, or all to the smaller one; then advisor probe between them",
        commands=commands,
        hurts_when="A switch or peer on the way that does not carry it. " + LINK_FLAP,
        sources=(sources.MEASURED_MTU, sources.VCS_UDP),
        rank=0,
    )


def _speed_finding(one: Shared, networks: str, speeds: tuple[HeldValue, ...]) -> FleetFinding:
    difference = _value_difference(f"network.{one.network}.speed_mbps", speeds)
    return FleetFinding(
        id="fleet.speed-in-network",
        severity="advice",
        title=f"links of {len(speeds)} speeds in one network: {networks}",
        hosts=difference.outliers,
        scope=one.scope,
        why="What is mirrored or read from all goes at the pace of the slowest link; the faster ones overrun it, and "
        "the switch drops.",
        differences=(difference,),
        advice="look at what was negotiated (ethtool), at cable, transceiver and switch port",
        hurts_when=OWN_PURPOSE + " The speed of a virtual machine's link means nothing.",
        sources=(sources.IP_LINK,),
        rank=33,
    )


def identity_findings(rows: Sequence[HostSummary], shared: Sequence[Shared]) -> Iterator[FleetFinding]:
    """What names one host and is there twice: machine-id, host name, address, LLT node."""
    machines = _shared_keys((row.machine_id, row.name) for row in rows)
    boots = {row.name: row.boot_id for row in rows}
    for identity, hosts in machines.items():
        known = [boots[host] for host in hosts]
        is_same = None not in known and len(set(known)) == 1
        if is_same:
            yield _double("host", "one machine under several names", identity, hosts, 4, _MACHINE_ID,
                          "Machine id and boot id are the same: it is one host, and counts as several in every majority"
                          " here.", "take all but one of the names out of the inventory", severity="advice",
                          hurts_when="Nothing, but for who looks the other name up.")  # fmt: skip
        else:
            yield _double("machine-id", "one machine-id on several hosts", identity, hosts, 6, _MACHINE_ID,
                          "They were cloned from one image. DHCP, journals and rollback scripts distinguish hosts by "
                          "it.", "on all but one: rm /etc/machine-id; systemd-machine-id-setup; then restart",
                          hurts_when="The journal of before is filed under the old id.")  # fmt: skip
    for name, hosts in _shared_keys((row.hostname, row.name) for row in rows).items():
        if name not in _NO_NAME and not _is_told(hosts, machines):
            yield _double("hostname", "one host name on several hosts", name, hosts, 7, "hostname(7)",
                          "Logs, monitoring and cluster software distinguish hosts by this name.",
                          "give each host a name of its own: hostnamectl set-hostname NAME")  # fmt: skip
    for one in shared:
        addresses = _shared_keys((member.address, row.name) for row, member in one.members).items()
        alike = group_pairs((hosts, address) for address, hosts in addresses if not _is_told(hosts, machines))
        for hosts, some in alike.items():
            yield _double("address", f"one address on several hosts of {one.network}", ", ".join(some[:8]), hosts, 2,
                          "RFC 5227", "Two hosts that answer for one address take each other's packets.",
                          "find out whose it is: arping -D from a third host of the network", scope=one.scope,
                          hurts_when="A service address that moved between the captures, and networks that only share "
                          "a number: there is nothing to mend.")  # fmt: skip
    nodes = _shared_keys((f"{row.cluster}/{row.node}" if row.cluster and row.node else None, row.name) for row in rows)
    for node, hosts in nodes.items():
        if not _is_told(hosts, machines):
            yield _llt_node(node, hosts)


def _is_told(hosts: Iterable[str], machines: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether the machine-id finding names these hosts already: what is one machine has one of everything."""
    return any({*hosts} <= {*some} for some in machines.values())


def _shared_keys(pairs: Iterable[tuple[str | None, str]]) -> Mapping[str, tuple[str, ...]]:
    found = group_pairs((key, host) for key, host in dict.fromkeys(pairs) if key)
    return {key: tuple(hosts) for key, hosts in sorted(found.items()) if len(hosts) > 1}


def _double(
    what: str, title: str, value: str, hosts: tuple[str, ...], rank: int, source: str, why: str, advice: str,
    *, severity: Severity = "warning", scope: str = "", hurts_when: str = OWN_PURPOSE,
) -> FleetFinding:  # fmt: skip
    return FleetFinding(
        id=f"fleet.duplicate-{what}",
        severity=severity,
        title=f"{title}: {value}",
        hosts=hosts,
        scope=scope,
        why=why,
        differences=(AttributeDifference(f"identity.{what}", False, None, 0, (HeldValue(value, hosts),)),),
        advice=advice,
        hurts_when=hurts_when,
        sources=(source,),
        rank=rank,
    )


def _llt_node(node: str, hosts: tuple[str, ...]) -> FleetFinding:
    cluster, _, number = node.partition("/")
    return _double("llt-node", f"one LLT node id in cluster {cluster} on several hosts", number, hosts, 1,
                   sources.VCS_LINKS,
                   "LLT distinguishes nodes by it: the second node makes the first one panic or does not join.",
                   "compare set-node of /etc/llttab and /etc/llthosts on these hosts", scope=f"cluster {cluster}",
                   hurts_when="Two clusters that share an id, see fleet.llt-cluster-twice.")  # fmt: skip


def cluster_findings(rows: Sequence[HostSummary]) -> Iterator[FleetFinding]:
    """An LLT cluster id whose hosts have no network in common: two clusters with one id."""
    clusters = group_pairs(
        (row.cluster, row) for row in rows if row.cluster and any(one.carries_llt for one in row.memberships)
    )
    for cluster, members in sorted(clusters.items()):
        parts = _connected_parts(members)
        if len(parts) > 1:
            yield _two_clusters(cluster, parts)


def _connected_parts(members: Sequence[HostSummary]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Hosts that are connected by networks of LLT, and those networks."""
    parts: list[tuple[set[str], set[str]]] = []
    for row in members:
        networks, hosts = {one.network for one in row.memberships if one.carries_llt}, {row.name}
        for part in [part for part in parts if part[0] & networks]:
            parts.remove(part)
            networks |= part[0]
            hosts |= part[1]
        parts.append((networks, hosts))
    order = {row.name: place for place, row in enumerate(members)}
    found = [(tuple(sorted(networks)), tuple(sorted(hosts, key=order.__getitem__))) for networks, hosts in parts]
    return sorted(found, key=lambda part: (-len(part[1]), part[0]))


def _two_clusters(cluster: str, parts: Sequence[tuple[tuple[str, ...], tuple[str, ...]]]) -> FleetFinding:
    groups = tuple(HeldValue(", ".join(networks), hosts) for networks, hosts in parts)
    return FleetFinding(
        id="fleet.llt-cluster-twice",
        severity="warning",
        title=f"LLT cluster id {cluster} on networks that have nothing in common",
        hosts=tuple(host for held in groups for host in held.hosts),
        scope=f"cluster {cluster}",
        why="Either these are two clusters that were given one id, and become one mess where their networks meet; or "
        "nodes of one cluster cannot reach each other.",
        differences=(_value_difference("llt.networks", groups),),
        advice="give one of them another id (set-cluster in /etc/llttab of all its nodes), or mend the addresses",
        hurts_when="Networks that are routed into each other for LLT over UDP: then it is one cluster on purpose.",
        sources=(sources.VCS_UDP,),
        rank=3,
    )


def clock_findings(rows: Sequence[HostSummary]) -> Iterator[FleetFinding]:
    """Clocks that are off by more than 2 s against the controller's."""
    known = [row.skew_seconds for row in rows if row.skew_seconds is not None]
    off = [row for row in rows if row.skew_seconds is not None and abs(row.skew_seconds) > MAX_SKEW_SECONDS]
    if not off:
        return
    worst = max(abs(row.skew_seconds or 0) for row in off)
    usual = Counter(round(skew / 10) for skew in known).most_common(1)[0]
    is_own = len(off) > 1 and 2 * usual[1] > len(known) and usual[0] != 0
    groups = tuple(HeldValue(f"{row.skew_seconds:+.0f} s", (row.name,)) for row in off)
    unknown = tuple(row.name for row in rows if row.skew_seconds is None)
    yield FleetFinding(
        id="fleet.clock",
        severity="warning" if worst >= SKEW_WARNING_SECONDS else "advice",
        title=f"clocks are off by up to {worst:.0f} s",
        hosts=tuple(row.name for row in off),
        why="Logs of several hosts cannot be put in order, and certificates and Kerberos tickets are refused. "
        + ("Most hosts are off by the same: it may be the controller's clock that is wrong." if is_own else ""),
        differences=(
            AttributeDifference("clock.skew", True, "within 2 s", len(known) - len(off), groups, (), unknown),
        ),
        advice="chronyc tracking or timedatectl on the host: is a time server configured, and does it answer?",
        hurts_when="A clock that is set back in one step disturbs databases: let it be slewed.",
        sources=("RFC 4120, clock skew of five minutes", "chrony.conf(5)"),
        rank=8,
    )


# What differs because something else does: reported with its cause, not a second time.

# A cause, and what it explains where the one's value decides the other's. {role} is the link's.
_LINK_CAUSE = lazy_regex(r"link\.(?P<role>.+)\.driver", re.DOTALL)
_LINK_EFFECT = (
    r"link\.{role}\.(firmware|ring\..+|channels\..+|feature\..+|mtu_max|.+_max|speed_mbps|txqueuelen|pcie|numa_node)"
)
_KERNEL_EFFECT = lazy_regex(
    r"host\.os|link\..+\.(feature\..+|ring\..+|channels\..+|mtu_max)|(disk|array)\..+\.(queue\..+|scheduler)|"
    r"filesystem\..+\.options|memory\.thp_.+",
    re.DOTALL,
)
_TUNED_EFFECT = lazy_regex(r"disk\..+\.(queue\..+|scheduler)|memory\.thp_.+|cpu\.frequency\..+", re.DOTALL)
_BY_HARDWARE = lazy_regex(
    r"sysctl\.(kernel\.(numa_balancing|sched_.+)|net\.ipv4\.tcp_[rw]mem|vm\.(min_free_kbytes|zone_reclaim_mode))"
)


def without_effects(
    fleet: Fleet, rows: Sequence[JudgedRow], hardware: Sequence[JudgedRow]
) -> tuple[list[JudgedRow], dict[str, tuple[str, ...]]]:
    """Rows that stand for themselves, and for each cause what goes with it."""
    effects: dict[str, list[str]] = {}
    causes = [
        row
        for row in rows
        if (row.attribute in ("host.kernel", "owner.tuned_profile") or _LINK_CAUSE.fullmatch(row.attribute) is not None)
    ]
    gone = set()
    for row in rows:
        cause = next((one for one in causes if one is not row and _is_effect(fleet, one, row)), None)
        if cause is not None and id(cause) not in gone:
            effects.setdefault(key_of(cause), []).append(row.attribute)
            gone.add(id(row))
        elif hardware and _is_by_hardware(fleet, row) and any(explains_effect(one, row) for one in hardware):
            effects.setdefault("hardware", []).append(row.attribute)
            gone.add(id(row))
    left = [row for row in rows if id(row) not in gone]
    return left, {key: tuple(dict.fromkeys(names)) for key, names in effects.items()}


def key_of(row: JudgedRow) -> str:
    return f"{row.scope}\0{row.attribute}"


def _is_effect(fleet: Fleet, cause: JudgedRow, row: JudgedRow) -> bool:
    name = row.attribute
    is_default = name.startswith("sysctl.") and not fleet.set_by[name.removeprefix("sysctl.")]
    if cause.attribute == "host.kernel":
        fits = is_default or _KERNEL_EFFECT.fullmatch(name) is not None
    elif cause.attribute == "owner.tuned_profile":
        fits = is_default or _TUNED_EFFECT.fullmatch(name) is not None
    else:
        role = _LINK_CAUSE.fullmatch(cause.attribute)
        pattern = _LINK_EFFECT.format(role=re.escape(role["role"])) if role else ""
        fits = re.fullmatch(pattern, name, re.DOTALL) is not None
    return fits and explains_effect(cause, row)


def _is_by_hardware(fleet: Fleet, row: JudgedRow) -> bool:
    """What another type of machine may explain; what an administrator sets is never among it."""
    if row.kind.scope == "type":
        return True
    key = row.attribute.removeprefix("sysctl.")
    return _BY_HARDWARE.fullmatch(row.attribute) is not None and not fleet.set_by[key]


def without_covered(
    fleet: Fleet, rows: Sequence[JudgedRow], shared: Sequence[Shared]
) -> tuple[list[JudgedRow], dict[str, list[tuple[str, tuple[str, ...]]]]]:
    """Without MTU and speed of links whose network has the same finding: it is reported there, once and as worse."""
    odd = {"mtu": _odd_networks(shared, "mtu"), "speed_mbps": _odd_networks(shared, "speed_mbps")}
    finding = {"mtu": "fleet.mtu-in-network", "speed_mbps": "fleet.speed-in-network"}
    covered: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    left = []
    for row in rows:
        found = re.fullmatch(r"link\.(?P<role>.+)\.(?P<leaf>mtu|speed_mbps)", row.attribute, re.DOTALL)
        hosts = fleet.names(row.outliers)
        if found and all(_is_covered(odd[found["leaf"]], host, found["role"]) for host in hosts):
            covered.setdefault(finding[found["leaf"]], []).append((row.attribute, hosts))
        else:
            left.append(row)
    return left, covered


def _is_covered(odd: set[tuple[str, str]], host: str, role: str) -> bool:
    # A bond's network covers its ports.
    above = [role]
    while "." in above[-1]:
        above.append(above[-1].rpartition(".")[0])
    return any((host, one) in odd for one in above)


def _odd_networks(shared: Iterable[Shared], name: str) -> set[tuple[str, str]]:
    found = set()
    for one in shared:
        values = {getattr(member, name) for _, member in one.members} - {None}
        if len(values) > 1:
            found |= {(row.name, member.role) for row, member in one.members}
    return found
