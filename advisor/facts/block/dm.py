"""Device-mapper: LVM volumes, multipath maps, and the layers in between.

``/sys/block/dm-*`` names them and what they lie on, for every user. What they are made like stands in one ``dmsetup
table``, how they are in one ``dmsetup status``; both need root.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

import msgspec

from advisor.facts.block import dm_text
from advisor.facts.block.block import (
    BESIDE,
    LEVELS,
    SECTOR_BYTES,
    ArrayPart,
    Relation,
    clean,
    family_of,
    losses_left,
    natural,
)
from advisor.facts.block.dm_text import ArrayShape, RaidStatus, TableLine, parse_dm_lines, shape_of, stripe_devices
from advisor.facts.block.lvm_text import LogicalVolume, is_hidden
from advisor.facts.block.md import DOING
from advisor.facts.text import printable
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, is_count

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


# Devices of dm-crypt, and whether their requests go through queues of its own.


class EncryptedDevice(msgspec.Struct, frozen=True):
    """``device`` is the kernel's name (dm-2), ``name`` the mapping's. ``options`` are those of its table; None where
    that could not be read (it needs root)."""

    name: str
    device: str
    below: tuple[str, ...]
    options: tuple[str, ...] | None


def list_crypt_options(words: tuple[str, ...]) -> tuple[str, ...]:
    """The optional parameters of a crypt target: behind cipher, key, IV offset, device and offset their count."""
    return () if len(words) < 6 or not is_count(words[5]) else words[6 : 6 + min(int(words[5][:4]), 32)]


def read_encrypted(host: Host, unknown: Unknowns) -> tuple[EncryptedDevice, ...]:
    """Every mapping of dm-crypt; the key of a table is neither asked for nor kept."""
    names = [name for name in sorted(host.names("/sys/block"), key=natural) if name.startswith("dm-")]
    uuids = {name: host.read(f"/sys/block/{name}/dm/uuid") for name in names}
    own = [name for name, uuid in uuids.items() if not isinstance(uuid, Missing) and uuid.startswith("CRYPT-")]
    if not own:
        return ()
    tables = None
    if host.is_root or not host.is_live:
        done = host.run(TABLE)
        tables = None if isinstance(done, Missing) or not done.ok else parse_dm_lines(done.stdout)
    if tables is None:
        unknown.note("encrypted.options", "dmsetup table needs root: how dm-crypt queues requests is unknown")
    found = []
    for name in own:
        mapping = (host.read_text(f"/sys/block/{name}/dm/name") or name).strip()
        words = next((one.words for one in (tables or {}).get(mapping, ()) if one.kind == "crypt"), None)
        found.append(
            EncryptedDevice(
                printable(mapping),
                name,
                host.names(f"/sys/block/{name}/slaves"),
                None if words is None else tuple(map(printable, list_crypt_options(words))),
            )
        )
    return tuple(found)


# How a mapped device is made: the targets of its table, the devices that each lies on and what these are to it.

Member = str | ArrayPart
Piece = tuple[str, tuple[Member, ...], int, int | None]
"""Level, members, bytes, chunk."""
_MAX_DEPTH = 8
_MAX_DEVICES = 4096
TARGETS: Mapping[str, tuple[tuple[int, Relation], ...]] = {
    "crypt": ((3, "data"),),
    "thin": ((0, "data"),),
    "thin-pool": ((0, "metadata"), (1, "data")),
    "cache": ((0, "metadata"), (1, "cache"), (2, "data")),
    "writecache": ((1, "data"), (2, "cache")),
    "snapshot": ((0, "data"), (1, "data")),
    "snapshot-merge": ((0, "data"), (1, "data")),
    "snapshot-origin": ((0, "data"),),
    "integrity": ((0, "data"),),
    "vdo": ((1, "data"),),
}
"""Where in a target's words its devices stand, and what each is to it."""


def _members_of(target: TableLine) -> list[tuple[str, Relation | None]]:
    """Device numbers below a target; the relation where its level does not say it."""
    words = target.words
    if target.kind == "raid":
        # `type #params … #devices meta data meta data …`, with - for a device that is not there (dm-raid.rst).
        count = int(words[1]) if len(words) > 1 and is_count(words[1]) and len(words[1]) < 4 else len(words)
        given, devices = words[2 : 2 + count], words[3 + count :]
        slow = {given[at + 1] for at, word in enumerate(given[:-1]) if word == "write_mostly"}
        rows: list[tuple[str, Relation | None]] = [
            (given[at + 1], "journal") for at, word in enumerate(given[:-1]) if word == "journal_dev"
        ]
        for at, (meta, data) in enumerate(zip(devices[::2], devices[1::2], strict=False)):
            rows += [(meta, "metadata"), (data, "write-mostly" if str(at) in slow else None)]
        return [row for row in rows if row[0] != "-"]
    if target.kind in ("linear", "striped"):
        return [(number, None) for number in stripe_devices(target)]
    return [(words[at], relation) for at, relation in TARGETS.get(target.kind or "", ()) if at < len(words)]


