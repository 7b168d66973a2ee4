"""What ``smartctl --json`` prints of a drive's health: ATA attributes, SCSI log pages, NVMe's log page 0x02.

The keys are those that smartmontools writes (ataprint.cpp, scsiprint.cpp, nvmeprint.cpp; since 7.0). What is missing,
of another type or impossible stays unknown: a raw value that is larger than the drive is no count of sectors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from advisor.facts.block.block import clean
from advisor.facts.text import printable
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex

Protocol = Literal["ATA", "SCSI", "NVMe"]
Tree = Mapping[str, object]

_MAX_ATTRIBUTES = 64
_MAX_TEXT = 120
_LARGEST = (1 << 64) - 1
# What a drive without a figure of its own shows, and what no drive has.
_MOST_SECTORS = (1 << 32) - 2
_RAW = lazy_regex(r"([0-9]{1,20})(?![0-9A-Za-z.])", re.ASCII)
_COUNTS = {
    5: ("reallocated_sectors", ("reallocat", "retired")),
    197: ("pending_sectors", ("pending",)),
    198: ("uncorrectable_sectors", ("uncorrectable",)),
    199: ("link_errors", ("crc_error",)),
}
"""Attributes by number, and what their names contain where the vendor means the same by it."""
_LIFE = (
    lazy_regex(r"(life|lifetime|endurance)_?(left|remain)|(remain|perc)\w*_(life|endurance)", re.IGNORECASE),
    lazy_regex(r"wearout_indicator|wear_leveling_count", re.IGNORECASE),
)
"""Names of attributes whose normalised value goes from 100 to 1 or 0 with the endurance, as vendors of SSDs define
them (smartmontools, drivedb.h: 169, 173, 177, 202, 231, 233, 245, 248); the first that a drive has counts."""


class DriveAttribute(msgspec.Struct, frozen=True):
    """An ATA attribute at or below its threshold: ``now``, or in the past. ``is_prefail``: its vendor says that the
    drive is about to fail then; else that it has reached the end of its design life (ATA/ATAPI-5, 8.41)."""

    number: int
    name: str
    value: int | None
    threshold: int | None
    is_prefail: bool
    failed: Literal["now", "past"]


class DriveHealth(msgspec.Struct, frozen=True):
    """A drive's own judgement of itself. None is what it does not report; times are in seconds, shares in per cent.

    ``passed`` is the overall health. ``critical_warning`` holds the bits of byte 0 of NVMe's log page 0x02.
    ``percentage_used`` is the share of the endurance that is used up, whichever bus the drive has. ``link_errors``
    count transfers between drive and controller that failed and were repeated: ATA's CRC errors, invalid words of a
    SAS port, errors of PCI Express that were corrected.
    ``media_errors`` of NVMe and ``uncorrected_errors`` of SCSI count since the drive was made. ``read_limit_seconds``
    and ``write_limit_seconds``: how long an ATA drive tries to recover a sector (SCT ERC), 0 for no limit.
    """

    protocol: Protocol | None = None
    passed: bool | None = None
    status: str | None = None
    """What a SCSI drive says about its health where that is not OK, with the codes of its sense data."""
    is_only_warning: bool = False
    """Whether ``status`` is a warning (ASC 0Bh: too hot, for instance) or a test (5Dh/FFh), and no failure."""
    failed_attributes: tuple[DriveAttribute, ...] = ()
    reallocated_sectors: int | None = None
    pending_sectors: int | None = None
    uncorrectable_sectors: int | None = None
    critical_warning: int | None = None
    available_spare_percent: int | None = None
    spare_threshold_percent: int | None = None
    percentage_used: int | None = None
    media_errors: int | None = None
    link_errors: int | None = None
    grown_defects: int | None = None
    uncorrected_errors: int | None = None
    temperature_celsius: int | None = None
    temperature_limit_celsius: int | None = None
    power_on_hours: int | None = None
    read_limit_seconds: float | None = None
    write_limit_seconds: float | None = None


def parse_smartctl(text: str) -> DriveHealth | str:
    """The health in a document of ``smartctl --json``; why there is none, in smartctl's own words where it has some."""
    try:
        document = _as_tree(msgspec.json.decode(text))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return "smartctl printed no JSON (its --json came with release 7.0)"
    status, log = (_as_tree(document.get(key)) for key in ("smart_status", "nvme_smart_health_information_log"))
    defects = _as_count(document.get("scsi_grown_defect_list"))
    attributes = _as_trees(_as_tree(document.get("ata_smart_attributes")).get("table"))[:_MAX_ATTRIBUTES]
    passed = status.get("passed")
    if not isinstance(passed, bool) and not log and not attributes and defects is None:
        said = (_as_word(one.get("string")) for one in _as_trees(_as_tree(document.get("smartctl")).get("messages")))
        return next(filter(None, said), "smartctl reports no health for it")
    protocol = _as_word(_as_tree(document.get("device")).get("protocol"))
    text_of_status, is_only_warning = _parse_scsi_status(_as_tree(status.get("scsi")))
    temperature = _as_tree(document.get("temperature"))
    limit = (temperature.get(key) for key in ("drive_trip", "critical_limit_max", "op_limit_max"))
    recovery = _as_tree(document.get("ata_sct_erc"))
    sectors = _as_count(_as_tree(document.get("user_capacity")).get("blocks"))
    found: list[DriveAttribute] = []
    for one in attributes:
        number, failed = _as_count(one.get("id"), most=255), one.get("when_failed")
        value, threshold = (_as_count(one.get(key), most=255) for key in ("value", "thresh"))
        if number is not None and (failed == "now" or failed == "past"):
            name = _as_word(one.get("name")) or f"attribute {number}"
            is_prefail = _as_tree(one.get("flags")).get("prefailure") is True
            found.append(DriveAttribute(number, name, value, threshold, is_prefail, failed))
    return DriveHealth(
        protocol="ATA" if protocol == "ATA" else "SCSI" if protocol == "SCSI" else "NVMe" if log else None,
        passed=passed if isinstance(passed, bool) else None,
        status=text_of_status,
        is_only_warning=is_only_warning,
        failed_attributes=tuple(found),
        **dict(_sector_counts(attributes, min(sectors or _MOST_SECTORS, _MOST_SECTORS))),
        critical_warning=_as_count(log.get("critical_warning"), most=0xFF),
        available_spare_percent=_as_count(log.get("available_spare"), most=100),
        spare_threshold_percent=_as_count(log.get("available_spare_threshold"), most=100),
        percentage_used=_percentage_used(document, log, attributes),
        media_errors=_as_count(log.get("media_errors")),
        grown_defects=defects,
        uncorrected_errors=_sum_uncorrected(_as_tree(document.get("scsi_error_counter_log"))),
        temperature_celsius=_as_celsius(temperature.get("current")),
        temperature_limit_celsius=next((one for one in map(_as_celsius, limit) if one is not None), None),
        power_on_hours=_as_count(_as_tree(document.get("power_on_time")).get("hours"), most=10_000_000),
        read_limit_seconds=_parse_limit(recovery.get("read")),
        write_limit_seconds=_parse_limit(recovery.get("write")),
    )


