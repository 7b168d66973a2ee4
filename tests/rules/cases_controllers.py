"""Hosts with RAID controllers, or with arrays that the work does not suit: those that need a rule, and others."""

from __future__ import annotations

from typing import Any, Literal

from advisor.facts.block.block import Array
from advisor.facts.block.controller import CacheProtection, Controller, ControllerVolume
from tests.cases import read_cases
from tests.rules.build import Table, array, replaced
from tests.rules.cases_iscsi import exports

WELL = CacheProtection("flash", "Optimal", healthy=True)
BAD = CacheProtection("battery", "Failed", healthy=False)
ODD = CacheProtection("battery", "Whatever", healthy=None)
Tool = Literal["storcli", "tw_cli", "ssacli"]


def with_cache(
    policy: str | None, protection: CacheProtection | None = WELL, *, tool: Tool = "storcli", **parts: Any
) -> dict[str, Any]:
    """A host with one controller and one RAID 10 of hard disks."""
    about: dict[str, Any] = {"name": {"storcli": "0/0", "tw_cli": "u0", "ssacli": "1"}[tool], "level": "raid10"}
    about |= {"state": "active", "status": "Optl", "write_policy": policy, "cache": "NRWTD", "media": "hdd"}
    has, detail = parts.pop("has_protection", True if protection else None), parts.pop("detail", {})
    one = Controller("0", tool, "MegaRAID", None, (ControllerVolume(**about | parts),), has, protection, detail)
    return {"controllers": (one,)}


def unseen(driver: str, tool: str) -> dict[str, Any]:
    """A host with a controller of which no tool tells."""
    about = {"driver": driver, "install": tool}
    return {"controllers": (Controller("0000:5c:00.0", "", None, None, (), None, None, about),)}


def mirrored(data_disks: int, device: str = "sda", level: str = "raid10") -> dict[str, Any]:
    parts: dict[str, Any] = {"device": device, "level": level, "data_disks": data_disks, "disks": (device,)}
    return {"arrays": (volume("c0/v0", **parts),), "iscsi": exports("eth1", disks=("sda",))}


def volume(name: str, **parts: Any) -> Array:
    """A controller's volume as an array: no members are seen."""
    return replaced(array(name), {"manager": "controller", "members": (), **parts})


DATA = read_cases(__file__, array, exports, mirrored, unseen, with_cache, BAD=BAD, ODD=ODD)

CASES: Table = DATA["CASES"]
