"""Profiles: named, declarative sets of wanted values, read from TOML.

A profile is data. Its values are literals with ``{parameter}`` places, or one of a closed set of computations; nothing
in it is evaluated, expanded by a shell or handed to a template engine, so a profile of an untrusted author can set a
bad value but cannot run anything. The format is described in docs/profile-format.md.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec

from advisor.errors import InvalidInputError, UsageError, near_names
from advisor.facts.clusters.llt import HIGH_WATER_MARKS
from advisor.facts.settings.value import KEY as RESERVED_PORTS
from advisor.host.files import open_given
from advisor.host.numbers import is_count
from advisor.host.origin import package_data
from advisor.host.safe_open import check_trusted
from advisor.profiles.toml_text import Place, describe_fault, line_of
from advisor.tunables.kind import Sense

MAX_PROFILE_BYTES = 256 * 1024
MAX_LINE_DOTS = 256  # tomllib takes the square of a dotted key's length: minutes for one of 200 KiB
MAX_GENERATIONS = 16
LOCAL_PROFILES = Path("/etc/advisor/profiles")
KEEP = "keep"
"""The word of a parameter by which what it is the value of stays as it is."""

FieldSense = Literal["exactly", "at-least", "at-most", "keep"]
ForEach = Literal[
    "links", "units", "irqs", "disks", "arrays", "instances", "cpfs", "shared_links", "maps", "heartbeats", "records"
]
Operator = Literal["is", "is-not", "at-least", "at-most", "exists", "count-at-least"]
# Python's $ also matches before a last newline, and \Z is not known to ECMA 262, whose patterns JSON Schema has.
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$(?!\n)")]
ParameterName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]*$(?!\n)")]
Text = Annotated[str, msgspec.Meta(min_length=1)]
_EXAMPLES = {
    "{cpf}": "/usr/irissys/iris.cpf",
    "{map}": "/etc/multipath.conf:defaults",
    "{rr_min_io}": "rr_min_io_rq",
    "{record}": "/etc/iscsi/nodes/iqn.x/192.0.2.1,3260,1/default",
}
_PLACEMENTS: Mapping[str, Literal["unit", "cpus"]] = {"units": "unit", "irqs": "cpus"}


class Parameter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A typed knob of a profile. ``minimum`` and ``maximum`` bound integers; ``choices`` words."""

    type: Literal["integer", "word", "names"]
    about: Text
    default: int | str | tuple[str, ...] | None = None
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()


