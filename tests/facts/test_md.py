"""md arrays from sysfs, from mdstat, from both: levels, members, health and geometry."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from advisor.facts.block.arrays import read_arrays
from advisor.facts.block.block import Array
from advisor.facts.block.disks import read_disks
from advisor.facts.block.md import Device, Md, data_disks, losses, parse_mdadm_detail, parse_mdstat, state_of
from advisor.facts.block.md_sources import from_mdadm, from_mdstat, from_sysfs
from advisor.facts.unknown import Unknowns
from advisor.host import Host, MemoryFiles, NoCommands
from tests import captured
from tests.cases import read_cases
from tests.facts.storage import Tree
from tests.facts.test_mdstat import DETAIL, command_texts, mdstat_rows

HEALTHY = {"level": "raid5", "array_state": "clean", "raid_disks": "3", "degraded": "0", "chunk_size": "524288"}
HEALTHY |= {"layout": "2", "metadata_version": "1.2", "sync_action": "idle", "sync_completed": "none"}
IN_SYNC = {f"nvme{index}n1": ("in_sync", str(index)) for index in range(3)}


def scan(host: Host) -> tuple[dict[str, Array], dict[str, str]]:
    unknown = Unknowns()
    disks = read_disks(host, Unknowns())
    arrays = {array.name: array for array in read_arrays(host, disks, unknown)}
    return arrays, {one.fact: one.why for one in unknown.listed()}


def array_of(attributes: Mapping[str, str], devices: Mapping[str, tuple[str, str]], mdstat: str = "") -> Array:
    tree = Tree()
    for index in range(4):
        tree.nvme(index, index % 2)
    tree.md("md0", attributes, devices)
    if mdstat:
        tree.files["/proc/mdstat"] = mdstat
    arrays, unknown = scan(tree.host())
    assert unknown == {}
    return arrays["md0"]


def test_a_healthy_array() -> None:
    array = array_of(HEALTHY | {"stripe_cache_size": "256", "group_thread_cnt": "0"}, IN_SYNC)
    assert (array.name, array.device, array.manager) == ("md0", "md0", "md")
    assert (array.level, array.chunk_bytes, array.data_disks) == ("raid5", 524288, 2)
    assert (array.state, array.missing, array.progress_percent) == ("clean", 0, None)
    assert array.members == array.disks == ("nvme0n1", "nvme1n1", "nvme2n1")
    assert (array.spares, array.failed, array.journal) == ((), (), ())
    assert (array.numa_nodes, array.size_bytes) == ((0, 1), 4 << 20)
    assert array.detail["layout"] == "left-symmetric"
    assert array.detail["stripe_cache_size"] == "256"
    assert array.queue["read_ahead_kb"] == "128"


def test_a_rebuild() -> None:
    devices = {"nvme0n1": ("in_sync", "0"), "nvme1n1": ("faulty", "none"), "nvme2n1": ("in_sync,write_mostly", "2")}
    devices |= {"nvme3n1": ("spare", "1")}
    recovering = {"degraded": "1", "sync_action": "recover", "sync_completed": "300 / 400", "array_state": "active"}
    mdstat = "md0 : active raid5 nvme3n1[3] nvme0n1[0]\n      8 blocks level 5, 512k chunk, algorithm 2 [3/2] [U_U]\n"
    mdstat += (
        "      [=>...]  recovery = 70.1% (1/2) finish=17.0min speed=259783K/sec\n      bitmap: 0/1 pages [0KB], 64KB\n"
    )
    array = array_of(HEALTHY | recovering, devices, mdstat)
    assert (array.state, array.missing, array.progress_percent) == ("recovering", 1, 75.0)
    assert (array.spares, array.failed) == (("nvme3n1",), ("nvme1n1",))
    assert array.members == ("nvme0n1", "nvme1n1", "nvme2n1", "nvme3n1")
    assert array.detail["rebuilding"] == "nvme3n1"
    assert array.detail["write_mostly"] == "nvme2n1"
    assert (array.detail["finish_minutes"], array.detail["bitmap"]) == ("17.0", "0/1 pages [0KB], 64KB")


def test_a_journal_is_no_spare() -> None:
    array = array_of(HEALTHY, IN_SYNC | {"nvme3n1": ("journal,in_sync", "journal")})
    assert (array.journal, array.spares, array.state) == (("nvme3n1",), (), "clean")


def test_a_reshape_reads_new_and_old() -> None:
    reshape = {"raid_disks": "4 (3)", "chunk_size": "65536 (524288)", "layout": "2 (2)", "sync_action": "reshape"}
    array = array_of(HEALTHY | reshape | {"sync_completed": "delayed"}, IN_SYNC)
    assert (array.state, array.data_disks, array.chunk_bytes) == ("reshaping", 3, 65536)
    assert (array.progress_percent, array.detail["raid_disks"]) == (None, "4 (3)")


def test_members_on_partitions_lead_to_disks() -> None:
    tree = Tree()
    tree.nvme(0, 1, partitions=("nvme0n1p1",), number="259:0")
    tree.nvme(1, 1, partitions=("nvme1n1p1",), number="259:1")
    tree.md("md0", HEALTHY | {"level": "raid1"}, {f"nvme{index}n1p1": ("in_sync", str(index)) for index in (0, 1)})
    tree.number("md0p1", "259:9")
    tree.mount("259:9", "/srv", "xfs")
    tree.files["/sys/devices/virtual/block/md0/md0p1/partition"] = "1\n"
    array = scan(tree.host())[0]["md0"]
    assert array.members == ("nvme0n1p1", "nvme1n1p1")
    assert (array.disks, array.numa_nodes) == (("nvme0n1", "nvme1n1"), (1,))
    assert array.mountpoints == ("/srv",)


def test_a_container_is_inactive_and_its_volume_names_it() -> None:
    tree = Tree()
    tree.md("md127", {"level": "container", "array_state": "inactive", "metadata_version": "external:imsm"}, {})
    volume = HEALTHY | {"level": "raid0", "metadata_version": "external:/md127/0"}
    del volume["degraded"]
    tree.md("md126", volume, {"sda": ("in_sync", "0"), "sdb": ("in_sync", "1"), "sdc": ("in_sync", "2")})
    tree.files["/proc/mdstat"] = "md127 : inactive sdb[1](S) sda[0](S)\n      5032 blocks super external:imsm\n"
    arrays, unknown = scan(tree.host())
    assert unknown == {}
    assert (arrays["md127"].level, arrays["md127"].state, arrays["md127"].missing) == ("container", "inactive", None)
    assert arrays["md127"].members == ("sda", "sdb")
    assert (arrays["md126"].state, arrays["md126"].missing, arrays["md126"].data_disks) == ("clean", 0, 3)
    assert arrays["md126"].detail["container"] == "md127"


@pytest.mark.parametrize(
    ("array_state", "state"),
    [
        *[("clean", "clean"), ("active", "active"), ("active-idle", "active"), ("write-pending", "active")],
        *[("read-auto", "clean"), ("readonly", "readonly"), ("inactive", "inactive"), ("clear", "inactive")],
        *[("broken", "failed"), ("suspended", "suspended"), ("something new", "something new")],
    ],
)
def test_states_at_rest(array_state: str, state: str) -> None:
    assert state_of(from_sysfs("md0", HEALTHY | {"array_state": array_state}, (), None)) == state


@pytest.mark.parametrize(
    ("degraded", "action", "state"),
    [
        *[("0", "check", "checking"), ("0", "repair", "repairing"), ("0", "resync", "resyncing")],
        *[("0", "recover", "recovering"), ("1", "recover", "recovering"), ("1", "idle", "degraded")],
        *[("1", "reshape", "degraded"), ("1", "check", "degraded"), ("2", "idle", "failed"), ("0", "frozen", "clean")],
    ],
)
def test_work_and_health(degraded: str, action: str, state: str) -> None:
    assert state_of(from_sysfs("md0", HEALTHY | {"degraded": degraded, "sync_action": action}, (), None)) == state


def md(level: str, disks: int, missing: int = 0, **more: object) -> Md:
    copies = {"near_copies": 2, "far_copies": 1} if level == "raid10" else {}
    fields = {"chunk_bytes": 65536} | copies | more
    return Md("md0", level, "clean", disks=disks, missing=missing, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        *[(md("raid0", 4), 4), (md("raid5", 4), 3), (md("raid4", 3), 2), (md("raid6", 8), 6), (md("raid10", 4), 2)],
        *[(md("raid1", 2), None), (md("linear", 2), None), (md("raid0", 4, chunk_bytes=None), None)],
        # As raid10.c advertises its optimal I/O size: copies at a distance and odd numbers of disks count them all.
        *[(md("raid10", 3), 3), (md("raid10", 4, near_copies=1), 4), (md("raid10", 4, near_copies=None), None)],
        *[(md("container", 0), None), (md("raid6", 2), 1)],
    ],
)
def test_data_disks(array: Md, expected: int | None) -> None:
    assert data_disks(array) == expected


def serving(*slots: int) -> tuple[Device, ...]:
    return tuple(Device(f"sd{slot}", slot, frozenset({"in_sync"})) for slot in slots)


DATA = read_cases(__file__, md, serving)


@pytest.mark.parametrize(("array", "left"), DATA["what_a_level_can_do_without"])
def test_what_a_level_can_do_without(array: Md, left: int | None) -> None:
    assert losses(array) == left
    assert (state_of(array) == "failed") is (left is not None and left < 0)


def test_sysfs_wins_over_a_table_that_contradicts_it() -> None:
    tree = Tree()
    tree.md("md0", HEALTHY, {"sda": ("in_sync", "0")})
    tree.files["/proc/mdstat"] = "md0 : active raid1 sdx[0](F)\n      1 blocks [2/1] [U_]\n"
    arrays, unknown = scan(tree.host())
    assert (arrays["md0"].level, arrays["md0"].state, arrays["md0"].failed) == ("raid5", "clean", ())
    assert unknown == {"arrays.md0.level": "sysfs says raid5, /proc/mdstat raid1: sysfs is taken"}


def test_a_volume_of_a_container_that_is_off_is_no_container() -> None:
    (text,) = parse_mdstat("md126 : inactive sda[0]\n      8 blocks super external:/md127/0\n")
    array = from_mdstat(text)
    assert (array.level, state_of(array), array.detail["container"]) == (None, "inactive", "md127")


def test_a_partition_that_only_mdstat_names_leads_to_its_disk() -> None:
    tree = Tree()
    tree.nvme(0, 1)
    tree.files["/proc/mdstat"] = "md0 : active raid0 nvme0n1p3[0]\n      8 blocks super 1.2 64k chunks\n"
    array = scan(tree.host())[0]["md0"]
    assert (array.members, array.disks, array.numa_nodes) == (("nvme0n1p3",), ("nvme0n1",), (1,))


def test_attributes_that_cannot_be_read() -> None:
    tree = Tree()
    tree.md("md0", HEALTHY | {"raid_disks": "many", "degraded": "-1"}, {"sda": ("in_sync", "none")})
    place = "/sys/devices/virtual/block/md0/md"
    contents = {path: text.encode() for path, text in tree.files.items() if path != f"{place}/level"}
    files = MemoryFiles(contents, tree.links, unreadable={f"{place}/level": "Permission denied"})
    arrays, unknown = scan(Host(files, NoCommands()))
    array = arrays["md0"]
    assert (array.level, array.data_disks, array.missing, array.members) == (None, None, None, ("sda",))
    assert unknown == {"arrays.md0.level": "Permission denied"}


def test_a_raid10_without_layout_is_told() -> None:
    tree = Tree()
    tree.md("md0", {key: value for key, value in HEALTHY.items() if key != "layout"} | {"level": "raid10"}, {})
    arrays, unknown = scan(tree.host())
    assert arrays["md0"].data_disks is None
    assert unknown == {"arrays.md0.data_disks": "its layout is not there"}


def test_mdadm_speaks_where_nothing_else_does() -> None:
    tree = Tree()
    tree.virtual("md0")
    tree.answer(("mdadm", "--detail", "/dev/md0"), DETAIL)
    array = scan(tree.host())[0]["md0"]
    assert (array.level, array.chunk_bytes, array.data_disks) == ("raid6", 1 << 20, 2)
    assert (array.state, array.missing, array.progress_percent) == ("degraded", 1, 7)
    assert (array.members, array.journal) == (("cciss!c0d0", "sdb1"), ("cciss!c0d0",))


def test_an_array_of_which_nothing_is_known_is_still_listed() -> None:
    tree = Tree()
    tree.virtual("md0")
    array = scan(tree.host())[0]["md0"]
    assert (array.level, array.state, array.members) == (None, None, ())


# What the truth leaves open for a text alone, and what ours says instead.
HEALTH: dict[str, set[str]] = DATA["HEALTH"]
ACCEPTED = {
    ("procfs-fixtures.txt", "md4"): "inactive and [2/2] [UU] at once: written by hand; it is inactive",
    ("insights-mdstat_test_2.txt", "md2"): "[2/2] next to [U_]: how many are missing is unknown",
    ("insights-mdstat_test_2.txt", "md0"): "[2/2] next to [_U]: how many are missing is unknown",
}


@pytest.mark.captured
@pytest.mark.parametrize("row", mdstat_rows(), ids=lambda row: f"{row['file']}:{row['array']}")
def test_captured_arrays_from_mdstat_alone(row: dict[str, str]) -> None:
    text = captured.captured_file(f"mdstat/{row['file']}").read_bytes()
    arrays, unknown = scan(Host(MemoryFiles({"/proc/mdstat": text}), NoCommands(), is_root=True))
    array = arrays[row["array"]]
    expected_level = row["level"] or ("container" if row["health"] == "container" else None)
    assert array.level == expected_level
    assert array.chunk_bytes == (int(row["chunk_kib"]) * 1024 if row["chunk_kib"] else None)
    assert array.size_bytes == int(row["blocks_kib"]) * 1024
    assert sorted(array.members) == sorted(word.partition("[")[0] for word in row["members"].split())
    assert sorted(array.failed) == sorted(row["failed"].split())
    assert sorted(array.spares) == sorted(row["spares"].split())
    assert array.state in HEALTH[row["health"]]
    assert array.progress_percent == (float(row["progress_pct"]) if row["progress_pct"] else None)
    if row["missing_disks"] and (row["file"], row["array"]) not in ACCEPTED:
        assert array.missing == int(row["missing_disks"])
    if row["health"] == "inconsistent":
        assert array.missing is None
        assert "contradict" in unknown[f"arrays.{array.name}.missing"]


@pytest.mark.captured
def test_the_composite_captured_tree() -> None:
    arrays, _ = scan(captured.host("procfs/procfs-fixtures"))
    for row in captured.truth_rows("procfs_truth"):
        if row["kind"] != "md":
            continue
        array = arrays[row["name"]]
        reported = dict(part.split("=", 1) for part in row["a"].replace(" (10)", "(10)").replace(" / ", "/").split())
        states = dict(part.split(":") for part in row["members"].split())
        assert array.level == reported["level"]
        assert array.chunk_bytes == (int(reported["chunk_size"] or 0) or None)
        assert array.detail["metadata"] == reported["metadata"]
        assert array.detail["array_state"] == reported["array_state"]
        assert array.detail.get("sync_action", "") == reported["sync_action"]
        assert array.detail.get("raid_disks", "").replace(" ", "") == reported["raid_disks"]
        assert array.missing == (
            int(reported["degraded"]) if reported["degraded"] else 0 if array.level == "raid0" else None
        )
        assert set(array.members) == set(states)
        assert set(array.spares) == {name for name, state in states.items() if state == "spare"}
        assert set(array.failed) == {name for name, state in states.items() if state == "faulty"}
    health = {name: arrays[name].state for name in ("md0", "md5", "md6", "md7", "md8")}
    assert health == {"md0": "clean", "md5": "degraded", "md6": "recovering", "md7": "inactive", "md8": "reshaping"}
    assert arrays["md6"].progress_percent == 75.0
    assert (arrays["md8"].data_disks, arrays["md6"].data_disks) == (10, 2)
    assert arrays["md6"].detail["rebuilding"] == "sdt"


@pytest.mark.captured
@pytest.mark.parametrize(("name", "state", "missing", "spares"), DATA["captured_details_as_arrays"])
def test_captured_details_as_arrays(name: str, state: str | None, missing: int | None, spares: tuple[str, ...]) -> None:
    (detail,) = parse_mdadm_detail(command_texts()[f"generic/mdadm-query-{name}.out"])
    found = from_mdadm("md0", detail)
    assert (state_of(found), found.missing, found.having("spare")) == (state, missing, spares)


def test_a_text_that_says_read_only() -> None:
    first, second = parse_mdstat("md1 : active (read-only) raid0 a[0]\nmd2 : active (auto-read-only) raid1 a[0]\n")
    assert (state_of(from_mdstat(first)), state_of(from_mdstat(second))) == ("readonly", "active")
