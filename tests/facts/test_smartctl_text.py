"""smartctl's text agrees with its JSON on the same drive."""

from __future__ import annotations

import json

import pytest

from advisor.facts.block.smart import DriveHealth, parse_smartctl, smartctl_as_json

ATA = """\
User Capacity:    4,000,787,030,016 bytes [4.00 TB]
Rotation Rate:    7200 rpm
ATA Version is:   ACS-3 T13/2161-D revision 5
SMART overall-health self-assessment test result: FAILED!
ID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  WHEN_FAILED RAW_VALUE
  5 Reallocated_Sector_Ct   0x0033   005   005   010    Pre-fail  Always   FAILING_NOW 1912
  9 Power_On_Hours          0x0032   096   096   000    Old_age   Always       -       4273 (5 89 0)
194 Temperature_Celsius     0x0022   034   045   000    Old_age   Always       -       34 (0 9 0 0 0)
197 Current_Pending_Sector  0x0012   100   100   000    Old_age   Always       -       8
SCT Error Recovery Control:
           Read:     70 (7.0 seconds)
          Write: Disabled
"""
ATA_ROWS = (
    (5, "Reallocated_Sector_Ct", 5, 10, "now", True, "1912"),
    (9, "Power_On_Hours", 96, 0, "", False, "4273 (5 89 0)"),
    (194, "Temperature_Celsius", 34, 0, "", False, "34 (0 9 0 0 0)"),
    (197, "Current_Pending_Sector", 100, 0, "", False, "8"),
)
ATA_JSON = {
    "device": {"protocol": "ATA"},
    "user_capacity": {"blocks": 7814037168},
    "rotation_rate": 7200,
    "smart_status": {"passed": False},
    "temperature": {"current": 34},
    "power_on_time": {"hours": 4273},
    "ata_sct_erc": {"read": {"enabled": True, "deciseconds": 70}, "write": {"enabled": False}},
    "ata_smart_attributes": {
        "table": [
            {
                **{"id": number, "name": name, "value": value, "thresh": threshold, "when_failed": failed},
                **{"flags": {"prefailure": is_prefail}, "raw": {"string": raw}},
            }
            for number, name, value, threshold, failed, is_prefail, raw in ATA_ROWS
        ]
    },
}
NVME = """\
Model Number:                       KIOXIA
NVMe Version:                       1.4
SMART overall-health self-assessment test result: PASSED
Critical Warning:                   0x04
Temperature:                        41 Celsius
Available Spare:                    98%
Available Spare Threshold:          10%
Percentage Used:                    103%
Power On Hours:                     12,345
Media and Data Integrity Errors:    2
"""
NVME_JSON = {
    "device": {"protocol": "NVMe"},
    "smart_status": {"passed": True},
    "temperature": {"current": 41},
    "power_on_time": {"hours": 12345},
    "nvme_smart_health_information_log": {
        **{"critical_warning": 4, "available_spare": 98, "available_spare_threshold": 10},
        **{"percentage_used": 103, "media_errors": 2},
    },
}
SCSI = """\
Vendor:               SEAGATE
SMART Health Status: OK
Percentage used endurance indicator: 7%
Current Drive Temperature:     29 C
Elements in grown defect list: 3
read:   1234        0         0      1234          0      512.000           1
write:     0        0         0         0          0      512.000           0
verify:    0        0         0         0          0        1.000           2
"""
SCSI_JSON = {
    "device": {"protocol": "SCSI"},
    "smart_status": {"passed": True},
    "scsi_percentage_used_endurance_indicator": 7,
    "temperature": {"current": 29},
    "scsi_grown_defect_list": 3,
    "scsi_error_counter_log": {
        way: {"total_uncorrected_errors": count} for way, count in (("read", 1), ("write", 0), ("verify", 2))
    },
}


@pytest.mark.parametrize(("text", "document"), [(ATA, ATA_JSON), (NVME, NVME_JSON), (SCSI, SCSI_JSON)])
def test_text_and_json_agree(text: str, document: object) -> None:
    by_json = parse_smartctl(json.dumps(document))
    assert isinstance(by_json, DriveHealth)
    assert parse_smartctl(smartctl_as_json(text)) == by_json


def test_nvme_smart_log() -> None:
    text = (
        "Smart Log for NVME device:nvme0n1\ncritical_warning\t\t: 0x4\navailable_spare : 98%\npercentage_used : 103%\n"
    )
    health = parse_smartctl(smartctl_as_json(text))
    assert isinstance(health, DriveHealth)
    assert (health.protocol, health.critical_warning, health.percentage_used) == ("NVMe", 4, 103)


def test_a_text_without_health_says_nothing() -> None:
    assert isinstance(parse_smartctl(smartctl_as_json("Smartctl open device: /dev/sda failed: No such device")), str)