class Computed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A value that is computed from the host: ``multiply`` × the value ``of``, a placement on the node found, or the
    ``huge_pages`` that hold the shared memory of every InterSystems IRIS instance. ``given`` names the parameter by
    which a person gives LLT's default, where the host does not have it. ``llt``: the reserved ports with LLT's
    own, or the MTU field of a link line that fits the link below."""

    multiply: int | str | None = None
    of: Literal["value-before-us", "llt-default"] | None = None
    given: ParameterName | None = None
    placement: Literal["unit", "cpus", "node"] | None = None
    huge_pages: Literal["iris"] | None = None
    llt: Literal["ports", "mtu"] | None = None


class Only(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Which disks, arrays, links or instances a line is for; what is not said does not matter.

    ``names`` are shell patterns, ``kinds`` as a scan has them (nvme, scsi …; md, lvm, dm-multipath; meta, storage),
    ``levels`` are those of arrays, ``models`` shell patterns for those of disks, ``drivers`` and ``min_mbps`` (Mbit/s)
    those of links. An array is rotational if one of its disks is.
    """

    names: tuple[Text, ...] = ()
    kinds: tuple[Text, ...] = ()
    levels: tuple[Text, ...] = ()
    transports: tuple[Text, ...] = ()
    models: tuple[Text, ...] = ()
    drivers: tuple[Text, ...] = ()
    min_mbps: int | None = None
    rotational: bool | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A test on the facts that must hold (``fact`` is a dotted path into the JSON of a scan), and why it must."""

    fact: Text
    op: Operator
    reason: Text
    value: int | str | bool | None = None


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """One wanted value: which tunable (``for-each`` makes one of each selected link, unit, IRQ, disk, array or
    instance), what, why. ``only`` bounds the disks, arrays, links or instances; ``condition`` is for this line alone;
    ``needs`` names a parameter without whose value the line has no sense. ``new-devices``: also for disks and links of
    the kind that appear later, by a udev rule.
    """

    tunable: Text
    value: str | Computed
    why: Text
    hurts_when: Text
    sources: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
    sense: Sense | tuple[FieldSense, ...] = "exactly"
    for_each: ForEach | None = None
    only: Only | None = None
    condition: Condition | None = None
    needs: ParameterName | None = None
    new_devices: bool = False


class ProofDeclaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """How a gain is shown: ``claims`` are workload names, ``where`` says on which path the effect can show at all.

    ``toggle`` is the class of docs/proof.md; ``network`` refuses a target that is not reached over a network;
    ``place-fio`` runs fio on the node of the target's device in arm B. ``reconnect`` says what a change of class T1
    needs to act: new connections, or the file system remounted.
    """

    toggle: Literal["T0", "T1", "T2", "T3"]
    claims: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=3)]
    where: Text
    network: bool = False
    place_fio: bool = False
    settle_seconds: Annotated[float, msgspec.Meta(ge=0, le=60)] = 0.0
    reconnect: Literal["connections", "mount"] | None = None


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A profile as its file declares it, inheritance resolved."""

    name: Name
    title: Text
    summary: Text
    helps_when: Text
    hurts_when: Text
    sources: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
    tunables: tuple[Wanted, ...] = ()
    parameters: dict[ParameterName, Parameter] = {}
    conditions: tuple[Condition, ...] = ()
    guards: tuple[Literal["socket-memory", "llt-memory"], ...] = ()
    inherits: tuple[str, ...] = ()
    proof: ProofDeclaration | None = None
    notes: str = ""
    version: int = 1


_CHOICES: Mapping[str, tuple[str, ...]] = {
    "sense": get_args(Sense),
    "for-each": get_args(ForEach),
    "op": get_args(Operator),
    "type": ("integer", "word", "names"),
    "toggle": ("T0", "T1", "T2", "T3"),
    "guards": ("socket-memory", "llt-memory"),
    "reconnect": ("connections", "mount"),
    "of": ("value-before-us", "llt-default"),
    "placement": ("unit", "cpus", "node"),
    "huge-pages": ("iris",),
    "llt": ("ports", "mtu"),
}
"""The words that a field takes, by its name in a file."""
_TABLES: Mapping[str, type[msgspec.Struct]] = {
    "tunables": Wanted,
    "parameters": Parameter,
    "conditions": Condition,
    "condition": Condition,
    "proof": ProofDeclaration,
    "only": Only,
    "value": Computed,
}


def shipped_directory() -> Path:
    """Where the profiles of this installation lie: inside the package, or at the top of a checkout."""
    return package_data("profiles")


def personal_directory(home: str | None = None) -> Path:
    """Where a user's own profiles are (XDG Base Directory Specification); of another user by ``home``."""
    configured = None if home else os.environ.get("XDG_CONFIG_HOME")
    if configured and os.path.isabs(configured):
        return Path(configured, "advisor/profiles")
    return Path(home or os.path.expanduser("~"), ".config/advisor/profiles")


def profile_paths(local: Path = LOCAL_PROFILES) -> dict[str, Path]:
    """Name → file of every profile. A local one hides a shipped one of the same name; a user's own hides none, so that
    root applies what the user has planned."""
    found = {}
    for directory in (personal_directory(), shipped_directory(), local):
        # sudo may have left the home of a user whose directories this one cannot read.
        if os.access(directory, os.R_OK | os.X_OK):
            found.update({path.stem: path for path in sorted(directory.glob("*.toml"))})
    return dict(sorted(found.items()))


def load(name: str, paths: Mapping[str, Path] | None = None, *, only_trusted: bool = False) -> Profile:
    """The profile of this name; ``only_trusted`` as `load_file` has it.

    Raises UsageError where there is none, InvalidInputError where its file is broken, RefusedError.
    """
    read = _read_trusted if only_trusted else read_profile
    return _resolve_parents(name, profile_paths() if paths is None else paths, (), {}, read)


