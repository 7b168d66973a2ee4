"""``>`` and ``<`` before a value: assigned only if it is greater, or less, than what is there."""

from __future__ import annotations

import re
from typing import NamedTuple

from advisor.profiles.profile import FieldSense

SENSES: dict[str, FieldSense] = {">": "at-least", "<": "at-most"}


class Written(NamedTuple):
    """A value without its operator, and the sense that the operator gives it."""

    value: str
    sense: FieldSense


def parse_assignment(text: str) -> Written:
    """What the author of ``>4096`` means, blanks around the value left out. A value of one character has none."""
    if len(text) > 1 and text[0] in SENSES:
        return Written(text[1:].strip(), SENSES[text[0]])
    return Written(text, "exactly")


def can_compare(text: str, current: str | None) -> bool:
    """Whether TuneD can compare the two; what has no operator need not be compared."""
    written = parse_assignment(text)
    if written.sense == "exactly" or current is None:
        return True
    return _parse_integer(text[1:]) is not None and _parse_integer(current) is not None


def _parse_integer(text: str) -> int | None:
    try:
        # Python refuses to convert thousands of digits, and so TuneD cannot compare them.
        return int(text)
    except ValueError:
        return None


def strip_quotes(text: str) -> str:
    """Without the double quotes around the whole, as TuneD's sysctl plugin takes them off."""
    return re.sub(r'^"(.*)"$', r"\1", text)
