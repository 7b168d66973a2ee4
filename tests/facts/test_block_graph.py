"""What lies below a device and what each member is to it, whichever driver made it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from advisor.facts.block.block import Array
from advisor.facts.block.block_graph import BlockGraph, BlockNode
from advisor.facts.block.dm import STATUS, TABLE
from advisor.facts.block.stacked import ZPOOL, ZPOOL_STATUS, parse_drbd_status, parse_proc_drbd, parse_zpool_status
from advisor.facts.host_facts import Facts, scan
from advisor.facts.unknown import BTRFS
from advisor.host import Missing
from advisor.limits.figures import Figures, combine
from advisor.limits.host_ceiling import loads_of
from advisor.planning.observations import ObservedTarget, layer_rank
from tests.facts.storage import Tree
from tests.limits.hosts import array, disk, facts

GROUP = "LVM-3zSHSR5Nbf4j7g6auAAefWY2CMaX01th"


def shown(node: BlockNode | None) -> object:
    """A tree as level and members, each of these with its relation."""
    assert node is not None
    if not node.members:
        return node.device
    return (node.level, *((member.relation, shown(member)) for member in node.members))


def mapped(tables: str, *lower: tuple[str, str], status: str = "") -> Facts:
    """Mappings over two disks and an NVMe drive: each with its name and the devices that sysfs shows below it."""
    tree = Tree()
    place = tree.pci("0000:01:00.0", 0)
    for index, name in enumerate(("sda", "sdb")):
        tree.scsi(name, place, number=f"8:{16 * index}")
    tree.nvme(0, 0, number="259:0")
    for index, (mapping, below) in enumerate(lower):
        suffix = mapping.rpartition("-")[2] if mapping.count("-") > 1 else ""
        tree.dm(index, mapping, f"{GROUP}{index:032d}{suffix and '-'}{suffix}", below.split())
    tree.answer(TABLE, tables)
    tree.answer(STATUS, status)
    return scan(tree.host())


LINEAR = ("linear", ("concatenation", "sda"))
CACHED = ("vg-lv_corig", "sda"), ("vg-lv_cdata", "nvme0n1"), ("vg-lv_cmeta", "nvme0n1")
CACHED_TABLE = (
    "vg-lv_corig: 0 8192 linear 8:0 2048\nvg-lv_cdata: 0 800 linear 259:0 2048\nvg-lv_cmeta: 0 80 linear 259:0 4096\n"
)
IMAGES = tuple((f"vg-r_{part}_{at}", name) for at, name in enumerate(("sda", "sdb")) for part in ("rmeta", "rimage"))
IMAGES_TABLE = "".join(
    f"vg-r_rmeta_{at}: 0 8 linear 8:{16 * at} 0\nvg-r_rimage_{at}: 0 8 linear 8:{16 * at} 8\n" for at in (0, 1)
)


@pytest.mark.parametrize(
    ("tables", "lower", "expected"),
    [
        ("vg-lv: 0 8 linear 8:0 2048\n", [("vg-lv", "sda")], LINEAR),
        (
            CACHED_TABLE + "vg-lv: 0 8192 cache 253:2 253:1 253:0 128 1 writeback smq 0\n",
            [*CACHED, ("vg-lv", "dm-0 dm-1 dm-2")],
            ("cache", ("cache", "nvme0n1"), ("data", "sda")),
        ),
        (
            "vg-lv_wcorig: 0 8 linear 8:0 0\nvg-c_cvol: 0 8 linear 259:0 0\n"
            "vg-lv: 0 8 writecache s 253:0 253:1 4096 0\n",
            [("vg-lv_wcorig", "sda"), ("vg-c_cvol", "nvme0n1"), ("vg-lv", "dm-0 dm-1")],
            ("writecache", ("data", "sda"), ("cache", "nvme0n1")),
        ),
        (
            IMAGES_TABLE + "vg-r: 0 8 raid raid1 3 0 region_size 4096 2 253:0 253:1 253:2 253:3\n",
            [*IMAGES, ("vg-r", "dm-0 dm-1 dm-2 dm-3")],
            ("raid1", ("copy", "sda"), ("copy", "sdb")),
        ),
        (
            IMAGES_TABLE + "vg-r: 0 8 raid raid1 5 0 region_size 4096 write_mostly 1 2 253:0 253:1 253:2 253:3\n",
            [*IMAGES, ("vg-r", "dm-0 dm-1 dm-2 dm-3")],
            ("raid1", ("copy", "sda"), ("write-mostly", "sdb")),
        ),
        (
            "vg-p_tmeta: 0 8 linear 259:0 0\nvg-p_tdata: 0 8 striped 2 128 8:0 0 8:16 0\n"
            "vg-p-tpool: 0 8 thin-pool 253:0 253:1 512 0 0\nvg-t: 0 8 thin 253:2 1\n",
            [("vg-p_tmeta", "nvme0n1"), ("vg-p_tdata", "sda sdb"), ("vg-p-tpool", "dm-0 dm-1"), ("vg-t", "dm-2")],
            (*("thin-pool", ("data", ("striped", ("stripe", "sda"), ("stripe", "sdb")))), ("metadata", "nvme0n1")),
        ),
    ],
)
def test_members_of_mapped_devices(tables: str, lower: list[tuple[str, str]], expected: object) -> None:
    found = mapped(tables, *lower)
    graph = BlockGraph(found)
    volume = next(one for one in found.arrays if one.level != "thin")
    assert shown(graph.node(volume.device)) == expected
    assert [one.name for one in found.arrays if one.level != "thin"] == [volume.name], "hidden volumes are no arrays"


@pytest.mark.parametrize("kind", ["rimage_0_imeta", "rimage_0_iorig", "rimage_0", "corig", "wcorig", "cvol"])
def test_hidden_volumes_are_no_arrays(kind: str) -> None:
    assert mapped(f"vg-lv_{kind}: 0 8 linear 8:0 0\n", (f"vg-lv_{kind}", "sda")).arrays == ()


def test_a_capture_that_repeats_itself_at_each_depth_is_not_followed_without_end() -> None:
    wide = " ".join(["253:{0} 0"] * 60)
    tables = "vg-a0_corig: 0 8 linear 8:0 0\n"
    tables += "".join(f"vg-a{at}_corig: 0 8 striped 60 8 {wide.format(at - 1)}\n" for at in range(1, 7))
    lower = [("vg-a0_corig", "sda"), *((f"vg-a{at}_corig", f"dm-{at - 1}") for at in range(1, 7)), ("vg-lv", "dm-6")]
    found = mapped(f"{tables}vg-lv: 0 8 striped 60 8 {wide.format(6)}\n", *lower)
    assert [one.structure for one in found.arrays] == [None]


def stacked(name: str, below: str, files: dict[str, str], answers: dict[tuple[str, ...], str] | None = None) -> Facts:
    tree = Tree()
    place = tree.pci("0000:01:00.0", 0)
    for index, drive in enumerate(("sda", "sdb")):
        tree.scsi(drive, place, number=f"8:{16 * index}")
    tree.nvme(0, 0, number="259:0")
    tree.virtual(name, number="240:0", lower=below.split())
    real = "/sys" + tree.links["/sys/block/sda"].removeprefix("..")
    tree.files |= {path.replace("/sys/class/block/sda", real): text for path, text in files.items()}
    for argv, text in (answers or {}).items():
        tree.answer(argv, text)
    return scan(tree.host())


POOL = """  pool: tank
 state: ONLINE
