"""Kernel parameters: one record for each key that a scan reads and that profiles, rules and imports name.

A new key is one row in the module of its directory, a new caution one row beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from advisor.facts.settings import memory, network, system
from advisor.facts.settings.record import Caution, Setting

__all__ = ["CAUTIONS", "GONE", "KEYS", "SETTINGS", "find_setting", "vendor_values"]

_EVERYWHERE: Final = ("all", "default")
_SCANNED: Final = (*network.SCANNED, *memory.SCANNED, *system.SCANNED)
SETTINGS: Final[Mapping[str, Setting]] = {
    one.key: one for one in (*_SCANNED, *network.OTHERS, *memory.OTHERS, *system.OTHERS)
}
"""Every record by its key; a key with a star stands for each link."""
KEYS: Final = tuple(
    sorted(one.key.replace("*", scope) for one in _SCANNED for scope in (_EVERYWHERE if "*" in one.key else ("",)))
)
"""Dotted keys that a scan reads; a host has those that its kernel knows."""


GONE: Final = tuple(one.key for one in SETTINGS.values() if one.until and one.key not in KEYS)
"""Further keys that a kernel has removed, or keeps without effect; files may still set them."""


def find_setting(key: str) -> Setting | None:
    """Return the record of a dotted key, that of each link for a link's own; None for a key that is unknown here."""
    found = SETTINGS.get(key)
    parts = key.split(".")
    return found or (SETTINGS.get(".".join((*parts[:3], "*", *parts[4:]))) if len(parts) > 4 else None)


def vendor_values(product: str) -> dict[str, str]:
    """Return what the documents of a product ask for, by key: ``<=10``, ``>=5`` or ``20``."""
    return {one.key: one.vendors[product] for one in SETTINGS.values() if product in one.vendors}


def _collect_cautions() -> dict[str, tuple[Caution, tuple[str, ...]]]:
    found: dict[str, tuple[Caution, tuple[str, ...]]] = {}
    for one in SETTINGS.values():
        for caution in one.cautions:
            found[caution.id] = (caution, (*found.get(caution.id, (caution, ()))[1], one.key))
    return found


CAUTIONS: Final[Mapping[str, tuple[Caution, tuple[str, ...]]]] = _collect_cautions()
"""Every caution by its id, with the keys that have it."""