def _parse_scsi_status(scsi: Tree) -> tuple[str | None, bool]:
    words, code, qualifier = _as_word(scsi.get("ie_string")), _as_count(scsi.get("asc")), _as_count(scsi.get("ascq"))
    if code is None or qualifier is None:
        return words, False
    return f"{words or 'no text'} (asc {code:02x}h, ascq {qualifier:02x}h)", code == 0x0B or (code, qualifier) == (
        0x5D,
        0xFF,
    )


def _sector_counts(attributes: tuple[Tree, ...], most: int) -> Iterator[tuple[str, int]]:
    """The first number of the raw text: behind it vendors put others into the same 48 bits."""
    for one in attributes:
        field, names = _COUNTS.get(_as_count(one.get("id")) or 0, ("", ()))
        name = (_as_word(one.get("name")) or "").lower()
        found = _RAW.match(_as_word(_as_tree(one.get("raw")).get("string")) or "")
        if found and any(word in name for word in names) and int(found[1]) <= most:
            yield field, int(found[1])


def _percentage_used(document: Tree, log: Tree, attributes: tuple[Tree, ...]) -> int | None:
    """Used endurance by NVMe's log, SCSI's log page 0x11, ATA's device statistics, or the attributes of an SSD."""
    pages = _as_trees(_as_tree(document.get("ata_device_statistics")).get("pages"))
    rows = (row for page in pages for row in _as_trees(page.get("table")))
    statistic = (row.get("value") for row in rows if "Endurance Indicator" in (_as_word(row.get("name")) or ""))
    told = (
        log.get("percentage_used"),
        document.get("scsi_percentage_used_endurance_indicator"),
        _as_tree(document.get("endurance_used")).get("current_percent"),
        *statistic,
    )
    known = next((one for one in (_as_count(value, most=255) for value in told) if one is not None), None)
    if known is not None or document.get("rotation_rate"):
        return known
    named = [(_as_word(one.get("name")) or "", _as_count(one.get("value"), most=100)) for one in attributes]
    for names in _LIFE:
        left = [value for name, value in named if value is not None and names.search(name)]
        if left:
            return 100 - min(left) if min(left) > 1 else 100
    return None


