"""PCI: locality and link width and speed, now against maximum, down the chain of bridges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property

import msgspec

from advisor.facts.cpu import online_cpus
from advisor.facts.cpulist import format_list, read_ids
from advisor.facts.numa import node_cpus, online_nodes
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, is_count, lazy_regex

# Domains have 32 bits behind an Intel VMD controller: 10000:01:00.0.
_FUNCTION = lazy_regex(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)
_ROOT = lazy_regex(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}", re.ASCII)
_SPEED = lazy_regex(r"(\d{1,3}(?:\.\d)?) GT/s\b", re.ASCII)
_LINK_ATTRIBUTES = (
    ("speed_gts", "current_link_speed"),
    ("speed_max_gts", "max_link_speed"),
    ("width", "current_link_width"),
    ("width_max", "max_link_width"),
)
_MAX_LANES = 32  # 0 is "no link" and 255 "unknown" (drivers/pci/pci.h); no slot is wider than x32
_NO_IRQ = frozenset({0, 255})  # 255: the firmware connected no line


class PcieLink(msgspec.Struct, frozen=True):
    """Speeds in GT/s per lane. ``limiting`` is the PCI address of the narrowest hop when that is not the device."""

    speed_gts: float | None
    speed_max_gts: float | None
    width: int | None
    width_max: int | None
    bandwidth_mbps: int | None
    """Usable Mbit/s of the narrowest hop from the device up to the root, after line coding."""
    limiting: str | None
    bridges: Mapping[str, int] = {}
    """Usable Mbit/s of each bridge above the device that reports its speed and width, by PCI address: what is
    below one of them shares it."""


class PciPlace(msgspec.Struct, frozen=True):
    """Where a device sits. ``numa_node`` is None where the kernel says -1.

    ``local_cpus`` are online CPUs (kernel list string); None where the kernel does not say, or contradicts itself.
    """

    address: str
    numa_node: int | None
    local_cpus: str | None
    irqs: tuple[int, ...]
    pcie: PcieLink | None


def read_place(host: Host, device_path: str, fact: str, unknown: Unknowns) -> PciPlace | None:
    """The nearest PCI function at or above a sysfs device directory; None for a device that is not on PCI.

    ``fact`` names the owner in the JSON (``links.eth0``). A node id that is not online, or locality that contradicts
    itself (a node whose CPUs are not among local_cpulist), is noted as unknown. A reader of many devices keeps a
    `PlaceReader` instead.
    """
    return PlaceReader(host, unknown).read(device_path, fact)


class PlaceReader:
    """Reads the places of many devices: what they share (nodes, online CPUs, bridges) is read once.

    Lives as long as one scan does, as none of that may change under it.
    """

    def __init__(self, host: Host, unknown: Unknowns) -> None:
        self._host = host
        self._unknown = unknown
        self._hops: dict[str, int | None] = {}
        self._near: dict[int, frozenset[int] | None] = {}

    def read(self, device_path: str, fact: str) -> PciPlace | None:
        """As `read_place` says."""
        real = self._host.real(device_path)
        chain = () if isinstance(real, Missing) else functions_above(real)
        if not chain:
            return None
        # Node and CPUs near a function, checked against each other. The node is the device's own (ACPI _PXM, or what an
        # administrator wrote); local CPUs are on old kernels those of its bus, and all CPUs where the bus has no node.
        # So all CPUs with a node are no locality and are left out, the node stays; CPUs without the node's contradict
        # it, and then neither is known.
        place = chain[0]
        node = self._read_node(place, fact)
        listed = read_ids(self._host, f"{place}/local_cpulist", f"{place}/local_cpus")
        cpus = self._among_online(self._unknown.value(f"{fact}.local_cpus", listed))
        if cpus is None:
            node, local_cpus = node, None
        else:
            near = cpus if node is None else self._cpus_of(node)
            if near is None or near == cpus:
                node, local_cpus = node, format_list(cpus)
            elif near <= cpus:
                why = f"{format_list(cpus)} although it is at node {node} ({format_list(near)})"
                self._unknown.note(f"{fact}.local_cpus", why)
                node, local_cpus = node, None
            else:
                why = f"{node} ({format_list(near)}) contradicts local CPUs {format_list(cpus)}"
                self._unknown.note(f"{fact}.numa_node", why)
                node, local_cpus = None, None
        return PciPlace(
            address=address_of(chain[0]),
            numa_node=node,
            local_cpus=local_cpus,
            irqs=read_device_irqs(self._host, chain[0]),
            pcie=self._read_link(chain, fact),
        )

    @cached_property
    def _online(self) -> frozenset[int] | None:
        online = online_cpus(self._host)
        return None if isinstance(online, Missing) else frozenset(online)

    @cached_property
    def _nodes(self) -> frozenset[int]:
        return frozenset(online_nodes(self._host))

    def _read_node(self, place: str, fact: str) -> int | None:
        node = self._unknown.value(f"{fact}.numa_node", self._host.read_int(f"{place}/numa_node"))
        if node is None or node < 0:
            return None
        if node not in self._nodes:
            self._unknown.note(f"{fact}.numa_node", f"{node} is not an online node")
            return None
        return node

    def _cpus_of(self, node: int) -> frozenset[int] | None:
        if node not in self._near:
            cpus = node_cpus(self._host, node)
            self._near[node] = None if isinstance(cpus, Missing) else self._among_online(cpus)
        return self._near[node]

    def _among_online(self, cpus: tuple[int, ...] | None) -> frozenset[int] | None:
        """Those of some CPUs that are online: old kernels list all that could be."""
        if cpus is None:
            return None
        return frozenset(cpus) if self._online is None else self._online.intersection(cpus)

    def _read_link(self, chain: tuple[str, ...], fact: str) -> PcieLink | None:
        """None for a function without a PCI Express link: conventional PCI, or one of a root complex or a guest."""
        place = chain[0]
        speed, speed_max, width, width_max = (
            self._unknown.value(f"{fact}.pcie.{field}", self._host.read(f"{place}/{name}"))
            for field, name in _LINK_ATTRIBUTES
        )
        if speed is None and speed_max is None:
            return None
        # Mbit/s and place of the narrowest hop, as pcie_bandwidth_available() finds it; of equals the one nearest.
        # A hop that does not report its speed or width, such as a bridge inside the root complex, sets no limit.
        own = hop_mbps(speed, width)
        hops = [(own, chain[0]), *((self._bridge_mbps(bridge), bridge) for bridge in chain[1:])]
        known = [(mbps, place) for mbps, place in hops if mbps is not None]
        bandwidth, limiting = min(known, key=lambda hop: hop[0]) if known else (None, None)
        return PcieLink(
            speed_gts=parse_speed(speed or ""),
            speed_max_gts=parse_speed(speed_max or ""),
            width=parse_width(width or ""),
            width_max=parse_width(width_max or ""),
            bandwidth_mbps=bandwidth,
            limiting=None if limiting == place or limiting is None else address_of(limiting),
            bridges={address_of(one): mbps for one in chain[1:] if (mbps := self._bridge_mbps(one)) is not None},
        )

    def _bridge_mbps(self, bridge: str) -> int | None:
        if bridge not in self._hops:
            speed, width = (
                None if isinstance(text, Missing) else text
                for text in (self._host.read(f"{bridge}/current_link_{name}") for name in ("speed", "width"))
            )
            self._hops[bridge] = hop_mbps(speed, width)
        return self._hops[bridge]


def functions_above(path: str) -> tuple[str, ...]:
    """Directories of the PCI functions in a resolved sysfs path, nearest first, up to the root bus of their domain.

    A VMD domain hangs below a PCI function of another domain; that one is no bridge of it and is left out.
    """
    found: list[str] = []
    here = ""
    for part in path.split("/")[1:]:
        here += f"/{part}"
        if _ROOT.fullmatch(part):
            found.clear()
        elif _FUNCTION.fullmatch(part):
            found.append(here)
    return tuple(reversed(found))


def address_of(place: str) -> str:
    """The PCI address of a function's directory."""
    return place.rpartition("/")[2]


