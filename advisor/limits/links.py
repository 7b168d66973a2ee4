"""What links let through: the rate less the headers, PCI Express above, bonds by their mode."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec

from advisor.facts.host_facts import Facts
from advisor.facts.links import Link
from advisor.limits import wire
from advisor.limits.records import PathCeiling, Rate
from advisor.rules.queries import by_name, is_physical, is_virtual_machine

_ONE_AT_A_TIME = ("active-backup", "broadcast")
PCIE_WORDS = "width × speed after line coding"
PCIE_SOURCE = "Linux kernel, drivers/pci/pci.h: PCIE_SPEED2MBS_ENC"
EMULATED = "a virtual machine is shown a width and speed that its hypervisor makes up"


class Carries(msgspec.Struct, frozen=True):
    """MB/s of payload one way, or why they are not known."""

    link: str
    mb_per_s: float | None
    why: str


def wire_of(link: Link, *, timestamps: bool, ipv6: bool = False) -> Carries:
    """One physical link, by its rate and MTU of now."""
    if link.carrier is False or link.state == "down":
        return Carries(link.name, None, "the link is down")
    if not link.speed_mbps:
        return Carries(link.name, None, "its driver reports no speed")
    raw = wire.mb_per_s(link.speed_mbps)
    if link.kind == "infiniband":
        efficiency = wire.infiniband_efficiency()
        why = f"{raw:,.0f} MB/s × {efficiency:.3f} (RDMA payload at an MTU of {wire.INFINIBAND_MTU:,})"
        return Carries(link.name, raw * efficiency, why)
    if not link.mtu:
        return Carries(link.name, None, "its MTU is not known")
    efficiency = wire.tcp_efficiency(link.mtu, timestamps=timestamps, ipv6=ipv6)
    return Carries(link.name, raw * efficiency, f"{raw:,.0f} MB/s × {efficiency:.3f} (TCP at an MTU of {link.mtu:,})")


def has_timestamps(facts: Facts) -> bool:
    """Whether TCP spends 12 bytes on timestamps, as it does by default."""
    return facts.sysctl.get("net.ipv4.tcp_timestamps", "1").strip() != "0"


def physical_below(name: str, links: Mapping[str, Link]) -> tuple[Link, ...]:
    """The physical links that may carry a link's traffic at one time: all members of a bond, or the fastest of those
    of which one works at a time."""
    return tuple(_links_below(name, links, set()).values())


def _links_below(name: str, links: Mapping[str, Link], seen: set[str]) -> dict[str, Link]:
    link = links.get(name)
    if link is None or name in seen:
        return {}
    seen.add(name)
    if is_physical(link) or not link.lower:
        return {name: link} if is_physical(link) else {}
    found: dict[str, Link] = {}
    for lower in link.lower:
        found |= _links_below(lower, links, seen)
    usable = {one.name: one for one in found.values() if one.carrier is not False and one.state != "down"}
    if link.kind == "bond" and link.detail.get("mode", "").startswith(_ONE_AT_A_TIME) and usable:
        fastest = max(usable.values(), key=lambda one: one.speed_mbps or math.inf)
        return {fastest.name: fastest}
    return usable


def wire_ceiling(what: str, names: Iterable[str], facts: Facts, *, ipv6: bool = False) -> PathCeiling:
    """The wires of these links together, each physical link once; unknown where one of them is."""
    links = by_name(facts)
    below: dict[str, Link] = {}
    for name in names:
        found = physical_below(name, links)
        if not found:
            return PathCeiling(
                "wire", what, (name,), "unknown", f"{name}: no physical link that is up is known below it"
            )
        below |= {link.name: link for link in found}
    carried = [wire_of(link, timestamps=has_timestamps(facts), ipv6=ipv6) for link in below.values()]
    where = tuple(one.link for one in carried)
    unknown = next((one for one in carried if one.mb_per_s is None), None)
    if unknown is not None:
        return PathCeiling("wire", what, where, "unknown", f"{unknown.link}: {unknown.why}")
    value = sum(one.mb_per_s or 0.0 for one in carried)
    reasons = list(dict.fromkeys(one.why for one in carried))
    count = f"{len(carried)} × " if len(carried) > 1 and len(reasons) == 1 else ""
    is_infiniband = all(link.kind == "infiniband" for link in below.values())
    source = wire.INFINIBAND_SOURCE if is_infiniband else wire.ETHERNET_SOURCE
    return PathCeiling("wire", what, where, "host", count + "; ".join(reasons), Rate(value, value), source=source)


def pcie_ceiling(names: Iterable[str], facts: Facts) -> PathCeiling | None:
    """PCI Express above these links; None for links that are on none. Functions of one card share its slot."""
    links = by_name(facts)
    below = {link.name: link for name in names for link in physical_below(name, links)}
    slots: dict[str, int] = {}
    for link in below.values():
        if link.pcie is None or link.pcie.bandwidth_mbps is None:
            return None
        # Ports of one card differ in the function, the digit behind the point.
        slots.setdefault(link.pcie.limiting or (link.pci or link.name).rpartition(".")[0], link.pcie.bandwidth_mbps)
    if not slots:
        return None
    if is_virtual_machine(facts):
        return PathCeiling("pcie", "PCI Express", tuple(below), "unknown", EMULATED)
    value = wire.mb_per_s(sum(slots.values()))
    rate = Rate(value, value)
    return PathCeiling("pcie", "PCI Express", tuple(slots), "host", PCIE_WORDS, rate, source=PCIE_SOURCE)
