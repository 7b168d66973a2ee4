"""The file system and the device behind ``--target``.

Sources: proc_pid_mountinfo(5); Documentation/admin-guide/iostats.rst; sysfs-class-iscsi_session, sysfs nvme transport.
"""

from __future__ import annotations

import os
import re
import stat

import msgspec

from advisor.errors import PermissionDeniedError, RefusedError
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

REFUSED_FILE_SYSTEMS = frozenset(
    {
        *("tmpfs", "devtmpfs", "ramfs", "rootfs", "hugetlbfs", "overlay", "overlayfs", "aufs", "squashfs", "iso9660"),
        *("proc", "sysfs", "cgroup", "cgroup2", "devpts", "debugfs", "tracefs", "securityfs", "configfs", "pstore"),
        *("efivarfs", "bpf", "fusectl", "mqueue", "autofs", "binfmt_misc", "nsfs", "rpc_pipefs", "erofs", "udf"),
    }
)
"""Not storage, not writable, or (overlay) a file that would be copied up to a file system we did not look at."""

NETWORK_FILE_SYSTEMS = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "beegfs", "gpfs", "glusterfs", "fuse.glusterfs", "afs"),
        *("9p", "orangefs", "fuse.sshfs", "fuse.ceph", "virtiofs", "gfs2", "ocfs2"),
        # a VxFS cluster file system may or may not be mirrored over the private links; the user's word stands
        "vxfs",
    }
)


class TargetMount(msgspec.Struct, frozen=True):
    """One line of mountinfo."""

    device_number: str
    mount_point: str
    file_system: str
    source: str
    options: tuple[str, ...]


class MeasuredTarget(msgspec.Struct, frozen=True):
    """Where the scratch file will be. ``device`` is the kernel name in diskstats, ``None`` where there is no
    block device; ``size_bytes`` and ``free_bytes`` are the file system's, ``free_bytes`` as an ordinary user's.

    ``peer_address`` is a host that is asked whether the path to it carries the MTU of an arm.
    """

    path: str
    file_system: str
    mount_point: str
    source: str
    device: str | None
    is_network: bool
    size_bytes: int
    free_bytes: int
    peer_address: str | None = None


_NETWORK_DEVICES = lazy_regex(r"(?:drbd|nbd|rbd)[0-9]+(?:p[0-9]+)?|etherd!.*")
"""Block devices that are another host's, or mirrored to one: DRBD, NBD, Ceph RBD, ATA over Ethernet."""

_MIRRORED = ("/dev/vx/", "/dev/drbd")
"""Volumes that may be mirrored to another node: VxVM's over LLT, and DRBD's."""


def parse_mountinfo(text: str) -> tuple[TargetMount, ...]:
    """Mounts in the order in which they were made; lines that are not whole are left out."""
    mounts = []
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        fields, tail = before.split(" "), after.split(" ")
        if separator and len(fields) >= 6 and len(tail) >= 3:
            options = (*fields[5].split(","), *tail[2].split(","))
            mounts.append(
                TargetMount(fields[2], _unescape_octal(fields[4]), tail[0], _unescape_octal(tail[1]), options)
            )
    return tuple(mounts)


def _unescape_octal(text: str) -> str:
    # the kernel writes blank, tab, newline and backslash as three octal digits
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def mount_of(mounts: tuple[TargetMount, ...], path: str) -> TargetMount | None:
    """The mount that an absolute path without symbolic links lies on: the longest mount point, the last one made."""
    found: TargetMount | None = None
    for mount in mounts:
        prefix = mount.mount_point.rstrip("/") + "/"
        if (path + "/").startswith(prefix) and (found is None or len(mount.mount_point) >= len(found.mount_point)):
            found = mount
    return found


def diskstats_names(text: str) -> dict[str, str]:
    """``major:minor`` to kernel name."""
    rows = (line.split() for line in text.splitlines())
    return {f"{row[0]}:{row[1]}": row[2] for row in rows if len(row) >= 3}


def read_target(host: Host, path: str) -> MeasuredTarget:
    """What ``--target`` stands on. Raises RefusedError for anything but a writable directory on real storage."""
    real = os.path.realpath(path)
    _require_directory(path, real)
    mount = _require_mount(host, real)
    if mount.file_system in REFUSED_FILE_SYSTEMS:
        raise RefusedError(
            f"{path} lies on {mount.file_system} (mounted at {mount.mount_point}), which is no storage to measure",
            hint="choose a directory on the file system whose speed matters",
        )
    if "ro" in mount.options:
        raise RefusedError(f"{path} lies on {mount.mount_point}, which is mounted read-only")
    if not os.access(real, os.W_OK | os.X_OK):
        raise PermissionDeniedError(
            f"{path} is not writable for this user", hint="run it as root, or choose another directory"
        )
    space = os.statvfs(real)
    st_dev = os.stat(real).st_dev
    text = host.read("/proc/diskstats")
    names = {} if isinstance(text, Missing) else diskstats_names(text)
    device = names.get(f"{os.major(st_dev)}:{os.minor(st_dev)}") or _mounted_device(host, mount)
    return MeasuredTarget(
        path=real,
        file_system=mount.file_system,
        mount_point=mount.mount_point,
        source=mount.source,
        device=device,
        is_network=mount.file_system in NETWORK_FILE_SYSTEMS
        or mount.source.startswith(_MIRRORED)
        or (device is not None and is_remote(host, device)),
        size_bytes=space.f_blocks * space.f_frsize,
        free_bytes=space.f_bavail * space.f_frsize,
    )


