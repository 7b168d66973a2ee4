"""What ``vxprint -ht``, ``vxdisk`` and ``vxdmpadm`` print of Veritas Volume Manager.

A record a line: its kind, then the columns that the head of ``vxprint -ht`` names (vxprint(1M)). Sizes and stripe
widths are sectors of 512 bytes on Linux. Lines that do not fit are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from advisor.facts.text import printable
from advisor.host.numbers import is_count

MAX_TEXT = 4 << 20
"""Characters that are looked at: those of a snapshot may be made to cost time."""
MAX_RECORDS = 20_000

_KINDS = frozenset({"dg", "dm", "v", "pl", "sd", "sv", "dc", "co"})


class Subdisk(msgspec.Struct, frozen=True):
    """A range of a disk. ``device`` is the disk access name, None where the disk is gone; ``mode`` is ENA, or why it is
    not (NDEV, RMOV, FAIL, dS …). ``column`` is that of the stripe, 0 in a concatenated plex."""

    name: str
    plex: str
    disk: str
    length: int
    column: int
    offset: int
    is_log: bool
    device: str | None
    mode: str | None


class Subvolume(msgspec.Struct, frozen=True):
    """A volume in the place of a subdisk, in a layered volume."""

    name: str
    plex: str
    volume: str
    length: int
    column: int
    offset: int


class Plex(msgspec.Struct, frozen=True):
    """A copy of a volume's data, or a log. ``length`` is None for LOGONLY; ``layout`` is CONCAT, STRIPE or RAID."""

    name: str
    volume: str
    kstate: str
    state: str
    length: int | None
    layout: str
    columns: int | None
    width: int | None
    mode: str | None
    subdisks: tuple[Subdisk, ...] = ()
    subvolumes: tuple[Subvolume, ...] = ()

    @property
    def is_log(self) -> bool:
        """Whether it holds a dirty region log or a RAID-5 log, and no data."""
        only_logs = bool(self.subdisks) and all(one.is_log for one in self.subdisks)
        return self.length is None or self.state in {"LOG", "BADLOG", "DCOSNP"} or only_logs

    @property
    def is_snapshot(self) -> bool:
        """Whether it is a snapshot in the making, which serves no reads of the volume."""
        return self.state.startswith("SNAP")


class VxVolume(msgspec.Struct, frozen=True):
    """A volume; ``dco`` is the name of its data change object, None where it has none."""

    name: str
    kstate: str
    state: str
    length: int
    read_policy: str
    plexes: tuple[Plex, ...] = ()
    dco: str | None = None


class VxGroup(msgspec.Struct, frozen=True):
    """A disk group. ``media`` are the access names of its disks by media name, None for one that is gone. ``helpers``
    are volumes that hold no user's data by themselves: DCO logs, caches."""

    name: str
    media: Mapping[str, str | None]
    volumes: Mapping[str, VxVolume]
    helpers: frozenset[str]

    @property
    def parts(self) -> frozenset[str]:
        """Volumes that are subvolumes of others."""
        plexes = (plex for volume in self.volumes.values() for plex in volume.plexes)
        return frozenset(one.volume for plex in plexes for one in plex.subvolumes)


class DiskAccess(msgspec.Struct, frozen=True):
    """A disk as ``vxdisk`` names it. ``native`` is the kernel's name, None where it is not shown."""

    name: str
    disk: str | None
    group: str | None
    status: tuple[str, ...]
    native: str | None = None


def parse_vxprint(text: str) -> tuple[VxGroup, ...]:
    """Disk groups with their volumes, in the order of the text."""
    groups: dict[str, _Group] = {}
    current: _Group | None = None
    for words in _split_records(text):
        kind = words[0]
        if kind in ("dg", "Disk"):
            name = words[-1] if kind == "Disk" else words[1]
            current = groups.setdefault(name, _Group(name))
        elif len(words) > 2:
            # vxprint -g GROUP without a head has no line of its group.
            current = current or groups.setdefault("", _Group(""))
            current.add(words)
    return tuple(one.made() for one in groups.values())


def _split_records(text: str) -> Iterator[list[str]]:
    for line in text[:MAX_TEXT].splitlines()[:MAX_RECORDS]:
        words = printable(line).split()
        if len(words) > 1 and (words[0] in _KINDS or words[:2] == ["Disk", "group:"]):
            yield words


