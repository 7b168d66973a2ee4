"""One view of a host's storage for those who make records of arrays: what lies on what, and what is mounted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from advisor.facts.block import natural, partitions_of, whole_of
from advisor.facts.disks import Disk
from advisor.facts.dm import DmDevice
from advisor.facts.md import Md
from advisor.facts.mounts import Mount, mountpoints, read_mounted
from advisor.facts.stack import Stack
from advisor.host import Host, Missing


class Storage(msgspec.Struct, frozen=True):
    """Disks and dm devices by name, partitions of md arrays, dm devices of each volume group, and mounts."""

    by_disk: Mapping[str, Disk]
    by_mapped: Mapping[str, DmDevice]
    partitions: Mapping[str, tuple[str, ...]]
    groups: Mapping[str, frozenset[str]]
    stack: Stack
    mounted: Mapping[str, tuple[Mount, ...]]
    above: Mapping[str, tuple[str, ...]]
    """Encryption and partition mappings by the device that carries them: what they hold is mounted from it."""

    def disks(self, device: str) -> tuple[str, ...]:
        """The disks at the bottom of an array."""
        return tuple(name for name in self.stack.disks(device) if name != device)

    def nodes(self, disks: Iterable[str]) -> tuple[int, ...]:
        """The nodes that are known of these disks."""
        nodes = {self.by_disk[name].numa_node for name in disks if name in self.by_disk}
        return tuple(sorted(node for node in nodes if node is not None))

    def mountpoints(self, device: str) -> tuple[str, ...]:
        """What is mounted from an array: from itself, its partitions, and the layers on it."""
        return mountpoints((device, *self.partitions.get(device, ()), *self.above.get(device, ())), self.mounted)

    def is_offline(self, name: str) -> bool:
        """Whether the kernel has given a SCSI disk up."""
        disk = self.by_disk.get(name)
        return disk is not None and disk.detail.get("state") in ("offline", "transport-offline")


def read_storage(host: Host, disks: Iterable[Disk], arrays: Iterable[Md], mapped: Iterable[DmDevice]) -> Storage:
    """The view of these disks, md arrays and dm devices."""
    by_disk = {disk.name: disk for disk in disks}
    by_mapped = {device.name: device for device in mapped}
    lower = {one.name: tuple(device.name for device in one.devices) for one in arrays}
    partitions = {name: partitions_of(name, host.names(f"/sys/block/{name}")) for name in lower}
    lower |= {device.name: device.slaves for device in by_mapped.values()}
    stack = Stack(lower, _map_parents(by_disk, partitions, lower))
    mounted = read_mounted(host)
    return Storage(
        by_disk=by_disk,
        by_mapped=by_mapped,
        partitions=partitions,
        groups=_volume_groups(by_mapped.values()),
        stack=stack,
        # Disks have noted it already where the mounts cannot be read.
        mounted={} if isinstance(mounted, Missing) else mounted,
        above=_map_above(by_mapped, stack),
    )


def _map_parents(
    by_disk: Mapping[str, Disk], partitions: Mapping[str, tuple[str, ...]], lower: Mapping[str, tuple[str, ...]]
) -> dict[str, str]:
    parents = {part: disk.name for disk in by_disk.values() for part in disk.partitions}
    parents |= {part: name for name, found in partitions.items() for part in found}
    # A capture may name partitions of which it holds no more than the name.
    named = {name for names in lower.values() for name in names} - parents.keys() - by_disk.keys() - lower.keys()
    return parents | {part: whole for part in named if (whole := whole_of(part, by_disk))}


def _volume_groups(devices: Iterable[DmDevice]) -> dict[str, frozenset[str]]:
    """Every dm device of a volume group, hidden or not, by the id of the group."""
    groups: dict[str, set[str]] = {}
    for device in devices:
        if device.group_id:
            groups.setdefault(device.group_id, set()).add(device.name)
    return {group: frozenset(names) for group, names in groups.items()}


def _map_above(by_mapped: Mapping[str, DmDevice], stack: Stack) -> dict[str, tuple[str, ...]]:
    layers = {device.name for device in by_mapped.values() if device.role == "layer"}
    above: dict[str, tuple[str, ...]] = {}
    for layer in sorted(layers, key=natural):
        for name in stack.through(layer, layers):
            # A layer on a partition of an array is on that array.
            whole = name if name in by_mapped else next(iter(stack.below(name)), name)
            for carrier in {name, whole}:
                above[carrier] = (*above.get(carrier, ()), layer)
    return above
