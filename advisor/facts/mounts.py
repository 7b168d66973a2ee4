"""What is mounted from which block device: ``/proc/self/mountinfo`` (proc_pid_mountinfo(5)), or ``/proc/mounts``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from advisor.facts.block import BlockNames
from advisor.host import Host, Missing, is_count, lazy_regex

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