def _sum_uncorrected(log: Tree) -> int | None:
    counts = [_as_count(_as_tree(log.get(way)).get("total_uncorrected_errors")) for way in ("read", "write", "verify")]
    known = [one for one in counts if one is not None]
    return sum(known) if known else None


def _parse_limit(value: object) -> float | None:
    tree = _as_tree(value)
    tenths = _as_count(tree.get("deciseconds"), most=0xFFFF)
    return 0.0 if tree.get("enabled") is False else None if tenths is None else tenths / 10


def _as_tree(value: object) -> Tree:
    return value if isinstance(value, dict) else {}


def _as_trees(value: object) -> tuple[Tree, ...]:
    return tuple(one for one in value if isinstance(one, dict)) if isinstance(value, list) else ()


def _as_word(value: object) -> str | None:
    return printable(clean(value)[:_MAX_TEXT]) or None if isinstance(value, str) else None


def _as_count(value: object, most: int = _LARGEST) -> int | None:
    # A boolean is an int to Python, and no count.
    return value if type(value) is int and 0 <= value <= most else None


def _as_celsius(value: object) -> int | None:
    return value if type(value) is int and -60 < value < 200 and value != 0 else None


# What ``smartctl -a`` or ``nvme smart-log`` prints of a drive's health as text, for captures without JSON.

_ATTRIBUTE = lazy_regex(
    r"^ *([0-9]{1,3}) (\S{1,40}) +(0x[0-9a-f]{4}|[POSRCK-]{6}) +([0-9]{1,3}) +\S{1,3} +([0-9]{1,3}|---)"
    r"(?: +(Pre-fail|Old_age) +\S+)? +(\S+) +(.+)$",
    re.MULTILINE,
)
_NVME = {
    "Critical Warning": "critical_warning",
    "Available Spare": "available_spare",
    "Available Spare Threshold": "available_spare_threshold",
    "Percentage Used": "percentage_used",
    "Media and Data Integrity Errors": "media_errors",
}
_FAILED = {"FAILING_NOW": "now", "NOW": "now", "In_the_past": "past", "Past": "past"}


