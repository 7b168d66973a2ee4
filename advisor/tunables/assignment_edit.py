"""One variable of a file that a shell reads (ifcfg files): ``KEY=VALUE``, the quotes of the file kept."""

from __future__ import annotations

import re
from collections import Counter

from advisor.host.patterns import lazy_regex

_LINE = lazy_regex(r"[^\n]*\n|[^\n]+")
_PIECES = r"""(?:[^\s"'`\\;&|<>()]|\\[^\n]|'[^'\n]*'|"(?:[^"\\\n]|\\[^\n])*"|\([^()\n]*\)|`[^`\n]*`)*"""
_ASSIGNMENT = lazy_regex(r"""[ \t]*(?:export[ \t]+)?[A-Za-z_]\w*=(["']?)""", re.ASCII)


def edit_assignment(text: str, key: str, value: str) -> str:
    """The last assignment of ``key`` gets the value in the quotes that it had; earlier ones go, or one is added."""
    lines = _LINE.findall(text)
    found = _find_assignments(lines, key)
    if not found:
        end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
        quotes = Counter(match[1] for line in lines if (match := _ASSIGNMENT.match(line)))
        quote = quotes.most_common(1)[0][0] if quotes else ""
        before = "".join(lines)
        return before + ("" if not before or before.endswith("\n") else end) + f"{key}={quote}{value}{quote}{end}"
    last = max(found)
    head, body, rest = found[last]
    quote = body[:1] if body[:1] in ("'", '"') else ""
    lines[last] = f"{head}{quote}{value}{quote}{rest}"
    return "".join(line for number, line in enumerate(lines) if number == last or number not in found)


def assignment_mentions(text: str, key: str) -> bool:
    return bool(_find_assignments(_LINE.findall(text), key))


def is_one_value_a_line(text: str) -> bool:
    """Whether no value goes over the end of its line, so that each line can be edited alone."""
    return all(_is_closed(line.rstrip("\r\n")) for line in _LINE.findall(text))


def _is_closed(line: str) -> bool:
    quote = ""
    before = " "
    characters = iter(line)
    for character in characters:
        if character == "\\" and quote != "'":
            if next(characters, None) is None:
                return False
        elif quote:
            quote = "" if character == quote else quote
        elif character in "\"'`":
            quote = character
        elif character == "#" and before in " \t;":
            break
        before = character
    return not quote


def _find_assignments(lines: list[str], key: str) -> dict[int, tuple[str, str, str]]:
    """The lines, by number, that assign the variable: what stands before the value, the value, what follows."""
    pattern = re.compile(rf"([ \t]*(?:export[ \t]+)?{re.escape(key)}=)({_PIECES})([^\n]*\n?)")
    return {
        number: (match[1], match[2], match[3])
        for number, line in enumerate(lines)
        if (match := pattern.fullmatch(line)) is not None
    }
