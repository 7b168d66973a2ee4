"""What a cloud says about its own limits: kinds ``ebs`` (volumes on Nitro) and ``allowance`` (ENA links).

EBS: the log page 0xD0 of a volume's NVMe controller adds up the microseconds in which the demand exceeded what the
volume, or the instance, is granted (Amazon EBS User Guide, EBS detailed performance statistics; the layout is that of
nvme-cli, plugins/amzn/amzn-nvme.c). ENA: ``*_allowance_exceeded`` of ``ethtool -S`` count packets that were queued or
dropped for the instance's limit (amzn-drivers, ENA_Linux_Best_Practices.rst).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from advisor.host import Host, Missing
from advisor.host.nvme_log import read_log_page
from advisor.observe.sample import LARGEST, Reading

LOG_PAGE = 0xD0
LOG_BYTES = 4096
MAGIC = 0x3C23B510
_HEAD = struct.Struct("<II11Q")
_FIELDS = (
    *("reads", "writes", "read_bytes", "write_bytes", "read_us", "write_us"),
    *("volume_iops_us", "volume_throughput_us", "instance_iops_us", "instance_throughput_us"),
)
_MODEL = "Amazon Elastic Block Store"
_ALLOWANCES = re.compile(r"^[ \t]*([a-z_]+_allowance_exceeded): ([0-9]{1,20})$", re.MULTILINE | re.ASCII)

ReadLog = Callable[[str, int, int], bytes | Missing]


def parse_ebs_log(data: bytes) -> tuple[dict[str, int], int] | None:
    """Counters of log page 0xD0 (times in microseconds) and the volume's queue; None for another page."""
    if len(data) < _HEAD.size:
        return None
    magic, _, *values = _HEAD.unpack_from(data)
    return (dict(zip(_FIELDS, values[:-1], strict=True)), values[-1]) if magic == MAGIC else None


def parse_allowances(text: str) -> dict[str, int]:
    """``ethtool -S``: how many packets each allowance of the instance held up (bw_in, bw_out, pps, conntrack …)."""
    return {name: int(count) for name, count in _ALLOWANCES.findall(text) if int(count) <= LARGEST}


def read_volumes(host: Host, reading: Reading, read_log: ReadLog = read_log_page) -> None:
    """EBS volumes of the running machine by their disk's name; as root."""
    reading.ask("ebs")
    for name in host.names("/sys/block"):
        controller = re.fullmatch(r"(nvme[0-9]+)n[0-9]+", name)
        model = host.read(f"/sys/block/{name}/device/model") if controller else ""
        if controller is None or isinstance(model, Missing) or model.strip() != _MODEL:
            continue
        if not host.is_live:
            reading.note_missing(f"ebs {name}", "log pages are read on the running host alone")
            continue
        data = read_log(controller[1], LOG_PAGE, LOG_BYTES)
        found = None if isinstance(data, Missing) else parse_ebs_log(data)
        if found is None:
            why = data.why if isinstance(data, Missing) else "no statistics of an EBS volume"
            reading.note_missing(f"ebs {name}", f"{why}; root reads them on Nitro instances")
        else:
            reading.add("ebs", name, found[0], {"queue": found[1]})


def read_allowances(host: Host, reading: Reading) -> None:
    """Links of the driver ``ena``."""
    reading.ask("allowance")
    for name in host.names("/sys/class/net"):
        driver = host.readlink(f"/sys/class/net/{name}/device/driver")
        if isinstance(driver, Missing) or driver.rpartition("/")[2] != "ena":
            continue
        done = host.run(("ethtool", "-S", name))
        if isinstance(done, Missing) or not done.ok:
            why = done.why if isinstance(done, Missing) else f"ethtool: {done.stderr.strip()[:200]}"
            reading.note_missing(f"allowance {name}", why)
        else:
            reading.add("allowance", name, parse_allowances(done.stdout))
