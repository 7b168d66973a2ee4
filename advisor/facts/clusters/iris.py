"""InterSystems IRIS: its instances, what their cpf asks for, and on which volumes journal, WIJ and databases lie.

Instances are those that ``iris qlist`` lists, else those whose ``irisdb`` runs (the program of a process is root's to
see), else what lies in a usual directory. No process is started on a host without IRIS' registry directory.
Sources: InterSystems IRIS documentation, controlling instances (``iris qlist``: fields parted by ^), Installation Guide
(registry directory), Configuration Parameter File Reference (wijdir, [Journal], [Databases]).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from advisor.facts.block.block import Array
from advisor.facts.block.disks import Disk
from advisor.facts.block.filesystems import FileSystem
from advisor.facts.block.mounts import Mount, read_mounts
from advisor.facts.text import printable
from advisor.facts.unknown import IRIS_REGISTRY, IRIS_USUAL, Unknowns
from advisor.host import Host, Missing, is_count

# InterSystems' configuration parameter file (``iris.cpf``): what storage and memory depend on, and nothing else.

MAX_TEXT = 1 << 20
"""Characters that are looked at: the directories of all databases may take 256 KB."""
MAX_LINE = 1024
MAX_DATABASES = 256

_NUMBERS = ("gmheap", "locksiz", "jrnbufs", "memlock", "asyncwij", "wduseasyncio")
_KNOWN: Mapping[str, frozenset[str] | None] = {
    "config": frozenset({"globals", "routines", "wdparm", "wijdir", *_NUMBERS}),
    "journal": frozenset({"currentdirectory", "alternatedirectory"}),
    "databases": None,
}
"""Sections and their keys that are read, in small letters; None for those that name a directory."""
_SPELT = {"config": "config", "journal": "Journal", "databases": "Databases"}


class Cpf(msgspec.Struct, frozen=True):
    """The settings that a scan keeps; None or an empty list where the file does not give one, or gives no number.

    ``globals_mb`` has one size for each block size from 2 to 64 KB; 0 leaves it to IRIS. ``routines_mb`` is one size or
    six. ``databases`` are those on this host, name and directory.
    """

    globals_mb: tuple[int, ...] = ()
    routines_mb: tuple[int, ...] = ()
    gmheap_kb: int | None = None
    locksiz_bytes: int | None = None
    jrnbufs_mb: int | None = None
    memlock: int | None = None
    asyncwij: int | None = None
    wduseasyncio: int | None = None
    wdparm: tuple[int, ...] = ()
    wijdir: str | None = None
    journal: str | None = None
    alternate_journal: str | None = None
    databases: Mapping[str, str] = {}


def parse_cpf(text: str) -> Cpf:
    """The settings of a cpf; what is not understood is left out."""
    found: dict[str, dict[str, str]] = {"config": {}, "journal": {}, "databases": {}}
    for section, key, value in _parse_settings(text):
        # The name of a database is its own, in the spelling of the file.
        found[section][key if section == "databases" else key.lower()] = value
    config, journal = found["config"], found["journal"]
    numbers = {name: _parse_number(config.get(name, "")) for name in _NUMBERS}
    return Cpf(
        globals_mb=_parse_numbers(config.get("globals", "")),
        routines_mb=_parse_numbers(config.get("routines", "")),
        gmheap_kb=numbers["gmheap"],
        locksiz_bytes=numbers["locksiz"],
        jrnbufs_mb=numbers["jrnbufs"],
        memlock=numbers["memlock"],
        asyncwij=numbers["asyncwij"],
        wduseasyncio=numbers["wduseasyncio"],
        wdparm=_parse_numbers(config.get("wdparm", "")),
        wijdir=_parse_directory(config.get("wijdir", "")),
        journal=_parse_directory(journal.get("currentdirectory", "")),
        alternate_journal=_parse_directory(journal.get("alternatedirectory", "")),
        databases=dict(_parse_databases(found["databases"])),
    )


def only_known(text: str) -> str:
    """A cpf without any line but those that `parse_cpf` reads: what else it holds may be secret."""
    kept: list[str] = []
    section = ""
    for section_of_line, key, value in _parse_settings(text):
        if section_of_line != section:
            section = section_of_line
            kept.append(f"[{_SPELT[section]}]")
        kept.append(f"{key}={value}")
    return "".join(f"{line}\n" for line in kept)


def _parse_settings(text: str) -> Iterator[tuple[str, str, str]]:
    """Section in small letters, key and value of each line that is known."""
    section = ""
    for line in text[:MAX_TEXT].replace("\0", "").split("\n"):
        bare = line.strip()
        if bare.startswith("["):
            section = bare[1:-1].strip().lower() if bare.endswith("]") else ""
        elif section in _KNOWN and len(bare) <= MAX_LINE and not bare.startswith((";", "#")):
            key, equals, value = (part.strip() for part in bare.partition("="))
            known = _KNOWN[section]
            # Of [Databases] nothing but directories: a line that strayed there may be anything.
            if equals and key and (value.startswith("/") if known is None else key.lower() in known):
                yield section, key, value


def _parse_number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else None


def _parse_numbers(text: str) -> tuple[int, ...]:
    """A list of numbers; empty where one of its fields is none. A field without a digit is 0 to IRIS."""
    fields = [field.strip() or "0" for field in text.split(",")] if text.strip() else []
    values = [_parse_number(field) for field in fields]
    return tuple(value for value in values if value is not None) if None not in values and len(values) <= 16 else ()


def _parse_directory(text: str) -> str | None:
    return text if text.startswith("/") else None


def _parse_databases(lines: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """``NAME=DIRECTORY,SERVER,…`` of those without a server, which would be elsewhere."""
    local = 0
    for name, value in lines.items():
        directory, _, rest = value.partition(",")
        if not rest.partition(",")[0].strip() and local < MAX_DATABASES:
            local += 1
            yield name, directory.strip()


QLIST = ("iris", "qlist")
MAX_INSTANCES = 16
_FIELDS = 13
_PROGRAM = "/bin/irisdb"

Role = Literal["journal", "alternate-journal", "wij", "database"]


class Listed(msgspec.Struct, frozen=True):
    """One line of ``iris qlist``. ``data`` is the directory of a durable %SYS, else that of the installation.

    ``mirror`` is the kind of mirror member and its state, empty for an instance that is in none.
    """

    name: str | None
    directory: str
    data: str
    version: str | None = None
    running: bool | None = None
    cpf: str = "iris.cpf"
    mirror: str = ""


class IrisPlace(msgspec.Struct, frozen=True):
    """Where one of an instance's directories lies. ``name`` is that of a database.

    ``kind`` and ``mountpoint`` are those of the file system, ``device`` is the kernel's name, ``disks`` the whole disks
    at the bottom; None or empty where the mount is on no block device, or is not known.
    """

    role: Role
    name: str
    directory: str
    mountpoint: str | None
    kind: str | None
    device: str | None
    disks: tuple[str, ...]


class Iris(msgspec.Struct, frozen=True):
    """An instance. ``cpf`` is the path of its configuration file, ``settings`` None where that could not be read."""

    name: str | None
    directory: str
    version: str | None
    running: bool | None
    mirror: str
    cpf: str
    settings: Cpf | None
    places: tuple[IrisPlace, ...] = ()


def parse_qlist(text: str) -> tuple[Listed, ...]:
    """The instances that ``iris qlist`` prints; lines without a directory are left out."""
    found = (_parse_listed(line.split("^")) for line in text.replace("\0", "").splitlines())
    return tuple(one for one in found if one)[:MAX_INSTANCES]


def _parse_listed(fields: Sequence[str]) -> Listed | None:
    name, directory, version, status, cpf, *rest = [*(field.strip() for field in fields), *[""] * _FIELDS][:_FIELDS]
    if not name or not directory.startswith("/"):
        return None
    mirror = " ".join(part for part in rest[5:7] if part)
    data = rest[7] if rest[7].startswith("/") else directory
    is_plain = bool(cpf) and "/" not in cpf
    return Listed(
        name=printable(name),
        directory=posixpath.normpath(directory),
        data=posixpath.normpath(data),
        version=printable(version) or None,
        running=status.startswith("running") if status else None,
        cpf=cpf if is_plain else "iris.cpf",
        mirror=printable(mirror),
    )


def read_iris(
    host: Host, filesystems: Iterable[FileSystem], arrays: Iterable[Array], disks: Iterable[Disk], unknown: Unknowns
) -> tuple[Iris, ...]:
    """The instances of a host, in the order in which IRIS lists them."""
    listed: tuple[Listed, ...] = ()
    if host.exists(IRIS_REGISTRY):
        done = host.run(QLIST)
        if isinstance(done, Missing):
            unknown.note("iris", done)
        elif not done.ok:
            unknown.note("iris", done.failure("iris qlist"))
        else:
            listed = parse_qlist(done.stdout)
        listed = listed or tuple(_find_running(host))
    found = listed or tuple(_listed_at(place, running=None) for place in IRIS_USUAL if host.exists(f"{place}/iris.cpf"))
    if not found:
        return ()
    mounts = read_mounts(host)
    where = _Where(
        () if isinstance(mounts, Missing) else mounts,
        {place: one.device for one in filesystems for place in one.mountpoints},
        tuple(arrays),
        tuple(disks),
    )
    return tuple(_make_iris(host, one, where, unknown) for one in found)


def _listed_at(directory: str, *, running: bool | None) -> Listed:
    return Listed(None, directory, directory, running=running)


def _find_running(host: Host) -> Iterator[Listed]:
    """By the programs of processes: their arguments, which may hold secrets, are not read."""
    found: dict[str, None] = {}
    for pid in host.names("/proc"):
        if is_count(pid) and host.read(f"/proc/{pid}/comm") == "irisdb":
            program = host.readlink(f"/proc/{pid}/exe")
            if isinstance(program, str) and program.startswith("/") and program.endswith(_PROGRAM):
                found[posixpath.normpath(program.removesuffix(_PROGRAM) or "/")] = None
    yield from (_listed_at(directory, running=True) for directory in list(found)[:MAX_INSTANCES])


class _Where(msgspec.Struct, frozen=True):
    """What a directory is looked up in."""

    mounts: tuple[Mount, ...]
    devices: dict[str, str]
    """The block device by mount point."""
    arrays: tuple[Array, ...]
    disks: tuple[Disk, ...]


def _make_iris(host: Host, one: Listed, where: _Where, unknown: Unknowns) -> Iris:
    fact = f"iris.{one.name or printable(one.directory)}"
    # With a durable %SYS the file that counts lies there; the installation keeps the one that it came with.
    path, text = f"{one.data}/{one.cpf}", host.read(f"{one.data}/{one.cpf}")
    if isinstance(text, Missing) and text.is_absent and one.data != one.directory:
        path, text = f"{one.directory}/{one.cpf}", host.read(f"{one.directory}/{one.cpf}")
    if isinstance(text, Missing):
        unknown.note(f"{fact}.settings", f"{printable(path)}: {text.why}")
    settings = None if isinstance(text, Missing) else parse_cpf(text)
    if settings is not None and len(settings.databases) >= MAX_DATABASES:
        unknown.note(f"{fact}.databases", f"only the first {MAX_DATABASES} are looked at")
    return Iris(
        name=one.name,
        directory=printable(one.directory),
        version=one.version,
        running=one.running,
        mirror=one.mirror,
        cpf=printable(path),
        settings=None if settings is None else _make_printable(settings),
        places=() if settings is None else tuple(_find_places(host, one, settings, where)),
    )


def _make_printable(settings: Cpf) -> Cpf:
    def shown(text: str | None) -> str | None:
        return None if text is None else printable(text)

    return msgspec.structs.replace(
        settings,
        wijdir=shown(settings.wijdir),
        journal=shown(settings.journal),
        alternate_journal=shown(settings.alternate_journal),
        databases={printable(name): printable(place) for name, place in settings.databases.items()},
    )


def _find_places(host: Host, one: Listed, settings: Cpf, where: _Where) -> Iterator[IrisPlace]:
    manager = f"{one.data.rstrip('/')}/mgr"
    yield _make_place(host, "journal", "", settings.journal or f"{manager}/journal", where)
    if settings.alternate_journal:
        yield _make_place(host, "alternate-journal", "", settings.alternate_journal, where)
    yield _make_place(host, "wij", "", settings.wijdir or manager, where)
    for name, directory in settings.databases.items():
        yield _make_place(host, "database", name, directory, where)


def _make_place(host: Host, role: Role, name: str, directory: str, where: _Where) -> IrisPlace:
    real = host.real(directory)
    # Where a directory on the way is closed to us, its own words are the best that is known.
    path = posixpath.normpath(directory) if isinstance(real, Missing) else real
    mount = _mount_of(path, where.mounts)
    device = where.devices.get(mount.target) if mount else None
    return IrisPlace(
        role=role,
        name=printable(name),
        directory=printable(directory),
        mountpoint=printable(mount.target) if mount else None,
        kind=mount.kind if mount else None,
        device=device,
        disks=_find_disks(device, mount.target, where) if mount and device else (),
    )


def _mount_of(path: str, mounts: Iterable[Mount]) -> Mount | None:
    """The mount that a path is on: the deepest, and of several in one place the last, which covers the others."""
    found: Mount | None = None
    for mount in mounts:
        target = mount.target.rstrip("/")
        if (path == target or path.startswith(f"{target}/")) and (
            found is None or len(target) >= len(found.target.rstrip("/"))
        ):
            found = mount
    return found


def _find_disks(device: str, mountpoint: str, where: _Where) -> tuple[str, ...]:
    """The whole disks below what is mounted there."""
    for array in where.arrays:
        if device == array.device or mountpoint in array.mountpoints:
            return array.disks
    for disk in where.disks:
        if device in (disk.name, *disk.partitions) or mountpoint in disk.mountpoints:
            return (disk.name,)
    return ()


# How much shared memory an InterSystems IRIS instance asks for, by its cpf.

MIB = 1 << 20
SPARE_PERCENT = 5
"""What is added for control structures that no parameter names; InterSystems' notes say about as much."""
_LARGE_PAGES_OFF = 32
_EIGHT_KB = 2
_BLOCK_SIZES = 6


