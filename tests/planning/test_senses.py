"""What a sense makes of a live value and a wanted one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.planning.comparison import combine_values, would_lower
from advisor.tunables.tunable import Sense

PAPER = "4096 87380 8388608"
RAISE: tuple[Sense, ...] = ("at-least", "at-least", "at-least")


@pytest.mark.parametrize(
    ("live", "wanted", "sense", "combined"),
    [
        # Kernel 6.18 ships a larger maximum, and a larger initial size than the paper's.
        ("4096 131072 33554432", PAPER, RAISE, "4096 131072 33554432"),
        ("4096 131072 6291456", PAPER, RAISE, "4096 131072 8388608"),
        ("4096 16384 4194304", "4096 65536 8388608", RAISE, "4096 65536 8388608"),
        ("4096 131072 6291456", PAPER, ("keep", "exactly", "at-most"), "4096 87380 6291456"),
        ("4096 131072 6291456", PAPER, "exactly", PAPER),
        ("4096 131072 6291456", PAPER, "at-least", "4096 131072 8388608"),
        ("20", "10", "at-most", "10"),
        ("-1", "10", "at-least", "10"),
        ("60", "10", "keep", "60"),
        ("4096 131072 6291456", "1", "keep", "4096 131072 6291456"),
        ("none", "mq-deadline", "at-least", "mq-deadline"),
        ("--5", "10", "at-least", "10"),
        ("9" * 5000, "10", "at-least", "10"),
        ("60", "1  2", "exactly", "1 2"),
        ("2", "0-3", "within", "2"),
        ("1-2,3", "0-3", "within", "1-2,3"),
        ("2,9", "0-3", "within", "0-3"),
        ("", "0-3", "within", "0-3"),
        ("f", "0-3", "within", "0-3"),
        ("0-3", "", "within", ""),
    ],
)
def test_combine(live: str, wanted: str, sense: Sense | tuple[Sense, ...], combined: str) -> None:
    assert combine_values(live, wanted, sense) == combined


@pytest.mark.parametrize(
    ("live", "wanted", "combined", "lowers"),
    [
        ("4096 131072 33554432", PAPER, "4096 131072 33554432", True),
        ("4096 131072 6291456", PAPER, "4096 131072 8388608", True),
        ("4096 16384 4194304", PAPER, PAPER, False),
        ("10", "10", "10", False),
        ("5 10", "3 20", "3 10", False),
        # A smaller set of CPUs inside the wanted one is not a lower value.
        ("2", "0-3", "2", False),
        ("--5", "10", "--5", False),
    ],
)
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
