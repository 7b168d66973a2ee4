"""CPU lists in TuneD's own form: as the kernel's, and with masks (``0x…``), exceptions (``^3``, ``!3``) and quotes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from advisor.facts.cpulist import MAX_ID as MAX_CPUS
from advisor.facts.cpulist import format_list
from advisor.host.numbers import whole_number
from advisor.host.patterns import lazy_regex

# Longer than any number of 64 bits: one bit for each CPU.
_MASK = lazy_regex(r"(?:0[xX])?[0-9a-fA-F]+")


def unpack_cpus(text: str) -> list[int]:
    """The CPUs, sorted; none at all where a part of the list is no number, as TuneD has it."""
    words: list[str] = []
    excepted: list[int] = []
    mask: str | None = None
    for word in text.strip("'\"").split(","):
        if mask is not None and word:
            mask += word
        elif mask is not None:
            words.append(mask)
            mask = None
        elif word[:2].lower() == "0x":
            mask = word
        elif word[:1] in ("^", "!"):
            span = _parse_span(word[1:])
            if span is None:
                return []
            excepted.extend(span)
        elif word:
            words.append(word)
    if mask:
        words.append(mask)
    found: set[int] = set()
    for word in words:
        span = unpack_mask(word) if word[:2].lower() == "0x" else _parse_span(word)
        if span is None:
            return []
        found.update(span)
    return sorted(found - set(excepted))


def _parse_span(word: str) -> Sequence[int] | None:
    """The numbers of ``3`` or ``3-5``; None for what is no such thing, or beyond what a kernel can number."""
    first, dash, rest = word.partition("-")
    low = whole_number(first.strip())
    high = whole_number(rest.partition("-")[0].strip()) if dash else low
    if low is None or high is None:
        return None
    return range(max(low, 0), high + 1) if high < MAX_CPUS else None


def unpack_mask(mask: str) -> list[int]:
    """The CPUs of a hexadecimal mask, whose groups commas may separate; none for what is no mask."""
    digits = mask.replace(",", "")[: MAX_CPUS // 4].strip()
    if not _MASK.fullmatch(digits):
        return []
    bits = int(digits, 16)
    return [cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1] if bits > 0 else []


def pack_cpus(cpus: Sequence[int]) -> list[str]:
    """``0-2``, ``5``: the spans of a sorted list."""
    text = format_list(cpus)
    return text.split(",") if text else []


def invert_cpus(cpus: Iterable[int], online: Iterable[int]) -> list[int]:
    """The online CPUs that are not among these."""
    return sorted(set(online) - set(cpus))


def format_mask(cpus: Iterable[int]) -> str:
    """A mask in groups of 32 bits, all of them eight digits wide."""
    digits = f"{sum(1 << cpu for cpu in set(cpus)):x}"
    digits = digits.zfill(-(-len(digits) // 8) * 8)
    return ",".join(digits[at : at + 8] for at in range(0, len(digits), 8))
