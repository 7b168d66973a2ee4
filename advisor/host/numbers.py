"""Numbers as the kernel and the tools print them.

``int()`` takes more than that: digits of every script (``１``, ``٣``), underscores, blanks around the number, a plus
sign. What a file holds is a number only if the kernel or the tool could have printed it.
"""

from __future__ import annotations

import re
from typing import Final

_FORMS: Final = {
    0: re.compile(r"-?(?:0[xX][0-9a-fA-F]{1,64}|0[oO]?[0-7]{0,64}|[1-9][0-9]{0,63})"),
    8: re.compile(r"-?[0-7]{1,64}"),
    10: re.compile(r"-?[0-9]{1,64}"),
    16: re.compile(r"-?(?:0[xX])?[0-9a-fA-F]{1,64}"),
}
_COUNT: Final = re.compile(r"[0-9]{1,20}")


def whole_number(text: str, base: int = 10) -> int | None:
    """The number that the text is, ASCII digits with a minus sign at most; None for anything else.

    ``base`` is 8, 10 or 16, or 0 for C's prefixes. More than 64 digits are no number.
    """
    if not _FORMS[base].fullmatch(text):
        return None
    if base == 0 and re.match(r"-?0[0-7]", text):
        return int(text, 8)
    return int(text, base)


def count(text: str) -> int | None:
    """A number of 0 and more; None for anything else."""
    number = whole_number(text)
    return number if number is not None and number >= 0 else None


def is_count(text: str) -> bool:
    """Whether the text is ASCII digits alone, as many as 64 bits take; ``isdigit()`` is true of ``²`` and ``１``."""
    return _COUNT.fullmatch(text) is not None
