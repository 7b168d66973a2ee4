"""The health of drives: by smartctl as root, and what the kernel reports to anybody.

smartctl reads what the drive keeps anyway: no self-test, nothing that takes long, nothing is written. A drive that
sleeps is not woken: ``-n standby`` of smartctl, and no question at all to one that the kernel has powered down.
Temperatures of ``hwmon`` are read where that wakes nothing: of NVMe and of drives that do not turn (Linux
Documentation/hwmon/drivetemp: reading may reset the timer by which a drive spins down).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from advisor.facts.block.block import node_path
from advisor.facts.block.disks import Disk
from advisor.facts.block.smart import DriveHealth, parse_smartctl
from advisor.facts.network.links import Link
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing
from advisor.host.trace_instance import identify_namespace

_SMARTCTL_WITHOUT_WEAR = (
    *("smartctl", "--json=c", "--nocheck=standby", "--info", "--health", "--attributes"),
    *("--log=error", "--log=scterc"),
)
"""As captures of earlier releases have it."""
SMARTCTL = (*_SMARTCTL_WITHOUT_WEAR, "--log=ssd")
"""Health, attributes, error counters, the recovery limit and the wear of flash; before the name of the device."""
SECONDS = 10.0
"""For one drive; a healthy one answers in a tenth of a second."""
ALL_SECONDS = 30.0
"""For all: what has not been asked by then stays unknown."""
AT_ONCE = 16
_ASLEEP = "the drive sleeps and is not woken"


def has_own_health(disk: Disk) -> bool:
    """Whether it may be a drive of this machine, which keeps health data: no LUN of an array elsewhere."""
    return disk.kind in ("nvme", "scsi") and disk.detail.get("transport") not in {"iscsi", "fc", "virtio", "vmbus"}


def with_health(host: Host, disks: Sequence[Disk], unknown: Unknowns) -> tuple[Disk, ...]:
    """The disks with their health; why it could not be had is noted, once where it is the same for all.

    As an ordinary user temperatures alone. Takes `ALL_SECONDS` at most, and one `SECONDS` more.
    """
    wanted = [disk for disk in disks if has_own_health(disk)]
    if not wanted:
        return tuple(disks)
    found: dict[str, DriveHealth | str]
    if host.is_root is not False:
        first = _ask_drive(host, wanted[0], time.monotonic() + ALL_SECONDS)
        if isinstance(first, Missing):
            found = {disk.name: first.why for disk in wanted}
        else:
            found = {wanted[0].name: first}
            deadline = time.monotonic() + ALL_SECONDS
            if not host.is_live:
                # Recorded answers, which are counted one after the other.
                answers = [_ask_drive(host, disk, deadline) for disk in wanted[1:]]
            else:
                from concurrent.futures import ThreadPoolExecutor

                with ThreadPoolExecutor(AT_ONCE) as pool:
                    answers = list(pool.map(lambda disk: _ask_drive(host, disk, deadline), wanted[1:]))
            named = zip(wanted[1:], answers, strict=True)
            found = found | {disk.name: one.why if isinstance(one, Missing) else one for disk, one in named}
    else:
        found = {disk.name: "smartctl needs root to read the drive's health" for disk in wanted}
    reasons = {one for one in found.values() if isinstance(one, str)}
    if len(reasons) == 1 and not any(isinstance(one, DriveHealth) for one in found.values()):
        unknown.note("disks.health", reasons.pop())
    else:
        for name, one in found.items():
            if isinstance(one, str):
                unknown.note(f"disks.{name}.health", one)
    ports = _count_port_errors(host)
    return tuple(_with_sysfs(host, disk, found.get(disk.name), ports) for disk in disks)


def _ask_drive(host: Host, disk: Disk, deadline: float) -> DriveHealth | str | Missing:
    """`Missing` where smartctl is not there; a text for any other reason."""
    if host.read(f"/sys/block/{disk.name}/device/power/runtime_status") == "suspended":
        return _ASLEEP
    if host.is_live and time.monotonic() > deadline:
        return f"not asked within {ALL_SECONDS:g} s"
    done = host.run((*SMARTCTL, node_path(disk.name)), timeout=SECONDS)
    if isinstance(done, Missing) and done.is_absent and not host.is_live:
        done = host.run((*_SMARTCTL_WITHOUT_WEAR, node_path(disk.name)), timeout=SECONDS)
    if isinstance(done, Missing):
        return done if done.is_absent else done.why
    if done.rc & 2 and "STANDBY" in done.stdout.upper():
        return _ASLEEP
    return parse_smartctl(done.stdout)


def _count_port_errors(host: Host) -> Mapping[str, int]:
    """Invalid words that the controllers' ends of SAS cables have counted, by port (scsi_transport_sas.c)."""
    errors: dict[str, int] = {}
    for name in host.names("/sys/class/sas_phy"):
        port = host.readlink(f"/sys/class/sas_phy/{name}/device/port")
        count = host.read_int(f"/sys/class/sas_phy/{name}/invalid_dword_count")
        if isinstance(port, str) and isinstance(count, int):
            errors[port.rpartition("/")[2]] = errors.get(port.rpartition("/")[2], 0) + count
    return errors


