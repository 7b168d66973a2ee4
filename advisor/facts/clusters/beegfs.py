"""BeeGFS: its services on this host, where their targets lie, and how they are bound and connected.

Read are /etc/beegfs/beegfs-KIND.conf and, of several instances on one host, /etc/beegfs/INSTANCE.d/beegfs-KIND.conf,
which the unit beegfs-KIND@INSTANCE.service goes by; the connInterfacesFile that they name; and of mounted BeeGFS file
systems the stripe pattern of their root. Nothing that authenticates is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, cast

import msgspec

from advisor.facts.block.block import Array, BlockNames
from advisor.facts.block.disks import Disk
from advisor.facts.block.mounts import Mount, mounts_by_device, read_mounts
from advisor.facts.network.link_stack import SharedSubnet, read_shared_subnets
from advisor.facts.network.links import Link
from advisor.facts.system.services import Service, read_memory_policy, read_services
from advisor.facts.text import printable
from advisor.facts.unknown import BEEGFS, Unknowns
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

# What BeeGFS' own files and tools print: configuration, interfaces file, the entry information of a directory.

MAX_FILE_TEXT = 1 << 20
MAX_VALUE = 16 * 1024
MAX_INTERFACES = 256
"""Characters and entries that are looked at: a snapshot's files may be made to cost time."""

# Never what authenticates, and no user's or server's name.
_KEY = lazy_regex(r"store(Storage|Meta|Mgmtd)Directory|(tune|conn(?!Auth|DisableAuth))[A-Z]\w{0,60}", re.ASCII)
_INTERFACE = lazy_regex(r"[\w.:@-]{1,32}", re.ASCII)
_SIZE = lazy_regex(r"([0-9]{1,15})([kKmMgGtT]?)(?:i?[bB])?", re.ASCII)
_BINARY = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_PATTERN = lazy_regex(r"^\+ Type: ([\w -]{1,40})$", re.MULTILINE)
_CHUNK = lazy_regex(r"^\+ Chunksize: ([0-9]{1,12}[kKmMgGtT]?)\b", re.MULTILINE)
_DESIRED = lazy_regex(r"^\+ Number of (?:storage targets|buddy groups): desired: ([0-9]{1,6})\b", re.MULTILINE)


class EntryInfo(msgspec.Struct, frozen=True):
    """Stripe pattern of a directory: ``pattern`` is RAID0 or Buddy Mirror, ``chunk_bytes`` what one target gets in a
    row, ``targets`` over how many a file is striped. None where it is not printed."""

    pattern: str | None
    chunk_bytes: int | None
    targets: int | None


def parse_beegfs_conf(text: str) -> dict[str, str]:
    """Keys and values of ``KEY = VALUE`` lines that say how a service is tuned and connected; the last one counts.

    Left out is all else, the authentication first of all. A key with an empty value is kept as "".
    """
    found: dict[str, str] = {}
    for line in text[:MAX_FILE_TEXT].replace("\0", "").split("\n"):
        key, equals, value = (part.strip() for part in line.partition("="))
        if equals and _KEY.fullmatch(key) and len(value) <= MAX_VALUE:
            found[key] = printable(value)
    return found


def parse_interfaces_file(text: str) -> tuple[str, ...]:
    """Names of the links that a connInterfacesFile allows, in order of preference; ``*`` stands for all.

    A line is a name, or as newer releases have it ``[!] NAME|* ADDRESS|* 4|6|*``; those that forbid (``!``) are no
    names that are allowed.
    """
    found: dict[str, None] = {}
    for line in text[:MAX_FILE_TEXT].replace("\0", "").split("\n"):
        words = line.split()
        if words and (words[0] == "*" or _INTERFACE.fullmatch(words[0])):
            found[words[0]] = None
    return tuple(found)[:MAX_INTERFACES]


