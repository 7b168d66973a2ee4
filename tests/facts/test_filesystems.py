"""File systems and their stripes: mount options, superblocks on arrays, udev; and real ones on a loop device."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.facts.block.block import node_path
from advisor.facts.block.filesystems import (
    MAX_SUPERBLOCKS,
    FileSystem,
    Geometry,
    option_number,
    parse_dumpe2fs,
    parse_xfs_info,
    read_filesystems,
)
from advisor.facts.unknown import Unknowns
from advisor.host import Completed, Host, LiveCommands, Missing, RecordedCommands, live_host, tree_host
from tests.cases import read_cases
from tests.facts.storage import Tree
from tests.trees import make_command, make_tree

DATA = read_cases(__file__, Completed, Geometry, Missing)

XFS_INFO = DATA["XFS_INFO"]
DUMPE2FS = DATA["DUMPE2FS"]
STAT = ("stat", "--file-system", "--format=%S %n", "--")


def scan(host: Host) -> tuple[dict[str, FileSystem], dict[str, str]]:
    unknown = Unknowns()
    found = {one.device: one for one in read_filesystems(host, unknown)}
    return found, {one.fact: one.why for one in unknown.listed()}


def geometry(one: FileSystem) -> tuple[int | None, int | None, int | None]:
    return one.block_bytes, one.stripe_unit_bytes, one.stripe_width_bytes


def test_xfs_units_are_512_bytes() -> None:
    tree = Tree()
    tree.virtual("md0", number="9:0")
    tree.virtual("vda", number="254:0")
    tree.mount("9:0", "/srv/a b".replace(" ", "\\040"), "xfs", "rw,attr2,sunit=128,swidth=256,noquota")
    tree.mount("254:0", "/", "xfs", "rw,attr2,inode64,noquota")
    tree.answer((*STAT, "/srv/a b"), "4096 /srv/a b\n")
    found, unknown = scan(tree.host())
    assert geometry(found["md0"]) == (4096, 65536, 131072)
    assert geometry(found["vda"]) == (None, 0, 0)
    assert found["md0"].options == "rw,noatime,attr2,sunit=128,swidth=256,noquota"
    assert unknown == {}


@pytest.mark.parametrize(("recorded", "expected"), [(XFS_INFO, (4096, 65536, 131072)), ("", (None, None, None))])
def test_xfs_mounted_without_alignment_hides_it(recorded: str, expected: tuple[int | None, ...]) -> None:
    tree = Tree()
    tree.virtual("md0", number="9:0")
    tree.mount("9:0", "/srv", "xfs", "rw,noalign")
    if recorded:
        tree.answer(("xfs_info", "/srv"), recorded)
    found, unknown = scan(tree.host())
    assert geometry(found["md0"]) == expected
    assert unknown == (
        {} if recorded else {"filesystems.md0.stripe_unit_bytes": "mounted with noalign, which hides it"}
    )


def test_ext4_stripes_are_blocks() -> None:
    tree = Tree()
    tree.virtual("sda", number="8:0")
    tree.virtual("sdb", number="8:16")
    tree.virtual("sdc", number="8:32")
    tree.mount("8:0", "/a", "ext4", "rw,stripe=64,data=ordered")
    tree.mount("8:16", "/b", "ext4", "rw,data=ordered")
    tree.mount("8:32", "/c", "ext3", "rw")
    tree.answer((*STAT, "/a"), "1024 /a\n")
    found, unknown = scan(tree.host())
    assert geometry(found["sda"]) == (1024, None, 65536)
    assert geometry(found["sdb"]) == (None, None, 0)
    assert geometry(found["sdc"]) == (None, None, None)
    assert unknown == {}


def striped(count: int = 1, kind: str = "ext4", options: str = "rw") -> Tree:
    tree = Tree()
    for index in range(count):
        place = tree.virtual(f"md{index}", number=f"9:{index}")
        tree.files[f"{place}/queue/optimal_io_size"] = "131072\n"
        tree.mount(f"9:{index}", f"/srv/{index}", kind, options)
        tree.answer(("dumpe2fs", "-h", f"/dev/md{index}"), DUMPE2FS)
    return tree


def test_the_superblock_of_ext4_on_an_array_is_read() -> None:
    assert geometry(scan(striped().host())[0]["md0"]) == (4096, 65536, 131072)


def test_a_partition_of_an_array_has_its_stripes() -> None:
    tree = striped()
    tree.number("md0p1", "9:77")
    tree.files["/proc/self/mountinfo"] = ""
    tree.mount("9:77", "/srv", "ext4")
    tree.answer(("dumpe2fs", "-h", "/dev/md0p1"), DUMPE2FS)
    assert geometry(scan(tree.host())[0]["md0p1"]) == (4096, 65536, 131072)


def test_a_volume_without_stripes_costs_no_process() -> None:
    tree = striped()
    tree.files["/sys/devices/virtual/block/md0/queue/optimal_io_size"] = "512\n"  # what an NVMe drive below may say
    assert geometry(scan(tree.host())[0]["md0"]) == (None, None, 0)


def test_a_superblock_needs_root() -> None:
    found, unknown = scan(striped(options="rw,stripe=32").host(is_live=True, is_root=False))
    assert geometry(found["md0"]) == (None, None, None)
    assert unknown == {"filesystems.md0.stripe_unit_bytes": "reading the superblock of ext4 needs root"}


@pytest.mark.parametrize(("answer", "why"), DATA["a_superblock_that_cannot_be_read"])
def test_a_superblock_that_cannot_be_read(answer: Completed | Missing, why: str) -> None:
    tree = striped()
    tree.answers[("dumpe2fs", "-h", "/dev/md0")] = answer
    found, unknown = scan(tree.host())
    assert geometry(found["md0"]) == (None, None, 0)
    assert unknown == {"filesystems.md0.stripe_unit_bytes": why}


def test_no_more_than_a_handful_of_superblocks() -> None:
    found, unknown = scan(striped(MAX_SUPERBLOCKS + 3).host())
    assert sum(one.stripe_unit_bytes == 65536 for one in found.values()) == MAX_SUPERBLOCKS
    assert len(unknown) == 3


def test_one_process_for_all_block_sizes(tmp_path: Path) -> None:
    commands = tmp_path / "bin"
    make_command(commands, "stat", f'echo "$@" >>{tmp_path}/log; shift 3; for one; do echo "4096 $one"; done')
    tree = striped(5, kind="xfs", options="rw,sunit=8,swidth=16")
    host = tree.host()
    host.commands = LiveCommands(path=f"{commands}:/usr/bin:/bin")
    found, _ = scan(host)
    assert {geometry(one) for one in found.values()} == {(4096, 4096, 8192)}
    assert len((tmp_path / "log").read_text().splitlines()) == 1


def test_what_udev_recognised() -> None:
    tree = Tree()
    for index, entry in enumerate(
        [
            "E:ID_FS_TYPE=xfs\nE:ID_FS_USAGE=filesystem\n",
            "E:ID_FS_TYPE=linux_raid_member\nE:ID_FS_USAGE=raid\n",
            "E:ID_FS_TYPE=swap\nE:ID_FS_USAGE=other\n",
            "E:ID_FS_TYPE=crypto_LUKS\nE:ID_FS_USAGE=crypto\n",
            "E:ID_MODEL=x\n",
            "E:ID_FS_TYPE=ext4\nE:ID_FS_USAGE=filesystem\n",
        ]
    ):
        tree.number(f"sda{index}", f"8:{index}")
        tree.files[f"/run/udev/data/b8:{index}"] = f"S:disk/x\nI:1\n{entry}"
    tree.files["/run/udev/data/b8:77"] = "E:ID_FS_TYPE=xfs\n"
    tree.files["/run/udev/data/c1:3"] = "E:ID_FS_TYPE=xfs\n"
    tree.mount("8:5", "/srv", "ext4")
    found, unknown = scan(tree.host())
    assert {name: (one.kind, one.mountpoints) for name, one in found.items()} == {
        "sda0": ("xfs", ()),
        "sda2": ("swap", ()),
        "sda5": ("ext4", ("/srv",)),
    }
    assert (found["sda0"].options, geometry(found["sda0"])) == (None, (None, None, None))
    assert unknown == {}


def test_an_unmounted_one_on_an_array_keeps_its_stripe_to_itself() -> None:
    tree = striped()
    tree.files["/proc/self/mountinfo"] = ""
    tree.files["/run/udev/data/b9:0"] = "E:ID_FS_TYPE=xfs\nE:ID_FS_USAGE=filesystem\n"
    found, unknown = scan(tree.host())
    assert geometry(found["md0"]) == (None, None, None)
    assert unknown == {"filesystems.md0.stripe_unit_bytes": "it is not mounted"}


def test_mounts_that_cannot_be_read() -> None:
    tree = Tree()
    del tree.files["/proc/self/mountinfo"]
    assert scan(tree.host()) == ({}, {"filesystems": "/proc/self/mountinfo: does not exist"})


@pytest.mark.parametrize(("text", "expected"), DATA["xfs_info"])
def test_xfs_info(text: str, expected: Geometry) -> None:
    assert parse_xfs_info(text) == expected


@pytest.mark.parametrize(("text", "expected"), DATA["dumpe2fs"])
def test_dumpe2fs(text: str, expected: Geometry) -> None:
    assert parse_dumpe2fs(text) == expected


def test_numbers_among_options() -> None:
    options = "rw,sunit=1024,swidth=2048,xsunit=1,usrquota"
    assert [option_number(options, name) for name in ("sunit", "swidth", "stripe", "rw")] == [1024, 2048, None, None]


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A loop device over a sparse file, and a directory to mount it on; both are taken away afterwards."""
    if os.geteuid() != 0 or not shutil.which("losetup"):
        pytest.skip("loop devices need root and losetup")
    image, place = tmp_path / "image", tmp_path / "a place"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(600 << 20)
    done = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no loop device can be had: {done.stderr.strip()}")
    device = done.stdout.strip()
    try:
        yield device, place
    finally:
        subprocess.run(["umount", str(place)], capture_output=True)
        subprocess.run(["losetup", "--detach", device], check=True)


