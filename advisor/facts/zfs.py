"""Pools of ZFS: their state by the module's statistics, how full they are and what they lie on by ``zpool``.

Source: OpenZFS module/zfs/spa_stats.c and arc.c below /proc/spl/kstat/zfs; zpool-list(8), -H and -p; zpool-status(8),
and zpool_main.c for the line about block sizes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

from advisor.facts.array import ArrayPart
from advisor.facts.block import BlockNames
from advisor.facts.levels import Relation
from advisor.facts.printable import printable
from advisor.facts.rare_subjects import ZFS_POOLS
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, is_count, lazy_regex

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
