"""What can be known of a profile without a host: facts that no scan has, values that no host takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from advisor.errors import near_names
from advisor.facts.host_facts import Facts
from advisor.facts.record_types import field_types
from advisor.facts.roles import NFS_CLIENT, ROLES
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
from advisor.profiles.toml_text import Place
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
