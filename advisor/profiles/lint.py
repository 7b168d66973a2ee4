"""What can be known of a profile without a host: facts that no scan has, values that no host takes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from advisor.errors import UsageError, near_names
from advisor.facts.host_facts import Facts
from advisor.facts.record_types import field_types
from advisor.facts.system.roles import NFS_CLIENT, ROLES
from advisor.host.patterns import lazy_regex
from advisor.profiles.profile import (
    KEEP,
    Condition,
    Parameter,
    Profile,
    ProfileFieldError,
    Wanted,
    example_id,
    load_file,
    parse_profile,
    read_profile_files,
)
from advisor.profiles.toml_text import Place, toml_pairs
from advisor.tunables import parse_tunable

FactForm = Literal["number", "text", "truth", "list", "table", "record"]


def _walk(record: type, start: str) -> Iterator[tuple[str, FactForm]]:
    for name, kind in field_types(record).items():
        form, inner = _form_of(kind)
        yield f"{start}{name}", form
        if inner is not None:
            yield from _walk(inner, f"{start}{name}.")


def _form_of(kind: Any) -> tuple[FactForm, type | None]:
    """Return the form of a field, and the record whose fields it has."""
    origin = get_origin(kind) or kind
    if origin in (Union, UnionType):
        return _form_of(next(part for part in get_args(kind) if part is not NoneType))
    if origin in (Literal, str):
        return "text", None
    if issubclass(origin, msgspec.Struct):
        return "record", origin
    if issubclass(origin, Mapping):
        return "table", None
    if issubclass(origin, bool):
        return "truth", None
    return ("number", None) if issubclass(origin, int | float) else ("list", None)


FACT_FORMS = dict(_walk(Facts, ""))
"""By dotted path. No path leads into a list; any key leads into a table."""


_ALWAYS_UNMET = {
    **dict.fromkeys(("at-least", "at-most"), ("text", "truth", "list", "table", "record")),
    **dict.fromkeys(("is", "is-not"), ("list", "table", "record")),
    "count-at-least": ("number", "text", "truth", "record"),
}
_TYPES = {"number": int, "text": str, "truth": bool}
_READ_BY_NAME = ("mtu", "policy", "role", "selector")
"""Parameters by which for-each computes what it fills in."""
_NOUNS = {
    "number": "a number",
    "text": "a text",
    "truth": "true or false",
    "list": "a list",
    "table": "a table",
    "record": "a record",
}


def lint_profile(path: Path) -> Profile:
    """A profile file checked whole, its parents looked up in its directory and in the library; of what it inherits,
    the parents' own files say whether it is right. Raises InvalidInputError, UsageError."""
    whole = load_file(path)
    text = read_profile_files(path)[path.stem]
    own = parse_profile(text, str(path))
    try:
        for number, condition in enumerate(own.conditions):
            _lint_condition(condition, ("conditions", number))
        for number, wanted in enumerate(own.tunables):
            if wanted.condition is not None:
                _lint_condition(wanted.condition, ("tunables", number, "condition"))
            if isinstance(wanted.value, str):
                _lint_value(wanted, wanted.value, whole.parameters, ("tunables", number))
        for name in own.parameters:
            _lint_use(name, whole)
    except ProfileFieldError as error:
        raise error.with_place(str(path), text.decode()) from error
    return whole


def _lint_condition(condition: Condition, field: Place) -> None:
    fact, op, value = condition.fact, condition.op, condition.value
    form = form_of_fact(fact)
    if form is None:
        close = near_names(fact, (*FACT_FORMS, *(f"roles.{role}" for role in (*ROLES, NFS_CLIENT))))
        hint = f"did you mean {', '.join(close)}?" if close else "advisor scan --json shows all facts"
        raise ProfileFieldError((*field, "fact"), f"a scan has no fact {fact!r}", hint)
    if form in _ALWAYS_UNMET.get(op, ()):
        message = f"{fact} is {_NOUNS[form]}: {op} never fits it"
        raise ProfileFieldError((*field, "op"), message)
    if op in ("is", "is-not") and form in _TYPES and type(value) is not _TYPES[form]:
        message = f"{fact} is {_NOUNS[form]}, never {value!r}"
        raise ProfileFieldError((*field, "value"), message)


def _lint_use(name: str, profile: Profile) -> None:
    """A parameter that is part of no line; those that select what for-each goes over are part of it by their name."""
    lines = profile.tunables
    texts = [f"{one.tunable} {one.value if isinstance(one.value, str) else one.value.multiply}" for one in lines]
    given = [one.value.given for one in lines if not isinstance(one.value, str)]
    is_used = any(f"{{{name}}}" in text for text in texts) or name in (*given, *(one.needs for one in lines))
    if not is_used and name not in {*_READ_BY_NAME, *(one.for_each for one in lines)}:
        raise ProfileFieldError(("parameters", name), "no value of the profile uses it")


def form_of_fact(fact: str) -> str | None:
    """What a dotted path of a scan holds; empty for what a table has under some key, None for a path to nothing."""
    if fact in FACT_FORMS:
        return FACT_FORMS[fact]
    table = next((path for path, form in FACT_FORMS.items() if form == "table" and fact.startswith(f"{path}.")), None)
    if table == "roles" and fact.removeprefix("roles.") not in (*ROLES, NFS_CLIENT):
        return None
    return None if table is None else ""


