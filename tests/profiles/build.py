"""Profile files from a few words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.cases import read_cases

DATA = read_cases(__file__)

WANTED: Mapping[str, Any] = DATA["WANTED"]
NUMBER: Mapping[str, Any] = {"type": "integer", "about": "a", "default": 5, "minimum": 2, "maximum": 9}


def wanted(**parts: Any) -> dict[str, Any]:
    return {**WANTED, **_keys(parts)}


def document(name: str = "mine", *tunables: Mapping[str, Any], **parts: Any) -> dict[str, Any]:
    """What a profile file holds; one harmless value where no ``tunables`` are given."""
    texts = {"title": "t", "summary": "s", "helps-when": "h", "hurts-when": "h", "sources": ["s"]}
    return {"name": name, **texts, "tunables": list(tunables or (WANTED,)), **_keys(parts)}


def toml(body: Mapping[str, Any]) -> bytes:
    return "".join(f"{key} = {_value(value)}\n" for key, value in body.items()).encode()


def write(directory: Path, *documents: Mapping[str, Any]) -> dict[str, Path]:
    """Name → file, as ``advisor.profiles.load`` takes it."""
    paths = {body["name"]: directory / f"{body['name']}.toml" for body in documents}
    for body in documents:
        paths[body["name"]].write_bytes(toml(body))
    return paths


def _keys(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "-"): value for key, value in parts.items()}


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    # A basic string of TOML is one of JSON, but that DEL is escaped and surrogate pairs are not.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
