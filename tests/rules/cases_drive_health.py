"""Hosts with drives that fail, and with drives that do not: by what smartctl prints of them."""

from __future__ import annotations

from typing import Any

from advisor.facts.disks import Disk
from advisor.facts.smartctl import DriveHealth, parse_smartctl
from tests import smart_documents as smart
from tests.cases import read_cases
from tests.rules.build import Table, array, disk, joined


def drive(name: str, text: str, **parts: Any) -> Disk:
    health = parse_smartctl(text)
    assert isinstance(health, DriveHealth)
    return disk(name, kind="nvme" if name.startswith("nvme") else "scsi", health=health, **parts)


def host(name: str, text: str, *arrays: Any, **parts: Any) -> dict[str, Any]:
    return {"disks": (drive(name, text, **parts),), "arrays": arrays}


BELOW = smart.attribute(5, "Reallocated_Sector_Ct", "2040", value=5, thresh=36, when_failed="now")
IN_THE_PAST = smart.attribute(3, "Spin_Up_Time", "9000", value=60, worst=20, thresh=24, when_failed="past")
WORN_OUT = smart.attribute(233, "Media_Wearout_Indicator", "0", value=1, thresh=5, when_failed="now")
MIRROR = array("md0", "sda1", "sdb1", level="raid1", disks=("sda", "sdb"))
PARITY = array("md1", "sda1", level="raid6", disks=("sda",))
STRIPE = array("md2", "sda1", level="raid0", disks=("sda",))
DESKTOP = smart.ata(**smart.error_recovery(None))
MADE_FOR_ARRAYS = smart.ata(**smart.error_recovery(70))

UNKNOWN: dict[str, Any] = {"disks": (disk("sda"), disk("nvme0n1")), "arrays": (MIRROR,)}
BARE = (UNKNOWN, host("sda", smart.ata()), host("nvme0n1", smart.nvme()), host("sdb", smart.scsi()))
DATA = read_cases(
    __file__,
    host,
    DESKTOP=DESKTOP,
    MADE_FOR_ARRAYS=MADE_FOR_ARRAYS,
    MIRROR=MIRROR,
    PARITY=PARITY,
    STRIPE=STRIPE,
    UNKNOWN=UNKNOWN,
)

CASES: Table = joined(DATA["CASES"], {"disks.failing": [*BARE], "disks.worn": [*BARE], "disks.too-hot": [*BARE]})
