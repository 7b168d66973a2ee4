"""Volumes of Veritas Volume Manager as arrays: level, stripe unit, disks by the kernel's names, and health.

``vxprint -ht`` shows what a volume is made of, ``vxdisk`` and ``vxdmpadm`` which disks of the kernel its disk access
names are. All need root (the configuration daemon answers nobody else); without it a mounted volume is an array of
which nothing but its name and place is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.facts.block.block import SECTOR_BYTES, Array, ArrayPart, clean, natural, read_queue
from advisor.facts.block.disks import Disk
from advisor.facts.block.mounts import read_mounted
from advisor.facts.block.vxvm_text import (
    DiskAccess,
    Plex,
    Subdisk,
    VxGroup,
    VxVolume,
    parse_access,
    parse_paths,
    parse_vxprint,
)
from advisor.facts.unknown import VOLUME_MANAGER, Unknowns
from advisor.host import Host, Missing, lazy_regex

VXPRINT = ("vxprint", "-ht")
LIST = ("vxdisk", "-o", "alldgs", "list")
LIST_NATIVE = ("vxdisk", "-e", "list")
PATHS = ("vxdisk", "path")
DMP_PATHS = ("vxdmpadm", "getsubpaths")
MAX_GROUPS = 32
_MAX_DEPTH = 4

_NODE = lazy_regex(r"/dev/vx/r?dsk/(?:([^/]+)/)?([^/]+)")
QUEUE_ATTRIBUTES = ("scheduler", "nr_requests", "read_ahead_kb", "max_sectors_kb")


class _Place(msgspec.Struct, frozen=True):
    """The kernel's name of a mounted volume, and where it is mounted."""

    device: str
    mountpoints: tuple[str, ...]


class _Names:
    """Kernel names of disks by disk access name, and those that are another node's."""

    def __init__(
        self, listed: Iterable[DiskAccess], paths: Mapping[str, tuple[str, ...]], disks: Mapping[str, Disk]
    ) -> None:
        self._disks = disks
        self._paths = paths
        self._native: dict[str, str] = {}
        self._media: dict[tuple[str | None, str], str] = {}
        self._remote: set[str] = set()
        for one in listed:
            if one.native:
                self._native[one.name] = one.native
            if one.disk:
                self._media.setdefault((one.group, one.disk), one.name)
            if "remote" in one.status:
                self._remote.add(one.name)

    def is_remote(self, access: str) -> bool:
        return access in self._remote

    def access(self, group: VxGroup, subdisk: Subdisk) -> str:
        """The access name of a subdisk's disk; its media name where the disk is gone and nothing has another."""
        named = subdisk.device or group.media.get(subdisk.disk) or self._media.get((group.name, subdisk.disk))
        return named or subdisk.disk

    def kernel(self, access: str) -> tuple[str, ...]:
        """The kernel's names, one for each path; none where they are not known, or the disk is another node's."""
        if access in self._remote:
            return ()
        named = self._paths.get(access) or ((self._native[access],) if access in self._native else ())
        if named:
            return tuple(sorted(named, key=natural))
        return (access,) if access in self._disks else ()


def read_vxvm(host: Host, disks: Sequence[Disk], unknown: Unknowns) -> tuple[Array, ...]:
    """Volumes by name; none where the volume manager is neither set up nor anything mounted from it."""
    mounted = read_mounted(host)
    places: dict[str, _Place] = {}
    for device, mounts in ({} if isinstance(mounted, Missing) else mounted).items():
        name = next((name for one in mounts if (name := volume_of(one.source))), None)
        if name:
            places[name] = _Place(device, tuple(dict.fromkeys(one.target for one in mounts)))
    if not places and not any(host.exists(mark) for mark in VOLUME_MANAGER):
        return ()
    groups = _read_groups(host, places, unknown)
    by_name = {disk.name: disk for disk in disks}
    names = _Names(*_read_names(host), by_name) if groups else _Names((), {}, by_name)
    made = [array for group in groups for array in _Group(group, names, by_name, unknown).arrays(places)]
    known = {one.device for one in made}
    made += [_unread_array(name, place, unknown) for name, place in places.items() if place.device not in known]
    with_queues = (msgspec.structs.replace(one, queue=_read_queue_attributes(host, one, unknown)) for one in made)
    return tuple(sorted(with_queues, key=lambda one: natural(one.name)))


def _read_queue_attributes(host: Host, array: Array, unknown: Unknowns) -> dict[str, str]:
    return {} if "/" in array.device else read_queue(host, array.device, QUEUE_ATTRIBUTES, array.name, unknown)


