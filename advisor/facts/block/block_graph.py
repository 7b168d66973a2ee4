"""Which block devices lie on which, and how: one graph for every driver of the block layer, with the medium of each.

A device of the graph is a whole disk, an array or a mapping, with what lies right below it. `BlockGraph.node` is the
same below one device as a tree, over which figures can be combined. What a member is to its device (`Relation`) follows
from the device's level (`advisor.facts.block.block`), and of some members from their own mark.

Source: Linux Documentation/ABI/stable/sysfs-block (``slaves``, ``queue/rotational``, ``queue/read_ahead_kb``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from math import prod
from typing import TYPE_CHECKING

import msgspec

from advisor.facts.block.block import BESIDE, LEVELS, Array, ArrayPart, Relation, family_of
from advisor.facts.block.disks import Disk
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

if TYPE_CHECKING:
    from advisor.facts.host_facts import Facts

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
_MOST_SHARED = 256
"""Disks below a device that several segments of one volume lie on: beyond that, a capture's repeats would multiply."""
_NO_MEDIUM = frozenset({"loop", "zram", "ram"})
_IMAGES = frozenset({"squashfs", "iso9660", "erofs", "cramfs", "romfs"})
"""File systems that are only read: packages and installation media in files, of which a host may have dozens."""
FILE_LEVEL = "file"
"""What lies between a loop device and the device that holds its file."""

Rank = tuple[float, ...]


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


class BlockNode(msgspec.Struct, frozen=True):
    """A disk (no members), or a device of its working members.

    ``relation`` is what it is to the device above. ``missing`` counts the members that should serve and do not,
    ``copies`` is how often RAID 10 keeps each block.
    """

    name: str
    device: str
    level: str | None = None
    members: tuple[BlockNode, ...] = ()
    relation: Relation = "data"
    missing: int = 0
    copies: float = 2
    state: str | None = None
    survives: int | None = None
    """How many more members may be lost, as `Array.survives` has it."""
    width: int | None = None
    """Members under one stripe, where they are fewer than all and which ones is not known."""

    @property
    def family(self) -> str | None:
        """The row of its level; None of a disk, and of a level that is not known."""
        return family_of(self.level)

    @property
    def _holding(self) -> tuple[BlockNode, ...]:
        return tuple(one for one in self.members if one.relation == "write-mostly" or one.relation not in BESIDE)

    def disks(self, *, holding: bool = False) -> Iterator[str]:
        """The disks at the bottom, each as often as it is below; with ``holding`` those of them that keep the data."""
        if not self.members:
            yield self.device
        for member in self._holding if holding else self.members:
            yield from member.disks(holding=holding)

    def arrays(self) -> Iterator[BlockNode]:
        """The devices of the tree that are made of others, the top first."""
        if self.members:
            yield self
            for member in self.members:
                yield from member.arrays()

    def at_a_time(self, rank: Callable[[BlockNode], Rank]) -> BlockNode:
        """What serves one stream at a time: of what lies one behind the other, the member of the highest rank."""
        if not self.members:
            return self
        members = tuple(member.at_a_time(rank) for member in self.members[: self.width])
        if self.family == "linear":
            return msgspec.structs.replace(max(members, key=rank), relation=self.relation)
        return msgspec.structs.replace(self, members=members, width=None)


