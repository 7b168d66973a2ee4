"""What lies below a device: arrays of arrays down to disks, as a tree that figures can be combined over."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice

import msgspec

from advisor.facts.array import Array, ArrayPart
from advisor.facts.disks import Disk
from advisor.facts.host_facts import Facts
from advisor.limits.figures import Figures
from advisor.limits.raid import combined, family_of

Rank = tuple[float, ...]
_MOST_SHARED = 256
"""Disks below a device that several segments of one volume lie on: beyond that, a capture's repeats would multiply."""

_NO_MEDIUM = frozenset({"loop", "zram", "ram"})
_IMAGES = frozenset({"squashfs", "iso9660", "erofs", "cramfs", "romfs"})
"""File systems that are only read: packages and installation media in files, of which a host may have dozens."""
FILE_LEVEL = "file"
"""What lies between a loop device and the device that holds its file."""


class StackNode(msgspec.Struct, frozen=True):
    """A disk (no members), or an array of its working members. ``family`` as `raid.family_of` has it."""

    name: str
    device: str
    family: str | None = None
    members: tuple[StackNode, ...] = ()
    missing: int = 0
    copies: float = 2
    level: str | None = None
    state: str | None = None
    width: int | None = None
    """Members under one stripe, where they are fewer than all and which ones is not known."""

    def disks(self) -> Iterator[str]:
        """The disks at the bottom, each as often as it is below."""
        if not self.members:
            yield self.device
        for member in self.members:
            yield from member.disks()

    def arrays(self) -> Iterator[StackNode]:
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

    def at_a_time(self, rank: Callable[[StackNode], Rank]) -> StackNode:
        """What serves one stream at a time: of what lies one behind the other, the member of the highest rank."""
        if not self.members:
            return self
        members = tuple(member.at_a_time(rank) for member in self.members[: self.width])
        if self.family == "linear":
            return max(members, key=rank)
        return msgspec.structs.replace(self, members=members, width=None)


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

    def node(self, device: str, mountpoints: Sequence[str] = ()) -> StackNode | None:
        """The tree of a device, or of what is mounted there where the device itself is not among the facts."""
        found = self._make_node(device, set())
        if found is not None:
            return found
        wanted = set(mountpoints)
        above = next((one for one in self._facts.arrays if wanted & set(one.mountpoints)), None)
        return self._make_node(above.device, set()) if above else None

    def _make_node(self, device: str, seen: set[str]) -> StackNode | None:
        """``seen`` are the arrays of the tree so far: each has one place in it, so that no capture's loops or repeats
        make it grow without end."""
        array = self._arrays.get(device) or self._array_of_partition(device)
        if array is not None and array.device not in seen:
            return self._of_array(array, seen)
        name = device if device in self._disks else self._carriers.get(device)
        return self._of_disk(self._disks[name], seen) if name else None

    def _of_disk(self, disk: Disk, seen: set[str]) -> StackNode:
        """A disk; a loop device with what holds its file. How btrfs spreads a file over several devices is not
        known: then the sum of these stands."""
        if not disk.file_devices or disk.name in seen:
            return StackNode(disk.name, disk.name)
        seen.add(disk.name)
        members = [self._make_node(name, seen) or StackNode(name, name) for name in disk.file_devices]
        family = "linear" if len(members) == 1 else None
        return StackNode(disk.name, disk.name, family, tuple(members), level=FILE_LEVEL)

    def _target_of(self, device: str) -> str:
        """The array or disk that a member is, or is a part of."""
        array = self._arrays.get(device) or self._array_of_partition(device)
        return array.device if array else self._carriers.get(device, device)

    def _array_of_partition(self, device: str) -> Array | None:
        found = re.fullmatch(r"(.+)p[0-9]+", device, re.ASCII | re.DOTALL)
        return self._arrays.get(found[1]) if found else None

    def _of_array(self, array: Array, seen: set[str]) -> StackNode:
        seen.add(array.device)
        idle = frozenset((*array.spares, *array.failed, *array.journal))
        if array.structure is not None:
            return self._of_part(array.structure, array, idle, seen, {})
        members = tuple(
            self._make_node(name, seen) or StackNode(name, name) for name in array.members if name not in idle
        )
        missing = max(array.missing or 0, 0)
        whole = len(members) + missing
        family = family_of(array.level)
        few = array.data_disks if family == "striped" and 0 < (array.data_disks or 0) < len(members) else None
        return StackNode(
            name=array.name,
            device=array.device,
            family=family,
            members=members,
            missing=missing,
            copies=whole / array.data_disks if array.data_disks and array.data_disks <= whole else 2,
            level=array.level,
            state=array.state,
            width=few,
        )

    def _of_part(
        self, part: ArrayPart, array: Array, idle: frozenset[str], seen: set[str], known: dict[str, StackNode]
    ) -> StackNode:
        """An array by its structure, or a part of it. ``known`` are the devices below it so far: several of its parts
        may lie on the same one."""
        members: list[StackNode] = []
        for one in part.members:
            if isinstance(one, ArrayPart):
                members.append(self._of_part(one, array, idle, seen, known))
            elif one not in idle:
                members.append(self._reuse_node(one, seen, known))
        is_top = part is array.structure
        return StackNode(
            name=array.name if is_top else f"{array.name} {part.name}",
            device=array.device if is_top else f"{array.device}:{part.name}",
            family=family_of(part.level),
            # A part of which nothing is left carries nothing; its place stays.
            members=tuple(one for one in members if one.members or one.level is None),
            missing=sum(isinstance(one, str) and one in idle for one in part.members),
            level=part.level,
            state=array.state if is_top else None,
        )

    def _reuse_node(self, name: str, seen: set[str], known: dict[str, StackNode]) -> StackNode:
        target = self._target_of(name)
        if target not in known:
            known[target] = self._make_node(name, seen) or StackNode(name, name)
        node = known[target]
        return node if sum(1 for _ in islice(node.disks(), _MOST_SHARED + 1)) <= _MOST_SHARED else StackNode(name, name)

    def tops(self) -> Iterator[tuple[StackNode, tuple[str, ...], tuple[str, ...]]]:
        """Each device that something is mounted from or that nothing lies on: its tree, mount points, file systems."""
        mounted: dict[str, tuple[StackNode, list[str], list[str]]] = {}
        for system in self._facts.filesystems:
            node = self.node(system.device, system.mountpoints) if system.mountpoints else None
            if node is not None:
                _, places, kinds = mounted.setdefault(node.device, (node, [], []))
                places += system.mountpoints
                kinds.append(system.kind)
        for node, places, kinds in mounted.values():
            disk = self.disk(node.device)
            is_image = disk is not None and disk.kind == "loop" and _IMAGES.issuperset(kinds)
            if disk is None or disk.kind not in _NO_MEDIUM or (node.members and not is_image):
                yield node, tuple(dict.fromkeys(places)), tuple(dict.fromkeys(kinds))
        # A disk that holds the files of loop devices is its own path as well: other files lie on it.
        used = {name for node, _, _ in mounted.values() if node.level != FILE_LEVEL for name in _all_devices(node)}
        used |= {self._target_of(name) for array in self._facts.arrays for name in array.members}
        for array in self._facts.arrays:
            if array.device not in used:
                yield self._of_array(array, set()), (), ()
        for disk in self._facts.disks:
            if disk.name not in used and disk.kind not in _NO_MEDIUM:
                yield StackNode(disk.name, disk.name), (), ()


def _all_devices(node: StackNode) -> Iterator[str]:
    yield node.device
    for member in node.members:
        yield from _all_devices(member)