def smartctl_as_json(text: str) -> str:
    """The text as ``smartctl --json`` has it; an empty document of one that says nothing of health."""
    fields = dict(re.findall(r"^([A-Z][\w /()-]{2,60}?): +(.+?)[ \t]*$", text, re.MULTILINE))
    document: dict[str, object] = {"smartctl": {"messages": []}}
    verdict = re.search(r"(?:self-assessment test result|SMART Health Status): (.+)", text)
    if verdict:
        document["smart_status"] = {"passed": verdict[1].strip() in ("PASSED", "OK")}
    rows = []
    for number, name, flags, value, threshold, kind, failed, raw in _ATTRIBUTE.findall(text):
        is_prefail = kind == "Pre-fail" or flags.startswith("P") or (flags.startswith("0x") and int(flags, 16) & 1 == 1)
        row = {"id": int(number), "name": name, "value": int(value), "raw": {"string": raw.strip()}}
        row |= {"thresh": int(threshold)} if is_count(threshold) else {}
        rows.append(row | {"when_failed": _FAILED.get(failed, ""), "flags": {"prefailure": is_prefail}})
    plain = dict(re.findall(r"^([a-z_]{9,30})\s*: (\S+)", text, re.MULTILINE))  # As nvme(1) smart-log has them.
    is_nvme = "NVMe" in text or "critical_warning" in plain
    protocol = "ATA" if rows or "ATA Version is" in text else "NVMe" if is_nvme else "SCSI"
    document["device"] = {"protocol": protocol}
    if rows:
        document["ata_smart_attributes"] = {"table": rows}
        hours = next((row["raw"] for row in rows if row["id"] == 9), None)
    else:
        hours = None
    if protocol == "NVMe":
        said = {own: fields.get(name) or plain.get(own, "") for name, own in _NVME.items()}
        log = {name: _number(value) for name, value in said.items()}
        document["nvme_smart_health_information_log"] = {
            name: number for name, number in log.items() if number is not None
        }
    defects = re.search(r"^Elements in grown defect list: +([0-9]{1,9})", text, re.MULTILINE)
    if defects:
        document["scsi_grown_defect_list"] = int(defects[1])
    counters = re.findall(r"^(read|write|verify): +(?:\S+ +){6}([0-9]{1,18}) *$", text, re.MULTILINE)
    if counters:
        document["scsi_error_counter_log"] = {
            way: {"total_uncorrected_errors": int(errors)} for way, errors in counters
        }
    celsius = re.search(r"^(?:Current Drive Temperature|Temperature): +([0-9]{1,3}) (?:C|Celsius)", text, re.MULTILINE)
    spelled = re.search(r"^194 .* ([0-9]{1,3})(?: \(.*)?$", text, re.MULTILINE)
    if celsius or spelled:
        document["temperature"] = {"current": int((celsius or spelled)[1])}  # type: ignore[index]
    on = fields.get("Power On Hours") or (str(hours["string"]) if isinstance(hours, dict) else "")
    if _number(on) is not None:
        document["power_on_time"] = {"hours": _number(on)}
    limits = dict(re.findall(r"^ +(Read|Write): +([0-9]{1,5}|Disabled)", text, re.MULTILINE))
    if limits:
        document["ata_sct_erc"] = {
            way.lower(): {"enabled": said != "Disabled"} | ({"deciseconds": int(said)} if is_count(said) else {})
            for way, said in limits.items()
        }
    capacity = re.search(r"^User Capacity: +([0-9,]+) bytes", text, re.MULTILINE)
    if capacity:
        document["user_capacity"] = {"blocks": int(capacity[1].replace(",", "")) // 512}
    rotation = re.search(r"^Rotation Rate: +([0-9]{1,6}) rpm", text, re.MULTILINE)
    if rotation:
        document["rotation_rate"] = int(rotation[1])
    endurance = re.search(r"^Percentage used endurance indicator: +([0-9]{1,3})%", text, re.MULTILINE)
    if endurance:
        document["scsi_percentage_used_endurance_indicator"] = int(endurance[1])
    return json.dumps(document)


def _number(text: str) -> int | None:
    """The number that a text begins with: ``0x04``, ``1,234``, ``98%``, ``12345h+02m``."""
    found = re.match(r"0x[0-9a-fA-F]{1,8}|[0-9][0-9,]{0,24}", text)
    return int(found[0].replace(",", ""), 0 if found[0].startswith("0x") else 10) if found else None
