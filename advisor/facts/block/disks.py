"""Disks: what they are, their queue settings, where they sit, and what is mounted from them.

Everything comes from ``/sys/block`` (kernel: Documentation/ABI/stable/sysfs-block). Devices that are made of others are
in ``advisor.facts.block.arrays``; CD drives, floppies and RAM disks are left out, and so are loop, zram and network
block devices that are not in use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from advisor.facts.block.block import (
    BlockNames,
    clean,
    multipath_head,
    natural,
    partitions_of,
    read_count,
    read_queue,
    read_size,
    read_word,
)
from advisor.facts.block.filesystems import FileSystem, read_filesystems
from advisor.facts.block.mounts import Mount, file_devices_of_loops, mountpoints, mounts_by_device, read_mounts
from advisor.facts.block.smart import DriveHealth
from advisor.facts.processors.pci import PcieLink, PciPlace, functions_above, read_place
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, lazy_regex

__all__ = ["Disk", "FileSystem", "read_disks", "read_filesystems"]

T = TypeVar("T")

QUEUE_ATTRIBUTES = (
    "scheduler",
    "nr_requests",
    "read_ahead_kb",
    "max_sectors_kb",
    "max_hw_sectors_kb",
    "rq_affinity",
    "nomerges",
    "wbt_lat_usec",
    "add_random",
    "iostats",
    "write_cache",
    "discard_max_bytes",
    "optimal_io_size",
    "minimum_io_size",
    "logical_block_size",
    "physical_block_size",
    "io_timeout",
    "io_poll",
    "zoned",
)

# Beginning of the name, and the plain word for it; longer beginnings first where one is the beginning of another.
KINDS = (
    ("nvme", "nvme"),
    ("mmcblk", "mmc"),
    ("dasd", "dasd"),
    ("loop", "loop"),
    ("zram", "zram"),
    ("nbd", "nbd"),
    ("rbd", "rbd"),
    ("xvd", "xen"),
    ("pmem", "pmem"),
    ("ublkb", "ublk"),
    ("nullb", "null_blk"),
    ("cciss!", "cciss"),
    ("sd", "scsi"),
    ("vd", "virtio"),
    ("hd", "ide"),
)
# Objects of the kernel's transport classes (scsi_transport_*), of libata and of USB, as they stand in sysfs paths.
_TRANSPORTS = (
    (r"/session\d+/", "iscsi"),
    (r"/rport-\d", "fc"),
    (r"/usb\d+/", "usb"),
    (r"/ata\d+/", "sata"),
    (r"/end_device-\d", "sas"),
    (r"/virtio\d+/", "virtio"),
    (r"/vmbus|/VMBUS:", "vmbus"),
)
_ONLY_IN_USE = frozenset({"loop", "zram", "nbd", "ublk", "null_blk"})
_NO_DISK = lazy_regex(
    r"(md|bcache|drbd|zd)([0-9]|_)|dm-[0-9]|Vx(VM|DMP)[0-9]|(sr|scd|fd|ram|mtdblock)[0-9]|mmcblk[0-9]+(boot[0-9]|rpmb)"
)
FABRIC_ATTRIBUTES = {
    name: f"device/{name}" for name in ("transport", "queue_count", "sqsize", "ctrl_loss_tmo", "fast_io_fail_tmo")
}
_TPGS = ("none", "implicit", "explicit", "implicit and explicit")


class Disk(msgspec.Struct, frozen=True):
    """A disk as the kernel sees it. ``queue`` holds the raw queue attributes by their sysfs names.

    ``paths`` of an NVMe native multipath head are its controllers' path devices (nvme0c0n1 …). The head itself sits
    nowhere: it has a node, a PCI address and a PCIe link only as far as all of its paths agree on them; ``irqs`` are
    those of all. ``irqs`` are given where the PCI function serves this disk alone (NVMe, virtio), not for an adapter.
    ``mountpoints`` are those of the disk and of its partitions.
    """

    name: str
    kind: str
    size_bytes: int | None
    rotational: bool | None
    scheduler: str | None
    numa_node: int | None
    model: str | None
    serial: str | None
    pci: str | None
    pcie: PcieLink | None
    irqs: tuple[int, ...]
    queue: Mapping[str, str]
    partitions: tuple[str, ...]
    holders: tuple[str, ...]
    mountpoints: tuple[str, ...]
    paths: tuple[str, ...]
    partition_offsets: Mapping[str, int] = {}
    """Where each partition begins, in bytes from the start of the disk."""
    detail: Mapping[str, str] = {}
    """What only this kind has: vendor, state, queue_depth, transport, iopolicy, path_states, backing_file …; of
    NVMe over a network queue_count (with the admin queue) and sqsize (less 1) of its controller, and ctrl_loss_tmo and
    fast_io_fail_tmo (seconds, or off); of a LUN access_state
    and handler of its path, remote_port, and whether its storage has groups of ports (tpgs); lba_format of a drive."""
    file_devices: tuple[str, ...] = ()
    """Of a loop device what holds its file: disks, partitions or mappings; none where that is not known."""
    health: DriveHealth | None = None
    """By smartctl, as root (`advisor.facts.block.drive_health`); None where it was not asked, or does not answer."""


def kind_of(name: str) -> str | None:
    """The plain word for a whole disk by its kernel name; None for what is no disk, or not one that matters."""
    if _NO_DISK.match(name):
        return None
    for beginning, kind in KINDS:
        if name.startswith(beginning):
            return kind
    found = re.match(r"[A-Za-z_]+", name)
    return found[0] if found else None


def parse_scheduler(text: str) -> str | None:
    """The active scheduler: the word in brackets, or the only word; None where neither is there."""
    words = text.split()
    chosen = [word[1:-1] for word in words if word.startswith("[") and word.endswith("]")]
    if len(chosen) == 1:
        return chosen[0] or None
    return words[0] if len(words) == 1 and not chosen else None


def transport_of(path: str) -> str | None:
    """How a SCSI disk is reached, by the objects that its transport puts into its path below /sys/devices."""
    return next((transport for pattern, transport in _TRANSPORTS if re.search(pattern, path)), None)


def parse_vpd_serial(page: bytes) -> str | None:
    """The unit serial number in SCSI vital product data page 0x80 (SPC-4, 7.8.19)."""
    if len(page) < 4 or page[1] != 0x80:
        return None
    return clean(page[4 : 4 + int.from_bytes(page[2:4], "big")].decode("ascii", "replace")) or None


def read_disks(host: Host, unknown: Unknowns) -> tuple[Disk, ...]:
    """Whole disks by name. A disk of which some attribute cannot be read is listed all the same."""
    listed = host.listdir("/sys/block")
    if isinstance(listed, Missing):
        unknown.note("disks", f"/sys/block: {listed.why}")
        return ()
    mounts = read_mounts(host)
    if isinstance(mounts, Missing):
        unknown.note("disks.mountpoints", mounts)
        mounts = ()
    mounted = mounts_by_device(mounts, BlockNames(host))
    heads: dict[str, list[str]] = {}
    for name in sorted(listed, key=natural):
        if head := multipath_head(name):
            heads.setdefault(head, []).append(name)
    paths = {head: tuple(paths) for head, paths in heads.items()}
    for head in sorted(paths.keys() - set(listed), key=natural):
        unknown.note(f"disks.{head}", f"only its paths are there: {', '.join(paths[head])}")
    reader = _Reader(host, unknown, mounted, paths, file_devices_of_loops(host, mounts))
    disks = (reader.disk(name) for name in listed if multipath_head(name) is None)
    return tuple(sorted((disk for disk in disks if disk), key=lambda disk: natural(disk.name)))


class _Reader:
    """Reads disks one after the other; what several share (a PCI function, the mounts) is read once."""

    def __init__(
        self,
        host: Host,
        unknown: Unknowns,
        mounted: Mapping[str, tuple[Mount, ...]],
        paths: Mapping[str, tuple[str, ...]],
        file_devices: Mapping[str, tuple[str, ...]],
    ) -> None:
        self.host = host
        self.unknown = unknown
        self.mounted = mounted
        self.paths = paths
        self.file_devices = file_devices
        self.places: dict[str, PciPlace | None] = {}

    def disk(self, name: str) -> Disk | None:
        kind = kind_of(name)
        if kind is None or (kind == "nvme" and not re.fullmatch(r"nvme[0-9]+n[0-9]+", name)):
            return None
        fact = f"disks.{name}"
        size = read_size(self.host, name, fact + ".size_bytes", self.unknown)
        entries = self.host.names(f"/sys/block/{name}")
        if (kind in _ONLY_IN_USE and size == 0) or (kind == "loop" and "loop" not in entries):
            return None
        queue = read_queue(self.host, name, QUEUE_ATTRIBUTES, fact, self.unknown)
        partitions = partitions_of(name, entries)
        paths = self.paths.get(name, ())
        where = [self._sysfs_place(path) for path in paths or (name,)]
        places = [self._pci_place(path, fact) for path in where]
        transport = transport_of(where[0]) if kind == "scsi" else None
        text = queue.get("scheduler")
        chosen = parse_scheduler(text or "")
        if chosen is None:
            why = f"no single scheduler is marked: {text[:80]!r}" if text else "it is not there"
            self.unknown.note(f"{fact}.scheduler", why)
        offsets: dict[str, int] = {}
        for one in partitions:
            path = f"/sys/block/{name}/{one}/start"
            start = read_count(self.host, path, f"{fact}.partition_offsets.{one}", self.unknown)
            if start is not None:
                offsets[one] = start * 512
        remote_port = re.search(r"\brport-[0-9]+:[0-9]+-[0-9]+\b", where[0]) if transport == "fc" else None
        return Disk(
            name=name,
            kind=kind,
            size_bytes=size,
            rotational=self._read_rotational(name, fact),
            scheduler=chosen,
            numa_node=self._read_node(name, places, fact, paths, has_device="device" in entries),
            model=self._read_model(name, kind, fact, has_device="device" in entries),
            serial=self._read_serial(name, kind, fact),
            pci=_common_value([place.address if place else None for place in places]),
            pcie=_common_value([place.pcie if place else None for place in places]),
            irqs=tuple(sorted({irq for place in places if place for irq in place.irqs}))
            if kind in ("nvme", "virtio")
            else (),
            queue=queue,
            partitions=partitions,
            holders=self._find_holders(name, partitions),
            mountpoints=mountpoints((name, *partitions), self.mounted),
            paths=paths,
            partition_offsets=offsets,
            file_devices=self.file_devices.get(name, ()),
            detail=({"transport": transport} if transport else {})
            | ({"remote_port": remote_port[0]} if remote_port else {})
            | self._read_detail(name, kind, paths, fact, on_pci=any(places), is_remote=transport in ("fc", "iscsi")),
        )

    def _read_attribute(self, path: str, fact: str) -> str | None:
        return read_word(self.host, path, fact, self.unknown)

    def _read_rotational(self, name: str, fact: str) -> bool | None:
        text = self._read_attribute(f"/sys/block/{name}/queue/rotational", f"{fact}.rotational")
        if text in ("0", "1"):
            return text == "1"
        self.unknown.note(f"{fact}.rotational", f"neither 0 nor 1: {text[:40]!r}" if text else "it is not there")
        return None

    def _sysfs_place(self, name: str) -> str:
        link = self.host.readlink(f"/sys/block/{name}")
        if not isinstance(link, Missing):
            return "/sys/" + link.removeprefix("../")
        # A captured tree with directories instead of links.
        device = self.host.real(f"/sys/block/{name}/device")
        return f"/sys/block/{name}" if isinstance(device, Missing) else device

    def _pci_place(self, where: str, fact: str) -> PciPlace | None:
        functions = functions_above(where)
        if not functions:
            return None
        if functions[0] not in self.places:
            self.places[functions[0]] = read_place(self.host, functions[0], fact, self.unknown)
        return self.places[functions[0]]

    def _read_node(
        self, name: str, places: Sequence[PciPlace | None], fact: str, paths: Sequence[str], *, has_device: bool
    ) -> int | None:
        nodes = {place.numa_node if place else None for place in places}
        if len(nodes) > 1:
            listed = ", ".join(sorted("none" if node is None else str(node) for node in nodes))
            self.unknown.note(f"{fact}.numa_node", f"its paths sit on different nodes: {listed}")
            return None
        if any(places) or paths or not has_device:
            return nodes.pop()
        node = self.unknown.value(f"{fact}.numa_node", self.host.read_int(f"/sys/block/{name}/device/numa_node"))
        return None if node is None or node < 0 else node

    def _read_model(self, name: str, kind: str, fact: str, *, has_device: bool) -> str | None:
        attribute = {"nvme": "model", "scsi": "model", "cciss": "model", "mmc": "name", "dasd": "devtype"}.get(kind)
        if attribute is None or not has_device:
            return None
        return self._read_attribute(f"/sys/block/{name}/device/{attribute}", f"{fact}.model")

    def _read_serial(self, name: str, kind: str, fact: str) -> str | None:
        if kind == "scsi":
            page = self.unknown.value(f"{fact}.serial", self.host.read_bytes(f"/sys/block/{name}/device/vpd_pg80"))
            return parse_vpd_serial(page) if page else None
        place = {"nvme": "device/serial", "mmc": "device/serial", "virtio": "serial", "dasd": "device/uid"}.get(kind)
        return self._read_attribute(f"/sys/block/{name}/{place}", f"{fact}.serial") if place else None

    def _find_holders(self, name: str, partitions: Sequence[str]) -> tuple[str, ...]:
        places = [f"/sys/block/{name}/holders", *(f"/sys/block/{name}/{one}/holders" for one in partitions)]
        return tuple(sorted({holder for place in places for holder in self.host.names(place)}, key=natural))

    def _read_detail(
        self, name: str, kind: str, paths: Sequence[str], fact: str, *, on_pci: bool, is_remote: bool
    ) -> dict[str, str]:
        attributes: dict[str, str] = {}
        if paths:
            attributes = {"iopolicy": "device/iopolicy"}
        elif kind == "nvme":
            attributes = {"state": "device/state"} | ({} if on_pci else FABRIC_ATTRIBUTES)
        elif kind == "scsi":
            attributes = {"vendor": "device/vendor", "state": "device/state", "queue_depth": "device/queue_depth"}
            attributes |= {"handler": "device/dh_state", "access_state": "device/access_state"} if is_remote else {}
        elif kind == "loop":
            attributes = {"backing_file": "loop/backing_file"}
        found = {
            key: self._read_attribute(f"/sys/block/{name}/{path}", f"{fact}.{key}") for key, path in attributes.items()
        }
        if paths and not on_pci:
            first = f"/sys/block/{paths[0]}"
            found |= {
                key: self._read_attribute(f"{first}/{path}", f"{fact}.{key}") for key, path in FABRIC_ATTRIBUTES.items()
            }
        if is_remote:
            # Whether the storage has groups of target ports: the word of bits 4 and 5 of byte 5 of its INQUIRY
            # (SPC-4).
            data = self.host.read_bytes(f"/sys/block/{name}/device/inquiry")
            found["tpgs"] = None if isinstance(data, Missing) or len(data) < 6 else _TPGS[data[5] >> 4 & 3]
        if paths:
            found["path_states"] = ", ".join(self._path_state(path, fact) for path in paths)
        return {key: value for key, value in found.items() if value}

    def _path_state(self, path: str, fact: str) -> str:
        words = [
            self._read_attribute(f"/sys/block/{path}/{one}", f"{fact}.path_states")
            for one in ("device/state", "ana_state")
        ]
        return " ".join([path, *(word for word in words if word)])


def _common_value(values: Sequence[T]) -> T | None:
    return values[0] if all(value == values[0] for value in values) else None
