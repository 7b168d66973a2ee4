"""Texts as TOML (toml.io/en/v1.0.0), of every file of that kind that advisor writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def quote_toml(text: str) -> str:
    """Return a basic string on one line: whatever an editor or a terminal would not show as itself is escaped.

    A lone surrogate, a byte of a name that is no UTF-8, has no form in TOML and becomes ``?``.
    """
    plain = text.encode("utf-8", "replace").decode()
    escaped = (
        f"\\{one}"
        if one in '"\\'
        else one
        if one.isprintable()
        else f"\\u{ord(one):04X}"
        if ord(one) <= 0xFFFF
        else f"\\U{ord(one):08X}"
        for one in plain
    )
    return f'"{"".join(escaped)}"'


def toml_pairs(body: Mapping[str, Any]) -> list[str]:
    """``key = value`` of each, in their order."""
    return [f"{key} = {_toml_value(value)}" for key, value in body.items()]


def _toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml_value(one) for one in value) + "]"
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return quote_toml(str(value))
