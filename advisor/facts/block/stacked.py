"""Devices that DRBD, bcache, ZFS and btrfs make of others: their members, what these are to them, and their state.

Sources: DRBD user's guide, /proc/drbd (8.4) and ``drbdsetup status --json`` (9); Linux Documentation/admin-guide/bcache
(``cache_mode``, ``state`` of the device behind); zpool-status(8), zvol in zfs(8);
fs/btrfs/sysfs.c (``allocation/data``, ``devinfo``), mkfs.btrfs(8) for the copies of each profile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from advisor.facts.block.block import (
    Array,
    ArrayPart,
    BlockNames,
    Relation,
    clean,
    losses_left,
    natural,
    read_queue,
    read_size,
)
from advisor.facts.block.storage import Storage
from advisor.facts.text import printable
from advisor.facts.unknown import BTRFS, ZFS_POOLS, Unknowns
from advisor.host import Host, Missing, is_count, lazy_regex

# Pools of ZFS: their state by the module's statistics, how full they are and what they lie on by ``zpool``.

ARC = f"{ZFS_POOLS}/arcstats"
ZPOOL_STATUS = ("zpool", "status", "-P", "-L")
"""With the paths of devices, links followed."""
ZPOOL = ("zpool", "list", "-H", "-p", "-o", "name,health,capacity")
_MAX_POOLS = 256
_MAX_ROWS = 4096
_VDEV_INDENT = 2
_SECTIONS: Mapping[str, Relation] = {
    **{"logs": "journal", "cache": "cache", "special": "metadata", "dedup": "metadata"}
}
_VDEV = lazy_regex(r"(mirror|raidz[123]?|draid[123]?|replacing|spare)(?:-[0-9]+|:\S+)+")
_LARGEST = (1 << 64) - 1


class ZfsPool(msgspec.Struct, frozen=True):
    """A pool that is imported; ``state`` is ONLINE, DEGRADED, FAULTED, SUSPENDED …, ``used_percent`` of its space."""

    name: str
    state: str | None
    used_percent: int | None
    layout: ArrayPart | None = None
    """The vdevs that it is made of, down to kernel names; None where ``zpool status`` does not show them."""
    small_blocks: tuple[str, ...] = ()
    """Its devices whose own blocks are larger than those that the pool was made with."""
    missing: int | None = None
    """Devices of its vdevs that do not serve, of ``expected``; None where ``zpool status`` does not show them."""
    expected: int | None = None
    survives: int | None = None
    """How many more it can lose, whichever they are; negative where data is lost already."""


def parse_zpool_status(text: str, name_of: Callable[[str], str]) -> dict[str, ZfsPool]:
    """The layout of each pool, what is left of it, and its devices with too small blocks.

    ``name_of`` makes a kernel name of a device's. A device that is being replaced, or has too many errors, counts as
    missing.
    """
    found = {}
    for section in re.split(r"^ *pool: ", text, flags=re.MULTILINE)[1:]:
        table = section.partition("\nconfig:")[2].partition("\nerrors:")[0]
        rows = re.findall(r"^\t( *)(\S+)(.*)$", table, re.MULTILINE)[:_MAX_ROWS]
        name = printable(section.partition("\n")[0].strip()[:256])
        vdevs: list[tuple[str, str, Relation | None, list[str], list[bool]]] = []
        small: list[str] = []
        where = ""
        for indent, word, rest in rows:
            if not indent:
                where = word
                continue
            kind = _VDEV.fullmatch(word)
            device = None if kind else name_of(printable(word[:256]))
            small += [device] if device and "block size:" in rest else []
            if where == "spares":
                continue
            if len(indent) == _VDEV_INDENT:
                level = kind[1] if kind else "linear"
                vdevs.append((printable(word[:256]), level, _SECTIONS.get(where), [], []))
            if vdevs and device:
                vdevs[-1][3].append(device)
            # What is deeper belongs to a device that is being replaced, which has a state of its own.
            if vdevs and (device or len(indent) > _VDEV_INDENT) and len(indent) <= 2 * _VDEV_INDENT:
                vdevs[-1][4].append(rest.split()[:1] == ["ONLINE"])
        parts = tuple(
            devices[0] if level == "linear" and of is None else ArrayPart(vdev, level, tuple(devices), relation=of)
            for vdev, level, of, devices, _ in vdevs
            if devices
        )
        serving = [(level, states) for _, level, of, _, states in vdevs if of not in ("journal", "cache") and states]
        if name and parts:
            first = parts[0]
            alone = first if len(parts) == 1 and isinstance(first, ArrayPart) else ArrayPart(name, "striped", parts)
            layout = msgspec.structs.replace(alone, name=name)
            left = min((_losses_left(*one) for one in serving), default=None)
            lost = sum(states.count(False) for _, states in serving)
            whole = sum(len(states) for _, states in serving)
            found[name] = ZfsPool(name, None, None, layout, tuple(small), lost, whole, left)
    return found


def _losses_left(level: str, serving: list[bool]) -> int:
    most = int(level[5:] or 1) if level.startswith(("raidz", "draid")) else len(serving) - 1
    return most - serving.count(False)


def parse_kstat(text: str) -> dict[str, int]:
    """Named statistics of a kstat file: a name, a type and a value a line."""
    rows = (line.split() for line in text.split("\n"))
    return {row[0]: int(row[2]) for row in rows if len(row) == 3 and is_count(row[2]) and int(row[2]) <= _LARGEST}


def parse_zpool_list(text: str) -> tuple[ZfsPool, ...]:
    """Pools as `ZPOOL` lists them; a capacity that is no number of per cent is None."""
    found = []
    for line in text.split("\n")[:_MAX_POOLS]:
        words = line.split("\t")
        if len(words) == 3 and words[0]:
            share = int(words[2]) if is_count(words[2]) and len(words[2]) < 4 else None
            found.append(ZfsPool(printable(words[0][:256]), printable(words[1][:40]) or None, share))
    return tuple(found)


def pool_names(host: Host) -> tuple[str, ...]:
    """The pools that have statistics of their own; none where ZFS is not loaded."""
    return tuple(name for name in host.names(ZFS_POOLS)[: _MAX_POOLS * 4] if host.exists(f"{ZFS_POOLS}/{name}/state"))


def read_zfs_pools(host: Host, unknown: Unknowns) -> tuple[ZfsPool, ...]:
    """Imported pools; without ``zpool`` their state alone."""
    names = pool_names(host)
    if not names:
        return ()
    done = host.run(ZPOOL)
    if isinstance(done, Missing) or not done.ok:
        unknown.note("zfs.used_percent", done.why if isinstance(done, Missing) else f"zpool returned {done.rc}")
    listed = {} if isinstance(done, Missing) else {one.name: one for one in parse_zpool_list(done.stdout)}
    laid = {}
    paths = BlockNames(host)
    for argv in (ZPOOL_STATUS, ZPOOL_STATUS[:2]):
        answer = host.run(argv)
        if not isinstance(answer, Missing) and answer.ok:
            laid = parse_zpool_status(answer.stdout, lambda word: _kernel_name(word, paths))
            break
    found = []
    for name in names:
        state = host.read(f"{ZFS_POOLS}/{name}/state")
        known = listed.get(printable(name), ZfsPool(printable(name), None, None))
        if not isinstance(state, Missing) and state.strip():
            known = msgspec.structs.replace(known, state=printable(state.strip()[:40]))
        shown = laid.get(known.name, known)
        found.append(msgspec.structs.replace(shown, state=known.state, used_percent=known.used_percent))
    return tuple(found)


def _kernel_name(word: str, paths: BlockNames) -> str:
    """Of a path, or of a name in /dev or /dev/disk/by-id; the word itself where the host shows no such device."""
    places = (word, f"/dev/{word}", f"/dev/disk/by-id/{word}")
    return next((found for place in places if (found := paths.by_path(place))), word.removeprefix("/dev/"))


PROC_DRBD = "/proc/drbd"
DRBD_STATUS = ("drbdsetup", "status", "--json")
_MINOR = lazy_regex(
    r"^ *(\d{1,6}): cs:(\S{1,40})(?: ro:(\S{1,60}))?(?: ds:(\w{1,40})/(\w{1,40}))?(.*(?:\n {4,}.*)*)",
    re.MULTILINE | re.ASCII,
)
_LOSING = frozenset({"SyncSource", "SyncTarget", "PausedSyncS", "PausedSyncT", "WFBitMapS", "WFBitMapT"})
_PROFILES = {
    **{"single": ("linear", 1), "dup": ("linear", 1), "raid0": ("raid0", 1), "raid5": ("raid5", 1)},
    **{"raid6": ("raid6", 1), "raid10": ("raid10", 2)},
    **{f"raid1{more}": ("raid1", copies) for copies, more in enumerate(("", "c3", "c4"), 2)},
}
"""Level and copies of a profile of btrfs; mirrors keep their copies on so many of the devices, in turn."""
_QUEUE = ("scheduler", "nr_requests", "read_ahead_kb", "max_sectors_kb", "optimal_io_size", "logical_block_size")


class Replica(msgspec.Struct, frozen=True):
    """A DRBD device: the states of its own copy and of each peer's, and of the connection to that peer."""

    minor: int
    own: str
    peers: tuple[tuple[str, str], ...]
    out_of_sync_kib: int | None = None

    @property
    def missing(self) -> int:
        """Copies that do not hold the newest data, the own one among them."""
        return (self.own != "UpToDate") + sum(
            disk != "UpToDate" or connection not in ("Connected", "Established") for connection, disk in self.peers
        )

    @property
    def state(self) -> str:
        if any(connection in _LOSING for connection, _ in self.peers):
            return "recovering"
        if not self.missing:
            return "active"
        return "degraded" if self.missing <= len(self.peers) else "failed"


