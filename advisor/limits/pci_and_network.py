"""What a scan does not keep and a path needs: every PCI hop above a disk, and the links that networked storage uses.

The one door of this room to a host.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from advisor.facts.disks import Disk
from advisor.facts.host_facts import Facts
from advisor.facts.links import Link
from advisor.facts.pci import address_of, functions_above, hop_mbps
from advisor.host import Host, Missing
from advisor.reach.addresses import FoundAddress
from advisor.reach.peers import iscsi_portals, nvme_targets


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
