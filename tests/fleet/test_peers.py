"""Who stands out from its peers: one slow drive among 24 is named, healthy fleets of every spread are left alone."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from advisor.diagnosis.observation import read_context
from advisor.fleet.why import MIN_PEERS, Measure, PeerFigure, find_outliers, measure_host
from tests.diagnosis.moments import Disk, Link, Machine, host_at, span_of


def waits(*values: float, measure: Measure = "read-wait", requests: float = 100) -> list[PeerFigure]:
    return [
        PeerFigure(f"node{at:02}", "nvme3n1", measure, "PM9A3, 3,841 GB", value, 0.2, requests)
        for at, value in enumerate(values)
    ]


def test_one_slow_drive_among_24_is_named_with_how_much_slower_it_is() -> None:
    dice = random.Random(7)
    figures = waits(*(0.5 * dice.uniform(0.8, 1.2) for _ in range(23)), 3.05)
    outliers, groups = find_outliers(figures)
    (found,) = outliers
    assert (found.host, found.device, found.count, found.is_loaded) == ("node23", "nvme3n1", 23, False)
    assert found.times == pytest.approx(6.1, rel=0.1)
    assert found.value == 3.05
    assert found.usual == pytest.approx(0.5, rel=0.1)
    assert [(one.count, one.is_judged) for one in groups] == [(24, True)]


SHAPES: dict[str, Callable[[random.Random], float]] = {
    "alike": lambda dice: 1.0,
    "narrow": lambda dice: math.exp(dice.gauss(0, 0.1)),
    "wide": lambda dice: math.exp(dice.gauss(0, 0.6)),
    "even": lambda dice: dice.uniform(0.4, 1.3),
    "bursts": lambda dice: dice.gammavariate(4, 0.25),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_healthy_fleets_are_left_alone(shape: str) -> None:
    named = 0
    for seed in range(600):
        dice = random.Random(f"{shape} {seed}")
        count = dice.choice((6, 8, 12, 24, 60))
        named += bool(find_outliers(waits(*(3 * SHAPES[shape](dice) for _ in range(count))))[0])
    assert named <= 3, "more than one fleet in 200"


def test_a_third_with_another_role_is_no_row_of_slow_drives() -> None:
    dice = random.Random(1)
    figures = waits(*(dice.uniform(0.9, 1.1) * (6.0 if at % 3 == 0 else 1.0) for at in range(24)))
    assert find_outliers(figures)[0] == ()


def test_of_too_few_peers_and_of_halves_nothing_is_said() -> None:
    few = waits(*[1.0] * (MIN_PEERS - 1), 50.0)
    outliers, groups = find_outliers(few)
    assert outliers == ()
    assert [one.is_judged for one in groups] == [False]
    assert find_outliers(waits(*[1.0] * 12, *[9.0] * 12))[0] == ()


def test_a_larger_request_is_no_slower_drive() -> None:
    """Each wait is set against what the medium takes for requests of its size."""
    figures = waits(*[0.5] * 11)
    large = PeerFigure("node11", "nvme3n1", "read-wait", "PM9A3, 3,841 GB", 3.0, 1.2, 100)
    assert find_outliers([*figures, large])[0] == ()


def test_what_its_own_load_explains_comes_last_and_is_said_so() -> None:
    busy = PeerFigure("node12", "nvme3n1", "read-wait", "PM9A3, 3,841 GB", 9.0, 0.2, 450)
    slow = PeerFigure("node13", "nvme3n1", "read-wait", "PM9A3, 3,841 GB", 5.0, 0.2, 90)
    outliers, _ = find_outliers([*waits(*[0.5] * 12), busy, slow])
    assert [(one.host, one.is_loaded) for one in outliers] == [("node13", False), ("node12", True)]
    assert outliers[1].requests_times == pytest.approx(4.5)


def test_a_device_is_named_once_for_its_reads_and_writes() -> None:
    both = [*waits(*[0.5] * 12, 3.0), *waits(*[0.1] * 12, 4.0, measure="write-wait")]
    assert [(one.host, one.measure) for one in find_outliers(both)[0]] == [("node12", "write-wait")]


@pytest.mark.parametrize(
    ("measure", "usual", "high"), [("lost", 0.0, 0.02), ("resent", 0.0002, 0.12), ("steal", 0.004, 0.3)]
)
def test_shares_stand_out_from_a_floor(measure: Measure, usual: float, high: float) -> None:
    figures = [PeerFigure(f"h{at}", None, measure, "hosts of 4 CPUs", usual) for at in range(12)]
    outliers, _ = find_outliers([*figures, PeerFigure("odd", None, measure, "hosts of 4 CPUs", high)])
    assert [(one.host, one.value) for one in outliers] == [("odd", high)]
    small = [PeerFigure(f"h{at}", None, measure, "hosts of 4 CPUs", usual / 100) for at in range(12)]
    assert find_outliers([*small, PeerFigure("odd", None, measure, "hosts of 4 CPUs", 5e-5)])[0] == ()


def machine(*, slow: float = 1.0, lost: float = 0, seed: int = 0) -> Machine:
    dice = random.Random(seed)
    disks = tuple(
        Disk(f"nvme{at}n1", dice.uniform(200, 400), dice.uniform(50, 90), wait_ms=0.3 * dice.uniform(0.8, 1.3) * more)
        for at, more in enumerate((1.0, slow))
    )
    return Machine(disks=disks, links=(Link(rx_bytes=2e7, missed=lost),), steal=dice.uniform(0, 0.02))


def figures_of(name: str, one: Machine) -> tuple[PeerFigure, ...]:
    return measure_host(name, span_of(one, 2), read_context(host_at(one, 1000)))


def test_the_figures_of_a_host_are_those_of_its_span() -> None:
    found = {(one.device, one.measure): one for one in figures_of("h", machine(slow=2, seed=3))}
    slow = found["nvme1n1", "read-wait"]
    assert slow.value == pytest.approx(0.3 * 2, rel=0.35)
    assert (slow.host, slow.peers) == ("h", "nvme, 1,024 GB")
    assert slow.medium_ms == pytest.approx(0.2, rel=0.2)
    assert found[None, "resent"].value == 0
    assert (None, "storage-stall") in found


def test_a_slow_drive_in_a_fleet_of_spans_and_none_in_a_healthy_one() -> None:
    healthy = [one for at in range(12) for one in figures_of(f"h{at}", machine(seed=at))]
    assert find_outliers(healthy)[0] == ()
    odd = figures_of("odd", machine(slow=8, seed=99))
    assert [(one.host, one.device) for one in find_outliers([*healthy, *odd])[0]] == [("odd", "nvme1n1")]
