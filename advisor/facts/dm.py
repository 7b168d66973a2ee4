"""Device-mapper: LVM volumes, multipath maps, and the layers in between.

``/sys/block/dm-*`` names them and what they lie on, for every user. What they are made like stands in one ``dmsetup
table``, how they are in one ``dmsetup status``; both need root.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from advisor.facts import dm_text
from advisor.facts.array import losses_left
from advisor.facts.block import clean, natural
from advisor.facts.dm_text import ArrayShape, RaidStatus, TableLine
from advisor.facts.lvm_text import is_hidden
from advisor.facts.md import DOING
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing

TABLE = ("dmsetup", "table")
# Without --noflush, asking a thin pool for its status makes it commit its metadata.
STATUS = ("dmsetup", "status", "--noflush")

_ARRAYS = {"striped", "raid", "mirror", "cache", "writecache", "thin-pool", "snapshot", "vdo"}
_LVM_ID = 68  # LVM-, and two ids of 32 characters: volume group, volume
_WITH_STATUS = frozenset({"raid", "mirror", "multipath", "thin-pool", "snapshot", "cache", "writecache", "vdo"})


class DmDevice(msgspec.Struct, frozen=True):
    """One dm device. ``role`` is lvm, multipath, dm (an array of another owner), layer or hidden.

    ``targets`` is None where the table could not be read, ``status`` is empty where it was not asked for.
    """

    name: str
    mapping: str
    uuid: str
    suspended: bool
    role: str
    slaves: tuple[str, ...]
    targets: tuple[TableLine, ...] | None
    status: tuple[TableLine, ...]

    @property
    def group_id(self) -> str:
        """The id of the volume group, empty for what is not LVM's."""
        return self.uuid[4:36] if self.uuid.startswith("LVM-") else ""

    @property
    def title(self) -> str:
        """What its own tools call it."""
        volume = dm_text.parse_volume_name(self.mapping) if self.role == "lvm" else None
        return f"{volume.group}/{volume.volume}" if volume else self.mapping


class Health(msgspec.Struct, frozen=True):
    """State of an array, and the device numbers of those of its members that failed."""

    state: str | None
    missing: int | None = None
    failed: tuple[str, ...] = ()
    progress_percent: float | None = None
    detail: tuple[tuple[str, str], ...] = ()
    expected: int | None = None
    survives: int | None = None
    """As `Array` has both."""


def read_dm(host: Host, names: Sequence[str], unknown: Unknowns) -> tuple[DmDevice, ...]:
    """Every dm device among the names of /sys/block."""
    if not names:
        return ()
    tables = _run_dmsetup(host, TABLE, "table", unknown)
    kinds = {target.kind for targets in (tables or {}).values() for target in targets}
    status = _run_dmsetup(host, STATUS, "status", unknown) if kinds & _WITH_STATUS else {}
    devices = [_read_device(host, name, tables, status or {}, unknown) for name in sorted(names, key=natural)]
    pools = {device.mapping for device in devices if device.uuid.endswith("-tpool")}
    return tuple(_without_placeholder(device, pools) for device in devices)


def _run_dmsetup(
    host: Host, argv: Sequence[str], what: str, unknown: Unknowns
) -> dict[str, tuple[TableLine, ...]] | None:
    """Targets by mapping; None, noted once for all devices, where they cannot be had."""
    fact = f"arrays.device-mapper.{what}"
    if host.is_live and not host.is_root:
        unknown.note(fact, f"{' '.join(argv)} needs root: levels, chunks and states of dm devices are unknown")
        return None
    done = host.run(argv)
    if isinstance(done, Missing):
        unknown.note(fact, done.why)
        return None
    if not done.ok:
        unknown.note(fact, f"{argv[0]} returned {done.rc}: {clean(done.stderr)[:200] or 'no message'}")
        return None
    return dm_text.parse_dm_lines(done.stdout)


def _read_device(
    host: Host,
    name: str,
    tables: Mapping[str, tuple[TableLine, ...]] | None,
    status: Mapping[str, tuple[TableLine, ...]],
    unknown: Unknowns,
) -> DmDevice:
    fact, directory = f"arrays.{name}", f"/sys/block/{name}"
    mapping, uuid, suspended = (
        clean(unknown.value(f"{fact}.dm.{one}", host.read(f"{directory}/dm/{one}")) or "")
        for one in ("name", "uuid", "suspended")
    )
    targets = None if tables is None else tables.get(mapping)
    return DmDevice(
        name=name,
        mapping=mapping or name,
        uuid=uuid,
        suspended=suspended == "1",
        role=role_of(mapping, uuid, targets),
        slaves=host.names(f"{directory}/slaves"),
        targets=targets,
        status=status.get(mapping, ()),
    )


