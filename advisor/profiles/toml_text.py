"""Texts as TOML (toml.io/en/v1.0.0), and where in a TOML file each key stands. The decoder says so only where it fails
itself, not for what it takes; this reads text that `tomllib` has taken already, so it need not check anything."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from advisor.host.patterns import lazy_regex

# What is wrong with a field of a profile. The decoder's own texts name Python's types and quote regular expressions.

_TYPES = {
    "str": "a text in quotes",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


def describe_fault(words: str, *, choices: Iterable[str], fields: Iterable[str]) -> tuple[str, str | None]:
    """A message and a hint for the decoder's text; ``choices`` are the words that the field takes, ``fields`` those of
    its table."""
    if found := re.fullmatch(r"Object contains unknown field `(.*)`", words, re.DOTALL):
        return f"unknown field `{found[1]}`", _nearest(found[1], fields)
    if found := re.fullmatch(r"Object missing required field `(.*)`", words):
        return f"missing required field `{found[1]}`", None
    if found := re.fullmatch(r"Invalid enum value '(.*)'", words, re.DOTALL):
        listed = tuple(choices)
        if listed:
            text = f"expected one of {', '.join(listed)}, found {found[1][:40]!r}"
            return text, _nearest(found[1], listed)
    if found := re.fullmatch(r"Expected `([a-z| ]+)`, got `(\w+)`", words):
        expected = " or ".join(_TYPES[one] for one in found[1].split(" | ") if one in _TYPES)
        if expected and found[2] in _TYPES:
            return f"expected {expected}, found {_TYPES[found[2]]}", None
    if re.fullmatch(r"Expected `(str|array)` of length >= 1", words):
        return "expected something, found nothing between the quotes or brackets", None
    if found := re.fullmatch(r"Expected `array` of length <= ([0-9]+)", words):
        return f"expected at most {found[1]} items", None
    if words.startswith("Expected `str` matching regex"):
        return "expected lower-case letters and digits, with - in a profile's name and _ in a parameter's", None
    return words, None


def _nearest(given: str, known: Iterable[str]) -> str | None:
    # atleast and at_least are nearer to at-least than their letters alone say.
    close = difflib.get_close_matches(given.lower().replace("_", "-"), tuple(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else None


def quote_toml(text: str) -> str:
    """Return a basic string on one line: whatever an editor or a terminal would not show as itself is escaped.

    A lone surrogate, a byte of a name that is no UTF-8, has no form in TOML and becomes ``?``.
    """
    plain = text.encode("utf-8", "replace").decode()
    escaped = (
        f"\\{one}"
        if one in '"\\'
        else one
        if one.isprintable()
        else f"\\u{ord(one):04X}"
        if ord(one) <= 0xFFFF
        else f"\\U{ord(one):08X}"
        for one in plain
    )
    return f'"{"".join(escaped)}"'


def toml_pairs(body: Mapping[str, Any]) -> list[str]:
    """``key = value`` of each, in their order."""
    return [f"{key} = {_toml_value(value)}" for key, value in body.items()]


def _toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml_value(one) for one in value) + "]"
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return quote_toml(str(value))


Place = tuple[str | int, ...]

_BLANK = lazy_regex(r"(?:[ \t\r\n]|#[^\n]*)*")
_BASIC = r'"(?:[^"\\\n]|\\.)*"'
_LITERAL = r"'[^'\n]*'"
_KEY = lazy_regex(rf"[A-Za-z0-9_-]+|{_BASIC}|{_LITERAL}")
_DOT = lazy_regex(r"[ \t]*\.[ \t]*")
# Up to two quotes may stand before the three that end a string of several lines.
_BASIC_LINES = r'"""(?:[^\\]|\\.)*?""""{0,2}'
_LITERAL_LINES = r"'''.*?''''{0,2}"
_STRING = lazy_regex(f"{_BASIC_LINES}|{_LITERAL_LINES}|{_BASIC}|{_LITERAL}", re.DOTALL)
_BARE = lazy_regex(r"[^,\]}#\r\n]+")


def lines_of(text: str) -> Mapping[Place, int]:
    """Path of keys and indices → number of the line on which it begins, from 1."""
    return _Scanner(text).lines


def line_of(text: str, path: Sequence[str | int]) -> int | None:
    """The line of a key, or of the innermost table or array around it that is there; None where nothing is."""
    lines = lines_of(text)
    return next((lines[tuple(path[:end])] for end in range(len(path), 0, -1) if tuple(path[:end]) in lines), None)


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._counted_to = 0
        self._line = 1
        self.lines: dict[Place, int] = {}
        self._lengths: dict[Place, int] = {}
        """Of each array of tables, as far as it has been seen."""
        table: Place = ()
        self._skip_blank()
        while self._at < len(text):
            if text.startswith("[", self._at):
                # `[a.b]` or `[[a.b]]`: the table that the lines below it belong to.
                is_array = self._text.startswith("[[", self._at)
                self._at += 1 + is_array
                self._skip_blank()
                path: Place = ()
                keys = self._read_keys()
                for number, key in enumerate(keys):
                    path = (*path, key)
                    self._note_line(path)
                    if is_array and number == len(keys) - 1:
                        self._lengths[path] = self._lengths.get(path, 0) + 1
                    if path in self._lengths:
                        path = (*path, self._lengths[path] - 1)
                        self._note_line(path)
                self._skip_blank()
                self._at += 1 + is_array
                table = path
            else:
                self._read_pair(table)
            self._skip_blank()

    def _skip_blank(self) -> None:
        self._match_pattern(_BLANK)

    def _match_pattern(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise ValueError(f"not TOML at character {self._at}")
        self._at = found.end()
        return found[0]

    def _note_line(self, path: Place) -> None:
        self._line += self._text.count("\n", self._counted_to, self._at)
        self._counted_to = self._at
        self.lines.setdefault(path, self._line)

    def _read_keys(self) -> list[str]:
        keys = [_unquote_key(self._match_pattern(_KEY))]
        while _DOT.match(self._text, self._at):
            self._match_pattern(_DOT)
            keys.append(_unquote_key(self._match_pattern(_KEY)))
        return keys

    def _read_pair(self, table: Place) -> None:
        path = table
        for key in self._read_keys():
            path = (*path, key)
            self._note_line(path)
        self._skip_blank()
        self._at += 1
        self._skip_blank()
        self._read_value(path)

    def _read_value(self, path: Place) -> None:
        first = self._text[self._at : self._at + 1]
        if first in ("[", "{"):
            self._at += 1
            # The elements of an array, or the pairs of an inline table.
            end = "]" if first == "[" else "}"
            index = 0
            self._skip_blank()
            while not self._text.startswith(end, self._at):
                if end == "]":
                    self._note_line((*path, index))
                    self._read_value((*path, index))
                else:
                    self._read_pair(path)
                index += 1
                self._skip_blank()
                if self._text.startswith(",", self._at):
                    self._at += 1
                    self._skip_blank()
            self._at += 1
        elif first in ('"', "'"):
            self._match_pattern(_STRING)
        else:
            self._match_pattern(_BARE)


def _unquote_key(key: str) -> str:
    if key[0] not in "\"'":
        return key
    import tomllib

    value = tomllib.loads(f"key = {key}")["key"]
    assert isinstance(value, str)
    return value
