"""Hosts with volumes of VxVM on which its rules fire, and hosts on which they are silent."""

from __future__ import annotations

from typing import Any

from advisor.facts.array import Array, ArrayPart
from tests.rules.build import Table, array, disk, filesystem

DISKS = ("nvme0n1", "nvme1n1")


def volume(level: str = "raid0", **parts: Any) -> Array:
    """datadg/vol01 of two columns of 64 KiB."""
    about = {"manager": "vxvm", "device": "vx/dsk/datadg/vol01", "level": level, "chunk_bytes": 64 << 10}
    about |= {"data_disks": 2, "disks": DISKS, "state": "active"}
    return array("datadg/vol01", *DISKS, **{**about, **parts})


def tuned(unit_kib: int, columns: int, write: tuple[int, int] | None = None, **parts: Any) -> Any:
    sizes = {"read_pref_io": unit_kib << 10, "read_nstream": columns}
    unit, count = write or (unit_kib, columns)
    sizes |= {"write_pref_io": unit << 10, "write_nstream": count}
    about = {"kind": "vxfs", "stripe_unit_bytes": None, "stripe_width_bytes": None, "tunables": sizes}
    return filesystem("vx/dsk/datadg/vol01", **{**about, **parts})


def twice(*columns: str) -> dict[str, Any]:
    return {"arrays": (volume(structure=ArrayPart("vol01-01", "raid0", columns)),)}


ONE_ADAPTER = (disk("sda", pci="0000:01:00.0"), disk("sdb", pci="0000:01:00.0"), disk("sdc", pci="0000:02:00.0"))
TWO_ADAPTERS = (disk("sda", pci="0000:01:00.0"), disk("sdb", pci="0000:02:00.0"))

CASES: Table = {
    "vxvm.mirror-without-log": [
        ({"arrays": (volume("raid1"),)}, "advice", "datadg/vol01"),
        ({"arrays": (volume("raid10"),)}, "advice", "vxsnap -g datadg prepare vol01"),
        {"arrays": (volume("raid1", detail={"dco": "vol01_dco"}),)},
        {"arrays": (volume("raid1", detail={"logs": "vol01-03"}),)},
        {"arrays": (volume("raid0"),)},
        {"arrays": (array(level="raid1"),)},
    ],
    "vxvm.columns-share-disk": [
        (twice("nvme0n1", "nvme0n1"), "advice", "move vol01"),
        twice("nvme0n1", "nvme1n1"),
        {"arrays": (volume(),)},
    ],
    "vxvm.one-controller": [
        ({"arrays": (volume(disks=("sda", "sdb")),), "disks": ONE_ADAPTER}, "info", "mirror=ctlr"),
        {"arrays": (volume(disks=("sda", "sdb")),), "disks": TWO_ADAPTERS},
        {"arrays": (volume(disks=("sda", "sdb")),), "disks": ONE_ADAPTER[:2]},
        {
            "arrays": (volume(disks=("sda", "sdb")),),
            "disks": (*ONE_ADAPTER[:2], disk("sdc", pci="0000:02:00.0", mountpoints=("/",))),
        },
    ],
    "vxfs.streams-off-stripes": [
        ({"arrays": (volume(),), "filesystems": (tuned(64, 1),)}, "advice", "read_nstream=2"),
        (
            {"arrays": (volume("raid5", data_disks=3),), "filesystems": (tuned(64, 4),)},
            "advice",
            "write_pref_io=196608,write_nstream=1",
        ),
        {"arrays": (volume(),), "filesystems": (tuned(64, 2),)},
        {"arrays": (volume("raid10"),), "filesystems": (tuned(64, 4),)},
        {"arrays": (volume("raid1"),), "filesystems": (tuned(64, 1),)},
        {"arrays": (volume("raid5", data_disks=3),), "filesystems": (tuned(64, 4, (192, 1)),)},
        {"arrays": (volume(),), "filesystems": (tuned(64, 1, tunables={}),)},
    ],
    "arrays.degraded": [({"arrays": (volume("raid1", state="degraded", missing=1),)}, "critical", "vxreattach")],
    "arrays.linear-over-many": [({"arrays": (volume("linear"),)}, "info", "vxassist")],
}
