"""What tw_cli prints of 3ware controllers: ``show`` (the controllers) and ``/cN show`` (units, drives, battery).
``/cN/uM show all`` has a unit's serial number.

3ware SAS/SATA RAID CLI Guide, chapters "show", "/cx show" and "/cx/ux show". Lines that do not fit are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from advisor.facts.block.block import natural
from advisor.facts.block.controller import (
    MAX_CONTROLLERS,
    MAX_TEXT,
    MAX_VOLUMES,
    CacheProtection,
    Controller,
    ControllerDrive,
    ControllerVolume,
    WritePolicy,
    level_of,
    losses_of,
    make_drive,
    size_bytes,
)
from advisor.facts.block.disks import Disk
from advisor.facts.text import printable
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, lazy_regex
from advisor.host.numbers import is_count

_STATES = {
    "OK": "active",
    "VERIFYING": "checking",
    "VERIFY-PAUSED": "active",
    "INITIALIZING": "resyncing",
    "INIT-PAUSED": "resyncing",
    "REBUILDING": "recovering",
    "REBUILD-PAUSED": "degraded",
    "DEGRADED": "degraded",
    "MIGRATING": "reshaping",
    "MIGRATE-PAUSED": "reshaping",
    "RECOVERY": "recovering",
    "INOPERABLE": "failed",
}


# Of drives: one that predicts its failure, or has errors of its own, serves on.
_DRIVE_SERVES = frozenset({"OK", "VERIFYING", "SMART-FAILURE", "ECC-ERROR", "DCB-DATA-ERROR", "DRIVE-ERR"})


def parse_tw_cli_controllers(text: str) -> tuple[tuple[str, str | None], ...]:
    """Number and model of each controller in ``tw_cli show``: ``c0  9650SE-8LPML  8  8  1 …``; no model where an old
    card shows none."""
    found = (re.match(r"c(\d{1,3})\s+(\S+)\s", line, re.ASCII) for line in text.splitlines())
    models = ((one[1], printable(one[2][:MAX_TEXT])) for one in found if one)
    return tuple((number, None if is_count(model) else model) for number, model in models)[:MAX_CONTROLLERS]


def parse_tw_cli_units(text: str) -> tuple[tuple[ControllerVolume, ...], bool | None, CacheProtection | None]:
    """Units, whether there is a battery, and the battery, in ``tw_cli /cN show``.

    A table of units without a line of a battery means that there is none. Its columns are those of its head: releases
    before 9.4 have others.
    """
    rows = [line.split() for line in text.splitlines()[:4096]]
    head = next((row for row in rows if row[:2] == ["Unit", "UnitType"]), None)
    units = [row for row in rows if re.fullmatch(r"u\d{1,4}", row[0] if row else "", re.ASCII)][:MAX_VOLUMES]
    ports = [row for row in rows if len(row) > 4 and re.fullmatch(r"p\d{1,4}", row[0], re.ASCII)]
    batteries = [row for row in rows if len(row) > 4 and re.fullmatch(r"bbu\d?", row[0], re.ASCII)]
    listed = [dict(zip(head, row, strict=True)) for row in units if head and len(row) == len(head)]
    volumes = tuple(_parse_volume(row, ports) for row in listed if row["UnitType"] not in {"SPARE", "SINGLE", "JBOD"})
    protection = _parse_battery(batteries[0]) if batteries else None
    return volumes, True if protection else False if head else None, protection


def parse_tw_cli_serial(text: str) -> str | None:
    """The unit's serial number in ``tw_cli /cN/uM show all``; None where it has none or an empty one."""
    found = re.search(r"^/c\d{1,3}/u\d{1,4} serial number = (\S{1,64})[ \t\r]*$", text, re.MULTILINE | re.ASCII)
    return None if found is None or found[1] in ("-", "N/A") else printable(found[1])


def parse_tw_cli_drives(text: str) -> tuple[ControllerDrive, ...]:
    """Drives in ``tw_cli /cN show``: ``p3  SMART-FAILURE  u0  1.82 TB …``. Places without a drive are left out."""
    rows = [line.split() for line in text.splitlines()[:4096]]
    return tuple(
        make_drive(
            row[0],
            printable(row[1][:MAX_TEXT]),
            is_lost=row[1] not in _DRIVE_SERVES,
            is_failing=row[1] not in {"OK", "REBUILDING", "VERIFYING"},
            group=row[2] if row[2].startswith("u") else None,
        )
        for row in rows
        if len(row) > 4 and re.fullmatch(r"p\d{1,4}", row[0], re.ASCII) and row[1] != "NOT-PRESENT"
    )


def controller_of(
    number: str,
    model: str | None,
    found: tuple[tuple[ControllerVolume, ...], bool | None, CacheProtection | None],
    drives: tuple[ControllerDrive, ...] = (),
) -> Controller:
    """The record of one controller."""
    volumes, has_protection, protection = found
    return Controller(number, "tw_cli", model, None, volumes, has_protection, protection, drives=drives)


