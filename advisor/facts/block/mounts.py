"""What is mounted from which block device: ``/proc/self/mountinfo`` (proc_pid_mountinfo(5)), or ``/proc/mounts``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from advisor.facts.block.block import BlockNames
from advisor.host import Host, Missing, is_count, lazy_regex
from advisor.host.missing import read_statvfs

# Several devices or subvolumes under one anonymous device number: only the mount source says which device.
ANONYMOUS_KINDS = frozenset({"btrfs", "bcachefs"})
_ESCAPE = lazy_regex(r"\\([0-7]{3})")


class Mount(msgspec.Struct, frozen=True):
    """One mount point. ``number`` is the device number, None where only ``/proc/mounts`` was captured.

    ``root`` is the directory of the file system that is mounted, ``/`` unless it is a bind mount or a subvolume;
    ``options`` holds those of the mount point, then those of the file system, each once.
    """

    number: str | None
    root: str
    target: str
    kind: str
    source: str
    options: str


@lru_cache(maxsize=1)  # a scan asks for the same table six times
def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """Mounts in the kernel's order. Lines that are cut or damaged are left out."""
    found = (_mountinfo_line(line.split()) for line in text.replace("\0", " ").splitlines())
    return tuple(mount for mount in found if mount)


def _mountinfo_line(words: list[str]) -> Mount | None:
    if len(words) < 8 or "-" not in words[6:] or not _is_device_number(words[2]):
        return None
    tail = words[words.index("-", 6) + 1 :]
    if not tail:
        return None
    # An empty source is printed as nothing at all, so two words are kind and options.
    source = tail[1] if len(tail) > 2 else ""
    options = _merge_options(words[5], tail[-1] if len(tail) > 1 else "")
    return Mount(
        words[2], _unescape_octal(words[3]), _unescape_octal(words[4]), tail[0], _unescape_octal(source), options
    )


def _is_device_number(text: str) -> bool:
    major, _, minor = text.partition(":")
    return is_count(major) and is_count(minor)


def parse_mounts(text: str) -> tuple[Mount, ...]:
    """The same from ``/proc/mounts`` (fstab(5) format), which names no device numbers."""
    lines = (line.split() for line in text.replace("\0", " ").splitlines())
    return tuple(
        Mount(None, "/", _unescape_octal(words[1]), words[2], _unescape_octal(words[0]), words[3])
        for words in lines
        if len(words) >= 4
    )


def _unescape_octal(text: str) -> str:
    return text if "\\" not in text else _ESCAPE.sub(lambda found: chr(int(found[1], 8)), text)


def _merge_options(mount: str, superblock: str) -> str:
    options = dict.fromkeys(option for option in f"{mount},{superblock}".split(",") if option)
    if "ro" in options:
        options = dict.fromkeys(["ro", *(option for option in options if option != "rw")])
    return ",".join(options)


def read_mounts(host: Host) -> tuple[Mount, ...] | Missing:
    """Every mount that this process sees; the reason where no table can be read."""
    first: Missing | None = None
    for path, parse in (
        ("/proc/self/mountinfo", parse_mountinfo),
        ("/proc/1/mountinfo", parse_mountinfo),
        ("/proc/self/mounts", parse_mounts),
        ("/proc/mounts", parse_mounts),
    ):
        text = host.read(path)
        if not isinstance(text, Missing):
            return parse(text)
        first = first or Missing(text.state, f"{path}: {text.why}")
    assert first is not None
    return first


def mounts_by_device(mounts: Iterable[Mount], names: BlockNames) -> dict[str, tuple[Mount, ...]]:
    """Mounts of block devices by kernel name; whole file systems before bind mounts, else in the kernel's order."""
    found: dict[str, list[Mount]] = {}
    known: dict[tuple[str | None, str], str | None] = {}
    for mount in mounts:
        key = (mount.number, mount.source)
        if key not in known:
            known[key] = _resolve_device(mount, names)
        device = known[key]
        if device:
            found.setdefault(device, []).append(mount)
    return {device: tuple(sorted(those, key=lambda mount: mount.root != "/")) for device, those in found.items()}


def _resolve_device(mount: Mount, names: BlockNames) -> str | None:
    if mount.number is None:
        is_network = mount.kind.startswith(("fuse.", "nfs"))
        return names.by_path(mount.source) or _unresolved_device(mount.source) if not is_network else None
    if not mount.number.startswith("0:"):
        return names.by_number(mount.number) or names.by_path(mount.source) or _unresolved_device(mount.source)
    return names.by_path(mount.source) if mount.kind in ANONYMOUS_KINDS else None


def _unresolved_device(source: str) -> str | None:
    # A captured table without the device it names: the name is all there is.
    return source.removeprefix("/dev/") if source.startswith("/dev/") else None


def mountpoints(devices: Iterable[str], mounted: Mapping[str, tuple[Mount, ...]]) -> tuple[str, ...]:
    """Mount points of these devices, each once."""
    return tuple(dict.fromkeys(mount.target for device in devices for mount in mounted.get(device, ())))


def read_mounted(host: Host) -> dict[str, tuple[Mount, ...]] | Missing:
    """Mounts of block devices by kernel name."""
    mounts = read_mounts(host)
    return mounts if isinstance(mounts, Missing) else mounts_by_device(mounts, BlockNames(host))


# Which block devices hold a file: the mount that it lies on, through overlays, down to devices.

