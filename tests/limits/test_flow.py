"""The linear programme: trees of shared parts have a known answer; shares add up; nothing is loaded beyond what it
carries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.limits.figures import SharedPart, most
from tests.known import known

CAPACITY = st.floats(0.5, 1e5)


def part(stage: str, capacity: float, loads: dict[int, float]) -> SharedPart:
    return SharedPart(stage, f"{stage}{sorted(loads)}", (stage,), capacity, loads)


@given(st.lists(st.lists(CAPACITY, min_size=1, max_size=4), min_size=1, max_size=5), st.lists(CAPACITY, min_size=6))
def test_a_tree_carries_the_smallest_cut(groups: list[list[float]], shared: list[float]) -> None:
    """Leaves below uplinks below one link: min(link, sum of min(uplink, sum of leaves))."""
    parts, path = [], 0
    expected = 0.0
    for number, leaves in enumerate(groups):
        numbers = range(path, path + len(leaves))
        parts += [part(f"leaf{at}", value, {at: 1.0}) for at, value in zip(numbers, leaves, strict=True)]
        parts.append(part(f"uplink{number}", shared[number], dict.fromkeys(numbers, 1.0)))
        expected += min(shared[number], sum(leaves))
        path += len(leaves)
    parts.append(part("link", shared[-1], dict.fromkeys(range(path), 1.0)))
    found = known(most(range(path), parts))
    assert found.value == pytest.approx(min(shared[-1], expected), rel=1e-6)
    assert sum(one.share for one in found.bounds) == pytest.approx(found.value)


def test_parts_that_are_loaded_twice_alike_or_without_limit() -> None:
    found = known(most([0], [part("uplink", 100.0, {0: 2.0})]))
    assert found.value == pytest.approx(50)
    assert most([0, 1], [part("leaf", 10.0, {0: 1.0})]) is None
    assert most([0, 1], [part("leaf", 10.0, {0: 1.0}), part("leaf", float("inf"), {1: 1.0})]) is None
    parts = [SharedPart("media", f"d{at}", (f"d{at}",), 10.0, {0: 0.25}) for at in range(4)]
    found = known(most([0], parts))
    assert found.value == pytest.approx(40)
    assert found.bounds[0].members == ("d0", "d1", "d2", "d3")