def parse_entry_info(text: str) -> EntryInfo | None:
    """Of ``beegfs-ctl --getentryinfo``, or ``beegfs entry info --retro``; None where it prints no stripe pattern."""
    pattern, chunk, desired = (one.search(text) for one in (_PATTERN, _CHUNK, _DESIRED))
    if not (pattern or chunk or desired):
        return None
    return EntryInfo(
        pattern[1].strip() if pattern else None,
        size_bytes(chunk[1]) if chunk else None,
        int(desired[1]) if desired else None,
    )


def size_bytes(text: str) -> int | None:
    """Bytes of ``4m``, ``512k`` or ``8192``, in powers of 1024 as BeeGFS has them; None for anything else."""
    found = _SIZE.fullmatch(text.strip())
    return int(found[1]) * _BINARY[found[2].lower()] if found else None


_NEW_TOOL = ("/opt/beegfs/sbin/beegfs", f"{BEEGFS}/beegfs-mgmtd.toml")
"""Of release 8 alone: its tool, and the configuration of its management service."""
MAX_FILES = 256
MAX_TARGETS = 256
MAX_MOUNTS = 2
ENTRY_SECONDS = 3.0
"""How long a mounted file system may take to report its stripe pattern: its servers may be down."""

Kind = Literal["mgmtd", "meta", "storage", "mon", "client"]
_FILE = lazy_regex(r"beegfs-(mgmtd|meta|storage|mon|client(?:-[\w-]{1,60})?)\.conf", re.ASCII)
_INSTANCE = lazy_regex(r"([\w-]{1,60})\.d", re.ASCII)
_INTERFACES_FILE = lazy_regex(rf"{BEEGFS}(/(?!\.\.?/)[\w.-]{{1,60}}){{1,2}}", re.ASCII)
_DIRECTORY: Mapping[str, str] = {"meta": "storeMetaDirectory", "storage": "storeStorageDirectory"}


class BeegfsTarget(msgspec.Struct, frozen=True):
    """A directory that holds metadata or chunks. ``device`` is the kernel's name of what is mounted there, None where
    that is no block device of this host (ZFS) or nothing could be read; ``array`` and ``level`` those of the array
    that the device is or lies on; ``disks`` the disks at the bottom, ``numa_nodes`` their nodes, sorted."""

    path: str
    mountpoint: str | None
    filesystem: str | None
    device: str | None
    array: str | None
    level: str | None
    disks: tuple[str, ...]
    numa_nodes: tuple[int, ...]


class BeegfsService(msgspec.Struct, frozen=True):
    """What one configuration file describes. ``instance`` is None for the only one of its kind; ``unit`` for a client,
    which is no process. ``settings`` are the file's own ``tune…``, ``conn…`` and directory keys.

    ``interfaces`` are the links that its connInterfacesFile allows; None where it names no file or that could not be
    read. ``service`` is its unit, None where systemd does not have it or there are no targets.
    """

    kind: Kind
    instance: str | None
    path: str
    unit: str | None
    settings: Mapping[str, str]
    targets: tuple[BeegfsTarget, ...] = ()
    interfaces: tuple[str, ...] | None = None
    service: Service | None = None

    @property
    def label(self) -> str:
        """What to call it: its unit, or the file of a client."""
        return self.unit or self.path


class StripePattern(msgspec.Struct, frozen=True):
    """The stripe pattern of a mounted BeeGFS file system's root directory."""

    mountpoint: str
    entry: EntryInfo


class Beegfs(msgspec.Struct, frozen=True):
    """``server_units`` are the units of the metadata and storage services that have targets, sorted."""

    services: tuple[BeegfsService, ...]
    server_units: tuple[str, ...]
    patterns: tuple[StripePattern, ...] = ()
    shared_subnets: tuple[SharedSubnet, ...] = ()
    tool: Literal["beegfs-ctl", "beegfs"] = "beegfs-ctl"
    """What sets a stripe pattern here: ``beegfs`` from release 8 on, which has no beegfs-ctl."""

    @property
    def servers(self) -> tuple[BeegfsService, ...]:
        """The metadata and storage services that have targets."""
        return tuple(one for one in self.services if one.targets)


