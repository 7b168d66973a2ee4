"""Ranges of a search: a finite list of values, and only within limits that a source gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.errors import UsageError
from advisor.host import Host
from advisor.operations.tuning import MAX_VALUES, parse_range, range_offers
from tests.trees import host_of, make_tree


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("sysctl:net.core.rmem_max=1M..8M", (1 << 20, 2 << 20, 4 << 20, 8 << 20)),
        ("sysctl:vm.swappiness=10..60/+25", (10, 35, 60)),
        ("sysctl:vm.swappiness=0..60/+25", (0, 25, 50, 60)),
        ("block:sda:read_ahead_kb=64..4096/x8", (64, 512, 4096)),
    ],
)
def test_a_range_is_a_list_with_both_ends(word: str, values: tuple[int, ...]) -> None:
    assert parse_range(word).values == values


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("sysctl:vm.swappiness=10", "expected TUNABLE=LOW..HIGH"),
        ("sysctl:vm.swappiness=10..", "expected TUNABLE=LOW..HIGH"),
        ("sysctl:vm.swappiness=10..60/*2", "expected TUNABLE=LOW..HIGH"),
        ("sysctl:vm.swappiness=60..10", "the smaller value first"),
        ("sysctl:vm.swappiness=0..60", "do not lead from 0 to 60"),
        ("sysctl:vm.swappiness=1..60/x1", "do not lead from 1 to 60"),
        ("sysctl:vm.swappiness=1..60/+0", "do not lead from 1 to 60"),
        ("sysctl:vm.swappiness=0..200/+1", f"at most {MAX_VALUES} values"),
        ("nothing=1..2", "nothing"),
    ],
)
def test_what_is_no_range_is_refused_with_its_word(word: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_range(word)
    assert message in str(caught.value)


@pytest.fixture(name="host")
def make_host(tmp_path: Path) -> Host:
    values = {"net/core/rmem_max": "212992", "vm/swappiness": "60", "kernel/msgmnb": "16384"}
    return host_of(make_tree(tmp_path / "tree", {f"/proc/sys/{key}": f"{value}\n" for key, value in values.items()}))


def test_each_value_is_a_candidate_with_the_source_of_its_limits(host: Host) -> None:
    by_profile = list(range_offers("sysctl:net.core.rmem_max=1M..4M", host))
    assert [one.name for one in by_profile] == [f"sysctl:net.core.rmem_max={size << 20}" for size in (1, 2, 4)]
    assert all("parameter bytes" in one.source and "within 212992 to 1073741824" in one.source for one in by_profile)
    by_kernel = list(range_offers("sysctl:vm.swappiness=100..200/+100", host))
    assert [one.name for one in by_kernel] == ["sysctl:vm.swappiness=100", "sysctl:vm.swappiness=200"]
    assert "vm.rst" in by_kernel[0].source


def test_a_range_beyond_its_sources_and_one_without_a_source_are_refused(host: Host) -> None:
    with pytest.raises(UsageError, match="no source allows all of it") as beyond:
        list(range_offers("sysctl:vm.swappiness=10..400", host))
    assert "0 to 200: Documentation/admin-guide/sysctl/vm.rst" in (beyond.value.hint or "")
    with pytest.raises(UsageError, match="no source says which values it may have"):
        list(range_offers("sysctl:kernel.msgmnb=16384..65536", host))
