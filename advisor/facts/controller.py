"""The records of RAID controllers, apart from the readers of each maker's tool."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

WritePolicy = Literal["write-back", "write-through", "always-write-back"]
Media = Literal["hdd", "ssd", "mixed"]

MAX_TEXT = 120
MAX_VOLUMES = 512
MAX_CONTROLLERS = 16
"""Bounds of what a tool's output may hold; a controller has 240 volumes at most (MegaRAID)."""
_PLAIN = frozenset({"raid0", "raid1", "raid5", "raid6", "raid10", "raid50", "raid60"})


class CacheProtection(msgspec.Struct, frozen=True):
    """What keeps a controller's write cache through a power cut. ``state`` is the tool's own word.

    ``healthy`` is None where that word is not one that is known.
    """

    kind: Literal["battery", "flash"]
    """A battery, or flash memory and a capacitor (CacheVault)."""
    state: str
    healthy: bool | None


class ControllerVolume(msgspec.Struct, frozen=True):
    """A volume that a controller makes (virtual drive, unit, logical drive).

    ``write_policy`` is the active one as far as the tool reports it; ``always-write-back`` keeps writing back without
    protection. ``cache`` and ``status`` are the tool's own words, ``state`` is one of `Array.state`.
    """

    name: str
    level: str | None
    state: str | None
    status: str
    write_policy: WritePolicy | None
    cache: str
    chunk_bytes: int | None = None
    drives: int | None = None
    media: Media | None = None
    device: str | None = None
    """The kernel's name of the disk, where the tool reports it or its serial number and place lead to it."""
    devices: tuple[str, ...] = ()
    """All of its disks where it is carved into several."""
    serial: str | None = None
    size_bytes: int | None = None


class Controller(msgspec.Struct, frozen=True):
    """A RAID controller as its maker's tool shows it.

    ``has_protection`` is None where the tool says neither that there is a battery or the like, nor that there is none.
    """

    name: str
    tool: str
    model: str | None
    firmware: str | None
    volumes: tuple[ControllerVolume, ...]
    has_protection: bool | None
    protection: CacheProtection | None
    detail: Mapping[str, str] = {}

    @property
    def is_protected(self) -> bool | None:
        """Whether the cache survives a power cut; None where that is not known."""
        if self.protection is not None:
            return self.protection.healthy
        return False if self.has_protection is False else None


def media_of(kinds: frozenset[str]) -> Media | None:
    """``hdd`` or ``ssd`` where all drives are, ``mixed`` where both are; None where nothing is known."""
    known = kinds & {"hdd", "ssd"}
    if not known:
        return None
    return "mixed" if len(known) > 1 else "hdd" if "hdd" in known else "ssd"


def level_of(text: str) -> str | None:
    """``RAID10``, ``RAID-10``, ``1+0`` as md writes it; None for what is no level that is known."""
    digits = re.sub(r"[^a-z0-9+]", "", text.lower()).removeprefix("raid").replace("+", "")
    return f"raid{digits}" if f"raid{digits}" in _PLAIN else None


def data_disks(level: str | None, drives: int | None) -> int | None:
    """Drives that carry data in one stripe; None where the level or the number is not known, or spans would count."""
    if not drives or level is None:
        return None
    lost = {"raid0": 0, "raid5": 1, "raid6": 2}.get(level)
    if lost is not None:
        return drives - lost if drives > lost else None
    return drives // 2 if level == "raid10" and drives % 2 == 0 else None


def size_bytes(text: str) -> int | None:
    """``256 KB`` and ``256K`` of a strip, which all tools count in units of 1,024; None for anything else."""
    found = re.fullmatch(r"([0-9]{1,6}(?:\.0+)?) ?([KM])i?B?", text.strip(), re.ASCII | re.IGNORECASE)
    return int(float(found[1])) * {"K": 1 << 10, "M": 1 << 20}[found[2].upper()] if found else None


def device_name(text: str) -> str | None:
    """The kernel's name in ``/dev/sda``, whatever follows behind a blank; None for anything else."""
    found = re.match(r"/dev/([A-Za-z0-9_-]{1,32})(?!\S)", text.strip(), re.ASCII)
    return found[1] if found else None
