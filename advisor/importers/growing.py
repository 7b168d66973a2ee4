"""Kernel parameters of which more is what an author asks for: limits, buffers, tables.

A kernel that is younger than the profile may have more by itself, and nobody who raises a limit means to lower it.
"""

from __future__ import annotations

import re

from advisor.facts.settings import find_setting


def is_growing(key: str) -> bool:
    """Whether a larger value than the wanted one is as good."""
    setting = find_setting(key)
    return setting is not None and setting.grows


def lowered_fields(live: str, wanted: str) -> tuple[tuple[int, int], ...]:
    """The numbers that ``wanted`` would lower, each with what it would become; none where fields do not correspond."""
    old, new = live.split(), wanted.split()
    if len(old) != len(new) or not all(re.fullmatch(r"[0-9]{1,20}", word) for word in (*old, *new)):
        return ()
    return tuple((int(was), int(now)) for was, now in zip(old, new, strict=True) if int(now) < int(was))
