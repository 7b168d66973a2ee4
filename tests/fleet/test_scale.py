"""What must not grow with a fleet: captures that are held in memory, and how often a host's links are gone through."""

from __future__ import annotations

from pathlib import Path

from advisor.fleet.runs.order import OrderFacts, OrderSubject
from advisor.fleet.runs.planning import MAX_ASKED, CapturedHost, find_neighbourhood, plan_fleet, targets_of
from advisor.fleet.runs.waves import WaveShape
from tests.fleet.test_order import plan
from tests.rules import build

CAPTURE = Path(__file__).parents[1] / "fixtures/storage-host-root.tar.gz"


def fleet(count: int) -> list[OrderSubject]:
    """Hosts on one subnet of each version, whose link is to be raised."""
    found = []
    for at in range(count):
        addresses = (f"10.1.{at // 250}.{at % 250 + 1}/16", f"2001:db8:5::{at + 1:x}/64", f"fe80::{at + 1:x}/64")
        links = (build.link("eth1", mtu=1500, addresses=addresses), build.link("lo", kind="loopback"))
        found.append(OrderSubject(f"n{at:04}", OrderFacts(None, links), plan(1500, 9000)))
    return found


def test_each_host_asks_the_first_of_its_subnet_once_each_and_not_itself() -> None:
    subjects = fleet(100)
    around = find_neighbourhood(subjects)
    asked = [[one.owner for one in targets_of(subject, around)] for subject in (subjects[0], subjects[3], subjects[99])]
    assert asked[0] == [f"n{at:04}" for at in range(1, MAX_ASKED + 1)]
    assert asked[1] == [f"n{at:04}" for at in range(MAX_ASKED + 1) if at != 3]
    assert asked[2] == [f"n{at:04}" for at in range(MAX_ASKED)]
    assert {":" in one.address for one in targets_of(subjects[0], around)} == {False}


def test_a_capture_that_cannot_be_read_is_a_failed_host(tmp_path: Path) -> None:
    damaged = tmp_path / "n1.tar.gz"
    damaged.write_bytes(CAPTURE.read_bytes()[:2000])
    # Of one machine-id: a machine under two names, and copies of one image.
    copies = [CapturedHost(f"n{at}", CAPTURE, "id", "", f"boot{at % 3}") for at in range(2, 6)]
    captured = [CapturedHost("n0", CAPTURE), CapturedHost("n1", damaged), *copies]
    made = plan_fleet(captured, ["socket-buffers-8m"], {}, inventory=(), shape=WaveShape(), leave=["n5"])
    assert [host.state for host in made.hosts] == ["change", "failed", "same", "change", "change", "done"]
    assert "n1.tar.gz" in made.hosts[1].message
