"""Volumes of VxVM as arrays, through a scan of hosts with the text that its tools print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Any

import pytest

from advisor.facts.block.block import Array, ArrayPart
from advisor.facts.block.vxvm import VXPRINT, volume_of
from advisor.facts.block.vxvm_text import parse_access, parse_paths, parse_vxprint
from advisor.facts.host_facts import Facts, scan
from advisor.host import Completed, Missing
from advisor.limits.declared import Declared, DeclaredVolume
from advisor.limits.paths import limits_of
from advisor.limits.records import StoragePath
from advisor.rules.judged import judge
from advisor.snapshot.archive import capture_host, open_snapshot
from tests import vxvm
from tests.facts.storage import Tree
from tests.trees import host_of, make_command, make_tree
from tests.vxvm import answer, dco, group, listed, mount, nvme, nvme_lines, plex, stripe, subdisk, volume, vxprint

DATA = "/dev/vx/dsk/datadg/vol01"


def made(records: Sequence[str], count: int = 4, **state: Any) -> Facts:
    """A host with vol01 of these records mounted at /data."""
    tree = nvme(count)
    mount(tree, DATA, "/data")
    answer(tree, vxprint(group("datadg", vxvm.names(count), volume("vol01", **state), *records)), *nvme_lines(count))
    return scan(tree.host())


def only(facts: Facts) -> Array:
    (found,) = [one for one in facts.arrays if one.manager == "vxvm"]
    return found


def path(facts: Facts, *declared: DeclaredVolume, place: str = "/data") -> StoragePath:
    (found,) = [one for one in limits_of(facts, None, Declared(declared)).paths if one.name == place]
    return found


def drive(number: int) -> DeclaredVolume:
    figures = {"read_mb_per_s": 1000.0, "write_mb_per_s": 500.0, "read_iops": 10_000, "write_iops": 5_000}
    return DeclaredVolume("drive", device=f"nvme{number}n1", **figures)  # type: ignore[arg-type]


def bound(found: StoragePath, quantity: str) -> float:
    return next(one.value for one in found.sustained if one.quantity == quantity)


def why(facts: Facts, fact: str) -> str:
    return next((one.why for one in facts.unknown if one.fact == fact), "")


def test_a_stripe() -> None:
    facts = made(stripe("vol01-01", "vol01", vxvm.names(4)))
    one = only(facts)
    assert (one.name, one.level, one.chunk_bytes, one.data_disks) == ("datadg/vol01", "raid0", 64 << 10, 4)
    assert one.members == ("nvme0n1", "nvme1n1", "nvme2n1", "nvme3n1")
    assert (one.disks, one.numa_nodes, one.state, one.missing) == (one.members, (0, 1), "active", 0)
    assert (one.size_bytes, one.mountpoints) == (vxvm.LENGTH * 512, ("/data",))
    found = path(facts, *map(drive, range(4)))
    assert (bound(found, "read_mb_per_s"), bound(found, "write_iops")) == (4000, 20_000)
    assert (found.file_system, found.device) == ("vxfs", "vx/dsk/datadg/vol01")
    assert found.layers == ("datadg/vol01: raid0 of nvme0n1, nvme1n1, nvme2n1, nvme3n1",)


def test_the_kernels_own_names_of_volumes_and_dmp_nodes_are_no_disks() -> None:
    tree = nvme(2)
    tree.virtual("VxVM55000", number="199:55000")
    tree.virtual("VxDMP1", number="201:16")
    mount(tree, DATA, "/data")
    text = vxprint(group("datadg", vxvm.names(2), volume("vol01"), *stripe("vol01-01", "vol01", vxvm.names(2))))
    answer(tree, text, *nvme_lines(2))
    facts = scan(tree.host())
    assert [disk.name for disk in facts.disks] == ["nvme0n1", "nvme1n1"]
    assert (only(facts).device, only(facts).mountpoints) == ("VxVM55000", ("/data",))
    assert path(facts).device == "VxVM55000"


def test_a_mirror_with_a_dco_that_is_no_data() -> None:
    records = [plex("vol01-01", "vol01"), subdisk("vol01-01", "datadg01", "nvme0_0")]
    records += [plex("vol01-02", "vol01"), subdisk("vol01-02", "datadg02", "nvme0_1")]
    facts = made([*records, *dco("vol01", "datadg03", "nvme0_2")])
    one = only(facts)
    assert (one.level, one.members, one.chunk_bytes) == ("raid1", ("nvme0n1", "nvme1n1"), None)
    assert one.detail["dco"] == "vol01_dco"
    found = path(facts, drive(0), drive(1))
    assert (bound(found, "read_mb_per_s"), bound(found, "write_mb_per_s")) == (2000, 500)
    assert "vxvm.mirror-without-log" not in {one.id for one in judge(facts)}
    assert "vxvm.mirror-without-log" in {one.id for one in judge(made(records))}


def test_a_log_plex_is_no_mirror() -> None:
    records = [plex("vol01-01", "vol01"), subdisk("vol01-01", "datadg01", "nvme0_0")]
    records += [
        "pl vol01-02 vol01 ENABLED ACTIVE LOGONLY CONCAT - RW",
        "sd l-1 vol01-02 datadg02 0 528 LOG nvme0_1 ENA",
    ]
    one = only(made(records))
    assert (one.level, one.members, one.detail["logs"]) == ("linear", ("nvme0n1",), "vol01-02")


def test_a_snapshot_plex_is_no_mirror() -> None:
    records = [plex("vol01-01", "vol01"), subdisk("vol01-01", "datadg01", "nvme0_0")]
    records += [plex("vol01-02", "vol01", state="SNAPDONE"), subdisk("vol01-02", "datadg02", "nvme0_1")]
    assert only(made(records)).level == "linear"


def test_mirrored_stripes() -> None:
    records = stripe("vol01-01", "vol01", vxvm.names(2)) + stripe("vol01-02", "vol01", vxvm.names(2, 2))
    facts = made(records)
    one = only(facts)
    assert (one.level, one.chunk_bytes, one.data_disks, len(one.members)) == ("raid10", 64 << 10, 2, 4)
    found = path(facts, *map(drive, range(4)))
    assert (bound(found, "read_mb_per_s"), bound(found, "write_mb_per_s")) == (4000, 1000)
    assert any(layer.startswith("datadg/vol01 vol01-02: raid0 of nvme2n1, nvme3n1") for layer in found.layers)


def layered(columns: int) -> list[str]:
    """A striped mirror: a stripe of subvolumes, each with two plexes."""
    found = [plex("vol01-03", "vol01", f"STRIPE {columns}/256")]
    for at in range(columns):
        inner = f"vol01-L{at + 1:02}"
        found.append(f"sv vol01-S{at + 1:02} vol01-03 {inner} 1 {vxvm.LENGTH // columns} {at}/0 2/2 ENA")
    for at in range(columns):
        inner = f"vol01-L{at + 1:02}"
        found.append(volume(inner))
        for copy in range(2):
            name, disk = f"vol01-P{2 * at + copy + 1:02}", 2 * at + copy
            found += [plex(name, inner), subdisk(name, f"datadg{disk + 1:02}", f"nvme0_{disk}")]
    return found


def test_a_layered_striped_mirror() -> None:
    facts = made(layered(2))
    one = only(facts)
    assert (one.level, one.chunk_bytes, one.data_disks) == ("raid10", 128 << 10, 2)
    assert one.members == ("nvme0n1", "nvme1n1", "nvme2n1", "nvme3n1")
    assert isinstance(one.structure, ArrayPart)
    assert [part.level for part in one.structure.members if isinstance(part, ArrayPart)] == ["raid1", "raid1"]
    found = path(facts, *map(drive, range(4)))
    assert (bound(found, "read_mb_per_s"), bound(found, "write_mb_per_s")) == (4000, 1000)


def test_a_layered_volume_with_a_broken_subvolume_is_degraded() -> None:
    records = [
        line.replace("ENABLED  ACTIVE", "DETACHED IOFAIL") if line.startswith("pl vol01-P02") else line
        for line in layered(2)
    ]
    one = only(made(records))
    assert (one.level, one.state, one.missing, one.failed) == ("raid10", "degraded", 1, ("nvme1n1",))


def test_a_concatenated_mirror() -> None:
    records = [plex("vol01-03", "vol01"), "sv vol01-S01 vol01-03 vol01-L01 1 209715200 0 2/2 ENA", volume("vol01-L01")]
    for at in range(2):
        records += [plex(f"vol01-P0{at}", "vol01-L01"), subdisk(f"vol01-P0{at}", f"datadg0{at + 1}", f"nvme0_{at}")]
    facts = made(records)
    assert (only(facts).level, only(facts).members) == ("raid1", ("nvme0n1", "nvme1n1"))


def test_concatenated_is_not_striped() -> None:
    records = [plex("vol01-01", "vol01")]
    records += [subdisk("vol01-01", f"datadg0{at + 1}", f"nvme0_{at}", str(at * 1000)) for at in range(3)]
    facts = made(records)
    assert (only(facts).level, only(facts).members) == ("linear", ("nvme0n1", "nvme1n1", "nvme2n1"))
    found = path(facts, *map(drive, range(4)))
    assert bound(found, "read_mb_per_s") == 1000
    assert found.spread is not None
    assert found.spread.read_mb_per_s == 3000
    assert any("linear over 3 disks" in note for note in found.notes)


def test_a_stripe_whose_columns_have_several_subdisks() -> None:
    records = [plex("vol01-01", "vol01", "STRIPE 2/128")]
    for at, (column, disk) in enumerate(((0, 0), (1, 1), (0, 2), (1, 3))):
        records.append(subdisk("vol01-01", f"datadg0{disk + 1}", f"nvme0_{disk}", f"{column}/{at // 2 * 1000}"))
    found = path(made(records), *map(drive, range(4)))
    assert bound(found, "read_mb_per_s") == 2000


def test_raid_5_and_its_log() -> None:
    columns = [subdisk("vol01-01", f"datadg0{at + 1}", f"nvme0_{at}", f"{at}/0") for at in range(4)]
    log = ["pl vol01-02 vol01 ENABLED LOG 1440 CONCAT - RW", "sd l-1 vol01-02 datadg05 0 1440 0 nvme0_4 ENA"]
    facts = made([plex("vol01-01", "vol01", "RAID 4/32"), *columns, *log], 5)
    one = only(facts)
    assert (one.level, one.chunk_bytes, one.data_disks, len(one.members)) == ("raid5", 16 << 10, 3, 4)
    assert bound(path(facts, *map(drive, range(5))), "write_iops") == 5000
    columns[2] = columns[2].replace("ENA", "dS")
    facts = made([plex("vol01-01", "vol01", "RAID 4/32"), *columns, *log], 5, state="DEGRADED")
    one = only(facts)
    assert (one.state, one.missing, one.failed) == ("degraded", 1, ("nvme2n1",))
    assert bound(path(facts, *map(drive, range(5))), "read_mb_per_s") == 3000
    columns[1] = "sd datadg02-01 vol01-01 datadg02 0 209715200 1/0 - NDEV"
    assert only(made([plex("vol01-01", "vol01", "RAID 4/32"), *columns, *log], 5)).state == "failed"


@pytest.mark.parametrize(
    ("kstate", "state", "mode", "found"),
    [
        ("DETACHED", "STALE", "RW", "degraded"),
        ("DETACHED", "IOFAIL", "RW", "degraded"),
        ("DISABLED", "NODEVICE", "RW", "degraded"),
        ("DISABLED", "OFFLINE", "RW", "degraded"),
        ("ENABLED", "STALE", "WO", "recovering"),
    ],
)
def test_a_plex_that_does_not_serve(kstate: str, state: str, mode: str, found: str) -> None:
    records = stripe("vol01-01", "vol01", vxvm.names(2))
    records += stripe("vol01-02", "vol01", vxvm.names(2, 2), kstate=kstate, state=state, mode=mode)
    facts = made(records)
    one = only(facts)
    assert (one.level, one.state, one.missing, one.failed) == ("raid10", found, 1, ("nvme2n1", "nvme3n1"))
    (finding,) = [one for one in judge(facts) if one.id == "arrays.degraded"]
    assert "vx" in finding.advice
    assert bound(path(facts, *map(drive, range(4))), "read_mb_per_s") == 2000


@pytest.mark.parametrize(
    ("kstate", "state", "found"),
    [("ENABLED", "SYNC", "resyncing"), ("ENABLED", "NEEDSYNC", "resyncing"), ("DISABLED", "CLEAN", "inactive")],
)
def test_the_state_of_a_volume(kstate: str, state: str, found: str) -> None:
    records = [plex("vol01-01", "vol01", kstate=kstate, state="ACTIVE" if kstate == "ENABLED" else "CLEAN")]
    records += [subdisk("vol01-01", "datadg01", "nvme0_0")]
    assert only(made(records, kstate=kstate, state=state)).state == found


def test_a_volume_without_a_working_plex_has_failed() -> None:
    records = [
        plex("vol01-01", "vol01", kstate="DISABLED", state="NODEVICE"),
        "sd d-1 vol01-01 datadg09 0 100 0 - NDEV",
    ]
    one = only(made(records))
    assert (one.state, one.missing) == ("failed", 1)


def test_enclosure_names_with_several_paths() -> None:
    tree = Tree()
    for at, name in enumerate(("sdb", "sdc", "sdd", "sde")):
        tree.scsi(name, tree.pci(f"0000:0{at + 1}:00.0", at % 2))
    mount(tree, "/dev/vx/rdsk/datadg/vol01", "/data")
    media = {"datadg01": "emc0_0123", "datadg02": "emc0_0124"}
    paths = """SUBPATH                     DANAME               DMNAME       GROUP        STATE
