"""Documents of ``--json`` held against the published schemas, by a library that is not ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

SCHEMAS = Path(__file__).parents[1] / "docs/schemas"


def published(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMAS / name).read_text())
    return found


def closed(node: Any) -> Any:
    """The same schema without room for keys that it does not describe."""
    if isinstance(node, list):
        return [closed(one) for one in node]
    if not isinstance(node, dict):
        return node
    inner = {key: closed(value) for key, value in node.items()}
    if isinstance(node.get("properties"), dict) and "additionalProperties" not in node:
        inner["additionalProperties"] = False
    return inner


def judge(text: str, code: int | None = None) -> dict[str, Any]:
    """The one document of an output, after it has been held against the schema that it names."""
    document: dict[str, Any] = json.loads(text)
    name = document.get("schema")
    file = "error.json" if name is None else f"{name.removeprefix('advisor.').replace('/', '.')}.json"
    jsonschema.Draft202012Validator(closed(published(file))).validate(document)
    if code is not None and name is None:
        assert document["error"]["code"] == code
    return document
