"""What tw_cli prints of 3ware controllers: ``show`` (the controllers) and ``/cN show`` (units, drives, battery).

3ware SAS/SATA RAID CLI Guide, chapters "show" and "/cx show". Lines that do not fit are passed over.
"""

from __future__ import annotations

import re
from typing import Final

from advisor.facts.controller import (
    MAX_CONTROLLERS,
    MAX_TEXT,
    MAX_VOLUMES,
    CacheProtection,
    Controller,
    Volume,
    WritePolicy,
    level_of,
    size_bytes,
)
from advisor.facts.printable import printable

_STATES: Final = {
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
_NO_ARRAYS: Final = frozenset({"SPARE", "SINGLE", "JBOD"})


def parse_tw_cli_controllers(text: str) -> tuple[tuple[str, str], ...]:
    """Number and model of each controller in ``tw_cli show``: ``c0  9650SE-8LPML  8  8  1 …``."""
    found = (re.match(r"c(\d{1,3})\s+(\S+)\s", line, re.ASCII) for line in text.splitlines())
    return tuple((one[1], printable(one[2][:MAX_TEXT])) for one in found if one)[:MAX_CONTROLLERS]


def parse_tw_cli_units(text: str) -> tuple[tuple[Volume, ...], bool | None, CacheProtection | None]:
    """Units, whether there is a battery, and the battery, in ``tw_cli /cN show``.

    A table of units without a line of a battery means that there is none.
    """
    rows = [line.split() for line in text.splitlines()[:4096]]
    units = [row for row in rows if len(row) == 9 and re.fullmatch(r"u\d{1,4}", row[0], re.ASCII)][:MAX_VOLUMES]
    ports = [row for row in rows if len(row) > 4 and re.fullmatch(r"p\d{1,4}", row[0], re.ASCII)]
    batteries = [row for row in rows if len(row) > 4 and re.fullmatch(r"bbu\d?", row[0], re.ASCII)]
    volumes = tuple(_volume(row, ports) for row in units if row[1] not in _NO_ARRAYS)
    has_units = any(row[:2] == ["Unit", "UnitType"] for row in rows)
    protection = _battery(batteries[0]) if batteries else None
    return volumes, True if protection else False if has_units else None, protection


def controller_of(
    number: str, model: str, found: tuple[tuple[Volume, ...], bool | None, CacheProtection | None]
) -> Controller:
    """The record of one controller."""
    volumes, has_protection, protection = found
    return Controller(number, "tw_cli", model, None, volumes, has_protection, protection)


def _volume(row: list[str], ports: list[list[str]]) -> Volume:
    """``u0 RAID-10 OK - - 256K 7450.56 RiW ON``: name, type, status, …, stripe, size in GB, cache, verify.

    Of drives it prints the bus, which does not tell those that turn from those that do not.
    """
    own = [port for port in ports if port[2] == row[0]]
    return Volume(
        name=row[0],
        level=level_of(row[1]) if row[1].startswith("RAID") else None,
        state=_STATES.get(row[2]),
        status=printable(row[2][:MAX_TEXT]),
        write_policy=_policy(row[7]),
        cache=printable(row[7][:MAX_TEXT]),
        chunk_bytes=size_bytes(row[5]),
        drives=len(own) or None,
    )


def _policy(word: str) -> WritePolicy | None:
    """``W`` stands for the write cache, ``Ri`` and ``Rb`` for the read cache; older firmware prints ON and OFF."""
    if word == "ON" or re.fullmatch(r"(?:R[ib])?W", word):
        return "write-back"
    return "write-through" if word == "OFF" or re.fullmatch(r"R[ib]", word) else None


def _battery(row: list[str]) -> CacheProtection:
    """``bbu On Yes OK …``: name, online, ready, status. Not ready, it keeps nothing."""
    ready, status = row[2], printable(row[3][:MAX_TEXT])
    healthy = True if (ready, status) == ("Yes", "OK") else False if ready == "No" else None
    if healthy is None and re.search(r"fail|weak|fault|error|charging|testing", status, re.IGNORECASE):
        healthy = False
    return CacheProtection(
        "battery", status if ready == "Yes" else f"{status}, ready: {printable(ready[:20])}", healthy
    )
