"""A TuneD profile as its loader sees it: found, its includes merged, its variables and regular expressions expanded."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator, Mapping

import msgspec

from advisor.errors import InvalidInputError, UsageError
from advisor.facts.tuned.files import (
    IniOption,
    Sections,
    decode_text,
    is_plain_file,
    parse_tuned_ini,
    profile_directories,
)
from advisor.facts.tuned.functions import MAX_LENGTH, AssertionFailedError, expand_functions
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

# TuneD's variables, ``${NAME}``: replaced in one pass, before the functions; ``\${NAME}`` stays as it is.

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


MAX_FILES = 64
"""Profiles that one may include, one after the other."""

SCOPE = (
    *("type", "enabled", "replace", "drop", "devices", "devices_udev_regex"),
    *("cpuinfo_regex", "uname_regex", "script_pre", "script_post"),
)
"""Options of every section, which say for whom it is and how it is read."""
_TRUE = ("True", "true", "1")


class Unit(msgspec.Struct, frozen=True):
    """A section of a profile: an instance of the plugin ``type``. ``options`` are its settings as they are written,
    ``settings`` those of its lines that say which devices and hosts it is for."""

    name: str
    type: str
    enabled: bool
    replace: bool
    devices: str
    options: Mapping[str, IniOption]
    drop: tuple[str, ...] = ()
    devices_udev_regex: str | None = None
    cpuinfo_regex: str | None = None
    uname_regex: str | None = None
    script_pre: str | None = None
    script_post: str | None = None
    settings: Mapping[str, IniOption] = {}
    by_udev: tuple[str, ...] | None = None
    """The devices of this host that its expression for udev's properties fits; None without one."""


class Lost(msgspec.Struct, frozen=True):
    """A setting that a later file removes or sets again."""

    unit: str
    key: str
    option: IniOption
    why: str


class TunedProfile(msgspec.Struct, frozen=True):
    """``failed``: why TuneD would refuse to load it on this host. ``variables`` expands what its options hold."""

    name: str
    files: tuple[str, ...]
    main: Mapping[str, IniOption]
    units: Mapping[str, Unit]
    variables: Variables
    lost: tuple[Lost, ...] = ()
    failed: str | None = None
    unresolved: Mapping[str, tuple[str, ...]] = {}
    """Of units whose devices or conditions could not be expanded: why."""
    variable_lines: Mapping[str, IniOption] = {}
    main_lines: tuple[tuple[str, IniOption], ...] = ()
    """Every line of the sections ``main``: what each file says about itself, and what it includes."""
    not_included: Mapping[IniOption, str] = {}
    """Lines of which a part of the include is unknown here: why. All else is as if that part set nothing."""


def load_tuned(
    name: str, files: Host, host: Host, *, directories: tuple[str, ...] | None = None, path: str | None = None
) -> TunedProfile:
    """The profile of this name (or several, with blanks between them), or the one in the file ``path``.

    ``files`` is the machine whose files are read, ``host`` the one whose facts decide. Raises UsageError where there
    is no such profile, InvalidInputError naming file and line for one that TuneD would not load.
    """
    return _Loader(files, host, profile_directories(files) if directories is None else directories).load(name, path)