def read_device_irqs(host: Host, place: str) -> tuple[int, ...]:
    """Interrupts of a PCI function: its MSI and MSI-X vectors, or else its one line (``irq``)."""
    vectors = tuple(sorted(int(name) for name in host.names(f"{place}/msi_irqs") if is_count(name)))
    if vectors:
        return vectors
    line = host.read_int(f"{place}/irq")
    # IRQ_NOTCONNECTED is 1 << 31.
    return () if isinstance(line, Missing) or line in _NO_IRQ or not 0 < line < 1 << 31 else (line,)


def parse_speed(text: str) -> float | None:
    """GT/s per lane of ``8.0 GT/s PCIe``, ``16 GT/s`` …; None for ``Unknown``."""
    found = _SPEED.match(text)
    return float(found[1]) if found and float(found[1]) > 0 else None


def parse_width(text: str) -> int | None:
    """Lanes; None for 0 (no link) and 255 (unknown)."""
    return int(text) if re.fullmatch(r"\d{1,3}", text, re.ASCII) and 0 < int(text) <= _MAX_LANES else None


def lane_mbps(speed_gts: float) -> int:
    """Usable Mbit/s of a lane: 8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s, none of it lost from 64 GT/s on.

    As PCIE_SPEED2MBS_ENC in drivers/pci/pci.h counts.
    """
    raw = round(speed_gts * 1000)
    if speed_gts <= 5:
        return raw * 8 // 10
    return raw * 128 // 130 if speed_gts <= 32 else raw


def hop_mbps(speed: str | None, width: str | None) -> int | None:
    """Usable Mbit/s of a link by the text of its speed and width; None where either is unknown."""
    gts, lanes = parse_speed(speed or ""), parse_width(width or "")
    return None if gts is None or lanes is None else lane_mbps(gts) * lanes
