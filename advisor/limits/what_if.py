"""``--what-if``: the same host with other volumes, another instance, RAID level, MTU, links or stripes.

A change is ``[TARGET:]KEY=VALUE``. `parse_changes` reads what is written, `changed` makes of a scene the scene with all
changes, `compared` sets the ceilings of both against each other. Nothing is changed on any host.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Literal, cast

import msgspec

from advisor.errors import InvalidInputError, near_names
from advisor.facts.block.block import PARITY_DISKS, Array, family_of
from advisor.facts.block.disks import Disk
from advisor.facts.block.filesystems import FileSystem
from advisor.facts.host_facts import Facts
from advisor.facts.network.links import Link
from advisor.facts.system.identity import Cloud
from advisor.host.patterns import lazy_regex
from advisor.limits.cloud_disks import EBS_MODEL, IOPS_PER_GIB, SIZES_GIB
from advisor.limits.declared import Declared, DeclaredVolume, Kind, check_volume, read_declared
from advisor.limits.figures import QUANTITIES
from advisor.limits.host_ceiling import DataPath, data_paths, with_host
from advisor.limits.links import PciAndNetwork, physical_below
from advisor.limits.machines import Given, Provider, all_machines, find_machine
from advisor.limits.paths import limits_of
from advisor.limits.records import Limits, PathChange, PathFigures, StoragePath, WhatIf
from advisor.limits.storage_use import Front, RemoteFilesystem, parse_throughput, physical
from advisor.rules.queries import by_name, links_above

Key = Literal["volumes", "instance", "raid", "mtu", "links", "speed", "stripes"]
KEYS: tuple[Key, ...] = ("volumes", "instance", "raid", "stripes", "links", "speed", "mtu")
"""In the order in which they are applied."""
FORMS: Mapping[Key, str] = {
    "volumes": "volumes=16xgp3:1000MB/s:16000iops, or volumes=FILE",
    "instance": "instance=r5b.24xlarge",
    "raid": "raid=raid10",
    "stripes": "stripes=8",
    "links": "links=+1, links=4 or links=+1:100Gbit/s",
    "speed": "speed=100Gbit/s",
    "mtu": "mtu=9000",
}
LEVELS = {"raid0": 1, "raid1": 2, "raid4": 3, "raid5": 3, "raid6": 4, "raid10": 2}
"""RAID levels and the fewest members of each (md(4))."""
MAX_VOLUMES = 1024
MAX_LINKS = 64
_KINDS = (*SIZES_GIB, "drive")
_SPLIT = lazy_regex(rf"(?<![,\s])[,\s]+(?=(?:[^,\s=]*:)?(?:{'|'.join(KEYS)})=)")


class WhatIfChange(msgspec.Struct, frozen=True):
    """One change as it was written. ``target`` is a mount point, device, array or link; None for all that fit."""

    key: Key
    value: str
    target: str | None = None

    @property
    def text(self) -> str:
        return f"{f'{self.target}:' if self.target else ''}{self.key}={self.value}"

    def make_error(self, message: str, hint: str | None = None) -> InvalidInputError:
        """What says why the change is refused; ``hint`` is what is possible, by default every form."""
        return _wrong_change(self.text, message, hint)


def _wrong_change(text: str, message: str, hint: str | None = None) -> InvalidInputError:
    hint = hint or "; ".join(FORMS.values())
    return InvalidInputError(f"--what-if {text}: {message}", hint=hint)


class Scene(msgspec.Struct, frozen=True):
    """All that ceilings are made of."""

    facts: Facts
    context: PciAndNetwork
    declared: Declared
    front: Front
    machines: Given | None = None
    """Those of a user's own file."""


