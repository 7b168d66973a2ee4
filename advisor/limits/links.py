"""What links let through: the rate less the headers, PCI Express above, bonds by their mode."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from advisor.facts.block.disks import Disk
from advisor.facts.host_facts import Facts
from advisor.facts.network.links import Link
from advisor.facts.processors.pci import address_of, functions_above, hop_mbps
from advisor.host import Host, Missing
from advisor.limits.records import PathCeiling, Rate
from advisor.reach.addresses import FoundAddress
from advisor.reach.peers import iscsi_portals, nvme_targets
from advisor.rules.queries import by_name, is_physical, is_virtual_machine

# Links: what of a rate on the wire is left for data, by the sizes of the headers.

ETHERNET_SOURCE = "IEEE 802.3, RFC 791, RFC 8200, RFC 9293 and RFC 7323: sizes of headers"
INFINIBAND_SOURCE = "InfiniBand Architecture Specification, volume 1: sizes of headers"
ETHERNET_BYTES = 38
IPV4_BYTES = 20
IPV6_BYTES = 40
TCP_BYTES = 20
TIMESTAMP_BYTES = 12
INFINIBAND_BYTES = 26
INFINIBAND_MTU = 4096
"""The largest MTU of the InfiniBand transport: with a smaller one even less is left."""


def tcp_efficiency(mtu: int, *, timestamps: bool = True, ipv6: bool = False) -> float:
    """The share of an Ethernet link's rate that is left for the payload of TCP: 0.941 at an MTU of 1,500."""
    headers = (IPV6_BYTES if ipv6 else IPV4_BYTES) + TCP_BYTES + (TIMESTAMP_BYTES if timestamps else 0)
    return max(0.0, (mtu - headers) / (mtu + ETHERNET_BYTES))


def infiniband_efficiency(mtu: int = INFINIBAND_MTU) -> float:
    """The share of an InfiniBand data rate (after line coding) that is left for RDMA payload."""
    return mtu / (mtu + INFINIBAND_BYTES)


def mb_per_s(mbit_per_s: float) -> float:
    """Mbit/s as MB/s."""
    return mbit_per_s / 8


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
    raw = mb_per_s(link.speed_mbps)
    if link.kind == "infiniband":
        efficiency = infiniband_efficiency()
        why = f"{raw:,.0f} MB/s × {efficiency:.3f} (RDMA payload at an MTU of {INFINIBAND_MTU:,})"
        return Carries(link.name, raw * efficiency, why)
    if not link.mtu:
        return Carries(link.name, None, "its MTU is not known")
    efficiency = tcp_efficiency(link.mtu, timestamps=timestamps, ipv6=ipv6)
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
    source = INFINIBAND_SOURCE if is_infiniband else ETHERNET_SOURCE
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
    value = mb_per_s(sum(slots.values()))
    rate = Rate(value, value)
    return PathCeiling("pcie", "PCI Express", tuple(slots), "host", PCIE_WORDS, rate, source=PCIE_SOURCE)


# What a scan does not keep and a path needs: every PCI hop above a disk, and the links that networked storage uses.


class PciHop(msgspec.Struct, frozen=True):
    """A PCI Express link above a disk. ``mbps``: usable Mbit/s after line coding, at its width and speed of now."""

    address: str
    mbps: int


class PciAndNetwork(msgspec.Struct, frozen=True):
    """``hops`` by disk, nearest first. ``portals``: links by which iSCSI (``iscsi``) or NVMe (``nvme``) storage is
    reached; None for a link that is unknown."""

    hops: Mapping[str, tuple[PciHop, ...]] = {}
    portals: Mapping[str, tuple[str | None, ...]] = {}
    far: frozenset[str] = frozenset()
    """NVMe disks that are reached over a fabric."""
    ipv6: frozenset[str] = frozenset()
    """``iscsi`` or ``nvme`` where an address of it is one of IPv6."""


def read_pci_and_network(host: Host, facts: Facts) -> PciAndNetwork:
    """Of the disks and links of these facts; what cannot be read is not there."""
    targets = {"iscsi": iscsi_portals(host), "nvme": nvme_targets(host)}
    # By the transport of a path's controller; by its place below nvme-fabrics where a capture lacks that file.
    return PciAndNetwork(
        hops={disk.name: hops for disk in facts.disks if (hops := _disk_hops(host, disk))},
        portals={role: links for role, found in targets.items() if (links := portal_links(found, facts.links))},
        far=frozenset(
            disk.name for disk in facts.disks if any(_is_fabric(host, name) for name in disk.paths or (disk.name,))
        ),
        ipv6=frozenset(role for role, found in targets.items() if any(":" in one.address for one in found)),
    )


def _disk_hops(host: Host, disk: Disk) -> tuple[PciHop, ...]:
    """Of a disk, or of the one path to an NVMe multipath head; several paths share their load in no way known here."""
    return () if len(disk.paths) > 1 else _find_hops(host, *(disk.paths or (disk.name,)))


def _is_fabric(host: Host, name: str) -> bool:
    # nvme0c1n2 is the path by controller 1, nvme1n2 a namespace of controller 1.
    found = re.match(r"nvme(?:\d+c)?(\d+)n", name, re.ASCII)
    if found is None:
        return False
    transport = host.read(f"/sys/class/nvme/nvme{found[1]}/transport")
    if not isinstance(transport, Missing):
        return transport in ("tcp", "rdma")
    place = host.real(f"/sys/block/{name}")
    return not isinstance(place, Missing) and "/nvme-fabrics/" in place


def _find_hops(host: Host, disk: str) -> tuple[PciHop, ...]:
    place = host.real(f"/sys/block/{disk}")
    if isinstance(place, Missing) or not functions_above(place):
        place = host.real(f"/sys/block/{disk}/device")
    functions = () if isinstance(place, Missing) else functions_above(place)
    found = ((address_of(function), _hop_rate(host, function)) for function in functions)
    return tuple(PciHop(address, mbps) for address, mbps in found if mbps is not None)


def _hop_rate(host: Host, function: str) -> int | None:
    speed, width = (
        None if isinstance(text, Missing) else text
        for text in (host.read(f"{function}/current_link_{name}") for name in ("speed", "width"))
    )
    return hop_mbps(speed, width)


def portal_links(found: Iterable[FoundAddress], links: Sequence[Link]) -> tuple[str | None, ...]:
    """The links of these connections, each once: by the link or address that a connection is bound to, else by the one
    link in whose network the target is."""
    return tuple(dict.fromkeys(_link_of(one, links) for one in found))


def _link_of(one: FoundAddress, links: Sequence[Link]) -> str | None:
    if one.link and re.search(r"\S", one.link):
        return one.link
    if one.source:
        bound = [link.name for link in links if one.source in {address.partition("/")[0] for address in link.addresses}]
        if len(bound) == 1:
            return bound[0]
    near = [link.name for link in links if any(_is_in(one.address, network) for network in link.addresses)]
    return near[0] if len(near) == 1 else None


def _is_in(address: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("/")[0]) in ipaddress.ip_interface(network).network
    except ValueError:
        return False
