"""Which disks of the kernel the units of 3ware controllers are.

The drivers (3w-9xxx, 3w-sas, 3w-xxxx) make each controller a SCSI host and each unit a target of it: unit 2 of a card
is H:0:2:0, further volumes of a carved unit are its next LUNs. A unit's serial number is that of its disk (VPD page
0x80, and the ids that udev makes of it). tw_cli numbers its controllers by itself, so which host a controller is must
follow from serial numbers, models, units and sizes; where these leave two possible, nothing is tied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from advisor.facts.block import natural
from advisor.facts.controller import Controller, ControllerVolume
from advisor.facts.disks import Disk
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, lazy_regex

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