def parse_changes(texts: Iterable[str]) -> tuple[WhatIfChange, ...]:
    """Several changes may stand in one text, with a comma or blank between them. Raises InvalidInputError."""
    found: list[WhatIfChange] = []
    for part in (part for text in texts for part in _SPLIT.split(text.strip())):
        left, is_there, value = part.partition("=")
        target, _, key = left.rpartition(":")
        if not is_there and part in KEYS:
            raise _wrong_change(part, f"field {part}: its value is missing", FORMS[part])
        if not is_there or key not in KEYS:
            near = near_names(key, KEYS, most=1)
            meant = f"; is {near[0]} meant?" if near else ""
            raise _wrong_change(part, f"field {key or 'nothing'}: not one of {', '.join(KEYS)}{meant}")
        if not value:
            raise _wrong_change(part, f"field {key}: it has no value", FORMS[key])
        one = WhatIfChange(key, value, target or None)
        if any((one.key, one.target) == (other.key, other.target) for other in found):
            raise _wrong_change(part, f"field {key}: it is given twice")
        found.append(one)
    return tuple(sorted(found, key=lambda change: KEYS.index(change.key)))


def changed(scene: Scene, changes: Iterable[WhatIfChange]) -> tuple[Scene, tuple[str, ...]]:
    """The scene with all changes, and a line for each that says what it comes to on this host. Raises
    InvalidInputError that names the field and what is possible."""
    words = []
    for one in changes:
        scene, result = _APPLY[one.key](scene, one)
        words.append(f"{one.text}: {result}")
    return scene, tuple(words)


def limits_of_scene(scene: Scene) -> Limits:
    """All ceilings of a scene, those of the whole host included."""
    found = limits_of(scene.facts, scene.context, scene.declared, scene.machines)
    return with_host(found, scene.facts, scene.context, scene.declared, scene.front, scene.machines)


def with_what_if(limits: Limits, scene: Scene, changes: Sequence[WhatIfChange]) -> Limits:
    """The limits of a scene with what the changes make of them. Raises InvalidInputError."""
    other, given = changed(scene, changes)
    after = limits_of_scene(other)
    assert limits.host is not None
    assert after.host is not None
    is_changed = any(
        not _is_same(getattr(limits.host, name), getattr(after.host, name))
        for name in ("read_mb_s", "write_mb_s", "read_iops", "write_iops", "read_iops_at_most", "write_iops_at_most")
    )
    notes = tuple(note for note in (*after.notes, *after.host.notes) if note not in (*limits.notes, *limits.host.notes))
    found = WhatIf(given, after.host, is_changed, tuple(_path_changes(limits, after)), notes)
    return msgspec.structs.replace(limits, what_if=found)


def _path_changes(before: Limits, after: Limits) -> Iterable[PathChange]:
    olds, news = (
        {one.name: _path_figures(one) for one in limits.paths if one.kind == "storage"} for limits in (before, after)
    )
    unknown = [
        {one.name: _unknown_iops(one) for one in limits.paths if one.kind == "storage"} for limits in (before, after)
    ]
    for name in dict.fromkeys((*olds, *news)):
        old, new = olds.get(name), news.get(name)
        if unknown[0].get(name) != unknown[1].get(name) and old and new:
            # A figure without the machine's limit is no match for one with it.
            old, new = (
                msgspec.structs.replace(one, read_iops=None, write_iops=None) if those[name] else one
                for one, those in zip((old, new), unknown, strict=True)
            )
        if (
            old is None
            or new is None
            or not all(map(_is_same, msgspec.structs.astuple(old), msgspec.structs.astuple(new)))
        ):
            yield PathChange(name, old, new)


def _unknown_iops(path: StoragePath) -> bool:
    """Whether the machine's limit of IOPS, which every path to its volumes has, is not known."""
    return any(one.stage == "instance" and one.sustained.read_iops is None for one in path.ceilings)


def _path_figures(path: StoragePath) -> PathFigures:
    found = {one.quantity: one.value for one in path.sustained}
    usable = path.capacity.usable_bytes if path.capacity else None
    reads, writes, read_iops, write_iops = (found.get(quantity) for quantity in QUANTITIES)
    return PathFigures(reads, writes, read_iops, write_iops, usable)


def _is_same(one: float | None, other: float | None) -> bool:
    return one == other if one is None or other is None else math.isclose(one, other, rel_tol=1e-6)


# What a target is.


def _path_names(scene: Scene, change: WhatIfChange) -> tuple[DataPath, ...]:
    every = tuple(path for path in data_paths(scene.facts, scene.front)[0] if path.node is not None)
    if change.target is None:
        return every
    wanted = change.target.removeprefix("/dev/")
    found = tuple(path for path in every if {change.target, wanted} & _all_names(path))
    if not found:
        possible = ", ".join(dict.fromkeys(name for path in every for name in (*path.places, path.name)))
        raise change.make_error(f"field {change.target}: no data path of this host", possible or "there is none")
    return found


