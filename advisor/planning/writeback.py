"""Dirty memory: whether what a plan sets leaves room between the background's limit and that of the writers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from advisor.facts.host_facts import Facts
from advisor.host.numbers import whole_number
from advisor.planning.records import Change

_LIMITS: Final = {"vm.dirty_background_bytes": "vm.dirty_background_ratio", "vm.dirty_bytes": "vm.dirty_ratio"}
"""Each key in bytes, with the one in percent of which one alone is not zero."""


def writeback_notes(changes: Iterable[Change], facts: Facts) -> tuple[str, ...]:
    """What to know where a plan leaves the limit of the background at or above that of the writers: the kernel takes
    half of the latter then (mm/page-writeback.c, domain_dirty_limits), another value than the one that reads back."""
    keys = {*_LIMITS, *_LIMITS.values()}
    planned = {key: one.after for one in changes if (key := one.tunable.removeprefix("sysctl:")) in keys}
    if not planned:
        return ()
    background, writers = (_limit(name, planned, facts.sysctl) for name in _LIMITS)
    if background is None or writers is None:
        return ()
    # A percentage is one of the memory that may be dirty, which is never more than all of it.
    total = facts.memory.total_bytes
    is_alike = (background[0] in _LIMITS) == (writers[0] in _LIMITS)
    if not is_alike and (background[0] not in _LIMITS or not total):
        return ()
    least = writers[1] if is_alike else writers[1] * (total or 0) // 100
    if background[1] < least:
        return ()
    return (
        (
            f"{background[0]} {background[1]} is not below {writers[0]} {writers[1]}: the kernel takes half of "
            f"what {writers[0]} allows in its place (mm/page-writeback.c)"
        ),
    )


def _limit(in_bytes: str, planned: Mapping[str, str], live: Mapping[str, str]) -> tuple[str, int] | None:
    """The key of a pair that is not zero, with its number; None where it is not known."""
    for known in (planned, live):
        for key in (in_bytes, _LIMITS[in_bytes]):
            number = whole_number(known.get(key, ""))
            if number:
                return key, number
    return None
