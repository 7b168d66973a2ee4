"""The records of RAID controllers, apart from the readers of each maker's tool."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from advisor.facts.block.block import losses_left
from advisor.facts.block.smart import DriveHealth
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex

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


class ControllerDrive(msgspec.Struct, frozen=True):
    """A drive behind a controller, as its tool shows it. ``name`` is its place in the tool's words (252:3, 1I:1:3),
    ``state`` the tool's own word; ``is_lost`` where that means that it does not serve."""

    name: str
    state: str
    is_lost: bool
    group: str | None
    """The drive group, array or unit that it belongs to."""
    health: DriveHealth
    model: str | None = None
    serial: str | None = None


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
    group: str | None = None
    """As `ControllerDrive.group`."""
    missing: int | None = None
    """Drives that should serve and do not, as far as the tool shows each of them."""
    survives: int | None = None
    """As `Array.survives`: None where the tool does not show which drives make up a span."""


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
    """``install``: the tool that would tell of it, where none is there; ``tool`` is empty then."""
    drives: tuple[ControllerDrive, ...] = ()

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


def make_drive(
    name: str,
    state: str,
    *,
    is_lost: bool,
    is_failing: bool = False,
    group: str | None = None,
    counts: Mapping[str, str | None] | None = None,
    model: str | None = None,
    serial: str | None = None,
) -> ControllerDrive:
    """The record of a drive; ``counts`` are fields of `DriveHealth` by the text that the tool gives, of which those
    that are no plain numbers stay unknown."""
    words = (counts or {}).items()
    known = {key: int(text) for key, text in words if text and is_count(text) and len(text) < 18}
    said = f"{state} by its controller" if is_failing else None
    health = DriveHealth(passed=False if said else None, status=said, **known)  # type: ignore[arg-type]
    return ControllerDrive(name, state, is_lost, group, health, model, serial)


_WELL = frozenset({"ok", "optimal", "opt", "ready"})
_UNWELL = lazy_regex(r"fail|degrad|dgrd|missing|replace|learn|charg|not |needs|low|error|invalid", re.IGNORECASE)


def is_healthy(state: str) -> bool | None:
    """What a tool's word for a battery, a capacitor or flash means; None for one that is not known."""
    if state.lower() in _WELL:
        return True
    return False if _UNWELL.search(state) else None


_SPAN_LEVELS = {"raid10": "raid1", "raid50": "raid5", "raid60": "raid6"}


def losses_of_spans(level: str | None, spans: Iterable[tuple[int, int]]) -> int | None:
    """How many more drives may be lost, whichever they are: by drives and missing ones of each span."""
    left = [losses_left(_SPAN_LEVELS.get(level or "", level), *span) for span in spans]
    known = [one for one in left if one is not None]
    return min(known) if known and len(known) == len(left) else None


def losses_of(level: str | None, drives: int | None, missing: int | None) -> int | None:
    """The same where the spans are not known: the worst case that the volume outlives."""
    if level not in _SPAN_LEVELS or missing is None:
        return losses_left(level, drives, missing)
    return max((2 if level == "raid60" else 1) - missing, 0)


def level_of(text: str) -> str | None:
    """``RAID10``, ``RAID-10``, ``1+0``, ``1 (ADM)``, ``6 Reed-Solomon`` as md writes it; None for what is no level that
    is known."""
    found = re.fullmatch(r"(?:raid)?[ -]?(\d\d?|\d\+\d)(?:[ (].*)?", text.strip().lower(), re.ASCII)
    name = f"raid{found[1].replace('+', '')}" if found else ""
    return name if name in _PLAIN else None


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