def role_of(mapping: str, uuid: str, targets: Sequence[TableLine] | None) -> str:
    """Whose device it is, by the prefix that each owner gives its ids; by its table where it has none."""
    if uuid.startswith("LVM-"):
        suffix = uuid[_LVM_ID:].lstrip("-")
        if suffix in ("tpool", "pool", "vpool"):
            return "lvm"
        volume = dm_text.parse_volume_name(mapping)
        return "hidden" if suffix or (volume and is_hidden(volume.volume)) else "lvm"
    if uuid.startswith("mpath-"):
        return "multipath"
    kinds = {target.kind for target in targets or ()}
    if kinds == {"multipath"}:
        return "multipath"
    return "dm" if kinds & _ARRAYS or uuid.startswith("DMRAID-") else "layer"


def _without_placeholder(device: DmDevice, pools: set[str]) -> DmDevice:
    # An open thin pool is two devices: vg-pool-tpool, and vg-pool in front of it that maps it as it is.
    hidden = device.uuid.endswith("-pool") and f"{device.mapping}-tpool" in pools
    return msgspec.structs.replace(device, role="hidden") if hidden else device


def carrier(device: DmDevice, by_name: Mapping[str, DmDevice]) -> DmDevice:
    """The device that does the work: a volume with snapshots is a front, the volume itself is hidden below it."""
    if not device.targets or device.targets[0].kind != "snapshot-origin":
        return device
    below = (by_name[name] for name in device.slaves if name in by_name)
    return next((one for one in below if one.role == "hidden"), device)


def shape(device: DmDevice) -> ArrayShape | None:
    """Geometry of a device; None where its table could not be read."""
    return dm_text.shape_of(device.targets) if device.targets else None


def health(device: DmDevice, geometry: ArrayShape | None) -> Health:
    """How an LVM volume or another dm array is, by its table and status."""
    if device.suspended:
        return Health("suspended")
    kinds = {target.kind for target in device.targets or ()}
    words = device.status[0].words if device.status else ()
    if "error" in kinds or {"Fail", "Error", "Invalid", "Overflow"} & set(words[:1]):
        return Health("failed")
    if geometry is None:
        return Health(None)
    main = device.targets[0].kind if device.targets else None
    if main in ("raid", "mirror"):
        read = dm_text.raid_status if main == "raid" else dm_text.mirror_status
        return raid_health(read(words), geometry, _data_devices(device))
    if main == "thin-pool" and len(words) > 2:
        detail: tuple[tuple[str, str], ...] = (("metadata_blocks", words[1]), ("data_blocks", words[2]))
    elif main == "vdo" and len(words) > 6:
        detail = (("data_blocks", f"{words[5]}/{words[6]}"),)
    elif main == "snapshot" and words:
        detail = (("used_sectors", words[0]),)
    else:
        detail = ()
    return Health("active", detail=detail)


def raid_health(status: RaidStatus | None, geometry: ArrayShape, devices: Sequence[str]) -> Health:
    """State by the health letters: dead ones are missing, and so are those that a recovery is still filling."""
    if status is None:
        return Health(None)
    dead = [index for index, letter in enumerate(status.health) if letter in "D-"]
    filling = [index for index, letter in enumerate(status.health) if letter == "a" and status.action == "recover"]
    missing, disks = len(dead) + len(filling), len(status.health)
    failed = tuple(devices[index] for index in dead if index < len(devices) and devices[index] != "-")
    progress = status.progress_percent if status.action else None
    detail = {"health": status.health, "sync_action": status.action or "idle"}
    if status.mismatches is not None:
        detail["mismatch_cnt"] = status.mismatches
    left = losses_left(
        geometry.level,
        disks,
        missing,
        serving=set(range(disks)).difference(dead, filling),
        near_copies=geometry.near_copies,
        far_copies=geometry.far_copies,
    )
    if missing and (left or 0) < 0:
        state = "failed"
    elif missing:
        state = "recovering" if status.action == "recover" else "degraded"
    else:
        state = DOING.get(status.action or "", "active")
    return Health(state, missing, failed, progress, tuple(detail.items()), disks, left)


def _data_devices(device: DmDevice) -> tuple[str, ...]:
    """Numbers of the data devices of a dm-raid, in the order of the health letters; - for one that is not there."""
    words = device.targets[0].words if device.targets else ()
    count = int(words[1]) if len(words) > 1 and re.fullmatch(r"\d{1,4}", words[1], re.ASCII) else None
    return () if count is None else words[4 + count :: 2]
