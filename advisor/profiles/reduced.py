"""A profile without some of its tunables, as a file of its own (docs/profile-format.md)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from advisor.errors import UsageError
from advisor.host.patterns import lazy_regex
from advisor.profiles.profile import Parameter, Profile, Wanted, parse_profile
from advisor.profiles.toml_text import toml_pairs

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
