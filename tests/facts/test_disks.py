"""Disks: what /sys/block says about them, on fake hosts of every kind and on this machine."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.block.block import natural, partitions_of, whole_of
from advisor.facts.block.disks import Disk, kind_of, parse_scheduler, parse_vpd_serial, read_disks, transport_of
from advisor.facts.unknown import Unknown, Unknowns
from advisor.host import Host, MemoryFiles, Missing, NoCommands, live_host, tree_host
from tests import captured
from tests.cases import read_cases
from tests.facts.storage import Tree
from tests.trees import make_tree


def scan(host: Host) -> tuple[dict[str, Disk], dict[str, str]]:
    unknown = Unknowns()
    disks = {disk.name: disk for disk in read_disks(host, unknown)}
    return disks, {one.fact: one.why for one in unknown.listed()}


def test_an_nvme_drive_with_partitions() -> None:
    tree = Tree()
    tree.nvme(3, 1, partitions=("nvme3n1p1", "nvme3n1p2", "nvme3n1p10"))
    tree.number("nvme3n1p2", "259:7")
    tree.mount("259:7", "/srv", "xfs")
    place = "/sys/devices/pci0000:23/0000:23:00.0/nvme/nvme3/nvme3n1"
    tree.directories |= {f"{place}/nvme3n1p1/holders/md0", f"{place}/nvme3n1p2/holders/dm-10"}
    disks, unknown = scan(tree.host())
    assert unknown == {}
    disk = disks["nvme3n1"]
    assert (disk.kind, disk.size_bytes, disk.rotational, disk.scheduler) == ("nvme", 3840755982336, False, "none")
    assert (disk.model, disk.serial) == ("Dell Ent NVMe v2 AGN RI U.2 3.84TB", "S3")
    assert (disk.numa_node, disk.pci, disk.irqs) == (1, "0000:23:00.0", (106, 107))
    assert disk.partitions == ("nvme3n1p1", "nvme3n1p2", "nvme3n1p10")
    assert disk.partition_offsets == {"nvme3n1p1": 1 << 20, "nvme3n1p2": 2 << 20, "nvme3n1p10": 3 << 20}
    assert disk.holders == ("dm-10", "md0")
    assert disk.mountpoints == ("/srv",)
    assert disk.queue["scheduler"] == "[none] mq-deadline kyber"
    assert "wbt_lat_usec" not in disk.queue
    assert (disk.paths, disk.detail) == ((), {"state": "live"})


def multipath_head(nodes: tuple[int, int]) -> Tree:
    tree = Tree()
    subsystem = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    about = {"model": "Array", "serial": "A1", "iopolicy": "round-robin"}
    tree.block("nvme0n1", subsystem, device=about)
    for controller, node in enumerate(nodes):
        place = tree.pci(f"0000:4{controller}:00.0", node, (50 + controller,))
        path = tree.block(f"nvme0c{controller}n1", f"{place}/nvme/nvme{controller}", device={"state": "live"})
        tree.files[f"{path}/hidden"] = "1\n"
        tree.files[f"{path}/ana_state"] = "optimized\n"
    return tree


def test_an_nvme_multipath_head_has_the_place_that_its_paths_agree_on() -> None:
    disks, unknown = scan(multipath_head((1, 1)).host())
    assert list(disks) == ["nvme0n1"]
    head = disks["nvme0n1"]
    assert head.paths == ("nvme0c0n1", "nvme0c1n1")
    assert (head.numa_node, head.pci, head.pcie, head.irqs) == (1, None, None, (50, 51))
    assert (head.model, head.serial) == ("Array", "A1")
    assert head.detail["iopolicy"] == "round-robin"
    assert head.detail["path_states"] == "nvme0c0n1 live optimized, nvme0c1n1 live optimized"
    assert unknown == {}


def test_an_nvme_multipath_head_with_paths_on_two_nodes_has_none() -> None:
    disks, unknown = scan(multipath_head((0, 1)).host())
    assert disks["nvme0n1"].numa_node is None
    assert unknown == {"disks.nvme0n1.numa_node": "its paths sit on different nodes: 0, 1"}


def test_an_nvme_multipath_head_with_one_path_sits_where_that_does() -> None:
    tree = multipath_head((0, 1))
    del tree.links["/sys/block/nvme0c1n1"]
    disks, _ = scan(tree.host())
    assert (disks["nvme0n1"].pci, disks["nvme0n1"].numa_node) == ("0000:40:00.0", 0)


def test_paths_without_a_head_are_no_disks_but_are_told() -> None:
    tree = multipath_head((0, 0))
    del tree.links["/sys/block/nvme0n1"]
    disks, unknown = scan(tree.host())
    assert disks == {}
    assert unknown == {"disks.nvme0n1": "only its paths are there: nvme0c0n1, nvme0c1n1"}


def test_an_nvme_drive_over_a_network_has_no_place() -> None:
    tree = Tree()
    where = "/sys/devices/virtual/nvme-fabrics/ctl/nvme2"
    tree.block("nvme2n1", where, device={"transport": "tcp", "state": "live", "numa_node": "-1", "model": "Linux"})
    disk = scan(tree.host())[0]["nvme2n1"]
    assert (disk.numa_node, disk.pci, disk.irqs) == (None, None, ())
    assert disk.detail == {"state": "live", "transport": "tcp"}


def test_scsi_disks_share_their_adapter() -> None:
    tree = Tree()
    place = tree.pci("0000:3b:00.0", 0, (70, 71))
    tree.scsi("sda", place)
    tree.scsi("sdb", place, state="offline")
    directory = f"{place}/host1/target1:0:0/sda-address"
    tree.pages[f"{directory}/vpd_pg80"] = b"\0\x80\0\x08  ZL2ABC"
    disks, unknown = scan(tree.host())
    disk = disks["sda"]
    assert (disk.kind, disk.model, disk.serial, disk.rotational) == ("scsi", "ST12000NM0027", "ZL2ABC", True)
    assert disk.detail == {"vendor": "SEAGATE", "state": "running", "queue_depth": "254"}
    assert (disk.pci, disk.numa_node, disk.irqs) == ("0000:3b:00.0", 0, ())
    assert disks["sdb"].detail["state"] == "offline"
    assert disks["sdb"].pci == "0000:3b:00.0"
    assert unknown == {}


def test_what_is_not_in_use_or_no_disk_is_left_out() -> None:
    tree = Tree()
    used = tree.virtual("loop1")
    tree.files[f"{used}/loop/backing_file"] = "/srv/a file.img\n"
    tree.virtual("loop2")
    tree.virtual("zram1", sectors=4096)
    for name in ("loop0", "zram0", "nbd0", "md0", "md_d0", "dm-0", "sr0", "fd0", "ram0", "mmcblk0boot0"):
        tree.virtual(name, sectors=0)
    disks, unknown = scan(tree.host())
    assert list(disks) == ["loop1", "zram1"]
    assert disks["loop1"].detail == {"backing_file": "/srv/a file.img"}
    assert unknown == {}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *[("nvme0n1", "nvme"), ("sdaa", "scsi"), ("vda", "virtio"), ("xvdf", "xen"), ("mmcblk0", "mmc")],
        *[("dasda", "dasd"), ("cciss!c0d0", "cciss"), ("rbd3", "rbd"), ("pmem0", "pmem"), ("odd7x", "odd")],
        *[("md127", None), ("md_home", None), ("dm-3", None), ("sr0", None), ("mmcblk0rpmb", None), ("7", None)],
    ],
)
def test_kinds(name: str, kind: str | None) -> None:
    assert kind_of(name) == kind


DATA = read_cases(__file__)


@pytest.mark.parametrize(("path", "transport"), DATA["how_scsi_disks_are_reached"])
def test_how_scsi_disks_are_reached(path: str, transport: str | None) -> None:
    assert transport_of(path) == transport


def test_an_iscsi_disk_has_no_place() -> None:
    tree = Tree()
    tree.scsi("sdc", "/sys/devices/platform/host3/session1")
    disk = scan(tree.host())[0]["sdc"]
    assert (disk.pci, disk.numa_node, disk.detail["transport"]) == (None, None, "iscsi")


def test_names_with_an_exclamation_mark() -> None:
    tree = Tree()
    place = tree.pci("0000:06:00.0", 0)
    tree.block("cciss!c0d0", f"{place}/cciss0/c0d0/block", partitions=("cciss!c0d0p1",), device={"model": "P400"})
    tree.number("cciss!c0d0p1", "104:1")
    tree.mount("104:1", "/boot", "ext3")
    disk = scan(tree.host())[0]["cciss!c0d0"]
    assert (disk.kind, disk.partitions, disk.mountpoints) == ("cciss", ("cciss!c0d0p1",), ("/boot",))


def test_a_tree_with_directories_in_place_of_links(tmp_path: Path) -> None:
    disk = "/sys/block/nvme0n1"
    make_tree(tmp_path, {f"{disk}/size": "8\n", f"{disk}/device/numa_node": "1\n", f"{disk}/device/model": "X\n"})
    found = scan(tree_host(str(tmp_path)))[0]["nvme0n1"]
    assert (found.numa_node, found.size_bytes, found.model) == (1, 4096, "X")


def test_broken_attributes_are_told_and_the_disk_is_listed() -> None:
    tree = Tree()
    place = tree.block("vda", "/sys/devices/virtual/block", queue={"scheduler": "none mq-deadline", "rotational": "2"})
    tree.files[f"{place}/size"] = "-7\n"
    tree.files[f"{place}/queue/nr_requests"] = "2\0 56\0\0"
    tree.directories.add(f"{place}/queue/read_ahead_kb")
    del tree.files[f"{place}/queue/read_ahead_kb"]
    disks, unknown = scan(tree.host())
    disk = disks["vda"]
    assert (disk.size_bytes, disk.rotational, disk.scheduler) == (None, None, None)
    assert disk.queue["nr_requests"] == "2 56"
    assert unknown == {
        "disks.vda.size_bytes": "the kernel gives -7",
        "disks.vda.rotational": "neither 0 nor 1: '2'",
        "disks.vda.scheduler": "no single scheduler is marked: 'none mq-deadline'",
        "disks.vda.queue.read_ahead_kb": "Is a directory",
    }


def test_throttling_that_is_off_is_no_failure() -> None:
    tree = Tree()
    tree.virtual("vda")
    files = MemoryFiles(
        {path: text.encode() for path, text in tree.files.items()},
        tree.links,
        unreadable={"/sys/devices/virtual/block/vda/queue/wbt_lat_usec": "Invalid argument"},
    )
    disks, unknown = scan(Host(files, NoCommands()))
    assert "wbt_lat_usec" not in disks["vda"].queue
    assert unknown == {}


def test_a_host_without_sysfs() -> None:
    unknown = Unknowns()
    assert read_disks(Host(MemoryFiles({}), NoCommands()), unknown) == ()
    assert unknown.listed() == (Unknown("disks", "/sys/block: does not exist"),)


def test_mounts_that_cannot_be_read_are_told() -> None:
    tree = Tree()
    del tree.files["/proc/self/mountinfo"]
    tree.virtual("vda")
    assert scan(tree.host())[1] == {"disks.mountpoints": "/proc/self/mountinfo: does not exist"}


@pytest.mark.parametrize(
    ("text", "scheduler"),
    [
        *[("noop [deadline] cfq", "deadline"), ("[none] mq-deadline", "none"), ("none", "none"), ("", None)],
        *[("none mq-deadline", None), ("[a] [b]", None), ("[]", None), ("none [mq-deadline] kyber bfq", "mq-deadline")],
    ],
)
def test_schedulers(text: str, scheduler: str | None) -> None:
    assert parse_scheduler(text) == scheduler


@pytest.mark.parametrize(
    ("page", "serial"),
    [(b"\0\x80\0\4ABCD", "ABCD"), (b"\0\x80\0\2AB", "AB"), (b"\0\x83\0\1A", None), (b"\0\x80", None)],
)
def test_serials(page: bytes, serial: str | None) -> None:
    assert parse_vpd_serial(page) == serial


@given(st.text(max_size=20), st.lists(st.text(max_size=20)))
def test_any_names_can_be_sorted_and_split(name: str, names: list[str]) -> None:
    assert sorted(sorted(names), key=natural) == sorted(sorted(names, reverse=True), key=natural)
    assert set(partitions_of(name, names)) <= set(names)
    assert whole_of(name, names) in (None, *names)


def test_natural_order() -> None:
    assert sorted(["sda10", "sdb", "sda9", "sda"], key=natural) == ["sda", "sda9", "sda10", "sdb"]


def test_the_disk_of_a_partition_by_its_name() -> None:
    known = {"sda", "nvme0n1", "md0"}
    names = ("sda2", "nvme0n1p2", "md0p1", "nvme0n1", "sdb1", "")
    assert [whole_of(name, known) for name in names] == ["sda", "nvme0n1", "md0", None, None, None]


def drives(count: int) -> Tree:
    tree = Tree()
    for index in range(count):
        tree.nvme(index, index % 2)
    return tree


def test_24_nvme_drives_on_two_nodes() -> None:
    disks, unknown = scan(drives(24).host())
    assert list(disks) == [f"nvme{index}n1" for index in range(24)]
    assert [disk.numa_node for disk in disks.values()] == [0, 1] * 12
    assert len({irq for disk in disks.values() for irq in disk.irqs}) == 48
    assert unknown == {}


class Counting(MemoryFiles):
    reads = 0

    def read(self, path: str) -> bytes | Missing:
        self.reads += 1
        return super().read(path)


def reads_of(tree: Tree, count: int) -> int:
    host = tree.host(kind=Counting)
    assert len(scan(host)[0]) == count
    assert isinstance(host.files, Counting)
    return host.files.reads


def behind_one_adapter(count: int) -> Tree:
    tree = Tree()
    place = tree.pci("0000:3b:00.0", 0, (70, 71))
    for index in range(count):
        tree.scsi(f"sd{index}x", place)
    return tree


def test_the_work_grows_as_the_disks_do() -> None:
    few, many = (reads_of(behind_one_adapter(count), count) for count in (100, 400))
    assert many < 4 * few
    assert many / 400 < 27


def test_a_drive_of_its_own_costs_little_more() -> None:
    assert reads_of(drives(24), 24) / 24 < 40


@pytest.mark.captured
def test_the_composite_captured_tree() -> None:
    disks, _ = scan(captured.host("procfs/procfs-fixtures"))
    disk = disks["sda"]
    assert (disk.size_bytes, disk.rotational, disk.scheduler) == (1920383410176, True, "bfq")
    assert disk.queue["write_cache"] == "write back"
    assert [disks[name].detail["state"] for name in ("sdb", "sdc")] == ["running", "offline"]
    assert not any(name.startswith(("md", "dm-")) for name in disks)


@pytest.mark.captured
@pytest.mark.parametrize("name", captured.HWLOC_HOSTS)
def test_captured_hosts_without_block_devices_are_told(name: str) -> None:
    disks, unknown = scan(captured.host(f"hwloc/{name}"))
    assert disks == {}
    assert "disks" in unknown


@pytest.mark.skipif(shutil.which("lsblk") is None, reason="lsblk is not installed")
def test_this_machine_as_lsblk_sees_it() -> None:
    columns = "NAME,SIZE,ROTA,TYPE,MOUNTPOINTS,SCHED,RA,RQ-SIZE"
    judged = subprocess.run(["lsblk", "-J", "-b", "-o", columns], capture_output=True, check=True, text=True)
    disks, _ = scan(live_host())
    rows = [row for row in json.loads(judged.stdout)["blockdevices"] if row["type"] in ("disk", "loop")]
    seen = {row["name"]: row for row in rows if row["size"]}
    assert set(disks) == set(seen)
    for name, row in seen.items():
        disk = disks[name]
        assert (disk.size_bytes, disk.rotational, disk.scheduler) == (row["size"], row["rota"], row["sched"])
        assert (disk.queue["read_ahead_kb"], disk.queue["nr_requests"]) == (str(row["ra"]), str(row["rq-size"]))
        assert {part["name"] for part in row.get("children", ()) if part["type"] == "part"} == set(disk.partitions)
        points = [point for one in (row, *row.get("children", ())) for point in one["mountpoints"]]
        assert set(disk.mountpoints) == {point for point in points if point and point != "[SWAP]"}
