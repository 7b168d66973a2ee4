"""Numbers as the kernel and the tools print them.

``int()`` takes more than that: digits of every script (``１``, ``٣``), underscores, blanks around the number, a plus
sign. What a file holds is a number only if the kernel or the tool could have printed it.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import TypeVar

from advisor.host.patterns import lazy_regex

_FORMS = {
    0: lazy_regex(r"-?(?:0[xX][0-9a-fA-F]{1,64}|0[oO]?[0-7]{0,64}|[1-9][0-9]{0,63})"),
    8: lazy_regex(r"-?[0-7]{1,64}"),
    16: lazy_regex(r"-?(?:0[xX])?[0-9a-fA-F]{1,64}"),
}
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
_LEAST = -(1 << 63)
_MOST = (1 << 64) - 1


def whole_number(text: str, base: int = 10) -> int | None:
    """The number that the text is, ASCII digits with a minus sign at most; None for anything else.

    ``base`` is 8, 10 or 16, or 0 for C's prefixes. What 64 bits do not hold is no number.
    """
    # Nearly all are decimal, and compiling the form takes longer than reading a hundred of them.
    digits = text.removeprefix("-")
    if not (
        digits.isascii() and digits.isdigit() and len(digits) <= 64 if base == 10 else _FORMS[base].fullmatch(text)
    ):
        return None
    number = int(text, 8) if base == 0 and re.match(r"-?0[0-7]", text) else int(text, base)
    return number if _LEAST <= number <= _MOST else None


def is_hexadecimal(text: str) -> bool:
    """Whether the text is hexadecimal digits alone, as many as 64 bits take, without ``0x``."""
    return 0 < len(text) <= 16 and _HEXADECIMAL.issuperset(text)


def is_count(text: str) -> bool:
    """Whether the text is ASCII digits alone, as many as 64 bits take; ``isdigit()`` is true of ``²`` and ``１``."""
    return text.isascii() and text.isdigit() and len(text) <= 20


def count_of(text: str | None) -> int | None:
    """The count that the text is; None for a text that is none, and where there is none."""
    return int(text) if text is not None and is_count(text) else None


def count_noun(count: float, noun: str, verb: str = "", verbs: str = "") -> str:
    """``1 packet``, ``1,200 packets``; with the verb of one and that of several, ``1 packet was``."""
    is_one = round(count) == 1
    ending = "" if is_one else "es" if noun.endswith("s") else "s"
    return f"{count:,.0f} {noun}{ending} {verb if is_one else verbs}".rstrip()


# Things of one kind together.

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def group_pairs(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values of each key, both in the order in which they come."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