def _read_trusted(path: Path) -> Profile:
    """A profile that root acts upon: from the library, or from a file that only root or this user can write to."""
    return read_profile(path, only_trusted=path.parent not in (shipped_directory(), LOCAL_PROFILES))


def _resolve_parents(
    name: str,
    paths: Mapping[str, Path],
    heirs: tuple[str, ...],
    known: dict[str, Profile],
    read: Callable[[Path], Profile],
) -> Profile:
    """``known`` keeps each profile that is resolved: where all inherit from several, there are endless ways to one."""
    if name in known:
        return known[name]
    if name not in paths:
        message = f"there is no profile {name!r}"
        if heirs:
            message = f"{paths[heirs[-1]]}: field inherits: there is no profile {name!r}"
        raise UsageError(message, hint=_similar_names(name, paths))
    if name in heirs:
        raise InvalidInputError(f"{paths[name]}: inherits from itself: {' → '.join((*heirs, name))}")
    if len(heirs) >= MAX_GENERATIONS:
        raise InvalidInputError(f"{paths[heirs[0]]}: inherits over more than {MAX_GENERATIONS} generations")
    profile = read(paths[name])
    path = paths[name]
    if profile.name != name:
        raise InvalidInputError(
            f"{path}: name is {profile.name!r}, the file name says {name!r}",
            hint=f'name = "{name}" in it, or the file name {profile.name}.toml',
        )
    for parent in dict.fromkeys(reversed(profile.inherits)):
        profile = _merge_parent(profile, _resolve_parents(parent, paths, (*heirs, name), known, read))
    if profile.inherits:
        try:
            _check_profile(profile, is_whole=True)
        except ProfileFieldError as error:
            raise error.with_place(f"{paths[name]} with what it inherits") from error
    known[name] = profile
    return profile


def _similar_names(name: str, paths: Mapping[str, Path]) -> str:
    # What a user has planned and root is to apply.
    user = os.environ.get("SUDO_USER")
    own = personal_directory(os.path.expanduser(f"~{user}")) / f"{name}.toml" if user else None
    if own is not None and re.fullmatch(r"[a-z0-9-]+", name) and own.is_file():
        return f"to let root use it: install -D -m 644 {own} {LOCAL_PROFILES / own.name}"
    close = near_names(name, paths)
    if close:
        return f"did you mean {', '.join(close)}?"
    return f"profiles: {', '.join(paths) or '-'}"


def _merge_parent(child: Profile, parent: Profile) -> Profile:
    """The child with what only its parent says; what the child says about the same tunable or parameter stands."""
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


def read_profile(path: Path, *, only_trusted: bool = False) -> Profile:
    """One file, inheritance not yet resolved. Raises InvalidInputError naming file, line and field.

    With ``only_trusted``, RefusedError for a file that anybody but root and this user could have written.
    """
    try:
        with open_given(path) as file:
            if only_trusted:
                check_trusted(file.fileno(), str(path))
            data = file.read(MAX_PROFILE_BYTES + 1)
    except FileNotFoundError as error:
        raise InvalidInputError(
            f"{path}: {error.strerror}", hint="advisor profiles list names those of the library"
        ) from error
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror}") from error
    if len(data) > MAX_PROFILE_BYTES:
        raise InvalidInputError(f"{path}: larger than {MAX_PROFILE_BYTES // 1024} KiB")
    return _parse_once(data, str(path))