class _Loader:
    def __init__(self, files: Host, host: Host, directories: tuple[str, ...]) -> None:
        self._files = files
        self._directories = directories
        self._variables = Variables(host)
        self._lost: list[Lost] = []
        self._done: list[str] = []
        self._heads: list[tuple[str, IniOption]] = []
        self._not_included: dict[IniOption, str] = {}

    def load(self, names: str, path: str | None) -> TunedProfile:
        wanted = [name for name in names.split() if re.match(r"^[a-zA-Z0-9_.-]+$", name)]
        if not wanted:
            raise UsageError(f"{names[:80]!r} is no name of a TuneD profile")
        main: dict[str, IniOption] = {}
        units: dict[str, Unit] = {}
        loaded = self._read_file(path, wanted[0]) if path else self._read_named(wanted, None)
        for _, options, own in loaded:
            main.update(options)
            for unit in own:
                self._merge_units(units, unit)
        if not self._done:
            raise UsageError(f"there is no TuneD profile {names[:80]!r} in {self._searched_places()}")
        name = " ".join(wanted)
        failed: str | None = None
        variables = units.pop("variables", None)
        lines = dict(variables.options) if variables else {}
        for key, option in lines.items():
            try:
                self._add_variable(key, option)
            except AssertionFailedError as error:
                # TuneD stops here; the variables after it still show what the author meant.
                failed = failed or f"its assertion does not hold: {error}"
        unresolved: dict[str, tuple[str, ...]] = {}
        expanded = {key: self._expand_unit(unit, unresolved) for key, unit in units.items()}
        return TunedProfile(
            name=name,
            files=tuple(self._done),
            main=main,
            units=expanded,
            variables=self._variables,
            lost=tuple(self._lost),
            failed=failed,
            unresolved=unresolved,
            variable_lines=lines,
            main_lines=tuple(self._heads),
            not_included=self._not_included,
        )

    def _read_named(self, names: list[str], heir: str | None) -> Iterator[tuple[str, dict[str, IniOption], list[Unit]]]:
        for name in names:
            place = self._find_file(name, heir)
            if place:
                yield from self._read_file(place, name)

    def _find_file(self, name: str, heir: str | None) -> str | None:
        """The file of a profile; None for one that was read already, and for an optional one (``-NAME``)."""
        is_optional = name.startswith("-")
        base = os.path.basename(name[1:] if is_optional else name)
        skipped = is_optional
        for directory in reversed(self._directories):
            place = os.path.normpath(f"{directory}/{base}/tuned.conf")
            if place in self._done:
                skipped = True
            elif base not in ("", ".", "..") and self._is_file(place):
                return place
        if skipped:
            return None
        if heir is not None:
            raise InvalidInputError(f"{heir}: includes {name[:80]!r}, which is in none of {self._searched_places()}")
        raise UsageError(
            f"there is no TuneD profile {name[:80]!r} in {self._searched_places()}",
            hint="advisor profiles import --list shows what is installed; a snapshot holds none: name the file instead",
        )

    def _searched_places(self) -> str:
        return ", ".join(reversed(self._directories))

    def _is_file(self, place: str) -> bool:
        return is_plain_file(self._files, place)

    def _read_file(self, place: str, name: str) -> Iterator[tuple[str, dict[str, IniOption], list[Unit]]]:
        """What a file includes, and then the file."""
        if len(self._done) >= MAX_FILES:
            raise InvalidInputError(f"{place}: the {MAX_FILES}th profile that one includes: too many")
        self._done.append(place)
        sections = self._read_sections(place)
        main = dict(sections.get("main", {}))
        self._heads.extend(main.items())
        include = main.pop("include", None)
        if include is not None and include.value is not None:
            known = self._find_include(include, place)
            yield from self._read_named(known, f"{place}: line {include.line}")
        units = [_make_unit(section, options) for section, options in sections.items() if section != "main"]
        yield name, main, units

    def _find_include(self, include: IniOption, place: str) -> list[str]:
        """The names that are known; a part whose call or variable stays as it is written costs that part."""
        try:
            expanded = self._variables.expand(include.value or "")
        except AssertionFailedError as error:
            raise InvalidInputError(f"{place}: line {include.line}: assertion {error}") from error
        # A comma in a call that stays is none between names.
        text = re.sub(r"\$\{[^{}]*\}", lambda call: re.sub("[,;]", " ", call[0]), expanded.text)
        parts = re.split(r"\s*[,;]\s*", text)
        if expanded.unresolved:
            self._not_included[include] = f"what it includes is unknown here: {'; '.join(expanded.unresolved)[:300]}"
        return [part for part in parts if "${" not in part]

    def _read_sections(self, place: str, *, is_variables: bool = False) -> Sections:
        data = self._files.read_bytes(place)
        if isinstance(data, Missing):
            raise InvalidInputError(f"{place}: {data.why}")
        sections = parse_tuned_ini(decode_text(data, place), place, is_variables=is_variables)
        if is_variables:
            return sections
        directory = os.path.dirname(place)
        return {
            name: {key: _with_directory(key, option, directory) for key, option in options.items()}
            for name, options in sections.items()
        }

    def _merge_units(self, units: dict[str, Unit], newer: Unit) -> None:
        """As TuneD's merger: a unit of the same name is brought up to date, or replaced."""
        older = units.get(newer.name)
        if older is None or newer.replace:
            if older is not None:
                where = _unit_place(newer)
                self._lose_unit(older, {**older.settings, **older.options}, f"{where} replaces the whole section")
            units[newer.name] = newer
            return
        dropped = {key: option for key, option in older.options.items() if key in newer.drop}
        self._lose_unit(older, dropped, f"{_unit_place(newer)} drops it")
        kept = {key: option for key, option in older.options.items() if key not in dropped}
        added = dict(newer.options)
        said_again = {**newer.settings, **added}
        for key, option in {**older.settings, **kept}.items():
            if key in said_again:
                later = said_again[key]
                self._lost.append(Lost(older.name, key, option, f"{later.path} line {later.line} sets it again"))
        if newer.name == "script" and "script" in kept and "script" in added:
            both = f"{kept['script'].value}\n{added['script'].value}"
            added["script"] = msgspec.structs.replace(added["script"], value=both)
        units[newer.name] = msgspec.structs.replace(
            newer,
            replace=older.replace,
            drop=(),
            options={**kept, **added},
            settings={**older.settings, **newer.settings},
            devices_udev_regex=_newer_or(newer.devices_udev_regex, older.devices_udev_regex),
            cpuinfo_regex=_newer_or(newer.cpuinfo_regex, older.cpuinfo_regex),
            uname_regex=_newer_or(newer.uname_regex, older.uname_regex),
            script_pre=_newer_or(newer.script_pre, older.script_pre),
            script_post=_newer_or(newer.script_post, older.script_post),
        )

    def _lose_unit(self, unit: Unit, options: Mapping[str, IniOption], why: str) -> None:
        self._lost.extend(Lost(unit.name, key, option, why) for key, option in options.items())

    def _add_variable(self, key: str, option: IniOption) -> None:
        if option.value is None:
            return
        if key != "include":
            self._variables.add(key, option.value)
            return
        # TuneD's daemon works in the root directory.
        place = os.path.normpath(os.path.join("/", option.value))
        if not self._is_file(place):
            # TuneD logs that and goes on.
            return
        for section in self._read_sections(place, is_variables=True).values():
            for name, value in section.items():
                if value.value is not None:
                    self._variables.add(name, value.value)

    def _expand_unit(self, unit: Unit, unresolved: dict[str, tuple[str, ...]]) -> Unit:
        reasons: list[str] = []

        def made(text: str | None) -> str | None:
            if text is None:
                return None
            try:
                found = self._variables.expand(text)
            except AssertionFailedError as error:
                found = Expanded(text, (f"assertion {error}",))
            reasons.extend(found.unresolved)
            return found.text

        changed = msgspec.structs.replace(
            unit,
            devices=made(unit.devices) or "",
            devices_udev_regex=made(unit.devices_udev_regex),
            cpuinfo_regex=made(unit.cpuinfo_regex),
            uname_regex=made(unit.uname_regex),
        )
        if reasons:
            unresolved[unit.name] = tuple(dict.fromkeys(reasons))
        return changed


