"""Documents as bytes of JSON, and the one that every command may print: an error. Same input, same bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from advisor.errors import AdvisorError, NotRestoredError
from advisor.host.patterns import lazy_regex

_BEYOND_ASCII = lazy_regex(r"[^\n -~]")
_SURROGATE = lazy_regex("[\ud800-\udfff]")


def error_document(error: AdvisorError) -> bytes:
    """``{"error": {…}}``; what could not be restored is listed with the command to run by hand."""
    body = {"code": error.exit_code, "kind": error.kind, "message": error.message, "hint": error.hint}
    if isinstance(error, NotRestoredError):
        items = [{"what": what, "by_hand": command} for what, command in error.items]
        return encode_document({"error": {**body, "items": items}})
    return encode_document({"error": body})


def encode_document(document: Mapping[str, object]) -> bytes:
    """A document as indented JSON and a newline: records in the order of their fields, mappings by key.

    A name that is not UTF-8 on disk reaches us with lone surrogates, which JSON cannot carry: they become U+FFFD. What
    a terminal would obey instead of show (controls of ISO 6429, marks of direction) is escaped, as those of ASCII are.
    """
    try:
        body = _encode_members(document)
    except UnicodeEncodeError:
        body = _encode_members(_replace_surrogates(msgspec.to_builtins(document, order="deterministic")))
    return _escape_controls(msgspec.json.format(body, indent=2)) + b"\n"


def _escape_controls(body: bytes) -> bytes:
    if body.isascii() and b"\x7f" not in body:
        return body
    return _BEYOND_ASCII.sub(_escape_char, body.decode()).encode()


def _escape_char(found: re.Match[str]) -> str:
    char = found[0]
    if char.isprintable():
        return char
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _encode_members(document: Mapping[str, object]) -> bytes:
    # The document's own keys keep their order (schema first); mappings inside it are sorted.
    encode = msgspec.json.Encoder(order="deterministic").encode
    return b"{" + b",".join(encode(key) + b":" + encode(value) for key, value in document.items()) + b"}"


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_surrogates(inner) for inner in value]
    return value