def parse_proc_drbd(text: str) -> tuple[Replica, ...]:
    """The devices of DRBD 8; one that is not configured has no state of its disks."""
    return tuple(
        Replica(int(found[1]), found[4], ((found[2], found[5]),), _count(r"\boos:(\d{1,18})", found[6]))
        for found in _MINOR.finditer(text)
        if found[4]
    )


def _count(pattern: str, text: str) -> int | None:
    found = re.search(pattern, text, re.ASCII)
    return int(found[1]) if found else None


class _PeerDevice(msgspec.Struct, rename="kebab"):
    volume: int
    peer_disk_state: str = "DUnknown"
    replication_state: str = "Off"
    out_of_sync: int = 0


class _Connection(msgspec.Struct, rename="kebab"):
    connection_state: str = "Unknown"
    peer_devices: tuple[_PeerDevice, ...] = msgspec.field(default=(), name="peer_devices")


class _Volume(msgspec.Struct, rename="kebab"):
    volume: int
    minor: int
    disk_state: str = "DUnknown"


class _Resource(msgspec.Struct):
    devices: tuple[_Volume, ...] = ()
    connections: tuple[_Connection, ...] = ()


def parse_drbd_status(text: str) -> tuple[Replica, ...]:
    """The devices of DRBD 9 by its JSON; none where that cannot be read."""
    try:
        resources = msgspec.json.decode(text, type=tuple[_Resource, ...])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return ()
    return tuple(_replica_of(resource, one) for resource in resources for one in resource.devices)


