"""What storcli and perccli print with ``show all J``: controllers, virtual drives, drives, CacheVault and battery.

The shape is that of ``Controllers[].Response Data`` in the tools' public output (Broadcom StorCLI and StorCLI2, Dell
PERC CLI and PERC CLI2). Whatever is not in that shape is passed over and stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from advisor.facts.block.block import clean
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
    losses_of_spans,
    make_drive,
    media_of,
    size_bytes,
)
from advisor.facts.text import printable
from advisor.host.patterns import lazy_regex

Tree = Mapping[str, object]

_STATES = {"optl": "active", "pdgd": "degraded", "dgrd": "degraded", "ofln": "failed", "rec": "recovering"}
# A drive that serves, one that is not in use, and one that is being filled; all others have failed or are missing.
_SERVING = frozenset({"onln", "online", "cpybck", "rplc", "replace"})
_IDLE = frozenset({"ugood", "ghs", "dhs", "jbod", "uconf", "uconfsp", "good", "spare", "sntze", "ugunsp", "unconf"})
_FILLING = frozenset({"rbld", "rebuild", "rebuilding"})
# The first letters of the column Cache say what is read ahead, the last D or C whether reads are cached.
_CACHE = lazy_regex(r"(?:NR|R|ADRA)(AWB|FWB|WB|WT)[DC]?", re.ASCII)
_POLICIES: Mapping[str, WritePolicy] = {
    "WB": "write-back",
    "WT": "write-through",
    "AWB": "always-write-back",
    "FWB": "always-write-back",
}


class StorcliVolume(msgspec.Struct, frozen=True):
    """What ``/call/vall show all J`` adds to a virtual drive; ``name`` as ``0/1``."""

    controller: str
    name: str
    chunk_bytes: int | None
    drives: int | None
    device: str | None


def parse_storcli(text: str) -> tuple[Controller, ...]:
    """Controllers in the JSON of ``/call show all J``, by number; those that answered with an error are left out."""
    return tuple(_make_controller(number, data) for number, data in _parse_answers(text))


def parse_storcli_drives(text: str) -> dict[str, tuple[ControllerDrive, ...]]:
    """Drives in the JSON of ``/call/eall/sall show all J``, by the number of their controller."""
    return {number: tuple(_parse_drives(data)) for number, data in _parse_answers(text)}


def _parse_drives(data: Tree) -> Iterator[ControllerDrive]:
    for entry in _as_trees(data.get("Drives List")):
        detail = _as_tree(entry.get("Drive Detailed Information"))
        yield _make_drive(_as_tree(entry.get("Drive Information")), detail, _as_tree(detail.get("LU/NS Properties")))
    for key, value in data.items():
        rows = _as_trees(value) if re.fullmatch(r"Drive /c\d+(?:/e\d+)?/s\d+", key, re.ASCII) else []
        detail = _as_tree(data.get(f"{key} - Detailed Information"))
        about, counts = (_as_tree(detail.get(f"{key} {part}")) for part in ("Device attributes", "State"))
        for row in rows[:1]:
            yield _make_drive(row, about, counts)


def _make_drive(row: Tree, about: Tree, counts: Tree) -> ControllerDrive:
    """``counts`` are empty in the list of drives, which shows no more than how each is used."""
    state = _as_word(row.get("Status")) or _as_word(row.get("State")) or ""
    used = {_as_word(row.get("State")), state}
    is_idle = any((word or "").lower() in _IDLE for word in used)
    predicted = _as_word(counts.get("Predictive Failure Count")) or "0"
    alerts = (_as_word(counts.get(key)) or "No" for key in ("S.M.A.R.T alert flagged by drive", "SMART Alert"))
    is_lost = bool(state) and state.lower() not in _SERVING and not is_idle
    is_predicted = predicted not in ("0", "N/A") or "Yes" in alerts
    degrees = re.match(
        r"[0-9]+", _as_word(counts.get("Drive Temperature")) or _as_word(about.get("Temperature(C)")) or ""
    )
    return make_drive(
        _as_word(row.get("EID:Slt")) or _as_word(row.get("EID:Slot")) or "?",
        "predictive failure" if is_predicted and not is_lost else state,
        is_lost=is_lost,
        is_failing=is_predicted or (is_lost and state.lower() not in _FILLING),
        group=_as_word(row.get("DG")),
        counts={
            "media_errors": _as_word(counts.get("Media Error Count")),
            "link_errors": _as_word(counts.get("Other Error Count")),
            "temperature_celsius": degrees[0] if degrees else None,
        },
        model=_as_word(row.get("Model")),
        serial=_as_word(about.get("SN")) or _as_word(about.get("Serial Number")),
    )


def parse_storcli_volumes(text: str) -> tuple[StorcliVolume, ...]:
    """Virtual drives in the JSON of ``/call/vall show all J``, in the order in which they stand."""
    return tuple(one for number, data in _parse_answers(text) for one in _parse_details(number, data))


def with_details(
    controller: Controller, details: tuple[StorcliVolume, ...], drives: tuple[ControllerDrive, ...] = ()
) -> Controller:
    """The controller with strip size, number of drives and device of its volumes, and the counters of its drives."""
    known = {one.name: one for one in details if one.controller == controller.name}
    volumes = tuple(_with_detail(one, known.get(one.name)) for one in controller.volumes)
    return msgspec.structs.replace(controller, volumes=volumes, drives=drives or controller.drives)


def _with_detail(volume: ControllerVolume, detail: StorcliVolume | None) -> ControllerVolume:
    if detail is None:
        return volume
    return msgspec.structs.replace(
        volume, chunk_bytes=detail.chunk_bytes, drives=detail.drives or volume.drives, device=detail.device
    )


def _parse_answers(text: str) -> Iterator[tuple[str, Tree]]:
    """Number and ``Response Data`` of each controller that answered."""
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return
    for entry in _as_trees(_as_tree(document).get("Controllers"))[:MAX_CONTROLLERS]:
        status, data = _as_tree(entry.get("Command Status")), _as_tree(entry.get("Response Data"))
        number = status.get("Controller", _as_tree(data.get("Basics")).get("Controller"))
        word = _as_word(number) or ""
        if re.fullmatch(r"\d{1,3}", word, re.ASCII) and data and _as_word(status.get("Status")) != "Failure":
            yield word, data


def _make_controller(number: str, data: Tree) -> Controller:
    basics, version, status = (_as_tree(data.get(key)) for key in ("Basics", "Version", "Status"))
    protection = _parse_protection(data)
    hardware = _as_tree(data.get("HwCfg"))
    battery = _as_word(hardware.get("BBU")) or _as_word(hardware.get("Energy Pack"))
    state = _as_word(status.get("Controller Status"))
    return Controller(
        name=number,
        tool="storcli",
        model=next(filter(None, map(_as_word, (basics.get("Model"), *_names(basics, data)))), None),
        firmware=_as_word(version.get("Firmware Version")),
        volumes=tuple(_make_volume(one, data) for one in _as_trees(data.get("VD LIST"))[:MAX_VOLUMES]),
        has_protection=True if protection else False if battery and battery.lower() in ("absent", "no") else None,
        protection=protection,
        detail={"status": state} if state else {},
        drives=tuple(_make_drive(one, {}, {}) for one in _as_trees(data.get("PD LIST"))),
    )


def _names(basics: Tree, data: Tree) -> tuple[object, object]:
    return basics.get("Product Name"), data.get("Product Name")


def _parse_protection(data: Tree) -> CacheProtection | None:
    """The state in a list of units, or in a list of properties, of which both are met with."""
    kinds: tuple[tuple[str, Literal["battery", "flash"]], ...] = (
        *(("Cachevault_Info", "flash"), ("BBU_Info", "battery")),
        *(("Energy Pack Info", "flash"), ("Energy Pack_Info", "flash"), ("EnergyPack_Info", "flash")),
    )
    for key, kind in kinds:
        listed = _as_trees(data.get(key))
        pairs = {_as_word(one.get("Property")): _as_word(one.get("Value")) for one in listed}
        state = next((word for one in listed if (word := _as_word(one.get("State")))), None)
        state = state or next((word for one in listed if (word := _as_word(one.get("Status")))), None)
        state = state or pairs.get("State") or pairs.get("Battery State")
        if state:
            return CacheProtection(kind, state, is_healthy(state))
    return None


def _make_volume(entry: Tree, data: Tree) -> ControllerVolume:
    name, status = (_as_word(entry.get(key)) or "" for key in ("DG/VD", "State"))
    cache = _as_word(entry.get("Cache")) or _as_word(entry.get("CurrentCache")) or ""
    found = _CACHE.fullmatch(cache.upper().replace(",", ""))
    group = name.partition("/")[0]
    level = level_of(_as_word(entry.get("TYPE")) or "")
    drives = [one for one in _as_trees(data.get("PD LIST")) if group and _as_word(one.get("DG")) == group]
    spans = _count_spans(data, group)
    missing = sum(lost for _, lost in spans) or None
    if status.lower() in ("pdgd", "dgrd") and missing is None:
        # Of RAID 6 the word says it: partially degraded with one drive missing, degraded with two.
        missing = 2 if status.lower() == "dgrd" and level in ("raid6", "raid60") else 1
        spans = []
    return ControllerVolume(
        name=name,
        level=level,
        group=group or None,
        missing=missing or (0 if status.lower() == "optl" else None),
        survives=losses_of_spans(level, spans) if spans else losses_of(level, len(drives) or None, missing),
        state=_STATES.get(status.lower()),
        status=status,
        write_policy=_POLICIES[found[1]] if found else None,
        cache=cache,
        drives=sum(count for count, _ in spans) or len(drives) or None,
        media=media_of(frozenset((_as_word(one.get("Med")) or "").lower() for one in drives)),
    )


def _count_spans(data: Tree, group: str) -> list[tuple[int, int]]:
    """Drives, and missing ones among them, of each span of a drive group (TOPOLOGY)."""
    counts: dict[str, tuple[int, int]] = {}
    for row in _as_trees(data.get("TOPOLOGY")):
        if _as_word(row.get("DG")) == group and _as_word(row.get("Type")) == "DRIVE":
            span = _as_word(row.get("Arr")) or _as_word(row.get("Span")) or ""
            total, lost = counts.get(span, (0, 0))
            counts[span] = total + 1, lost + _make_drive(row, {}, {}).is_lost
    return list(counts.values())


def _parse_details(number: str, data: Tree) -> Iterator[StorcliVolume]:
    found = [(_as_tree(one.get("VD Info")), one.get("VD Properties")) for one in _as_trees(data.get("Virtual Drives"))]
    for key, listed in data.items():
        place = re.fullmatch(r"/c\d{1,3}/v(\d{1,4})", key, re.ASCII)
        if place:
            found += [(one, data.get(f"VD{place[1]} Properties")) for one in _as_trees(listed)[:1]]
    for about, given in found:
        name, properties = _as_word(about.get("DG/VD")), _as_tree(given)
        if name is None:
            continue
        each, spans = (_as_count(properties.get(one)) for one in ("Number of Drives Per Span", "Span Depth"))
        yield StorcliVolume(
            controller=number,
            name=name,
            chunk_bytes=size_bytes(_as_word(properties.get("Strip Size")) or ""),
            drives=each * spans if each and spans else _as_count(properties.get("Number of Drives")),
            device=device_name(_as_word(properties.get("OS Drive Name")) or ""),
        )


def _as_tree(value: object) -> Tree:
    return value if isinstance(value, dict) else {}


def _as_trees(value: object) -> list[Tree]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _as_word(value: object) -> str | None:
    """A text or number as one short line; None for anything else, and for nothing."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    # Python refuses to write numbers of thousands of digits out.
    text = value[: 2 * MAX_TEXT] if isinstance(value, str) else str(value) if abs(value) < 1 << 64 else ""
    return printable(clean(text)[:MAX_TEXT]) or None


def _as_count(value: object) -> int | None:
    text = _as_word(value) or ""
    return int(text) if re.fullmatch(r"[0-9]{1,4}", text, re.ASCII) else None
