"""Hosts with drives that fail, and with drives that do not: by what smartctl prints of them."""

from __future__ import annotations

import json
from typing import Any

from advisor.facts.block.controller import Controller, ControllerVolume, make_drive
from advisor.facts.block.disks import Disk
from advisor.facts.block.smart import DriveHealth, parse_smartctl
from tests import smart_documents as smart
from tests.cases import read_cases
from tests.rules.build import Table, array, disk, joined, replaced


def drive(name: str, text: str, **parts: Any) -> Disk:
    health = parse_smartctl(text)
    assert isinstance(health, DriveHealth)
    return disk(name, kind="nvme" if name.startswith("nvme") else "scsi", health=health, **parts)


def host(name: str, text: str, *arrays: Any, **parts: Any) -> dict[str, Any]:
    return {"disks": (drive(name, text, **parts),), "arrays": arrays}


MIRROR = array("md0", "sda1", "sdb1", level="raid1", disks=("sda", "sdb"))
PARITY = array("md1", "sda1", level="raid6", disks=("sda",))
STRIPE = array("md2", "sda1", level="raid0", disks=("sda",))
DESKTOP = smart.ata(**smart.error_recovery(None))
MADE_FOR_ARRAYS = smart.ata(**smart.error_recovery(70))

UNKNOWN: dict[str, Any] = {"disks": (disk("sda"), disk("nvme0n1")), "arrays": (MIRROR,)}
BARE = (UNKNOWN, host("sda", smart.ata()), host("nvme0n1", smart.nvme()), host("sdb", smart.scsi()))
DATA = read_cases(__file__, globals())


def behind(**parts: Any) -> dict[str, Any]:
    """A Smart Array with a drive behind it, in the RAID 6 of its array A."""
    one = make_drive("1I:1:3", parts.pop("state", "OK"), is_lost=False, group="A", **parts)
    held = ControllerVolume("1", "raid6", "active", "OK", "write-back", "Enabled", group="A")
    array_of = {"manager": "controller", "members": (), "level": "raid6"}
    controller = Controller("1", "ssacli", "P440", None, (held,), None, None, drives=(one,))
    return {"controllers": (controller,), "arrays": (replaced(array("slot1/1"), array_of),)}


def life(number: int, name: str, value: int) -> str:
    return smart.ata(smart.attribute(number, name, value=value, thresh=0), rotation_rate=0)


CRC = "UDMA_CRC_Error_Count"
WELL_BEHIND = behind(counts={"media_errors": "0", "percentage_used": "3", "link_errors": "6"})
USED_UP = "100 % of its endurance is used"
CASES: Table = joined(
    DATA["CASES"],
    {
        "disks.failing": [
            (behind(state="Predictive Failure", is_failing=True), "critical", "slot1/1 (raid6)"),
            *(WELL_BEHIND, *BARE),
        ],
        "disks.worn": [
            (behind(counts={"percentage_used": "103"}), "warning", "103 % of its endurance is used"),
            (behind(counts={"media_errors": "12"}), "warning", "12 media errors"),
            *((host("sda", life(*row)), "warning", USED_UP) for row in (
                *((169, "Remaining_Lifetime_Perc", 0), (177, "Wear_Leveling_Count", 1), (231, "SSD_Life_Left", 0)),
                *((202, "Percent_Lifetime_Remain", 0), (233, "Media_Wearout_Indicator", 1)),
            )),
            (host("sda", smart.ata(ata_device_statistics={"pages": [
                {"number": 7, "table": [{"name": "Percentage Used Endurance Indicator", "value": 104}]},
            ]})), "warning", "104 % of its endurance is used"),
            (host("sdb", json.dumps(json.loads(smart.scsi()) | {"scsi_percentage_used_endurance_indicator": 101})),
             "warning", "101 % of its endurance is used"),
            host("sda", life(231, "SSD_Life_Left", 55)),
            host("sda", smart.ata(smart.attribute(177, "Wear_Leveling_Count", value=1))),
            *(WELL_BEHIND, *BARE),
        ],
        "disks.link-errors": [
            (host("sda", smart.ata(smart.attribute(199, CRC, "3118119"))), "warning", "3,118,119 link errors"),
            (behind(counts={"link_errors": "400"}), "warning", "400 link errors"),
            *(WELL_BEHIND, *BARE),
        ],
        "disks.too-hot": [*BARE],
    },
)  # fmt: skip