def _require_directory(path: str, real: str) -> None:
    try:
        mode = os.stat(real).st_mode
    except OSError as error:
        raise RefusedError(
            f"{path}: {os.strerror(error.errno or 0)}", hint="--target takes an existing directory"
        ) from None
    if stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
        raise RefusedError(
            f"{path} is a device: writing to it would destroy what is on it",
            hint="--target takes a directory on a mounted file system; the scratch file is made inside it. An unused"
            " disk itself is read with --raw-device",
        )
    if not stat.S_ISDIR(mode):
        raise RefusedError(f"{path} is not a directory", hint="the scratch file is made inside a directory")


def _require_mount(host: Host, real: str) -> TargetMount:
    text = host.read("/proc/self/mountinfo")
    if isinstance(text, Missing):
        raise RefusedError(f"/proc/self/mountinfo {text.why}: cannot determine on which file system {real} lies")
    mount = mount_of(parse_mountinfo(text), real)
    if mount is None:
        raise RefusedError(f"no mount in /proc/self/mountinfo holds {real}")
    return mount


def _mounted_device(host: Host, mount: TargetMount) -> str | None:
    text = host.read("/proc/diskstats")
    if isinstance(text, Missing):
        return None
    names = diskstats_names(text)
    found = names.get(mount.device_number)
    if found is None and mount.source.startswith("/dev/"):
        # btrfs and others have an anonymous device number; the source names the block device
        real = host.real(mount.source)
        name = mount.source if isinstance(real, Missing) else real
        found = next((known for known in names.values() if known == name.rpartition("/")[2]), None)
    return found


def is_remote(host: Host, device: str, depth: int = 8) -> bool:
    """Whether a block device, or one that it is made of, is reached over a network: iSCSI, NVMe over fabrics, DRBD,
    NBD, RBD, or a file on a network file system."""
    if _NETWORK_DEVICES.fullmatch(device):
        return True
    real = host.real(f"/sys/class/block/{device}")
    if not isinstance(real, Missing):
        if re.search(r"/session[0-9]+/", real):
            return True
        if any(
            (host.read(f"/sys/class/nvme/{name}/transport") in ("tcp", "rdma", "fc"))
            for name in _nvme_controllers(host, device, real)
        ):
            return True
    mount = backing_mount(host, device)
    if mount is not None and mount.file_system in NETWORK_FILE_SYSTEMS:
        return True
    return depth > 0 and any(is_remote(host, member, depth - 1) for member in lower_devices(host, device))


def lower_devices(host: Host, device: str) -> tuple[str, ...]:
    """The devices that one lies on directly: its members, the disk of a partition, the device below a loop's file, and
    the other paths of an NVMe namespace."""
    found = list(host.names(f"/sys/class/block/{device}/slaves"))
    if not isinstance(host.read(f"/sys/class/block/{device}/partition"), Missing):
        place = host.real(f"/sys/class/block/{device}")
        found += [] if isinstance(place, Missing) else [place.rstrip("/").split("/")[-2]]
    mount = backing_mount(host, device)
    below = None if mount is None else _mounted_device(host, mount)
    namespace = re.fullmatch(r"nvme([0-9]+)n([0-9]+)", device)
    if namespace:
        path = re.compile(rf"nvme{namespace[1]}c[0-9]+n{namespace[2]}")
        found += [name for name in host.names("/sys/class/block") if path.fullmatch(name)]
    return tuple(found if below is None else [*found, below])


def backing_mount(host: Host, device: str) -> TargetMount | None:
    """The mount that holds the file behind a loop device; None where there is none or it is unknown."""
    path = host.read(f"/sys/class/block/{device}/loop/backing_file")
    text = host.read("/proc/self/mountinfo")
    if isinstance(path, Missing) or isinstance(text, Missing):
        return None
    return mount_of(parse_mountinfo(text), path)


def _nvme_controllers(host: Host, device: str, real: str) -> set[str]:
    """NVMe controllers of a namespace: the one it lies below, or all paths of a native multipath head."""
    siblings = host.names(f"/sys/class/block/{device}/device")
    return {name for name in (*real.split("/"), *siblings) if re.fullmatch(r"nvme[0-9]+", name)}
