"""Damaged captures end in no fault: scan, recommend, limits and the plan of every profile answer, or refuse."""

from __future__ import annotations

from typing import Final

import pytest

from advisor.host.machine import Host
from advisor.host.numbers import is_count, whole_number
from advisor.planner import plan_profiles
from tests.fuzz.damage import ask
from tests.fuzz.hosts import CAPTURED, parts_of
from tests.quiet_hosts import quiet_host

SHORT: Final = range(60)
BATCHES: Final = 40
"""Of 500 hosts each, in the thorough run."""
FAILED: Final = (186, 20595)
"""Seeds that ended in a fault once. Their hosts change with the hosts of the tests; the classes are below, too."""

NO_MTU: Final = ("N\x1b[31m", "abc", "-5", "１５００", "1_500", "+1500", "1500 1500", "", "9" * 5000, "0x5dc", "1e3")


def test_damaged_hosts_end_in_no_fault() -> None:
    for seed in SHORT:
        ask(seed, profiles=4)


@pytest.mark.captured
def test_damaged_captures_end_in_no_fault() -> None:
    for seed in range(15):
        ask(seed, profiles=4, hosts=CAPTURED)


@pytest.mark.parametrize("seed", FAILED)
def test_what_once_ended_in_a_fault(seed: int) -> None:
    ask(seed)


@pytest.mark.thorough
@pytest.mark.parametrize("batch", range(BATCHES))
def test_many_damaged_hosts_end_in_no_fault(batch: int) -> None:
    for seed in range(1000 + 500 * batch, 1500 + 500 * batch):
        ask(seed, profiles=None if seed % 10 == 0 else 8)


@pytest.mark.captured
@pytest.mark.thorough
@pytest.mark.parametrize("batch", range(BATCHES // 4))
def test_many_damaged_captures_end_in_no_fault(batch: int) -> None:
    for seed in range(1000 + 500 * batch, 1500 + 500 * batch):
        ask(seed, profiles=8, hosts=CAPTURED)


def with_file(path: str, text: str) -> Host:
    return parts_of(quiet_host("web-server", "debian-12")).with_content(path, text.encode()).host()


@pytest.mark.parametrize("text", NO_MTU)
def test_what_is_no_mtu_is_unreadable(text: str) -> None:
    host = quiet_host("web-server", "debian-12")
    (link, *_) = [name for name in host.names("/sys/class/net") if name != "lo"]
    place = host.real(f"/sys/class/net/{link}/mtu")
    assert isinstance(place, str)
    made = plan_profiles(with_file(place, text + "\n"), ("jumbo-frames",), {"links": link, "mtu": "9000"})
    assert made.changes == ()
    (one,) = [one for one in made.skipped if one.tunable == f"link:{link}:mtu"]
    assert one.before is None
    assert "not a" in one.reason or not text


@pytest.mark.parametrize("text", [*NO_MTU, " 7", "7 ", "²", "٣"])
def test_a_number_is_ascii_digits(text: str) -> None:
    assert not is_count(text)
    assert whole_number(text) is None or text == "-5"


@pytest.mark.parametrize(
    ("text", "base", "number"),
    [("0", 10, 0), ("-5", 10, -5), ("0012", 10, 12), ("0x1002", 0, 0x1002), ("010", 0, 8), ("-1", 0, -1)],
)
def test_a_number_as_the_kernel_prints_it(text: str, base: int, number: int) -> None:
    assert whole_number(text, base) == number
