"""The figures of the articles that the evidence was drawn from, recomputed: S000 to S004, rows of seed_facts.csv."""

from __future__ import annotations

from advisor.limits.declared import Declared, DeclaredVolume
from advisor.limits.figures import usable_bytes
from advisor.limits.links import PciAndNetwork
from advisor.limits.notes import Measurement, with_observed
from advisor.limits.paths import limits_of
from advisor.limits.records import Limits, StoragePath
from tests.limits.hosts import EBS, array, disk, facts, link, mounted


def storage(limits: Limits) -> StoragePath:
    (path,) = [one for one in limits.paths if one.kind == "storage"]
    return path


def test_s003_four_gigabit_links_against_394_5_mb_per_s() -> None:
    """S003, rows "003,step2" and "003,ceiling": 394.52 MB/s over 4 GbE; the evidence computes 471 to 495.

    The article's own ceiling of about 440 lies below what the headers leave: it allows for iSCSI roundly.
    """
    for mtu, ceiling, percent in ((1500, 471, 84), (9000, 495, 80)):
        wires = [link(f"eth{n}", mtu=mtu, pci=f"0000:0{n}:00.0", addresses=[f"10.0.{n}.2/24"]) for n in range(4)]
        paths = [disk(f"sd{letter}", kind="scsi", transport="iscsi") for letter in "abcd"]
        host = facts(paths, [array("mpatha", "multipath", ["sda", "sdb", "sdc", "sdd"])], wires)
        around = PciAndNetwork(portals={"iscsi": tuple(one.name for one in wires)})
        found = limits_of(host, around)
        measured = Measurement("max-throughput", "mpatha", "mb_per_s", 394.52, 1.0)
        path = storage(with_observed(found, [measured], host, Declared()))
        (seen,) = path.observed
        assert (round(seen.ceiling or 0), round(100 * (seen.share or 0))) == (ceiling, percent)
        assert path.sustained[0].stage == "network"


def test_s002_the_instance_leaves_64_percent_of_the_volumes_unusable() -> None:
    """S002, row "002,test2": 5 and 16 gp3 of 16,000 IOPS and 1,000 MB/s on an r5b.24xlarge of 7,500 MB/s, 260,000."""
    names = [f"nvme{n}n1" for n in range(1, 22)]
    volumes = [DeclaredVolume("gp3", device=name, gib=1000, iops=16_000, throughput_mb_per_s=1000.0) for name in names]
    host = facts(
        [disk(name, model=EBS) for name in names],
        [array("wij", "striped", names[:5]), array("db", "striped", names[5:])],
        filesystems=[mounted("wij", "/wij"), mounted("db", "/db")],
        instance_type="r5b.24xlarge",
        virtualization="amazon",
    )
    found = limits_of(host, None, Declared(tuple(volumes)))
    throughput, iops = found.bought
    assert (round(throughput.volumes), throughput.instance) == (21_000, 7_500)
    assert round(100 * throughput.unusable) == 64
    assert (iops.volumes, iops.instance) == (336_000, 260_000)
    wij, db = found.paths
    assert (db.name, db.sustained[0].stage, round(db.sustained[0].value)) == ("/db", "instance", 7_500)
    assert (wij.name, wij.sustained[0].stage, round(wij.sustained[0].value)) == ("/wij", "volume", 5_000)


def test_s004_190_tib_are_usable_of_211_tb() -> None:
    """S004, rows "004,capacity" and "004,layout": 33 targets of 4 drives of 1.6 TB, 1 % for the file system."""
    usable = usable_bytes(33 * 4 * 1_600_000_000_000)
    assert int(usable / 2**40) == 190
    assert round(33 * 4 * 1.6) == 211
