"""When a value does harm, where nobody says so of this very value: by what is set, never by who wrote it."""

from __future__ import annotations

import re

from advisor.facts.settings import find_setting
from advisor.tunables.catalogue import find_kind
from advisor.tunables.kind import NOT_MEASURED


def hurts_when(tunable: str, value: str) -> str:
    """One sentence on when this value of a tunable does harm, be it of all that are not known."""
    kind = find_kind(tunable)
    return find_harm(tunable, value) or (kind.harm_otherwise if kind else NOT_MEASURED)


def find_harm(tunable: str, value: str) -> str | None:
    """When this value of a tunable does harm; None where that is not known."""
    if tunable.startswith("sysctl:"):
        setting = find_setting(tunable.removeprefix("sysctl:"))
        return (setting.harm_of(value) or None) if setting else None
    kind, both = find_kind(tunable), f"{tunable.partition(':')[2]} {value}"
    return (
        next((words for pattern, words in kind.harms if re.fullmatch(pattern, both, re.DOTALL)), None) if kind else None
    )
