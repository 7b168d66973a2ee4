"""Links below their best: slower than both ends could be, bonds whose other end does not answer."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from advisor.host.numbers import count_noun
from advisor.rules import sources
from advisor.rules.queries import by_name, is_up
from advisor.rules.remedy import RunShell
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, rule

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
