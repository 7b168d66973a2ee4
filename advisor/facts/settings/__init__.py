"""Kernel parameters: one record for each key that a scan reads and that profiles, rules and imports name.

A new key is a section of tables/settings.ini, a new caution one of tables/cautions.ini; what is no kernel parameter, a
section of tables/attributes.ini.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from advisor.facts.settings import record
from advisor.facts.settings.record import (
    BAD,
    BETTER,
    DERIVES,
    Caution,
    Gone,
    InUse,
    KernelVersion,
    Least,
    MemoryShare,
    Setting,
    judge_words,
)
from advisor.host.origin import read_sections

__all__ = ["ATTRIBUTES", "CAUTIONS", "KEYS", "NAMED", "SETTINGS", "find_setting", "vendor_values"]

_EVERYWHERE = ("all", "default")


def _version(text: str) -> KernelVersion:
    major, minor = text.split(".")
    return int(major), int(minor)


def _share(text: str) -> MemoryShare:
    unit, warn, refuse, what, source = text.split(" | ")
    return MemoryShare(int(unit), float(warn), float(refuse), what, source)


def _gone(text: str) -> Gone:
    since, title, why = text.split(" | ")
    return Gone(_version(since), title, why)


def _least(text: str) -> Least:
    number, _, otherwise = text.partition(" ")
    return Least(int(number), otherwise)


_READ: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("fields", "keys", "contradictions"), lambda text: tuple(text.split())),
    "gone": _gone,
    **dict.fromkeys(("low", "high", "holds_memory"), int),
    **dict.fromkeys(("is_intent", "is_of_gone", "is_kept"), bool),
    **dict.fromkeys(("since", "until"), _version),
    "share": _share,
    "least": _least,
    "in_use": lambda text: InUse(*text.split(" | ")),  # type: ignore[arg-type]
    "vendors": lambda text: dict(word.split(":") for word in text.split()),
    "sources": lambda text: tuple(getattr(record, word) for word in text.split()),
}
"""How the text of a field is read; others are texts."""


def _read_table(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for head, pairs in read_sections(name):
        yield head, {name: _READ[name](text) if name in _READ else text for name, text in pairs}


def _make_caution(name: str, parts: dict[str, Any]) -> Caution:
    words = parts.pop("values", None)
    better = BETTER.get(name) or parts.pop("better", None)
    own = {key.removeprefix("own."): tuple(parts.pop(key).split(" | ")) for key in [*parts] if key.startswith("own.")}
    return Caution(id=name, is_bad=judge_words(words) if words else BAD[name], better=better, own=own, **parts)


def _make_setting(key: str, parts: dict[str, Any]) -> Setting:
    hurts = [(words[6:], parts.pop(words)) for words in [*parts] if words.startswith("hurts.")]
    parts["hurts_of"] = {word: text for words, text in hurts for word in words.split("|")}
    parts |= {name if name == "grows" else f"is_{name}": True for name in parts.pop("flags", "").split()}
    # A key without a star is looked up: to match each against all takes a tenth of a scan.
    about = {*fnmatch.filter(_WITH_CAUTION, key)} if "*" in key else {key} & _WITH_CAUTION
    cautions = [one for one in CAUTIONS if not about.isdisjoint(one.keys)] if about else ()
    return Setting(key=key, cautions=tuple(cautions), derives=DERIVES.get(key), **parts)


CAUTIONS = tuple(_make_caution(*row) for row in _read_table("cautions.ini"))
"""In the order of documents."""
_WITH_CAUTION = frozenset(key for one in CAUTIONS for key in one.keys)
SETTINGS: Mapping[str, Setting] = {row[0]: _make_setting(*row) for row in _read_table("settings.ini")}
"""Every record by its key; a key with a star stands for each link."""
ATTRIBUTES: Mapping[str, Setting] = {
    one: _make_setting(one, dict(parts)) for ids, parts in _read_table("attributes.ini") for one in ids.split()
}
"""The records of what is no kernel parameter, by the id with stars."""
KEYS = tuple(
    sorted(
        key.replace("*", scope)
        for key, one in SETTINGS.items()
        if one.is_scanned
        for scope in (_EVERYWHERE if "*" in key else ("",))
    )
)
"""Dotted keys that a scan reads; a host has those that its kernel knows."""
NAMED = tuple(
    key for key, one in SETTINGS.items() if (one.until or one.cautions) and not one.is_scanned and "*" not in key
)
"""Further keys that files may set: those with a caution, and those that a kernel removed or keeps without effect."""


def _find_attribute(identity: str) -> Setting | None:
    kind, *rest = identity.split(":")
    device, leaf = ("*:" if len(rest) > 1 else ""), rest[-1]
    group, _, name = leaf.partition(".")
    stars = (leaf, f"{group}.{name.partition('-')[0]}-*", f"{group}.*", f"{leaf.partition('_')[0]}_*")
    names = (*(f"{kind}:{device}{one}" for one in stars), f"{kind}:*")
    return next((found for one in names if (found := ATTRIBUTES.get(one))), None)


def find_setting(key: str) -> Setting | None:
    """Return the record of a dotted key, that of each link for a link's own, or of the id of a tunable of another kind;
    None for what is unknown here."""
    if ":" in key:
        return _find_attribute(key)
    found = SETTINGS.get(key)
    parts = key.split(".")
    return found or (SETTINGS.get(".".join((*parts[:3], "*", *parts[4:]))) if len(parts) > 4 else None)


def vendor_values(product: str) -> dict[str, str]:
    """Return what the documents of a product ask for, by key: ``<=10``, ``>=5`` or ``20``."""
    return {one.key: one.vendors[product] for one in SETTINGS.values() if product in one.vendors}
