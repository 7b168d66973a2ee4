"""What ``smartctl -a`` or ``nvme smart-log`` prints of a drive's health as text, for captures without JSON.

The names are those of smartmontools' own printing (ataprint.cpp, scsiprint.cpp, nvmeprint.cpp).
"""

from __future__ import annotations

import json
import re

from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex

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
