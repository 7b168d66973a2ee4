"""A whole disk that is measured directly, without a file system: what is refused, and the hold on it meanwhile.

fio writes to a disk with a mounted partition and ends with status 0, and it destroys the signature of a file system
without a word. So the disk is named twice, by its path and by its serial number; it is held exclusively for as long
as it is measured, which the kernel refuses while a mount, swap space or an array uses it; fio is given the open
descriptor instead of a path; it opens it for reading alone unless writing was allowed, and that only on a disk that
holds nothing at all.

Sources: open(2), O_EXCL on block devices; blkid(8), low-level probing; Documentation/ABI/stable/sysfs-block.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec

from advisor.errors import CommandError, PermissionDeniedError, RefusedError
from advisor.facts.block import BlockNames
from advisor.facts.disks import Disk, read_disks
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing
from advisor.proof.target import MeasuredTarget, RawDevice, is_remote
from advisor.proof.workloads import Pattern

EDGE_BYTES: Final = 1 << 20
SAMPLE_BYTES: Final = 4096
SAMPLES: Final = 256
_NOTHING_FOUND: Final = 2
"""blkid's exit status where it knows nothing on the device."""
_VXVM: Final = ("vxio", "vxdmp")
NEVER_WRITTEN = (
    "a disk may answer reads of blocks that were never written without its medium: an empty one looks faster than it is"
)


# -- what is refused beforehand ----------------------------------------------------------------------------------------


def read_raw_target(host: Host, chosen: RawDevice) -> MeasuredTarget:
    """The disk as a target, looked at but not touched. Raises RefusedError for anything but an unused whole disk whose
    serial number is the one that was given."""
    path, number = _require_block_device(host, chosen.path)
    disks = read_disks(host, Unknowns())
    disk = _require_disk(host, chosen.path, number, disks)
    if disk.serial is None:
        raise RefusedError(
            (
                f"{chosen.path}: the kernel shows no serial number of {disk.name}, so it cannot be distinguished "
                "from another disk"
            ),
            hint="it can be measured through a file system: --target DIR",
        )
    if disk.serial != chosen.serial:
        raise RefusedError(
            f"{chosen.path}: its serial number is not {chosen.serial!r}",
            hint="advisor scan --json prints the serial number of each disk",
        )
    alike = [one.name for one in disks if one.serial == disk.serial and one.name != disk.name]
    if alike:
        # Where it is another path to the same disk, our hold on this one does not keep anybody from that one.
        raise RefusedError(
            f"{chosen.path}: {', '.join(alike)} has the same serial number: another path to this disk, or "
            "one that cannot be distinguished from it"
        )
    _require_unused(host, chosen.path, disk)
    if not disk.size_bytes:
        raise RefusedError(f"{chosen.path}: its size is unknown or 0")
    found = msgspec.structs.replace(chosen, path=path, name=disk.name, number=number, size_bytes=disk.size_bytes)
    return MeasuredTarget(
        path=path,
        file_system="raw device",
        mount_point="",
        source=path,
        device=disk.name,
        is_network=is_remote(host, disk.name),
        size_bytes=disk.size_bytes,
        free_bytes=0,
        raw=found,
    )


def permit_writes(raw: RawDevice, workloads: Iterable[Pattern]) -> RawDevice:
    """The disk with the permission to write where a workload needs it, and else without. Raises RefusedError where it
    is needed and was not given."""
    writing = [workload.name for workload in workloads if workload.is_writing]
    if writing and not raw.may_write:
        raise RefusedError(
            f"{writing[0]} would write to {raw.path} itself",
            hint="--workload names one that reads; --allow-raw-writes permits writing to a disk that holds nothing",
        )
    return msgspec.structs.replace(raw, may_write=bool(writing))


def _require_block_device(host: Host, path: str) -> tuple[str, tuple[int, int]]:
    real = host.real(path)
    try:
        if isinstance(real, Missing):
            raise RefusedError(f"{path}: {real.why}", hint="--raw-device takes the device node of a disk")
        found = os.stat(host.locate(real), follow_symlinks=False)
    except OSError as error:
        raise RefusedError(f"{path}: {os.strerror(error.errno or 0)}") from None
    if not stat.S_ISBLK(found.st_mode):
        raise RefusedError(f"{path} is no block device", hint="for a file system: --target DIR")
    return real, (os.major(found.st_rdev), os.minor(found.st_rdev))


def _require_disk(host: Host, path: str, number: tuple[int, int], disks: Sequence[Disk]) -> Disk:
    name = BlockNames(host).by_number(f"{number[0]}:{number[1]}")
    disk = next((one for one in disks if one.name == name), None)
    if disk is None:
        raise RefusedError(
            f"{path} ({name or 'unknown to the kernel'}) is no whole disk",
            hint="a partition, volume, array or multipath map is measured through a directory: --target DIR",
        )
    return disk


