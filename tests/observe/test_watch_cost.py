"""What ``why --watch`` reads at each look, and at every third."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.host import tree_host
from advisor.operations.diagnosis import WatchedHost
from tests.diagnosis.moments import Disk, Group, Link, Machine, files_at
from tests.known import known
from tests.trees import make_tree

SERVICE = "/system.slice/db.service"
MACHINE = Machine(
    cpus=2,
    disks=(Disk("sda", 100, 50, number="8:0"),),
    links=(Link("eth0"),),
    groups=(Group(SERVICE, read_bytes=1e6, reads=10),),
    thermal=0.0,
)


@pytest.mark.parametrize(("seconds", "each"), [(10.0, 3), (30.0, 3), (4.0, 1)])
def test_services_are_read_at_every_third_look_and_twice_in_each_span(
    tmp_path: Path, seconds: float, each: int
) -> None:
    now = 1000.0
    make_tree(tmp_path, files_at(MACHINE, now))
    watched = WatchedHost(tree_host(str(tmp_path)), seconds, clock=lambda: now)
    looks = []
    for _ in range(12):
        # A look is a little late now and then.
        now += 2.0 + (0.05 if now % 3 < 1 else 0.0)
        make_tree(tmp_path, files_at(MACHINE, now))
        watched.advance()
        read = ["cgroup" in sample.counters for sample in watched._samples]
        assert sum(read) >= 2, read
        assert all("disk" in sample.counters for sample in watched._samples)
        looks.append(read[-1])
        assert not any("control group" in one.fact for one in known(watched.diagnosis).unknown)
    assert looks[0]
    assert sum(looks[1:]) <= 11 / each + 1