def _all_names(path: DataPath) -> set[str]:
    assert path.node is not None
    arrays = {name for one in path.node.arrays() for name in (one.device, one.name)}
    return {*path.places, path.name, path.node.device, path.node.name, *arrays}


def _with_arrays(facts: Facts, changed_arrays: Mapping[str, Array]) -> Facts:
    arrays = tuple(changed_arrays.get(one.device, one) for one in facts.arrays)
    return msgspec.structs.replace(facts, arrays=arrays)


def _disks_of(path: DataPath) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path.node.disks())) if path.node else ()


# Volumes.


class _Group(msgspec.Struct, frozen=True):
    count: int
    volume: DeclaredVolume


def _change_volumes(scene: Scene, change: WhatIfChange) -> tuple[Scene, str]:
    groups = _volume_groups(change)
    if groups is None:
        declared = read_declared(FilePath(change.value))
        return msgspec.structs.replace(scene, declared=declared), "declared as in that file"
    paths = _path_names(scene, change)
    if not paths:
        raise change.make_error("field volumes: there is no storage that holds data to replace")
    disks = tuple(dict.fromkeys(name for path in paths for name in _disks_of(path)))
    total = sum(one.count for one in groups)
    if total == len(disks):
        each = [one.volume for one in groups for _ in range(one.count)]
        kept = _redeclare_volumes(scene, dict(zip(disks, each, strict=True)))
        return (
            kept,
            f"in place of the {total} disks of {_join_names(path.name for path in paths)}, arranged as these are",
        )
    if len(paths) > 1 and len(groups) > 1 and len(groups) == len(paths):
        for path, group in zip(paths, groups, strict=True):
            scene = _rebuild_arrays(scene, (path,), (group,))
        return scene, f"in place of {_join_names(path.name for path in paths)}, in this order"
    made = _rebuild_arrays(scene, paths, groups)
    shape = "one volume" if total == 1 else f"one stripe over {total} volumes"
    if len(paths) == 1 and paths[0].node and paths[0].node.family in ("raid1", "raid10", *PARITY_DISKS) and total > 1:
        shape = f"{paths[0].node.level} of {total} volumes"
    return made, f"{shape} in place of {_join_names(path.name for path in paths)}"


def _volume_groups(change: WhatIfChange) -> tuple[_Group, ...] | None:
    """``16xgp3:1000MB/s:16000iops+5xgp3``; None for what names a file."""
    parts = [part for part in change.value.split("+") if part]
    if not all(re.match(r"[0-9]{1,6}x[a-z]", part) for part in parts) or not parts:
        return None
    groups = tuple(_volume_group(change, part) for part in parts)
    if sum(one.count for one in groups) > MAX_VOLUMES:
        raise change.make_error(f"field volumes: more than {MAX_VOLUMES:,}")
    return groups


def _volume_group(change: WhatIfChange, text: str) -> _Group:
    head, *rest = text.split(":")
    count, _, kind = head.partition("x")
    if kind not in _KINDS:
        raise change.make_error(f"field volumes: type {kind}: not one of {', '.join(_KINDS)}")
    if not int(count):
        raise change.make_error("field volumes: 0 volumes")
    given: dict[str, float | int] = {}
    for part in rest:
        given |= _change_bought(change, kind, part, given)
    if kind in ("gp3", "io1", "io2"):
        # The smallest size that carries these IOPS.
        least = math.ceil(int(given.get("iops", 0)) / IOPS_PER_GIB[kind])
        given.setdefault("gib", max(SIZES_GIB[kind][0], least))
    if kind in SIZES_GIB and "gib" not in given:
        raise change.make_error(f"field volumes: a volume of type {kind} needs its size", f"volumes={head}:500GiB")
    volume = DeclaredVolume(cast(Kind, kind), device="new", **given)  # type: ignore[arg-type]
    try:
        check_volume(volume, "volumes")
    except InvalidInputError as error:
        raise change.make_error(error.message) from error
    if kind == "drive" and not {"read_mb_per_s", "write_mb_per_s"} & set(given):
        raise change.make_error("field volumes: a drive needs its data sheet", f"volumes={head}:3200/1300MB/s")
    return _Group(int(count), volume)


