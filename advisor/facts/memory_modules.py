"""Memory modules and their slots, by ``dmidecode`` as root.

Source: dmidecode(8), type 17; System Management BIOS reference specification, Memory Device.
"""

from __future__ import annotations

import re

import msgspec

from advisor.facts.printable import printable
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, lazy_regex

DMIDECODE = ("dmidecode", "--quiet", "--type", "17")
_SIZE = lazy_regex(r"([0-9]{1,9}) ([MGT])B", re.ASCII)
_SPEED = lazy_regex(r"([0-9]{1,6}) MT/s", re.ASCII)
_UNITS = {"M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_MAX_SLOTS = 512
_WANTED = frozenset(
    {*("Size", "Locator", "Bank Locator", "Speed", "Configured Memory Speed", "Configured Clock Speed", "Type")}
)


class MemoryModule(msgspec.Struct, frozen=True):
    """A slot: ``size_bytes`` is 0 where it is empty. Speeds are in MT/s: the module's own, and that at which it runs;
    None where the firmware does not say."""

    slot: str
    bank: str
    size_bytes: int
    kind: str | None
    rated_mt_s: int | None
    configured_mt_s: int | None


def parse_dmidecode(text: str) -> tuple[MemoryModule, ...]:
    """The slots of memory devices; a block without a size, as of firmware or flash, is left out."""
    found = []
    for block in re.split(r"\n[ \t]*\n", text.replace("\r", ""))[: 4 * _MAX_SLOTS]:
        head, _, body = block.strip("\n").partition("\n")
        if head.strip() != "Memory Device":
            continue
        lines = (line.strip().partition(":") for line in body.split("\n"))
        fields = {name: value.strip() for name, colon, value in lines if colon and name in _WANTED}
        size = _SIZE.fullmatch(fields.get("Size", ""))
        if size is None and fields.get("Size") != "No Module Installed":
            continue
        # Releases before 3.0 call it Configured Clock Speed, and some print MHz.
        now = fields.get("Configured Memory Speed") or fields.get("Configured Clock Speed", "")
        rated, configured = (
            int(speed[1]) if (speed := _SPEED.fullmatch(words.replace("MHz", "MT/s"))) else None
            for words in (fields.get("Speed", ""), now)
        )
        found.append(
            MemoryModule(
                printable(fields.get("Locator", "")[:80]),
                printable(fields.get("Bank Locator", "")[:80]),
                int(size[1]) * _UNITS[size[2]] if size else 0,
                printable(fields.get("Type", "")[:40]) or None,
                rated,
                configured,
            )
        )
    return tuple(found[:_MAX_SLOTS])


def read_memory_modules(host: Host, *, is_virtual: bool, unknown: Unknowns) -> tuple[MemoryModule, ...]:
    """Slots of the machine; none of a virtual one, whose modules are the hypervisor's invention."""
    if is_virtual or not (host.is_root or not host.is_live):
        return ()
    done = host.run(DMIDECODE)
    if isinstance(done, Missing) or not done.ok:
        if host.is_live:
            unknown.note("memory_modules", done.why if isinstance(done, Missing) else f"dmidecode returned {done.rc}")
        return ()
    return parse_dmidecode(done.stdout)