def _parse_volume(row: Mapping[str, str], ports: list[list[str]]) -> ControllerVolume:
    """``u0 RAID-10 OK - - 256K 7450.56 RiW ON``: name, type, status, …, stripe, size in GiB, cache, verify.

    Of drives it prints the bus, which does not show whether they rotate.
    """
    own = [port for port in ports if port[2] == row["Unit"]]
    kind, status, cache = row["UnitType"], row.get("Status", ""), row.get("Cache", "")
    # The size of a unit: its GB are of 2^30 bytes, as a drive of 2 TB is 1863 of them.
    text = row.get("Size(GB)", "")
    level, state = level_of(kind) if kind.startswith("RAID") else None, _STATES.get(status)
    lost = sum(port[1] not in _DRIVE_SERVES for port in own)
    missing = lost or (0 if state == "active" else None)
    return ControllerVolume(
        name=row["Unit"],
        level=level,
        state=state,
        group=row["Unit"],
        missing=missing,
        survives=losses_of(level, len(own) or None, missing),
        status=printable(status[:MAX_TEXT]),
        write_policy=_parse_policy(cache),
        cache=printable(cache[:MAX_TEXT]),
        chunk_bytes=size_bytes(row.get("Stripe", "")),
        drives=len(own) or None,
        size_bytes=round(float(text) * (1 << 30)) if re.fullmatch(r"\d{1,8}(?:\.\d{1,6})?", text, re.ASCII) else None,
    )


def _parse_policy(word: str) -> WritePolicy | None:
    """``W`` stands for the write cache, ``Ri`` and ``Rb`` for the read cache; older firmware prints ON and OFF."""
    if word == "ON" or re.fullmatch(r"(?:R[ib])?W", word):
        return "write-back"
    return "write-through" if word == "OFF" or re.fullmatch(r"R[ib]", word) else None


def _parse_battery(row: list[str]) -> CacheProtection:
    """``bbu On Yes OK …``: name, online, ready, status. Not ready, it keeps nothing."""
    ready, status = row[2], printable(row[3][:MAX_TEXT])
    healthy = True if (ready, status) == ("Yes", "OK") else False if ready == "No" else None
    if healthy is None and re.search(r"fail|weak|fault|error|charging|testing", status, re.IGNORECASE):
        healthy = False
    return CacheProtection(
        "battery", status if ready == "Yes" else f"{status}, ready: {printable(ready[:20])}", healthy
    )


# Which disks of the kernel the units of 3ware controllers are.

_ADDRESS = lazy_regex(r"/(\d{1,5}):(\d{1,5}):(\d{1,5}):(\d{1,5})(?=/|$)", re.ASCII)
_VENDORS = frozenset({"amcc", "3ware", "lsi"})
_MODEL = lazy_regex(r"(.+?) +DISK|Logical Disk\b", re.IGNORECASE)
_SERIALS = lazy_regex(r"^E:ID_(?:SCSI_)?SERIAL(?:_SHORT)?=(\S+)$", re.MULTILINE | re.ASCII)
_SIZE_SHARE = 0.02
_MIN_SERIAL = 6


class _Place(msgspec.Struct, frozen=True):
    """A disk of a 3ware card: SCSI host, target and LUN, and all that shows its serial number."""

    disk: Disk
    host: int
    target: int
    lun: int
    serials: str
    model: str | None


def with_disks(
    host: Host, controllers: Sequence[Controller], disks: Iterable[Disk], unknown: Unknowns
) -> tuple[Controller, ...]:
    """The controllers with each 3ware unit tied to its disks; why one is not is noted."""
    cards = [one for one in controllers if one.tool == "tw_cli" and one.volumes]
    if not cards:
        return tuple(controllers)
    by_host: dict[int, list[_Place]] = {}
    for disk in disks:
        if place := _find_place(host, disk):
            by_host.setdefault(place.host, []).append(place)
    chosen = _assign_hosts(cards, by_host)
    return tuple(
        _attach_disks(one, by_host, chosen.get(one.name), unknown) if one in cards else one for one in controllers
    )


def _find_place(host: Host, disk: Disk) -> _Place | None:
    """Where a disk of a 3ware card sits; None for any other disk."""
    if disk.kind != "scsi":
        return None
    found = _scsi_address(host, disk.name)
    driver = None if found is None else host.read(f"/sys/class/scsi_host/host{found[0]}/proc_name")
    is_card = isinstance(driver, str) and driver.startswith("3w-")
    model = _MODEL.match(disk.model or "")
    is_named = model is not None and disk.detail.get("vendor", "").lower() in _VENDORS
    if found is None or not (is_card or is_named):
        return None
    # The model holds 16 characters: 9650SE-8LPML is 9650SE-8LP there.
    return _Place(disk, found[0], found[2], found[3], _read_serials(host, disk), model[1] if model else None)


