"""The health of drives: by smartctl as root, and what the kernel reports to anybody.

smartctl reads what the drive keeps anyway: no self-test, nothing that takes long, nothing is written. A drive that
sleeps is not woken: ``-n standby`` of smartctl, and no question at all to one that the kernel has powered down.
Temperatures of ``hwmon`` are read where that wakes nothing: of NVMe and of drives that do not turn (Linux
Documentation/hwmon/drivetemp: reading may reset the timer by which a drive spins down).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from advisor.facts.block import node_path
from advisor.facts.disks import Disk
from advisor.facts.smartctl import DriveHealth, parse_smartctl
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing

SMARTCTL = (
    *("smartctl", "--json=c", "--nocheck=standby", "--info", "--health", "--attributes"),
    *("--log=error", "--log=scterc"),
)
"""Health, attributes, error counters and the recovery limit; before the name of the device."""
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
    if host.is_root:
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
    return tuple(_with_temperature(host, disk, found.get(disk.name)) for disk in disks)


def _ask_drive(host: Host, disk: Disk, deadline: float) -> DriveHealth | str | Missing:
    """`Missing` where smartctl is not there; a text for any other reason."""
    if host.read(f"/sys/block/{disk.name}/device/power/runtime_status") == "suspended":
        return _ASLEEP
    if host.is_live and time.monotonic() > deadline:
        return f"not asked within {ALL_SECONDS:g} s"
    done = host.run((*SMARTCTL, node_path(disk.name)), timeout=SECONDS)
    if isinstance(done, Missing):
        return done if done.is_absent else done.why
    if done.rc & 2 and "STANDBY" in done.stdout.upper():
        return _ASLEEP
    return parse_smartctl(done.stdout)


def _with_temperature(host: Host, disk: Disk, found: DriveHealth | str | None) -> Disk:
    health = found if isinstance(found, DriveHealth) else None
    if has_own_health(disk) and not disk.paths and (health is None or health.temperature_celsius is None):
        degrees = _read_hwmon(host, disk)
        if degrees is not None:
            health = msgspec.structs.replace(health or DriveHealth(), temperature_celsius=degrees)
    return disk if health is None else msgspec.structs.replace(disk, health=health)


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
