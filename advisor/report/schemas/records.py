"""Records that are composed of the fields of other records, as documents are."""

from __future__ import annotations

from typing import Any

import msgspec

from advisor.facts.record_types import field_types

Field = tuple[str, Any] | tuple[str, Any, Any]
Fields = list[Field]


def record(name: str, fields: Fields, doc: str = "") -> type[msgspec.Struct]:
    """Return a record of these fields, whose names are the keys of the document."""
    renamed = {key.replace("-", "_"): key for key, *_ in fields if "-" in key}
    return msgspec.defstruct(
        name,
        [(key.replace("-", "_"), *rest) for key, *rest in fields],
        frozen=True,
        namespace={"__doc__": doc} if doc else None,
        rename=renamed or None,
    )


def fields_of(kind: type[msgspec.Struct], *without: str) -> Fields:
    """Return a record's fields and their types, for a document that carries them among its own."""
    types = field_types(kind)
    names = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
    return [(encoded, types[name]) for encoded, name in names if name not in without]