sdb                         emc0_0123            datadg01     datadg       ENABLED
sdd                         emc0_0123            datadg01     datadg       ENABLED
sdc                         emc0_0124            datadg02     datadg       ENABLED
sde                         emc0_0124            datadg02     datadg       ENABLED
"""
    lines = [listed("emc0_0123", "datadg01", "sdb"), listed("emc0_0124", "datadg02", "sdc")]
    text = vxprint(group("datadg", media, volume("vol01"), *stripe("vol01-01", "vol01", media)))
    answer(tree, text, *lines, paths=paths)
    one = only(scan(tree.host()))
    assert (one.level, one.data_disks, one.members) == ("raid0", 2, ("sdb", "sdc", "sdd", "sde"))
    assert isinstance(one.structure, ArrayPart)
    assert [(part.name, part.level) for part in one.structure.members if isinstance(part, ArrayPart)] == [
        ("emc0_0123", "multipath"),
        ("emc0_0124", "multipath"),
    ]
    found = path(scan(tree.host()), *(DeclaredVolume("drive", device=n, read_mb_per_s=100.0) for n in ("sdb", "sdc")))
    assert found.disks == ("sdb", "sdd", "sdc", "sde")


def test_paths_by_vxdmpadm() -> None:
    text = """NAME         STATE[A]   PATH-TYPE[M] DMPNODENAME  ENCLR-NAME   CTLR   ATTRS
