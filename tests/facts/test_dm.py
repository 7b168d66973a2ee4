"""Device-mapper: tables, states, names; volumes with hidden parts, multipath maps, and layers in between."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.block.arrays import read_arrays
from advisor.facts.block.block import Array
from advisor.facts.block.disks import read_disks
from advisor.facts.block.dm import STATUS, TABLE, read_dm, role_of
from advisor.facts.block.dm_text import (
    ArrayShape,
    RaidStatus,
    VolumeName,
    mirror_status,
    parse_dm_lines,
    parse_volume_name,
    path_states,
    raid_status,
    shape_of,
)
from advisor.facts.block.storage import MAX_DEPTH, Stack
from advisor.facts.unknown import Unknowns
from advisor.host import Completed, Missing
from tests import captured
from tests.cases import read_cases
from tests.facts.storage import Tree
from tests.facts.test_md import scan
from tests.facts.test_mdstat import command_texts

GROUP = "3zSHSR5Nbf4j7g6auAAefWY2CMaX01th"
MIB = 1 << 20


def uuid(volume: int, suffix: str = "") -> str:
    return f"LVM-{GROUP}{volume:032d}{suffix and '-'}{suffix}"


def drives(count: int = 4) -> Tree:
    tree = Tree()
    for index in range(count):
        tree.nvme(index, index % 2, number=f"259:{index}")
    return tree


def tables(tree: Tree, table: str, status: str = "") -> dict[str, Array]:
    tree.answer(TABLE, table)
    if status:
        tree.answer(STATUS, status)
    arrays, unknown = scan(tree.host())
    assert unknown == {}
    return arrays


def test_a_striped_volume() -> None:
    tree = drives()
    tree.dm(0, "vg0-my--data", uuid(1), ("nvme0n1", "nvme2n1"))
    tree.mount("253:0", "/srv", "xfs")
    arrays = tables(tree, "vg0-my--data: 0 16384 striped 2 128 259:0 2048 259:2 2048\n")
    array = arrays["vg0/my-data"]
    assert (array.manager, array.device, array.level) == ("lvm", "dm-0", "striped")
    assert (array.chunk_bytes, array.data_disks, array.state) == (65536, 2, "active")
    assert array.members == array.disks == ("nvme0n1", "nvme2n1")
    assert (array.numa_nodes, array.size_bytes, array.mountpoints) == ((0,), 4 * MIB, ("/srv",))
    assert array.detail["dm_name"] == "vg0-my--data"
    assert array.queue["optimal_io_size"] == "0"


def raid5(status: str, *, missing: bool = False) -> Array:
    tree = drives()
    parts = range(3)
    for index in parts:
        tree.dm(2 * index, f"vg0-r_rmeta_{index}", uuid(10 + index), (f"nvme{index}n1",))
        tree.dm(2 * index + 1, f"vg0-r_rimage_{index}", uuid(20 + index), (f"nvme{index}n1",))
    tree.dm(6, "vg0-r", uuid(1), [f"dm-{index}" for index in range(6)])
    pairs = " ".join("- -" if missing and index == 1 else f"253:{2 * index} 253:{2 * index + 1}" for index in parts)
    lines = [f"vg0-r: 0 16384 raid raid5_ls 3 128 region_size 4096 3 {pairs}"]
    lines += [
        f"vg0-r_{part}_{index}: 0 8192 linear 259:{index} 2048" for index in parts for part in ("rmeta", "rimage")
    ]
    return tables(tree, "\n".join(lines), f"vg0-r: 0 16384 raid raid5_ls 3 {status}\n")["vg0/r"]


def test_a_raid_volume_on_hidden_images() -> None:
    array = raid5("AAA 8192/8192 idle 0 0 -")
    assert (array.level, array.chunk_bytes, array.data_disks) == ("raid5", 65536, 2)
    assert array.detail["layout"] == "raid5_ls"
    assert (array.state, array.missing, array.failed, array.progress_percent) == ("active", 0, (), None)
    assert array.members == ("nvme0n1", "nvme1n1", "nvme2n1")
    assert array.numa_nodes == (0, 1)


DATA = read_cases(__file__, ArrayShape, Completed, Missing, RaidStatus, VolumeName, uuid)


@pytest.mark.parametrize(("status", "state", "missing", "failed", "progress"), DATA["health_of_a_raid_volume"])
def test_health_of_a_raid_volume(
    status: str, state: str | None, missing: int | None, failed: tuple[str, ...], progress: float | None
) -> None:
    array = raid5(status)
    assert (array.state, array.missing, array.failed) == (state, missing, failed)
    assert array.progress_percent == progress


def test_a_device_that_is_not_there_has_no_name() -> None:
    array = raid5("A-A 8192/8192 idle 0 0 -", missing=True)
    assert (array.state, array.missing, array.failed) == ("degraded", 1, ())


def test_thin_volumes_and_their_pool() -> None:
    tree = drives()
    tree.dm(0, "vg0-pool_tmeta", uuid(1, "tmeta"), ("nvme0n1",))
    tree.dm(1, "vg0-pool_tdata", uuid(2, "tdata"), ("nvme0n1", "nvme1n1"))
    tree.dm(2, "vg0-pool-tpool", uuid(3, "tpool"), ("dm-0", "dm-1"))
    tree.dm(3, "vg0-pool", uuid(3, "pool"), ("dm-2",))
    tree.dm(4, "vg0-thin", uuid(4), ("dm-2",))
    table = DATA["thin_volumes_and_their_pool"]
    status = "vg0-pool-tpool: 0 16384 thin-pool 1 20/1024 38/126 - rw no_discard_passdown queue_if_no_space -\n"
    arrays = tables(tree, table, status)
    assert {name: array.level for name, array in arrays.items()} == {"vg0/pool": "thin-pool", "vg0/thin": "thin"}
    pool = arrays["vg0/pool"]
    assert (pool.device, pool.chunk_bytes, pool.data_disks) == ("dm-2", 262144, None)
    assert (pool.detail["metadata_blocks"], pool.detail["data_blocks"]) == ("20/1024", "38/126")
    assert {array.members for array in arrays.values()} == {("nvme0n1", "nvme1n1")}
    assert arrays["vg0/thin"].state == "active"


def test_a_snapshot_and_its_origin() -> None:
    tree = drives()
    tree.dm(0, "vg0-data-real", uuid(1, "real"), ("nvme0n1", "nvme1n1"))
    tree.dm(1, "vg0-data", uuid(1), ("dm-0",))
    tree.dm(2, "vg0-snap-cow", uuid(2, "cow"), ("nvme2n1",))
    tree.dm(3, "vg0-snap", uuid(2), ("dm-0", "dm-2"))
    table = DATA["a_snapshot_and_its_origin"]
    arrays = tables(tree, table, "vg0-snap: 0 8192 snapshot Invalid\n")
    assert (arrays["vg0/data"].level, arrays["vg0/data"].data_disks) == ("striped", 2)
    assert arrays["vg0/data"].detail["snapshots"] == "yes"
    assert (arrays["vg0/snap"].level, arrays["vg0/snap"].state) == ("snapshot", "failed")
    assert arrays["vg0/snap"].chunk_bytes == 4096
    assert arrays["vg0/snap"].members == ("nvme0n1", "nvme1n1", "nvme2n1")


def test_a_raid_volume_with_a_snapshot_shows_its_own_health() -> None:
    tree = drives()
    tree.dm(0, "vg0-r-real", uuid(1, "real"), ("nvme0n1", "nvme1n1"))
    tree.dm(1, "vg0-r", uuid(1), ("dm-0",))
    table = "vg0-r-real: 0 8192 raid raid1 1 128 2 - 259:0 - 259:1\nvg0-r: 0 8192 snapshot-origin 253:0\n"
    array = tables(tree, table, "vg0-r-real: 0 8192 raid raid1 2 AD 8192/8192 idle 0 0 -\n")["vg0/r"]
    assert (array.device, array.level, array.state, array.failed) == ("dm-1", "raid1", "degraded", ("nvme1n1",))


def test_a_cached_volume() -> None:
    tree = drives()
    tree.dm(0, "vg0-c_cpool_cdata", uuid(1, "cdata"), ("nvme0n1",))
    tree.dm(1, "vg0-c_cpool_cmeta", uuid(2, "cmeta"), ("nvme0n1",))
    tree.dm(2, "vg0-c_corig", uuid(3, "real"), ("nvme1n1",))
    tree.dm(3, "vg0-c", uuid(4), ("dm-0", "dm-1", "dm-2"))
    table = "vg0-c: 0 8192 cache 253:1 253:0 253:2 128 2 metadata2 writethrough smq 0\n"
    arrays = tables(tree, table, "vg0-c: 0 8192 cache 8 27/2048 128 0/1024\n")
    array = arrays["vg0/c"]
    assert list(arrays) == ["vg0/c"]
    assert (array.level, array.chunk_bytes, array.detail["cache_mode"]) == ("cache", 65536, "writethrough")
    assert array.members == ("nvme0n1", "nvme1n1")


def test_a_volume_on_an_md_array_behind_encryption() -> None:
    tree = drives(2)
    tree.md(
        "md0", {"level": "raid1", "array_state": "clean"}, {"nvme0n1": ("in_sync", "0"), "nvme1n1": ("in_sync", "1")}
    )
    tree.number("md0", "9:0")
    tree.dm(0, "luks-1", "CRYPT-LUKS2-abc-luks-1", ("md0",))
    tree.dm(1, "vg0-root", uuid(1), ("dm-0",))
    tree.mount("253:0", "/never-so", "xfs")
    tree.mount("253:1", "/", "xfs")
    table = "luks-1: 0 8192 crypt aes-xts-plain64 :64:logon:x 0 9:0 4096\nvg0-root: 0 8192 linear 253:0 2048\n"
    arrays = tables(tree, table)
    assert list(arrays) == ["md0", "vg0/root"]
    assert arrays["vg0/root"].members == ("dm-0",)
    assert arrays["vg0/root"].disks == ("nvme0n1", "nvme1n1")
    assert arrays["vg0/root"].numa_nodes == (0, 1)
    assert arrays["md0"].mountpoints == ("/never-so",)


def multipath(*, is_live: bool = False, is_root: bool = True) -> Tree:
    tree = Tree()
    adapters = [tree.pci(f"0000:3{index}:00.0", index) for index in (0, 1)]
    for index, name in enumerate(("sdb", "sdc", "sdd", "sde")):
        tree.scsi(name, adapters[index % 2], number=f"8:{16 * (index + 1)}")
    tree.dm(0, "mpatha", "mpath-3600a", ("sdb", "sdc", "sdd", "sde"))
    tree.dm(1, "mpatha-part1", "part1-mpath-3600a", ("dm-0",))
    tree.mount("253:1", "/srv", "xfs")
    return tree


MULTIPATH_TABLE = DATA["MULTIPATH_TABLE"]
MULTIPATH_STATUS = (
    "mpatha: 0 8192 multipath 2 0 1 0 2 1 A 0 2 2 8:16 {} 0 0 1 8:32 A 0 0 1 E 0 2 2 8:48 {} 7 0 1 8:64 A 0 0 1\n"
)


@pytest.mark.parametrize(("states", "state", "failed"), DATA["a_multipath_map"])
def test_a_multipath_map(states: tuple[str, str], state: str, failed: tuple[str, ...]) -> None:
    arrays = tables(multipath(), MULTIPATH_TABLE, MULTIPATH_STATUS.format(*states))
    assert list(arrays) == ["mpatha"]
    array = arrays["mpatha"]
    assert (array.manager, array.device, array.level) == ("dm-multipath", "dm-0", "multipath")
    assert (array.state, array.missing, array.failed) == (state, len(failed), failed)
    assert array.members == array.disks == ("sdb", "sdc", "sdd", "sde")
    assert (array.numa_nodes, array.mountpoints) == ((0, 1), ("/srv",))
    assert array.detail["wwid"] == "3600a"
    assert array.detail["features"] == "queue_if_no_path pg_init_retries"
    assert (array.detail["hwhandler"], array.detail["policy"], array.detail["groups"]) == ("alua", "service-time", "2")


def test_a_map_all_of_whose_paths_failed() -> None:
    tree = multipath()
    status = MULTIPATH_STATUS.format("F", "F").replace(" A 0 0 1", " F 1 0 1")
    assert tables(tree, MULTIPATH_TABLE, status)["mpatha"].state == "failed"


def test_a_map_without_root_shows_what_the_scsi_layer_knows() -> None:
    tree = multipath()
    tree.files[next(path for path in tree.files if path.endswith("sdc-address/state"))] = "offline\n"
    arrays, unknown = scan(tree.host(is_live=True, is_root=False))
    array = arrays["mpatha"]
    assert (array.level, array.state, array.missing, array.failed) == ("multipath", "degraded", 1, ("sdc",))
    assert list(unknown) == ["arrays.device-mapper.table"]
    arrays, _ = scan(multipath().host(is_live=True, is_root=False))
    assert (arrays["mpatha"].state, arrays["mpatha"].missing) == (None, None)


def test_a_map_by_a_recorded_listing() -> None:
    tree = multipath()
    text = "mpatha (3600a) dm-0 A,B\nsize=4M features='0' hwhandler='0' wp=rw\n`-+- policy='x 0' prio=1 status=active\n"
    tree.answer(("multipath", "-ll"), text + "  |- 1:0:0:1 sdb 8:16 failed faulty running\n")
    arrays, _ = scan(tree.host())
    assert (arrays["mpatha"].state, arrays["mpatha"].failed) == ("degraded", ("sdb",))


def test_volumes_without_root_are_listed() -> None:
    tree = drives()
    tree.dm(0, "vg0-data", uuid(1), ("nvme0n1", "nvme1n1"))
    tree.dm(1, "vg0-off", uuid(2), ("nvme2n1",), suspended="1")
    arrays, unknown = scan(tree.host(is_live=True, is_root=False))
    assert (arrays["vg0/data"].level, arrays["vg0/data"].state) == (None, None)
    assert arrays["vg0/data"].members == ("nvme0n1", "nvme1n1")
    assert arrays["vg0/off"].state == "suspended"
    assert unknown == {
        "arrays.device-mapper.table": "dmsetup table needs root: levels, chunks and states of dm devices are unknown"
    }


@pytest.mark.parametrize(("answer", "why"), DATA["a_table_that_cannot_be_had"])
def test_a_table_that_cannot_be_had(answer: Completed | Missing, why: str) -> None:
    tree = drives()
    tree.dm(0, "vg0-data", uuid(1), ("nvme0n1",))
    tree.answers[TABLE] = answer
    arrays, unknown = scan(tree.host(is_live=True))
    assert arrays["vg0/data"].level is None
    assert unknown == {"arrays.device-mapper.table": why}


def test_no_process_without_dm_devices() -> None:
    unknown = Unknowns()
    assert read_dm(drives().host(is_live=True), [], unknown) == ()
    assert unknown.listed() == ()


def test_arrays_of_other_owners() -> None:
    tree = drives()
    tree.dm(0, "isw_abc_Volume0", "DMRAID-isw_abc_Volume0", ("nvme0n1", "nvme1n1"))
    tree.dm(1, "stripe", "", ("nvme2n1", "nvme3n1"))
    tree.dm(2, "plain", "", ("nvme2n1",))
    table = "isw_abc_Volume0: 0 8 mirror core 2 131072 nosync 2 259:0 0 259:1 0 1 handle_errors\n"
    table += "stripe: 0 8192 striped 2 256 259:2 0 259:3 0\nplain: 0 8 linear 259:2 0\n"
    arrays = tables(tree, table, "isw_abc_Volume0: 0 8 mirror 2 259:0 259:1 8/8 1 AA 1 core\n")
    assert {name: (array.manager, array.level) for name, array in arrays.items()} == {
        "isw_abc_Volume0": ("dm", "mirror"),
        "stripe": ("dm", "striped"),
    }
    assert arrays["isw_abc_Volume0"].state == "active"


def test_a_volume_with_a_hole_has_failed() -> None:
    tree = drives()
    tree.dm(0, "vg0-data", uuid(1), ("nvme0n1",))
    table = "vg0-data: 0 4096 linear 259:0 0\nvg0-data: 4096 8192 error \n"
    array = tables(tree, table)["vg0/data"]
    assert (array.level, array.state, array.detail["segments"]) == ("linear", "failed", "error 1, linear 1")


def test_a_captured_lvs_alone() -> None:
    from advisor.facts.block.lvm_text import LVS
    from tests.facts.test_lvm_text import JSON

    tree = drives()
    tree.answer(LVS, JSON)
    arrays = tables(tree, "")
    array = arrays["vg0/data"]
    assert (array.level, array.chunk_bytes, array.data_disks) == ("striped", 65536, 2)
    assert (array.members, array.size_bytes) == (("nvme0n1", "nvme1n1"), 8585740288)


@pytest.mark.captured
def test_captured_maps_alone() -> None:
    tree = Tree()
    tree.answer(("multipath", "-v4", "-ll"), command_texts()["multipath_v4_ll/MULTIPATH_V4_LL_DOC.txt"])
    arrays = tables(tree, "")
    assert {name: (array.state, array.missing) for name, array in arrays.items()} == {
        "mpathg": ("active", 0),
        "mpathe": ("failed", 8),
        "36001405b1629f80d52a4c898f8856e43": ("active", 0),
    }


@pytest.mark.captured
def test_the_composite_captured_tree() -> None:
    arrays, _ = scan(captured.host("procfs/procfs-fixtures"))
    assert arrays["vg0--lv_root"].members == ("sda",)  # a name that no volume group and volume make
    assert (arrays["mpathA"].failed, arrays["mpathA"].members) == (("sdc",), ("sdb", "sdc"))
    assert arrays["mpathB"].state == "suspended"


@pytest.mark.captured
def test_captured_status() -> None:
    found = parse_dm_lines(command_texts()["dmsetup/DMSETUP_STATUS_1.txt"])
    assert len(found) == 12
    assert found["docker-253:10-4254621-0496628a"][0].kind == "thin"
    assert found["rootvg-varvol"][0].words == ("Invalid",)
    assert parse_dm_lines(command_texts()["dmsetup/DMSETUP_STATUS_2.txt"])["rootvg-tanlv"][0].kind is None
    assert parse_dm_lines(command_texts()["dmsetup/DMSETUP_INFO_1.txt"]) == {}


@pytest.mark.parametrize(("table", "shape"), DATA["shapes"])
def test_shapes(table: str, shape: ArrayShape) -> None:
    assert shape_of(parse_dm_lines(f"x: {table}\n")["x"]) == shape


@pytest.mark.parametrize(("words", "status"), DATA["raid_states"])
def test_raid_states(words: str, status: RaidStatus | None) -> None:
    assert raid_status(tuple(words.split())) == status


@pytest.mark.parametrize(("words", "status"), DATA["mirror_states"])
def test_mirror_states(words: str, status: RaidStatus | None) -> None:
    assert mirror_status(tuple(words.split())) == status


@pytest.mark.parametrize(("name", "volume"), DATA["names_of_volumes"])
def test_names_of_volumes(name: str, volume: VolumeName | None) -> None:
    assert parse_volume_name(name) == volume


@pytest.mark.parametrize(("mapping", "identity", "table", "role"), DATA["roles"])
def test_roles(mapping: str, identity: str, table: str, role: str) -> None:
    targets = parse_dm_lines(f"x: {table}").get("x") if table else None
    assert role_of(mapping, identity, targets) == role


def test_states_of_paths() -> None:
    assert path_states(tuple(MULTIPATH_STATUS.format("F", "A").split()))[:2] == (("8:16", "F"), ("8:32", "A"))


@given(st.dictionaries(st.integers(0, 9).map(str), st.lists(st.integers(0, 9).map(str)).map(tuple)))
def test_a_stack_that_goes_round_in_circles_ends(lower: dict[str, tuple[str, ...]]) -> None:
    stack = Stack(lower, {"1": "2", "2": "1"})
    for device in "0123456789":
        stack.disks(device)
        assert device not in stack.through(device, {"3", "4"})


@pytest.mark.parametrize(("layers", "disks"), [(MAX_DEPTH - 1, ("nvme0n1",)), (1000, ())])
def test_volumes_one_on_the_other(layers: int, disks: tuple[str, ...]) -> None:
    tree = Tree()
    tree.nvme(0, 1, number="259:0")
    tree.dm(0, "vg0-v0", uuid(0), ("nvme0n1",))
    for index in range(1, layers):
        tree.dm(index, f"layer{index}", "", (f"dm-{index - 1}",))
    tree.dm(layers, "vg1-top", "LVM-" + "x" * 64, (f"dm-{layers - 1}",))
    unknown = Unknowns()
    host = tree.host()
    arrays = {array.name: array for array in read_arrays(host, read_disks(host, unknown), unknown)}
    assert arrays["vg1/top"].disks == disks