def _change_bought(change: WhatIfChange, kind: str, part: str, given: Mapping[str, object]) -> dict[str, float | int]:
    """One of: IOPS, MB/s (of a drive: reads, or reads/writes), GiB."""
    found: dict[str, float | int] = {}
    if number := re.fullmatch(r"([0-9]{1,9})(k?)iops", part, re.ASCII | re.IGNORECASE):
        value = int(number[1]) * (1000 if number[2] else 1)
        found = {"read_iops": value, "write_iops": value} if kind == "drive" else {"iops": value}
    elif number := re.fullmatch(r"([0-9]{1,6})(GiB|TiB)", part, re.ASCII | re.IGNORECASE):
        found = {"gib": int(number[1]) * (1024 if number[2].lower() == "tib" else 1)}
    elif kind == "drive" and (number := re.fullmatch(r"([0-9.]+)/([0-9.]+)\s?([A-Za-z]+/s)", part, re.ASCII)):
        reads, writes = (parse_throughput(f"{number[at]}{number[3]}") for at in (1, 2))
        found = {"read_mb_per_s": reads, "write_mb_per_s": writes} if reads and writes else {}
    elif rate := parse_throughput(part):
        found = {"read_mb_per_s": rate, "write_mb_per_s": rate} if kind == "drive" else {"throughput_mb_per_s": rate}
    if not found or set(found) & set(given):
        what = "it is given twice" if found else "expected IOPS, a throughput or a size"
        raise change.make_error(f"field volumes: {part}: {what}", FORMS["volumes"])
    return found


def _redeclare_volumes(scene: Scene, by_disk: Mapping[str, DeclaredVolume]) -> Scene:
    around, facts = scene.context, scene.facts
    is_ebs = {name: volume.type != "drive" for name, volume in by_disk.items()}
    disks = tuple(
        msgspec.structs.replace(disk, serial=None, model=EBS_MODEL if is_ebs[disk.name] else None)
        if disk.name in by_disk
        else disk
        for disk in facts.disks
    )
    hops = {name: found for name, found in around.hops.items() if not is_ebs.get(name)}
    return msgspec.structs.replace(
        scene,
        facts=msgspec.structs.replace(facts, disks=disks),
        context=msgspec.structs.replace(around, hops=hops, far=around.far - set(by_disk)),
        declared=_declare_volumes(scene, by_disk),
    )


def _declare_volumes(scene: Scene, by_disk: Mapping[str, DeclaredVolume]) -> Declared:
    serials = {disk.serial for disk in scene.facts.disks if disk.name in by_disk and disk.serial}
    kept = tuple(
        one
        for one in scene.declared.volume
        if (one.device or "").removeprefix("/dev/") not in by_disk
        and (one.volume_id or "").replace("-", "") not in {text.replace("-", "") for text in serials}
    )
    new = tuple(msgspec.structs.replace(volume, device=name) for name, volume in by_disk.items())
    return msgspec.structs.replace(scene.declared, volume=(*kept, *new))