================================================================================
sdb          ENABLED(A) -            emc0_0123    emc0         c1     -
sdc          ENABLED(A) -            emc0_0123    emc0         c2     -
"""
    assert parse_paths(text) == {"emc0_0123": ("sdb", "sdc")}


def test_a_disk_whose_kernel_name_nothing_tells() -> None:
    tree = nvme(1)
    mount(tree, DATA, "/data")
    media = {"datadg01": "emc0_0123"}
    records = [plex("vol01-01", "vol01"), subdisk("vol01-01", "datadg01", "emc0_0123")]
    answer(tree, vxprint(group("datadg", media, volume("vol01"), *records)))
    facts = scan(tree.host())
    assert (only(facts).members, only(facts).detail["unmapped"]) == ((), "emc0_0123")
    assert "no kernel name" in why(facts, "arrays.datadg/vol01.members.emc0_0123")
    (one,) = [one for one in path(facts).ceilings if one.stage == "medium"]
    assert (one.known, one.where) == ("unknown", ("emc0_0123",))
    assert "neither vxdisk nor vxdmpadm" in one.why


def test_a_plex_on_another_nodes_disk() -> None:
    """FSS: the peer exports its disk, which has no device here."""
    tree = nvme(1)
    mount(tree, DATA, "/data")
    media = {"datadg01": "nvme0_0", "datadg02": "node2_nvme0_0"}
    records = [plex("vol01-01", "vol01"), subdisk("vol01-01", "datadg01", "nvme0_0")]
    records += [plex("vol01-02", "vol01"), subdisk("vol01-02", "datadg02", "node2_nvme0_0")]
    lines = [
        listed("nvme0_0", "datadg01", "nvme0n1", status="online exported shared"),
        listed("node2_nvme0_0", "datadg02", "-", status="online remote shared"),
    ]
    answer(tree, vxprint(group("datadg", media, volume("vol01"), *records)), *lines)
    facts = scan(tree.host())
    one = only(facts)
    assert (one.level, one.state, one.members) == ("raid1", "active", ("nvme0n1",))
    assert one.detail["remote"] == "node2_nvme0_0"
    assert "exported by another node (FSS)" in why(facts, "arrays.datadg/vol01.members.node2_nvme0_0")
    found = path(facts, drive(0))
    assert bound(found, "write_mb_per_s") == 500
    (elsewhere,) = [one for one in found.ceilings if one.known == "unknown" and one.stage == "medium"]
    assert (elsewhere.where, "LLT" in elsewhere.why) == (("node2_nvme0_0",), True)


def test_several_groups_and_one_that_vxprint_alone_does_not_show() -> None:
    tree = nvme(2)
    mount(tree, DATA, "/data")
    mount(tree, "/dev/vx/dsk/logdg/logvol", "/log", number="199:56000")
    one = group("datadg", {"d1": "nvme0_0"}, volume("vol01"), plex("p1", "vol01"), subdisk("p1", "d1", "nvme0_0"))
    two = group("logdg", {"l1": "nvme0_1"}, volume("logvol"), plex("p1", "logvol"), subdisk("p1", "l1", "nvme0_1"))
    answer(tree, vxprint(one), listed("nvme0_0", "d1", "nvme0n1"), listed("nvme0_1", "l1", "nvme1n1", of="logdg"))
    tree.answer(("vxprint", "-g", "logdg", "-ht"), vxprint(two))
    found = {one.name: (one.members, one.mountpoints) for one in scan(tree.host()).arrays}
    assert found == {"datadg/vol01": (("nvme0n1",), ("/data",)), "logdg/logvol": (("nvme1n1",), ("/log",))}


def test_a_group_without_its_own_line_is_named_by_what_is_mounted() -> None:
    tree = nvme(1)
    mount(tree, DATA, "/data")
    records = [volume("vol01"), plex("p1", "vol01"), subdisk("p1", "d1", "nvme0n1")]
    tree.answer(VXPRINT, vxvm.HEAD + "dm d1 nvme0n1 auto 65536 2147417808 -\n" + "".join(f"{one}\n" for one in records))
    one = only(scan(tree.host()))
    assert (one.name, one.members, one.mountpoints) == ("datadg/vol01", ("nvme0n1",), ("/data",))


def test_a_volume_on_a_disk_of_another_node_alone() -> None:
    tree = nvme(1)
    mount(tree, DATA, "/data")
    records = [volume("vol01"), plex("p1", "vol01"), subdisk("p1", "d1", "node2_nvme0_0")]
    text = vxprint(group("datadg", {"d1": "node2_nvme0_0"}, *records))
    answer(tree, text, listed("node2_nvme0_0", "d1", "-", status="online remote"))
    facts = scan(tree.host())
    assert (only(facts).level, only(facts).members) == ("linear", ())
    (one,) = path(facts).ceilings
    assert (one.where, "LLT" in one.why) == (("node2_nvme0_0",), True)


def test_access_names_that_are_the_kernels() -> None:
    tree = Tree()
    tree.scsi("sdb", tree.pci("0000:01:00.0", 1))
    mount(tree, DATA, "/data")
    text = group("datadg", {"d1": "sdb"}, volume("vol01"), plex("p1", "vol01"), subdisk("p1", "d1", "sdb"))
    tree.answer(VXPRINT, vxprint(text))
    assert (only(scan(tree.host())).members, only(scan(tree.host())).numa_nodes) == (("sdb",), (1,))


@pytest.mark.parametrize(
    "done",
    [
        Missing("absent", "vxprint: not found"),
        Missing("unreadable", "Permission denied"),
        Completed(1, "", "VxVM vxprint ERROR V-5-1-684 IPC failure: Configuration daemon is not accessible"),
    ],
)
def test_without_root_the_mounted_volume_is_there_and_the_rest_unknown(done: Any) -> None:
    tree = nvme(1)
    mount(tree, DATA, "/data")
    tree.answers[VXPRINT] = done
    facts = scan(tree.host(is_live=False, is_root=False))
    one = only(facts)
    assert (one.name, one.level, one.state, one.members) == ("datadg/vol01", None, None, ())
    assert one.mountpoints == ("/data",)
    assert "vxprint" in why(facts, "arrays.vxvm")
    assert "needs root" in why(facts, "arrays.datadg/vol01.level")
    found = path(facts)
    assert found.sustained == ()
    assert "vxprint -ht needs root" in found.ceilings[-1].why


def test_a_host_without_vxvm_is_asked_nothing() -> None:
    facts = scan(nvme(1).host())
    assert not [one for one in facts.unknown if "vx" in one.fact]


def test_what_vxtunefs_and_fstyp_show() -> None:
    tree = nvme(2)
    mount(tree, DATA, "/data")
    vxvm.vxtunefs(tree, "/data", vxvm.tuned(65536, 1))
    tree.answer(("/opt/VRTS/bin/fstyp", "-v", DATA), "vxfs\nmagic a501fcf5  version 13\nbsize  8192 size  26214400\n")
    (one,) = scan(tree.host()).filesystems
    assert (one.kind, one.block_bytes) == ("vxfs", 8192)
    assert (one.tunables["read_pref_io"], one.tunables["read_nstream"]) == (65536, 1)
    assert one.tunables["discovered_direct_iosz"] == 262144
    bare = nvme(1)
    mount(bare, DATA, "/data")
    facts = scan(bare.host())
    assert why(facts, "filesystems.vx/dsk/datadg/vol01.tunables") == "vxtunefs is not there"


@pytest.mark.parametrize(
    ("unit", "columns", "fires"), [(65536, 1, True), (65536, 4, False), (65536, 8, False), (131072, 4, False)]
)
def test_streams_against_the_stripes(unit: int, columns: int, fires: bool) -> None:
    tree = nvme(4)
    mount(tree, DATA, "/data")
    vxvm.vxtunefs(tree, "/data", vxvm.tuned(unit, columns))
    text = vxprint(group("datadg", vxvm.names(4), volume("vol01"), *stripe("vol01-01", "vol01", vxvm.names(4))))
    answer(tree, text, *nvme_lines(4))
    found = [one for one in judge(scan(tree.host())) if one.id == "vxfs.streams-off-stripes"]
    assert bool(found) is fires
    if fires:
        assert "read_pref_io=65536,read_nstream=4,write_pref_io=65536,write_nstream=4" in found[0].advice
        assert "/etc/vx/tunefstab" in found[0].advice


def test_an_xfs_on_a_stripe_of_vxvm_is_held_against_it() -> None:
    tree = nvme(4)
    mount(tree, DATA, "/data", "xfs")
    text = vxprint(group("datadg", vxvm.names(4), volume("vol01"), *stripe("vol01-01", "vol01", vxvm.names(4))))
    answer(tree, text, *nvme_lines(4))
    (found,) = [one for one in judge(scan(tree.host())) if one.id == "filesystems.not-aligned"]
    assert "su=64k,sw=4" in found.advice


def test_columns_on_one_disk() -> None:
    records = [plex("vol01-01", "vol01", "STRIPE 2/128")]
    records += [subdisk("vol01-01", "datadg01", "nvme0_0", f"{at}/0", offset=at * 1000) for at in range(2)]
    (found,) = [one for one in judge(made(records)) if one.id == "vxvm.columns-share-disk"]
    assert found.evidence["disks"] == ("nvme0n1",)
    fine = made(stripe("vol01-01", "vol01", vxvm.names(4)))
    assert "vxvm.columns-share-disk" not in {one.id for one in judge(fine)}


def test_disk_lists() -> None:
    text = """DEVICE       TYPE           DISK        GROUP        STATUS               OS_NATIVE_NAME   ATTR
