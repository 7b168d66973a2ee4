"""Links below their best: slower than both ends could be, bonds whose other end does not answer."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from advisor.facts.network.link_stack import ports_of
from advisor.facts.network.links import Link
from advisor.host.numbers import count_noun
from advisor.rules import sources
from advisor.rules.queries import by_name, is_up
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, RunShell, rule

ORDER = 124

_NOBODY = "00:00:00:00:00:00"


@rule(
    id="links.speed-below-best",
    severity="warning",
    title="A link runs below the speed that it advertises",
    what="Speed of physical links that are up, against the fastest of the modes that they support and advertise.",
    why="Both ends agree on the best speed that the wire carries: a bad pair or a worn contact makes 100 Mbit/s of a "
    "gigabit.",
    helps_when="Both ends are known to be as fast: cable and optics first.",
    hurts_when="The switch, or the cable that was bought, is of a slower kind.",
    sources=(sources.WEKA_SPEED, sources.ETHTOOL_MODES),
    seen_live=False,
)
def speed_below_best(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    slow = {
        one.name: f"{one.name}: {one.speed_mbps:,} of {one.best_speed_mbps:,} Mbit/s"
        for one in facts.links
        if one.pci is not None and is_up(one) and one.speed_mbps and one.best_speed_mbps
        if one.speed_mbps < one.best_speed_mbps
    }
    if not slow:
        return None
    return speed_below_best.found(
        why="No tuning makes up for it.",
        evidence={"links": tuple(slow), "detail": tuple(slow.values())},
        remedy=(
            *(RunShell(f"ethtool {shlex.quote(name)}", "see what the partner advertises") for name in slow),
            "check cable, optics and the speed of the switch port",
        ),
    )


@rule(
    id="links.bond-partner",
    severity="warning",
    title="Ports of an LACP bond are not bundled",
    what="The partner's address of 802.3ad bonds that are up, and of each port its aggregator and whether it churned.",
    why="Without a partner that speaks LACP one port works and the others stand by, or the switch sends frames to "
    "and fro.",
    helps_when="Always: the ports of the switch are not one LACP group.",
    hurts_when="The switch is being set up, or the bond works with one port on purpose.",
    sources=(sources.WEKA_BOND, sources.BONDING),
    seen_live=False,
)
def bond_partner(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    links = by_name(facts)
    for bond in facts.links:
        if bond.kind != "bond" or bond.detail.get("mode") != "802.3ad" or not is_up(bond):
            continue
        active = bond.detail.get("ad_aggregator")
        apart = tuple(
            name
            for name in bond.lower
            if name in links
            and (
                "port_churned" in links[name].detail
                or (active and links[name].detail.get("port_ad_aggregator_id") not in (None, active))
            )
        )
        alone = bond.detail.get("ad_partner_mac") == _NOBODY
        if not apart and not (alone and len(bond.lower) > 1):
            continue
        yield bond_partner.found(
            title=f"Nobody answers the LACP of {bond.name}"
            if alone
            else f"{count_noun(len(apart), 'port')} of {bond.name} not bundled",
            why="The bond is no faster than one port.",
            evidence={"links": (bond.name,), "outside": apart, "partner": bond.detail.get("ad_partner_mac")},
            remedy=(
                RunShell(f"cat /proc/net/bonding/{shlex.quote(bond.name)}", "see the partner of each port"),
                "make the ports of the switch one LACP group",
            ),
        )


# Bonds as what they are for: ports that are left, what watches them, and members of unlike speeds.

_ROUND_ROBIN = "balance-rr"
_SPREAD = frozenset({_ROUND_ROBIN, "balance-xor", "802.3ad"})
_OFF = frozenset({"0", ""})


def _bonds(facts: Facts) -> Iterator[tuple[Link, tuple[Link, ...]]]:
    """Each bond or team that is up, with its ports."""
    links = by_name(facts)
    for link in facts.links:
        ports = ports_of(link, links)
        if link.kind in ("bond", "team") and is_up(link) and ports:
            yield link, ports


def _works(port: Link) -> bool:
    return is_up(port) and port.detail.get("port_mii_status", "up").lower() == "up"


@rule(
    id="links.bond-port-down",
    severity="warning",
    title="A bond has lost a port",
    what="Ports of bonds and teams that are up, of which at least one is down, and how many losses the rest survives.",
    why="A bond hides the loss of a port: everything works until the next one goes.",
    helps_when="Always: a cable, optics, the card or the switch port.",
    hurts_when="The port is down for work that is known, or was never cabled: then take it out of the bond.",
    sources=(sources.BONDING,),
)
def port_down(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for bond, ports in _bonds(facts):
        down = tuple(port.name for port in ports if not _works(port))
        left = len(ports) - len(down)
        if down and left:
            rest = f"survives {left - 1} more" if left > 1 else "the next loss cuts it off"
            yield port_down.found(
                title=f"{len(down)} of {count_noun(len(ports), 'port')} of {bond.name} down: {rest}",
                why=f"{', '.join(down)} carries nothing; {left} of {len(ports)} ports carry all of the traffic.",
                evidence={"link": bond.name, "links": down, "ports": len(ports), "survives": left - 1},
                remedy=(
                    *(
                        RunShell(f"ip -statistics link show {shlex.quote(name)}", f"see the state of {name}")
                        for name in down
                    ),
                    "check cable, optics and the switch port",
                ),
            )


@rule(
    id="links.bond-unwatched",
    severity="warning",
    title="Nothing watches the ports of a bond",
    what="Bonds of several ports with miimon 0 and without ARP monitoring.",
    why="The kernel notices a dead port only by what watches it: without, a share of the traffic, or all of it, goes "
    "into a dead port for ever.",
    helps_when="Always; 100 ms is the usual interval.",
    hurts_when="Never.",
    sources=(sources.BONDING,),
)
def unwatched(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(
        bond.name
        for bond, ports in _bonds(facts)
        if bond.kind == "bond" and len(ports) > 1
        if bond.detail.get("miimon") in _OFF and bond.detail.get("arp_interval") in _OFF
    )
    if not found:
        return None
    return unwatched.found(
        why="A port that loses its link stays in use.",
        evidence={"links": found, "miimon": 0, "arp_interval": 0},
        remedy=(
            *(
                RunShell(f"ip link set dev {shlex.quote(name)} type bond miimon 100", f"watch {name} now")
                for name in found
            ),
            "set the same in the bond's own configuration",
        ),
    )


@rule(
    id="links.bond-slower-active",
    severity="advice",
    title="The slower port of a bond is the active one",
    what="The active port of active-backup bonds against the speed of the other ports that are up.",
    why="Without a primary port the bond stays on the port that it changed to last.",
    helps_when="The faster port is to carry the traffic whenever it works.",
    hurts_when="The faster port is the one that fails now and then: each change costs packets.",
    sources=(sources.BONDING,),
)
def slower_active(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for bond, ports in _bonds(facts):
        active = next((port for port in ports if port.name == bond.detail.get("active_slave")), None)
        fastest = max((port for port in ports if _works(port)), key=lambda port: port.speed_mbps or 0, default=None)
        if active and fastest and active.speed_mbps and (fastest.speed_mbps or 0) > active.speed_mbps:
            name, primary = shlex.quote(bond.name), shlex.quote(fastest.name)
            yield slower_active.found(
                title=f"{bond.name} uses {active.name} although {fastest.name} is faster",
                why=f"{active.name} runs at {active.speed_mbps:,} Mbit/s, {fastest.name} at {fastest.speed_mbps:,}.",
                evidence={"link": bond.name, "links": (active.name, fastest.name), "speed_mbps": active.speed_mbps},
                remedy=(
                    RunShell(f"ip link set dev {name} type bond primary {primary}", "prefer the faster port now"),
                    "set primary in the bond's own configuration",
                ),
            )


@rule(
    id="links.bond-unequal",
    severity="advice",
    title="Ports of a bond have unlike speeds",
    what="Speeds of the working ports of balance-rr, balance-xor and 802.3ad bonds.",
    why="These modes share by count or by hash, not by speed: the slowest port sets the pace. In 802.3ad ports of "
    "another speed are not used at all.",
    helps_when="More than the slow port's share is needed.",
    hurts_when="The slow port is there for its redundancy alone: active-backup says so.",
    sources=(sources.BONDING,),
)
def unequal(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for bond, ports in _bonds(facts):
        speeds = {port.name: port.speed_mbps for port in ports if _works(port) and port.speed_mbps}
        if bond.detail.get("mode") in _SPREAD and len(set(speeds.values())) > 1:
            yield unequal.found(
                title=f"Ports of {bond.name} have unlike speeds",
                why=f"Mode {bond.detail['mode']} takes them for equal.",
                evidence={"link": bond.name, "links": tuple(speeds), "detail": _list_speeds(speeds)},
                remedy="use ports of one speed, or mode active-backup with the faster one as primary",
            )


@rule(
    id="links.bond-port-missing",
    severity="warning",
    title="A bond lacks a port that is configured for it",
    what="Ports that networkd, NetworkManager, netplan, ifupdown or ifcfg files give to a bond, against those it has; "
    "not where a manager's files name no more ports than there are.",
    why="A port that never joined is no redundancy, and nothing else tells: the bond is up.",
    helps_when="Always: the card is missing, was renamed, or its port was set up by another program first.",
    hurts_when="The files are left over from other hardware.",
    sources=(sources.BONDING,),
)
def port_missing(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for bond, ports in _bonds(facts):
        claims = [one for one in facts.writes if one.tunable.endswith(":master") and one.value == bond.name]
        meant = {
            writer: {one.tunable.split(":")[1]: one.place for one in claims if one.writer == writer}
            for writer in {one.writer for one in claims}
        }
        # Files of several managers: those that are followed name as many ports as there are.
        named = min(meant.values(), key=len, default={})
        missing = {name: place for name, place in named.items() if name not in bond.lower}
        if missing and len(named) > len(ports):
            known = by_name(facts)
            yield port_missing.found(
                title=f"{bond.name} has {len(ports)} of the {count_noun(len(named), 'port')} that are configured",
                why=f"{', '.join(missing)} is not part of it.",
                evidence={
                    "link": bond.name,
                    "links": tuple(missing),
                    "detail": tuple(
                        f"{name} ({'no port of it' if name in known else 'no such link'}): {place}"
                        for name, place in missing.items()
                    ),
                },
                remedy=(
                    *(
                        RunShell(
                            f"ip link set {shlex.quote(name)} down && "
                            f"ip link set {shlex.quote(name)} master {shlex.quote(bond.name)}",
                            f"give {name} to {bond.name} now",
                        )
                        for name in missing
                        if name in known
                    ),
                    "find the card (lspci) or its new name, and correct the file",
                ),
            )


def _list_speeds(speeds: dict[str, int]) -> tuple[str, ...]:
    return tuple(f"{name}: {speed:,} Mbit/s" for name, speed in speeds.items())


@rule(
    id="links.bond-round-robin",
    severity="info",
    title="Round robin reorders what a bond sends",
    what="Bonds of mode balance-rr with several ports.",
    why="One connection may use all ports, and its segments overtake each other: TCP takes that for loss.",
    helps_when="One connection is to be faster than one port, and net.ipv4.tcp_reordering allows for it.",
    hurts_when="Several connections or paths: multipath over single links, or 802.3ad, keeps each in order.",
    sources=(sources.BONDING,),
)
def round_robin(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(
        bond.name for bond, ports in _bonds(facts) if bond.detail.get("mode") == _ROUND_ROBIN and len(ports) > 1
    )
    if not found:
        return None
    sessions = facts.iscsi.sessions if facts.iscsi else ()
    storage = tuple(name for name in found if any(name in session.links for session in sessions))
    return round_robin.found(
        severity="advice" if storage else "info",
        why=("iSCSI goes over it: each segment that overtakes another may be sent again. " if storage else "")
        + "Segments of one connection leave by each port in turn and arrive out of order.",
        evidence={"links": found, "mode": _ROUND_ROBIN},
        remedy="for storage, one path over each port (multipath); else mode 802.3ad with the switch",
        intent=not storage,
    )
