"""Attributes of one host while they are collected: values by dotted name, and what is unknown of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Mapping

from advisor.facts.printable import printable

Value = str | int

MAX_TEXT = 200
MAX_ATTRIBUTES = 4000
MAX_UNKNOWN = 400


def shorten_text(text: str) -> str:
    """The text, or its beginning and a digest of it all where it is longer than 200 characters."""
    shown = printable(text)
    if len(shown) <= MAX_TEXT:
        return shown
    digest = hashlib.blake2b(shown.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{shown[: MAX_TEXT - 20]}… #{digest}"


class Collected:
    """What one host has. A host with more attributes than any honest one keeps the first, and the rest is unknown."""

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self._unknown: dict[str, None] = {}

    @property
    def patterns(self) -> tuple[str, ...]:
        return tuple(sorted(self._unknown))

    def put(self, name: str, value: Value | None) -> None:
        """An attribute; None is one that the host does not have."""
        if value is None:
            return
        if len(self.values) >= MAX_ATTRIBUTES:
            self._unknown.setdefault("*")
            return
        # True and 1 would be one value.
        self.values[shorten_text(name)] = shorten_text(value) if isinstance(value, str) else int(value)

    def known(self, name: str, value: Value | None) -> None:
        """An attribute that every host has: None is unknown."""
        self.put(name, value)
        if value is None:
            self.unknown(name)

    def fields(self, base: str, record: object, *names: str) -> None:
        """Attributes of the same names as the fields of a record; what a mapping has besides is `entries`."""
        for name in names:
            self.put(f"{base}.{name}", getattr(record, name))

    def entries(self, base: str, mapping: Mapping[str, Value | None], without: Container[str] = ()) -> None:
        for name, value in mapping.items():
            if name not in without:
                self.put(f"{base}.{name}", value)

    def flag(self, name: str, value: bool | None) -> None:
        self.put(name, None if value is None else "yes" if value else "no")

    def unknown(self, *patterns: str) -> None:
        for pattern in patterns:
            if len(self._unknown) < MAX_UNKNOWN:
                self._unknown.setdefault(shorten_text(pattern))
            else:
                self._unknown.setdefault("*")

    def several(self, name: str, values: Iterable[Value | None]) -> None:
        """One attribute of things that are alike: the value that all have, or each value and how many have it."""
        counts = Counter("unset" if value is None else shorten_text(str(value)) for value in values)
        if len(counts) == 1 and "unset" not in counts:
            self.put(name, next(iter(counts)))
        elif len(counts) > 1:
            self.put(name, ", ".join(f"{value} ×{count}" for value, count in sorted(counts.items())))