emc_01       auto:cdsdisk   disk1       testdg       online               sdd              -
emc_03       auto:none      -           -            online invalid       sdf              -
"""
    first, second = parse_access(text)
    assert (first.name, first.disk, first.group, first.status) == ("emc_01", "disk1", "testdg", ("online",))
    assert first.native == "sdd"
    assert (second.group, second.status, second.native) == (None, ("online", "invalid"), "sdf")
    (gone,) = parse_access("DEVICE TYPE DISK GROUP STATUS\n- - datadg02 datadg failed was:sdc\n")
    assert (gone.name, gone.disk) == ("sdc", "datadg02")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("/dev/vx/dsk/datadg/vol01", "datadg/vol01"),
        ("/dev/vx/rdsk/datadg/vol01", "datadg/vol01"),
        ("/dev/vx/dsk/vol01", "vol01"),
        ("/dev/vx/dmp/emc0_0123", None),
        ("/dev/sda1", None),
    ],
)
def test_device_nodes(source: str, name: str | None) -> None:
    assert volume_of(source) == name


def test_records_of_older_and_longer_names() -> None:
    """Names wider than their columns, and the columns of releases before 5.0 (USETYPE in place of RVG)."""
    text = """dg vrts_kube_dg-59131 default default 55000    1741211310.10.r730
