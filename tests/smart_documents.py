"""What ``smartctl --json`` prints, with the keys of smartmontools' ataprint.cpp, scsiprint.cpp and nvmeprint.cpp."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

Tree = dict[str, Any]


def common(device: str, protocol: str, *, messages: Iterable[str] = (), code: int = 0) -> Tree:
    """What every document begins with."""
    smartctl: Tree = {"version": [7, 3], "svn_revision": "5338", "argv": ["smartctl"], "exit_status": code}
    if texts := [{"string": one, "severity": "error"} for one in messages]:
        smartctl["messages"] = texts
    kind = {"ATA": "sat", "SCSI": "scsi", "NVMe": "nvme"}.get(protocol, "scsi")
    about = {"name": device, "info_name": device, "type": kind, "protocol": protocol}
    return {"json_format_version": [1, 0], "smartctl": smartctl, "device": about}


def attribute(number: int, name: str, raw: str = "0", **parts: Any) -> Tree:
    """A row of the table of ATA attributes; ``prefailure`` and all of its columns may be given."""
    prefail = parts.pop("prefailure", number in (1, 3, 5, 7, 10))
    head = raw.split()[0]
    return {
        **{"id": number, "name": name, "value": 100, "worst": 100, "thresh": 10, "when_failed": ""},
        "flags": {"value": 51, "string": "PO--CK ", "prefailure": prefail, "updated_online": True},
        "raw": {"value": int(head) if head.isdecimal() else 0, "string": raw},
        **parts,
    }


HEALTHY = (
    attribute(1, "Raw_Read_Error_Rate", "132489712", thresh=44, value=82),
    attribute(3, "Spin_Up_Time", "650 (Average 533)", thresh=24),
    attribute(5, "Reallocated_Sector_Ct"),
    attribute(194, "Temperature_Celsius", "33 (Min/Max 19/45)", value=33, thresh=0),
    attribute(197, "Current_Pending_Sector", thresh=0),
    attribute(198, "Offline_Uncorrectable", thresh=0),
    attribute(199, "UDMA_CRC_Error_Count", "3", thresh=0),
)


def ata(*changed: Mapping[str, Any], passed: bool | None = True, device: str = "/dev/sda", **parts: Any) -> str:
    """A SATA drive; attributes that are given replace the healthy ones of their number."""
    rows = {one["id"]: one for one in (*HEALTHY, *changed)}
    document = common(device, "ATA") | {
        **{"model_name": "ST4000NM0035-1V4107", "serial_number": "ZC1", "rotation_rate": 7200},
        "user_capacity": {"blocks": 7814037168, "bytes": 4000787030016},
        "ata_smart_attributes": {"revision": 10, "table": list(rows.values())},
        "power_on_time": {"hours": 31234},
        "temperature": {"current": 33},
        "ata_smart_error_log": {"summary": {"revision": 1, "count": 0}},
    }
    if passed is not None:
        document["smart_status"] = {"passed": passed}
    return json.dumps(document | parts)


def nvme(*, device: str = "/dev/nvme0n1", **log: Any) -> str:
    """An NVMe drive; ``log`` changes its health log."""
    warning = log.get("critical_warning", 0)
    health = {
        **{"critical_warning": 0, "temperature": 37, "available_spare": 100, "available_spare_threshold": 10},
        **{"percentage_used": 3, "data_units_read": 15794760, "data_units_written": 3861802, "host_reads": 97929810},
        **{"host_writes": 99025670, "controller_busy_time": 463, "power_cycles": 30, "power_on_hours": 12173},
        **{"unsafe_shutdowns": 15, "media_errors": 0, "num_err_log_entries": 0, "warning_temp_time": 0},
        **{"critical_comp_time": 0, "temperature_sensors": [37, 41]},
    } | log
    return json.dumps(
        common(device, "NVMe")
        | {
            **{"model_name": "INTEL SSDPE2KE016T7", "serial_number": "P1", "nvme_version": {"string": "1.2"}},
            "smart_status": {"passed": warning == 0, "nvme": {"value": warning}},
            "nvme_smart_health_information_log": health,
            "temperature": {"current": health["temperature"], "op_limit_max": 70, "critical_limit_max": 80},
            "power_on_time": {"hours": health["power_on_hours"]},
        }
    )


def scsi(*, defects: int = 0, uncorrected: int = 0, status: Mapping[str, Any] | None = None) -> str:
    """A SAS drive; ``status`` is the sense data of a health that is not OK."""
    counters = {"errors_corrected_by_eccfast": 0, "total_errors_corrected": 40247, "gigabytes_processed": "162438.759"}
    return json.dumps(
        common("/dev/sdb", "SCSI")
        | {
            **{"scsi_vendor": "HITACHI", "scsi_product": "H109060SESUN600G", "scsi_model_name": "HITACHI H1090"},
            "smart_status": {"passed": False, "scsi": dict(status)} if status else {"passed": True},
            **{"scsi_grown_defect_list": defects, "temperature": {"current": 26, "drive_trip": 85}},
            "scsi_error_counter_log": {
                "read": counters | {"total_uncorrected_errors": uncorrected},
                "write": counters | {"total_uncorrected_errors": 0},
                "verify": counters | {"total_uncorrected_errors": 0},
            },
        }
    )


FAILURE_PREDICTED = {"asc": 0x5D, "ascq": 0x10, "ie_string": "HARDWARE IMPENDING FAILURE GENERAL HARD DRIVE FAILURE"}
TOO_HOT = {"asc": 0x0B, "ascq": 0x01, "ie_string": "WARNING - SPECIFIED TEMPERATURE EXCEEDED"}


def error_recovery(tenths: int | None) -> Tree:
    """SCT ERC of both directions; None for a limit that is off."""
    one: Tree = {"enabled": False} if tenths is None else {"enabled": True, "deciseconds": tenths}
    return {"ata_sct_erc": {"read": one, "write": one}}


ASLEEP = json.dumps(common("/dev/sda", "ATA", messages=["Device is in STANDBY mode, exit(2)"], code=2))
BEHIND_A_CONTROLLER = json.dumps(
    common("/dev/sda", "", messages=["Smartctl open device: /dev/sda failed: DELL or MegaRaid controller"], code=2)
)
