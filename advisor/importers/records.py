"""What became of each line of a foreign profile; its JSON is ``advisor.import/1``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

import msgspec

from advisor.profiles.profile import FieldSense, ForEach, Only

Mode = Literal["faithful", "intent"]
"""``faithful``: what the other program really does with it on this host. ``intent``: what its author meant."""

Outcome = Literal["tunable", "ignored", "manual"]
Departure = Literal["inert", "lowers", "refused", "unknown", "overridden", "dynamic", "defaults", "not-loaded", "other"]
"""How a program departs from what is written: a section that gets no device, a value below the kernel's own, one that
the kernel refuses, an option or a plugin that is not known, a file that has the last word, what it does by itself
while it runs, what it sets without being asked, a profile that it does not load."""

ImportedSense = FieldSense | tuple[FieldSense, ...]


class Said(msgspec.Struct, frozen=True):
    """What the record of a key says against a value on this host, as a scan would (`advisor.rules.settings`)."""

    id: str
    severity: str
    title: str
    why: str
    instead: str


class ImportedSetting(msgspec.Struct, frozen=True):
    """One setting of a foreign file, as it stands there (``raw``), and what became of it.

    ``tunable``: ``tunable`` is to have ``value`` in this ``sense``, for each of what ``for_each`` and ``only`` select;
    ``multiply`` stands in the place of a value. ``ignored``: nothing is lost by leaving it out, ``why`` says so.
    ``manual``: a person has to see to it. ``why`` of a tunable is the author's own comment, where there is one.
    """

    section: str
    key: str
    raw: str
    file: str
    line: int
    outcome: Outcome
    why: str
    tunable: str | None = None
    value: str | None = None
    sense: ImportedSense = "exactly"
    for_each: ForEach | None = None
    only: Only | None = None
    multiply: int | None = None
    note: str = ""
    """What is to be known of how the value came about."""
    departs: Departure | None = None
    """How the other program departs here from what is written, where it does."""
    sets_nothing: bool = False
    """A line that names, includes, or says for whom others are."""
    written: str = ""
    """The line itself, where it is not ``key = raw``."""
    judged: tuple[Said, ...] = ()
    """What is said against the value of a kernel parameter on this host."""

    @property
    def quoted(self) -> str:
        """The line as its author wrote it."""
        return self.written or f"{self.key} = {self.raw}"


class ImportDifference(msgspec.Struct, frozen=True):
    """Where what a program does is not what the author of its profile meant, or what this host is better off with."""

    kind: Departure
    section: str
    key: str
    file: str
    line: int
    faithful: str
    intent: str
    why: str


class Imported(msgspec.Struct, frozen=True):
    """A foreign profile as it comes over to this host. ``links`` are those that its lines on links are for."""

    name: str
    origin: str
    """``tuned:NAME``, ``saptune:NOTE``, ``sysctl:PLACE`` or ``host:NAME``."""
    mode: Mode
    title: str
    about: str
    """The author's own description; empty where there is none."""
    sources: tuple[str, ...]
    settings: tuple[ImportedSetting, ...]
    differences: tuple[ImportDifference, ...] = ()
    links: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def count_outcomes(settings: Iterable[ImportedSetting]) -> dict[Outcome, int]:
    """How many lines of each outcome, those that set nothing left out; one that became several tunables counts once."""
    lines: dict[tuple[str, int, str, str], Outcome] = {}
    for one in settings:
        if one.sets_nothing:
            continue
        place = (one.file, one.line, one.section, one.key)
        if lines.get(place) != "tunable":
            lines[place] = one.outcome
    found = Counter(lines.values())
    return {outcome: found[outcome] for outcome in ("tunable", "ignored", "manual")}
