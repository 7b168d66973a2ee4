"""What ``ssacli ctrl all show config detail`` prints: Smart Array controllers, logical drives, cache and its battery.

No description of this output by its maker is public. The shape is that of outputs in public bug reports and test
suites; a line that is not known changes nothing, so a release that prints another leaves fields unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from advisor.facts.controller import (
    MAX_CONTROLLERS,
    MAX_TEXT,
    MAX_VOLUMES,
    CacheProtection,
    Controller,
    ControllerDrive,
    ControllerVolume,
    WritePolicy,
    device_name,
    is_healthy,
    level_of,
    losses_of,
    make_drive,
    media_of,
    size_bytes,
)
from advisor.facts.printable import printable
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex

_MAX_LINES = 20_000
_HEAD = lazy_regex(r"(\S.{0,80}?) in Slot (\d{1,3})\b", re.ASCII)
_STATES = (
    ("ok", "active"),
    ("interim recovery", "degraded"),
    ("recovering", "recovering"),
    ("ready for rebuild", "degraded"),
    ("failed", "failed"),
)
_SHOWN = ("Cache Status", "Cache Status Details", "No-Battery Write Cache", "Cache Ratio", "Drive Write Cache")

Block = Mapping[str, str]


def parse_ssacli(text: str) -> tuple[Controller, ...]:
    """Controllers in the order of the output, by the number of their slot."""
    return tuple(_make_controller(*found) for found in _split_sections(text.splitlines()[:_MAX_LINES]))[
        :MAX_CONTROLLERS
    ]


def _split_sections(lines: list[str]) -> list[tuple[str, str, list[str]]]:
    """Model, slot and lines of each controller; its name begins a line."""
    found: list[tuple[str, str, list[str]]] = []
    for line in lines:
        head = _HEAD.match(line)
        if head:
            found.append((head[1], head[2], []))
        elif found:
            found[-1][2].append(line)
    return found


def _make_controller(model: str, slot: str, lines: list[str]) -> Controller:
    # The controller's own settings first, then logical and physical drives, each with the array around it.
    blocks: list[tuple[str, dict[str, str]]] = []
    array = ""
    block: dict[str, str] = {}
    made = [("controller", block)]
    for line in lines:
        key, colon, value = line.strip().partition(":")
        value = printable(value.strip()[:MAX_TEXT])
        if key == "Array" and colon:
            array, block = value, {}
        elif key == "Logical Drive" and colon:
            block = {"array": array, "name": value}
            made.append(("logical", block))
        elif key.startswith("physicaldrive ") and not line.strip().endswith(")"):
            block = {"array": array, "name": printable(line.split()[1][:MAX_TEXT])}
            made.append(("physical", block))
        elif key.startswith(("unassigned", "SEP ", "Expander ", "Enclosure ")) or key in ("Unassigned", "HBA Drives"):
            array, block = "", {}
        elif colon and value:
            block.setdefault(printable(key[:MAX_TEXT]), value)
    blocks.extend(made)
    about = blocks[0][1]
    count, battery = about.get("Battery/Capacitor Count"), about.get("Battery/Capacitor Status")
    drives = [block for kind, block in blocks if kind == "logical"][:MAX_VOLUMES]
    physical = [block for kind, block in blocks if kind == "physical"]
    media = [(block["array"], _medium_of(block)) for block in physical]
    known = tuple(map(_make_drive, physical))
    source = about.get("Cache Backup Power Source", "")
    return Controller(
        name=slot,
        tool="ssacli",
        model=printable(model[:MAX_TEXT]),
        firmware=about.get("Firmware Version"),
        volumes=tuple(_make_volume(block, about, media, known) for block in drives),
        has_protection=False if count == "0" else True if battery or is_count(count or "") else None,
        protection=CacheProtection("battery" if "atter" in source else "flash", battery, is_healthy(battery))
        if battery
        else None,
        detail={key: about[key] for key in _SHOWN if key in about},
        drives=known,
    )


def _make_drive(block: Block) -> ControllerDrive:
    state = block.get("Status", "")
    is_predicted = state.startswith("Predictive") or block.get("SSD Smart Trip Wearout") == "True"
    is_lost = not is_predicted and state not in ("", "OK")
    left = re.match(r"\d{1,3}", block.get("Usage remaining", ""), re.ASCII)
    return make_drive(
        block["name"],
        state,
        is_lost=is_lost,
        is_failing=is_predicted or (is_lost and "ebuild" not in state),
        group=block["array"] or None,
        counts={
            "temperature_celsius": block.get("Current Temperature (C)"),
            "power_on_hours": block.get("Power On Hours"),
            "percentage_used": str(max(100 - int(left[0]), 0)) if left else None,
        },
        model=block.get("Model"),
        serial=block.get("Serial Number"),
    )


def _medium_of(block: Block) -> str:
    words = block.get("Interface Type", "")
    return "ssd" if "Solid State" in words or "NVMe" in words else "hdd" if block.get("Rotational Speed") else ""


def _make_volume(
    block: Block, about: Block, media: list[tuple[str, str]], drives: tuple[ControllerDrive, ...]
) -> ControllerVolume:
    status, caching = block.get("Status", ""), block.get("Caching", "")
    own = [medium for array, medium in media if array and array == block["array"]]
    begun = (state for words, state in _STATES if status.lower().startswith(words))
    # Caching of the drive, unless the controller has it off or gives all of its cache to reads.
    share = re.search(r"(\d{1,3})% Write", about.get("Cache Ratio", ""), re.ASCII)
    is_off = "disabled" in about.get("Cache Status", "").lower() or (share is not None and share[1] == "0")
    if caching.lower().startswith("disabled") or (caching and is_off):
        write_policy: WritePolicy | None = "write-through"
    elif not caching.lower().startswith("enabled"):
        write_policy = None
    else:
        write_policy = "always-write-back" if about.get("No-Battery Write Cache") == "Enabled" else "write-back"
    level = level_of(block.get("Fault Tolerance", "")) or level_of(block.get("RAID", ""))
    state = next(begun, None)
    lost = sum(one.is_lost for one in drives if one.group and one.group == block["array"])
    missing = lost or (0 if state == "active" else None)
    return ControllerVolume(
        name=block["name"],
        level=level,
        state=state,
        group=block["array"] or None,
        missing=missing,
        survives=losses_of(level, len(own) or None, missing),
        status=status,
        write_policy=write_policy,
        cache=caching,
        chunk_bytes=size_bytes(block.get("Strip Size", "")),
        drives=len(own) or None,
        media=media_of(frozenset(own)),
        device=device_name(block.get("Disk Name", "")),
    )
