"""Pages hold their words together at every width, on the hosts of the articles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest

from advisor.errors import AdvisorError
from advisor.facts.host_facts import scan
from advisor.planner import plan_profiles
from advisor.profiles.profile import profile_paths
from advisor.report.plan import plan_text
from tests.each import for_each
from tests.fuzz.hosts import ARTICLES
from tests.report.pasted import lines_too_wide

WIDTHS = (60, 68, 72, 80, 100, 110, 130, 160, 200)
NAMES = sorted(ARTICLES)[:: max(1, len(ARTICLES) // 12)]
WIDE = 4000


@cache
def pages(name: str) -> tuple[Callable[[int], str], ...]:
    """The pages of one host: each plan that can be made."""
    host = ARTICLES[name]()
    facts = scan(host)
    found: list[Callable[[int], str]] = []
    for profile in sorted(profile_paths()):
        try:
            made = plan_profiles(host, (profile,), {}, facts=facts)
        except AdvisorError:
            continue
        found.append(lambda width, made=made: plan_text(made, width=width, color=False))  # type: ignore[misc]
    return tuple(found)


def tokens(line: str) -> Iterator[str]:
    """Words, and parts of lists; not the signs of a value on a line of its own."""
    yield from (part for word in line.split() if word not in ("+", "-", "→") for part in word.split(",") if part)


@for_each("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_no_word_is_broken_and_no_line_too_long(name: str, width: int) -> None:
    for page in pages(name):
        whole = {word for line in page(WIDE).splitlines() for word in tokens(line)}
        assert lines_too_wide(page(width), width) == []
        for line in page(width).splitlines():
            assert [word for word in tokens(line) if word not in whole] == [], line