def read_beegfs(
    host: Host, links: Sequence[Link], disks: Sequence[Disk], arrays: Sequence[Array], unknown: Unknowns
) -> Beegfs | None:
    """What BeeGFS there is on this host; None where there is no configuration file of it."""
    mounts = _read_mounts(host)
    mounted = tuple(mount for mount in mounts if mount.kind == "beegfs")
    files = tuple(_find_files(host, unknown, tuple(file for one in mounted if (file := _client_file(one)))))
    if not files and not mounted:
        return None
    places = _Places(host, mounts, disks, arrays)
    found = tuple(_make_service(host, path, instance, kind, places, unknown) for path, instance, kind in files)
    services = _with_units(host, found, unknown)
    units = sorted(one.unit for one in services if one.targets and one.unit)
    patterns, tool = _read_patterns(host, mounts, unknown)
    return Beegfs(services, tuple(units), patterns, read_shared_subnets(host, links), tool)


def _client_file(mount: Mount) -> str | None:
    """The configuration file that a mounted file system names (cfgFile=), where it is below /etc/beegfs."""
    found = re.search(r"(?:^|,)cfgFile=([^,]+)", mount.options)
    is_plain = found and _INTERFACES_FILE.fullmatch(found[1]) and "auth" not in found[1].lower()
    return found[1] if found and is_plain else None


def _find_files(host: Host, unknown: Unknowns, of_mounts: Sequence[str] = ()) -> Iterator[tuple[str, str | None, Kind]]:
    """Path, instance and kind of each configuration file, by path; ``of_mounts`` are clients' whatever their names."""
    directories: list[tuple[str, str | None]] = [(BEEGFS, None)]
    found: list[tuple[str, str | None, Kind]] = []
    for name in host.names(BEEGFS):
        if instance := _INSTANCE.fullmatch(name):
            directories.append((f"{BEEGFS}/{name}", instance[1]))
    for directory, owner in directories:
        for name in host.names(directory):
            if file := _FILE.fullmatch(name):
                found.append((f"{directory}/{name}", owner, cast(Kind, file[1].partition("-")[0])))
    known = {path for path, _, _ in found}
    found += [(path, None, "client") for path in dict.fromkeys(of_mounts) if path not in known]
    if len(found) > MAX_FILES:
        unknown.note("beegfs.services", f"{len(found)} configuration files, of which {MAX_FILES} were read")
    yield from sorted(found)[:MAX_FILES]


def _make_service(
    host: Host, path: str, instance: str | None, kind: Kind, places: _Places, unknown: Unknowns
) -> BeegfsService:
    text = unknown.value(f"beegfs.{path}", host.read(path))
    settings = parse_beegfs_conf(text) if text is not None else {}
    name = f"beegfs-{kind}"
    return BeegfsService(
        kind=kind,
        instance=instance,
        path=path,
        unit=None if kind == "client" else f"{name}@{instance}.service" if instance else f"{name}.service",
        settings=settings,
        targets=tuple(map(places.target, _target_directories(kind, settings))),
        interfaces=_read_interfaces(host, path, settings.get("connInterfacesFile", ""), unknown),
    )


def _target_directories(kind: Kind, settings: Mapping[str, str]) -> Iterator[str]:
    listed = settings.get(_DIRECTORY.get(kind, ""), "").split(",")
    paths = (path.strip().rstrip("/") or path.strip() for path in listed)
    yield from [path for path in paths if path.startswith("/")][:MAX_TARGETS]


def _read_interfaces(host: Host, path: str, file: str, unknown: Unknowns) -> tuple[str, ...] | None:
    """The links of a connInterfacesFile, which is only read where such files lie: a scan opens nothing else that a
    configuration file names."""
    if not file:
        return None
    if not _INTERFACES_FILE.fullmatch(file) or "auth" in file.lower():
        unknown.note(f"beegfs.{path}.interfaces", f"{file[:80]} is not below {BEEGFS}, so it is not read")
        return None
    text = host.read(file)
    if isinstance(text, Missing):
        unknown.note(f"beegfs.{path}.interfaces", f"{file}: {text.why}")
        return None
    return tuple(map(printable, parse_interfaces_file(text)))


