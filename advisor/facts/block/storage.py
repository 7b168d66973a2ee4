"""One view of a host's storage for those who make records of arrays: what lies on what, and what is mounted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

import msgspec

from advisor.facts.block.block import natural, partitions_of, whole_of
from advisor.facts.block.disks import Disk
from advisor.facts.block.dm import DmDevice
from advisor.facts.block.md import Md
from advisor.facts.block.mounts import Mount, mountpoints, read_mounted
from advisor.host import Host, Missing

MAX_DEPTH = 64
"""Layers that are followed. Hosts have fewer than ten; without a bound, the time for a made-up capture grows
with the square of its depth. What lies deeper is not known."""


class Stack:
    """``lower`` maps a device to those directly below it, ``parent`` a partition to its whole device."""

    def __init__(self, lower: Mapping[str, tuple[str, ...]], parent: Mapping[str, str]) -> None:
        self._lower = lower
        self._parent = parent

    def below(self, device: str) -> tuple[str, ...]:
        """The devices directly below; for a partition, the one that it is a part of."""
        parent = self._parent.get(device)
        return (parent,) if parent else self._lower.get(device, ())

    def disks(self, device: str) -> tuple[str, ...]:
        """The devices at the bottom; the device itself where nothing is below it."""
        everything = {device, *self._walk_down(device, None)}
        return tuple(sorted((name for name in everything if not self.below(name)), key=natural))

    def through(self, device: str, hidden: Set[str]) -> tuple[str, ...]:
        """The devices below, hidden ones replaced by what is below them."""
        return tuple(sorted(self._walk_down(device, hidden) - hidden, key=natural))

    def _walk_down(self, device: str, hidden: Set[str] | None) -> set[str]:
        """Everything below; with ``hidden``, no further down than the first device that is not hidden."""
        seen: set[str] = set()
        layer = [device]
        for _ in range(MAX_DEPTH):
            if not layer:
                break
            followed = [name for name in layer if name == device or hidden is None or name in hidden]
            new = {below for name in followed for below in self.below(name)} - seen - {device}
            seen |= new
            layer = list(new)
        return seen


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


def read_storage(
    host: Host, disks: Iterable[Disk], arrays: Iterable[Md], mapped: Iterable[DmDevice], stacked: Iterable[str] = ()
) -> Storage:
    """The view of these disks, md arrays, dm devices and other devices on devices."""
    by_disk = {disk.name: disk for disk in disks}
    by_mapped = {device.name: device for device in mapped}
    lower = {one.name: tuple(device.name for device in one.devices) for one in arrays}
    lower |= {name: host.names(f"/sys/block/{name}/slaves") for name in stacked}
    partitions = {name: partitions_of(name, host.names(f"/sys/block/{name}")) for name in lower}
    lower |= {device.name: device.slaves for device in by_mapped.values()}
    parents = {part: disk.name for disk in by_disk.values() for part in disk.partitions}
    parents |= {part: name for name, found in partitions.items() for part in found}
    # A capture may name partitions of which it holds no more than the name.
    named = {name for names in lower.values() for name in names} - parents.keys() - by_disk.keys() - lower.keys()
    stack = Stack(lower, parents | {part: whole for part in named if (whole := whole_of(part, by_disk))})
    mounted = read_mounted(host)
    # Every dm device of a volume group, hidden or not, by the id of the group.
    devices = by_mapped.values()
    groups: dict[str, set[str]] = {}
    for device in devices:
        if device.group_id:
            groups.setdefault(device.group_id, set()).add(device.name)
    return Storage(
        by_disk=by_disk,
        by_mapped=by_mapped,
        partitions=partitions,
        groups={group: frozenset(names) for group, names in groups.items()},
        stack=stack,
        # Disks have noted it already where the mounts cannot be read.
        mounted={} if isinstance(mounted, Missing) else mounted,
        above=_map_above(by_mapped, stack),
    )


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
