"""Hosts with volumes of VxVM on which its rules fire, and hosts on which they are silent."""

from __future__ import annotations

from typing import Any

from advisor.facts.block.block import Array, ArrayPart
from tests.cases import read_cases
from tests.rules.build import Table, array, disk, filesystem, joined

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

DATA = read_cases(__file__, array, tuned, twice, volume, ONE_ADAPTER=ONE_ADAPTER, TWO_ADAPTERS=TWO_ADAPTERS)

CASES: Table = joined(
    DATA["CASES"],
    {
        "vxvm.one-controller": [
            {"arrays": (volume(disks=("sda", "sdb")),), "disks": ONE_ADAPTER[:2]},
            {
                "arrays": (volume(disks=("sda", "sdb")),),
                "disks": (*ONE_ADAPTER[:2], disk("sdc", pci="0000:02:00.0", mountpoints=("/",))),
            },
        ]
    },
)
