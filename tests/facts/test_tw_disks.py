"""Units of 3ware cards and the disks that they are to the kernel."""

from __future__ import annotations

import pytest

from advisor.facts.block.block import Array
from advisor.facts.block.three_ware import parse_tw_cli_controllers, parse_tw_cli_serial, parse_tw_cli_units
from advisor.facts.host_facts import Facts, scan
from advisor.limits.paths import limits_of
from advisor.rules.judged import judge
from advisor.rules.workload import parse_workload
from tests.cases import read_cases
from tests.facts.storage import Tree
from tests.threeware import Unit, add_card, add_disk

RAID6 = Unit(0, "RAID-6", 8, 11175.8)
RAID10 = Unit(0, "RAID-10", 8, 7450.56)
DATA = read_cases(__file__)

OLD = DATA["OLD"]


def with_serial(unit: Unit, serial: str) -> Unit:
    return unit._replace(serial=serial)


def arrays(facts: Facts) -> dict[str, Array]:
    return {one.name: one for one in facts.arrays}


def why(facts: Facts, fact: str) -> str:
    return next((one.why for one in facts.unknown if one.fact == fact), "")


def test_the_unit_of_one_card_is_its_disk_by_target_model_and_size() -> None:
    tree = Tree()
    tree.scsi("sda", tree.pci("0000:09:00.0", 0))
    add_disk(tree, "sdb", 6, RAID6, number="8:16")
    add_card(tree, 0, [RAID6])
    tree.mount("8:16", "/mnt/vmstore", "xfs")
    facts = scan(tree.host())
    one = arrays(facts)["tw0/u0"]
    assert (one.device, one.disks, one.mountpoints, one.numa_nodes) == ("sdb", ("sdb",), ("/mnt/vmstore",), (0,))
    assert (one.level, one.chunk_bytes, one.data_disks) == ("raid6", 256 << 10, 6)
    assert one.size_bytes == next(disk.size_bytes for disk in facts.disks if disk.name == "sdb")
    assert "filesystems.not-aligned" in {found.id for found in judge(facts)}
    (path,) = [path for path in limits_of(facts).paths if path.name == "/mnt/vmstore"]
    assert path.layers == ("tw0/u0: raid6 of 8 drives, behind its controller, 256 KiB chunks",)


def test_serial_numbers_tell_two_alike_cards_apart_whatever_their_order() -> None:
    tree = Tree()
    first, second = with_serial(RAID6, "9QG0C0JW1E8B8200B7E3"), with_serial(RAID6, "9QG0AAAA1E8B8200C001")
    add_disk(tree, "sda", 4, second)
    add_disk(tree, "sdb", 5, first)
    add_card(tree, 0, [first])
    add_card(tree, 1, [second._replace(kind="RAID-5")])
    found = arrays(scan(tree.host()))
    assert {name: (one.disks, one.level) for name, one in found.items()} == {
        "tw0/u0": (("sdb",), "raid6"),
        "tw1/u0": (("sda",), "raid5"),
    }


def test_the_serial_number_of_an_older_kernel_is_in_udev() -> None:
    tree = Tree()
    tree.directories.add("/run/udev/data")
    for name, host, serial, number in (("sda", 4, "5NE0SECOND1234567890", 0), ("sdb", 5, "5NE0FIRST01234567890", 16)):
        add_disk(tree, name, host, RAID6, number=f"8:{number}")
        tree.files[f"/run/udev/data/b8:{number}"] = f"E:ID_SERIAL=1AMCC_{serial}\nE:ID_BUS=scsi\n"
    add_card(tree, 2, [with_serial(RAID6, "5NE0FIRST01234567890")])
    add_card(tree, 3, [with_serial(RAID10, "5NE0SECOND1234567890")])
    assert {name: one.disks for name, one in arrays(scan(tree.host())).items()} == {
        "tw2/u0": ("sdb",),
        "tw3/u0": ("sda",),
    }


def test_a_card_that_is_proven_leaves_the_other_disk_to_the_other_card() -> None:
    tree = Tree()
    add_disk(tree, "sda", 4, with_serial(RAID6, "9QG0C0JW1E8B8200B7E3"))
    add_disk(tree, "sdb", 5, RAID6)
    add_card(tree, 0, [RAID6])
    add_card(tree, 1, [with_serial(RAID6, "9QG0C0JW1E8B8200B7E3")])
    found = arrays(scan(tree.host()))
    assert (found["tw0/u0"].disks, found["tw1/u0"].disks) == (("sdb",), ("sda",))


def test_sizes_and_models_tell_cards_apart_that_have_no_serial_number() -> None:
    tree = Tree()
    add_disk(tree, "sda", 4, RAID10)
    add_disk(tree, "sdb", 5, RAID6)
    add_card(tree, 0, [RAID6])
    add_card(tree, 1, [RAID10])
    assert arrays(scan(tree.host()))["tw0/u0"].disks == ("sdb",)
    tree = Tree()
    add_disk(tree, "sda", 4, RAID6, model="9690SA-8I  DISK", vendor="LSI")
    add_disk(tree, "sdb", 5, RAID6)
    add_card(tree, 0, [RAID6])
    add_card(tree, 1, [RAID6], model="9690SA-8I")
    assert {name: one.disks for name, one in arrays(scan(tree.host())).items()} == {
        "tw0/u0": ("sdb",),
        "tw1/u0": ("sda",),
    }


