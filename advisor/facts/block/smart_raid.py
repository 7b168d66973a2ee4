"""What ``arcconf getconfig N`` prints of Adaptec and Microchip controllers: the cache and what backs it up, logical
devices, their segments, and drives.

The shape is that of outputs in public bug reports and test suites, of releases 5 to 8 (Logical device number, Logical
Device number); a line that is not known changes nothing, so that another release leaves fields unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from advisor.facts.block.controller import (
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
from advisor.facts.text import printable
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex

Block = Mapping[str, str]

_MAX_LINES = 40_000
_HEAD = lazy_regex(r"(Logical Device number|Device #)\s*(\d{1,4})", re.IGNORECASE | re.ASCII)
_STATES = (
    *(("optimal", "active"), ("impacted", "resyncing"), ("rebuilding", "recovering"), ("reconfiguring", "reshaping")),
    *(("degraded", "degraded"), ("suboptimal", "degraded"), ("interim recovery", "degraded"), ("failed", "failed")),
    ("offline", "failed"),
)
_SERVES = ("online", "ready", "raw", "hot spare", "hot-spare", "dedicated", "global", "pooled", "exposed", "jbod")


def parse_arcconf_numbers(text: str) -> tuple[str, ...]:
    """The numbers of the controllers in ``arcconf list``: ``Controller 1:  : Optimal, Slot 3, RAID …``."""
    found = re.findall(r"^[ \t]*Controller (\d{1,3}):", text, re.MULTILINE | re.ASCII)
    return tuple(dict.fromkeys(found))[:MAX_CONTROLLERS]


def parse_arcconf(number: str, text: str) -> Controller | None:
    """The controller in ``arcconf getconfig N``; None where the text describes none."""
    about, devices, hardware = _split_blocks(text)
    if "Controller Model" not in about:
        return None
    drives = tuple(_parse_drives(hardware))
    backup = about.get("Overall Backup Unit Status") or about.get("Controller Battery Information/Status") or ""
    has_backup = bool(backup) and "not installed" not in backup.lower()
    is_flash = "Overall Backup Unit Status" in about
    return Controller(
        name=number,
        tool="arcconf",
        model=about["Controller Model"],
        firmware=about.get("Firmware"),
        volumes=tuple(_make_volume(block) for block in devices[:MAX_VOLUMES]),
        has_protection=has_backup if backup else None,
        protection=CacheProtection("flash" if is_flash else "battery", backup, is_healthy(backup))
        if has_backup
        else None,
        detail={"status": about["Controller Status"]} if about.get("Controller Status") else {},
        drives=drives,
    )


def _split_blocks(text: str) -> tuple[Block, list[Block], list[Block]]:
    """The controller's own fields, then those of each logical device and of each physical one."""
    about: dict[str, str] = {}
    devices: list[Block] = []
    hardware: list[Block] = []
    block, section = about, ""
    for line in text.splitlines()[:_MAX_LINES]:
        stripped = line.strip()
        key, colon, value = stripped.partition(":")
        head = _HEAD.match(stripped)
        if head:
            block = {"name": head[2], "segments": ""}
            (devices if "ogical" in head[1] else hardware).append(block)
        elif not colon:
            section = stripped if stripped.strip("-") else section
        elif key.startswith("Segment "):
            block["segments"] = f"{block.get('segments', '')}{value.split()[0] if value.split() else '?'} "
        elif value.strip():
            name = printable(key.strip()[:MAX_TEXT])
            name = f"{section}/{name}" if name == "Status" else name
            block.setdefault(name, printable(value.strip()[:MAX_TEXT]))
    return about, devices, hardware


