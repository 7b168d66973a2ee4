"""What ``--target`` may stand on."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from advisor.errors import PermissionDeniedError, RefusedError
from advisor.host import Host, live_host
from advisor.proof.target import is_remote, mount_of, parse_mountinfo, read_target
from tests.cases import read_cases
from tests.known import known

from .fakes import calm_host

DATA = read_cases(__file__)

MOUNTS = DATA["MOUNTS"]


def test_mountinfo_with_optional_fields_escapes_and_garbage() -> None:
    mounts = parse_mountinfo(MOUNTS)
    assert [mount.file_system for mount in mounts] == ["ext4", "xfs", "nfs4", "tmpfs", "ext4"]
    assert mounts[2].mount_point == "/mnt/with blank"
    assert mounts[2].source == "server:/export"
    assert "ro" in mounts[1].options


@pytest.mark.parametrize(("path", "source"), DATA["the_longest_and_last_mount_holds_a_path"])
def test_the_longest_and_last_mount_holds_a_path(path: str, source: str) -> None:
    found = known(mount_of(parse_mountinfo(MOUNTS), path))
    assert found.source == source


def mounted_as(tmp_path: Path, kind: str, **files: str) -> Host:
    line = f"27 1 0:99 / / rw,relatime - {kind} /dev/mapper/data rw\n"
    return calm_host(tmp_path / "tree", proc__self__mountinfo=line, **files)


@pytest.mark.parametrize(
    "kind", ["tmpfs", "devtmpfs", "overlay", "ramfs", "proc", "sysfs", "cgroup2", "squashfs", "hugetlbfs", "devpts"]
)
def test_what_is_no_storage_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    with pytest.raises(RefusedError, match=kind) as caught:
        read_target(mounted_as(tmp_path, kind), str(tmp_path))
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("path", ["/dev", "/proc", "/sys"])
def test_the_kernel_s_own_file_systems_are_refused(path: str) -> None:
    with pytest.raises(RefusedError):
        read_target(live_host(), path)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "nfs4", "beegfs", "vxfs"])
def test_storage_is_taken(tmp_path: Path, kind: str) -> None:
    found = read_target(mounted_as(tmp_path, kind), str(tmp_path))
    assert (found.file_system, found.path) == (kind, str(tmp_path))
    assert found.size_bytes > found.free_bytes > 0


def test_what_is_no_place_for_a_measurement(tmp_path: Path) -> None:
    line = "27 1 254:0 / / ro,relatime - ext4 /dev/vda rw\n"
    with pytest.raises(RefusedError, match="read-only"):
        read_target(calm_host(tmp_path / "tree", proc__self__mountinfo=line), str(tmp_path))
    host = calm_host(tmp_path / "tree")
    (tmp_path / "tree/proc/self/mountinfo").unlink()
    with pytest.raises(RefusedError, match="mountinfo"):
        read_target(host, str(tmp_path))


def test_what_is_no_directory_is_refused(host: Host, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for place in (file, pipe, tmp_path / "socket"):
            with pytest.raises(RefusedError, match="not a directory"):
                read_target(host, str(place))
    with pytest.raises(RefusedError, match="No such file"):
        read_target(host, str(tmp_path / "missing"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_this_user_may_not_write_is_a_matter_of_permission(host: Host, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(PermissionDeniedError) as caught:
        read_target(host, str(tmp_path / "locked"))
    assert caught.value.exit_code == 6


def test_devices_behind_a_source_or_none(tmp_path: Path) -> None:
    host = mounted_as(tmp_path, "btrfs", proc__diskstats=" 253 7 dm-7 1 0 8 0 2 0 16 0 0 0 0\n")
    mapper = tmp_path / "tree/dev/mapper"
    mapper.mkdir(parents=True)
    (tmp_path / "tree/dev/dm-7").touch()
    (mapper / "data").symlink_to("../dm-7")
    assert read_target(host, str(tmp_path)).device == "dm-7"
    host = mounted_as(tmp_path, "nfs4", proc__diskstats="   8       0 sda 1 0 8 0 2 0 16 0 0 0 0\n")
    assert read_target(host, str(tmp_path)).device is None


def test_block_devices_behind_a_network_are_found_through_the_mapper(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    scsi = tree / "sys/devices/platform/host3/session1/target3:0:0/3:0:0:0/block/sdb"
    local = tree / "sys/devices/pci0000:00/ata1/host0/target0:0:0/0:0:0:0/block/sda"
    fabric = tree / "sys/devices/virtual/nvme-fabrics/ctl/nvme3/nvme3n1"
    for place in (scsi, local, fabric, tree / "sys/class/block/dm-0/slaves", tree / "sys/class/nvme/nvme3"):
        place.mkdir(parents=True)
    for place in (scsi, local, fabric):
        (tree / "sys/class/block" / place.name).symlink_to(place)
    for place in (scsi, local, fabric):
        link = tree / "sys/class/block" / place.name
        link.unlink()
        link.symlink_to("../../" + str(place.relative_to(tree / "sys")))
    (tree / "sys/class/nvme/nvme3/transport").write_text("tcp\n")
    (tree / "sys/class/block/dm-0/slaves/sdb").symlink_to("../../sdb")
    host = calm_host(tree)
    assert is_remote(host, "sdb")
    assert is_remote(host, "dm-0")
    assert is_remote(host, "nvme3n1")
    assert not is_remote(host, "sda")
