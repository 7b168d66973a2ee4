"""Names and texts of a host on their way to a terminal: harmless, in natural order, alike ones drawn together."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from advisor.host.patterns import lazy_regex

_NUMBERS = lazy_regex(r"([0-9]+)", re.ASCII)
_SHORT_RUN = 3


def clean(text: str) -> str:
    """The text with everything that is not printable (escape codes, line ends, bidirectional marks) spelt out."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key by which nvme2n1 comes before nvme10n1."""
    parts = _NUMBERS.split(name)
    return tuple(_number(part) if index % 2 else (0, 0, part) for index, part in enumerate(parts))


def _number(digits: str) -> tuple[int, int, str]:
    # By length, then by digits: as numbers are, without converting thousands of digits.
    significant = digits.lstrip("0")
    return 1, len(significant), significant


def ranked(names: Iterable[str]) -> Mapping[str, int]:
    """The place of each name in natural order."""
    return {name: rank for rank, name in enumerate(sorted({*names}, key=lambda name: (natural(name), name)))}


def runs(names: Collection[str], ranks: Mapping[str, int]) -> str:
    """Names in natural order; three and more that follow each other among the ``ranked`` ones as ``first … last``."""
    outsiders = ranked(name for name in names if name not in ranks)
    groups: list[list[str]] = []
    for name in sorted({*names}, key=lambda name: (name in outsiders, outsiders.get(name, ranks.get(name, 0)))):
        if groups and name in ranks and ranks.get(groups[-1][-1]) == ranks[name] - 1:
            groups[-1].append(name)
        else:
            groups.append([name])
    return ", ".join(f"{group[0]} … {group[-1]}" if len(group) >= _SHORT_RUN else ", ".join(group) for group in groups)
