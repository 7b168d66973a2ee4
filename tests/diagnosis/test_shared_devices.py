"""Groups that wait for their share of a device: who is named, and when none is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.diagnosis.cases import CASES
from tests.diagnosis.moments import Disk, diagnose_machine

CASE = {case.name: case.machine for case in CASES}
BY_COST = CASE["io.weight of a service, shared out by io.cost"]
BY_MODEL = CASE["model of io.cost below what the drive can do (no details in io.stat)"]
BY_LATENCY = CASE["io.latency of another service"]
BY_BFQ = CASE["weight of a service in BFQ"]


def test_the_weights_where_two_groups_part_are_shown() -> None:
    (found,) = diagnose_machine(BY_COST).binds
    assert (found.device, found.share, found.asks and found.asks.unit) == ("nvme0n1", 0.85, "db.service")
    assert (found.evidence["weight"], found.evidence["other_weight"]) == (10, 400)
    assert found.evidence["other_group"] == "/system.slice/backup.service"
    assert str(found.evidence["io_cost_qos"]).startswith("enable=1")
    assert found.commands == ("systemctl show db.service --property=IOWeight,IODeviceWeight",)


def test_models_and_weights_that_are_used_up_or_not() -> None:
    (found,) = diagnose_machine(BY_MODEL).binds
    assert (found.id, found.evidence["cgroup"]) == ("disk.cgroup-limit", "/system.slice/db.service")
    full = Disk("nvme0n1", 9000, 0, 128, 16, 8.0, number="259:0")
    assert [one.id for one in diagnose_machine(replace(BY_MODEL, disks=(full,))).binds] == ["disk.saturated"]
    assert "what control groups wait for at their devices" in {one.fact for one in diagnose_machine(BY_MODEL).unknown}
    assert not [one for one in diagnose_machine(BY_COST).unknown if "wait for" in one.fact]


def test_a_group_that_waits_little_and_a_model_that_is_not_used_up() -> None:
    quiet = tuple(replace(one, io_some=0.05, waits=0.03) for one in BY_COST.groups)
    assert diagnose_machine(replace(BY_COST, io_some=0.05, iowait=0, groups=quiet)).binds == ()
    half = tuple(replace(one, usage=0.5) for one in BY_MODEL.groups)
    assert "disk.cgroup-limit" not in {one.id for one in diagnose_machine(replace(BY_MODEL, groups=half)).binds}


def test_latency_that_is_no_longer_missed_holds_nobody_back() -> None:
    batch, database = BY_LATENCY.groups
    free = replace(batch, io_tail=" depth=max avg_lat=3000 win=100")
    found = diagnose_machine(lambda at: replace(BY_LATENCY, groups=(batch if at < 5 else free, database)))
    assert "disk.cgroup-limit" not in {one.id for one in found.binds}
    (held,) = (one for one in diagnose_machine(BY_LATENCY).binds if one.id == "disk.cgroup-limit")
    assert (held.evidence["depth"], held.evidence["target_us"]) == (1, 5000)
    assert "db.service" in held.title


@pytest.mark.parametrize("scheduler", ["[mq-deadline] bfq none", "[none]"])
def test_weights_of_bfq_count_only_where_it_is_the_scheduler(scheduler: str) -> None:
    assert "disk.cgroup-limit" in {one.id for one in diagnose_machine(BY_BFQ).binds}
    other = replace(BY_BFQ, extra={"/sys/block/sda/queue/scheduler": f"{scheduler}\n"})
    assert [one.id for one in diagnose_machine(other).binds] == ["disk.saturated"]