_BTRFS = "/sys/fs/btrfs"
_DELETED = " (deleted)"
_MOST_LAYERS = 8
"""Of overlays on overlays. A container sees paths of its host that mean something else there: no end without it."""


class FileDevices:
    """Devices below paths of one host. ``mounts`` are in the order of the kernel: the last one of a place counts."""

    def __init__(self, host: Host, mounts: tuple[Mount, ...]) -> None:
        self._host = host
        self._names = BlockNames(host)
        self._by_target = {mount.target.rstrip("/"): mount for mount in mounts}

    def find(self, path: str) -> tuple[str, ...]:
        """The kernel names of the devices, partitions among them, that hold a path; none where it lies on none (a file
        system in memory or of a network), or where that is unknown. The file itself need not exist here."""
        for _ in range(_MOST_LAYERS):
            mount = self._mount_of(path)
            if mount is None:
                return ()
            if mount.kind != "overlay":
                return self._devices_of(mount)
            layer = _writable_layer(mount)
            if layer is None or self._mount_of(layer) is mount:
                return ()
            path = layer
        return ()

    def below_loop(self, name: str) -> tuple[str, ...]:
        """The same of the file behind a loop device."""
        path = self._host.read_or_empty(f"/sys/block/{name}/loop/backing_file").strip("\n")
        return self.find(path.removesuffix(_DELETED)) if path.startswith("/") else ()

    def _mount_of(self, path: str) -> Mount | None:
        while path and path not in self._by_target:
            path = path.rpartition("/")[0]
        return self._by_target.get(path)

    def _devices_of(self, mount: Mount) -> tuple[str, ...]:
        device = next(iter(mounts_by_device((mount,), self._names)), None)
        if device is None or mount.kind != "btrfs":
            return () if device is None else (device,)
        members = (self._host.names(f"{_BTRFS}/{uuid}/devices") for uuid in self._host.names(_BTRFS))
        return next((found for found in members if device in found), (device,))


def _writable_layer(mount: Mount) -> str | None:
    """The directory of an overlay into which changes go; of one that is only read its uppermost layer."""
    given = dict(word.partition("=")[::2] for word in mount.options.split(","))
    layer: str | None = given.get("upperdir") or re.split(r"(?<!\\):", given.get("lowerdir", ""))[0]
    return layer if layer and layer.startswith("/") else None


def file_devices_of_loops(host: Host, mounts: tuple[Mount, ...]) -> Mapping[str, tuple[str, ...]]:
    """What each loop device of a host lies on; those of which nothing is known are left out."""
    loops = [name for name in host.names("/sys/block") if name.startswith("loop")]
    used = [name for name in loops if host.exists(f"/sys/block/{name}/loop/backing_file")]
    devices = FileDevices(host, mounts) if used else None
    found = {name: devices.below_loop(name) for name in used} if devices else {}
    return {name: below for name, below in found.items() if below}


# How full file systems are: those of kinds that lie on devices of one host, as others may not answer.

DF = ("df", "--local", "--block-size=1", "--output=fstype,size,used,avail,itotal,iavail,target")
KINDS = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "reiserfs", "bcachefs"})
_ROW = lazy_regex(r"(\S+) +(\S+) +(\S+) +(\S+) +(\S+) +(\S+) +(/.*)")
_MAX_ROWS = 4096


class Space(msgspec.Struct, frozen=True):
    """Bytes and inodes of a file system; inodes are 0 where it has no fixed number of them. ``available_bytes`` is
    what an ordinary user may still write."""

    kind: str
    used_bytes: int
    available_bytes: int
    inodes: int
    free_inodes: int

    @property
    def used_share(self) -> float:
        """As df prints it: of what ordinary users may have."""
        whole = self.used_bytes + self.available_bytes
        return self.used_bytes / whole if whole else 0.0

    @property
    def inodes_used_share(self) -> float | None:
        return 1 - self.free_inodes / self.inodes if self.inodes else None


def read_spaces(
    host: Host, mounts: tuple[Mount, ...] | Missing | None = None, kinds: frozenset[str] = KINDS
) -> dict[str, Space] | Missing:
    """File systems of these kinds by mount point; why none is known of a captured host without an answer of df.
    ``mounts`` are those of the host, where they have been read."""
    if not host.asks_kernel:
        done = host.run(DF)
        return done if isinstance(done, Missing) else parse_df(done.stdout, kinds)
    mounts = read_mounts(host) if mounts is None else mounts
    if isinstance(mounts, Missing):
        return mounts
    found = {}
    seen: set[str | None] = set()
    for mount in mounts[:_MAX_ROWS]:
        if mount.kind in kinds and mount.number not in seen:
            seen.add(mount.number)
            space = read_statvfs(mount.target)
            if not isinstance(space, Missing):
                found[mount.target] = Space(mount.kind, *space)
    return found


def parse_df(text: str, kinds: frozenset[str] = KINDS) -> dict[str, Space]:
    """File systems by mount point, from `DF`; rows of other kinds, and those that df could not fill, are left out."""
    found = {}
    for line in text.split("\n")[: _MAX_ROWS + 1]:
        row = _ROW.fullmatch(line) if len(line) < 5000 else None
        if row is None or row[1] not in kinds or not all(map(is_count, row.groups()[2:4])):
            continue
        inodes, free = (int(word) if is_count(word) else 0 for word in row.groups()[4:6])
        used, available = int(row[3]), int(row[4])
        if max(used, available, inodes, free) < 1 << 63 and free <= inodes:
            found[row[7]] = Space(row[1], used, available, inodes, free)
    return found