def _scsi_address(host: Host, name: str) -> tuple[int, int, int, int] | None:
    for place in (host.real(f"/sys/block/{name}/device"), host.readlink(f"/sys/block/{name}")):
        if isinstance(place, str) and (found := _ADDRESS.findall(place)):
            first, second, third, fourth = (int(number) for number in found[-1])
            return first, second, third, fourth
    return None


def _read_serials(host: Host, disk: Disk) -> str:
    """Every text that holds a disk's serial number: its VPD page, its id, and what udev read of an older kernel's."""
    number = host.read(f"/sys/block/{disk.name}/dev")
    udev = host.read(f"/run/udev/data/b{number}") if isinstance(number, str) else ""
    wwid = host.read(f"/sys/block/{disk.name}/device/wwid")
    texts = [disk.serial or "", wwid if isinstance(wwid, str) else ""]
    texts += _SERIALS.findall(udev) if not isinstance(udev, Missing) else []
    return " ".join(texts).upper()


def _assign_hosts(cards: Sequence[Controller], by_host: Mapping[int, list[_Place]]) -> dict[str, int]:
    """The SCSI host of each card, where only one is possible; one that is taken is possible for no other."""
    options = {card.name: _possible_hosts(card, by_host) for card in cards}
    chosen: dict[str, int] = {}
    while True:
        free = {name: [one for one in found if one not in chosen.values()] for name, found in options.items()}
        certain = {name: found[0] for name, found in free.items() if len(found) == 1 and name not in chosen}
        # Two cards that can only be the same one contradict each other: neither is.
        certain = {name: one for name, one in certain.items() if list(certain.values()).count(one) == 1}
        if not certain:
            return chosen | _by_number({name: found for name, found in free.items() if name not in chosen})
        chosen |= certain


def _by_number(left: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Cards that nothing else distinguishes, where tw_cli counts them as the kernel counts its SCSI hosts."""
    own = {name: int(name) for name in left}
    return own if left and all(own[name] in found for name, found in left.items()) else {}


def _possible_hosts(card: Controller, by_host: Mapping[int, list[_Place]]) -> list[int]:
    proven = [number for number, places in by_host.items() if any(_has_serial(one, places) for one in card.volumes)]
    if proven:
        return proven
    return [number for number, places in sorted(by_host.items()) if _is_possible(card, places)]


def _has_serial(volume: ControllerVolume, places: Iterable[_Place]) -> bool:
    return any(
        (volume.serial is not None and len(volume.serial) >= _MIN_SERIAL and volume.serial.upper() in place.serials)
        for place in _of_unit(volume, places)
    )


def _of_unit(volume: ControllerVolume, places: Iterable[_Place]) -> list[_Place]:
    return sorted((one for one in places if f"u{one.target}" == volume.name), key=lambda one: one.lun)


def _is_possible(card: Controller, places: Sequence[_Place]) -> bool:
    """Whether these may be a card's disks: each unit that works is one of them, of its model and size."""
    for volume in card.volumes:
        mine = _of_unit(volume, places)
        if not mine:
            if volume.state != "failed":
                return False
        elif not all(
            (True if not card.model or not one.model else card.model.lower().startswith(one.model.lower()))
            for one in mine
        ) or not _is_size(volume, mine):
            return False
        elif volume.serial and any(one.disk.serial for one in mine):
            # Both serial numbers are known, and they differ: `_possible_hosts` would have seen one that agrees.
            return False
    return True


def _is_size(volume: ControllerVolume, places: Sequence[_Place]) -> bool:
    sizes = [one.disk.size_bytes for one in places]
    known = [size for size in sizes if size]
    if volume.size_bytes is None or len(known) < len(sizes) or volume.state == "reshaping":
        return True
    return abs(sum(known) - volume.size_bytes) <= _SIZE_SHARE * volume.size_bytes


def _attach_disks(
    card: Controller, by_host: Mapping[int, list[_Place]], number: int | None, unknown: Unknowns
) -> Controller:
    places = by_host.get(number, []) if number is not None else []
    volumes = []
    for volume in card.volumes:
        names = tuple(one.disk.name for one in _of_unit(volume, places))
        if not names and volume.state != "failed":
            unknown.note(f"controllers.tw{card.name}/{volume.name}.disk", _why_untied(card, volume, by_host))
        volumes.append(msgspec.structs.replace(volume, device=next(iter(names), None), devices=names))
    return msgspec.structs.replace(card, volumes=tuple(volumes))


def _why_untied(card: Controller, volume: ControllerVolume, by_host: Mapping[int, list[_Place]]) -> str:
    if not by_host:
        return "no disk of a 3ware controller is among the disks of this host"
    options = _possible_hosts(card, by_host)
    if not options:
        return "no disk of a 3ware controller has its unit number, model and size"
    names = [one.disk.name for number in options for one in _of_unit(volume, by_host[number])]
    listed = ", ".join(sorted(names, key=natural)[:8])
    return (
        f"{listed} may each be it, and no serial number shows which: compare tw_cli /c{card.name}/{volume.name} show "
        "serial with lsblk -o NAME,SERIAL"
    )
