"""PCI: locality and link width and speed, now against maximum, down the chain of bridges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Literal

import msgspec

from advisor.facts.block.block import natural
from advisor.facts.processors.cpu import online_cpus
from advisor.facts.processors.cpulist import format_list, parse_mask, read_ids
from advisor.facts.processors.numa import node_cpus, online_nodes
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, is_count, is_hexadecimal, lazy_regex

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


# Accelerators on PCI: GPUs, processing accelerators, NEC's vector engines, DPUs and Intel QuickAssist, with the node
# that they are near.

AcceleratorKind = Literal["gpu", "dpu", "accelerator", "quickassist"]

_DEVICES = "/sys/bus/pci/devices"
_MAX = 256
_VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel", "0x15b3": "NVIDIA BlueField", "0x1bcf": "NEC"}
# 3D controllers and other displays have no screen; a VGA controller of these makers is a card.
_GPU_CLASSES = ("0x0302", "0x0380")
_GPU_MAKERS = frozenset({"0x10de", "0x1002"})
_BLUEFIELD = frozenset({"0xa2d2", "0xa2d6", "0xa2dc", "0xa2de"})
_QUICKASSIST = frozenset({"0x0435", "0x37c8", "0x19e2", "0x6f54", "0x4940", "0x4942", "0x4944", "0x4946"})


class Accelerator(msgspec.Struct, frozen=True):
    """``ids`` are vendor and device in hexadecimal (10de:20b0), ``vendor`` the maker's name where it is known."""

    address: str
    kind: AcceleratorKind
    vendor: str | None
    ids: str
    driver: str | None
    numa_node: int | None
    pcie: PcieLink | None


def read_accelerators(host: Host, unknown: Unknowns) -> tuple[Accelerator, ...]:
    """By PCI address; of a DPU its first function."""
    places = PlaceReader(host, unknown)
    found = []
    for address in sorted(host.names(_DEVICES), key=natural):
        place = f"{_DEVICES}/{address}"
        code = host.read(f"{place}/class")
        # Most of the functions of a host need no more than this read.
        if isinstance(code, Missing) or not code.startswith(("0x03", "0x12", "0x0b40", "0x02")):
            continue
        vendor, device = (_read_id(host, f"{place}/{name}") for name in ("vendor", "device"))
        kind = None if vendor is None or device is None else kind_of_function(code, vendor, device, address)
        if kind is None or vendor is None or device is None:
            continue
        driver = host.readlink(f"{place}/driver")
        where = places.read(place, f"accelerators.{address}")
        found.append(
            Accelerator(
                address=address,
                kind=kind,
                vendor=_VENDORS.get(vendor),
                ids=f"{vendor[2:]}:{device[2:]}",
                driver=None if isinstance(driver, Missing) else driver.rpartition("/")[2] or None,
                numa_node=where.numa_node if where else None,
                pcie=where.pcie if where else None,
            )
        )
    return tuple(found[:_MAX])


def kind_of_function(code: str, vendor: str, device: str, address: str) -> AcceleratorKind | None:
    """What a PCI function is by its class and ids; None for what is no accelerator."""
    if code.startswith(_GPU_CLASSES) or (code.startswith("0x0300") and vendor in _GPU_MAKERS):
        return "gpu"
    if code.startswith("0x12") or (code.startswith("0x0b40") and vendor == "0x1bcf"):
        return "accelerator"
    if code.startswith("0x02") and vendor == "0x15b3" and device in _BLUEFIELD and address.endswith(".0"):
        return "dpu"
    return "quickassist" if vendor == "0x8086" and device in _QUICKASSIST else None


def _read_id(host: Host, path: str) -> str | None:
    text = host.read(path)
    if isinstance(text, Missing) or len(text) != 6 or not text.startswith("0x"):
        return None
    return text if is_hexadecimal(text[2:]) else None


