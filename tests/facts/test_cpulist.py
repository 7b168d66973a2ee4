"""Kernel lists and masks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.processors.cpulist import MAX_ID, fold_list, format_list, parse_list, parse_mask, read_ids, read_list
from advisor.host import Missing, tree_host
from tests.cases import read_cases
from tests.trees import make_tree

ids = st.frozensets(st.integers(0, 600))


DATA = read_cases(__file__)


@pytest.mark.parametrize(("text", "expected"), [*DATA["list"], ("0-575", tuple(range(576)))])
def test_list(text: str, expected: tuple[int, ...]) -> None:
    assert parse_list(text) == expected


@pytest.mark.parametrize(
    "text", ["a", "-1", "3-1", "0-", "1 2", "0-3:0/4", "0-3:5/4", "0:1/2", "1_0", "٣", f"0-{MAX_ID}", "9" * 5000, "0x1"]
)
def test_what_is_no_list(text: str) -> None:
    with pytest.raises(ValueError, match="not a kernel list"):
        parse_list(text)


@pytest.mark.parametrize(
    ("text", "expected"), [*DATA["mask"], ("0000,00000000,00000000,00ff00ff", (*range(8), *range(16, 24)))]
)
def test_mask(text: str, expected: tuple[int, ...]) -> None:
    assert parse_mask(text) == expected


@pytest.mark.parametrize("text", ["g", "-1", "1_0", ",", "1,,2", "1,123456789", "ff ff"])
def test_what_is_no_mask(text: str) -> None:
    with pytest.raises(ValueError, match="not a kernel mask"):
        parse_mask(text)


def test_a_mask_beyond_any_kernel_is_refused() -> None:
    with pytest.raises(ValueError, match="too wide"):
        parse_mask("1" + ",00000000" * (MAX_ID // 32))


@given(ids)
def test_a_formatted_list_reads_back(numbers: frozenset[int]) -> None:
    assert parse_list(format_list(numbers)) == tuple(sorted(numbers))


@given(ids)
def test_a_mask_reads_back(numbers: frozenset[int]) -> None:
    digits = f"{sum(1 << number for number in numbers):0608x}"
    groups = [digits[at : at + 8] for at in range(0, len(digits), 8)]
    assert parse_mask(",".join(groups)) == tuple(sorted(numbers))


@given(st.one_of(st.text(), st.text("0123456789-,:/ \0")))
def test_any_text_is_a_list_or_a_value_error(text: str) -> None:
    try:
        numbers = parse_list(text)
    except ValueError:
        return
    assert list(numbers) == sorted(set(numbers))
    assert all(0 <= number < MAX_ID for number in numbers)


@given(st.one_of(st.text(), st.text("0123456789abcdefABCDEF, x\0")))
def test_any_text_is_a_mask_or_a_value_error(text: str) -> None:
    try:
        numbers = parse_mask(text)
    except ValueError:
        return
    assert list(numbers) == sorted(set(numbers))


def test_a_mask_stands_in_for_a_missing_list_only(tmp_path: Path) -> None:
    host = tree_host(str(make_tree(tmp_path, {"/n/cpumap": "3", "/odd/cpulist": "x", "/odd/cpumap": "zz"})))
    assert read_ids(host, "/n/cpulist", "/n/cpumap") == (0, 1)
    odd = read_ids(host, "/odd/cpulist", "/odd/cpumap")
    assert isinstance(odd, Missing)
    assert "not a kernel list" in odd.why
    absent = read_list(host, "/nowhere")
    assert isinstance(absent, Missing)
    assert absent.is_absent


@pytest.mark.parametrize(("text", "folded"), DATA["a_list_for_people_is_short_and_exact"])
def test_a_list_for_people_is_short_and_exact(text: str, folded: str) -> None:
    assert fold_list(parse_list(text)) == folded


def unfolded(text: str) -> list[int]:
    """The ids that a reader takes from a folded list: each ``a, b … c`` goes on in the step from a to b."""
    found: list[int] = []
    spans: list[tuple[int, int]] = []
    for part in text.split(", "):
        first, dots, last = part.partition(" … ")
        spans.append((int(first.split("-")[0]), int(first.split("-")[-1])))
        if dots:
            step, end = spans[-1][0] - spans[-2][0], int(last.split("-")[0])
            while spans[-1][0] < end:
                spans.append((spans[-1][0] + step, spans[-1][1] + step))
            assert spans[-1][0] == end
    for low, high in spans:
        found += range(low, high + 1)
    return found


@given(st.sets(st.integers(0, 60), min_size=1))
def test_nothing_is_lost_and_nothing_added(ids: set[int]) -> None:
    assert unfolded(fold_list(ids)) == sorted(ids)
