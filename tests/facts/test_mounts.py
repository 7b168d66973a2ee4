"""Mounts of block devices: the kernel's table with its escapes, bind mounts, subvolumes and damage."""

from __future__ import annotations

import pytest

from advisor.facts.block.block import BlockNames
from advisor.facts.block.mounts import Mount, mountpoints, parse_mountinfo, parse_mounts, read_mounted, read_mounts
from advisor.host import Host, MemoryFiles, Missing, NoCommands
from tests.cases import read_cases
from tests.facts.storage import Tree
from tests.facts.test_mdstat import command_texts

DATA = read_cases(__file__)

TABLE = DATA["TABLE"]


def test_a_table() -> None:
    mounts = parse_mountinfo(TABLE)
    assert [(one.number, one.root, one.target, one.kind) for one in mounts] == DATA["a_table"]
    assert mounts[0].options == "rw,relatime,errors=remount-ro"
    assert mounts[2].options == "ro,noatime,sunit=1024"
    assert (mounts[3].source, mounts[3].options) == ("", "rw,size=1k")
    assert mounts[4].options == "ro,nosuid"


def test_the_table_without_numbers() -> None:
    (mount,) = parse_mounts("/dev/sda2 /mnt/a\\040b ext3 rw,relatime 0 0\nbroken line\n")
    assert mount == Mount(None, "/", "/mnt/a b", "ext3", "/dev/sda2", "rw,relatime")


@pytest.mark.captured
def test_captured_tables() -> None:
    assert len(parse_mountinfo(command_texts()["mount/MOUNTINFO_DATA.txt"])) == 16
    assert len(parse_mountinfo(command_texts()["mount/MOUNTINFO_DOC.txt"])) == 5
    damaged = parse_mountinfo(command_texts()["mount/MOUNTINFO_ERR_DATA.txt"])
    assert [mount.target for mount in damaged] == ["/dev", "/dev/shm", "/boot"]


def names_of(host: Host) -> dict[str, tuple[str, ...]]:
    mounted = read_mounted(host)
    assert not isinstance(mounted, Missing)
    return {device: mountpoints([device], mounted) for device in mounted}


def test_devices_by_number_by_source_and_not_at_all() -> None:
    tree = Tree()
    tree.virtual("sda", number="8:0")
    tree.number("sda1", "8:1")
    tree.virtual("sdb", number="8:16")
    tree.dm(3, "vg0-lv--data", "LVM-x", ())
    table = DATA["devices_by_number_by_source_and_not"]
    tree.files["/proc/self/mountinfo"] = table
    assert names_of(tree.host()) == DATA["devices_by_number_by_source_and_not_2"]


def test_a_capture_without_sys_dev() -> None:
    tree = Tree()
    tree.virtual("sda", number="8:0")
    tree.links.pop("/sys/dev/block/8:0")
    tree.mount("8:0", "/srv", "xfs")
    assert names_of(tree.host()) == {"sda": ("/srv",)}


def test_the_whole_file_system_comes_before_its_bind_mounts() -> None:
    tree = Tree()
    tree.virtual("sda", number="8:0")
    tree.mount("8:0", "/bind", "xfs", root="/sub")
    tree.mount("8:0", "/whole", "xfs")
    tree.mount("8:0", "/whole", "xfs")
    assert names_of(tree.host()) == {"sda": ("/whole", "/bind")}


def test_other_tables_serve_where_the_first_is_not_there() -> None:
    files = {"/proc/mounts": b"/dev/sda2 / ext3 rw 0 0\nproc /proc proc rw 0 0\n/dev/fuse /x fuse.a rw 0 0\n"}
    assert names_of(Host(MemoryFiles(files), NoCommands())) == {"sda2": ("/",)}


def test_no_table_at_all() -> None:
    host = Host(MemoryFiles({}, unreadable={"/proc/self/mountinfo": "Permission denied"}), NoCommands())
    assert read_mounts(host) == Missing("unreadable", "/proc/self/mountinfo: Permission denied")


def test_links_to_devices_are_followed() -> None:
    tree = Tree()
    tree.virtual("md127", number="9:127")
    tree.files["/dev/md127"] = ""
    tree.links["/dev/md/node0"] = "../md127"
    names = BlockNames(tree.host())
    assert names.by_path("/dev/md/node0") == "md127"
    assert names.by_path("/dev/nothing") is None
    assert names.by_path("tmpfs") is None
