"""Arrays: md, LVM, dm-multipath and what other drivers make of devices; their geometry, members and health.

Hardware RAID controllers are not seen here: their volumes are disks to the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import msgspec

from advisor.facts.block import dm, md
from advisor.facts.block.block import (
    Array,
    ArrayPart,
    BlockNames,
    PathGroup,
    losses_left,
    natural,
    read_queue,
    read_size,
)
from advisor.facts.block.disks import Disk
from advisor.facts.block.dm import DmDevice, Structures, structure_of_rows
from advisor.facts.block.dm_text import ArrayShape, TableGroup, multipath_groups, path_states
from advisor.facts.block.lvm_text import (
    LVS,
    PVS,
    LogicalVolume,
    MultipathMap,
    count_unread,
    parse_lvs,
    parse_multipath,
    parse_pvs,
)
from advisor.facts.block.md_sources import read_md
from advisor.facts.block.storage import Storage, read_storage
from advisor.facts.unknown import BTRFS, STACKED, Unknowns
from advisor.host import Host, Missing, is_count
from advisor.host.numbers import count_noun

if TYPE_CHECKING:
    from advisor.facts.block.stacked import ZfsPool

__all__ = ["Array", "read_arrays"]

# Volumes and multipath maps of captures that hold no more of them than a tool's text.


def path_state(failed: int, paths: int) -> str:
    """The state of a multipath map; one without any path has failed."""
    if failed >= paths:
        return "failed"
    return "degraded" if failed else "active"


def read_maps(host: Host, unknown: Unknowns) -> tuple[MultipathMap, ...]:
    """Maps in what ``multipath -ll`` answered; how many of them could not be read is noted."""
    for argv in (["multipath", "-ll"], ["multipath", "-v4", "-ll"]):
        done = host.run(argv)
        if not isinstance(done, Missing):
            unread = count_unread(done.stdout)
            if unread:
                unknown.note("arrays.multipath", f"{count_noun(unread, 'map')} of multipath -ll in an unknown form")
            return parse_multipath(done.stdout)
    return ()


def maps(host: Host, unknown: Unknowns) -> list[Array]:
    """Multipath maps of a capture that holds a tool's text only."""
    return [_map_array(one) for one in read_maps(host, unknown)]


def _map_array(one: MultipathMap) -> Array:
    lost = [path.device.strip("-#") for path in one.paths if not path.is_usable]
    texts = {"wwid": one.wwid, "vendor": one.vendor, "product": one.product, "features": one.features}
    texts |= {"hwhandler": one.hwhandler, "policy": one.groups[0].policy if one.groups else None}
    return _make_array(
        name=one.name,
        manager="dm-multipath",
        device=one.device,
        level="multipath",
        state=path_state(len(lost), len(one.paths)),
        missing=len(lost),
        members=tuple(sorted({path.device.strip("-#") for path in one.paths} - {""}, key=natural)),
        failed=tuple(dict.fromkeys(filter(None, lost))),
        expected=len(one.paths),
        detail={key: value for key, value in texts.items() if value},
    )


def volumes(host: Host) -> list[Array]:
    """Logical volumes of a capture that holds the output of lvs only; segments of one volume are put together.

    Where lvs was not asked for devices, volumes of a group with one physical volume lie on that.
    """
    done = host.run(LVS)
    rows = () if isinstance(done, Missing) else parse_lvs(done.stdout)
    if rows and not any(row.devices for row in rows):
        physical = host.run(PVS)
        groups = {} if isinstance(physical, Missing) else parse_pvs(physical.stdout)
        only = {group: devices for group, devices in groups.items() if len(devices) == 1 and devices[0]}
        rows = tuple(msgspec.structs.replace(row, devices=only.get(row.group or "", ())) for row in rows)
    segments: dict[tuple[str | None, str], list[LogicalVolume]] = {}
    for row in rows:
        segments.setdefault((row.group, row.name), []).append(row)
    return [_volume_array(those, segments) for those in segments.values() if not those[0].is_hidden]


def _volume_array(
    segments: list[LogicalVolume], everything: Mapping[tuple[str | None, str], list[LogicalVolume]]
) -> Array:
    first = segments[0]
    level = (first.level or "").partition("_")[0] if (first.level or "").startswith("raid") else first.level
    name = f"{first.group}/{first.name}" if first.group else first.name
    found: set[str] = set()
    seen: set[str] = set()
    pending = [(segments[0].group, device) for segment in segments for device in segment.devices]
    while pending:
        group, device = pending.pop()
        below = everything.get((group, device)) or []
        if not below:
            found.add(device)
        elif device not in seen:
            seen.add(device)
            pending += [(group, one) for segment in below for one in segment.devices]
    return _make_array(
        name=name,
        manager="lvm",
        device=first.name,
        level=level or None,
        chunk_bytes=first.stripe_bytes or first.chunk_bytes,
        data_disks=first.stripes if first.stripe_bytes else None,
        members=tuple(sorted(found, key=natural)),
        size_bytes=first.size_bytes,
        detail={"attributes": first.attributes} if first.attributes else {},
        structure=structure_of_rows(name, segments),
    )