def _replica_of(resource: _Resource, own: _Volume) -> Replica:
    pairs = [(link, peer) for link in resource.connections for peer in link.peer_devices if peer.volume == own.volume]
    states = tuple(
        (peer.replication_state if peer.replication_state in _LOSING else link.connection_state, peer.peer_disk_state)
        for link, peer in pairs
    )
    return Replica(own.minor, own.disk_state, states, max((peer.out_of_sync for _, peer in pairs), default=None))


def read_replicas(host: Host) -> dict[str, Replica]:
    """DRBD's devices by kernel name; none where its state cannot be had."""
    text = host.read(PROC_DRBD)
    found = () if isinstance(text, Missing) else parse_proc_drbd(text)
    if not found:
        done = host.run(DRBD_STATUS)
        found = () if isinstance(done, Missing) or not done.ok else parse_drbd_status(done.stdout)
    return {f"drbd{one.minor}": one for one in found}


def read_stacked(
    host: Host, names: Sequence[str], storage: Storage, pools: Sequence[ZfsPool], unknown: Unknowns
) -> Iterator[Array]:
    """An array for each of these devices that is in use, and for each pool of ZFS whose layout is known."""
    replicas = read_replicas(host) if any(name.startswith("drbd") for name in names) else {}
    for name in names:
        base = _base(host, name, storage, unknown)
        if base.size_bytes == 0:
            continue
        if name.startswith("drbd"):
            yield _drbd(base, replicas.get(name), unknown)
        elif name.startswith("bcache"):
            yield _bcache(host, base)
        else:
            yield _zvol(host, base, pools, unknown)
    yield from _btrfs(host, storage)
    for pool in pools:
        if pool.layout is not None:
            members = tuple(dict.fromkeys(pool.layout.devices()))
            made = _make(pool.name, "zfs", pool.layout.level, members, storage, structure=pool.layout)
            yield msgspec.structs.replace(made, state="active" if pool.state == "ONLINE" else None)


def _make(
    name: str, manager: str, level: str, members: tuple[str, ...], storage: Storage, structure: ArrayPart | None = None
) -> Array:
    disks = tuple(dict.fromkeys(disk for member in members for disk in storage.disks(member) or (member,)))
    empty = dict.fromkeys(("chunk_bytes", "data_disks", "state", "missing", "size_bytes", "progress_percent"))
    lists = dict.fromkeys(("spares", "failed", "journal"), ())
    return msgspec.convert(
        {
            **{"name": name, "manager": manager, "device": name, "level": level, "members": members, "disks": disks},
            **{"numa_nodes": storage.nodes(disks), "mountpoints": storage.mountpoints(name), "detail": {}},
            **{"structure": structure, **empty, **lists},
        },
        Array,
    )


