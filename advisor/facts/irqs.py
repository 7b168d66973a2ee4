"""Interrupts: which device each belongs to, where it may run and where it does, and whether the kernel manages it.

Read are those of PCI functions that are storage (class 01), network (02), Fibre Channel (0c04) or InfiniBand (0c06)
controllers, which covers NVMe, SCSI, ATA and virtio disks and network links. The rest (USB, graphics, timers) serves no
link and no disk, and a large host has thousands of interrupts. Sources: Documentation/core-api/irq/irq-affinity.rst,
Documentation/ABI/testing/sysfs-kernel-irq.
"""

from __future__ import annotations

import re

import msgspec

from advisor.facts.cpulist import format_list, parse_mask
from advisor.facts.pci import read_device_irqs
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, lazy_regex

_DEVICES = "/sys/bus/pci/devices"
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