class _Group:
    """Collects the records of one disk group."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.media: dict[str, str | None] = {}
        self.volumes: dict[str, VxVolume] = {}
        self.plexes: dict[str, Plex] = {}
        self.subdisks: list[Subdisk] = []
        self.subvolumes: list[Subvolume] = []
        self.helpers: set[str] = set()
        self.dcos: dict[str, str] = {}

    def add(self, words: list[str]) -> None:
        kind, name = words[0], words[1]
        if kind == "dm":
            self.media[name] = None if words[2] == "-" else words[2]
        elif kind == "v" and len(words) > 5 and is_count(words[5]):
            policy = words[6] if len(words) > 6 else "-"
            self.volumes[name] = VxVolume(name, words[3], words[4], int(words[5]), policy)
        elif kind == "pl" and len(words) > 6:
            # `pl vol01-01 vol01 ENABLED ACTIVE 4194304 STRIPE 4/128 RW`.
            shape = re.fullmatch(r"(\d{1,4})/(\d{1,9})", words[7] if len(words) > 7 else "", re.ASCII)
            self.plexes[name] = Plex(
                name=words[1],
                volume=words[2],
                kstate=words[3],
                state=words[4],
                length=int(words[5]) if is_count(words[5]) else None,
                layout=words[6],
                columns=int(shape[1]) if shape else None,
                width=int(shape[2]) if shape else None,
                mode=words[8] if len(words) > 8 else None,
            )
        elif kind == "sd" and (subdisk := _parse_subdisk(words)):
            self.subdisks.append(subdisk)
        elif kind == "sv" and (subvolume := _parse_subvolume(words)):
            self.subvolumes.append(subvolume)
        elif kind == "dc" and len(words) > 3:
            self.dcos[words[2]] = name
            self.helpers.add(words[3])
        elif kind == "co":
            self.helpers.add(words[2])

    def made(self) -> VxGroup:
        disks: dict[str, list[Subdisk]] = {}
        for subdisk in self.subdisks:
            disks.setdefault(subdisk.plex, []).append(subdisk)
        volumes: dict[str, list[Subvolume]] = {}
        # A volume is the subvolume of one other: what a damaged text repeats or turns in a circle is left out.
        for subvolume in {one.volume: one for one in reversed(self.subvolumes)}.values():
            volumes.setdefault(subvolume.plex, []).insert(0, subvolume)
        plexes: dict[str, list[Plex]] = {}
        for plex in self.plexes.values():
            whole = msgspec.structs.replace(
                plex, subdisks=tuple(disks.get(plex.name, ())), subvolumes=tuple(volumes.get(plex.name, ()))
            )
            plexes.setdefault(plex.volume, []).append(whole)
        made = {
            name: msgspec.structs.replace(one, plexes=tuple(plexes.get(name, ())), dco=self.dcos.get(name))
            for name, one in self.volumes.items()
        }
        return VxGroup(self.name, self.media, made, frozenset(self.helpers))


def _parse_place(text: str) -> tuple[int, int] | None:
    """Column and offset of ``[COL/]OFF``; None for a log's."""
    found = re.fullmatch(r"(?:(\d{1,4})/)?(\d{1,18})", text, re.ASCII)
    return (int(found[1] or 0), int(found[2])) if found else None


def _parse_subdisk(words: list[str]) -> Subdisk | None:
    """``sd datadg01-01 vol01-01 datadg01 0 2097152 0/0 sdb ENA``."""
    if len(words) < 8 or not is_count(words[5]):
        return None
    place = _parse_place(words[6])
    return Subdisk(
        name=words[1],
        plex=words[2],
        disk=words[3],
        length=int(words[5]),
        column=place[0] if place else 0,
        offset=place[1] if place else 0,
        is_log=place is None,
        device=None if words[7] == "-" else words[7],
        mode=words[8] if len(words) > 8 else None,
    )


def _parse_subvolume(words: list[str]) -> Subvolume | None:
    """``sv vol01-S01 vol01-03 vol01-L01 1 3456 0/0 2/2 ENA``."""
    place = _parse_place(words[6]) if len(words) > 6 else None
    if place is None or not is_count(words[5]):
        return None
    return Subvolume(words[1], words[2], words[3], int(words[5]), *place)


def parse_access(text: str) -> tuple[DiskAccess, ...]:
    """The disks of ``vxdisk list``, ``-o alldgs list`` or ``-e list``; the last names what the kernel calls them.

    A disk that is gone has no access name: its line begins with a dash and ends with the name (``failed was:sdc``).
    """
    head: list[str] = []
    found: list[DiskAccess] = []
    for line in text[:MAX_TEXT].splitlines()[:MAX_RECORDS]:
        words = printable(line).split()
        if words[:1] == ["DEVICE"]:
            head = words
        elif len(words) > 4 and not words[0].startswith(("#", "=")):
            tail = len(head) - head.index("STATUS") - 1 if "STATUS" in head else 0
            rest = words[4:]
            extra = rest[len(rest) - tail :] if tail and len(rest) > tail else []
            status = rest[: len(rest) - len(extra)]
            native = extra[0] if extra and head[-tail] in ("OS_NATIVE_NAME", "c#t#d#_NAME") else None
            gone = next((word.removeprefix("was:") for word in status if word.startswith("was:")), None)
            found.append(
                DiskAccess(
                    name=gone or words[0] if words[0] == "-" else words[0],
                    disk=None if words[2] == "-" else words[2],
                    group=None if words[3] == "-" else words[3].strip("()"),
                    status=tuple(status),
                    native=None if native in (None, "-") else native,
                )
            )
    return tuple(found)


def parse_paths(text: str) -> dict[str, tuple[str, ...]]:
    """Kernel names by disk access name, from ``vxdisk path`` (SUBPATH DANAME …) or ``vxdmpadm getsubpaths`` (NAME …
    DMPNODENAME …)."""
    found: dict[str, tuple[str, ...]] = {}
    at: tuple[int, int] | None = None
    for line in text[:MAX_TEXT].splitlines()[:MAX_RECORDS]:
        words = printable(line).split()
        if words[:2] == ["SUBPATH", "DANAME"]:
            at = (0, 1)
        elif words[:1] == ["NAME"] and "DMPNODENAME" in words:
            at = (0, words.index("DMPNODENAME"))
        elif at and len(words) > at[1] and not words[0].startswith("="):
            path, name = words[at[0]], words[at[1]]
            found[name] = tuple(dict.fromkeys((*found.get(name, ()), path)))
    return found
