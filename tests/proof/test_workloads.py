"""The catalogue: what must be in it, and what each entry must say."""

from __future__ import annotations

import pytest

from advisor.proof.metrics import METRICS
from advisor.proof.workloads import WORKLOADS, Pattern, UnknownWorkloadError, default_metric, get_workload

EVERY = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=lambda workload: workload.name)


@EVERY
def test_every_workload_is_whole(workload: Pattern) -> None:
    assert workload.title
    assert workload.source
    assert workload.unit == METRICS[workload.metric].unit
    assert len(workload.sections) > 1 or workload.metric == default_metric(workload.sections[0].block_bytes)
    assert sum(section.region[1] for section in workload.sections) <= 100


def test_shares_and_metrics_of_workloads() -> None:
    assert [default_metric(kib * 1024) for kib in (4, 8, 16, 32, 64, 1024)] == ["iops"] * 3 + ["bandwidth"] * 3
    assert not get_workload("infoscale.4k-rand-r100").is_writing
    assert get_workload("infoscale.4k-rand-rw50").sections[0].write_share == 0.5
    assert get_workload("iometer.reallife").sections[0].write_share == pytest.approx(0.35)
    assert get_workload("iris.ranwrite").sections[0].write_share == 1.0
    assert not get_workload("null.4k").is_writing
    assert not get_workload("null.4k").needs_scratch


def test_an_unknown_name_is_a_usage_error_with_the_closest_names_or_all() -> None:
    with pytest.raises(UnknownWorkloadError, match=r"infoscale\.4k-rand-r50") as caught:
        get_workload("infoscale.4k-rand-r50")
    assert caught.value.exit_code == 2
    assert "infoscale.4k-rand-rw50" in (caught.value.hint or "")
    with pytest.raises(UnknownWorkloadError) as caught:
        get_workload("%%%")
    assert "null.4k" in (caught.value.hint or "")


def test_between_two_hosts_both_directions_are_declared_and_no_storage_is_touched() -> None:
    network = [workload for workload in WORKLOADS.values() if workload.is_network]
    ways = {(section.protocol, section.pattern) for workload in network for section in workload.sections}
    assert ways == {("tcp", "write"), ("tcp", "read"), ("udp", "write"), ("udp", "read")}
    assert not any(workload.needs_scratch or workload.is_writing for workload in network)
    assert get_workload("net.tcp-64k").metric == "bandwidth"
    assert get_workload("net.udp-8k").metric == "iops"