def volume_of(source: str) -> str | None:
    """``group/volume`` of a device node below /dev/vx/dsk or /dev/vx/rdsk; None for any other."""
    found = _NODE.fullmatch(source)
    return f"{found[1]}/{found[2]}" if found and found[1] else found[2] if found else None


def _read_groups(host: Host, places: Iterable[str], unknown: Unknowns) -> tuple[VxGroup, ...]:
    """Every imported disk group: vxprint alone shows the default one where there is one."""
    done = host.run(VXPRINT)
    if isinstance(done, Missing):
        unknown.note("arrays.vxvm", f"{VXPRINT[0]}: {done.why}")
        text = None
    elif not done.ok and not done.stdout.strip():
        unknown.note("arrays.vxvm", f"{VXPRINT[0]} returned {done.rc}: {clean(done.stderr)[:200] or 'no message'}")
        text = None
    else:
        text = done.stdout
    listed = parse_access(_run_tool(host, LIST))
    printed = () if text is None else parse_vxprint(text)
    groups = {one.name: one for one in (_name_group(group, places, listed) for group in printed)}
    wanted = [one.group for one in listed if one.group and {"online", "shared", "remote"} & set(one.status)]
    wanted += [name.partition("/")[0] for name in places if "/" in name]
    for name in list(dict.fromkeys(name for name in wanted if name not in groups))[:MAX_GROUPS]:
        for one in parse_vxprint(_run_tool(host, ("vxprint", "-g", name, "-ht"))):
            groups[name] = msgspec.structs.replace(one, name=one.name or name)
    return tuple(one for one in groups.values() if one.volumes)


def _name_group(group: VxGroup, places: Iterable[str], listed: Iterable[DiskAccess]) -> VxGroup:
    """A group whose records came without its name: that of the disks in it, or of what is mounted from it."""
    if group.name:
        return group
    names = {one.group for one in listed if one.group and one.disk in group.media}
    names |= {place.partition("/")[0] for place in places if place.partition("/")[2] in group.volumes}
    return msgspec.structs.replace(group, name=names.pop() or "") if len(names) == 1 else group


def _read_names(host: Host) -> tuple[tuple[DiskAccess, ...], dict[str, tuple[str, ...]]]:
    listed = (*parse_access(_run_tool(host, LIST_NATIVE)), *parse_access(_run_tool(host, LIST)))
    return listed, parse_paths(_run_tool(host, PATHS)) or parse_paths(_run_tool(host, DMP_PATHS))


def _run_tool(host: Host, argv: Sequence[str]) -> str:
    done = host.run(argv)
    return "" if isinstance(done, Missing) else done.stdout


def _unread_array(name: str, place: _Place, unknown: Unknowns) -> Array:
    """A mounted volume of which nothing else could be read."""
    unknown.note(f"arrays.{name}.level", "vxprint -ht does not show it; it needs root and the configuration daemon")
    return _bare_array(name, place, level=None)


def _bare_array(name: str, place: _Place | None, *, level: str | None) -> Array:
    return Array(
        name=name,
        manager="vxvm",
        device=place.device if place else f"vx/dsk/{name}",
        level=level,
        chunk_bytes=None,
        data_disks=None,
        state=None,
        missing=None,
        members=(),
        spares=(),
        failed=(),
        journal=(),
        numa_nodes=(),
        size_bytes=None,
        progress_percent=None,
        mountpoints=place.mountpoints if place else (),
        detail={},
    )