def _base(host: Host, name: str, storage: Storage, unknown: Unknowns) -> Array:
    level = {"b": "bcache", "d": "replica", "z": "zvol"}[name[0]]
    manager = {"b": "bcache", "d": "drbd", "z": "zfs"}[name[0]]
    members = tuple(sorted(host.names(f"/sys/block/{name}/slaves"), key=natural))
    return msgspec.structs.replace(
        _make(name, manager, level, members, storage),
        size_bytes=read_size(host, name, f"arrays.{name}.size_bytes", unknown),
        queue=read_queue(host, name, _QUEUE, f"arrays.{name}", unknown),
    )


def _drbd(array: Array, replica: Replica | None, unknown: Unknowns) -> Array:
    if replica is None:
        unknown.note(f"arrays.{array.name}.state", "neither /proc/drbd nor drbdsetup status shows it")
        return array
    detail = {"connection": ", ".join(printable(connection) for connection, _ in replica.peers)}
    detail |= {"out_of_sync_kib": str(replica.out_of_sync_kib)} if replica.out_of_sync_kib else {}
    return msgspec.structs.replace(
        array,
        state=replica.state,
        missing=replica.missing,
        expected=1 + len(replica.peers),
        survives=len(replica.peers) - replica.missing,
        detail={"disk_states": "/".join((replica.own, *(disk for _, disk in replica.peers))), **detail},
    )


def _bcache(host: Host, array: Array) -> Array:
    """The device behind has a directory of its own; the others that the kernel lists are its cache."""
    words = {name: host.read(f"/sys/class/block/{name}/bcache/state") for name in array.members}
    behind = tuple(name for name, state in words.items() if not isinstance(state, Missing))
    caches = tuple(name for name in array.members if name not in behind)
    if len(behind) != 1:
        return array
    state = words[behind[0]]
    mode = re.search(r"\[([a-z]+)\]", host.read_or_empty(f"/sys/class/block/{behind[0]}/bcache/cache_mode"))
    said = "" if isinstance(state, Missing) else clean(state)
    beside = (ArrayPart("cache", "linear", (name,), relation="cache") for name in caches)
    return msgspec.structs.replace(
        array,
        state="failed" if said == "inconsistent" else "active",
        structure=ArrayPart(array.name, "bcache", (behind[0], *beside)) if caches else None,
        detail={"cache_state": said, **({"cache_mode": mode[1]} if mode else {})},
    )


def _volumes_of(host: Host, pool: str, names: BlockNames) -> set[str | None]:
    place = f"/dev/zvol/{pool}"
    return {names.by_path(f"{place}/{one}") for one in host.names(place)}


def _zvol(host: Host, array: Array, pools: Sequence[ZfsPool], unknown: Unknowns) -> Array:
    """A volume of a pool: the only one, or the one below whose directory udev names the volume."""
    names = BlockNames(host)
    own = [pool for pool in pools if len(pools) == 1 or array.name in _volumes_of(host, pool.name, names)]
    if len(own) != 1:
        unknown.note(f"arrays.{array.name}.members", "which pool of ZFS the volume is in is not shown")
        return array
    disks = tuple(dict.fromkeys(own[0].layout.devices())) if own[0].layout else ()
    state = "active" if own[0].state == "ONLINE" else None
    return msgspec.structs.replace(array, members=(own[0].name,), disks=disks, state=state)


def _btrfs(host: Host, storage: Storage) -> Iterator[Array]:
    """File systems on several devices; one whose data has several profiles (a balance half-way) has no level."""
    for uuid in host.names(BTRFS):
        place = f"{BTRFS}/{uuid}"
        members = tuple(sorted(host.names(f"{place}/devices"), key=natural))
        lost = [host.read_int(f"{place}/devinfo/{one}/missing") for one in host.names(f"{place}/devinfo")]
        missing = sum(not isinstance(one, Missing) and one > 0 for one in lost)
        if len(members) + missing < 2:
            continue
        profiles = _PROFILES.keys() & set(host.names(f"{place}/allocation/data"))
        profile = min(profiles) if len(profiles) == 1 else None
        level, copies = _PROFILES[profile] if profile else (None, 1)
        total = len(members) + missing
        level = "raid10" if level == "raid1" and total > copies else level
        survives = losses_left("raid1", copies, missing) if copies > 1 else losses_left(level, total, missing)
        made = _make(printable(uuid), "btrfs", level or "btrfs", members, storage)
        yield msgspec.structs.replace(
            made,
            mountpoints=tuple(dict.fromkeys(at for one in members for at in storage.mountpoints(one))),
            state="active" if not missing else "failed" if (survives or 0) < 0 else "degraded",
            missing=missing,
            expected=total,
            survives=survives,
            detail={"data": " ".join(sorted(profiles)), **({"layout": f"{copies} near-copies"} if copies > 1 else {})},
        )