config:

\tNAME        STATE     READ WRITE CKSUM
\ttank        ONLINE       0     0     0
\t  mirror-0  ONLINE       0     0     0
\t    sda     ONLINE       0     0     0  block size: 512B configured, 4096B native
\t    sdb     ONLINE       0     0     0
\tlogs
\t  nvme0n1   ONLINE       0     0     0
\tspares
\t  sdz       AVAIL

errors: No known data errors
"""
DRBD = " 1: cs:{} ro:Primary/Unknown ds:{}   r-----\n    ns:0 nr:0 oos:{}\n"
DRBD_9 = """[{"name": "r", "devices": [{"volume": 0, "minor": 1, "disk-state": "UpToDate"}], "connections": [
{"connection-state": "Connected", "peer_devices": [{"volume": 0, "peer-disk-state": "UpToDate"}]},
{"connection-state": "Connecting", "peer_devices": [{"volume": 0, "peer-disk-state": "DUnknown"}]}]}]"""


@pytest.mark.parametrize(
    ("name", "below", "files", "answers", "expected", "state"),
    [
        (
            *("bcache0", "sda nvme0n1", {"/sys/class/block/sda/bcache/state": "dirty\n"}, {}),
            *(("bcache", ("data", "sda"), ("cache", "nvme0n1")), ("active", None, None)),
        ),
        (
            *("drbd1", "sda", {"/proc/drbd": DRBD.format("StandAlone", "UpToDate/Inconsistent", 40448716)}, {}),
            *(("replica", ("data", "sda")), ("degraded", 1, 0)),
        ),
        (
            *("drbd1", "sda", {"/proc/drbd": DRBD.format("SyncSource", "UpToDate/Inconsistent", 9)}, {}),
            *(("replica", ("data", "sda")), ("recovering", 1, 0)),
        ),
        (
            *("drbd1", "sda", {"/proc/drbd": DRBD.format("Connected", "UpToDate/UpToDate", 0)}, {}),
            *(("replica", ("data", "sda")), ("active", 0, 1)),
        ),
        (
            *("drbd1", "sda", {"/proc/drbd": DRBD.format("WFConnection", "Inconsistent/DUnknown", 9)}, {}),
            *(("replica", ("data", "sda")), ("failed", 2, -1)),
        ),
        (
            *("drbd1", "sda", {}, {("drbdsetup", "status", "--json"): DRBD_9}),
            *(("replica", ("data", "sda")), ("degraded", 1, 1)),
        ),
        ("drbd1", "sda", {}, {}, ("replica", ("data", "sda")), (None, None, None)),
        (
            *("zd0", "", {"/proc/spl/kstat/zfs/tank/state": "ONLINE\n"}),
            {ZPOOL: "tank\tONLINE\t72\n", ZPOOL_STATUS: POOL},
            (
                "zvol",
                ("data", ("striped", ("stripe", ("mirror", ("copy", "sda"), ("copy", "sdb"))), ("journal", "nvme0n1"))),
            ),
            ("active", None, None),
        ),
    ],
)
def test_devices_of_other_drivers(
    name: str,
    below: str,
    files: dict[str, str],
    answers: dict[tuple[str, ...], str],
    expected: object,
    state: tuple[str | None, int | None, int | None],
) -> None:
    found = stacked(name, below, files, answers)
    device = next(one for one in found.arrays if one.device == name)
    assert (device.state, device.missing, device.survives) == state
    assert shown(BlockGraph(found).node(name)) == expected
    assert name not in {one.name for one in found.disks}
    paths = {node.device for node, _, _ in BlockGraph(found).tops()}
    assert name in paths
    assert not paths.intersection(device.disks)


def test_a_pool_tells_its_devices_with_too_small_blocks_and_a_text_that_is_cut_tells_nothing() -> None:
    assert parse_zpool_status(POOL, str)["tank"].small_blocks == ("sda",)
    assert parse_zpool_status(POOL[:60], str) == {}


@pytest.mark.parametrize(
    ("rows", "left"),
    [
        ("  raidz2-0 DEGRADED;    a ONLINE;    b FAULTED;    c ONLINE;    d ONLINE", (1, 4, 1)),
        ("  draid1:3d:5c:1s-0 DEGRADED;    a ONLINE;    b UNAVAIL;    c ONLINE", (1, 3, 0)),
        ("  mirror-0 ONLINE;    a ONLINE;    b ONLINE;  mirror-1 DEGRADED;    c OFFLINE;    d ONLINE", (1, 4, 0)),
        ("  mirror-0 DEGRADED;    replacing-0 DEGRADED;      a OFFLINE;      c ONLINE;    b ONLINE", (1, 2, 0)),
        ("  a ONLINE;  b ONLINE;logs;  c UNAVAIL", (0, 2, 0)),
        ("  raidz1-0 ONLINE;    a ONLINE;    b ONLINE;special;  c FAULTED", (1, 3, -1)),
    ],
)
def test_what_is_left_of_a_pool(rows: str, left: tuple[int, int, int]) -> None:
    text = f"  pool: tank\nconfig:\n\n\tNAME STATE\n\ttank DEGRADED\n\t{rows}\n".replace(";", "\n\t")
    pool = parse_zpool_status(text, str)["tank"]
    assert (pool.missing, pool.expected, pool.survives) == left


@pytest.mark.parametrize(
    ("profile", "missing", "level", "left"),
    [
        ("raid1", 0, "raid1", ("active", 0, 1)),
        ("raid1", 1, "raid10", ("degraded", 1, 0)),
        ("raid1c3", 1, "raid1", ("degraded", 1, 1)),
        ("single", 1, "linear", ("failed", 1, -1)),
        ("raid6", 2, "raid6", ("degraded", 2, 0)),
    ],
)
def test_a_btrfs_on_several_devices(profile: str, missing: int, level: str, left: tuple[str, int, int]) -> None:
    tree = Tree()
    for index, drive in enumerate(("sda", "sdb")):
        tree.scsi(drive, tree.pci("0000:01:00.0", 0), number=f"8:{16 * index}")
        tree.directories.add(f"{BTRFS}/3f2a/devices/{drive}")
    tree.files |= {f"{BTRFS}/3f2a/devinfo/{at}/missing": "1\n" for at in range(missing)}
    tree.files[f"{BTRFS}/3f2a/allocation/data/{profile}/flags"] = "1\n"
    tree.links["/dev/sda"] = "../sys/block/sda"
    tree.mount("0:40", "/srv", "btrfs")
    tree.files["/proc/self/mountinfo"] = tree.files["/proc/self/mountinfo"].replace("/dev/whatever", "/dev/sda")
    found = scan(tree.host())
    (made,) = found.arrays
    assert (made.level, made.state, made.missing, made.survives) == (level, *left)
    ((node, places, _),) = BlockGraph(found).tops()
    assert (tuple(node.disks()), places) == (("sda", "sdb"), ("/srv",))


def test_states_of_both_generations_of_drbd() -> None:
    (old,) = parse_proc_drbd(DRBD.format("StandAlone", "UpToDate/Inconsistent", 40448716))
    assert (old.minor, old.own, old.peers) == (1, "UpToDate", (("StandAlone", "Inconsistent"),))
    assert old.out_of_sync_kib == 40448716
    (new,) = parse_drbd_status(DRBD_9)
    assert new.peers == (("Connected", "UpToDate"), ("Connecting", "DUnknown"))
    assert parse_drbd_status("no JSON") == parse_proc_drbd("version: 9.2.1\n") == ()


MD = {"chunk_bytes": 65536, "data_disks": 3, "missing": 0}
KNOWN: dict[str, Figures] = {
    "fast": Figures(3000, 2000, 300_000, 200_000),
    "slow": Figures(500, 400, 50_000, 40_000),
    "journal": Figures(900, 400, 9000, 4000),
    **dict.fromkeys(("sda", "sdb", "sdc", "sdd"), Figures(250, 250, 200, 200)),
}


@pytest.mark.parametrize(
    ("made", "expected", "loads"),
    [
        (array("m", "raid1", ["fast", "slow"]), (3500, 400, 350_000, 40_000), {"fast": 6 / 7, "slow": 1 / 7}),
        (
            array("m", "raid1", ["fast", "slow"], detail={"write_mostly": "slow"}),
            *((3000, 400, 300_000, 40_000), {"fast": 1, "slow": 0}),
        ),
        (
            array("m", "raid1", ["fast", "slow"], detail={"write_mostly": "slow"}, failed=["fast"], missing=1),
            *((500, 400, 50_000, 40_000), {"slow": 1}),
        ),
        (
            array("m", "raid5", ["sda", "sdb", "sdc", "sdd", "journal"], **{**MD, "journal": ["journal"]}),
            *((1000, 300, 800, 200), {**dict.fromkeys(("sda", "sdb", "sdc", "sdd"), 1 / 4), "journal": 0}),
        ),
        *(
            (
                array("m", "raid10", drives, data_disks=len(drives), detail={"layout": layout}),
                (len(drives) * 250, len(drives) * 125, len(drives) * 200, len(drives) * 100),
                dict.fromkeys(drives, 1 / len(drives)),
            )
            for drives, layout in (
                (["sda", "sdb", "sdc", "sdd"], "2 far-copies"),
                (["sda", "sdb", "sdc"], "2 near-copies"),
            )
        ),
        (
            array("m", "raid5", ["sda", "sdb", "sdc"], data_disks=3, missing=1),
            *((750, 750, 400, 200), dict.fromkeys(("sda", "sdb", "sdc"), 1 / 3)),
        ),
    ],
)
def test_figures_of_unlike_members(made: Array, expected: tuple[float, ...], loads: dict[str, float]) -> None:
    node = BlockGraph(facts([disk(name) for name in made.members], [made])).node("m")
    assert node is not None
    assert msgspec.structs.astuple(combine(node, KNOWN.__getitem__)) == pytest.approx(expected)
    capacity: Callable[[str], float] = lambda name: KNOWN[name].read_mb_per_s  # noqa: E731
    assert loads_of(node, "read_mb_per_s", capacity) == pytest.approx(loads)
    assert "journal" not in node.disks(holding=True)


@pytest.mark.parametrize(("before", "after", "order"), [("512", "1024", 1), ("1024", "512", -1), ("512", "512", -1)])
def test_what_is_below_takes_larger_requests_first_and_smaller_ones_last(before: str, after: str, order: int) -> None:
    """A map's request fails on a path that takes less."""
    made = [array("dm-0", "multipath", ["sda", "sdb"]), array("dm-2", "striped", ["dm-0"])]
    graph = BlockGraph(facts([disk("sda"), disk("sdb")], made))
    value = ObservedTarget(before, after, after, Missing("absent", "no file"))
    ranks = {name: layer_rank(f"block:{name}:max_sectors_kb", value, graph) for name in ("dm-2", "sda", "dm-0")}
    assert sorted(ranks, key=ranks.__getitem__) == ["sda", "dm-0", "dm-2"][::order]
    assert layer_rank("block:dm-2:read_ahead_kb", value, graph) == 0
