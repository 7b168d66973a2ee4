"""Records that are put together from the fields of others, as documents are."""

from __future__ import annotations

from typing import Any, get_type_hints

import msgspec

Field = tuple[str, Any]
Fields = list[Field]


def record(name: str, fields: Fields, doc: str = "") -> type[msgspec.Struct]:
    """A record of these fields; a document that is put together from several is one, too."""
    renamed = {key.replace("-", "_"): key for key, _ in fields if "-" in key}
    return msgspec.defstruct(
        name,
        [(key.replace("-", "_"), kind) for key, kind in fields],
        frozen=True,
        namespace={"__doc__": doc} if doc else None,
        rename=renamed or None,
    )


def fields_of(kind: type[msgspec.Struct], *without: str) -> Fields:
    """A record's fields and their types, for a document that carries them among its own."""
    hints = get_type_hints(kind)
    return [(one.encode_name, hints[one.name]) for one in msgspec.structs.fields(kind) if one.name not in without]
