"""Build the JSON Schema of a document by the name in its ``schema`` key (https://json-schema.org/, 2020-12)."""

from __future__ import annotations

import inspect
from typing import Any, Literal

import msgspec

from advisor.errors import UsageError, near_names
from advisor.profiles.profile import Profile
from advisor.report.schemas.documents import DOCUMENTS, ERROR_DOCUMENT
from advisor.report.schemas.records import record

ERROR = "advisor.error/1"
PROFILE_FILE = "advisor.profile-file/1"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_EDITORS_DIALECT = "http://json-schema.org/draft-07/schema#"

SCHEMA_NAMES = tuple(sorted((*DOCUMENTS, ERROR, PROFILE_FILE)))


def short_name(name: str) -> str:
    """Return the word of a document's name: ``scan`` of ``advisor.scan/1``."""
    return name.removeprefix("advisor.").partition("/")[0]


def build_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a document, named in whole or by its word. Raises UsageError for an unknown name."""
    whole = name if name in SCHEMA_NAMES else next((one for one in SCHEMA_NAMES if short_name(one) == name), None)
    if whole is None:
        near = near_names(short_name(name), map(short_name, SCHEMA_NAMES))
        guess = f"did you mean {' or '.join(near)}? " if near else ""
        raise UsageError(f"{name!r} is no document of advisor", hint=f"{guess}advisor schema lists them")
    identity = f"urn:{whole.replace('.', ':').replace('/', ':')}"
    if whole == PROFILE_FILE:
        return _build_file_schema(identity)
    if whole == ERROR:
        return _build(ERROR_DOCUMENT, identity)
    title = short_name(whole).title().replace("-", "")
    return _build(record(title, [("schema", Literal[whole]), *DOCUMENTS[whole]]), identity)


def _build_file_schema(identity: str) -> dict[str, Any]:
    """Return the schema of a profile's TOML file, in the dialect that editors of TOML (taplo, VS Code) read."""
    own, definitions = _split(Profile, "#/definitions/{name}")
    return {"$schema": _EDITORS_DIALECT, "$id": identity, **own, "definitions": definitions}


def _build(document: type[msgspec.Struct], identity: str) -> dict[str, Any]:
    own, definitions = _split(document, "#/$defs/{name}")
    return {"$schema": _DIALECT, "$id": identity, **own, "$defs": definitions}


def _split(document: type[msgspec.Struct], template: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of a record, and those of the records in it by name."""
    (top,), definitions = msgspec.json.schema_components([document], ref_template=template)
    own = definitions.pop(top["$ref"].rpartition("/")[2])
    return _clean(own), _clean(definitions)


def _clean(node: Any) -> Any:
    """Return a schema without OpenAPI's ``discriminator``, which ajv's strict mode refuses."""
    if isinstance(node, list | tuple):
        return [_clean(one) for one in node]
    if not isinstance(node, dict):
        return node
    is_openapi = isinstance(node.get("discriminator"), dict) and "propertyName" in node["discriminator"]
    kept = {key: _clean(value) for key, value in node.items() if not (is_openapi and key == "discriminator")}
    if isinstance(kept.get("description"), str):
        # Python 3.13 and later compile a docstring without its indentation.
        kept["description"] = inspect.cleandoc(kept["description"])
    return kept