class BlockGraph:
    """The block devices of a host by name, and how its facts say that they are combined."""

    def __init__(self, facts: Facts, devices: Mapping[str, BlockDevice] | None = None) -> None:
        """``devices`` are those of sysfs, hidden ones among them; without them those of the facts."""
        # A controller's volume is a disk to the kernel: it has its place as that.
        self._arrays = {array.device: array for array in facts.arrays if array.manager != "controller"}
        self._disks = {disk.name: disk for disk in facts.disks}
        self._layers = {layer.device: layer for layer in facts.encrypted if layer.below}
        self._facts = facts
        self.devices: Mapping[str, BlockDevice] = devices if devices is not None else self._devices_of_facts()

    def _devices_of_facts(self) -> dict[str, BlockDevice]:
        rows = [
            BlockDevice(
                disk.name, partitions=disk.partitions, rotational=disk.rotational, file_devices=disk.file_devices
            )
            for disk in self._disks.values()
        ]
        rows += [BlockDevice(device, below=array.members) for device, array in self._arrays.items()]
        rows += [BlockDevice(device, below=layer.below) for device, layer in self._layers.items()]
        return {row.name: row for row in rows}

    @cached_property
    def _parents(self) -> dict[str, str]:
        return {part: device.name for device in self.devices.values() for part in device.partitions}

    def whole(self, name: str) -> str:
        """The disk or array that a partition is on; any other name as it is."""
        if name in self._parents or name in self.devices:
            return self._parents.get(name, name)
        found = re.fullmatch(r"(.+)p[0-9]+", name, re.ASCII | re.DOTALL)
        return found[1] if found and found[1] in self._arrays else name

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

    def disk(self, name: str) -> Disk | None:
        """The disk of that name; None for a partition, an array, or what is not among the facts."""
        return self._disks.get(name)

    def is_served(self, name: str) -> bool:
        """Whether a network or a hypervisor is between this host and a disk's medium, by its transport and model,
        whatever the kernel says about it."""
        disk = self._disks.get(name) if name in self.devices else None
        if disk is None:
            return False
        words = f"{disk.detail.get('vendor', '')} {disk.model or ''}"
        return disk.detail.get("transport") in _REMOTE_TRANSPORTS or bool(_REMOTE_MODELS.search(words))

    def array(self, name: str) -> Array | None:
        """The array of that name, or the one that this is a partition of."""
        return self._arrays.get(self.whole(name))

    @cached_property
    def _carriers(self) -> dict[str, str]:
        """Partitions and what holds a disk without being an array, by the disk below."""
        found: dict[str, str] = {}
        for disk in self._disks.values():
            found |= dict.fromkeys((*disk.holders, *disk.partitions), disk.name)
        return {name: disk for name, disk in found.items() if name not in self._arrays}

    def node(self, device: str, mountpoints: Sequence[str] = ()) -> BlockNode | None:
        """The tree of a device, or of what is mounted there where the device itself is not among the facts."""
        wanted = set(mountpoints)
        spread = (one for one in self._arrays.values() if one.manager == "btrfs" and wanted & set(one.mountpoints))
        # The kernel shows such a file system as mounted from one of its devices.
        over = next((one for one in spread if device in one.members), None)
        found = self._of_array(over, set()) if over else self._make_node(device, set())
        if found is not None:
            return found
        above = next((one for one in self._arrays.values() if wanted & set(one.mountpoints)), None)
        return self._make_node(above.device, set()) if above else None

    def _make_node(self, device: str, seen: set[str]) -> BlockNode | None:
        """``seen`` are the arrays of the tree so far: each has one place in it, so that no capture's loops or repeats
        make it grow without end."""
        array = self.array(device)
        if array is not None and array.device not in seen:
            return self._of_array(array, seen)
        layer = self._layers.get(device)
        if layer is not None and device not in seen:
            seen.add(device)
            return BlockNode(layer.name, device, "crypt", self._nodes(layer.below, seen))
        name = device if device in self._disks else self._carriers.get(device)
        return self._of_disk(self._disks[name], seen) if name else None

    def _nodes(self, names: Iterable[str], seen: set[str]) -> tuple[BlockNode, ...]:
        return tuple(self._make_node(name, seen) or BlockNode(name, name) for name in names)

    def _of_disk(self, disk: Disk, seen: set[str]) -> BlockNode:
        """A disk; a loop device with what holds its file. How btrfs spreads a file over several devices is not
        known: then the sum of these stands."""
        if not disk.file_devices or disk.name in seen:
            return BlockNode(disk.name, disk.name)
        seen.add(disk.name)
        return BlockNode(disk.name, disk.name, FILE_LEVEL, self._nodes(disk.file_devices, seen))

    def _target_of(self, device: str) -> str:
        """The array or disk that a member is, or is a part of."""
        array = self.array(device)
        return array.device if array else self._carriers.get(device, device)

    def _of_array(self, array: Array, seen: set[str]) -> BlockNode:
        seen.add(array.device)
        idle = frozenset((*array.spares, *array.failed))
        if array.structure is not None:
            return self._of_part(array.structure, array, idle, seen, {})
        marked: dict[str, Relation] = dict.fromkeys(array.journal, "journal")
        marked |= dict.fromkeys(array.detail.get("write_mostly", "").split(), "write-mostly")
        names = [name for name in array.members if name not in idle]
        family = family_of(array.level)
        own: Relation = LEVELS[family].relation if family else "data"
        members = tuple(
            msgspec.structs.replace(node, relation=marked.get(name, own))
            for name, node in zip(names, self._nodes(names, seen), strict=True)
        )
        missing = max(array.missing or 0, 0)
        whole = sum(member.relation != "journal" for member in members) + missing
        # Far and offset copies, and those of an odd number of members, leave a stripe as wide as the array.
        copies = re.findall(r"([0-9]{1,3}) (?:near|far|offset)-copies", array.detail.get("layout", ""), re.ASCII)
        few = array.data_disks if family == "striped" and 0 < (array.data_disks or 0) < len(members) else None
        return BlockNode(
            name=array.name,
            device=array.device,
            level=array.level,
            members=members,
            missing=missing,
            copies=prod(map(int, copies))
            if copies
            else whole / array.data_disks
            if array.data_disks and array.data_disks <= whole
            else 2,
            state=array.state,
            survives=array.survives,
            width=few,
        )

    def _of_part(
        self, part: ArrayPart, array: Array, idle: frozenset[str], seen: set[str], known: dict[str, BlockNode]
    ) -> BlockNode:
        """An array by its structure, or a part of it. ``known`` are the devices below it so far: several of its parts
        may lie on the same one."""
        family = family_of(part.level)
        own: Relation = LEVELS[family].relation if family else "data"
        members: list[BlockNode] = []
        for one in part.members:
            relation = one.relation or own if isinstance(one, ArrayPart) else own
            if isinstance(one, ArrayPart) and one.relation and len(one.members) == 1:
                one = one.members[0]
            if isinstance(one, ArrayPart):
                node = self._of_part(one, array, idle, seen, known)
            elif one in idle:
                continue
            else:
                node = self._reuse_node(one, seen, known)
            members.append(msgspec.structs.replace(node, relation=relation))
        is_top = part is array.structure
        return BlockNode(
            name=array.name if is_top else f"{array.name} {part.name}",
            device=array.device if is_top else f"{array.device}:{part.name}",
            # A part of which nothing is left carries nothing; its place stays.
            members=tuple(one for one in members if one.members or one.level is None),
            missing=sum(isinstance(one, str) and one in idle for one in part.members),
            level=part.level,
            state=array.state if is_top else None,
            survives=array.survives if is_top else None,
        )

    def _reuse_node(self, name: str, seen: set[str], known: dict[str, BlockNode]) -> BlockNode:
        target = self._target_of(name)
        if target not in known:
            known[target] = self._make_node(name, seen) or BlockNode(name, name)
        node = known[target]
        return node if sum(1 for _ in islice(node.disks(), _MOST_SHARED + 1)) <= _MOST_SHARED else BlockNode(name, name)

    def tops(self) -> Iterator[tuple[BlockNode, tuple[str, ...], tuple[str, ...]]]:
        """Each device that something is mounted from or that nothing lies on: its tree, mount points, file systems."""
        mounted: dict[str, tuple[BlockNode, list[str], list[str]]] = {}
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
        for array in self._arrays.values():
            used |= set(map(self._target_of, (*array.members, *(array.structure.devices() if array.structure else ()))))
        for array in self._arrays.values():
            if array.device not in used:
                yield self._of_array(array, set()), (), ()
        for disk in self._disks.values():
            if disk.name not in used and disk.kind not in _NO_MEDIUM:
                yield BlockNode(disk.name, disk.name), (), ()


