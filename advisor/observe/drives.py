"""What NVMe drives say about their own health, by log page 0x02: kind ``smart``, by controller.

Source: NVM Express Base Specification, SMART / Health Information; laid out as struct nvme_smart_log of libnvme
(src/nvme/types.h), which nvme-cli prints.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from advisor.host import Host, Missing
from advisor.host.nvme_log import read_log_page
from advisor.observe.sample import LARGEST, Reading

LOG_PAGE = 0x02
LOG_BYTES = 512
_HEAD = struct.Struct("<BHBBB")
_MEDIA_ERRORS = slice(160, 176)
_TIMES_AT = 192
_THROTTLE_AT = 216
_KELVIN = 273

ReadLog = Callable[[str, int, int], bytes | Missing]


def parse_smart_log(data: bytes) -> tuple[dict[str, int], dict[str, float]] | None:
    """Counters and levels of log page 0x02; None for a page that is too short or all zero.

    ``critical_warning`` is its bits, temperatures are in °C; the times above the drive's warning and critical
    temperature are in minutes, those of its thermal management (light and heavy) in seconds.
    """
    if len(data) < LOG_BYTES or not any(data[:LOG_BYTES]):
        return None
    warning, kelvin, spare, threshold, used = _HEAD.unpack_from(data)
    warm, hot = struct.unpack_from("<II", data, _TIMES_AT)
    light, heavy, light_s, heavy_s = struct.unpack_from("<IIII", data, _THROTTLE_AT)
    counters = {
        "media_errors": min(int.from_bytes(data[_MEDIA_ERRORS], "little"), LARGEST),
        "warning_temperature_minutes": warm,
        "critical_temperature_minutes": hot,
        "light_throttles": light,
        "heavy_throttles": heavy,
        "light_throttled_s": light_s,
        "heavy_throttled_s": heavy_s,
    }
    levels: dict[str, float] = {
        "critical_warning": warning,
        "spare_percent": spare,
        "spare_threshold_percent": threshold,
    }
    levels |= {"used_percent": used} | ({"temperature_celsius": kelvin - _KELVIN} if kelvin else {})
    return counters, levels


def read_drives(host: Host, reading: Reading, read_log: ReadLog = read_log_page) -> None:
    """Local NVMe controllers of the running machine; as root. A controller over a network has no drive of its own."""
    reading.ask("smart")
    for name in host.names("/sys/class/nvme"):
        if not re.fullmatch(r"nvme[0-9]+", name) or host.read(f"/sys/class/nvme/{name}/transport") in _FABRICS:
            continue
        if not host.is_live:
            reading.note_missing("smart", "log pages are read on the running host alone")
            return
        data = read_log(name, LOG_PAGE, LOG_BYTES)
        found = None if isinstance(data, Missing) else parse_smart_log(data)
        if found is not None:
            reading.add("smart", name, *found)
        elif isinstance(data, Missing) and not host.is_root:
            reading.note_missing("smart", f"{data.why}; root reads log pages")
            return
        elif isinstance(data, Missing):
            reading.note_missing(f"smart {name}", data)
        else:
            reading.note_missing(f"smart {name}", "no health log")


_FABRICS = frozenset({"tcp", "rdma", "fc", "loop"})
