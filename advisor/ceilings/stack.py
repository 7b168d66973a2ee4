"""What lies below a device: arrays of arrays down to disks, as a tree that figures can be combined over."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import msgspec

from advisor.ceilings.figures import Figures
from advisor.ceilings.raid import combined, family_of
from advisor.facts.array import Array
from advisor.facts.disks import Disk
from advisor.facts.whole import Facts

_NO_MEDIUM = frozenset({"loop", "zram", "ram"})


class Node(msgspec.Struct, frozen=True):
    """A disk (no members), or an array of its working members. ``family`` as `raid.family_of` has it."""

    name: str
    device: str
    family: str | None = None
    members: tuple[Node, ...] = ()
    missing: int = 0
    copies: float = 2
    level: str | None = None
    state: str | None = None

    def disks(self) -> Iterator[str]:
        """The disks at the bottom, each as often as it is below."""
        if not self.members:
            yield self.device
        for member in self.members:
            yield from member.disks()

    def arrays(self) -> Iterator[Node]:
        """The arrays of the tree, the top first."""
        if self.members:
            yield self
            for member in self.members:
                yield from member.arrays()

    def combine(self, leaf: Callable[[str], Figures], *, one_medium: bool = False) -> Figures:
        """The figures of the whole from those of its disks. Of an array whose level is not known, the sum of its
        members: more than that no arrangement gives."""
        if not self.members:
            return leaf(self.device)
        figures = [member.combine(leaf, one_medium=one_medium) for member in self.members]
        family = self.family or "linear"
        return combined(family, figures, missing=self.missing, copies=self.copies, one_medium=one_medium)


class Devices:
    """The block devices of a host: which tree a name leads to, and what stands on top."""

    def __init__(self, facts: Facts) -> None:
        # A controller's volume is a disk to the kernel: it has its place as that.
        arrays = tuple(array for array in facts.arrays if array.manager != "controller")
        self._facts = msgspec.structs.replace(facts, arrays=arrays)
        self._disks = {disk.name: disk for disk in facts.disks}
        self._arrays = {array.device: array for array in arrays}

    @cached_property
    def _carriers(self) -> dict[str, str]:
        """Partitions and what holds a disk without being an array (encryption), by the disk below."""
        found: dict[str, str] = {}
        for disk in self._facts.disks:
            found |= dict.fromkeys((*disk.holders, *disk.partitions), disk.name)
        return {name: disk for name, disk in found.items() if name not in self._arrays}

    def disk(self, name: str) -> Disk | None:
        return self._disks.get(name)

    def node(self, device: str, mountpoints: Sequence[str] = ()) -> Node | None:
        """The tree of a device, or of what is mounted there where the device itself is not among the facts."""
        found = self._node(device, set())
        if found is not None:
            return found
        wanted = set(mountpoints)
        above = next((one for one in self._facts.arrays if wanted & set(one.mountpoints)), None)
        return self._node(above.device, set()) if above else None

    def _node(self, device: str, seen: set[str]) -> Node | None:
        """``seen`` are the arrays of the tree so far: each has one place in it, so that no capture's loops or repeats
        make it grow without end."""
        array = self._arrays.get(device) or self._array_of_partition(device)
        if array is not None and array.device not in seen:
            return self._of_array(array, seen)
        name = device if device in self._disks else self._carriers.get(device)
        return Node(name, name) if name else None

    def _target(self, device: str) -> str:
        """The array or disk that a member is, or is a part of."""
        array = self._arrays.get(device) or self._array_of_partition(device)
        return array.device if array else self._carriers.get(device, device)

    def _array_of_partition(self, device: str) -> Array | None:
        found = re.fullmatch(r"(.+)p[0-9]+", device, re.ASCII | re.DOTALL)
        return self._arrays.get(found[1]) if found else None

    def _of_array(self, array: Array, seen: set[str]) -> Node:
        seen.add(array.device)
        idle = {*array.spares, *array.failed, *array.journal}
        members = tuple(self._node(name, seen) or Node(name, name) for name in array.members if name not in idle)
        missing = max(array.missing or 0, 0)
        whole = len(members) + missing
        return Node(
            name=array.name,
            device=array.device,
            family=family_of(array.level),
            members=members,
            missing=missing,
            copies=whole / array.data_disks if array.data_disks and array.data_disks <= whole else 2,
            level=array.level,
            state=array.state,
        )

    def tops(self) -> Iterator[tuple[Node, tuple[str, ...], tuple[str, ...]]]:
        """Each device that something is mounted from or that nothing lies on: its tree, mount points, file systems."""
        mounted: dict[str, tuple[Node, list[str], list[str]]] = {}
        for system in self._facts.filesystems:
            node = self.node(system.device, system.mountpoints) if system.mountpoints else None
            if node is not None:
                _, places, kinds = mounted.setdefault(node.device, (node, [], []))
                places += system.mountpoints
                kinds.append(system.kind)
        for node, places, kinds in mounted.values():
            yield from self._if_real(node, places, kinds)
        used = {name for node, _, _ in mounted.values() for name in _all_devices(node)}
        used |= {self._target(name) for array in self._facts.arrays for name in array.members}
        for array in self._facts.arrays:
            if array.device not in used:
                yield self._of_array(array, set()), (), ()
        for disk in self._facts.disks:
            if disk.name not in used and disk.kind not in _NO_MEDIUM:
                yield Node(disk.name, disk.name), (), ()

    def _if_real(
        self, node: Node, places: Sequence[str], kinds: Sequence[str]
    ) -> Iterator[tuple[Node, tuple[str, ...], tuple[str, ...]]]:
        disk = self.disk(node.device)
        if disk is None or disk.kind not in _NO_MEDIUM:
            yield node, tuple(dict.fromkeys(places)), tuple(dict.fromkeys(kinds))


def _all_devices(node: Node) -> Iterator[str]:
    yield node.device
    for member in node.members:
        yield from _all_devices(member)
