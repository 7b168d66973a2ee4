"""Names and texts of a host on their way to a terminal: harmless, in natural order, alike ones drawn together."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from advisor.host.patterns import lazy_regex

_NUMBERS = lazy_regex(r"([0-9]+)", re.ASCII)
# Disks that the kernel letters as it numbers others: sda … sdz, sdaa (sd_format_disk_name).
_LETTERED = lazy_regex(r"(sd|vd|xvd|hd|dasd)([a-z]{1,4})(?![a-z])(.*)", re.DOTALL)
_SHORT_RUN = 3


def clean(text: str) -> str:
    """The text with everything that is not printable (escape codes, line ends, bidirectional marks) spelt out."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key by which nvme2n1 comes before nvme10n1, and sdz before sdaa."""
    lettered = _LETTERED.match(name)
    if lettered is not None:
        kind, letters, rest = lettered.groups()
        return (0, 0, kind), (0, len(letters), letters), *natural(rest)
    parts = _NUMBERS.split(name)
    return tuple(_number_key(part) if index % 2 else (0, 0, part) for index, part in enumerate(parts))


def _number_key(digits: str) -> tuple[int, int, str]:
    # By length, then by digits: as numbers are, without converting thousands of digits.
    significant = digits.lstrip("0")
    return 1, len(significant), significant


def ranked(names: Iterable[str]) -> Mapping[str, int]:
    """The place of each name in natural order."""
    return _places(names, lambda name: (natural(name), name))


def ranked_by_disk(names: Iterable[str]) -> Mapping[str, int]:
    """As `ranked`, but what differs in its disk alone stands together: sda1, sdb1 and then sda2, sdb2."""
    return _places(names, lambda name: (_beside_disk(name), natural(name), name))


def _places(names: Iterable[str], key: Callable[[str], tuple[Any, ...]]) -> Mapping[str, int]:
    return {name: rank for rank, name in enumerate(sorted({*names}, key=key))}


def _beside_disk(name: str) -> str:
    """The name without the letters or the first number, by which disks are counted."""
    lettered = _LETTERED.match(name)
    return f"{lettered[1]}#{lettered[3]}" if lettered else _NUMBERS.sub("#", name, count=1)


def runs(names: Collection[str], ranks: Mapping[str, int]) -> str:
    """Names in natural order; three and more that follow each other as ``first … last``: among the ``ranked`` ones and
    in their own numbers or letters, so that a range never names what is not meant."""
    outsiders = ranked(name for name in names if name not in ranks)
    groups: list[list[str]] = []
    way: int | None = None
    for name in sorted({*names}, key=lambda name: (name in outsiders, outsiders.get(name, ranks.get(name, 0)))):
        previous = groups[-1][-1] if groups else ""
        step = step_between(previous, name) if name in ranks and ranks.get(previous) == ranks[name] - 1 else None
        # sda1, sdb1, sdb2: a range that changes its way would be read as more than that.
        if step is not None and (len(groups[-1]) == 1 or step == way):
            groups[-1].append(name)
            way = step
        else:
            groups.append([name])
    return ", ".join(f"{group[0]} … {group[-1]}" if len(group) >= _SHORT_RUN else ", ".join(group) for group in groups)


def step_between(name: str, next_name: str) -> int | None:
    """Which part of the name is one higher in the next: the number at this place (md9, md10), or -1 for the letters of
    a disk (sdz, sdaa). None where the second does not follow the first."""
    before, after = _LETTERED.match(name), _LETTERED.match(next_name)
    if before and after and before[2] != after[2]:
        is_next = (before[1], before[3]) == (after[1], after[3]) and _next_letters(before[2]) == after[2]
        return -1 if is_next else None
    parts, next_parts = _NUMBERS.split(name), _NUMBERS.split(next_name)
    differing = [at for at, pair in enumerate(zip(parts, next_parts, strict=False)) if pair[0] != pair[1]]
    if len(parts) != len(next_parts) or len(differing) != 1 or not differing[0] % 2:
        return None
    digits = parts[differing[0]]
    # int() refuses thousands of digits; such a name is no counter.
    is_next = len(digits) < 19 and str(int(digits) + 1).zfill(len(digits)) == next_parts[differing[0]]
    return differing[0] if is_next else None


def _next_letters(letters: str) -> str:
    """``b`` of ``a``, ``aa`` of ``z``, ``ba`` of ``az``."""
    head = letters.rstrip("z")
    if not head:
        return "a" * (len(letters) + 1)
    return head[:-1] + chr(ord(head[-1]) + 1) + "a" * (len(letters) - len(head))


def format_timestamp(seconds: float | None) -> str | None:
    """ISO 8601 in UTC, to the second; None for none, and for a time that no calendar has."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (OverflowError, OSError, ValueError):
        return None


def format_minute(seconds: float | None) -> str | None:
    """The same for a person, to the minute: ``2026-11-22 18:59 UTC``."""
    text = format_timestamp(seconds)
    return None if text is None else f"{text[:10]} {text[11:16]} UTC"


def format_duration(seconds: float) -> str:
    """``45 s``, ``3 min 5 s``, ``2 h 10 min``: whole seconds, from an hour on whole minutes."""
    whole = round(max(0.0, seconds))
    minutes, rest = divmod(whole, 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
