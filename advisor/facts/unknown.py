"""What a scan could not learn, and why."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from advisor.host import Missing

T = TypeVar("T")


class Unknown(msgspec.Struct, frozen=True):
    """A fact that is null because it could not be read."""

    fact: str
    why: str


class Unknowns:
    """Collects what could not be read while a scan goes on; the same fact is noted once."""

    def __init__(self) -> None:
        self._noted: dict[str, str] = {}

    def note(self, fact: str, why: str | Missing) -> None:
        """Say that ``fact`` (in the words of the JSON, e.g. ``links.eth0.rings``) is unknown."""
        self._noted.setdefault(fact, why.why if isinstance(why, Missing) else why)

    def value(self, fact: str, reading: T | Missing) -> T | None:
        """The reading, or None. An unreadable one is noted; an absent one is simply not there."""
        if not isinstance(reading, Missing):
            return reading
        if not reading.is_absent:
            self.note(fact, reading)
        return None

    def listed(self) -> tuple[Unknown, ...]:
        return tuple(Unknown(fact, why) for fact, why in sorted(self._noted.items()))