class ProfileFieldError(Exception):
    """What is wrong with a field, ``path`` as `advisor.profiles.toml_text` has it."""

    def __init__(self, path: Place, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.message = message
        self.hint = hint

    def with_place(self, where: str, text: str | None = None) -> InvalidInputError:
        """The error for the user; ``text`` is that of the file, where the fault lies in one."""
        line = line_of(text, self.path) if text is not None and self.path else None
        place = f"{where}: line {line}" if line else where
        field = f"field {_field_words(self.path)}: " if self.path else ""
        return InvalidInputError(f"{place}: {field}{self.message}", hint=self.hint)


def parse_profile(data: bytes, where: str) -> Profile:
    """A profile from the bytes of its file; ``where`` is named in errors."""
    deep = next((n for n, line in enumerate(data.split(b"\n"), 1) if line.count(b".") > MAX_LINE_DOTS), None)
    if deep is not None:
        raise InvalidInputError(f"{where}: line {deep}: nested too deeply")
    try:
        text = data.decode("utf-8")
        profile = _convert_document(tomllib.loads(text))
        _check_profile(profile, is_whole=not profile.inherits)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInputError(f"{where}: line {line}: not UTF-8 at byte {error.start}") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(
            f"{where}: {_with_line(str(error), data)}", hint="the file is not valid TOML"
        ) from error
    except ProfileFieldError as error:
        raise error.with_place(where, text) from error
    except RecursionError as error:
        raise InvalidInputError(f"{where}: line {_deepest_line(data)}: nested too deeply") from error
    except ValueError as error:
        # A number of thousands of digits: tomllib lets int() speak.
        lines = enumerate(data.split(b"\n"), 1)
        line = next((number for number, text in lines if re.search(rb"[0-9_]{4300}", text)), 1)
        raise InvalidInputError(f"{where}: line {line}: {error}") from error
    return profile


def _with_line(message: str, data: bytes) -> str:
    found = re.search(r"\(at (?:line ([0-9]+), column [0-9]+|end of document)\)", message)
    if not found:
        return message
    line = found[1] or data.rstrip(b"\n").count(b"\n") + 1
    return f"line {line}: {message[: found.start()].strip()}"


def _deepest_line(data: bytes) -> int:
    """The line with most brackets open, those in strings and comments counted too."""
    depth, deepest, found = 0, 0, 1
    for number, line in enumerate(data.split(b"\n"), 1):
        depth += sum(map(line.count, (b"[", b"{")))
        if depth > deepest:
            deepest, found = depth, number
        depth -= sum(map(line.count, (b"]", b"}")))
    return found


def _convert_document(document: dict[str, object]) -> Profile:
    try:
        return msgspec.convert(document, Profile)
    except msgspec.ValidationError as error:
        words, _, place = str(error).partition(" - at `")
        # The keys and indices of a place as msgspec writes it: `$.parameters[...].type` and such like.
        found = []
        for key, index in re.findall(r"\.([\w-]+)|\[([0-9]+|\.\.\.)\]", place.partition("$")[2]):
            found.append(key if key else int(index) if is_count(index) else "")
        if place.startswith("key`"):
            found.append("")
        # It does not say which: only the parameters have names of the author's choice.
        path = tuple(_faulty_parameter(document) if part == "" else part for part in found)
        unknown = re.fullmatch(r"Object contains unknown field `(.*)`", words, re.DOTALL)
        field = (*path, unknown[1]) if unknown else path
        leaf = next((part for part in reversed(field) if isinstance(part, str)), "")
        text, hint = describe_fault(words, choices=_CHOICES.get(leaf, ()), fields=_fields_at(path))
        raise ProfileFieldError(field, text, hint) from error


# `recommend` asks for every profile of the library several times.
_parse_once = lru_cache(maxsize=64)(parse_profile)


def _fields_at(path: Place) -> tuple[str, ...]:
    names = [part for part in path if isinstance(part, str)]
    record = _TABLES.get(names[0]) if names else Profile
    record = _TABLES.get(names[-1], record) if len(names) > 1 else record
    return () if record is None else tuple(field.encode_name for field in msgspec.structs.fields(record))


def _faulty_parameter(document: Mapping[str, object]) -> str:
    parameters = document["parameters"]
    assert isinstance(parameters, dict)
    for name, parameter in parameters.items():
        try:
            msgspec.convert({name: parameter}, dict[ParameterName, Parameter])
        except msgspec.ValidationError:
            return str(name)
    raise AssertionError("one of them was refused")


def _field_words(path: Place) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _check_profile(profile: Profile, *, is_whole: bool) -> None:
    """What the types cannot say; places only once the profile is whole. Raises ProfileFieldError."""
    for name, parameter in profile.parameters.items():
        _check_parameter(name, parameter)
    for number, condition in enumerate(profile.conditions):
        _check_condition(condition, ("conditions", number, "value"))
    if profile.proof is not None:
        proof = profile.proof
        if proof.reconnect is not None and proof.toggle != "T1":
            raise ProfileFieldError(
                ("proof", "reconnect"), f"only a change of class T1 needs it, not one of {proof.toggle}"
            )
    seen = set()
    for number, wanted in enumerate(profile.tunables):
        field = ("tunables", number)
        if (wanted.tunable, wanted.only) in seen:
            raise ProfileFieldError((*field, "tunable"), f"{wanted.tunable} is set by an earlier one already")
        seen.add((wanted.tunable, wanted.only))
        from advisor.tunables import parse_tunable

        if wanted.for_each and not re.fullmatch(_EACH[wanted.for_each], wanted.tunable):
            shape = _SHAPES.get(wanted.for_each) or _EACH[wanted.for_each].replace("\\", "")
            raise ProfileFieldError((*field, "tunable"), f"for-each {wanted.for_each} is for {shape}")
        if wanted.only is not None:
            _check_only(wanted, wanted.only, (*field, "only"))
        if wanted.condition is not None:
            _check_condition(wanted.condition, (*field, "condition", "value"))
        if is_whole:
            _check_places(wanted, profile.parameters, field)
        # What an heir's or a parent's parameter fills is not known yet.
        if is_whole or not set(_places(wanted.tunable)) - profile.parameters.keys():
            try:
                parse_tunable(example_id(wanted.tunable))
            except UsageError as error:
                raise ProfileFieldError((*field, "tunable"), error.message, error.hint) from error
        if is_whole and wanted.needs is not None and wanted.needs not in profile.parameters:
            raise ProfileFieldError((*field, "needs"), f"{wanted.needs} is no parameter of this profile")
        if is_whole:
            _check_value(wanted, profile.parameters, field)


def _places(template: str) -> list[str]:
    return re.findall(r"\{(\w*)\}", template)


def _check_places(wanted: Wanted, parameters: Mapping[str, Parameter], field: Place) -> None:
    value = wanted.value.multiply if isinstance(wanted.value, Computed) else wanted.value
    for place in _places(f"{wanted.tunable} {value}"):
        if wanted.for_each and (place == wanted.for_each[:-1] or place in _FILLED.get(wanted.for_each, ())):
            continue
        if place not in parameters:
            each = next((one for one in get_args(ForEach) if one[:-1] == place), None)
            hint = f'for-each = "{each}" fills {{{place}}}' if each else None
            raise ProfileFieldError(field, f"{{{place}}} is neither a parameter nor what for-each selects", hint)
        if parameters[place].type == "names":
            raise ProfileFieldError(field, f"{{{place}}} is a list of names, which is no part of a value")


def _check_parameter(name: str, parameter: Parameter) -> None:
    field = ("parameters", name)
    if name in {"links", "units", "disks", "arrays", "cpfs"} and parameter.type != "names":
        raise ProfileFieldError((*field, "type"), f"{name} selects what for-each goes over, so it is of type names")
    low, high = parameter.minimum, parameter.maximum
    if low is not None and high is not None and low > high:
        raise ProfileFieldError((*field, "minimum"), f"{low} is more than the maximum, {high}")
    try:
        _checked(parameter, parameter.default, "default")
    except UsageError as error:
        raise ProfileFieldError((*field, "default"), error.message.removeprefix("default: ")) from error


def _check_condition(condition: Condition, field: Place) -> None:
    # bool is an int to Python.
    if condition.op.endswith(("at-least", "at-most")) and type(condition.value) is not int:
        raise ProfileFieldError(field, f"{condition.op} needs a whole number")


def example_id(identity: str) -> str:
    """An id of the same form, in which every place is filled."""
    for place, example in _EXAMPLES.items():
        identity = identity.replace(place, example)
    filled = re.sub(r"\{\w+\}", "1", identity)
    filled = filled.replace("unit:1:", "unit:1.service:")
    return filled.replace("file:1:", "file:/etc/beegfs/1.d/beegfs-storage.conf:")


def _check_only(wanted: Wanted, only: Only, field: Place) -> None:
    if wanted.for_each not in _BOUNDED:
        raise ProfileFieldError(field, f"it bounds what for-each goes over: {' or '.join(_BOUNDED)}")
    for foreign in _FOREIGN[wanted.for_each]:
        if getattr(only, foreign) not in ((), None):
            raise ProfileFieldError((*field, foreign.replace("_", "-")), f"{wanted.for_each} have none")
    if only == Only():
        raise ProfileFieldError(field, "says nothing")


def _check_value(wanted: Wanted, parameters: Mapping[str, Parameter], field: Place) -> None:
    value, placement = wanted.value, _PLACEMENTS.get(wanted.for_each or "")
    at = (*field, "value")
    if placement and value != Computed(placement=placement):
        raise ProfileFieldError(at, f'for-each {wanted.for_each} computes it: {{ placement = "{placement}" }}')
    is_node = wanted.for_each == "instances" and value == Computed(placement="node")
    is_pages = wanted.tunable == "sysctl:vm.nr_hugepages" and value == Computed(huge_pages="iris")
    is_ports = wanted.tunable == f"sysctl:{RESERVED_PORTS}" and value == Computed(llt="ports")
    if wanted.for_each == "heartbeats" and value != Computed(llt="mtu"):
        raise ProfileFieldError(at, 'for-each heartbeats computes it: { llt = "mtu" }')
    is_computed = is_node or is_pages or is_ports or wanted.for_each == "heartbeats"
    if isinstance(value, Computed) and not placement and not is_computed:
        is_product = value.of and value.multiply is not None and not (value.placement or value.huge_pages or value.llt)
        is_product = is_product and (wanted.for_each in (None, "disks", "arrays") or _is_link_setting(wanted))
        if not is_product or not _is_number(str(value.multiply), parameters):
            raise ProfileFieldError(at, 'write { multiply = NUMBER, of = "value-before-us" }')
        is_mark = wanted.tunable.removeprefix("llt:") in HIGH_WATER_MARKS
        if value.of == "llt-default" and not is_mark:
            marks = " and ".join(f"llt:{name}" for name in HIGH_WATER_MARKS)
            raise ProfileFieldError((*at, "of"), f"llt-default is the default of {marks}")
        parameter = parameters.get(value.given) if value.given else None
        if value.given and (value.of != "llt-default" or parameter is None or parameter.type != "integer"):
            raise ProfileFieldError((*at, "given"), "it names the integer parameter that says what llt-default is")
    if _is_link_setting(wanted):
        # A value without places must be one of its kind on any host.
        from advisor.tunables import parse_tunable

        if isinstance(wanted.value, str) and "{" not in wanted.value:
            wrong = parse_tunable(example_id(wanted.tunable)).check_value(wanted.value)
            if wrong:
                raise ProfileFieldError(at, f"{wanted.value!r} {wrong}")
    elif wanted.for_each == "links" and not _is_number(str(value), parameters):
        raise ProfileFieldError(at, "an MTU is a whole number, or the place of a parameter that is one")
    if isinstance(wanted.sense, tuple) and (not isinstance(value, str) or len(wanted.sense) != len(value.split())):
        raise ProfileFieldError((*field, "sense"), "one is needed for each field of the value")


def _is_link_setting(wanted: Wanted) -> bool:
    """Whether it sets something of links whose value does not depend on how they are stacked."""
    return wanted.for_each == "links" and not wanted.tunable.endswith(":mtu")


def _is_number(text: str, parameters: Mapping[str, Parameter]) -> bool:
    place = re.fullmatch(r"\{(\w+)\}", text)
    return parameters[place[1]].type == "integer" if place else bool(re.fullmatch(r"[0-9]{1,9}", text))


_EACH = {
    "links": r"link:\{link\}:[a-z0-9_.-]+",
    "units": r"unit:\{unit\}:numa",
    "irqs": r"irq:\{irq\}:affinity",
    "disks": r"block:\{disk\}:[a-z_]+",
    "arrays": r"(block|md):\{array\}:[a-z_]+",
    "instances": r"file:\{instance\}:(tune|conn)\w+",
    "cpfs": r"file:\{cpf\}:config/\w+",
    "heartbeats": r"file:/etc/llttab:link\.\{heartbeat\}\.mtu",
    "records": r"file:\{record\}:node\.(session|conn\[0\])\.[A-Za-z][\w.]*",
    "maps": r"file:\{map\}/(path_selector|rr_min_io_rq|\{rr_min_io\})",
    "shared_links": r"sysctl:net\.ipv4\.conf\.\{shared_link\}\.(arp_announce|arp_filter|arp_ignore|rp_filter)",
}
_FILLED = {"maps": ("rr_min_io",)}
"""Places that for-each fills besides its own: the key by which the kernel counts."""
_SHAPES = {
    "links": "link:{link}:mtu, or another setting of a link",
    "shared_links": "sysctl:net.ipv4.conf.{shared_link}.arp_ignore, arp_announce, arp_filter or rp_filter",
}
_BOUNDED = ("disks", "arrays", "links", "instances")
_FOREIGN = {
    "disks": ("levels", "drivers", "min_mbps"),
    "arrays": ("transports", "models", "drivers", "min_mbps"),
    "links": ("levels", "transports", "models", "rotational", "min_bytes", "max_bytes"),
    "instances": (
        *("names", "levels", "transports", "models", "rotational", "min_bytes", "max_bytes"),
        *("drivers", "min_mbps"),
    ),
}

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
    if "links" in settings and not settings["links"].replace(",", "").strip():
        raise UsageError("--set links: no link is named", hint="name links with --set links=LINK,…, or leave it out")
    return {
        name: _checked(parameter, settings.get(name, parameter.default), f"--set {name}")
        for name, parameter in sorted(profile.parameters.items())
    }


def _checked(parameter: Parameter, value: Value, where: str) -> Value:
    if value is None:
        return None
    if parameter.type == "integer":
        return _parse_integer(parameter, value, where)
    if parameter.type == "names":
        if isinstance(value, str):
            value = tuple(value.split(","))
        if not isinstance(value, tuple):
            raise UsageError(f"{where}: {value!r} is not a list of names")
        return tuple(name.strip() for name in value if name.strip())
    if not isinstance(value, str):
        raise UsageError(f"{where}: {value!r} is not a word")
    if parameter.choices and value not in parameter.choices:
        raise UsageError(f"{where}: {value[:80]!r} is not one of {', '.join(parameter.choices)}")
    return value


def _parse_integer(parameter: Parameter, value: object, where: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,40}", str(value).strip()):
        raise UsageError(f"{where}: {str(value)[:40]!r} is not a whole number", hint="digits alone, without a unit")
    number = int(str(value))
    low, high = parameter.minimum, parameter.maximum
    if (low is not None and number < low) or (high is not None and number > high):
        allowed = f"{'' if low is None else low}..{'' if high is None else high}"
        raise UsageError(f"{where}: {number} is outside the allowed range {allowed}")
    return number


def load_file(path: Path, *, only_trusted: bool = False) -> Profile:
    """The profile of a file; what it inherits is looked up in the same directory and in the library.

    With ``only_trusted``, RefusedError for a file outside of the library that others could have written. Raises
    UsageError, InvalidInputError.
    """
    read = _read_trusted if only_trusted else read_profile
    return _resolve_parents(path.stem, _paths_around(path), (), {}, read)


def read_profile_files(path: Path) -> dict[str, bytes]:
    """The text of a profile's file and of those that it inherits from, as they are now, by name: side by side in any
    directory they are the same profile. Raises UsageError, InvalidInputError."""
    found = {}

    def read(place: Path) -> Profile:
        with open_given(place) as file:
            found[place.stem] = file.read(MAX_PROFILE_BYTES + 1)
        # Judged by what was read: a file that is replaced meanwhile is not another profile.
        return parse_profile(found[place.stem], str(place))

    try:
        _resolve_parents(path.stem, _paths_around(path), (), {}, read)
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror}") from error
    return found


def _paths_around(path: Path) -> dict[str, Path]:
    """Where a profile file finds what it inherits: in its directory, then in the library."""
    return {**profile_paths(), **{one.stem: one for one in sorted(path.parent.glob("*.toml"))}, path.stem: path}
