"""What drives report of their own health: failing, worn, too hot, and slow to give a bad sector up."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from advisor.facts.array import Array
from advisor.facts.block import node_path
from advisor.facts.disks import Disk
from advisor.facts.smartctl import DriveAttribute, DriveHealth
from advisor.rules import sources
from advisor.rules.queries import leading_count
from advisor.rules.remedy import Decide, Remedy, RunShell
from advisor.rules.rule import DeclaredWorkload, Evidence, Facts, Finding, rule

ORDER = 119

_NVME_BITS = (
    (0x01, "spare space is below its threshold"),
    (0x04, "reliability is degraded by media or internal errors"),
    (0x08, "the media is read-only"),
    (0x10, "the backup of its volatile memory has failed"),
    (0x20, "its persistent memory region is unreliable"),
)
_TOO_HOT = 0x02
_NO_REDUNDANCY = frozenset({"raid0", "linear", "striped", None})
_KERNEL_SECONDS = 30.0
"""The time that the kernel gives a command of a SCSI disk by default (block/SD_TIMEOUT)."""
_USUAL_LIMIT = 70
"""Tenths of a second: what drives made for arrays have by default."""
_MOST_PATIENCE = 180.0
"""Seconds that are enough for any drive, as the RAID wiki of the kernel has it."""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _attribute_text(one: DriveAttribute) -> str:
    return f"{one.name} is {one.value}, threshold {one.threshold}" + ("" if one.failed == "now" else ", in the past")


def list_failures(health: DriveHealth) -> tuple[str, ...]:
    """Why a drive is failing, in its own words; none where it is not, or does not know."""
    found = [text for bit, text in _NVME_BITS if (health.critical_warning or 0) & bit]
    # NVMe's overall health is that byte, and failed for a temperature too.
    if health.passed is False and health.critical_warning is None and not health.is_only_warning:
        found.append(f"overall health: {health.status or 'FAILED'}")
    found += [_attribute_text(one) for one in health.failed_attributes if one.is_prefail and one.failed == "now"]
    if health.pending_sectors:
        found.append(_count(health.pending_sectors, "pending sector") + " that cannot be read now")
    if health.uncorrectable_sectors:
        found.append(_count(health.uncorrectable_sectors, "uncorrectable sector"))
    return tuple(found)


def _list_wear(health: DriveHealth) -> tuple[str, ...]:
    """What is no failure yet, and a reason to have a new drive at hand."""
    found = [_attribute_text(one) for one in health.failed_attributes if not (one.is_prefail and one.failed == "now")]
    if health.status and health.is_only_warning:
        found.append(f"health status: {health.status}")
    if (health.percentage_used or 0) >= 100:
        found.append(f"{health.percentage_used} % of its endurance is used")
    counts = (
        (health.reallocated_sectors, "reallocated sector"),
        (health.media_errors, "media error"),
        (health.grown_defects, "grown defect"),
        (health.uncorrected_errors, "uncorrected error"),
    )
    return (*found, *(_count(number, noun) for number, noun in counts if number))


def _arrays_of(facts: Facts, disk: Disk) -> tuple[Array, ...]:
    own = {disk.name, *disk.partitions}
    return tuple(one for one in facts.arrays if disk.name in one.disks or own.intersection(one.members))


def _drive_evidence(facts: Facts, disk: Disk, said: tuple[str, ...]) -> Evidence:
    return {
        "disks": (disk.name,),
        "reports": said,
        "belongs_to": tuple(f"{one.name} ({one.level or 'level unknown'})" for one in _arrays_of(facts, disk)),
        "model": disk.model,
        "serial": disk.serial,
        "power_on_hours": disk.health.power_on_hours if disk.health else None,
    }


def _look(disk: Disk) -> RunShell:
    return RunShell(f"smartctl -a {shlex.quote(node_path(disk.name))}", "see all that the drive reports")


def _replace_drive(facts: Facts, disk: Disk) -> Iterator[Remedy]:
    arrays = _arrays_of(facts, disk)
    yield _look(disk)
    held = [one for one in arrays if one.level not in _NO_REDUNDANCY]
    for one in held:
        if one.manager == "md":
            member = next((name for name in one.members if name in (disk.name, *disk.partitions)), disk.name)
            yield RunShell(f"mdadm --detail /dev/{shlex.quote(one.name)}", f"see whether {one.name} has all members")
            yield Decide(
                f"replace {disk.name} while {one.name} is whole: add the new drive, then "
                f"mdadm /dev/{one.name} --replace {node_path(member)} --with DEVICE"
            )
        else:
            yield Decide(f"replace {disk.name} while {one.name} has redundancy")
    if not held:
        yield Decide(f"copy what is on {disk.name} elsewhere before anything else, then replace the drive")


@rule(
    id="disks.failing",
    severity="critical",
    title="A drive reports that it is failing",
    what="smartctl as root: overall health, ATA pre-fail attributes at or below their threshold, pending and "
    "uncorrectable sectors, NVMe's critical warning, the health status of SCSI drives. A sleeping drive is not woken.",
    why="A drive knows best of its spare space and of sectors that it cannot read. In the field a drive with its first "
    "pending sector was 16 times as likely to fail within 60 days as one without.",
    helps_when="There is still redundancy, or time for a copy: replace the drive before it is gone.",
    hurts_when="A rebuild reads all other members: check that the array is whole and the backup good before the drive "
    "is removed. A pending sector vanishes when it is written again; one that stays alone for months is no failure.",
    sources=(sources.SMARTCTL, sources.NVME_HEALTH, sources.SPC_HEALTH, sources.DRIVE_FAILURES),
)
def failing(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for disk in facts.disks:
        said = list_failures(disk.health) if disk.health else ()
        if said:
            yield failing.found(
                title=f"{disk.name} is failing: {said[0]}",
                why="The drive itself reports it. Data on it is lost, or will be, unless another copy exists.",
                evidence=_drive_evidence(facts, disk, said),
                remedy=tuple(_replace_drive(facts, disk)),
            )


@rule(
    id="disks.worn",
    severity="warning",
    title="A drive reports wear or errors of the past",
    what="smartctl as root: reallocated sectors, grown defects, media errors, errors that SCSI drives could not "
    "correct, endurance that is used up, attributes below their threshold that are no pre-fail ones, or were.",
    why="In the field a drive was 14 times as likely to fail within 60 days of its first reallocation. Endurance of "
    "100 % is what the vendor promised, not where the drive ends. The counts are since the drive was made.",
    helps_when="The count grows from scan to scan (advisor scan --since): plan the replacement.",
    hurts_when="A count that has stood still for years says little; drives with some reallocated sectors run on. A "
    "drive of old stock may show errors that a bad cable or a power cut made.",
    sources=(sources.SMARTCTL, sources.NVME_HEALTH, sources.SPC_HEALTH, sources.DRIVE_FAILURES),
)
def worn(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for disk in facts.disks:
        said = _list_wear(disk.health) if disk.health and not list_failures(disk.health) else ()
        if said:
            yield worn.found(
                title=f"{disk.name} reports {said[0]}",
                why="It is no failure yet. A count that grows is the beginning of one.",
                evidence=_drive_evidence(facts, disk, said),
                remedy=(_look(disk), "have a spare drive at hand, and replace it when the count grows"),
            )


@rule(
    id="disks.too-hot",
    severity="warning",
    title="A drive is too hot",
    what="Bit 1 of NVMe's critical warning, and a temperature at or above the limit that the drive reports.",
    why="Above its limit a drive throttles itself, then shuts down; heat is also what wears electronics out.",
    helps_when="Always: a fan, an air path or a neighbour in the chassis.",
    hurts_when="Measured in the minutes after a cooling failure that is known and being repaired.",
    sources=(sources.SMARTCTL, sources.NVME_HEALTH),
)
def too_hot(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    hot = {}
    for disk in facts.disks:
        health = disk.health or DriveHealth()
        degrees, limit = health.temperature_celsius, health.temperature_limit_celsius
        if (health.critical_warning or 0) & _TOO_HOT or (degrees is not None and limit and degrees >= limit):
            hot[disk.name] = f"{disk.name}: {degrees if degrees is not None else 'unknown'} °C" + (
                f", limit {limit} °C" if limit else ""
            )
    if not hot:
        return None
    return too_hot.found(
        why="The drive is outside of the temperatures that it was made for. Do not measure or prove anything now.",
        evidence={"disks": tuple(hot), "detail": tuple(hot.values())},
        remedy="check fans, air filters and the temperature of the room",
    )


@rule(
    id="disks.error-recovery",
    severity="advice",
    title="Drive error recovery outlasts kernel timeouts",
    what="SCT ERC of ATA drives in md arrays with redundancy (smartctl as root), against io_timeout of their queue.",
    why="A desktop drive may try for minutes. After its time limit the kernel resets the drive and md drops it from "
    "the array, for a single bad sector that the other members could have given at once.",
    helps_when="Drives without a limit in arrays with redundancy.",
    hurts_when="The array has no redundancy left: then the drive's own attempts are the only hope. scterc is "
    "forgotten when the drive loses power; a longer timeout makes programs wait that long.",
    sources=(sources.SMARTCTL, sources.MD_TIMEOUTS, sources.BLOCK_SYSFS),
)
def error_recovery(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    slow: dict[str, str] = {}
    members = {
        name for one in facts.arrays if one.manager == "md" and one.level not in _NO_REDUNDANCY for name in one.disks
    }
    for disk in facts.disks:
        limit = disk.health.read_limit_seconds if disk.health else None
        milliseconds = leading_count(disk.queue.get("io_timeout"))
        patience = _KERNEL_SECONDS if milliseconds is None else milliseconds / 1000
        if (
            disk.name in members
            and limit is not None
            and (limit >= patience or (limit == 0 and patience < _MOST_PATIENCE))
        ):
            slow[disk.name] = f"{disk.name}: {f'{limit:g} s' if limit else 'no limit'}, the kernel waits {patience:g} s"
    if not slow:
        return None
    return error_recovery.found(
        why="One unreadable sector may cost the array this drive, where a limit of 7 s would only cost a read of the "
        "other members.",
        evidence={"disks": tuple(slow), "detail": tuple(slow.values())},
        remedy=(
            *(
                RunShell(
                    f"smartctl -l scterc,{_USUAL_LIMIT},{_USUAL_LIMIT} {shlex.quote(node_path(name))}",
                    f"limit recovery to {_USUAL_LIMIT / 10:g} s until the drive loses power",
                )
                for name in slow
            ),
            "where the drive refuses that, raise the time that the kernel waits (io_timeout) to 180 s",
        ),
    )