def test_two_alike_cards_without_serial_numbers_are_not_guessed() -> None:
    tree = Tree()
    add_disk(tree, "sda", 4, RAID6)
    add_disk(tree, "sdb", 5, RAID6)
    add_card(tree, 0, [RAID6])
    add_card(tree, 1, [RAID6._replace(kind="RAID-5")])
    facts = scan(tree.host())
    assert [one.disks for one in arrays(facts).values()] == [(), ()]
    assert why(facts, "controllers.tw0/u0.disk").startswith("sda, sdb may each be it")
    assert "tw_cli /c0/u0 show serial" in why(facts, "controllers.tw0/u0.disk")


def test_cards_that_are_counted_as_the_hosts_are_tied_by_that() -> None:
    tree = Tree()
    add_disk(tree, "sda", 4, RAID6)
    add_disk(tree, "sdb", 7, RAID6)
    add_card(tree, 4, [RAID6])
    add_card(tree, 7, [RAID6])
    assert {name: one.disks for name, one in arrays(scan(tree.host())).items()} == {
        "tw4/u0": ("sda",),
        "tw7/u0": ("sdb",),
    }


def test_several_units_and_a_carved_one() -> None:
    tree = Tree()
    small = Unit(1, "RAID-1", 2, 1862.63, stripe="-")
    big = Unit(3, "RAID-10", 4, 3725.28)
    add_disk(tree, "sda", 2, small, number="8:0")
    add_disk(tree, "sdb", 2, big, lun=0, share=0.5, number="8:16")
    add_disk(tree, "sdc", 2, big, lun=1, share=0.5, number="8:32")
    add_card(tree, 0, [small, big])
    tree.mount("8:32", "/b", "xfs")
    found = arrays(scan(tree.host()))
    assert found["tw0/u1"].disks == ("sda",)
    assert (found["tw0/u3"].disks, found["tw0/u3"].mountpoints) == (("sdb", "sdc"), ("/b",))
    assert found["tw0/u3"].size_bytes == pytest.approx(3725.28 * (1 << 30), rel=1e-6)


def test_a_failed_unit_has_no_disk_and_does_not_hide_the_others() -> None:
    tree = Tree()
    dead = Unit(0, "RAID-5", 3, 931.3, status="INOPERABLE")
    good = Unit(1, "RAID-6", 6, 7450.56)
    add_disk(tree, "sda", 0, good)
    add_card(tree, 0, [dead, good])
    facts = scan(tree.host())
    found = arrays(facts)
    assert (found["tw0/u0"].state, found["tw0/u0"].disks, found["tw0/u1"].disks) == ("failed", (), ("sda",))
    assert why(facts, "controllers.tw0/u0.disk") == ""


def test_a_disk_of_another_maker_is_never_a_unit() -> None:
    tree = Tree()
    tree.scsi("sda", tree.pci("0000:09:00.0", 0))
    add_card(tree, 0, [RAID6])
    facts = scan(tree.host())
    assert arrays(facts)["tw0/u0"].disks == ()
    assert "no disk of a 3ware controller" in why(facts, "controllers.tw0/u0.disk")


def test_a_disk_is_known_as_a_cards_by_its_driver() -> None:
    tree = Tree()
    add_disk(tree, "sda", 3, RAID6, vendor="RENAMED", model="VMSTORE")
    tree.files["/sys/class/scsi_host/host3/proc_name"] = "3w-9xxx\n"
    add_card(tree, 0, [RAID6])
    assert arrays(scan(tree.host()))["tw0/u0"].disks == ("sda",)


def test_small_random_writes_on_the_articles_raid_6() -> None:
    tree = Tree()
    add_disk(tree, "sda", 2, RAID6)
    add_card(tree, 0, [RAID6])
    facts = scan(tree.host())
    found = {one.id: one for one in judge(facts, parse_workload("iscsi-vm"))}
    assert found["controllers.parity-small-writes"].evidence["arrays"] == ("tw0/u0",)


def test_releases_with_other_columns() -> None:
    (one,), _, _ = parse_tw_cli_units(OLD)
    assert (one.level, one.chunk_bytes, one.write_policy, one.drives) == ("raid5", 64 << 10, "write-through", 4)
    assert one.size_bytes == round(1396.95 * (1 << 30))


@pytest.mark.parametrize(("text", "serial"), DATA["a_serial_number"])
def test_a_serial_number(text: str, serial: str | None) -> None:
    assert parse_tw_cli_serial(text) == serial


def test_a_card_without_a_model() -> None:
    assert parse_tw_cli_controllers("c3    8         8        2       0       1       1      -\n") == (("3", None),)