def globals_bytes(cpf: Cpf) -> int | None:
    """The database cache; None where the file leaves it to IRIS, or gives no size."""
    return sum(cpf.globals_mb) * MIB or None


def shared_bytes(cpf: Cpf) -> int | None:
    """Database cache, routine cache and shared memory heap together; None where the database cache is unknown."""
    cache = globals_bytes(cpf)
    if cache is None:
        return None
    low, high = (307_200, 2_097_000)
    return cache + _routines_mb(cpf) * MIB + (cpf.gmheap_kb or min(max(cache * 3 // 100 // 1024, low), high)) * 1024


def pages_for(size_bytes: int, page_bytes: int) -> int:
    """How many huge pages hold that many bytes: 294,912 of 2 MiB for 589,824 MB."""
    return -(-size_bytes // page_bytes)


def wanted_pages(cpf: Cpf, page_bytes: int) -> int | None:
    """The huge pages to reserve for an instance, spare included; None where its shared memory is unknown."""
    size = shared_bytes(cpf)
    return None if size is None else pages_for(size + size * SPARE_PERCENT // 100, page_bytes)


def refuses_large_pages(cpf: Cpf) -> bool:
    """Whether memlock keeps IRIS from using huge pages."""
    return bool((cpf.memlock or 0) & _LARGE_PAGES_OFF)


def _routines_mb(cpf: Cpf) -> int:
    if len(cpf.routines_mb) == _BLOCK_SIZES:
        return sum(cpf.routines_mb)
    low, high = (80, 1020)
    asked = cpf.routines_mb[0] if cpf.routines_mb else 0
    if asked:
        return max(asked, low)
    eight = cpf.globals_mb[_EIGHT_KB] if len(cpf.globals_mb) > _EIGHT_KB else 0
    return min(max(eight // 10, low), high)
