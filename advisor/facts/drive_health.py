"""The health of drives: by smartctl as root, and what the kernel reports to anybody.

smartctl reads what the drive keeps anyway: no self-test, nothing that takes long, nothing is written. A drive that
sleeps is not woken: ``-n standby`` of smartctl, and no question at all to one that the kernel has powered down.
Temperatures of ``hwmon`` are read where that wakes nothing: of NVMe and of drives that do not turn (Linux
Documentation/hwmon/drivetemp: reading may reset the timer by which a drive spins down).
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence

import msgspec

from advisor.facts.block import node_path
from advisor.facts.disks import Disk
from advisor.facts.smartctl import DriveHealth, parse_smartctl
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing

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