def _rebuild_arrays(scene: Scene, paths: Sequence[DataPath], groups: Sequence[_Group]) -> Scene:
    """These paths as one path over new volumes: the level of its array where it is RAID, else a stripe."""
    facts = scene.facts
    start = sum(disk.name.startswith("new-") for disk in facts.disks)
    volumes = [one.volume for one in groups for _ in range(one.count)]
    by_disk = {f"new-{start + at}": volume for at, volume in enumerate(volumes)}
    names = tuple(by_disk)
    tops = {path.node.device for path in paths if path.node}
    places = {place for path in paths for place in path.places}
    old = {name for path in paths for name in _disks_of(path)}
    level = paths[0].node.level if len(paths) == 1 and paths[0].node else None
    if family_of(level) not in LEVELS or len(names) < LEVELS.get(family_of(level) or "", 2):
        level = "striped"
    device = names[0] if len(names) == 1 else f"new-array-{start}"
    array = Array(
        name=device if len(paths) > 1 or not paths[0].node else paths[0].node.name,
        manager="lvm",
        device=device,
        level=level,
        chunk_bytes=None,
        data_disks=None,
        state="active",
        missing=None,
        members=names,
        **dict.fromkeys(("spares", "failed", "journal", "numa_nodes"), ()),  # type: ignore[arg-type]
        size_bytes=_array_bytes(level, [_bytes_of(one) for one in volumes]),
        progress_percent=None,
        mountpoints=tuple(sorted(places)),
        detail={},
        disks=names,
    )
    below = {one.device for path in paths if path.node for one in path.node.arrays()}
    systems = tuple(
        msgspec.structs.replace(one, device=device) if one.device in tops or places & set(one.mountpoints) else one
        for one in facts.filesystems
    )
    if not any(one.device == device for one in systems) and not places:
        systems = (*systems, FileSystem(device, "", (paths[0].name,), None, None, None, None))
    around = scene.context
    made = msgspec.structs.replace(
        facts,
        disks=(
            *(disk for disk in facts.disks if disk.name not in old),
            *(_new_disk(name, volume) for name, volume in by_disk.items()),
        ),
        arrays=(*(one for one in facts.arrays if one.device not in below), *([array] if len(names) > 1 else [])),
        filesystems=systems,
    )
    declared = _declare_volumes(scene, dict.fromkeys(old, volumes[0]))
    kept = tuple(one for one in declared.volume if (one.device or "") not in old)
    new = tuple(msgspec.structs.replace(volume, device=name) for name, volume in by_disk.items())
    front_places = (*scene.front.places, device) if scene.front.places else ()
    hops = {name: hop for name, hop in around.hops.items() if name not in old}
    return msgspec.structs.replace(
        scene,
        facts=made,
        context=msgspec.structs.replace(around, hops=hops),
        declared=msgspec.structs.replace(declared, volume=(*kept, *new)),
        front=msgspec.structs.replace(scene.front, places=front_places),
    )


def _bytes_of(volume: DeclaredVolume) -> int | None:
    return volume.gib << 30 if volume.gib else None


