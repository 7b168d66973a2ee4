"""Kernel parameters: one record for each key that a scan reads and that profiles, rules and imports name.

A new key is a section of tables/settings.ini, a new caution a row in `cautions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from advisor.facts.settings import sources
from advisor.facts.settings.cautions import CAUTIONS, DERIVES
from advisor.facts.settings.record import Caution, InUse, KernelVersion, Least, MemoryShare, Setting
from advisor.host.package_data import package_data

__all__ = ["CAUTIONS", "GONE", "KEYS", "SETTINGS", "find_setting", "vendor_values"]

_EVERYWHERE: Final = ("all", "default")


def _version(text: str) -> KernelVersion:
    major, minor = text.split(".")
    return int(major), int(minor)


def _share(text: str) -> MemoryShare:
    unit, warn, refuse, what, source = text.split(" | ")
    return MemoryShare(int(unit), float(warn), float(refuse), what, source)


def _least(text: str) -> Least:
    number, _, otherwise = text.partition(" ")
    return Least(int(number), otherwise)


_READ: Final[Mapping[str, Callable[[str], Any]]] = {
    "fields": lambda text: tuple(text.split()),
    **dict.fromkeys(("low", "high"), int),
    **dict.fromkeys(("since", "until"), _version),
    "share": _share,
    "least": _least,
    "in_use": lambda text: InUse(*text.split(" | ")),  # type: ignore[arg-type]
    "vendors": lambda text: dict(word.split(":") for word in text.split()),
    "sources": lambda text: tuple(getattr(sources, word) for word in text.split()),
}
"""How the text of a field is read; others are texts."""


_cautions: Final[dict[str, tuple[Caution, ...]]] = {}
for _one in CAUTIONS:
    for _key in _one.keys:
        _cautions[_key] = (*_cautions.get(_key, ()), _one)


def _make_setting(section: str) -> Setting:
    key, _, body = section.partition("]\n")
    lines = (line.partition(" = ") for line in body.splitlines() if line)
    parts: dict[str, Any] = {name: _READ[name](text) if name in _READ else text for name, _, text in lines}
    parts |= {name if name == "grows" else f"is_{name}": True for name in parts.pop("flags", "").split()}
    return Setting(key=key, cautions=_cautions.get(key, ()), derives=DERIVES.get(key), **parts)


_TEXT: Final = (package_data("tables") / "settings.ini").read_text("utf-8")
SETTINGS: Final[Mapping[str, Setting]] = {one.key: one for one in map(_make_setting, _TEXT.split("\n[")[1:])}
"""Every record by its key; a key with a star stands for each link."""
KEYS: Final = tuple(
    sorted(
        key.replace("*", scope)
        for key, one in SETTINGS.items()
        if one.is_scanned
        for scope in (_EVERYWHERE if "*" in key else ("",))
    )
)
"""Dotted keys that a scan reads; a host has those that its kernel knows."""
GONE: Final = tuple(key for key, one in SETTINGS.items() if one.until and not one.is_scanned)
"""Further keys that a kernel has removed, or keeps without effect; files may still set them."""


def find_setting(key: str) -> Setting | None:
    """Return the record of a dotted key, that of each link for a link's own; None for a key that is unknown here."""
    found = SETTINGS.get(key)
    parts = key.split(".")
    return found or (SETTINGS.get(".".join((*parts[:3], "*", *parts[4:]))) if len(parts) > 4 else None)


def vendor_values(product: str) -> dict[str, str]:
    """Return what the documents of a product ask for, by key: ``<=10``, ``>=5`` or ``20``."""
    return {one.key: one.vendors[product] for one in SETTINGS.values() if product in one.vendors}
