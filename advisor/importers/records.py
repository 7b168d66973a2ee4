"""What became of each line of a foreign profile; its JSON is ``advisor.import/1``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from advisor.errors import UsageError
from advisor.facts.settings import find_setting
from advisor.facts.settings.value import to_canonical
from advisor.host.patterns import lazy_regex
from advisor.profiles.profile import FieldSense, ForEach, Only
from advisor.tunables import Tunable, parse_tunable
from advisor.tunables.sysctl import Sysctl

Mode = Literal["faithful", "intent"]
"""``faithful``: what the other program really does with it on this host. ``intent``: what its author meant."""

Outcome = Literal["tunable", "ignored", "manual"]
Departure = Literal["inert", "lowers", "refused", "unknown", "overridden", "dynamic", "defaults", "not-loaded", "other"]
"""How a program departs from what is written: a section that gets no device, a value below the kernel's own, one that
the kernel refuses, an option or a plugin that is not known, a file that has the last word, what it does by itself
while it runs, what it sets without being asked, a profile that it does not load."""

ImportedSense = FieldSense | tuple[FieldSense, ...]


class Said(msgspec.Struct, frozen=True):
    """What the record of a key says against a value on this host, as a scan (`advisor.rules.settings.sysctls`) does."""

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


# A foreign setting as a tunable that takes the value, or as a manual step.


def is_growing(key: str) -> bool:
    """Whether a larger value than the wanted one is as good."""
    setting = find_setting(key)
    return setting is not None and setting.grows


def lowered_fields(live: str, wanted: str) -> tuple[tuple[int, int], ...]:
    """The numbers that ``wanted`` would lower, each with what it would become; none where fields do not correspond."""
    old, new = live.split(), wanted.split()
    if len(old) != len(new) or not all(re.fullmatch(r"-?[0-9]{1,20}", word) for word in (*old, *new)):
        return ()
    return tuple((int(was), int(now)) for was, now in zip(old, new, strict=True) if int(now) < int(was))


_PLACE = lazy_regex(r"\{\w*\}")
_EXAMPLES = {"{disk}": "sda", "{array}": "md0", "{link}": "eth0"}
MAX_RAW = 400
LACKS_KEY = "this host has no such key now: its program and a plan pass over it"


class SourceLine(msgspec.Struct, frozen=True):
    """A setting as it stands in its file; ``comment`` is what its author says about it, and ``written`` the line itself
    where that is not ``key = raw``."""

    section: str
    key: str
    raw: str
    file: str
    line: int
    comment: str = ""
    written: str = ""

    def _make_setting(
        self, why: str, departs: Departure | None, *, is_manual: bool, sets_nothing: bool
    ) -> ImportedSetting:
        return ImportedSetting(
            section=self.section,
            key=self.key,
            raw=shorten_text(self.raw),
            file=self.file,
            line=self.line,
            outcome="manual" if is_manual else "ignored",
            why=why,
            departs=departs,
            sets_nothing=sets_nothing,
            written=shorten_text(self.written),
        )

    def ignored(self, why: str, departs: Departure | None = None, *, sets_nothing: bool = False) -> ImportedSetting:
        return self._make_setting(why, departs, is_manual=False, sets_nothing=sets_nothing)

    def manual(self, why: str, departs: Departure | None = None) -> ImportedSetting:
        return self._make_setting(why, departs, is_manual=True, sets_nothing=False)

    def wanted(
        self,
        identity: str | Sequence[str],
        value: str,
        *,
        sense: ImportedSense = "exactly",
        for_each: ForEach | None = None,
        only: Only | None = None,
        multiply: int | None = None,
        note: str = "",
        departs: Departure | None = None,
    ) -> ImportedSetting:
        """The setting as a tunable: the first of ``identity`` that there is. One that no kind knows, or that does not
        take the value, is a manual step."""
        known = identity if isinstance(identity, str) else next((one for one in identity if is_known(one)), identity[0])
        if known.startswith("sysctl:"):
            value, read = as_the_kernel_reads(known.removeprefix("sysctl:"), value)
            note = "; ".join(filter(None, (note, read)))
        wrong = _unfit_reason(known, value, has_value=multiply is None)
        if wrong is not None:
            return self.manual(wrong, departs)
        return msgspec.structs.replace(
            self.ignored("", departs),
            outcome="tunable",
            why=self.comment,
            tunable=known,
            value=value if multiply is None else None,
            sense=sense,
            for_each=for_each,
            only=only if only != Only() else None,
            multiply=multiply,
            note=note,
        )


def as_the_kernel_reads(key: str, value: str, *, numbers: int | None = None) -> tuple[str, str]:
    """What a sysctl is once the value is written into it, and a note where that is not what is written; ``numbers`` as
    for `to_canonical`."""
    read = to_canonical(key, value, numbers=numbers)
    return (
        (value, "")
        if read.split() == value.split()
        else (read, f"the kernel reads {shorten_text(value, 80)} as {read}")
    )


def leave_out(one: ImportedSetting, why: str, departs: Departure | None = None) -> ImportedSetting:
    """The setting as one that is left out."""
    return msgspec.structs.replace(
        one,
        outcome="ignored",
        why=why,
        departs=one.departs if departs is None else departs,
        tunable=None,
        value=None,
        multiply=None,
        for_each=None,
        only=None,
        note="",
    )


def shorten_text(text: str, most: int = MAX_RAW) -> str:
    """On one line, and no longer than a reader wants."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


