"""What is wrong with a field of a profile. The decoder's own texts name Python's types and quote regular expressions.

The texts that are taken apart are those of msgspec (its documentation, "Validation").
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

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
