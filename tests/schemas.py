"""Documents of ``--json`` validated against their schemas, by a library that is not ours."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema

from advisor.operations.library import read_schema


def closed(node: Any) -> Any:
    """Return the same schema without room for keys that it does not describe."""
    if isinstance(node, list):
        return [closed(one) for one in node]
    if not isinstance(node, dict):
        return node
    inner = {key: closed(value) for key, value in node.items()}
    if isinstance(node.get("properties"), dict) and "additionalProperties" not in node:
        inner["additionalProperties"] = False
    return inner


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(closed(read_schema(name)))


def judge(text: str, code: int | None = None) -> dict[str, Any]:
    """Return the one document of an output, after it has been validated against the schema that it names."""
    document: dict[str, Any] = json.loads(text)
    name = document.get("schema")
    _validator("error" if name is None else name).validate(document)
    if code is not None and name is None:
        assert document["error"]["code"] == code
    return document