def needs(program: str) -> None:
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")


def mounted(device: str, place: Path, make: list[str]) -> FileSystem:
    needs(make[0])
    subprocess.run([*make, device], check=True, capture_output=True)
    done = subprocess.run(["mount", device, str(place)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"this kernel does not mount it: {done.stderr.strip()}")
    found, _ = scan(live_host())
    one = found[device.removeprefix("/dev/")]
    assert one.mountpoints == (str(place),)
    return one


def test_a_real_xfs(loop: tuple[str, Path]) -> None:
    one = mounted(*loop, ["mkfs.xfs", "-q", "-f", "-d", "su=64k,sw=3"])
    assert (one.kind, *geometry(one)) == ("xfs", 4096, 65536, 196608)
    judged = subprocess.run(["xfs_info", str(loop[1])], capture_output=True, text=True, check=True).stdout
    assert parse_xfs_info(judged) == Geometry(4096, 65536, 196608)


def test_a_real_ext4(loop: tuple[str, Path]) -> None:
    one = mounted(*loop, ["mkfs.ext4", "-q", "-F", "-b", "1024", "-E", "stride=64,stripe_width=192"])
    assert (one.kind, *geometry(one)) == ("ext4", 1024, None, 196608)
    judged = subprocess.run(["dumpe2fs", "-h", loop[0]], capture_output=True, text=True, check=True).stdout
    assert parse_dumpe2fs(judged) == Geometry(1024, 65536, 196608)


def test_a_real_btrfs_is_found_by_its_source(loop: tuple[str, Path]) -> None:
    one = mounted(*loop, ["mkfs.btrfs", "-q", "-f"])
    assert (one.kind, *geometry(one)) == ("btrfs", None, None, None)


@pytest.mark.skipif(shutil.which("findmnt") is None, reason="findmnt is not installed")
def test_this_machine_as_findmnt_sees_it() -> None:
    columns = ["findmnt", "--real", "--list", "--noheadings", "--output", "MAJ:MIN,FSTYPE"]
    judged = subprocess.run(columns, capture_output=True, text=True, check=True).stdout
    kinds = sorted({line.split()[0]: line.split()[1] for line in judged.splitlines() if line[:2] != "0:"}.values())
    found = [one for one in scan(live_host())[0].values() if one.mountpoints and one.kind != "btrfs"]
    assert sorted(one.kind for one in found) == kinds


def test_a_tree_from_a_directory(tmp_path: Path) -> None:
    make_tree(tmp_path, {"/proc/mounts": "/dev/disk/by-uuid/30f0685d / ext3 rw,errors=remount-ro 0 0\n"})
    found, _ = scan(tree_host(str(tmp_path), RecordedCommands({})))
    assert [(one.device, one.kind) for one in found.values()] == [("disk/by-uuid/30f0685d", "ext3")]
    assert node_path("cciss!c0d0p1") == "/dev/cciss/c0d0p1"