def _unit_place(unit: Unit) -> str:
    option = next(iter((*unit.settings.values(), *unit.options.values())), None)
    return f"{option.path} section {unit.name}" if option else f"a later section {unit.name}"


def _newer_or(newer: str | None, older: str | None) -> str | None:
    return older if newer is None else newer


def _with_directory(key: str, option: IniOption, directory: str) -> IniOption:
    """With the profile's own directory filled in; a script is named by its path."""
    value = option.value or ""
    value = re.sub(r"(?<!\\)\$\{i:PROFILE_DIR\}", lambda _: directory, value)
    if key == "script":
        value = os.path.normpath(os.path.join(directory, value))
    return msgspec.structs.replace(option, value=value)


def _make_unit(name: str, options: Mapping[str, IniOption]) -> Unit:
    own = {key: option for key, option in options.items() if key in SCOPE}
    said = {key: option.value or "" for key, option in own.items()}
    return Unit(
        name=name,
        type=said.get("type", name),
        enabled=said.get("enabled", "True") in _TRUE,
        replace=said.get("replace", "") in _TRUE,
        devices=said.get("devices", "*"),
        options={key: option for key, option in options.items() if key not in own},
        drop=tuple(re.split(r"\b\s*[,;]\s*", said["drop"])) if "drop" in said else (),
        devices_udev_regex=said.get("devices_udev_regex"),
        cpuinfo_regex=said.get("cpuinfo_regex"),
        uname_regex=said.get("uname_regex"),
        script_pre=said.get("script_pre"),
        script_post=said.get("script_post"),
        settings=own,
    )
