"""Paths: what lies on what, what binds, what is unknown and why."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.block.disks import Disk
from advisor.facts.unknown import Unknown
from advisor.limits.declared import Declared, DeclaredVolume
from advisor.limits.figures import QUANTITIES
from advisor.limits.links import PciAndNetwork, PciHop, portal_links, wire_ceiling
from advisor.limits.notes import mixed
from advisor.limits.paths import bounds, limits_of
from advisor.limits.records import Limits, PathCeiling, Rate, StoragePath
from advisor.reach.addresses import FoundAddress
from tests.limits.hosts import EBS, array, disk, facts, link, mounted

VALUE = st.one_of(st.none(), st.floats(1, 1e9))
RATE = st.builds(Rate, VALUE, VALUE, VALUE, VALUE)
CEILING = st.builds(
    lambda rate, burst: PathCeiling("volume", "v", (), "host", "", rate, burst), RATE, st.one_of(st.none(), RATE)
)
DRIVE = DeclaredVolume("drive", device="nvme0n1", read_mb_per_s=3200, write_mb_per_s=1300, read_iops=600_000)


def by_stage(path: StoragePath) -> dict[str, PathCeiling]:
    return {one.stage: one for one in path.ceilings}


def bound(path: StoragePath, quantity: str) -> tuple[str, object]:
    (found,) = [one for one in path.sustained if one.quantity == quantity]
    return found.stage, found.value


def only(limits: Limits) -> StoragePath:
    (path,) = limits.paths
    return path


@given(st.lists(CEILING, max_size=6))
def test_what_binds_is_the_smallest_that_is_known(ceilings: list[PathCeiling]) -> None:
    found = {one.quantity: one for one in bounds(ceilings)}
    for quantity in QUANTITIES:
        known = [value for one in ceilings if (value := getattr(one.sustained, quantity)) is not None]
        assert (quantity in found) == bool(known)
        if known:
            assert found[quantity].value == min(known)
            assert getattr(ceilings[found[quantity].ceiling].sustained, quantity) == min(known)


def test_a_drive_of_which_nothing_is_known_has_no_figure() -> None:
    path = only(limits_of(facts([disk("nvme0n1")])))
    (ceiling,) = path.ceilings
    assert (ceiling.known, ceiling.sustained, path.sustained) == ("unknown", Rate(), ())
    assert "does not report" in ceiling.why


def test_a_declared_drive_behind_its_link() -> None:
    hops = {"nvme0n1": (PciHop("0000:20:00.0", 15_752), PciHop("0000:10:00.0", 63_008))}
    path = only(limits_of(facts([disk("nvme0n1")]), PciAndNetwork(hops=hops), Declared((DRIVE,))))
    assert bound(path, "read_mb_per_s") == ("pcie", 1969)
    assert bound(path, "write_mb_per_s") == ("medium", 1300)
    assert bound(path, "read_iops") == ("medium", 600_000)
    assert "write_iops" not in {one.quantity for one in path.sustained}


def test_a_virtual_machine_s_pcie_is_not_believed() -> None:
    hops = {"nvme0n1": (PciHop("0000:20:00.0", 2000),)}
    path = only(limits_of(facts([disk("nvme0n1")], virtualization="kvm"), PciAndNetwork(hops=hops)))
    assert by_stage(path)["pcie"].known == "unknown"
    assert path.sustained == ()
    card = link("eth0", gigabits=2)
    for machine, known in (("kvm", "unknown"), ("none", "host")):
        assert by_stage(only(limits_of(facts(links=[card], virtualization=machine))))["pcie"].known == known


def test_an_instance_and_a_volume_with_bursts() -> None:
    """m5.large: 81.25 MB/s and 3,600 IOPS, for 30 minutes 593.75 and 18,750; gp2 of 100 GiB: 300 and 3,000 IOPS."""
    host = facts([disk("nvme1n1", model=EBS, serial="vol0abc12345")], instance_type="m5.large", virtualization="amazon")
    path = only(limits_of(host, None, Declared((DeclaredVolume("gp2", volume_id="vol-0abc12345", gib=100),))))
    assert bound(path, "read_iops") == ("volume", 300)
    assert bound(path, "read_mb_per_s") == ("volume", pytest.approx(75 * 1.048576))
    burst: dict[str, tuple[str, object]] = {one.quantity: (one.stage, one.value) for one in path.burst}
    assert burst["read_iops"] == ("volume", 3000)
    assert burst["write_mb_per_s"] == ("volume", pytest.approx(128 * 1.048576))
    assert (by_stage(path)["instance"].burst_seconds, by_stage(path)["volume"].burst_seconds) == (1800, 2000)


def test_an_ebs_volume_of_no_declared_type_is_bound_by_its_instance_only() -> None:
    path = only(limits_of(facts([disk("nvme1n1", model=EBS)], instance_type="r5b.24xlarge")))
    assert bound(path, "read_mb_per_s") == ("instance", 7500)
    assert (by_stage(path)["volume"].known, by_stage(path)["instance"].known) == ("unknown", "table")


@pytest.mark.parametrize("name", ["m9z.large", "\x1b[2Jtype", None])
def test_an_instance_that_the_table_lacks_is_unknown(name: str | None) -> None:
    said = Declared((DeclaredVolume("gp3", device="nvme1n1", gib=100),))
    found = limits_of(facts([disk("nvme1n1", model=EBS)], instance_type=name), None, said)
    assert by_stage(found.paths[0])["instance"].known == "unknown"
    assert found.bought == ()


def test_an_array_of_unknown_level_or_of_one_drive_twice() -> None:
    one = disk("nvme0n1")
    parts = ("nvme0n1p1", "nvme0n1p2")
    split = type(one)(**{**{name: getattr(one, name) for name in one.__struct_fields__}, "partitions": parts})
    path = only(limits_of(facts([split], [array("md0", "raid0", parts)]), None, Declared((DRIVE,))))
    assert bound(path, "read_mb_per_s") == ("medium", 3200)
    names = ["nvme0n1", "nvme1n1"]
    said = Declared(tuple(DeclaredVolume("drive", device=name, read_mb_per_s=1000) for name in names))
    path = only(limits_of(facts([disk(name) for name in names], [array("dm-0", None, names)]), None, said))
    assert bound(path, "read_mb_per_s") == ("medium", 2000)
    assert "no arithmetic" in path.notes[0]


def test_spares_and_failed_members_carry_nothing() -> None:
    names = ["nvme0n1", "nvme1n1", "nvme2n1"]
    one = array("md0", "raid1", names, spares=names[2:], failed=names[1:2], missing=1, state="degraded")
    said = Declared(tuple(DeclaredVolume("drive", device=name, read_mb_per_s=1000) for name in names))
    (path, *_) = limits_of(facts([disk(name) for name in names], [one]), None, said).paths
    assert bound(path, "read_mb_per_s") == ("medium", 1000)
    assert "degraded" in path.notes[0]


def _loop(*below: str) -> Disk:
    return msgspec.structs.replace(disk("loop0", kind="loop", size_bytes=1 << 30), file_devices=below)


def test_the_path_of_a_loop_device_leads_to_the_disk_of_its_file() -> None:
    drive = msgspec.structs.replace(disk("nvme0n1"), partitions=("nvme0n1p2",))
    systems = [mounted("nvme0n1p2", "/srv"), mounted("loop0", "/data")]
    hops = {"nvme0n1": (PciHop("0000:20:00.0", 15_752),)}
    host = facts([drive, _loop("nvme0n1p2")], filesystems=systems)
    whole, file = sorted(limits_of(host, PciAndNetwork(hops=hops), Declared((DRIVE,))).paths, key=lambda one: one.disks)
    (whole, file) = (file, whole) if whole.device == "loop0" else (whole, file)
    assert (whole.name, whole.device, whole.layers) == ("/srv", "nvme0n1", ())
    assert (file.name, file.device, file.disks) == ("/data", "loop0", ("nvme0n1",))
    assert file.layers == ("loop0: a file on nvme0n1",)
    assert file.sustained == whole.sustained
    assert file.capacity is None


def test_what_is_no_path_or_the_same_path() -> None:
    systems = [mounted("sda", "/"), mounted("sda", "/var"), mounted("loop0", "/snap")]
    found = limits_of(facts([disk("sda", kind="scsi"), disk("loop0", kind="loop")], filesystems=systems))
    assert only(found).name == "/, /var"
    arrays = [array("md0", "raid0", ["md1"]), array("md1", "raid0", ["md0"])]
    assert limits_of(facts([], arrays)).paths == ()
    bare = facts()
    unread = msgspec.structs.replace(bare, unknown=(Unknown("disks", "/sys/block: refused"), Unknown("links.x", "no")))
    assert [(one.what, one.why) for one in limits_of(unread).unknown][:1] == [("disks", "/sys/block: refused")]
    assert "links.x" not in {one.what for one in limits_of(unread).unknown}


def test_bonds_and_vlans() -> None:
    ports = [link("eth0", pci="0000:01:00.0"), link("eth1", pci="0000:02:00.0", speed=10_000)]
    for mode, expected in (("802.3ad", 11_000 / 8), ("active-backup", 10_000 / 8)):
        bond = link("bond0", kind="bond", pci=None, speed=11_000, lower=("eth0", "eth1"), mode=mode)
        path = only(limits_of(facts(links=[*ports, bond])))
        assert (path.name, bound(path, "read_mb_per_s")[1]) == ("bond0", pytest.approx(expected * 1448 / 1538))
    wires = [link("eth0"), *(link(f"eth0.{n}", kind="vlan", pci=None, lower=("eth0",)) for n in (1, 2))]
    one = wire_ceiling("w", ["eth0.1", "eth0.2"], facts(links=wires))
    assert one.sustained.read_mb_per_s == pytest.approx(125 * 1448 / 1538)


def test_links_of_networked_storage() -> None:
    links = [link("eth0", addresses=["10.0.0.2/24"]), link("eth1", addresses=["10.0.1.2/24", "fd00::2/64"])]
    found = [
        FoundAddress("10.0.0.9", "iscsi", ""),
        FoundAddress("10.9.9.9", "iscsi", "", source="10.0.1.2"),
        FoundAddress("fd00::9", "iscsi", ""),
        FoundAddress("10.9.9.9", "iscsi", ""),
        FoundAddress("nonsense\x1b", "nvme", "", link="eth0"),
    ]
    assert portal_links(found, links) == ("eth0", "eth1", None)
    host = facts([disk("sda", kind="scsi", transport="iscsi")], links=[link("eth0")])
    for around in (PciAndNetwork(), PciAndNetwork(portals={"iscsi": ("eth0", None)})):
        assert by_stage(limits_of(host, around).paths[0])["network"].known == "unknown"


def test_a_mix_takes_its_time_of_a_drive_and_its_direction_of_a_link() -> None:
    rate = Rate(100, 50, 100, 50)
    assert mixed(rate, "iops", 0.5, duplex=False) == pytest.approx(1 / (0.5 / 100 + 0.5 / 50))
    assert mixed(rate, "iops", 0.5, duplex=True) == pytest.approx(100)
    assert mixed(rate, "iops", 1.0, duplex=False) == 100
    assert mixed(Rate(read_iops=100), "iops", 0.5, duplex=False) is None