class _Group:
    """Makes the arrays of one disk group."""

    def __init__(self, group: VxGroup, names: _Names, disks: Mapping[str, Disk], unknown: Unknowns) -> None:
        self.group = group
        self.names = names
        self.disks = disks
        self.unknown = unknown

    def arrays(self, places: Mapping[str, _Place]) -> Iterator[Array]:
        inner = self.group.helpers | self.group.parts
        for name, volume in self.group.volumes.items():
            if name not in inner and any(not plex.is_log for plex in volume.plexes):
                title = f"{self.group.name}/{name}" if self.group.name else name
                yield self._make_array(title, volume, places.get(title) or places.get(name))

    def _make_array(self, title: str, volume: VxVolume, place: _Place | None) -> Array:
        family = [volume, *self._subvolumes_of(volume)]
        broken = [plex for one in family for plex in _data_plexes(one) if not _is_working(plex, one)]
        working = [plex for one in family for plex in _data_plexes(one) if _is_working(plex, one)]
        used = tuple(dict.fromkeys(name for plex in working for name in self._kernel_names(plex)))
        lost = tuple(dict.fromkeys(name for plex in broken for name in self._kernel_names(plex) if name not in used))
        gone = [one for plex in working if plex.layout == "RAID" for one in plex.subdisks if not _is_there(one)]
        members = tuple(sorted({*used, *lost}, key=natural))
        disks = tuple(name for name in members if name in self.disks)
        nodes = {self.disks[name].numa_node for name in disks}
        structure = self._volume_part(volume, _MAX_DEPTH)
        if isinstance(structure, str) and structure not in members:
            structure = ArrayPart(volume.name, "linear", (structure,))
        striped = next((plex for plex in (*working, *broken) if plex.columns), None)
        # Disks whose kernel names cannot be known, and why.
        for access in self._access_names(family):
            if self.names.is_remote(access):
                why = "is exported by another node (FSS) and has no device of its own here"
            elif not self.names.kernel(access):
                why = "has no kernel name in vxdisk -e list, vxdisk path or vxdmpadm getsubpaths"
            else:
                continue
            self.unknown.note(f"arrays.{title}.members.{access}", f"disk {access} {why}")
        made = _bare_array(title, place, level=self._find_level(volume, _MAX_DEPTH))
        # Whether one level over all members says the same.
        if striped is None or striped.columns is None:
            data_disks = None
        else:
            data_disks = striped.columns - 1 if striped.layout == "RAID" else striped.columns
        return msgspec.structs.replace(
            made,
            chunk_bytes=striped.width * SECTOR_BYTES if striped and striped.width else None,
            data_disks=data_disks,
            state=_judge_state(volume, broken, gone, has_data=self._has_data(volume, _MAX_DEPTH)),
            missing=len(broken) + len(gone),
            members=members,
            failed=tuple(sorted({*lost, *self._gone_names(gone)}, key=natural)),
            numa_nodes=tuple(sorted(node for node in nodes if node is not None)),
            size_bytes=volume.length * SECTOR_BYTES,
            detail={key: text for key, text in self._make_detail(volume, family).items() if text},
            disks=disks,
            structure=structure
            if isinstance(structure, ArrayPart)
            and not (len(structure.members) == len(members) and set(structure.members) == set(members))
            else None,
        )

    def _subvolumes_of(self, volume: VxVolume, depth: int = _MAX_DEPTH) -> Iterator[VxVolume]:
        for one in (one for plex in volume.plexes for one in plex.subvolumes) if depth else ():
            below = self.group.volumes.get(one.volume)
            if below is not None and below is not volume:
                yield below
                yield from self._subvolumes_of(below, depth - 1)

    def _kernel_names(self, plex: Plex) -> tuple[str, ...]:
        found = (self.names.kernel(self.names.access(self.group, one)) for one in plex.subdisks if not one.is_log)
        return tuple(dict.fromkeys(name for names in found for name in names))

    def _gone_names(self, subdisks: Iterable[Subdisk]) -> Iterator[str]:
        """A disk that is gone may have left no name but that of its place in the group."""
        for subdisk in subdisks:
            leaf = self._subdisk_part(subdisk)
            yield from (leaf,) if isinstance(leaf, str) else leaf.devices()

    def _volume_part(self, volume: VxVolume, depth: int) -> str | ArrayPart | None:
        """What serves a volume: its working plexes, or all of them where none works."""
        plexes = [plex for plex in _data_plexes(volume) if _is_working(plex, volume)] or _data_plexes(volume)
        found = [one for plex in plexes if (one := self._plex_part(plex, depth)) is not None]
        if len(found) < 2:
            return found[0] if found else None
        return ArrayPart(volume.name, "raid1", tuple(found), volume.length * SECTOR_BYTES)

    def _plex_part(self, plex: Plex, depth: int) -> str | ArrayPart | None:
        columns: dict[int, list[tuple[int, str | ArrayPart]]] = {}
        for subdisk in plex.subdisks:
            if not subdisk.is_log:
                columns.setdefault(subdisk.column, []).append((subdisk.offset, self._subdisk_part(subdisk)))
        for one in plex.subvolumes if depth else ():
            below = self.group.volumes.get(one.volume)
            made = self._volume_part(below, depth - 1) if below else None
            columns.setdefault(one.column, []).append((one.offset, one.volume if made is None else made))
        whole = [_one_behind_the_other(f"{plex.name} column {at}", found) for at, found in sorted(columns.items())]
        level = {"STRIPE": "raid0", "RAID": "raid5"}.get(plex.layout)
        if not whole:
            return None
        if level is None:
            return _one_behind_the_other(plex.name, [one for _, found in sorted(columns.items()) for one in found])
        size = plex.length * SECTOR_BYTES if plex.length else None
        return ArrayPart(plex.name, level, tuple(whole), size, plex.width * SECTOR_BYTES if plex.width else None)

    def _subdisk_part(self, subdisk: Subdisk) -> str | ArrayPart:
        access = self.names.access(self.group, subdisk)
        names = self.names.kernel(access)
        if len(names) > 1:
            return ArrayPart(access, "multipath", names)
        # A name of another node's disk may be that of a disk here.
        return names[0] if names else f"{access} (remote)" if access in self.disks else access

    def _find_level(self, volume: VxVolume, depth: int) -> str | None:
        """raid0, raid1, raid10, raid5 or linear, by all data plexes, also those that are detached."""
        levels = [self._plex_level(plex, depth) for plex in _data_plexes(volume)]
        if not levels:
            return None
        if len(levels) == 1:
            return levels[0]
        return "raid10" if {"raid0", "raid10"} & set(levels) else "raid1"

    def _plex_level(self, plex: Plex, depth: int) -> str:
        below = [self.group.volumes[one.volume] for one in plex.subvolumes if one.volume in self.group.volumes]
        inner = {self._find_level(one, depth - 1) for one in below} if depth else set()
        if plex.layout == "RAID":
            return "raid5"
        if plex.layout == "STRIPE":
            return "raid10" if inner & {"raid1", "raid10"} else "raid0"
        return next((level for level in ("raid10", "raid1", "raid5", "raid0") if level in inner), "linear")

    def _has_data(self, volume: VxVolume, depth: int) -> bool:
        """Whether some plex holds all of the volume: of a layered one, each subvolume must."""
        for plex in _data_plexes(volume):
            below = [self.group.volumes.get(one.volume) for one in plex.subvolumes]
            whole = all(one is not None and depth and self._has_data(one, depth - 1) for one in below)
            if _is_working(plex, volume) and whole:
                return True
        return False

    def _access_names(self, family: Iterable[VxVolume]) -> tuple[str, ...]:
        subdisks = (
            one for volume in family for plex in _data_plexes(volume) for one in plex.subdisks if not one.is_log
        )
        return tuple(dict.fromkeys(self.names.access(self.group, one) for one in subdisks))

    def _make_detail(self, volume: VxVolume, family: Sequence[VxVolume]) -> dict[str, str]:
        accesses = self._access_names(family)
        remote = [name for name in accesses if self.names.is_remote(name)]
        unmapped = [name for name in accesses if name not in remote and not self.names.kernel(name)]
        logs = [plex.name for one in family for plex in one.plexes if plex.is_log]
        plexes = [f"{plex.name} {plex.kstate} {plex.state} {_describe_layout(plex)}" for plex in volume.plexes]
        return {
            "group": self.group.name,
            "volume_state": f"{volume.kstate} {volume.state}",
            "plexes": "; ".join(plexes),
            "dco": ", ".join(one.dco for one in family if one.dco),
            "logs": ", ".join(logs),
            "columns": ", ".join(_describe_columns(plex) for plex in _data_plexes(volume) if plex.columns),
            "remote": ", ".join(remote),
            "unmapped": ", ".join(unmapped),
        }


