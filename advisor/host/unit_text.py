"""CPU lists as systemd shows them, of every version: ranges, single numbers, or the bytes of the mask in hex."""

from __future__ import annotations

import re

from advisor.host.patterns import lazy_regex
from advisor.host.text_words import split_words

_CPU = lazy_regex(r"\d{1,6}", re.ASCII)
_MASK = lazy_regex(r"(?:[0-9a-f]{16}){1,128}", re.ASCII)


def shown_cpus(text: str) -> str:
    """``0-3 8``, ``0 1 2 3 8`` and the bytes of the mask in hex, the lowest first, as ``0-3,8``.

    systemd before 243 has no ranges: it shows every CPU or, where a property is an array of bytes to it, the mask in
    words of eight bytes.
    """
    words = split_words(text.replace(",", " "))
    if len(words) == 1 and _MASK.fullmatch(words[0]):
        mask = int.from_bytes(bytes.fromhex(words[0]), "little")
        words = [str(cpu) for cpu in range(mask.bit_length()) if mask >> cpu & 1]
    # Neighbours in one range; what is no number stays as it is.
    found: list[list[str]] = []
    for word in words:
        low, _, high = word.partition("-")
        if found and _CPU.fullmatch(low) and _CPU.fullmatch(found[-1][1]) and int(low) == int(found[-1][1]) + 1:
            found[-1][1] = high or low
        else:
            found.append([low, high or low])
    return ",".join([low if low == high else f"{low}-{high}" for low, high in found])
