"""Profiles: named, declarative sets of wanted values, read from TOML.

A profile is data. Its values are literals with ``{parameter}`` places, or one of a closed set of computations; nothing
in it is evaluated, expanded by a shell or handed to a template engine, so a profile of an untrusted author can set a
bad value but cannot run anything. The format is described in docs/profile-format.md.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from advisor.errors import InvalidInputError, UsageError
from advisor.tunables.tunable import Sense

MAX_PROFILE_BYTES: Final = 256 * 1024
MAX_LINE_DOTS: Final = 256  # tomllib takes the square of a dotted key's length: minutes for one of 200 KiB
LOCAL_PROFILES: Final = Path("/etc/advisor/profiles")

FieldSense = Literal["exactly", "at-least", "at-most", "keep"]
ForEach = Literal["links", "units", "irqs"]
Operator = Literal["is", "is-not", "at-least", "at-most", "exists", "count-at-least"]
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,62}\Z")]
Text = Annotated[str, msgspec.Meta(min_length=1)]


class Parameter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A typed knob of a profile. ``minimum`` and ``maximum`` bound integers; ``choices`` words."""

    type: Literal["integer", "word", "names"]
    about: Text
    default: int | str | tuple[str, ...] | None = None
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()


class Computed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A value that is computed from the host: ``multiply`` × the value ``of``, or a placement on the node found."""

    multiply: int | str | None = None
    of: Literal["value-before-us"] | None = None
    placement: Literal["unit", "cpus"] | None = None


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """One wanted value: which tunable (``for-each`` makes one of each selected link, unit or IRQ), what, why."""

    tunable: Text
    value: str | Computed
    why: Text
    hurts_when: Text
    sources: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
    sense: Sense | tuple[FieldSense, ...] = "exactly"
    for_each: ForEach | None = None


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A test on the facts that must hold (``fact`` is a dotted path into the JSON of a scan), and why it must."""

    fact: Text
    op: Operator
    reason: Text
    value: int | str | bool | None = None


class Proof(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """How a gain is shown: ``claims`` are workload names, ``where`` says on which path the effect can show at all.

    ``toggle`` is the class of docs/proof.md; ``network`` refuses a target that is not reached over a network;
    ``place-fio`` runs fio on the node of the target's device in arm B.
    """

    toggle: Literal["T0", "T1", "T2", "T3"]
    claims: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=3)]
    where: Text
    network: bool = False
    place_fio: bool = False
    settle_seconds: Annotated[float, msgspec.Meta(ge=0, le=60)] = 0.0


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A profile as its file declares it, inheritance resolved."""

    name: Name
    title: Text
    summary: Text
    helps_when: Text
    hurts_when: Text
    sources: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
    tunables: tuple[Wanted, ...] = ()
    parameters: dict[Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]*\Z")], Parameter] = {}
    conditions: tuple[Condition, ...] = ()
    guards: tuple[Literal["socket-memory", "llt-memory"], ...] = ()
    inherits: tuple[str, ...] = ()
    proof: Proof | None = None
    notes: str = ""
    version: int = 1


def shipped_directory() -> Path:
    """Where the profiles of this installation lie: inside the package, or at the top of a checkout."""
    packaged = Path(__file__).parent / "_data" / "profiles"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "profiles"


def profile_paths(local: Path = LOCAL_PROFILES) -> dict[str, Path]:
    """Name → file of every profile; a local one hides a shipped one of the same name."""
    found: dict[str, Path] = {}
    for directory in (shipped_directory(), local):
        if directory.is_dir():
            found.update({path.stem: path for path in sorted(directory.glob("*.toml"))})
    return dict(sorted(found.items()))


def load(name: str, paths: Mapping[str, Path] | None = None) -> Profile:
    """The profile of this name. Raises UsageError where there is none, InvalidInputError where its file is broken."""
    return _resolved(name, profile_paths() if paths is None else paths, ())


def _resolved(name: str, paths: Mapping[str, Path], heirs: tuple[str, ...]) -> Profile:
    if name not in paths:
        where = f" (inherited by {heirs[-1]})" if heirs else ""
        raise UsageError(f"there is no profile {name!r}{where}", hint=_suggestion(name, paths))
    if name in heirs:
        raise InvalidInputError(f"{paths[name]}: inherits from itself: {' → '.join((*heirs, name))}")
    profile = read_profile(paths[name])
    _check_file_name(profile, name, paths[name])
    for parent in reversed(profile.inherits):
        profile = _inherit(profile, _resolved(parent, paths, (*heirs, name)))
    if profile.inherits:
        _check(profile, f"{paths[name]} with what it inherits", is_whole=True)
    return profile


def _suggestion(name: str, paths: Mapping[str, Path]) -> str:
    import difflib

    close = difflib.get_close_matches(name, paths, n=1)
    return f"did you mean {close[0]}?" if close else f"profiles: {', '.join(paths) or 'none'}"


def _inherit(child: Profile, parent: Profile) -> Profile:
    """The child with what only its parent says; what the child says of the same tunable or parameter stands."""
    own = {wanted.tunable for wanted in child.tunables}
    tunables = (*(wanted for wanted in parent.tunables if wanted.tunable not in own), *child.tunables)
    return msgspec.structs.replace(
        child,
        tunables=tunables,
        parameters={**parent.parameters, **child.parameters},
        conditions=(*parent.conditions, *(one for one in child.conditions if one not in parent.conditions)),
        guards=tuple(dict.fromkeys((*parent.guards, *child.guards))),
        proof=child.proof or parent.proof,
    )


def read_profile(path: Path) -> Profile:
    """One file, inheritance not yet resolved. Raises InvalidInputError naming file and line, or file and field."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_PROFILE_BYTES + 1)
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror}") from error
    if len(data) > MAX_PROFILE_BYTES:
        raise InvalidInputError(f"{path}: larger than {MAX_PROFILE_BYTES // 1024} KiB")
    return parse_profile(data, str(path))


