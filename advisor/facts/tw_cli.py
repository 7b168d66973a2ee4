"""What tw_cli prints of 3ware controllers: ``show`` (the controllers) and ``/cN show`` (units, drives, battery).
``/cN/uM show all`` has a unit's serial number.

3ware SAS/SATA RAID CLI Guide, chapters "show", "/cx show" and "/cx/ux show". Lines that do not fit are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from advisor.facts.controller import (
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
from advisor.facts.printable import printable
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