def _make_array(
    *,
    name: str,
    manager: Literal["lvm", "dm-multipath"],
    device: str,
    level: str | None,
    members: tuple[str, ...],
    detail: Mapping[str, str],
    state: str | None = None,
    missing: int | None = None,
    expected: int | None = None,
    failed: tuple[str, ...] = (),
    chunk_bytes: int | None = None,
    data_disks: int | None = None,
    size_bytes: int | None = None,
    structure: ArrayPart | None = None,
) -> Array:
    return Array(
        name=name,
        manager=manager,
        device=device,
        level=level,
        chunk_bytes=chunk_bytes,
        data_disks=data_disks,
        state=state,
        missing=missing,
        members=members,
        spares=(),
        failed=failed,
        journal=(),
        numa_nodes=(),
        size_bytes=size_bytes,
        progress_percent=None,
        mountpoints=(),
        detail=detail,
        structure=structure,
        expected=expected,
        survives=losses_left(level, expected, missing),
    )


QUEUE_ATTRIBUTES = (
    "scheduler",
    "nr_requests",
    "read_ahead_kb",
    "max_sectors_kb",
    "max_hw_sectors_kb",
    "optimal_io_size",
    "minimum_io_size",
    "logical_block_size",
)
_AFTER_MD = frozenset("0123456789_")
_COUNTED = frozenset({"round-robin", "queue-length", "service-time", "historical-service-time"})
_ORDER = ("md", "lvm", "dm-multipath", "dm", "controller", "drbd", "bcache", "zfs", "btrfs")


def read_arrays(
    host: Host, disks: tuple[Disk, ...], unknown: Unknowns, pools: tuple[ZfsPool, ...] = ()
) -> tuple[Array, ...]:
    """Arrays by manager and name. One of which some attribute cannot be read is listed all the same."""
    listed = host.names("/sys/block")
    found_md = read_md(host, [name for name in listed if name.startswith("md") and name[2:3] in _AFTER_MD], unknown)
    found_dm = dm.read_dm(host, [name for name in listed if name.startswith("dm-")], unknown)
    others = [name for name in listed if name.startswith(STACKED)]
    reader = _Reader(host, read_storage(host, disks, found_md, found_dm, others), unknown)
    arrays = [reader.md(one) for one in found_md]
    arrays += [reader.mapped(one) for one in found_dm if one.role in ("lvm", "dm")]
    arrays += [reader.multipath(one) for one in found_dm if one.role == "multipath"]
    if not found_dm and not host.is_live:
        arrays += volumes(host) + maps(host, unknown)
    if others or pools or host.names(BTRFS):
        from advisor.facts.block.stacked import read_stacked

        arrays += read_stacked(host, others, reader.storage, pools, unknown)
    return tuple(sorted(arrays, key=lambda one: (_ORDER.index(one.manager), natural(one.name))))