# Interrupts: which device each belongs to, where it may run and where it does, and whether the kernel manages it.

_DEBUG = "/sys/kernel/debug/irq/irqs"
_CLASSES = ("0x01", "0x02", "0x0c04", "0x0c06")
# Drivers that ask for their vectors without PCI_IRQ_AFFINITY (pci_enable_msix_range(), pci_alloc_irq_vectors()).
_UNMANAGED_DRIVERS = frozenset(
    {
        *("ahci", "ata_piix"),
        *("e1000", "e1000e", "igb", "igc", "ixgbe", "ixgbevf", "i40e", "iavf", "ice"),
        *("bnx2x", "bnxt_en", "tg3", "r8169", "ena", "gve", "vmxnet3"),
    }
)
# virtio_pci names a vector DEVICE-QUEUE. virtio_blk and virtio_scsi spread their request queues (since 4.11), not the
# vectors before them; virtio_net asks for none; "virtqueues" is the one vector that all queues share for want of more.
_VIRTIO_MANAGED = lazy_regex(r"virtio\d+-(req\.\d+|request)", re.ASCII)
_VIRTIO_UNMANAGED = lazy_regex(r"virtio\d+-(config|virtqueues|control|event|(in|out)put\.\d+)", re.ASCII)
_NVME_QUEUE = lazy_regex(r"nvme\d+q(\d+)", re.ASCII)
_LIST = frozenset("0123456789,-")


class Irq(msgspec.Struct, frozen=True):
    """One interrupt of a link or disk.

    ``managed``: the kernel owns the affinity and refuses writes (genirq managed vectors, as NVMe queues have);
    True or False only where it is known, else None.
    """

    number: int
    actions: tuple[str, ...]
    affinity: str | None
    effective: str | None
    node: int | None
    managed: bool | None
    device: str | None
    """PCI address of the device whose msi_irqs lists it."""


def read_irqs(host: Host, unknown: Unknowns) -> tuple[Irq, ...]:
    """The interrupts of network and storage controllers, sorted by number."""
    # PCI address by interrupt; of devices that share a line the first one counts.
    devices: dict[int, str] = {}
    for address in host.names(_DEVICES):
        code = host.read(f"{_DEVICES}/{address}/class")
        if not isinstance(code, Missing) and code.startswith(_CLASSES):
            for number in read_device_irqs(host, f"{_DEVICES}/{address}"):
                devices.setdefault(number, address)
    if devices and not host.is_dir("/proc/irq"):
        unknown.note("irqs.affinity", "/proc/irq does not exist")
    reader = _Reader(host, unknown)
    return tuple(reader.read(number, devices[number]) for number in sorted(devices))


def parse_interrupts(text: str) -> dict[int, tuple[str, ...]]:
    """Who asked for each interrupt, by number, from /proc/interrupts. Lines of other forms are left out."""
    found: dict[int, tuple[str, ...]] = {}
    cpus = text.partition("\n")[0].count("CPU")
    for line in text.splitlines()[1:]:
        words = re.match(rf"\s*(\d{{1,9}}):(?:\s+\d+){{{cpus}}}\s+(.*\S)", line, re.ASCII)
        if words:
            # The kernel puts two blanks before the names and a comma between them; names may have a blank.
            *_, names = re.split(r"\s{2,}", words[2])
            is_chip = re.fullmatch(r"(.*\s)?[0-9]*(-\w+)?|[0-9]+ (Edge|Level)", names)
            found[int(words[1])] = () if is_chip else tuple(name.strip() for name in names.split(","))
    return found