def _all_devices(node: BlockNode) -> Iterator[str]:
    yield node.device
    for member in node.members:
        yield from _all_devices(member)


def read_block_graph(host: Host, facts: Facts) -> BlockGraph:
    """The graph with every device of /sys/block but RAM disks, hidden volumes among them; without sysfs none."""
    words = [line.split() for line in host.read_or_empty("/proc/swaps").split("\n")[1:]]
    swap_names = {row[0].rpartition("/")[2] for row in words if len(row) > 1 and row[1] == "partition"}
    loops = {disk.name: disk.file_devices for disk in facts.disks}
    devices = {}
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
    return BlockGraph(facts, devices)


def service_ms(graph: BlockGraph, name: str, size_bytes: float) -> float:
    """What a healthy device of the kind takes for a request of a size, in ms, by the slowest medium below it.

    Rotating 12 ms and 150 MB/s, NVMe 0.2 ms and 1 GB/s, other flash 0.5 ms and 400 MB/s, storage of a hypervisor or
    over a network 2 ms and 100 MB/s, as of one whose medium is not known: generous figures, so that what exceeds them
    is a wait in a queue and not the medium's own time.
    """
    return max(_own_service_ms(graph, one, size_bytes) for one in graph.bottom(name))


def _own_service_ms(graph: BlockGraph, name: str, size_bytes: float) -> float:
    device = graph.devices.get(name)
    if is_remote(graph, name):
        return 2.0 + size_bytes / 1e5
    if name.startswith(("nvme", "pmem")):
        return 0.2 + size_bytes / 1e6
    if device is None or device.rotational is None:
        return 2.0 + size_bytes / 1e5
    return 12.0 + size_bytes / 1.5e5 if device.rotational else 0.5 + size_bytes / 4e5


def is_remote(graph: BlockGraph, name: str) -> bool:
    """Whether what holds the bytes of a device is reached through a network or a hypervisor, by its name or model."""
    return bool(re.match(_REMOTE, name)) or graph.is_served(name)


def medium_of(graph: BlockGraph, name: str) -> str:
    """A word for the kind of medium: devices of different ones are no peers."""
    found = set()
    for one in graph.bottom(name):
        device = graph.devices.get(one)
        rotates = "rotating" if device is not None and device.rotational else "flash"
        is_nvme = one.startswith(("nvme", "pmem"))
        found.add("remote" if is_remote(graph, one) else "nvme" if is_nvme else rotates)
    return " ".join(sorted(found))


def is_flash(graph: BlockGraph, names: Iterable[str]) -> bool:
    """Whether none of the devices, nor what lies below them, is known to rotate."""
    return not any(
        device.rotational and not is_remote(graph, device.name)
        for name in names
        for one in (name, *graph.lowest(name))
        if (device := graph.devices.get(one)) is not None
    )