def _with_sysfs(host: Host, disk: Disk, found: DriveHealth | str | None, ports: Mapping[str, int]) -> Disk:
    """The disk with its health, and where smartctl does not give them, temperature and link errors by the kernel."""
    health = found if isinstance(found, DriveHealth) else DriveHealth()
    if has_own_health(disk) and not disk.paths:
        if health.temperature_celsius is None:
            health = msgspec.structs.replace(health, temperature_celsius=_read_hwmon(host, disk))
        if health.link_errors is None:
            health = msgspec.structs.replace(health, link_errors=_read_link_errors(host, disk, ports))
    return disk if health == DriveHealth() else msgspec.structs.replace(disk, health=health)


def _read_link_errors(host: Host, disk: Disk, ports: Mapping[str, int]) -> int | None:
    """Errors of the drive's link since the last boot: those that PCI Express corrected
    (Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats), or those of its SAS port; None without counters."""
    if disk.kind == "nvme":
        text = host.read(f"/sys/bus/pci/devices/{disk.pci}/aer_dev_correctable") if disk.pci else ""
        total = re.search(r"^TOTAL_ERR_COR ([0-9]{1,18})$", text, re.MULTILINE) if isinstance(text, str) else None
        return int(total[1]) if total else None
    link = host.readlink(f"/sys/block/{disk.name}") if ports else ""
    port = re.search(r"/(port-[0-9:]+)/end_device-", link) if isinstance(link, str) else None
    return ports.get(port[1]) if port else None


def _read_hwmon(host: Host, disk: Disk) -> int | None:
    """Degrees Celsius by the first sensor of the drive; None where there is none, or reading it keeps a drive awake."""
    if disk.kind != "nvme" and disk.rotational is not False:
        return None
    place = f"/sys/block/{disk.name}/device"
    # That of a SCSI disk is below hwmon, that of an NVMe controller among its attributes.
    sensors = [f"{place}/hwmon/{one}" for one in host.names(f"{place}/hwmon")]
    sensors += [f"{place}/{one}" for one in host.names(place) if one.startswith("hwmon") and one != "hwmon"]
    for sensor in sensors:
        thousandths = host.read_int(f"{sensor}/temp1_input")
        if not isinstance(thousandths, Missing) and -60_000 < thousandths < 200_000:
            return thousandths // 1000
    return None


# Settings that lie in the firmware of drives and adapters, asked only along with the health of drives.

_FORMATS_AT = 128
_CURRENT_AT = 26
_MOST_FORMATS = 64
_ORDERING = "PCI_WR_ORDERING"
_WORDS = ("best", "better", "good", "degraded")
"""Relative performance 0 to 3."""