dm disk_0       disk_0       auto     65536    2147417808 -
v  vol_c51h5spa1dkn01c4076c fsgen ENABLED ACTIVE   62914560 SELECT    -
pl vol_c51h5spa1dkn01c4076c-01 vol_c51h5spa1dkn01c4076c ENABLED ACTIVE 62914560 CONCAT - RW
sd disk_0-13    vol_c51h5spa1dkn01c4076c-01 disk_0 377895168 62914560 0 disk_0 ENA
"""
    (one,) = parse_vxprint(text)
    (volume_found,) = one.volumes.values()
    assert (one.name, volume_found.length) == ("vrts_kube_dg-59131", 62914560)
    assert volume_found.plexes[0].subdisks[0].device == "disk_0"


@pytest.mark.parametrize("text", ["", "garbage\n" * 10, "v  x\npl y\nsd z\nsv a b\ndc c\nco\n", vxvm.HEAD])
def test_damaged_text_is_no_volume(text: str) -> None:
    assert [one for group_found in parse_vxprint(text) for one in group_found.volumes] == []


def test_a_snapshot_holds_what_a_scan_asked(tmp_path: FilePath) -> None:
    """Executables on the search path, captured and replayed; the capture script's commands are the same."""
    media = vxvm.names(2)
    records = (volume("vol01"), *stripe("vol01-01", "vol01", media))
    text = vxprint(group("datadg", media, *records))
    native = "DEVICE TYPE DISK GROUP STATUS OS_NATIVE_NAME ATTR\n" + "\n".join(nvme_lines(2)) + "\n"
    programs = tmp_path / "bin"
    (tmp_path / "print").write_text(text)
    (tmp_path / "list").write_text(native)
    make_command(programs, "vxprint", f'[ "$*" = -ht ] && cat {tmp_path}/print')
    make_command(programs, "vxdisk", f'case "$*" in "-e list") cat {tmp_path}/list ;; *) exit 1 ;; esac')
    make_command(programs, "vxtunefs", 'echo "read_pref_io = 65536"')
    mounts = "90 1 199:55000 / /data rw - vxfs /dev/vx/dsk/datadg/vol01 rw\n"
    files: dict[str, str | bytes] = {"/proc/self/mountinfo": mounts}
    for number in range(2):
        files[f"/sys/block/nvme{number}n1/size"] = "2048\n"
    host = host_of(make_tree(tmp_path / "root", files), programs)
    (tmp_path / "snapshot").write_bytes(capture_host(host, scan))
    once, again = scan(host), scan(open_snapshot(tmp_path / "snapshot"))
    assert (only(once).level, only(once).members) == ("raid0", ("nvme0n1", "nvme1n1"))
    assert again.arrays == once.arrays
    assert again.filesystems == once.filesystems
    assert once.filesystems[0].tunables == {"read_pref_io": 65536}


def test_volumes_that_contain_each_other_many_times_end() -> None:
    records = [volume("vol01"), plex("p0", "vol01", "STRIPE 2/128")]
    for at in range(6):
        records += [f"sv s{at}-{copy} p{at} w{at + 1} 1 100 {copy}/0 2/2 ENA" for copy in range(50)]
        records += [volume(f"w{at + 1}"), plex(f"p{at + 1}", f"w{at + 1}", "STRIPE 2/128")]
    records += ["sv loop p6 w1 1 100 0/0 2/2 ENA", "sv self p6 w6 1 100 0/0 2/2 ENA"]
    tree = nvme(1)
    mount(tree, DATA, "/data")
    answer(tree, vxprint(group("datadg", {"d1": "nvme0n1"}, *records)))
    assert [one.name for one in scan(tree.host()).arrays] == ["datadg/vol01"]