def is_managed(actions: tuple[str, ...], driver: str | None, kernel: tuple[int, ...]) -> bool | None:
    """Whether the kernel manages an interrupt's affinity, by what its driver asks for; None where that is not known.

    ``kernel`` is the release, as (6, 1). NVMe I/O queues are managed since 4.8; the admin queue (0) is not, nor is a
    vector that they share with it.
    """
    queues = [_NVME_QUEUE.fullmatch(action) for action in actions]
    if queues and all(queues):
        return False if any(queue and queue[1] == "0" for queue in queues) else True if kernel >= (4, 8) else None
    if len(actions) == 1 and _VIRTIO_MANAGED.fullmatch(actions[0]):
        return True if kernel >= (4, 11) else None
    if actions and all(_VIRTIO_UNMANAGED.fullmatch(action) for action in actions):
        return False
    return False if driver in _UNMANAGED_DRIVERS else None


class _Reader:
    """What all interrupts share, looked up once: the sources that this host has, and the driver of each device."""

    def __init__(self, host: Host, unknown: Unknowns) -> None:
        self.host = host
        self.unknown = unknown
        found = re.match(r"(\d{1,4})\.(\d{1,4})", host.read_or_empty("/proc/sys/kernel/osrelease"), re.ASCII)
        self.kernel = (int(found[1]), int(found[2])) if found else ()
        self.has_debug = host.is_dir(_DEBUG)
        self.interrupts = None if host.is_dir("/sys/kernel/irq") else self._read_interrupts()
        self.drivers: dict[str, str | None] = {}

    def read(self, number: int, device: str) -> Irq:
        place = f"/proc/irq/{number}"
        fact = f"irqs.{number}"
        if self.interrupts is not None:
            actions = self.interrupts.get(number, ())
        else:
            text = self.unknown.value(f"irqs.{number}.actions", self.host.read(f"/sys/kernel/irq/{number}/actions"))
            actions = tuple(name.strip() for name in (text or "").split(",") if name.strip())
        node = self.unknown.value(f"{fact}.node", self.host.read_int(f"{place}/node"))
        return Irq(
            number=number,
            actions=actions,
            affinity=self._read_cpus(place, ("smp_affinity_list", "smp_affinity"), f"{fact}.affinity"),
            effective=self._read_cpus(place, ("effective_affinity_list",), f"{fact}.effective"),
            node=None if node is None or node < 0 else node,
            managed=self._read_managed(number, actions, device),
            device=device,
        )

    def _read_interrupts(self) -> dict[int, tuple[str, ...]]:
        return parse_interrupts(self.unknown.value("irqs.actions", self.host.read("/proc/interrupts")) or "")

    def _read_cpus(self, place: str, names: tuple[str, ...], fact: str) -> str | None:
        for name in names:
            text = self.unknown.value(fact, self.host.read(f"{place}/{name}"))
            # An interrupt that nobody uses has no effective CPU.
            if text:
                return self._parse_cpus(text, fact) if name.endswith("list") else self._parse_mask(text, fact)
        return None

    def _parse_cpus(self, text: str, fact: str) -> str | None:
        # As the kernel prints it: taking hundreds of CPUs of thousands of interrupts apart would be felt.
        if _LIST.issuperset(text):
            return text
        self.unknown.note(fact, f"not a kernel list: {text[:40]!r}")
        return None

    def _parse_mask(self, text: str, fact: str) -> str | None:
        try:
            return format_list(parse_mask(text))
        except ValueError as error:
            self.unknown.note(fact, str(error))
            return None

    def _read_managed(self, number: int, actions: tuple[str, ...], device: str) -> bool | None:
        if device not in self.drivers:
            link = self.host.readlink(f"{_DEVICES}/{device}/driver")
            self.drivers[device] = None if isinstance(link, Missing) else link.rpartition("/")[2]
        known = is_managed(actions, self.drivers[device], self.kernel)
        if known is not None or not self.has_debug:
            return known
        # The kernel's own word, for root on a kernel with CONFIG_GENERIC_IRQ_DEBUGFS.
        text = self.host.read(f"{_DEBUG}/{number}")
        return None if isinstance(text, Missing) or "dstate:" not in text else "IRQD_AFFINITY_MANAGED" in text