Identify = Callable[[str], bytes | Missing]


class LbaFormat(msgspec.Struct, frozen=True):
    """``performance`` is relative to the drive's other formats: 0 is the best, 3 the worst."""

    data_bytes: int
    metadata_bytes: int
    performance: int

    @property
    def text(self) -> str:
        more = f" + {self.metadata_bytes}" if self.metadata_bytes else ""
        return f"{self.data_bytes}{more} bytes ({_WORDS[self.performance]})"


def parse_identify_namespace(data: bytes) -> tuple[LbaFormat, tuple[LbaFormat, ...]] | None:
    """The format in use, and all that the namespace supports; None for what is no such answer."""
    if len(data) < 4096:
        return None
    count = min(data[25] + 1, _MOST_FORMATS)
    formats = []
    for at in range(_FORMATS_AT, _FORMATS_AT + 4 * count, 4):
        metadata, shift, performance = int.from_bytes(data[at : at + 2], "little"), data[at + 2], data[at + 3] & 3
        formats.append(LbaFormat(1 << shift if 9 <= shift <= 20 else 0, metadata, performance))
    used = data[_CURRENT_AT] & 0xF | (data[_CURRENT_AT] & 0x60) >> 1
    if used >= len(formats) or not formats[used].data_bytes:
        return None
    return formats[used], tuple(one for one in formats if one.data_bytes)


def parse_write_ordering(text: str) -> str | None:
    """``per_mkey(0)`` or ``force_relax(1)`` in what ``mlxconfig query`` prints; the last column is that in use."""
    found = re.search(rf"^[^\w\n]{{0,40}}{_ORDERING}[ \t]{{1,80}}(\S.{{0,200}})$", text, re.MULTILINE | re.ASCII)
    words = re.findall(r"[a-z_]{1,40}\([0-9]{1,4}\)", found[1], re.ASCII) if found else []
    return words[-1] if words else None


def with_formats(host: Host, disks: Sequence[Disk], identify: Identify = identify_namespace) -> tuple[Disk, ...]:
    """The disks, those of local NVMe drives with their format and the best one; on the running host, as root."""
    return tuple(_with_format(disk, identify) if _has_formats(host, disk) else disk for disk in disks)


def _has_formats(host: Host, disk: Disk) -> bool:
    return host.is_live and host.is_root is True and disk.kind == "nvme" and disk.pci is not None and not disk.paths


def _with_format(disk: Disk, identify: Identify) -> Disk:
    data = identify(disk.name)
    found = None if isinstance(data, Missing) else parse_identify_namespace(data)
    if found is None:
        return disk
    used, every = found
    # Only formats that hold as much metadata can take the place of this one.
    alike = [one for one in every if one.metadata_bytes == used.metadata_bytes]
    best = min(alike, key=lambda one: one.performance, default=used)
    detail = {"lba_format": used.text}
    if best.performance < used.performance:
        detail["better_lba_format"] = best.text
    return msgspec.structs.replace(disk, detail={**disk.detail, **detail})


def with_write_ordering(host: Host, links: Sequence[Link]) -> tuple[Link, ...]:
    """The links, those of mlx5 with the write ordering of their adapter, where ``mlxconfig`` is installed."""
    found: list[Link] = []
    known: dict[str, str | None] = {}
    for link in links:
        if link.driver == "mlx5_core" and link.pci and link.detail.get("rdma_device") and None not in known.values():
            if link.pci not in known:
                done = host.run(("mlxconfig", "-d", link.pci, "query", _ORDERING), timeout=5.0)
                known[link.pci] = None if isinstance(done, Missing) else parse_write_ordering(done.stdout)
            if (ordering := known[link.pci]) is not None:
                found.append(msgspec.structs.replace(link, detail={**link.detail, "pci_write_ordering": ordering}))
                continue
        found.append(link)
    return tuple(found)
