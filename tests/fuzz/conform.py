"""Whether a value is what a type hint says, down to the fields of records: what mypy cannot see of foreign data."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any

import msgspec

from advisor.facts.record_types import field_types

_SCALARS = (int, str, bytes, bool)


def conforms(value: object, hint: Any) -> bool:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or hint is object:
        return True
    if hint is None or hint is type(None):
        return value is None
    if origin in (typing.Union, types.UnionType):
        return any(conforms(value, one) for one in inner)
    if origin is typing.ClassVar:
        return True
    if origin is typing.Annotated:
        return conforms(value, inner[0])
    if origin is typing.Literal:
        return any(value == one and type(value) is type(one) for one in inner)
    if origin is tuple:
        return isinstance(value, tuple) and _tuple_conforms(value, inner)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            conforms(key, inner[0]) and conforms(one, inner[1]) for key, one in value.items()
        )
    if origin is not None:
        return isinstance(value, list | set | frozenset | tuple) and all(conforms(one, inner[0]) for one in value)
    return _is_of(value, hint)


def _tuple_conforms(value: tuple[object, ...], inner: tuple[Any, ...]) -> bool:
    if inner[1:] == (...,):
        return all(conforms(one, inner[0]) for one in value)
    return len(value) == len(inner) and all(map(conforms, value, inner))


def _is_of(value: object, hint: type) -> bool:
    if getattr(hint, "_is_protocol", False):
        return True
    if hint in _SCALARS:
        # A bool is no int to us.
        return type(value) is hint
    if hint is float:
        return type(value) in (int, float)
    if not isinstance(value, hint):
        return False
    is_record = isinstance(value, msgspec.Struct) or hasattr(hint, "_fields")
    fields = field_types(hint) if is_record else {}
    return all(conforms(getattr(value, name), one) for name, one in fields.items() if hasattr(value, name))