class _Reader:
    """Makes the records of the arrays in one view of a host's storage."""

    def __init__(self, host: Host, storage: Storage, unknown: Unknowns) -> None:
        self.host = host
        self.storage = storage
        self.unknown = unknown
        self.names = BlockNames(host)
        self.structures = Structures(storage.by_mapped, self.names.by_number)

    def _read_queue_attributes(self, device: str, fact: str) -> dict[str, str]:
        return read_queue(self.host, device, QUEUE_ATTRIBUTES, fact, self.unknown)

    def md(self, one: md.Md) -> Array:
        fact = f"arrays.{one.name}"
        if one.contradicts:
            self.unknown.note(f"{fact}.missing", f"{one.contradicts}, which contradict each other")
        if one.level == "raid10" and one.near_copies is None:
            self.unknown.note(f"{fact}.data_disks", "its layout is not there")
        disks = self.storage.disks(one.name)
        return md.to_array(
            one,
            disks=disks,
            numa_nodes=self.storage.nodes(disks),
            mountpoints=self.storage.mountpoints(one.name),
            queue=self._read_queue_attributes(one.name, fact),
        )

    def mapped(self, device: DmDevice) -> Array:
        """A logical volume, or another owner's striped, mirrored or RAID mapping."""
        carrier = dm.carrier(device, self.storage.by_mapped)
        geometry = dm.shape(carrier)
        health = dm.health(carrier, geometry) if not device.suspended else dm.Health("suspended")
        own = self.storage.groups.get(device.group_id, frozenset())
        failed = {name for number in health.failed for name in self._find_physical_volumes(number, own)}
        return self._make_array(
            device,
            "lvm" if device.role == "lvm" else "dm",
            geometry,
            state=health.state,
            missing=health.missing,
            members=self.storage.stack.through(device.name, own),
            failed=tuple(sorted(failed, key=natural)),
            progress=health.progress_percent,
            serving=(health.expected, health.survives),
            detail=dict(health.detail) | ({"snapshots": "yes"} if carrier is not device else {}),
            structure=self.structures.find(device.title, carrier.targets or ()),
        )

    def _find_physical_volumes(self, number: str, own: frozenset[str]) -> tuple[str, ...]:
        """The physical volumes behind a hidden volume's device number."""
        name = self.names.by_number(number)
        if name is None:
            return ()
        return self.storage.stack.through(name, own) if name in own else (name,)

    def multipath(self, device: DmDevice) -> Array:
        lost, paths = self._count_paths(device)
        missing = None if lost is None else len(lost)
        state = None if missing is None else path_state(missing, paths)
        if state is None and not self.host.is_live:
            self.unknown.note(f"arrays.{device.title}.state", "neither multipath -ll nor dmsetup status was recorded")
        made = self._make_array(
            device,
            "dm-multipath",
            dm.shape(device) or ArrayShape("multipath"),
            state="suspended" if device.suspended else state,
            missing=missing,
            members=tuple(sorted(device.slaves, key=natural)),
            failed=tuple(sorted(set(lost or ()) - {""}, key=natural)),
            progress=None,
            serving=(paths, losses_left("multipath", paths, missing)),
            detail={"wwid": device.uuid.removeprefix("mpath-")} if device.uuid.startswith("mpath-") else {},
        )
        return msgspec.structs.replace(made, path_groups=self._path_groups(device))

    def _path_groups(self, device: DmDevice) -> tuple[PathGroup, ...]:
        words = next((one.words for one in device.targets or () if one.kind == "multipath"), ())
        groups = tuple(self._path_group(one) for one in multipath_groups(words))
        recorded_map = self.recorded_maps.get(device.name) if not groups else None
        return groups or tuple(
            PathGroup(one.policy.partition(" ")[0], None, tuple(path.device for path in one.paths))
            for one in (recorded_map.groups if recorded_map else ())
        )

    def _path_group(self, group: TableGroup) -> PathGroup:
        # Each of the kernel's selectors that has a count takes it first, as repeat_count (dm-round-robin.c and others).
        turns = {arguments[0] for _, arguments in group.paths if arguments}
        turn = turns.pop() if len(turns) == 1 and group.selector in _COUNTED else ""
        names = (self.names.by_number(number) for number, _ in group.paths)
        return PathGroup(
            group.selector,
            int(turn) if is_count(turn) and len(turn) < 10 else None,
            tuple(name for name in names if name),
        )

    def _count_paths(self, device: DmDevice) -> tuple[list[str] | None, int]:
        """The lost paths by name, empty for one whose device is gone, and how many paths there should be: by
        device-mapper, by a recorded ``multipath -ll``, or by the SCSI layer alone."""
        known = self.recorded_maps.get(device.name)
        if device.status:
            pairs = [pair for target in device.status for pair in path_states(target.words)]
            paths = [(self.names.by_number(number) or "", state == "A") for number, state in pairs]
        elif known is not None:
            paths = [(path.device.strip("-#"), path.is_usable) for path in known.paths]
        else:
            # A path that the kernel has taken offline is lost; whether the others work is not known here.
            offline = [name for name in device.slaves if self.storage.is_offline(name)]
            return offline or None, len(device.slaves)
        lost = [name for name, is_usable in paths if not is_usable or self.storage.is_offline(name)]
        lost += [name for name in device.slaves if name not in dict(paths) and self.storage.is_offline(name)]
        return lost, max(len(paths), len(device.slaves))

    @cached_property
    def recorded_maps(self) -> dict[str, MultipathMap]:
        """Maps by device as a capture's ``multipath -ll`` prints them; a live host asks device-mapper itself."""
        return {} if self.host.is_live else {one.device: one for one in read_maps(self.host, self.unknown)}

    def _make_array(
        self,
        device: DmDevice,
        manager: Literal["lvm", "dm-multipath", "dm"],
        geometry: ArrayShape | None,
        *,
        state: str | None,
        missing: int | None,
        members: tuple[str, ...],
        failed: tuple[str, ...],
        progress: float | None,
        detail: Mapping[str, str],
        serving: tuple[int | None, int | None],
        structure: ArrayPart | None = None,
    ) -> Array:
        fact = f"arrays.{device.title}"
        disks = self.storage.disks(device.name)
        return Array(
            name=device.title,
            manager=manager,
            device=device.name,
            level=geometry.level if geometry else None,
            chunk_bytes=geometry.chunk_bytes if geometry else None,
            data_disks=geometry.data_disks if geometry else None,
            state=state,
            missing=missing,
            members=members,
            spares=(),
            failed=failed,
            journal=(),
            numa_nodes=self.storage.nodes(disks),
            size_bytes=read_size(self.host, device.name, f"{fact}.size_bytes", self.unknown),
            progress_percent=progress,
            mountpoints=self.storage.mountpoints(device.name),
            detail={"dm_name": device.mapping, **dict(geometry.detail if geometry else ()), **detail},
            disks=disks,
            structure=structure,
            queue=self._read_queue_attributes(device.name, fact),
            expected=serving[0],
            survives=serving[1],
        )
