"""What a sense makes of a live value and a wanted one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.planning.comparison import combine_values, would_lower
from advisor.tunables.kind import Sense
from tests.cases import cases

CASES = cases(__file__)


@pytest.mark.parametrize(
    ("live", "wanted", "sense", "combined"), [*CASES["combine"], ("9" * 5000, "10", "at-least", "10")]
)
def test_combine(live: str, wanted: str, sense: Sense | list[Sense], combined: str) -> None:
    assert combine_values(live, wanted, tuple(sense) if isinstance(sense, list) else sense) == combined


@pytest.mark.parametrize(("live", "wanted", "combined", "lowers"), CASES["would lower"])
def test_would_lower(live: str, wanted: str, combined: str, lowers: bool) -> None:
    assert would_lower(live, wanted, combined) is lowers


WORDS = st.lists(st.integers(-9, 99).map(str) | st.sampled_from(["x", "0-3", "--1", "²", "٣", "-"]), max_size=4)
VALUES = WORDS.map(" ".join) | st.text(max_size=8)
SENSES: st.SearchStrategy[Sense] = st.sampled_from(["exactly", "at-least", "at-most", "keep"])


@given(VALUES, VALUES, SENSES | st.just("within") | st.lists(SENSES, max_size=4).map(tuple))
def test_to_combine_again_changes_nothing(live: str, wanted: str, sense: Sense | tuple[Sense, ...]) -> None:
    once = combine_values(live, wanted, sense)
    assert combine_values(once, wanted, sense) == once


NUMBERS = st.integers(-5, 2**64)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1), st.booleans())
def test_at_least_and_at_most_never_make_a_field_worse(pairs: list[tuple[int, int]], raises: bool) -> None:
    live, wanted = (" ".join(str(pair[side]) for pair in pairs) for side in (0, 1))
    sense: Sense = "at-least" if raises else "at-most"
    got = [int(field) for field in combine_values(live, wanted, (sense,) * len(pairs)).split()]
    assert got == [(max if raises else min)(pair) for pair in pairs]
    assert combine_values(live, wanted, sense) == combine_values(live, wanted, (sense,) * len(pairs))
