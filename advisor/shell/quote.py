"""Quoting words for POSIX sh."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from advisor.host.patterns import lazy_regex

LINK = "\0"
"""Stands for the name of a link, which the script finds out when it comes to it; no name and no path can hold it."""

_PLAIN = lazy_regex(r"[A-Za-z0-9_@%+=:,./-]+")
BIDI = lazy_regex("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What turns the direction in which a reader sees the text that follows."""
_SPECIAL = lazy_regex(r"['$`]")


def shell_quote(text: str) -> str:
    """``text`` as one shell word, whatever it holds; `LINK` stays as it is between what is quoted."""
    if LINK in text:
        return LINK.join(shell_quote(part) if part else "" for part in text.split(LINK))
    turned = BIDI.search(text)
    if turned is not None:
        octal = "".join(f"\\{byte:03o}" for byte in turned[0].encode())
        before, after = text[: turned.start()], text[turned.end() :]
        return "".join((before and shell_quote(before), f"\"$(printf '{octal}')\"", after and shell_quote(after)))
    if _PLAIN.fullmatch(text):
        return text
    if _SPECIAL.search(text):
        return '"' + re.sub(r'([\\"$`])', r"\\\1", text) + '"'
    return f"'{text}'"


def trial_command(*words: str) -> str:
    """Return the command that measures a profile or values, and keeps them only if they help."""
    return f"advisor prove {' '.join(map(shell_quote, words or ('PROFILE',)))} --target DIR --keep-if-gain"


# The files that the constant scripts of a transaction read: what is specific to it, in a form that sh reads safely.

FORMAT = 1
_SPECIAL_BYTE = lazy_regex(rb"[^ -\[\]-~]")
_ESCAPES = {b"\n": b"\\n", b"\t": b"\\t", LINK.encode(): b"\\L"}


def escape_field(text: str | bytes) -> bytes:
    """``text`` as a field of a record; as text it may hold `LINK`, as bytes anything."""
    if isinstance(text, bytes):
        return _SPECIAL_BYTE.sub(lambda found: b"\\n" if found[0] == b"\n" else b"\\0%03o" % found[0][0], text)
    content = text.encode("utf-8", "surrogateescape")
    return _SPECIAL_BYTE.sub(lambda found: _ESCAPES.get(found[0]) or b"\\0%03o" % found[0][0], content)


def make_records(records: Iterable[Iterable[str | bytes]]) -> bytes:
    """A line for each record."""
    return b"".join(b"\t".join(map(escape_field, record)) + b"\n" for record in records)


def make_data(kind: str, records: bytes) -> bytes:
    """A whole data file of ``kind`` with these `make_records`."""
    content = make_records([(kind, str(FORMAT))]) + records
    return content + f"end\t{hashlib.sha256(content).hexdigest()} {len(content)}\n".encode()
