"""Records that are put together from the fields of others, as documents are."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import msgspec

Field = tuple[str, Any] | tuple[str, Any, Any]
Fields = list[Field]


def record(name: str, fields: Fields, doc: str = "") -> type[msgspec.Struct]:
    """A record of these fields; a document that is put together from several is one, too."""
    renamed = {key.replace("-", "_"): key for key, *_ in fields if "-" in key}
    return msgspec.defstruct(
        name,
        [(key.replace("-", "_"), *rest) for key, *rest in fields],
        frozen=True,
        namespace={"__doc__": doc} if doc else None,
        rename=renamed or None,
    )


def imports_for_checkers(module: ModuleType) -> dict[str, Any]:
    """What a module imports for type checkers alone, by name."""
    path = Path(str(module.__file__))
    known: dict[str, Any] = {}
    for block in ast.parse(path.read_text()).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            exec(compile(ast.Module(block.body, []), path, "exec"), known)
    return known


def field_types(kind: type) -> dict[str, Any]:
    """A record's types by field, those too that its module imports for type checkers alone."""
    return get_type_hints(kind, localns=imports_for_checkers(sys.modules[kind.__module__]))


def fields_of(kind: type[msgspec.Struct], *without: str) -> Fields:
    """A record's fields and their types, for a document that carries them among its own."""
    types = field_types(kind)
    names = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
    return [(encoded, types[name]) for encoded, name in names if name not in without]
