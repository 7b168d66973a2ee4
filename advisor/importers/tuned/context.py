"""What every plugin's converter is given: the host, the mode, and one setting of one section."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from advisor.facts.tuned.variables import Variables
from advisor.host import Host
from advisor.importers.made import Found, SourceLine
from advisor.importers.records import Departure, ImportedSetting, Mode
from advisor.importers.tuned.instances import PluginInstance
from advisor.profiles.profile import FieldSense

SENSES: dict[str, FieldSense] = {">": "at-least", "<": "at-most"}


class Written(NamedTuple):
    """A value without its operator, and the sense that the operator gives it."""

    value: str
    sense: FieldSense


def parse_assignment(text: str) -> Written:
    """What the author of ``>4096`` means, blanks around the value left out. A value of one character has none."""
    if len(text) > 1 and text[0] in SENSES:
        return Written(text[1:].strip(), SENSES[text[0]])
    return Written(text, "exactly")


def can_compare(text: str, current: str | None) -> bool:
    """Whether TuneD can compare the two; what has no operator need not be compared."""
    written = parse_assignment(text)
    if written.sense == "exactly" or current is None:
        return True
    return _parse_integer(text[1:]) is not None and _parse_integer(current) is not None


def _parse_integer(text: str) -> int | None:
    try:
        # Python refuses to convert thousands of digits, and so TuneD cannot compare them.
        return int(text)
    except ValueError:
        return None


def strip_quotes(text: str) -> str:
    """Without the double quotes around the whole, as TuneD's sysctl plugin takes them off."""
    return re.sub(r'^"(.*)"$', r"\1", text)


class Context(msgspec.Struct, frozen=True):
    """``main`` is TuneD's main configuration."""

    host: Host
    mode: Mode
    main: Mapping[str, str]
    variables: Variables
    reapplied: Mapping[str, tuple[str, str, int]] = {}
    """Sysctls that TuneD takes from the system's files after its own values: key → value and place."""

    lacks_perf: bool = False
    """TuneD does not load its plugin scheduler here, as Python's module perf is missing."""

    version: tuple[int, ...] | None = None
    """Of TuneD; None where it is unknown, and the newest that the tables have is taken."""

    @property
    def is_faithful(self) -> bool:
        return self.mode == "faithful"


class Given(Context, frozen=True, kw_only=True):
    """One setting: ``text`` is its value with variables and functions replaced."""

    line: SourceLine
    key: str
    text: str
    instance: PluginInstance

    def swallowed(self, why: str, departs: Departure = "refused") -> ImportedSetting:
        """What TuneD passes over without failing: faithfully nothing happens, and a person looks at the intent."""
        return self.line.ignored(why, departs) if self.is_faithful else self.line.manual(why, departs)


Converter = Callable[[Given], Found]
