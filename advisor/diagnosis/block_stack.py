"""Which block devices lie on which: arrays, mappings and partitions down to disks, with the medium of each.

Source: Linux Documentation/ABI/stable/sysfs-block (``slaves``, ``queue/rotational``, ``queue/read_ahead_kb``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from advisor.facts.disks import Disk
from advisor.facts.file_devices import file_devices_of_loops
from advisor.facts.mounts import read_mounts
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

_TOP = "/sys/block"
_REMOTE = r"vd[a-z]|xvd|nbd|rbd|drbd|loop|mmcblk"
"""Devices of which the kernel says that they rotate (or nothing), whatever holds their bytes."""
_REMOTE_TRANSPORTS = frozenset({"iscsi", "fc", "virtio", "vmbus", "tcp", "rdma", "loop"})
_REMOTE_MODELS = lazy_regex(
    r"Amazon Elastic Block|Elastic Block Storage|nvme_card-pd|PersistentDisk|MSFT NVMe Accelerator"
    r"|Virtual[ _]?(Disk|NVMe)|QEMU|VBOX|VMware|Msft|LIO-ORG|NETAPP|PURE|3PARdata|COMPELNT|DGC|EMC|Nimble",
    re.IGNORECASE,
)
"""Disks that a hypervisor, a provider or an array serves, as they name themselves; local drives of an instance do
not."""
_NVME_PATH = lazy_regex(r"(nvme[0-9]+)c[0-9]+(n[0-9]+)")


class BlockDevice(msgspec.Struct, frozen=True):
    """A whole block device: its own number ``8:0``, what lies right below it, and its partitions."""

    name: str
    number: str | None = None
    below: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    rotational: bool | None = None
    read_ahead_kb: int | None = None
    swap: bool = False
    file_devices: tuple[str, ...] = ()
    """Of a loop device what holds its file."""
    is_remote: bool = False
    """Whether a network or a hypervisor is between this host and the medium, whatever the kernel says about it."""


class BlockStack(msgspec.Struct, frozen=True):
    """The whole block devices of a host by name."""

    devices: Mapping[str, BlockDevice] = {}

    def whole(self, name: str) -> str:
        """The disk that a partition is on; any other name as it is."""
        return next((one.name for one in self.devices.values() if name in one.partitions), name)

    def lowest(self, name: str, *, through_files: bool = True) -> frozenset[str]:
        """Everything below a device, down to the disks; without itself. A loop device lies on what holds its file,
        which holds other files as well; without ``through_files`` nothing is below it."""
        found: set[str] = set()
        pending = [name]
        while pending:
            device = self.devices.get(pending.pop())
            if device is None:
                continue
            for below in map(self.whole, (*device.below, *(device.file_devices if through_files else ()))):
                if below not in found and below != name:
                    found.add(below)
                    pending.append(below)
        return frozenset(found)

    def bottom(self, name: str) -> tuple[str, ...]:
        """The devices below one that lie on no other; itself where nothing is below it."""
        return tuple(one for one in self.lowest(name) if not self.lowest(one)) or (name,)

    def above(self, name: str) -> frozenset[str]:
        """Every device that lies on this one."""
        return frozenset(one for one in self.devices if name in self.lowest(one))

    def members(self, name: str) -> tuple[str, ...]:
        """The disks or mappings right below a device."""
        device = self.devices.get(name)
        return tuple(dict.fromkeys(map(self.whole, device.below))) if device else ()

    def named(self, number: str) -> str | None:
        """The device of a number as in ``io.max``."""
        return next((one.name for one in self.devices.values() if one.number == number), None)


def read_block_stack(host: Host) -> BlockStack:
    """Every device of /sys/block but RAM disks; without sysfs none."""
    words = [line.split() for line in host.read_or_empty("/proc/swaps").split("\n")[1:]]
    swap_names = {row[0].rpartition("/")[2] for row in words if len(row) > 1 and row[1] == "partition"}
    devices = {}
    mounts = read_mounts(host)
    loops = {} if isinstance(mounts, Missing) else file_devices_of_loops(host, mounts)
    for name in host.names(_TOP):
        if re.match(r"ram[0-9]", name):
            continue
        place = f"{_TOP}/{name}"
        partitions = tuple(one for one in host.names(place) if host.exists(f"{place}/{one}/partition"))
        rotational, ahead = (host.read_int(f"{place}/queue/{what}") for what in ("rotational", "read_ahead_kb"))
        number = host.read(f"{place}/dev")
        devices[name] = BlockDevice(
            name,
            None if isinstance(number, Missing) else number,
            host.names(f"{place}/slaves"),
            partitions,
            None if isinstance(rotational, Missing) else bool(rotational),
            None if isinstance(ahead, Missing) else ahead,
            bool(swap_names & {name, *partitions}),
            loops.get(name, ()),
        )
    return BlockStack(devices)


def multipath_head(path: str) -> str | None:
    """The device that requests of a path of NVMe's own multipath come from: nvme0n1 of nvme0c1n1."""
    found = _NVME_PATH.fullmatch(path)
    return f"{found[1]}{found[2]}" if found else None


