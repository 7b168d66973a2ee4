"""Devices on devices: what is at the bottom, however they are stacked, in time that grows with their number."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.block.storage import MAX_DEPTH, Stack
from advisor.facts.host_facts import scan
from advisor.host import Host, MemoryFiles, NoCommands
from tests.fuzz.growth import too_steep

NAMES = tuple(f"dm-{number}" for number in range(9))


@given(st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=4, unique=True).map(tuple)))
def test_the_bottom_is_what_has_nothing_below_and_can_be_reached(lower: dict[str, tuple[str, ...]]) -> None:
    for name in NAMES:
        reached, before = {name}, set[str]()
        while reached != before:
            before = set(reached)
            reached |= {below for one in before for below in lower.get(one, ())}
        assert Stack(lower, {}).disks(name) == tuple(sorted(one for one in reached if not lower.get(one)))


def test_layers_beyond_the_bound_are_not_known() -> None:
    lower = {f"dm-{number + 1}": (f"dm-{number}",) for number in range(MAX_DEPTH + 1)}
    stack = Stack(lower, {})
    assert stack.disks(f"dm-{MAX_DEPTH}") == ("dm-0",)
    assert stack.disks(f"dm-{MAX_DEPTH + 1}") == ()


def chain(length: int) -> Host:
    """A host on which each mapped device lies on the one before."""
    files = {"/sys/block/sda/size": b"1000000\n", "/proc/meminfo": b"MemTotal: 1000 kB\n"}
    for number in range(length):
        place, under = f"/sys/block/dm-{number}", f"dm-{number - 1}" if number else "sda"
        files[f"{place}/size"] = b"1000000\n"
        files[f"{place}/dm/name"] = b"lv%d\n" % number
        files[f"{place}/slaves/{under}/dev"] = b"8:0\n"
    return Host(MemoryFiles(files), NoCommands())


def test_a_long_chain_is_read_in_linear_time() -> None:
    assert too_steep(lambda size: scan(chain(size)), 1500) is None
