"""TuneD's variables, ``${NAME}``: replaced in one pass, before the functions; ``\\${NAME}`` stays as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from advisor.facts.tuned.functions import MAX_LENGTH, expand_functions
from advisor.host import Host
from advisor.host.patterns import lazy_regex

_PLACE = lazy_regex(r"(?<!\\)\$\{(\w+)\}")
_ESCAPED = lazy_regex(r"\\(\$\{\w+\})")


class Expanded(msgspec.Struct, frozen=True):
    """A text with its variables and functions replaced, and why parts of it could not be."""

    text: str
    unresolved: tuple[str, ...] = ()


class Variables:
    """The variables of a profile, in the order in which TuneD reads them."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._values: dict[str, Expanded] = {}

    @property
    def values(self) -> Mapping[str, Expanded]:
        return dict(self._values)

    def add(self, name: str, value: str) -> bool:
        """Add one; False for a name that TuneD refuses. Raises AssertionFailedError."""
        if not re.match(r"\w+$", name):
            return False
        self._values[name] = self.expand(value)
        return True

    def expand(self, text: str) -> Expanded:
        """The text as TuneD writes it. Raises AssertionFailedError."""
        unresolved: list[str] = []

        def value_of(place: re.Match[str]) -> str:
            known = self._values.get(place[1])
            if known is None:
                return place[0]
            unresolved.extend(known.unresolved)
            return known.text

        static = _PLACE.sub(value_of, text) if self._values else text
        if len(static) > MAX_LENGTH:
            return Expanded(text, ("with its variables it is longer than any setting",))
        static = _ESCAPED.sub(r"\1", static)
        expanded = expand_functions(self._host, static, unresolved)
        return Expanded(expanded, tuple(dict.fromkeys(unresolved)))

    def missing(self, text: str) -> tuple[str, ...]:
        """The variables of an expanded text that nothing defines."""
        return tuple(dict.fromkeys(_PLACE.findall(text)))
