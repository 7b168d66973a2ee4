"""What lies one behind the other is not striped: linear volumes, and volumes of several segments, through a scan."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from advisor.facts.block.lvm_text import LVS
from advisor.facts.host_facts import Facts, scan
from advisor.limits.declared import Declared, DeclaredVolume
from advisor.limits.paths import limits_of
from advisor.limits.records import StoragePath
from tests.facts.storage import Tree
from tests.known import known
from tests.limits.hosts import EBS

VOLUME = "LVM-" + "g" * 32 + "v" * 32
SECTORS = 1 << 20


def striped(start: int, stripes: Sequence[int], chunk: int = 2048) -> str:
    places = " ".join(f"259:{number} 2048" for number in stripes)
    return f"{start} {SECTORS} striped {len(stripes)} {chunk} {places}"


def linear(start: int, number: int) -> str:
    return f"{start} {SECTORS} linear 259:{number} 2048"


def tree(count: int, mapping: str = "irisvg-irislv") -> Tree:
    """A host with ``count`` gp3 volumes below one logical volume, mounted at /iris."""
    found = Tree()
    for number in range(count):
        found.nvme(number, 0, number=f"259:{number}")
        place = found.links[f"/sys/block/nvme{number}n1"].removeprefix("..")
        found.files[f"/sys{place.rpartition('/')[0]}/model"] = f"{EBS}\n"
    found.dm(0, mapping, VOLUME, [f"nvme{number}n1" for number in range(count)])
    found.mount("253:0", "/iris", "xfs")
    return found


def scanned(found: Tree, *lines: str, mapping: str = "irisvg-irislv") -> Facts:
    found.answer(("dmsetup", "table"), "".join(f"{mapping}: {line}\n" for line in lines))
    return scan(found.host())


def gp3(*numbers: int, iops: int = 3000, mib: int = 125) -> list[DeclaredVolume]:
    return [
        DeclaredVolume("gp3", device=f"nvme{one}n1", gib=3577, iops=iops, throughput_mib_per_s=mib) for one in numbers
    ]


def path(facts: Facts, volumes: Sequence[DeclaredVolume], instance: str = "r5b.24xlarge") -> StoragePath:
    said = Declared(tuple(volumes), instance_type=instance)
    (found,) = [one for one in limits_of(facts, None, said).paths if one.name == "/iris"]
    return found


def bound(found: StoragePath, quantity: str) -> float:
    return next(one.value for one in found.sustained if one.quantity == quantity)


def test_eight_stripes_over_sixteen_volumes_are_two_segments_of_eight() -> None:
    facts = scanned(tree(16), striped(0, range(8)), striped(SECTORS, range(8, 16)))
    (array,) = facts.arrays
    assert (array.level, array.data_disks, array.chunk_bytes, len(array.members)) == ("striped", 8, 1 << 20, 16)
    assert [len(tuple(part.devices())) for part in known(array.structure).members if not isinstance(part, str)] == [
        8,
        8,
    ]
    found = path(facts, gp3(*range(16)))
    assert bound(found, "read_iops") == 8 * 3000
    assert bound(found, "read_mb_per_s") == pytest.approx(8 * 131.072)
    assert (known(found.spread).read_iops, found.floor) == (48_000, None)
    assert len(found.disks) == 16
    assert any("2 segments one behind the other, of 8 and 8 disks" in note for note in found.notes)
    assert [layer.partition(":")[0] for layer in found.layers] == [
        "irisvg/irislv",
        "irisvg/irislv segment 1",
        "irisvg/irislv segment 2",
    ]


def test_stripes_of_one_segment() -> None:
    facts = scanned(tree(16), striped(0, range(16)))
    found = path(facts, gp3(*range(16)))
    assert (facts.arrays[0].structure, found.spread, bound(found, "read_iops")) == (None, None, 48_000)
    assert not any("segment" in note or "linear" in note for note in found.notes)
    facts = scanned(tree(4), striped(0, range(4)), striped(SECTORS, (0, 1, 2, 3)))
    assert facts.arrays[0].structure is None
    assert bound(path(facts, gp3(*range(4))), "read_iops") == 12_000
    facts = scanned(tree(1), linear(0, 0), linear(SECTORS, 0))
    found = path(facts, gp3(0))
    assert (bound(found, "read_iops"), found.spread, facts.arrays[0].structure) == (3000, None, None)
    assert not found.notes
    facts = scanned(tree(3), *(linear(at * SECTORS, at) for at in range(3)))
    found = path(facts, ())
    assert any("linear over 3 disks" in note for note in found.notes)


def test_a_linear_volume_has_the_ceiling_of_one_disk_and_says_what_spread_load_reaches() -> None:
    facts = scanned(tree(4), *(linear(at * SECTORS, at) for at in range(4)))
    assert facts.arrays[0].level == "linear"
    found = path(facts, gp3(*range(4)))
    assert bound(found, "read_iops") == 3000
    assert bound(found, "write_mb_per_s") == pytest.approx(131.072)
    assert known(found.spread).read_iops == 12_000
    (first, second) = [note for note in found.notes if "linear over 4 disks" in note or "at most" in note]
    assert "a stream is on one of them at a time" in first
    assert second.endswith("reaches at most 524 MB/s and 12,000 IOPS")


def test_a_segment_of_one_slow_disk_is_the_floor() -> None:
    facts = scanned(tree(5), striped(0, range(4)), linear(SECTORS, 4))
    found = path(facts, [*gp3(*range(4)), *gp3(4, iops=3000, mib=125)])
    assert bound(found, "read_iops") == 12_000
    assert known(found.floor).read_iops == 3000
    assert any("of 4 and 1 disks" in note for note in found.notes)
    assert any(note.startswith("in its slowest part a stream gets at most 131 MB/s") for note in found.notes)


def test_what_the_disks_share_is_not_divided_among_segments_that_rest() -> None:
    """The instance carries 7,500 MB/s for a stream on one volume, too."""
    facts = scanned(tree(16), striped(0, range(8)), striped(SECTORS, range(8, 16)))
    found = path(facts, gp3(*range(16), iops=16_000, mib=1000))
    assert (found.sustained[0].what, bound(found, "read_mb_per_s")) == ("EC2 instance", 7500)


def test_segments_of_a_capture_that_holds_lvs_only() -> None:
    one = Tree()
    for number in range(4):
        one.nvme(number, 0)
    rows = ",".join(
        '{"lv_name":"irislv","vg_name":"irisvg","segtype":"striped","stripes":"2","stripe_size":"65536",'
        f'"devices":"/dev/nvme{first}n1(0),/dev/nvme{first + 1}n1(0)"}}\n'
        for first in (0, 2)
    )
    one.answer(LVS, f'{{"report":[{{"lv":[{rows}]}}]}}')
    (array,) = scan(one.host()).arrays
    assert [tuple(part.devices()) for part in known(array.structure).members if not isinstance(part, str)] == [
        ("nvme0n1", "nvme1n1"),
        ("nvme2n1", "nvme3n1"),
    ]
