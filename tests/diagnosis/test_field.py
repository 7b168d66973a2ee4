"""What administrators meet is answered first, and what resembles it raises no alarm."""

from __future__ import annotations

import pytest

from tests.diagnosis.field import LOOK_ALIKES, MET
from tests.diagnosis.moments import Disk, Machine, diagnose_machine


@pytest.mark.parametrize("name", MET)
def test_what_is_met_is_named_first(name: str) -> None:
    case = MET[name]
    found = [one.id for one in diagnose_machine(case.machine).binds]
    assert found[:1], "nothing binds"
    assert found[0] in case.first.split(), found
    assert set(case.all.split()) <= set(found)
    assert set(case.never.split()).isdisjoint(found), found


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_what_resembles_it_is_no_alarm(name: str) -> None:
    found = diagnose_machine(LOOK_ALIKES[name])
    assert found.binds == (), [(one.id, one.device, one.share, one.evidence) for one in found.binds]


def test_an_array_whose_members_are_all_full_is_named_by_itself() -> None:
    disks = tuple(
        Disk(f"sd{letter}", 110, 10, 16, 16, 42, busy=1.0, rotational=True, number=f"8:{16 * at}")
        for at, letter in enumerate("abcdef")
    )
    names = tuple(one.name for one in disks)
    array = Disk("md0", 660, 30, 16, 16, 43, busy=1.0, rotational=True, below=names, number="9:0")
    found = diagnose_machine(Machine(io_some=0.95, iowait=0.5, disks=(*disks, array))).binds
    assert [(one.id, one.device) for one in found] == [("disk.saturated", "md0")]
    # Where one member has room, those that have none are named.
    found = diagnose_machine(Machine(io_some=0.95, iowait=0.5, disks=(*disks[1:], Disk("sda"), array))).binds
    assert {one.device for one in found} == {*names} - {"sda"}


def test_what_a_mapping_waits_for_by_itself_is_not_looked_for_in_its_drive() -> None:
    drive = Disk("nvme0n1", 1000, 0, 128, 16, 0.12, busy=0.12, number="259:0")
    mapping = Disk("dm-0", 1000, 0, 128, 16, 9.0, busy=1.0, below=("nvme0n1",), number="253:0")
    found = diagnose_machine(Machine(io_some=0.8, iowait=0.2, disks=(drive, mapping))).binds
    assert found[0].device == "dm-0"
    assert "mapping itself" in found[0].advice
    assert not [text for text in found[0].commands if "smartctl" in text]


def test_a_volume_of_a_server_has_no_drive_to_look_at() -> None:
    lun = Disk("sdc", 28, 0, 16, 16, 34, busy=0.96, number="8:32")
    vendor = {"/sys/block/sdc/device/vendor": "LIO-ORG", "/sys/block/sdc/device/model": "lun0"}
    found = diagnose_machine(Machine(io_some=0.9, iowait=0.2, disks=(lun,), extra=vendor)).binds
    assert found[0].id == "disk.slow"
    assert not [text for text in found[0].commands if "smartctl" in text]