Found = ImportedSetting | list[ImportedSetting]
"""What a line becomes: one setting, or several."""


def flatten_found(found: Iterable[Found]) -> list[ImportedSetting]:
    """Return the settings of several lines, in their order."""
    return [one for made in found for one in (made if isinstance(made, list) else [made])]


def is_known(identity: str) -> bool:
    """Whether a kind of tunable takes this id."""
    return not isinstance(_find_tunable(identity), UsageError)


def _find_tunable(identity: str) -> Tunable | UsageError:
    for place, example in _EXAMPLES.items():
        identity = identity.replace(place, example)
    try:
        return parse_tunable(identity)
    except UsageError as error:
        return error


def _unfit_reason(identity: str, value: str, *, has_value: bool) -> str | None:
    found = _find_tunable(identity)
    if isinstance(found, UsageError):
        return f"{found.message}{f': {found.hint}' if found.hint else ''}"
    bare = identity
    for place in _EXAMPLES:
        bare = bare.replace(place, "")
    if _PLACE.search(bare) or _PLACE.search(value):
        return "braces in it would be taken for the place of a parameter"
    if not has_value:
        return None
    # Of several with | between, a plan takes the first that the host offers.
    words = value.split("|") if identity.startswith("cpufreq:") else (value,)
    wrong = next(filter(None, map(found.check_value, words)), None)
    return f"{shorten_text(value, 80)!r} {wrong}" if wrong else None


def without_rivals(settings: Sequence[ImportedSetting]) -> tuple[ImportedSetting, ...]:
    """Of ``vm.dirty_ratio`` and ``vm.dirty_bytes`` and such like, the later one; the other is zeroed by it anyhow."""
    order = {one.tunable: place for place, one in enumerate(settings) if one.outcome == "tunable"}
    found = []
    for place, one in enumerate(settings):
        if one.outcome != "tunable" or one.tunable is None or not one.tunable.startswith("sysctl:"):
            twin = None
        else:
            key = Sysctl(one.tunable.removeprefix("sysctl:")).twin
            twin = None if key is None else f"sysctl:{key}"
        later = order.get(twin, -1) if twin is not None else -1
        if later > place:
            rival = settings[later]
            why = f"{rival.key} (line {rival.line}) is set after it, and the kernel then zeroes this one"
            found.append(leave_out(one, why, "overridden"))
        else:
            found.append(one)
    return tuple(found)
