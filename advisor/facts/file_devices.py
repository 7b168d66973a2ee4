"""Which block devices hold a file: the mount that it lies on, through overlays, down to devices.

Source: Linux Documentation/ABI/testing/sysfs-block-loop (``loop/backing_file``), filesystems/overlayfs.rst
(``upperdir=``, ``lowerdir=``), fs/btrfs/sysfs.c (``/sys/fs/btrfs/UUID/devices``), proc_pid_mountinfo(5).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from advisor.facts.block import BlockNames
from advisor.facts.mounts import Mount, mounts_by_device
from advisor.host import Host

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
