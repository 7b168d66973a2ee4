"""What storcli and perccli print with ``show all J``: controllers, virtual drives, drives, CacheVault and battery.

The shape is that of ``Controllers[].Response Data`` in the tools' public output (Broadcom StorCLI, Dell PERC CLI).
Whatever is not in that shape is passed over and stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from advisor.facts.block import clean
from advisor.facts.controller import (
    MAX_CONTROLLERS,
    MAX_TEXT,
    MAX_VOLUMES,
    CacheProtection,
    Controller,
    ControllerVolume,
    WritePolicy,
    device_name,
    level_of,
    media_of,
    size_bytes,
)
from advisor.facts.printable import printable
from advisor.host.patterns import lazy_regex

Tree = Mapping[str, object]

_STATES = {"optl": "active", "pdgd": "degraded", "dgrd": "degraded", "ofln": "failed", "rec": "recovering"}
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


def parse_storcli_volumes(text: str) -> tuple[StorcliVolume, ...]:
    """Virtual drives in the JSON of ``/call/vall show all J``, in the order in which they stand."""
    return tuple(one for number, data in _parse_answers(text) for one in _parse_details(number, data))


def with_details(controller: Controller, details: tuple[StorcliVolume, ...]) -> Controller:
    """The controller with strip size, number of drives and device of its volumes."""
    known = {one.name: one for one in details if one.controller == controller.name}
    volumes = tuple(_with_detail(one, known.get(one.name)) for one in controller.volumes)
    return msgspec.structs.replace(controller, volumes=volumes)


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
        if type(number) is int and 0 <= number < 1000 and data and _as_word(status.get("Status")) != "Failure":
            yield str(number), data


def _make_controller(number: str, data: Tree) -> Controller:
    basics, version, status = (_as_tree(data.get(key)) for key in ("Basics", "Version", "Status"))
    protection = _parse_protection(data)
    battery = _as_word(_as_tree(data.get("HwCfg")).get("BBU"))
    state = _as_word(status.get("Controller Status"))
    return Controller(
        name=number,
        tool="storcli",
        model=_as_word(basics.get("Model")) or _as_word(data.get("Product Name")),
        firmware=_as_word(version.get("Firmware Version")),
        volumes=tuple(_make_volume(one, data) for one in _as_trees(data.get("VD LIST"))[:MAX_VOLUMES]),
        has_protection=True if protection else False if battery and battery.lower() in ("absent", "no") else None,
        protection=protection,
        detail={"status": state} if state else {},
    )


def _parse_protection(data: Tree) -> CacheProtection | None:
    """The state in a list of units, or in a list of properties, of which both are met with."""
    kinds: tuple[tuple[str, Literal["battery", "flash"]], ...] = (("Cachevault_Info", "flash"), ("BBU_Info", "battery"))
    for key, kind in kinds:
        listed = _as_trees(data.get(key))
        pairs = {_as_word(one.get("Property")): _as_word(one.get("Value")) for one in listed}
        state = next((word for one in listed if (word := _as_word(one.get("State")))), None)
        state = state or pairs.get("State") or pairs.get("Battery State")
        if state:
            return CacheProtection(kind, state, _is_healthy(state))
    return None


def _is_healthy(state: str) -> bool | None:
    word = state.lower()
    if word in ("optimal", "opt"):
        return True
    return False if re.search(r"fail|degrad|dgrd|missing|replace|learn|charg|not |needs", word) else None


def _make_volume(entry: Tree, data: Tree) -> ControllerVolume:
    name, cache, status = (_as_word(entry.get(key)) or "" for key in ("DG/VD", "Cache", "State"))
    found = _CACHE.fullmatch(cache.upper())
    group = name.partition("/")[0]
    drives = [one for one in _as_trees(data.get("PD LIST")) if group and _as_word(one.get("DG")) == group]
    return ControllerVolume(
        name=name,
        level=level_of(_as_word(entry.get("TYPE")) or ""),
        state=_STATES.get(status.lower()),
        status=status,
        write_policy=_POLICIES[found[1]] if found else None,
        cache=cache,
        drives=len(drives) or None,
        media=media_of(frozenset((_as_word(one.get("Med")) or "").lower() for one in drives)),
    )


def _parse_details(number: str, data: Tree) -> Iterator[StorcliVolume]:
    for key, listed in data.items():
        place = re.fullmatch(r"/c\d{1,3}/v(\d{1,4})", key, re.ASCII)
        name = next((word for one in _as_trees(listed) if (word := _as_word(one.get("DG/VD")))), None)
        if not place or name is None:
            continue
        properties = _as_tree(data.get(f"VD{place[1]} Properties"))
        each, spans = (_as_count(properties.get(one)) for one in ("Number of Drives Per Span", "Span Depth"))
        yield StorcliVolume(
            controller=number,
            name=name,
            chunk_bytes=size_bytes(_as_word(properties.get("Strip Size")) or ""),
            drives=each * spans if each and spans else None,
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