def _lint_value(wanted: Wanted, text: str, parameters: Mapping[str, Parameter], field: Place) -> None:
    one = parse_tunable(example_id(wanted.tunable))
    for value in _filled(text, parameters):
        words = value.split()
        senses = wanted.sense if isinstance(wanted.sense, tuple) else (wanted.sense,) * len(words)
        # A field that is kept is none of the profile's business, whatever stands for it. Some kinds take the first of
        # several words that a host knows.
        choices = () if "keep" in senses else value.split("|")
        wrong = next(filter(None, map(one.check_value, choices)), None)
        if wrong:
            raise ProfileFieldError((*field, "value"), f"{value!r} {wrong}")
        for word, sense in zip(words, senses, strict=False):
            if sense in ("at-least", "at-most") and not re.search("[0-9]", word):
                message = f"{sense} needs a number, found {word!r}"
                raise ProfileFieldError((*field, "sense"), message)


def _filled(text: str, parameters: Mapping[str, Parameter]) -> list[str]:
    """The value with each choice of a parameter that is all of it, else with the defaults; none where a place stays."""
    whole = parameters.get(text[1:-1]) if text.startswith("{") else None
    if whole is not None and whole.choices:
        return [choice for choice in whole.choices if choice != KEEP]
    given = {name: str(one.default) for name, one in parameters.items() if one.default is not None}
    value = re.sub(r"\{(\w+)\}", lambda place: given.get(place[1], place[0]), text)
    return [] if "{" in value or value == KEEP else [value]


# A profile without some of its tunables, as a file of its own (docs/profile-format.md).

_NAME = lazy_regex(r"[a-z0-9][a-z0-9-]{0,62}")
_PLACE = lazy_regex(r"\{\w+\}")
_ALWAYS = ("name", "title", "summary", "helps-when", "hurts-when", "sources")


def reduce_profile(
    profile: Profile,
    name: str,
    *,
    without: Collection[str],
    keep: Collection[str],
    settings: Mapping[str, str],
    why: str,
) -> Profile:
    """The profile under another name without the lines that set only tunables of ``without`` on this host; those of
    ``keep`` stay. ``settings`` become the defaults of its parameters, ``why`` is added to its notes. Raises
    UsageError for a name that no profile may have, or where no line is left."""
    checked_name(name)
    lines = tuple(one for one in profile.tunables if _sets_any(one, keep) or not _sets_any(one, without))
    if not lines:
        raise UsageError(f"{name}: no line of the profile is left")
    # Of the whole profile's, what belongs to a line that is gone would mislead.
    hurts = dict.fromkeys(one.hurts_when for one in lines if one.hurts_when)
    sources = dict.fromkeys(source for one in lines for source in one.sources)
    return msgspec.structs.replace(
        profile,
        name=name,
        hurts_when=" ".join(hurts) or profile.hurts_when,
        sources=tuple(sources) or profile.sources,
        title=f"{profile.title}, reduced",
        summary=f"What had an effect on one host of {profile.name}: {', '.join(one.tunable for one in lines)}.",
        tunables=lines,
        inherits=(),
        notes=f"{profile.notes} {why}".strip(),
        parameters={
            key: _with_default(one, settings.get(f"{profile.name}.{key}", settings.get(key)))
            for key, one in profile.parameters.items()
        },
    )


def checked_name(name: str) -> str:
    """The name, where a profile may have it. Raises UsageError."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:80]!r} is no name of a profile",
            hint="small letters, digits and hyphens, 63 at most; FILE is NAME.toml",
        )
    return name


def _sets_any(line: Wanted, tunables: Collection[str]) -> bool:
    """Whether the line can have set one of them: its places stand for a device."""
    pattern = re.compile(".+".join(map(re.escape, _PLACE.split(line.tunable))))
    return any(pattern.fullmatch(one) for one in tunables)


def _with_default(one: Parameter, value: str | None) -> Parameter:
    if value is None:
        return one
    default: int | str | tuple[str, ...] = value
    if one.type == "integer":
        default = int(value)
    elif one.type == "names":
        default = tuple(value.split(","))
    return msgspec.structs.replace(one, default=default)


def write_toml(profile: Profile) -> str:
    """The file of a profile; what is a default is left out. Reading it gives the same profile."""
    body = _set_fields(profile)
    tables = {key: body.pop(key, None) or () for key in ("parameters", "conditions", "tunables", "proof")}
    lines = toml_pairs(body)
    for name, one in dict(tables["parameters"]).items():
        lines += ["", f"[parameters.{name}]", *toml_pairs(one)]
    for key in ("conditions", "tunables"):
        for one in tables[key]:
            lines += ["", f"[[{key}]]", *toml_pairs(one)]
    if tables["proof"]:
        lines += ["", "[proof]", *toml_pairs(dict(tables["proof"]))]
    text = "\n".join(lines) + "\n"
    parse_profile(text.encode(), profile.name)
    return text


def _set_fields(one: msgspec.Struct) -> dict[str, Any]:
    """The fields that are not their defaults, by their names in a file."""
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(one):
        value = getattr(one, field.name)
        if value is None or (not field.required and field.encode_name not in _ALWAYS and value == field.default):
            continue
        if value in ({}, ()):
            continue
        found[field.encode_name] = _to_plain(value)
    return found


def _to_plain(value: Any) -> Any:
    match value:
        case msgspec.Struct():
            return _set_fields(value)
        case dict():
            return {key: _to_plain(one) for key, one in value.items()}
        case tuple() | list():
            return [_to_plain(one) for one in value]
    return value