def parse_profile(data: bytes, where: str) -> Profile:
    """A profile from the bytes of its file; ``where`` is named in errors."""
    deep = next((n for n, line in enumerate(data.split(b"\n"), 1) if line.count(b".") > MAX_LINE_DOTS), None)
    if deep is not None:
        raise InvalidInputError(f"{where}: line {deep}: nested too deeply")
    try:
        document = tomllib.loads(data.decode("utf-8"))
        profile = msgspec.convert(document, Profile)
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{where}: not UTF-8 at byte {error.start}") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(
            f"{where}: {_with_line(str(error), data)}", hint="the file is not valid TOML"
        ) from error
    except msgspec.ValidationError as error:
        raise InvalidInputError(f"{where}: {_field_words(str(error))}") from error
    except RecursionError as error:
        raise InvalidInputError(f"{where}: nested too deeply") from error
    except ValueError as error:
        # A number of thousands of digits: tomllib lets int() speak.
        raise InvalidInputError(f"{where}: {error}") from error
    _check(profile, where, is_whole=not profile.inherits)
    return profile


def _with_line(message: str, data: bytes) -> str:
    found = re.search(r"\(at (?:line (\d+), column \d+|end of document)\)", message)
    if not found:
        return message
    line = found[1] or data.rstrip(b"\n").count(b"\n") + 1
    return f"line {line}: {message[: found.start()].strip()}"


def _field_words(message: str) -> str:
    found = re.fullmatch(r"(.*) - at `\$\.?(.*)`", message)
    return f"field {found[2]}: {found[1]}" if found and found[2] else message


def _check(profile: Profile, where: str, *, is_whole: bool) -> None:
    """What the types cannot say; places only once the profile is whole. Raises InvalidInputError."""
    for name, parameter in profile.parameters.items():
        _check_parameter(name, parameter, f"{where}: field parameters.{name}")
    for number, condition in enumerate(profile.conditions):
        # bool is an int to Python.
        if condition.op.endswith(("at-least", "at-most")) and type(condition.value) is not int:
            raise InvalidInputError(f"{where}: field conditions[{number}].value: {condition.op} needs a whole number")
    seen: set[str] = set()
    for number, wanted in enumerate(profile.tunables):
        field = f"{where}: field tunables[{number}]"
        if wanted.tunable in seen:
            raise InvalidInputError(f"{field}.tunable: {wanted.tunable} is set by an earlier one already")
        seen.add(wanted.tunable)
        _check_tunable(wanted, field)
        if is_whole:
            _check_places(wanted, profile.parameters, field)
            _check_value(wanted, profile.parameters, field)


def _check_parameter(name: str, parameter: Parameter, field: str) -> None:
    if name in _SELECTING and parameter.type != "names":
        raise InvalidInputError(f"{field}.type: {name} selects what for-each goes over, so it is of type names")
    try:
        _checked(parameter, parameter.default, f"{field}.default")
    except UsageError as error:
        raise InvalidInputError(error.message) from error


def _check_tunable(wanted: Wanted, field: str) -> None:
    from advisor.tunables import tunable

    if wanted.for_each and wanted.tunable != _EACH[wanted.for_each]:
        raise InvalidInputError(f"{field}.tunable: for-each {wanted.for_each} is for {_EACH[wanted.for_each]}")
    try:
        tunable(re.sub(r"\{\w+\}", "1", wanted.tunable).replace("unit:1:", "unit:1.service:"))
    except UsageError as error:
        raise InvalidInputError(f"{field}.tunable: {error.message}", hint=error.hint) from error