def _array_bytes(level: str | None, sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    if not sizes or len(known) < len(sizes):
        return None
    return min(known) * _data_count(family_of(level) or "", len(known))


def _data_count(family: str, count: int) -> int:
    """How many members' worth of data an array of these has."""
    if family in ("raid1", "mirror"):
        return 1
    return max(count // 2, 1) if family == "raid10" else count - PARITY_DISKS.get(family, 0)


def _new_disk(name: str, volume: DeclaredVolume) -> Disk:
    return Disk(
        name=name,
        kind="nvme",
        size_bytes=_bytes_of(volume),
        rotational=False,
        model=None if volume.type == "drive" else EBS_MODEL,
        **dict.fromkeys(("scheduler", "numa_node", "serial", "pci", "pcie")),  # type: ignore[arg-type]
        **dict.fromkeys(("irqs", "partitions", "holders", "mountpoints", "paths"), ()),  # type: ignore[arg-type]
        queue={},
    )


# Instance, RAID, stripes.


def _change_instance(scene: Scene, change: WhatIfChange) -> tuple[Scene, str]:
    if change.target is not None:
        raise change.make_error(f"field {change.target}: an instance is of the whole host", FORMS["instance"])
    provider: Provider = "azure" if change.value.startswith(("Standard_", "Basic_")) else "aws"
    machine = find_machine(provider, change.value, scene.machines)
    if machine is None:
        names = [one.name for one in all_machines(provider, scene.machines)]
        near = ", ".join(near_names(change.value, names, most=4))
        raise change.make_error(f"field instance: {change.value} is not in the tables", near or FORMS["instance"])
    host, facts = scene.facts.host, scene.facts
    has_volumes = any(disk.model == EBS_MODEL for disk in facts.disks)
    has_volumes = has_volumes or any(one.type != "drive" for one in scene.declared.volume)
    if host.cloud is None and scene.declared.instance_type is None and not has_volumes:
        raise change.make_error("field instance: this host is no cloud instance", "volumes=, raid=, links= or mtu=")
    before = (host.cloud.instance_type if host.cloud else None) or scene.declared.instance_type
    # A type that is built on Nitro carries more of a volume than one on Xen (`Media`).
    runs_on = "amazon" if machine.is_nitro else "xen"
    is_cloud = host.cloud is not None and provider == "aws"
    made = msgspec.structs.replace(
        host, cloud=Cloud(provider, change.value), virtualization=runs_on if is_cloud else host.virtualization
    )
    result = f"in place of {before or 'no known type'}"
    if not has_volumes:
        result += "; no EBS volume is here that it would carry"
    return msgspec.structs.replace(scene, facts=msgspec.structs.replace(facts, host=made)), result


def _change_raid(scene: Scene, change: WhatIfChange) -> tuple[Scene, str]:
    if change.value not in LEVELS:
        raise change.make_error(f"field raid: {change.value}: not one of {', '.join(LEVELS)}")
    arrays = _matching_arrays(scene, change, lambda one: (family_of(one.level) or "") in {*LEVELS, "striped", "mirror"})
    if not arrays:
        _refuse_units(scene, change)
        hint = (
            "RAID of a controller is one disk to the kernel: its drives are not seen" if scene.facts.controllers else ""
        )
        raise change.make_error("field raid: no array here has a RAID level", hint or "there is none to change")
    made: dict[str, Array] = {}
    for one in arrays:
        working = [name for name in one.members if name not in {*one.spares, *one.failed, *one.journal}]
        count = len(working) + max(one.missing or 0, 0)
        if count < LEVELS[change.value]:
            fewest = LEVELS[change.value]
            possible = ", ".join(level for level, least in LEVELS.items() if least <= count)
            raise change.make_error(
                f"field raid: {one.name} has {count} members, {change.value} takes {fewest}", possible
            )
        old, new = (_data_count(family_of(level) or "", count) for level in (one.level, change.value))
        size = None if one.size_bytes is None else round(one.size_bytes * new / old)
        made[one.device] = msgspec.structs.replace(
            one, level=change.value, data_disks=None, structure=None, size_bytes=size
        )
    result = ", ".join(f"{one.name} ({one.level or 'level unknown'})" for one in arrays)
    return msgspec.structs.replace(scene, facts=_with_arrays(scene.facts, made)), f"in place of {result}"


def _refuse_units(scene: Scene, change: WhatIfChange) -> None:
    """Raises for the units of a RAID controller: their level is known, and what their drives carry cannot be."""
    below = {name for path in _path_names(scene, change) if path.node for name in path.node.disks()}
    units = [one for one in scene.facts.arrays if one.manager == "controller" and below.intersection(one.disks)]
    if not units:
        return
    named = ", ".join(
        f"{one.name} ({one.level or 'level unknown'}" + (f" of {count} drives)" if count else ")")
        for one in units
        for count in [one.detail.get("drives")]
    )
    level, count = units[0].level or "raid6", units[0].detail.get("drives", "N")
    layouts = f"{level}x{count},{change.value}x{count}" if level in LEVELS else f"{change.value}x{count}"
    raise change.make_error(
        f"field raid: {named}: the controller makes it, and the figures of its drives are not known here",
        f"advisor size --cloud metal --layout {layouts} --iops N --volumes FILE compares levels; the file has the data "
        "sheet of a drive (type drive)",
    )


def _matching_arrays(scene: Scene, change: WhatIfChange, fits: Callable[[Array], bool]) -> tuple[Array, ...]:
    """The arrays of the data paths that fit, nearest to the disks; where the target names an array, that one."""
    paths = _path_names(scene, change)
    arrays = {one.device: one for one in scene.facts.arrays}
    wanted = (change.target or "").removeprefix("/dev/")
    found: dict[str, Array] = {}
    for path in paths:
        nodes = list(path.node.arrays()) if path.node else []
        named = [one for one in nodes if wanted in (one.device, one.name)]
        below = {member.device for one in nodes for member in one.members}
        for node in named or nodes:
            array = arrays.get(node.device)
            # Of arrays in arrays, that on the disks; the others only by their name.
            is_leaf = not any(name in arrays and name in below for name in (array.members if array else ()))
            if array is not None and fits(array) and (named or is_leaf):
                found[array.device] = array
    return tuple(found.values())


def _change_stripes(scene: Scene, change: WhatIfChange) -> tuple[Scene, str]:
    count = _parse_number(change, 1, MAX_VOLUMES)
    arrays = _matching_arrays(
        scene, change, lambda one: one.level in ("striped", "linear") and one.manager in ("lvm", "dm")
    )
    if not arrays:
        raise change.make_error("field stripes: no striped or linear volume here", FORMS["raid"])
    made = {}
    for one in arrays:
        members = len(dict.fromkeys(one.members))
        if count > members:
            raise change.make_error(f"field stripes: {one.name} lies on {members} devices", f"1 to {members}")
        made[one.device] = msgspec.structs.replace(one, level="striped", data_disks=count, structure=None)
    result = ", ".join(f"{one.name} over {len(dict.fromkeys(one.members))} devices" for one in arrays)
    return msgspec.structs.replace(scene, facts=_with_arrays(scene.facts, made)), result


def _parse_number(change: WhatIfChange, low: int, high: int) -> int:
    text = change.value
    if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) or not low <= int(text) <= high:
        raise change.make_error(f"field {change.key}: {text}: expected {low:,} to {high:,}", FORMS[change.key])
    return int(text)


# Links.


def _storage_links(scene: Scene, change: WhatIfChange) -> tuple[Link, ...]:
    """The physical links that carry storage traffic, or those below the target."""
    links = by_name(scene.facts)
    if change.target is not None:
        if change.target not in links:
            raise change.make_error(f"field {change.target}: no link of this host", ", ".join(links))
        return physical((change.target,), scene.facts) or (links[change.target],)
    front = scene.front
    names = [*front.links, *front.mirror, *(name for one in front.remote for name in one.links)]
    names += [name for found in scene.context.portals.values() for name in found if name]
    return physical(dict.fromkeys(names), scene.facts)


def _with_links(scene: Scene, made: Mapping[str, Link]) -> Scene:
    links = tuple(made.get(link.name, link) for link in scene.facts.links)
    return msgspec.structs.replace(scene, facts=msgspec.structs.replace(scene.facts, links=links))


def _change_mtu(scene: Scene, change: WhatIfChange) -> tuple[Scene, str]:
    mtu = _parse_number(change, 68, 65_535)
    found = _storage_links(scene, change)
    links = by_name(scene.facts)
    for link in found:
        if link.mtu_max is not None and mtu > link.mtu_max:
            raise change.make_error(f"field mtu: {link.name} takes {link.mtu_max:,} at most", f"mtu={link.mtu_max}")
    stacked = {one.name: one for link in found for one in links_above(link.name, links)}
    made = {name: msgspec.structs.replace(link, mtu=mtu) for name, link in stacked.items()}
    fixed = [link.name for link in found if link.kind == "infiniband"]
    result = (
        f"on {_join_names(link.name for link in found)}" if found else "no link is on the way from here to the storage"
    )
    if fixed:
        result += f"; RDMA over {', '.join(fixed)} does not use it"
    return _with_links(scene, made), result


def _change_speed(scene: Scene, change: WhatIfChange) -> tuple[Scene, str]:
    mbps = _parse_mbps(change, change.value)
    found = _storage_links(scene, change)
    made = {link.name: msgspec.structs.replace(link, speed_mbps=mbps, carrier=True, state="up") for link in found}
    result = (
        f"on {_join_names(link.name for link in found)}" if found else "no link is on the way from here to the storage"
    )
    return _with_links(scene, made), result


def _parse_mbps(change: WhatIfChange, text: str) -> int:
    rate = parse_throughput(text if "/" in text else f"{text}bit/s" if text[-1:] in "GMT" else text)
    if rate is None or not 1 <= round(rate * 8) <= 10_000_000:
        raise change.make_error(f"field {change.key}: {text}: expected a rate", FORMS[change.key])
    return round(rate * 8)


def _change_links(scene: Scene, change: WhatIfChange) -> tuple[Scene, str]:
    form = re.fullmatch(r"([+-]?)([0-9]{1,3})(?::(.+))?", change.value, re.ASCII)
    if form is None:
        raise change.make_error(f"field links: {change.value}: expected a number or a change", FORMS["links"])
    found = _storage_links(scene, change)
    if not found:
        return scene, "no link is on the way from here to the storage"
    number = int(form[2])
    more = number if form[1] == "+" else -number if form[1] == "-" else number - len(found)
    if not 1 <= len(found) + more <= MAX_LINKS:
        raise change.make_error(f"field links: {len(found) + more} links", f"1 to {MAX_LINKS}; there are {len(found)}")
    if more < 0:
        return _fewer_links(scene, found[:more] or found, {link.name for link in found[more:]}), _describe_count(
            found, more
        )
    speed = _parse_mbps(change, form[3]) if form[3] else None
    new = tuple(_clone_link(found[-1], at, speed) for at in range(more))
    facts = msgspec.structs.replace(scene.facts, links=(*scene.facts.links, *new))
    names = tuple(link.name for link in new)
    return _join_links(msgspec.structs.replace(scene, facts=facts), found[-1].name, names), _describe_count(found, more)


def _describe_count(found: Sequence[Link], more: int) -> str:
    like = f", as {found[-1].name}, each in a slot of its own" if more > 0 else ""
    return f"{len(found) + more} links in place of {len(found)} ({_join_names(link.name for link in found)}){like}"


def _clone_link(link: Link, at: int, speed: int | None) -> Link:
    """One more link like this one, in a slot of its own that is as wide."""
    pcie = msgspec.structs.replace(link.pcie, limiting=None) if link.pcie else None
    return msgspec.structs.replace(
        link,
        name=f"{link.name}+{at + 1}",
        pci=f"ffff:{at:02x}:00.0",
        pcie=pcie,
        speed_mbps=speed or link.speed_mbps,
        addresses=(),
        lower=(),
        upper=(),
    )


def _join_links(scene: Scene, like: str, new: tuple[str, ...]) -> Scene:
    """The new links wherever the one that they are like carries storage traffic."""
    links = by_name(scene.facts)

    def more(names: tuple[str, ...]) -> tuple[str, ...]:
        carries = any(like in {one.name for one in physical_below(name, links)} for name in names)
        return (*names, *new) if carries else names

    front, around = scene.front, scene.context
    portals = {
        role: (*found, *new) if more(tuple(name for name in found if name))[-len(new) :] == new and new else found
        for role, found in around.portals.items()
    }
    return msgspec.structs.replace(
        scene,
        front=msgspec.structs.replace(
            front,
            links=more(front.links),
            mirror=more(front.mirror),
            remote=tuple(RemoteFilesystem(one.mountpoint, one.kind, more(one.links)) for one in front.remote),
        ),
        context=msgspec.structs.replace(around, portals=portals),
    )


def _fewer_links(scene: Scene, left: Sequence[Link], gone: set[str]) -> Scene:
    """Without these links: a bond of theirs goes on with the others."""
    kept = tuple(
        msgspec.structs.replace(link, lower=tuple(name for name in link.lower if name not in gone))
        for link in scene.facts.links
        if link.name not in gone
    )

    def fewer(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in names if name not in gone) or tuple(link.name for link in left[:1])

    front, around = scene.front, scene.context
    return msgspec.structs.replace(
        scene,
        facts=msgspec.structs.replace(scene.facts, links=kept),
        front=msgspec.structs.replace(
            front,
            links=fewer(front.links) if front.links else (),
            mirror=fewer(front.mirror) if front.mirror else (),
            remote=tuple(RemoteFilesystem(one.mountpoint, one.kind, fewer(one.links)) for one in front.remote),
        ),
        context=msgspec.structs.replace(
            around,
            portals={role: tuple(name for name in found if name not in gone) for role, found in around.portals.items()},
        ),
    )


def _join_names(names: Iterable[str], most: int = 4) -> str:
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return f"{', '.join(listed[:most])}{more}"


_APPLY: Mapping[Key, Callable[[Scene, WhatIfChange], tuple[Scene, str]]] = {
    "volumes": _change_volumes,
    "instance": _change_instance,
    "raid": _change_raid,
    "stripes": _change_stripes,
    "links": _change_links,
    "speed": _change_speed,
    "mtu": _change_mtu,
}