def mark_remote(stack: BlockStack, disks: Iterable[Disk]) -> BlockStack:
    """The stack with the disks that are reached through a network or a hypervisor, by their transport and model."""
    devices = dict(stack.devices)
    for disk in disks:
        words = f"{disk.detail.get('vendor', '')} {disk.model or ''}"
        if disk.name in devices and (
            disk.detail.get("transport") in _REMOTE_TRANSPORTS or _REMOTE_MODELS.search(words)
        ):
            devices[disk.name] = msgspec.structs.replace(devices[disk.name], is_remote=True)
    return BlockStack(devices)


def service_ms(stack: BlockStack, name: str, size_bytes: float) -> float:
    """What a healthy device of the kind takes for a request of a size, in ms, by the slowest medium below it.

    Rotating 12 ms and 150 MB/s, NVMe 0.2 ms and 1 GB/s, other flash 0.5 ms and 400 MB/s, storage of a hypervisor or
    over a network 2 ms and 100 MB/s, as of one whose medium is not known: generous figures, so that what exceeds them
    is a wait in a queue and not the medium's own time.
    """
    return max(_own_service_ms(stack.devices.get(one), one, size_bytes) for one in stack.bottom(name))


def _own_service_ms(device: BlockDevice | None, name: str, size_bytes: float) -> float:
    if is_remote(device, name):
        return 2.0 + size_bytes / 1e5
    if name.startswith(("nvme", "pmem")):
        return 0.2 + size_bytes / 1e6
    if device is None or device.rotational is None:
        return 2.0 + size_bytes / 1e5
    return 12.0 + size_bytes / 1.5e5 if device.rotational else 0.5 + size_bytes / 4e5


def is_remote(device: BlockDevice | None, name: str) -> bool:
    """Whether what holds the bytes of a device is reached through a network or a hypervisor, by its name or model."""
    return bool(re.match(_REMOTE, name)) or (device is not None and device.is_remote)


def medium_of(stack: BlockStack, name: str) -> str:
    """A word for the kind of medium: devices of different ones are no peers."""
    found = set()
    for one in stack.bottom(name):
        device = stack.devices.get(one)
        rotates = "rotating" if device is not None and device.rotational else "flash"
        is_nvme = one.startswith(("nvme", "pmem"))
        found.add("remote" if is_remote(device, one) else "nvme" if is_nvme else rotates)
    return " ".join(sorted(found))


def is_flash(stack: BlockStack, names: Iterable[str]) -> bool:
    """Whether none of the devices, nor what lies below them, is known to rotate."""
    return not any(
        device.rotational and not is_remote(device, device.name)
        for name in names
        for one in (name, *stack.lowest(name))
        if (device := stack.devices.get(one)) is not None
    )