def _make_volume(block: Block) -> ControllerVolume:
    fields = {key.lower(): value for key, value in block.items()}
    status = fields.get("status of logical device", "")
    level = level_of(fields.get("raid level", ""))
    segments = block["segments"].split()
    missing = sum(not word.startswith(("Present", "Rebuilding", "Expanding")) for word in segments)
    missing += sum(word.startswith("Rebuilding") for word in segments)
    setting = fields.get("write-cache setting") or fields.get("write-cache mode") or ""
    now = fields.get("write-cache status", "")
    return ControllerVolume(
        name=block["name"],
        level=level,
        state=next((state for words, state in _STATES if status.lower().startswith(words)), None),
        status=status,
        write_policy=_parse_policy(setting, now),
        cache=", ".join(word for word in (setting, now) if word),
        chunk_bytes=size_bytes(fields.get("stripe-unit size", "")),
        drives=len(segments) or None,
        media=media_of(frozenset({fields.get("device type", "").lower()})),
        device=device_name(fields.get("disk name", "").split(" ")[0]),
        group=block["name"],
        missing=missing if segments else None,
        survives=losses_of(level, len(segments) or None, missing if segments else None),
    )


def _parse_policy(setting: str, now: str) -> WritePolicy | None:
    """``On when protected by battery/ZMM`` falls back by itself; ``Enabled`` writes back whatever protects it."""
    word = setting.lower()
    if now.lower() == "off" or word.startswith(("disabled", "off")):
        return "write-through"
    if "protected" in word:
        return "write-back"
    return "always-write-back" if word.startswith(("enabled", "on")) else None


def _parse_drives(hardware: list[Block]) -> Iterator[ControllerDrive]:
    for block in hardware:
        if "State" in block and "Enclosure ID" not in block:
            state, alert = block["State"], block.get("S.M.A.R.T.", "No")
            warnings = block.get("S.M.A.R.T. warnings", "0")
            is_predicted = alert == "Yes" or warnings not in ("0", "Not Available")
            is_lost = not state.lower().startswith(_SERVES)
            degrees = re.match(r"\d{1,3}(?= C)", block.get("Temperature", ""), re.ASCII)
            yield make_drive(
                block["name"],
                "S.M.A.R.T. warning" if is_predicted and not is_lost else state,
                is_lost=is_lost,
                is_failing=is_predicted or (is_lost and not state.lower().startswith("rebuild")),
                counts={
                    "media_errors": block.get("Medium Error Count"),
                    "link_errors": block.get("Link Failure Count"),
                    "temperature_celsius": degrees[0] if degrees else None,
                },
                model=block.get("Model"),
                serial=block.get("Serial number"),
            )


# What ``ssacli ctrl all show config detail`` prints: Smart Array controllers, logical drives, cache and its battery.

_SSACLI_MAX_LINES = 20_000
_SSACLI_HEAD = lazy_regex(r"(\S.{0,80}?) in Slot (\d{1,3})\b", re.ASCII)
_SSACLI_STATES = (
    ("ok", "active"),
    ("interim recovery", "degraded"),
    ("recovering", "recovering"),
    ("ready for rebuild", "degraded"),
    ("failed", "failed"),
)
_SHOWN = ("Cache Status", "Cache Status Details", "No-Battery Write Cache", "Cache Ratio", "Drive Write Cache")


def parse_ssacli(text: str) -> tuple[Controller, ...]:
    """Controllers in the order of the output, by the number of their slot."""
    return tuple(_make_controller(*found) for found in _split_sections(text.splitlines()[:_SSACLI_MAX_LINES]))[
        :MAX_CONTROLLERS
    ]


def _split_sections(lines: list[str]) -> list[tuple[str, str, list[str]]]:
    """Model, slot and lines of each controller; its name begins a line."""
    found: list[tuple[str, str, list[str]]] = []
    for line in lines:
        head = _SSACLI_HEAD.match(line)
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
        volumes=tuple(_make_ssacli_volume(block, about, media, known) for block in drives),
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


def _make_ssacli_volume(
    block: Block, about: Block, media: list[tuple[str, str]], drives: tuple[ControllerDrive, ...]
) -> ControllerVolume:
    status, caching = block.get("Status", ""), block.get("Caching", "")
    own = [medium for array, medium in media if array and array == block["array"]]
    begun = (state for words, state in _SSACLI_STATES if status.lower().startswith(words))
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
