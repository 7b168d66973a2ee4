"""Hosts with drives that fail, and with drives that do not: by what smartctl prints of them."""

from __future__ import annotations

from typing import Any

from advisor.facts.disks import Disk
from advisor.facts.smartctl import DriveHealth, parse_smartctl
from tests import smart_documents as smart
from tests.rules.build import Table, array, disk


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
CASES: Table = {
    "disks.failing": [
        (host("sda", smart.ata(passed=False)), "critical", "overall health: FAILED"),
        (host("sda", smart.ata(BELOW), MIRROR), "critical", "md0 (raid1)"),
        (host("sda", smart.ata(BELOW), STRIPE), "critical", "Reallocated_Sector_Ct is 5"),
        (host("sda", smart.ata(smart.attribute(197, "Current_Pending_Sector", "8"))), "critical", "8 pending sectors"),
        (
            host("sda", smart.ata(smart.attribute(198, "Offline_Uncorrectable", "1 (0 0)"))),
            "critical",
            "1 uncorrectable sector",
        ),
        (host("nvme0n1", smart.nvme(critical_warning=1, available_spare=4)), "critical", "spare"),
        (host("nvme0n1", smart.nvme(critical_warning=4)), "critical", "reliability"),
        (host("nvme0n1", smart.nvme(critical_warning=8)), "critical", "read-only"),
        (host("nvme0n1", smart.nvme(critical_warning=16)), "critical", "volatile memory"),
        (host("nvme0n1", smart.nvme(critical_warning=34)), "critical", "persistent memory"),
        (host("sdb", smart.scsi(status=smart.FAILURE_PREDICTED)), "critical", "IMPENDING FAILURE"),
        # Too hot is no failure, though NVMe's overall health is failed for it; nor is a SCSI drive's warning of it.
        host("nvme0n1", smart.nvme(critical_warning=2)),
        host("sdb", smart.scsi(status=smart.TOO_HOT)),
        # Counts that cannot be: more pending sectors than the drive has, and the sentinel of some bridges.
        host("sda", smart.ata(smart.attribute(197, "Current_Pending_Sector", "7814037169"))),
        host("sda", smart.ata(smart.attribute(198, "Offline_Uncorrectable", "4294967295"))),
        # The same number with another meaning of its vendor's.
        host("sda", smart.ata(smart.attribute(197, "Unknown_Attribute", "8"))),
        *BARE,
    ],
    "disks.worn": [
        (host("sda", smart.ata(smart.attribute(5, "Reallocated_Sector_Ct", "24"))), "warning", "24"),
        (host("sda", smart.ata(IN_THE_PAST)), "warning", "in the past"),
        (host("sda", smart.ata(WORN_OUT)), "warning", "Media_Wearout_Indicator"),
        (host("nvme0n1", smart.nvme(percentage_used=100)), "warning", "100 %"),
        (host("nvme0n1", smart.nvme(media_errors=3)), "warning", "3 media errors"),
        (host("sdb", smart.scsi(defects=260)), "warning", "260 grown defects"),
        (host("sdb", smart.scsi(uncorrected=1)), "warning", "1 uncorrected error"),
        (host("sdb", smart.scsi(status=smart.TOO_HOT)), "warning", "TEMPERATURE"),
        host("nvme0n1", smart.nvme(percentage_used=99)),
        # What is failing is not listed as worn as well.
        host("sda", smart.ata(BELOW)),
        *BARE,
    ],
    "disks.too-hot": [
        (host("nvme0n1", smart.nvme(critical_warning=2, temperature=84)), "warning", "84 °C"),
        (host("sdb", smart.ata(temperature={"current": 66, "op_limit_max": 60})), "warning", "66"),
        *BARE,
    ],
    "disks.error-recovery": [
        (host("sda", DESKTOP, MIRROR), "advice", "no limit"),
        (host("sda", smart.ata(**smart.error_recovery(600)), PARITY, queue={"io_timeout": "30000"}), "advice", "60 s"),
        host("sda", MADE_FOR_ARRAYS, MIRROR),
        host("sda", DESKTOP),
        host("sda", DESKTOP, STRIPE),
        host("sda", DESKTOP, MIRROR, queue={"io_timeout": "180000"}),
        UNKNOWN,
    ],
}
