"""A test of many cases fails for each case that fails, and for no case at all."""

from __future__ import annotations

import pytest

from tests.each import for_each


def test_every_case_that_fails_is_named() -> None:
    tried = []

    @for_each("left right", [(1, 1), (1, 2), (2, 2), (3, 4)])
    @for_each("factor", [0, 1])
    def compare(left: int, right: int, factor: int, where: str) -> None:
        tried.append((left, right, factor, where))
        assert left * factor == right * factor

    with pytest.raises(ExceptionGroup, match="2 of 4 cases") as caught:
        compare(where="here")
    assert len(tried) == 8
    assert [one.__notes__ for one in caught.value.exceptions] == [["case: (1, 2)"], ["case: (3, 4)"]]
    inner = [one.exceptions for one in caught.value.exceptions if isinstance(one, ExceptionGroup)]
    assert [[one.__notes__ for one in each] for each in inner] == [[["case: 1"]], [["case: 1"]]]


def test_another_error_ends_it_and_names_its_case() -> None:
    @for_each("divisor", [1, 0, 2])
    def divide(divisor: int) -> None:
        assert 1 // divisor <= 1

    with pytest.raises(ZeroDivisionError) as caught:
        divide()
    assert caught.value.__notes__ == ["case: 0"]


def test_no_case_is_no_success() -> None:
    @for_each("value", [])
    def never(value: int) -> None:
        raise AssertionError(value)

    with pytest.raises(AssertionError, match="no case"):
        never()
