"""A number with its noun: one is singular."""

from __future__ import annotations

import pytest

from advisor.host.numbers import count_noun


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ((1, "packet"), "1 packet"),
        ((0, "packet"), "0 packets"),
        ((1200, "packet"), "1,200 packets"),
        ((1.0, "process"), "1 process"),
        ((3, "process"), "3 processes"),
        ((1, "packet", "was", "were"), "1 packet was"),
        ((2, "packet", "was", "were"), "2 packets were"),
    ],
)
def test_one_is_singular(given: tuple[float, str], text: str) -> None:
    assert count_noun(*given) == text
