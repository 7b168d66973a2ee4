"""Which devices hold a file: mounts within mounts, overlays, btrfs on several devices, what lies on none."""

from __future__ import annotations

import pytest

from advisor.facts.disks import read_disks
from advisor.facts.file_devices import FileDevices, file_devices_of_loops
from advisor.facts.mounts import parse_mountinfo
from advisor.facts.unknown import Unknowns
from advisor.host import Host, MemoryFiles, NoCommands

MOUNTS = """\
20 1 259:2 / / rw,relatime - ext4 /dev/nvme0n1p2 rw
21 20 8:16 / /srv rw - xfs /dev/sdb rw
22 20 0:40 /data /pool rw - btrfs /dev/sdc rw,subvol=/data
23 20 0:41 / /mnt/nfs rw - nfs4 filer:/vol rw
24 20 0:42 / /var/lib/docker/merged rw - overlay overlay rw,lowerdir=/usr/a:/usr/b,upperdir=/srv/upper,workdir=/srv/work
25 20 0:43 / /run rw - tmpfs tmpfs rw
26 20 0:44 / /ro ro - overlay overlay ro,lowerdir=/pool/top:/srv/bottom
27 20 0:45 / /inner rw - overlay overlay rw,lowerdir=/x,upperdir=/inner/up,workdir=/inner/work
28 20 8:17 / /old\\040disk rw - ext4 /dev/sdb1 rw
29 20 8:16 / /srv/deep rw - xfs /dev/sdb rw
"""
FILES = {
    "/proc/self/mountinfo": MOUNTS,
    **{f"/sys/block/{name}/dev": number for name, number in (("nvme0n1", "259:0"), ("sdb", "8:16"), ("sdc", "8:32"))},
    **{f"/sys/class/block/{name}/dev": number for name, number in (("nvme0n1p2", "259:2"), ("sdb1", "8:17"))},
    **{f"/sys/class/block/{name}/dev": number for name, number in (("sdb", "8:16"), ("sdc", "8:32"))},
    "/sys/fs/btrfs/features/raid56": "0",
    "/sys/fs/btrfs/3f2a/devices/sdc/uevent": "",
    "/sys/fs/btrfs/3f2a/devices/sdd/uevent": "",
    "/sys/block/loop0/loop/backing_file": "/srv/images/a file.img\n",
    "/sys/block/loop0/size": "2048",
    "/sys/block/loop1/loop/backing_file": "/pool/gone.img (deleted)\n",
    "/sys/block/loop1/size": "2048",
    "/sys/block/loop2/size": "0",
}


def _host() -> Host:
    return Host(MemoryFiles({path: text.encode() for path, text in FILES.items()}), NoCommands())


@pytest.mark.parametrize(
    ("path", "devices"),
    [
        ("/var/images/disk.img", ("nvme0n1p2",)),
        ("/srv/disk.img", ("sdb",)),
        ("/srvother/disk.img", ("nvme0n1p2",)),
        ("/old disk/disk.img", ("sdb1",)),
        ("/pool/disk.img", ("sdc", "sdd")),
        ("/var/lib/docker/merged/a/disk.img", ("sdb",)),
        ("/ro/disk.img", ("sdc", "sdd")),
        ("/inner/disk.img", ()),
        ("/mnt/nfs/disk.img", ()),
        ("/run/disk.img", ()),
    ],
)
def test_the_devices_of_a_file(path: str, devices: tuple[str, ...]) -> None:
    assert FileDevices(_host(), parse_mountinfo(MOUNTS)).find(path) == devices


def test_loop_devices_lie_on_what_holds_their_file() -> None:
    found = file_devices_of_loops(_host(), parse_mountinfo(MOUNTS))
    assert found == {"loop0": ("sdb",), "loop1": ("sdc", "sdd")}
    disks = {disk.name: disk for disk in read_disks(_host(), Unknowns())}
    assert {name: disk.file_devices for name, disk in disks.items() if disk.file_devices} == found
