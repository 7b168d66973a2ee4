"""The files that the constant scripts of a transaction read: what is specific to it, in a form that sh reads safely.

A record is a line; its fields stand between tabs. What is not printable ASCII, and the backslash, is written as the
escapes that ``printf %b`` knows (``\\n``, ``\\t``, ``\\0ooo``), and ``\\L`` where the script fills in the name of a
link. The first record names kind and format, the last one holds the SHA-256 and the size in bytes of what comes before
it. ``templates/data.sh.j2`` reads it. Another format is a file of another name, so that a script never finds
data that it cannot read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from advisor.host.patterns import lazy_regex
from advisor.shell.quote import LINK

FORMAT = 1
_SPECIAL = lazy_regex(rb"[^ -\[\]-~]")
_ESCAPES = {b"\n": b"\\n", b"\t": b"\\t", LINK.encode(): b"\\L"}


def escape_field(text: str | bytes) -> bytes:
    """``text`` as a field of a record; as text it may hold `LINK`, as bytes anything."""
    if isinstance(text, bytes):
        return _SPECIAL.sub(lambda found: b"\\n" if found[0] == b"\n" else b"\\0%03o" % found[0][0], text)
    content = text.encode("utf-8", "surrogateescape")
    return _SPECIAL.sub(lambda found: _ESCAPES.get(found[0]) or b"\\0%03o" % found[0][0], content)


def make_records(records: Iterable[Iterable[str | bytes]]) -> bytes:
    """A line for each record."""
    return b"".join(b"\t".join(map(escape_field, record)) + b"\n" for record in records)


def make_data(kind: str, records: bytes) -> bytes:
    """A whole data file of ``kind`` with these `make_records`."""
    content = make_records([(kind, str(FORMAT))]) + records
    return content + f"end\t{hashlib.sha256(content).hexdigest()} {len(content)}\n".encode()
