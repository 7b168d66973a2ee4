"""What drives report of their own health: failing, worn, too hot, and slow to give a bad sector up."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import msgspec

from advisor.facts.block.block import Array, node_path
from advisor.facts.block.controller import Controller, ControllerDrive
from advisor.facts.block.controllers import array_name, drive_name
from advisor.facts.block.smart import DriveAttribute, DriveHealth
from advisor.rules import sources
from advisor.rules.queries import leading_count
from advisor.rules.rule import Decide, DeclaredWorkload, Evidence, Facts, Finding, Remedy, RunShell, rule

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
_LINK_ERRORS = 100
"""A plug that was pulled, or a loose one that was pushed home, leaves some; a bad cable leaves thousands."""
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


class _Drive(msgspec.Struct, frozen=True):
    """A drive by the name that its tool has for it, whether the kernel sees it or a controller stands before it."""

    name: str
    health: DriveHealth
    arrays: tuple[Array, ...]
    model: str | None
    serial: str | None
    members: tuple[str, ...]
    """The disk and its partitions; empty for a drive behind a controller."""
    look: str
    """The command that shows all that the drive reports."""


def _drives(facts: Facts) -> Iterator[_Drive]:
    """Every drive whose health is known, of any bus, and those behind controllers."""
    for disk in facts.disks:
        if disk.health is not None:
            own = (disk.name, *disk.partitions)
            held = tuple(one for one in facts.arrays if disk.name in one.disks or set(own).intersection(one.members))
            look = f"smartctl -a {shlex.quote(node_path(disk.name))}"
            yield _Drive(disk.name, disk.health, held, disk.model, disk.serial, own, look)
    for controller in facts.controllers:
        for one in controller.drives:
            names = {array_name(controller, volume) for volume in controller.volumes if volume.group == one.group}
            held = tuple(array for array in facts.arrays if one.group and array.name in names)
            look = _show_drive(controller, one)
            yield _Drive(drive_name(controller, one), one.health, held, one.model, one.serial, (), look)


def _show_drive(controller: Controller, drive: ControllerDrive) -> str:
    match controller.tool:
        case "storcli" | "storcli2":
            enclosure, _, slot = drive.name.rpartition(":")
            place = f"/c{controller.name}{f'/e{enclosure}' if enclosure.strip() else ''}/s{slot}"
            words = ["storcli64" if controller.tool == "storcli" else "storcli2", place, "show", "all"]
        case "tw_cli":
            words = ["tw_cli", f"/c{controller.name}/{drive.name}", "show", "all"]
        case "arcconf":
            words = ["arcconf", "getconfig", controller.name, "pd"]
        case _:
            words = ["ssacli", "ctrl", f"slot={controller.name}", "pd", drive.name, "show", "detail"]
    return shlex.join(words)


def _drive_evidence(drive: _Drive, said: tuple[str, ...]) -> Evidence:
    return {
        "disks": (drive.name,),
        "reports": said,
        "belongs_to": tuple(f"{one.name} ({one.level or 'level unknown'})" for one in drive.arrays),
        "model": drive.model,
        "serial": drive.serial,
        "power_on_hours": drive.health.power_on_hours,
    }


def _look(drive: _Drive) -> RunShell:
    return RunShell(drive.look, "see all that the drive reports")


def _replace_drive(drive: _Drive) -> Iterator[Remedy]:
    yield _look(drive)
    held = [one for one in drive.arrays if one.level not in _NO_REDUNDANCY]
    for one in held:
        if one.manager == "md":
            member = next((name for name in one.members if name in drive.members), drive.name)
            yield RunShell(f"mdadm --detail /dev/{shlex.quote(one.name)}", f"see whether {one.name} has all members")
            yield Decide(
                f"replace {drive.name} while {one.name} is whole: add the new drive, then "
                f"mdadm /dev/{one.name} --replace {node_path(member)} --with DEVICE"
            )
        else:
            yield Decide(f"replace {drive.name} while {one.name} has redundancy")
    if not held:
        yield Decide(f"copy what is on {drive.name} elsewhere before anything else, then replace the drive")


@rule(
    id="disks.failing",
    severity="critical",
    title="A drive reports that it is failing",
    what="smartctl as root: overall health, ATA pre-fail attributes at or below their threshold, pending and "
    "uncorrectable sectors, NVMe's critical warning, the health status of SCSI drives; of drives behind a RAID "
    "controller the state and predictions that its tool shows. A sleeping drive is not woken.",
    why="A drive knows best of its spare space and of sectors that it cannot read. In the field a drive with its first "
    "pending sector was 16 times as likely to fail within 60 days as one without.",
    helps_when="There is still redundancy, or time for a copy: replace the drive before it is gone.",
    hurts_when="A rebuild reads all other members: check that the array is whole and the backup good before the drive "
    "is removed. A pending sector vanishes when it is written again; one that stays alone for months is no failure.",
    sources=(sources.SMARTCTL, sources.NVME_HEALTH, sources.SPC_HEALTH, sources.DRIVE_FAILURES),
)
def failing(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for drive in _drives(facts):
        said = list_failures(drive.health)
        if said:
            yield failing.found(
                title=f"{drive.name} is failing: {said[0]}",
                why="The drive itself reports it. Data on it is lost, or will be, unless another copy exists.",
                evidence=_drive_evidence(drive, said),
                remedy=tuple(_replace_drive(drive)),
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
    for drive in _drives(facts):
        said = () if list_failures(drive.health) else _list_wear(drive.health)
        if said:
            yield worn.found(
                title=f"{drive.name} reports {said[0]}",
                why="It is no failure yet. A count that grows is the beginning of one.",
                evidence=_drive_evidence(drive, said),
                remedy=(_look(drive), "have a spare drive at hand, and replace it when the count grows"),
            )


@rule(
    id="disks.link-errors",
    severity="warning",
    title="Transfers to a drive are damaged on their way",
    what=f"{_LINK_ERRORS} and more CRC errors of ATA drives (attribute 199), invalid words of a drive's SAS port, "
    "errors that PCI Express corrected for an NVMe drive, other errors that a RAID controller counts.",
    why="The data is right on the drive and damaged between it and the controller; each transfer is repeated.",
    helps_when="The count grows while the drive works: the cable, the backplane or the port is bad.",
    hurts_when="The count is of an old cable: ATA drives never reset theirs. Note it, and look again.",
    sources=(sources.SMARTCTL, sources.PRACTICE),
)
def link_errors(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for drive in _drives(facts):
        count = drive.health.link_errors or 0
        if count >= _LINK_ERRORS:
            yield link_errors.found(
                title=f"{drive.name}: {_count(count, 'error')} between drive and controller",
                why="Each of them was noticed and repeated, which takes time; a link that gets worse drops the drive.",
                evidence=_drive_evidence(drive, (_count(count, "link error"),)),
                remedy=(
                    _look(drive),
                    "seat or replace the cable, then the drive's place in the backplane, and see whether the count "
                    "stands still",
                ),
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
    for drive in _drives(facts):
        health, name = drive.health, drive.name
        degrees, limit = health.temperature_celsius, health.temperature_limit_celsius
        if (health.critical_warning or 0) & _TOO_HOT or (degrees is not None and limit and degrees >= limit):
            hot[name] = f"{name}: {degrees if degrees is not None else 'unknown'} °C" + (
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
