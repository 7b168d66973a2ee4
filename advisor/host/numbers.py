"""Numbers as the kernel and the tools print them.

``int()`` takes more than that: digits of every script (``１``, ``٣``), underscores, blanks around the number, a plus
sign. What a file holds is a number only if the kernel or the tool could have printed it.
"""

from __future__ import annotations

import re
from typing import Final

from advisor.host.patterns import lazy_regex

_FORMS: Final = {
    0: lazy_regex(r"-?(?:0[xX][0-9a-fA-F]{1,64}|0[oO]?[0-7]{0,64}|[1-9][0-9]{0,63})"),
    8: lazy_regex(r"-?[0-7]{1,64}"),
    10: lazy_regex(r"-?[0-9]{1,64}"),
    16: lazy_regex(r"-?(?:0[xX])?[0-9a-fA-F]{1,64}"),
}
_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 64) - 1
_COUNT: Final = lazy_regex(r"[0-9]{1,20}")


def whole_number(text: str, base: int = 10) -> int | None:
    """The number that the text is, ASCII digits with a minus sign at most; None for anything else.

    ``base`` is 8, 10 or 16, or 0 for C's prefixes. What 64 bits do not hold is no number.
    """
    if not _FORMS[base].fullmatch(text):
        return None
    number = int(text, 8) if base == 0 and re.match(r"-?0[0-7]", text) else int(text, base)
    return number if _LEAST <= number <= _MOST else None


def is_count(text: str) -> bool:
    """Whether the text is ASCII digits alone, as many as 64 bits take; ``isdigit()`` is true of ``²`` and ``１``."""
    return _COUNT.fullmatch(text) is not None