def _with_units(host: Host, found: Iterable[BeegfsService], unknown: Unknowns) -> tuple[BeegfsService, ...]:
    listed = tuple(found)
    units = tuple(dict.fromkeys(one.unit for one in listed if one.targets and one.unit))
    known = {one.unit: read_memory_policy(host, one) for one in read_services(host, units, unknown)}
    return tuple(
        msgspec.structs.replace(one, service=known.get(one.unit)) if one.targets and one.unit else one for one in listed
    )


def _read_mounts(host: Host) -> tuple[Mount, ...]:
    mounts = read_mounts(host)
    return () if isinstance(mounts, Missing) else mounts


def _read_patterns(
    host: Host, mounts: Iterable[Mount], unknown: Unknowns
) -> tuple[tuple[StripePattern, ...], Literal["beegfs-ctl", "beegfs"]]:
    """Stripe patterns, and the tool that told them, or that is there."""
    targets = tuple(dict.fromkeys(mount.target for mount in mounts if mount.kind == "beegfs"))[:MAX_MOUNTS]
    is_new = any(map(host.exists, _NEW_TOOL))
    found = []
    for target in targets:
        done = host.run(entry_command(target), timeout=ENTRY_SECONDS)
        if isinstance(done, Missing) and done.is_absent:
            done = host.run(new_entry_command(target), timeout=ENTRY_SECONDS)
            is_new = is_new or not isinstance(done, Missing)
        entry = None if isinstance(done, Missing) or not done.ok else parse_entry_info(done.stdout)
        if entry is not None:
            found.append(StripePattern(printable(target), entry))
        elif isinstance(done, Missing):
            unknown.note(f"beegfs.{printable(target)}.pattern", f"neither beegfs-ctl nor beegfs tells it: {done.why}")
    return tuple(found), "beegfs" if is_new else "beegfs-ctl"


def entry_command(mountpoint: str) -> tuple[str, ...]:
    """The command that prints the stripe pattern of a directory; it changes nothing."""
    return ("beegfs-ctl", "--getentryinfo", f"--mount={mountpoint}", mountpoint)


def new_entry_command(mountpoint: str) -> tuple[str, ...]:
    """The same of BeeGFS 8, in the form of the old tool."""
    return ("beegfs", "entry", "info", "--retro", mountpoint)


class _Places:
    """Which mount, device, array and disks a path lies on."""

    def __init__(self, host: Host, mounts: Iterable[Mount], disks: Sequence[Disk], arrays: Sequence[Array]) -> None:
        self._names = BlockNames(host)
        # What was mounted last on a mount point hides what was mounted there before.
        self._mounts = {mount.target: mount for mount in mounts}
        self._arrays = {array.device: array for array in arrays}
        self._nodes = {disk.name: disk.numa_node for disk in disks}
        self._below = {name: disk.name for disk in disks for name in (*disk.holders, *disk.partitions, disk.name)}

    def target(self, path: str) -> BeegfsTarget:
        mount = self._mount_of(path)
        device = next(iter(mounts_by_device([mount], self._names)), None) if mount else None
        array = self._array_of(device) if device else None
        disk = self._below.get(device) if device and array is None else None
        disks = array.disks if array else (disk,) if disk else ()
        nodes = array.numa_nodes if array else tuple(self._nodes[name] for name in disks)
        return BeegfsTarget(
            path=printable(path),
            mountpoint=printable(mount.target) if mount else None,
            filesystem=mount.kind if mount else None,
            device=device,
            array=array.name if array else None,
            level=array.level if array else None,
            disks=disks,
            numa_nodes=tuple(sorted({node for node in nodes if node is not None})),
        )

    def _mount_of(self, path: str) -> Mount | None:
        while path:
            if path in self._mounts:
                return self._mounts[path]
            path = path.rpartition("/")[0]
        return self._mounts.get("/")

    def _array_of(self, device: str) -> Array | None:
        partition = re.fullmatch(r"(.+)p[0-9]+", device, re.ASCII | re.DOTALL)
        return self._arrays.get(device) or (self._arrays.get(partition[1]) if partition else None)
