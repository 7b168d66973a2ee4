"""What ``arcconf getconfig N`` prints of Adaptec and Microchip controllers: the cache and what backs it up, logical
devices, their segments, and drives.

The shape is that of outputs in public bug reports and test suites, of releases 5 to 8 (Logical device number, Logical
Device number); a line that is not known changes nothing, so that another release leaves fields unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

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
