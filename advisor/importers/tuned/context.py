"""What every plugin's converter is given: the host, the mode, and one setting of one section."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from advisor.facts.tuned.variables import Variables
from advisor.host import Host
from advisor.importers.made import Found, SourceLine
from advisor.importers.records import Departure, ImportedSetting, Mode
from advisor.importers.tuned.instances import PluginInstance


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
