"""The facts that a condition of a profile may name, and the form of each, from the records of `advisor.facts`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from advisor.facts.host_facts import Facts
from advisor.facts.record_types import field_types

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