def _describe_layout(plex: Plex) -> str:
    return f"{plex.layout} {_describe_columns(plex)}" if plex.columns else plex.layout


def _describe_columns(plex: Plex) -> str:
    return f"{plex.columns}/{plex.width}"


def _data_plexes(volume: VxVolume) -> list[Plex]:
    return [plex for plex in volume.plexes if not plex.is_log and not plex.is_snapshot]


def _is_working(plex: Plex, volume: VxVolume) -> bool:
    """A plex that serves its volume; of a volume that is not started, one that would."""
    if plex.state not in {"ACTIVE", "CLEAN", "EMPTY"}:
        return False
    return plex.kstate == "ENABLED" or volume.kstate != "ENABLED"


def _is_there(subdisk: Subdisk) -> bool:
    return subdisk.mode in (None, "ENA") and subdisk.device is not None


def _one_behind_the_other(name: str, found: Sequence[tuple[int, str | ArrayPart]]) -> str | ArrayPart:
    """The pieces of a column or of a concatenated plex by their offsets; several on one disk are one."""
    items = list(dict.fromkeys(one for _, one in sorted(found, key=lambda piece: piece[0])))
    return items[0] if len(items) == 1 else ArrayPart(name, "linear", tuple(items))


def _judge_state(volume: VxVolume, broken: Sequence[Plex], gone: Sequence[Subdisk], *, has_data: bool) -> str:
    """One of `Array.state`: a plex that is being attached takes writes only until it is whole."""
    if len(gone) > 1 or not has_data:
        return "failed"
    if volume.kstate != "ENABLED":
        return "inactive"
    if broken or gone or volume.state == "DEGRADED":
        is_attaching = bool(broken) and all(plex.kstate == "ENABLED" and plex.mode == "WO" for plex in broken)
        return "recovering" if is_attaching else "degraded"
    return "resyncing" if volume.state in {"SYNC", "NEEDSYNC", "REPLAY"} else "active"
