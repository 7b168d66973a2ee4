"""Veritas Volume Manager and VxFS: mirrors without a log, columns on one disk, VxFS requests against the stripes."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

from advisor.facts.block.block import Array, ArrayPart
from advisor.facts.block.disks import Disk, FileSystem
from advisor.rules import sources
from advisor.rules.rule import Decide, DeclaredWorkload, Facts, Finding, RunShell, rule

ORDER = 100

_MIRRORS = frozenset({"raid1", "raid10"})
_STRIPED = frozenset({"raid0", "raid10", "raid5"})


def _vxvm_volumes(facts: Facts) -> Iterator[Array]:
    return (array for array in facts.arrays if array.manager == "vxvm")


def _group_and_name(array: Array) -> tuple[str, str]:
    group, _, name = array.name.partition("/")
    return shlex.quote(group), shlex.quote(name)


@rule(
    id="vxvm.mirror-without-log",
    severity="advice",
    title="A mirrored volume has no dirty region log",
    what="VxVM volumes with two data plexes or more, or layered mirrors, that have neither a DCO nor a log plex.",
    why="Only a map of the regions that were written to makes recovery short.",
    helps_when="Large volumes; mirrors between nodes (FSS), where the copy crosses LLT.",
    hurts_when="Many scattered writes: each first marks its region in the log. Small volumes are copied soon.",
    sources=(sources.VXVM_GUIDE,),
)
def without_log(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(
        array
        for array in _vxvm_volumes(facts)
        if array.level in _MIRRORS and not array.detail.get("dco") and not array.detail.get("logs")
    )
    if not found:
        return None
    return without_log.found(
        why="After a crash no record shows which regions of the plexes differ: all of the volume is copied from one "
        "plex to the others, and the disks, or the links to another node's, are busy with it meanwhile.",
        evidence={
            "arrays": tuple(array.name for array in found),
            "detail": tuple(f"{array.name}: {array.detail.get('plexes', '')}" for array in found),
        },
        remedy=tuple(
            RunShell(
                "vxsnap -g {} prepare {} ndcomirs=2 drl=on".format(*_group_and_name(one)), f"give {one.name} a log"
            )
            for one in found
        ),
    )


def _shared_disks(array: Array) -> tuple[str, ...]:
    """Disks that more than one column of a stripe lies on."""
    if array.structure is None:
        return ()
    return tuple(dict.fromkeys(name for part in _find_stripes(array.structure) for name in _repeated_disks(part)))


def _find_stripes(part: ArrayPart) -> Iterator[ArrayPart]:
    if part.level in ("raid0", "raid5"):
        yield part
    for one in part.members:
        if isinstance(one, ArrayPart):
            yield from _find_stripes(one)


def _repeated_disks(part: ArrayPart) -> Iterator[str]:
    columns = [{one} if isinstance(one, str) else set(one.devices()) for one in part.members]
    return (name for name, count in Counter(name for column in columns for name in column).items() if count > 1)


@rule(
    id="vxvm.columns-share-disk",
    severity="advice",
    title="Columns of one stripe lie on the same disk",
    what="The disks of each column of VxVM's striped and RAID-5 plexes, by the kernel's names.",
    why="A stripe is as fast as the disks that its columns do not share.",
    helps_when="A free disk is there to move a column to.",
    hurts_when="Disks of an array or a cloud that spreads each of them by itself: there the columns only cost "
    "overhead.",
    sources=(sources.VXVM_GUIDE,),
)
def shared_columns(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = [(array, names) for array in _vxvm_volumes(facts) if (names := _shared_disks(array))]
    if not found:
        return None
    return shared_columns.found(
        why="Columns of one stripe are read and written at the same time: on one disk they wait for each other, and a "
        "disk that turns moves its heads between them.",
        evidence={
            "arrays": tuple(array.name for array, _ in found),
            "disks": tuple(dict.fromkeys(name for _, names in found for name in names)),
            "detail": tuple(f"{array.name}: {', '.join(names)}" for array, names in found),
        },
        remedy=tuple(
            Decide(
                "move a column to a disk of its own: vxassist -g {} move {} !DISK FREE_DISK".format(
                    *_group_and_name(one)
                )
            )
            for one, _ in found
        ),
    )


def _common_controller(array: Array, disks: dict[str, Disk]) -> str | None:
    """The one adapter of a striped or mirrored volume's disks; None where there are several, or some are unknown."""
    if array.level not in _STRIPED | _MIRRORS or array.detail.get("unmapped") or len(array.disks) < 2:
        return None
    places = {disks[name].pci for name in array.disks if name in disks}
    return places.pop() if len(places) == 1 else None