class Structures:
    """Structures of the mapped devices of one host."""

    def __init__(self, by_name: Mapping[str, DmDevice], name_of: Callable[[str], str | None]) -> None:
        self._by_name = by_name
        self._name_of = name_of
        self._hidden: dict[str, ArrayPart | None] = {}

    def find(self, name: str, targets: Iterable[TableLine]) -> ArrayPart | None:
        """The structure of a device with these targets; None where one level over its members describes it, and where
        a target or a device number is not known. A thin volume lies on its pool, not on what that lies on."""
        part = self._part(name, targets, 0)
        if part is None or part.level == "thin" or len(set(part.members)) < 2:
            return part if part is not None and part.level == "thin" else None
        return part if any(isinstance(member, ArrayPart) for member in part.members) or part.level == "linear" else None

    def _part(self, name: str, targets: Iterable[TableLine], depth: int) -> ArrayPart | None:
        part = self._make(name, targets, depth)
        # A made-up capture may repeat itself at each depth.
        return part if part and sum(1 for _ in islice(part.devices(), _MAX_DEVICES + 1)) <= _MAX_DEVICES else None

    def _make(self, name: str, targets: Iterable[TableLine], depth: int) -> ArrayPart | None:
        pieces: list[Piece] = []
        for target in targets:
            if target.kind in {"error", "zero"}:
                continue
            members = self._resolve(target, depth)
            shape = shape_of((target,))
            if not members or shape is None:
                return None
            pieces.append((shape.level, members, target.length * SECTOR_BYTES, shape.chunk_bytes))
        if len(pieces) == 1:
            level, members, size, chunk = pieces[0]
            return ArrayPart(name, level, members, size, chunk)
        return _make_part(name, pieces)

    def _resolve(self, target: TableLine, depth: int) -> tuple[Member, ...]:
        """The members of a target; none where one of them is not known."""
        found: list[Member] = []
        metadata: list[Member] = []
        for number, relation in _members_of(target):
            name = self._name_of(number)
            if name is None:
                return ()
            member: Member = name
            device = self._by_name.get(name)
            if device is not None and device.role == "hidden" and depth < _MAX_DEPTH:
                if name not in self._hidden:
                    self._hidden[name] = None
                    shown = device.mapping.rpartition("_")[2]
                    self._hidden[name] = self._part(shown, device.targets or (), depth + 1)
                part = self._hidden[name]
                if part is None:
                    return ()
                is_whole = len(part.members) == 1 and LEVELS[family_of(part.level) or "thin"].relation in _WHOLE
                member = part.members[0] if is_whole else part
            if relation in BESIDE and relation != "metadata":
                member = _as_part(member, relation, relation)
            (metadata if relation == "metadata" else found).append(member)
        devices = {device for member in found for device in _devices(member)}
        apart = [one for one in metadata if not devices.issuperset(_devices(one))]
        return (*dict.fromkeys(found), *(_as_part(one, "metadata", "metadata") for one in dict.fromkeys(apart)))


_WHOLE = frozenset({"data", "concatenation"})


def _as_part(member: Member, name: str, relation: Relation) -> ArrayPart:
    if isinstance(member, ArrayPart):
        return ArrayPart(name, member.level, member.members, member.size_bytes, member.chunk_bytes, relation)
    return ArrayPart(name, "linear", (member,), relation=relation)


def _devices(member: Member) -> tuple[str, ...]:
    return (member,) if isinstance(member, str) else tuple(member.devices())


def structure_of_rows(name: str, rows: Iterable[LogicalVolume]) -> ArrayPart | None:
    """The same from the rows of ``lvs``, one for each segment; sizes of segments are not among its columns."""
    pieces: list[Piece] = []
    for row in rows:
        if row.level not in ("linear", "striped") or not row.devices:
            return None
        pieces.append((row.level, row.devices, 0, row.stripe_bytes))
    return _make_part(name, pieces)


def _make_part(name: str, pieces: Iterable[Piece]) -> ArrayPart | None:
    """Ranges on the same devices are one segment: of linear ones that follow each other only the devices count."""
    found: dict[tuple[str, frozenset[Member], int | None], tuple[tuple[Member, ...], int]] = {}
    for level, devices, size, chunk in pieces:
        key = (level, frozenset(devices), chunk)
        first, before = found.get(key, (devices, 0))
        found[key] = (first, before + size)
    if len({devices for _level, devices, _chunk in found}) < 2:
        return None
    members = tuple(
        devices[0] if len(devices) == 1 else ArrayPart(f"segment {at}", level, devices, size or None, chunk)
        for at, ((level, _names, chunk), (devices, size)) in enumerate(found.items(), 1)
    )
    return ArrayPart(name, "linear", members)