def _require_unused(host: Host, path: str, disk: Disk) -> None:
    """Also without these the exclusive hold would fail; they say why."""
    if disk.mountpoints:
        raise RefusedError(f"{path} is in use: mounted at {', '.join(disk.mountpoints)}", hint="--target DIR")
    if disk.holders:
        raise RefusedError(f"{path} is in use: {', '.join(disk.holders)} is made of it (md, LVM, multipath, crypt)")
    swaps = host.read("/proc/swaps")
    if isinstance(swaps, Missing) and not swaps.is_absent:
        raise RefusedError(f"/proc/swaps {swaps.why}: cannot determine whether {path} is swap space")
    if not isinstance(swaps, Missing):
        names = BlockNames(host)
        used = {names.by_path(line.split()[0]) for line in swaps.splitlines()[1:] if line.split()}
        if used & {disk.name, *disk.partitions}:
            raise RefusedError(f"{path} is in use: swap space")


# -- the hold ----------------------------------------------------------------------------------------------------------


class HeldDevice:
    """A disk that is held exclusively until `remove`; stands where a scratch file does."""

    def __init__(self, raw: RawDevice, descriptor: int) -> None:
        self._raw = raw
        self._descriptor = descriptor

    @property
    def file_name(self) -> str:
        """What fio opens: our descriptor's device, whatever the path has become meanwhile."""
        return f"/proc/{os.getpid()}/fd/{self._descriptor}"

    @property
    def is_read_only(self) -> bool:
        return not self._raw.may_write

    @contextmanager
    def opened(self) -> Iterator[int]:
        """A directory for fio to start in, after the check that the device is still there."""
        _require_same(self._raw, self._descriptor)
        root = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield root
        finally:
            os.close(root)

    def after_remount(self) -> HeldDevice:
        """The same: nothing of it is mounted."""
        return self

    def remove(self) -> None:
        """Let go of the device."""
        os.close(self._descriptor)


def hold_device(host: Host, raw: RawDevice) -> HeldDevice:
    """Take a disk for this process alone. Raises RefusedError where somebody else has it, or where it may be written to
    and holds anything; PermissionDeniedError."""
    place = host.locate(raw.path)
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC)
    except PermissionError as error:
        raise PermissionDeniedError(f"{raw.path}: {error.strerror}", hint="a disk is read as root") from None
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise RefusedError(f"{raw.path} is in use: somebody holds it, or a part of it, exclusively") from None
        raise RefusedError(f"{raw.path}: {os.strerror(error.errno or 0)}") from None
    try:
        _require_same(raw, descriptor)
        if raw.may_write:
            _require_empty(host, raw, descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return HeldDevice(raw, descriptor)


def _require_same(raw: RawDevice, descriptor: int) -> None:
    found = os.fstat(descriptor)
    if not stat.S_ISBLK(found.st_mode) or (os.major(found.st_rdev), os.minor(found.st_rdev)) != raw.number:
        raise RefusedError(f"{raw.path} is not the device that was looked at")
    try:
        size_bytes = os.lseek(descriptor, 0, os.SEEK_END)
    except OSError as error:
        raise CommandError(f"{raw.path}: {os.strerror(error.errno or 0)}") from None
    if size_bytes != raw.size_bytes:
        raise RefusedError(f"{raw.path} has {size_bytes} bytes instead of {raw.size_bytes}")


def _require_empty(host: Host, raw: RawDevice, descriptor: int) -> None:
    """What is on it is asked three times: the kernel knows partitions, blkid signatures, and what neither knows (the
    private region of a volume manager, a database's raw data) is no zeros."""
    disk = _require_disk(host, raw.path, raw.number, read_disks(host, Unknowns()))
    _require_unused(host, raw.path, disk)
    if disk.partitions:
        raise _refuse_content(raw, f"partitions ({', '.join(disk.partitions)})")
    loaded = [name for name in _VXVM if host.is_dir(f"/sys/module/{name}")]
    if loaded:
        raise RefusedError(
            f"{raw.path}: VxVM is loaded ({', '.join(loaded)}), and which disks are its own is not known"
        )
    done = host.run(["blkid", "--probe", host.locate(raw.path)])
    if isinstance(done, Missing):
        raise RefusedError(
            f"{raw.path}: cannot determine whether it holds a file system: {done.why}", hint="install blkid"
        )
    if done.rc != _NOTHING_FOUND or done.stdout.strip():
        words = done.stdout.strip().partition(": ")[2] or done.stderr.strip() or f"blkid ended with status {done.rc}"
        raise _refuse_content(raw, f"something: {words[:200]}")
    for start, length in _sample_places(raw.size_bytes):
        try:
            if os.pread(descriptor, length, start).strip(b"\0"):
                raise _refuse_content(raw, f"data (at byte {start} and on)")
        except OSError as error:
            raise CommandError(f"{raw.path}: {os.strerror(error.errno or 0)}") from None


def _sample_places(size_bytes: int) -> Iterator[tuple[int, int]]:
    """Both ends, where signatures and tables are, and places between them."""
    edge = min(EDGE_BYTES, size_bytes)
    yield from ((0, edge), (size_bytes - edge, edge))
    step = size_bytes // (SAMPLES + 1) // SAMPLE_BYTES * SAMPLE_BYTES
    if step:
        yield from ((number * step, SAMPLE_BYTES) for number in range(1, SAMPLES + 1))


def _refuse_content(raw: RawDevice, what: str) -> RefusedError:
    return RefusedError(
        f"{raw.path} holds {what}: it is not written to",
        hint="leave --allow-raw-writes out to read it alone; one that is no longer needed is emptied with blkdiscard",
    )