def _check_places(wanted: Wanted, parameters: Mapping[str, Parameter], field: str) -> None:
    value = wanted.value.multiply if isinstance(wanted.value, Computed) else wanted.value
    for place in re.findall(r"\{(\w*)\}", f"{wanted.tunable} {value}"):
        if wanted.for_each and place == wanted.for_each[:-1]:
            continue
        if place not in parameters:
            raise InvalidInputError(f"{field}: {{{place}}} is neither a parameter nor what for-each selects")
        if parameters[place].type == "names":
            raise InvalidInputError(f"{field}: {{{place}}} is a list of names, which is no part of a value")


def _check_value(wanted: Wanted, parameters: Mapping[str, Parameter], field: str) -> None:
    value, placement = wanted.value, _PLACEMENTS.get(wanted.for_each or "")
    if placement and value != Computed(placement=placement):
        raise InvalidInputError(
            f'{field}.value: for-each {wanted.for_each} computes it: {{ placement = "{placement}" }}'
        )
    if isinstance(value, Computed) and not placement:
        is_product = value.of and value.multiply is not None and not value.placement and not wanted.for_each
        if not is_product or not _is_number(str(value.multiply), parameters):
            raise InvalidInputError(f'{field}.value: write {{ multiply = NUMBER, of = "value-before-us" }}')
    if wanted.for_each == "links" and not _is_number(str(value), parameters):
        raise InvalidInputError(f"{field}.value: an MTU is a whole number, or the place of a parameter that is one")
    if isinstance(wanted.sense, tuple) and (not isinstance(value, str) or len(wanted.sense) != len(value.split())):
        raise InvalidInputError(f"{field}.sense: one is needed for each field of the value")


def _is_number(text: str, parameters: Mapping[str, Parameter]) -> bool:
    place = re.fullmatch(r"\{(\w+)\}", text)
    return parameters[place[1]].type == "integer" if place else bool(re.fullmatch(r"[0-9]{1,9}", text))


_EACH: Final[Mapping[str, str]] = {
    "links": "link:{link}:mtu",
    "units": "unit:{unit}:numa",
    "irqs": "irq:{irq}:affinity",
}
_PLACEMENTS: Final[Mapping[str, Literal["unit", "cpus"]]] = {"units": "unit", "irqs": "cpus"}
_SELECTING: Final = frozenset({"links", "units"})

Value = int | str | tuple[str, ...] | None
Values = Mapping[str, Value]


def parameter_values(profile: Profile, settings: Mapping[str, str]) -> Values:
    """The value of every parameter: ``settings`` (from ``--set K=V``) over the defaults.

    Raises UsageError for a name that the profile does not have or a value outside its range, naming the range.
    """
    for name in settings:
        if name not in profile.parameters:
            known = ", ".join(f"{key}=" for key in sorted(profile.parameters)) or "it has none"
            raise UsageError(f"profile {profile.name} has no parameter {name!r}", hint=f"parameters: {known}")
    return {
        name: _checked(parameter, settings.get(name, parameter.default), f"--set {name}")
        for name, parameter in sorted(profile.parameters.items())
    }


def _checked(parameter: Parameter, value: Value, where: str) -> Value:
    if value is None:
        return None
    if parameter.type == "integer":
        return _integer(parameter, value, where)
    if parameter.type == "names":
        return _names(value, where)
    if not isinstance(value, str):
        raise UsageError(f"{where}: {value!r} is not a word")
    if parameter.choices and value not in parameter.choices:
        raise UsageError(f"{where}: {value[:80]!r} is not one of {', '.join(parameter.choices)}")
    return value


def _names(value: Value, where: str) -> tuple[str, ...]:
    if isinstance(value, str):
        value = tuple(value.split(","))
    if not isinstance(value, tuple):
        raise UsageError(f"{where}: {value!r} is not a list of names")
    return tuple(name.strip() for name in value if name.strip())


def _integer(parameter: Parameter, value: object, where: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,40}", str(value).strip()):
        raise UsageError(f"{where}: {str(value)[:40]!r} is not a whole number")
    number = int(str(value))
    low, high = parameter.minimum, parameter.maximum
    if (low is not None and number < low) or (high is not None and number > high):
        allowed = f"{'' if low is None else low}..{'' if high is None else high}"
        raise UsageError(f"{where}: {number} is outside the allowed range {allowed}")
    return number


def lint_profile(path: Path) -> Profile:
    """A profile file checked whole, its parents looked up beside it and in the library. Raises InvalidInputError."""
    profile = read_profile(path)
    _check_file_name(profile, path.stem, path)
    around = {one.stem: one for one in sorted(path.parent.glob("*.toml"))}
    return _resolved(profile.name, {**profile_paths(), **around, profile.name: path}, ())


def _check_file_name(profile: Profile, name: str, path: Path) -> None:
    if profile.name != name:
        raise InvalidInputError(f"{path}: name is {profile.name!r}, the file name says {name!r}")
