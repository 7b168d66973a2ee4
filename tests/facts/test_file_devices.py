"""Which devices hold a file: mounts within mounts, overlays, btrfs on several devices, what lies on none."""

from __future__ import annotations

import pytest

from advisor.facts.block.disks import read_disks
from advisor.facts.block.mounts import FileDevices, file_devices_of_loops, parse_mountinfo
from advisor.facts.unknown import Unknowns
from advisor.host import Host, MemoryFiles, NoCommands
from tests.cases import read_cases

DATA = read_cases(__file__)

MOUNTS = DATA["MOUNTS"]
FILES = {
    **DATA["FILES"],
    **{f"/sys/block/{name}/dev": number for name, number in (("nvme0n1", "259:0"), ("sdb", "8:16"), ("sdc", "8:32"))},
    **{f"/sys/class/block/{name}/dev": number for name, number in (("nvme0n1p2", "259:2"), ("sdb1", "8:17"))},
    **{f"/sys/class/block/{name}/dev": number for name, number in (("sdb", "8:16"), ("sdc", "8:32"))},
}


def _host() -> Host:
    return Host(MemoryFiles({path: text.encode() for path, text in FILES.items()}), NoCommands())


@pytest.mark.parametrize(("path", "devices"), DATA["the_devices_of_a_file"])
def test_the_devices_of_a_file(path: str, devices: tuple[str, ...]) -> None:
    assert FileDevices(_host(), parse_mountinfo(MOUNTS)).find(path) == devices


def test_loop_devices_lie_on_what_holds_their_file() -> None:
    found = file_devices_of_loops(_host(), parse_mountinfo(MOUNTS))
    assert found == {"loop0": ("sdb",), "loop1": ("sdc", "sdd")}
    disks = {disk.name: disk for disk in read_disks(_host(), Unknowns())}
    assert {name: disk.file_devices for name, disk in disks.items() if disk.file_devices} == found