@rule(
    id="vxvm.one-controller",
    severity="info",
    title="All disks of a volume are behind one controller",
    what="PCI functions of the disks of VxVM's striped and mirrored volumes, where disks without partitions have "
    "another.",
    why="Columns and plexes are meant to be independent.",
    helps_when="Two adapters with disks of the same kind are there.",
    hurts_when="The other adapter has the system's disk only, or disks of another kind.",
    sources=(sources.VXVM_GUIDE,),
)
def one_controller(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    disks = {disk.name: disk for disk in facts.disks}
    # A system's own disk on another adapter is no place for data.
    others = {disk.pci for disk in facts.disks if disk.pci and not disk.partitions and not disk.mountpoints}
    found = [
        (array, pci) for array in _vxvm_volumes(facts) if (pci := _common_controller(array, disks)) and others - {pci}
    ]
    if not found:
        return None
    return one_controller.found(
        why="All columns and plexes go through one adapter, while the host has others with disks: its link bounds them "
        "together, and with it a mirror loses all plexes.",
        evidence={
            "arrays": tuple(array.name for array, _ in found),
            "detail": tuple(f"{array.name}: all disks behind {pci}" for array, pci in found),
        },
        remedy="when the volume is next made, use vxassist make … mirror=ctlr, or stripe across controllers",
        intent=True,
    )


def _tune_streams(filesystem: FileSystem, array: Array, settings: str) -> tuple[RunShell, Decide]:
    where = filesystem.mountpoints[0]
    device = f"/dev/{filesystem.device if '/' in filesystem.device else f'vx/dsk/{array.name}'}"
    return (
        RunShell(f"vxtunefs -s -o {settings} {shlex.quote(where)}", f"set it on {where}"),
        Decide(f"to keep it, add the line {device} {settings} to /etc/vx/tunefstab"),
    )


def _wanted_parameters(filesystem: FileSystem, array: Array) -> dict[str, int]:
    """The parameters that do not go with the stripes, and what would; empty where they do or are not known.

    Twice the columns is what a mirror of stripes may read from: VxFS sets either by itself, and neither is held against
    it.
    """
    if filesystem.kind != "vxfs" or array.level not in _STRIPED or not array.chunk_bytes or not array.data_disks:
        return {}
    unit, columns = array.chunk_bytes, array.data_disks + (1 if array.level == "raid5" else 0)
    wanted = {"read_pref_io": unit, "read_nstream": columns}
    if array.level == "raid5":
        wanted |= {"write_pref_io": unit * array.data_disks, "write_nstream": 1}
    else:
        wanted |= {"write_pref_io": unit, "write_nstream": columns}
    here = filesystem.tunables
    if not here.keys() >= wanted.keys():
        return {}
    found: dict[str, int] = {}
    for way in ("read", "write"):
        size, count = wanted[f"{way}_pref_io"], wanted[f"{way}_nstream"]
        now = here[f"{way}_pref_io"] * here[f"{way}_nstream"]
        if now < size * count or now % (size * count):
            found |= {f"{way}_pref_io": size, f"{way}_nstream": count}
    return found


@rule(
    id="vxfs.streams-off-stripes",
    severity="advice",
    title="VxFS stream sizes do not match its stripes",
    what="read_pref_io × read_nstream and write_pref_io × write_nstream of vxtunefs, against the stripe unit and the "
    "columns of the VxVM volume; a multiple of the full stripe fits.",
    why="VxFS asks VxVM for the geometry when it mounts; values in /etc/vx/tunefstab, or a volume whose layout changed "
    "since then, leave it with others.",
    helps_when="Large files that are read or written in sequence, buffered.",
    hurts_when="Small random I/O, which more read-ahead only displaces from the cache; volume sets, whose geometry "
    "VxFS does not ask for.",
    sources=(sources.VXFS_GUIDE,),
)
def vxfs_streams(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    arrays = {array.device: array for array in _vxvm_volumes(facts)}
    for filesystem in facts.filesystems:
        if filesystem.device in arrays and (wanted := _wanted_parameters(filesystem, arrays[filesystem.device])):
            array = arrays[filesystem.device]
            where = filesystem.mountpoints[0]
            here = filesystem.tunables
            settings = ",".join(f"{name}={value}" for name, value in wanted.items())
            columns = (array.data_disks or 0) + (1 if array.level == "raid5" else 0)
            yield vxfs_streams.found(
                title=f"VxFS on {where} does not match the stripes of {array.name}",
                why=f"The volume has {columns} columns of {(array.chunk_bytes or 0) >> 10} KiB; read-ahead is "
                f"{here['read_nstream']} × {here['read_pref_io'] >> 10} KiB and flush-behind {here['write_nstream']} × "
                f"{here['write_pref_io'] >> 10} KiB, so that a stream does not keep all columns busy.",
                evidence={
                    "arrays": (array.name,),
                    "device": filesystem.device,
                    "chunk_bytes": array.chunk_bytes,
                    "data_disks": array.data_disks,
                    "detail": tuple(
                        f"{name}: {here[name]}, the stripes want {value}"
                        for name, value in wanted.items()
                        if here[name] != value
                    ),
                },
                remedy=_tune_streams(filesystem, array, settings),
            )
