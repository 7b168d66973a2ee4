"""What must not grow with a fleet: captures that are held in memory, and how often a host's links are gone through."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from advisor.facts.links import Link
from advisor.fleet.inventory import InventoryHost
from advisor.fleet.runs.order import OrderFacts, OrderSubject, find_segments, mtu_warnings
from advisor.fleet.runs.planning import CapturedHost, plan_fleet
from advisor.fleet.runs.wave_gate import MAX_ASKED, find_neighbourhood, targets_of
from advisor.fleet.runs.waves import Candidate, WaveShape, make_waves
from advisor.host import Host
from tests.fleet.test_order import plan
from tests.rules import build

CAPTURE = Path(__file__).parents[1] / "fixtures/storage-host-root.tar.gz"


class Links(tuple[Link, ...]):
    """The links of a host, and how often anybody went through those of all hosts."""

    walks = 0

    def __iter__(self) -> Iterator[Link]:
        Links.walks += 1
        return super().__iter__()


def fleet(count: int) -> list[OrderSubject]:
    """Hosts on one subnet of each version, whose link is to be raised."""
    found = []
    for at in range(count):
        addresses = (f"10.1.{at // 250}.{at % 250 + 1}/16", f"2001:db8:5::{at + 1:x}/64", f"fe80::{at + 1:x}/64")
        links = Links([build.link("eth1", mtu=1500, addresses=addresses), build.link("lo", kind="loopback")])
        found.append(OrderSubject(f"n{at:04}", OrderFacts(None, links), plan(1500, 9000)))
    return found


def walks(count: int) -> int:
    """How often links are gone through until every host of a fleet knows whom its gate asks."""
    subjects = fleet(count)
    Links.walks = 0
    around = find_neighbourhood(subjects)
    assert all(len(targets_of(subject, around)) == min(count - 1, MAX_ASKED) for subject in subjects)
    return Links.walks


def test_whom_a_gate_asks_is_found_in_time_that_grows_with_the_hosts_and_not_with_their_square() -> None:
    assert walks(240) == 6 * walks(40)


def test_each_host_asks_the_first_of_its_subnet_once_each_and_not_itself() -> None:
    subjects = fleet(100)
    around = find_neighbourhood(subjects)
    asked = [[one.owner for one in targets_of(subject, around)] for subject in (subjects[0], subjects[3], subjects[99])]
    assert asked[0] == [f"n{at:04}" for at in range(1, MAX_ASKED + 1)]
    assert asked[1] == [f"n{at:04}" for at in range(MAX_ASKED + 1) if at != 3]
    assert asked[2] == [f"n{at:04}" for at in range(MAX_ASKED)]
    assert {":" in one.address for one in targets_of(subjects[0], around)} == {False}


def test_a_fleet_of_many_subnets_is_gone_through_once() -> None:
    subjects = fleet(60)
    for at, subject in enumerate(subjects):
        links = Links([build.link("eth1", mtu=1500, addresses=(f"10.2.{at // 2}.{at % 2 + 1}/24",))])
        subjects[at] = msgspec.structs.replace(subject, facts=OrderFacts(None, links))
    Links.walks = 0
    assert len(find_segments(subjects)) == 30
    assert Links.walks == 60


def test_a_fleet_of_a_thousand_is_told_by_which_wave_its_subnet_is_raised() -> None:
    subjects = fleet(1000)
    waves = make_waves([Candidate(subject.name) for subject in subjects])
    assert waves.numbers()["n0999"] == len(waves.waves) == 4
    assert "mixed from wave 1 to wave 4" in " ".join(mtu_warnings(find_segments(subjects), waves))


def held() -> int:
    gc.collect()
    return sum(isinstance(one, Host) for one in gc.get_objects())


@pytest.mark.thorough
def test_no_capture_is_held_once_its_host_has_been_planned_for() -> None:
    names = [f"n{at}" for at in range(4)]
    known = [InventoryHost(name, None, None, None, None, ()) for name in names]
    before = held()
    most = 0

    def progress(*_: Any) -> None:
        nonlocal most
        most = max(most, held())

    made = plan_fleet(
        [CapturedHost(name, CAPTURE) for name in names], ["socket-buffers-8m"], {}, inventory=known, shape=WaveShape(),
        progress=progress,
    )  # fmt: skip
    assert [host.state for host in made.hosts] == ["change"] * 4
    assert held() == before
    assert most <= before + 1


def test_a_capture_that_cannot_be_read_is_a_failed_host(tmp_path: Path) -> None:
    damaged = tmp_path / "n1.tar.gz"
    damaged.write_bytes(CAPTURE.read_bytes()[:2000])
    captured = [CapturedHost("n0", CAPTURE), CapturedHost("n1", damaged)]
    made = plan_fleet(captured, ["socket-buffers-8m"], {}, inventory=(), shape=WaveShape())
    assert [host.state for host in made.hosts] == ["change", "failed"]
    assert "n1.tar.gz" in made.hosts[1].message
