"""What cp(1) says about files that it could not copy: of GNU coreutils, old and new, and of busybox.

GNU quotes a name as a shell would (``'./a'$'\\n''b'``), before 8.25 between a backquote and a quote; busybox puts it
between quotes whatever it holds, and names none where reading fails.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from advisor.host.patterns import lazy_regex

_PATHLESS = lazy_regex(r"(?m)^cp: read error: ([A-Z][^\n]*)$")
_REASON = lazy_regex(r"(?: to [^\n]*?| for reading)?: ([A-Z][^:'\n]*)")
_PLAIN = lazy_regex(r"[`'](\./[^\n]*?)'(?: to [^\n]*?| for reading)?: ([A-Z][^:'\n]*)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
MAX_BYTES = 4 << 20


class CopyErrors(NamedTuple):
    """``reasons`` by the path that was copied (``./sys/…``); ``pathless`` is one that came without its path."""

    reasons: dict[str, str]
    pathless: str | None


def parse_copy_errors(text: str) -> CopyErrors:
    """The errors in what cp printed; lines of another shape are passed over."""
    reasons: dict[str, str] = {}
    for line in text[:MAX_BYTES].split("\n"):
        found = _parse_error(line)
        if found:
            reasons[found[0]] = found[1]
    pathless = _PATHLESS.search(text[:MAX_BYTES])
    return CopyErrors(reasons, pathless[1] if pathless else None)


def _parse_error(line: str) -> tuple[str, str] | None:
    if not line.startswith("cp: "):
        return None
    at = next((place for sign in ("'./", '"./') if (place := line.find(sign)) >= 0), -1)
    if at >= 0:
        word, end = _read_word(line, at)
        if found := _REASON.fullmatch(line, end):
            return word, found[1]
    plain = _PLAIN.search(line)
    return (plain[1], plain[2]) if plain else None


def _read_word(text: str, at: int) -> tuple[str, int]:
    """A word in the quotes of a shell, and where it ends."""
    parts: list[str] = []
    while at < len(text):
        if text.startswith("$'", at) and (end := text.find("'", at + 2)) > 0:
            parts.append(_unescape_word(text[at + 2 : end]))
        elif text[at] in "'\"" and (end := text.find(text[at], at + 1)) > 0:
            parts.append(text[at + 1 : end])
        elif text[at] == "\\" and at + 1 < len(text):
            end = at + 1
            parts.append(text[end])
        else:
            break
        at = end + 1
    return "".join(parts), at


def _unescape_word(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        octal = found[1]
        if octal[0] in "01234567":
            return bytes([int(octal, 8) & 0xFF]).decode("utf-8", "surrogateescape")
        return _ESCAPED.get(octal, octal)

    return re.sub(r"\\([0-7]{1,3}|.)", one, text)
