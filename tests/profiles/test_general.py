"""The profiles of general services: planned where the service runs, and not where it would hurt or is not there."""

from __future__ import annotations

import pytest

from advisor.errors import RefusedError
from advisor.facts.host_facts import scan
from advisor.planner import plan_profiles
from advisor.recommend import outlooks, recommend
from tests.cases import read_cases
from tests.serving_hosts import MORE_SYSCTLS, UNITS, cloud_host, serving_host
from tests.whole_hosts import DISTRIBUTIONS, WholeHost

DATA = read_cases(__file__)

CHANGES = DATA["CHANGES"]
"""What each changes on a host as installed."""


@pytest.mark.parametrize("name", UNITS)
def test_a_profile_is_for_the_host_whose_service_runs(name: str) -> None:
    plan = plan_profiles(serving_host([UNITS[name]]), [name], {})
    assert {one.tunable: one.after for one in plan.changes} == CHANGES[name]
    assert plan.blocking == ()
    elsewhere = plan_profiles(serving_host(["ssh.service"]), [name], {})
    assert elsewhere.is_empty
    assert {one.state for one in elsewhere.skipped} == {"not-applicable"}


def test_recommend_says_what_shows_the_service_and_why_the_others_do_not_fit() -> None:
    host = serving_host([UNITS["redis"]])
    facts = scan(host)
    made = {one.profile: one for one in recommend(facts, None, outlooks(host, facts))}
    assert (made["redis"].fits, made["redis"].standing) == ("perhaps", "intent")
    assert "redis-server.service" in made["redis"].summary
    assert [case.holds for case in made["redis"].cases] == [True]
    assert (made["mysql"].fits, made["mysql"].standing) == ("no", "not-applicable")
    assert "mysqld.service" in made["mysql"].summary


def test_strict_accounting_that_somebody_chose_stays() -> None:
    host = serving_host([UNITS["redis"]], sysctl={"vm.overcommit_memory": "2"})
    plan = plan_profiles(host, ["redis"], {})
    assert "sysctl:vm.overcommit_memory" not in {one.tunable for one in plan.changes}
    assert any("strict accounting" in one.reason for one in plan.skipped)


def test_huge_pages_are_reserved_where_their_number_is_given_and_fits() -> None:
    host = serving_host([UNITS["postgresql"]])
    plan = plan_profiles(host, ["postgresql"], {"huge_pages": "4200"})
    assert {one.tunable: one.after for one in plan.changes}["sysctl:vm.nr_hugepages"] == "4200"
    with pytest.raises(RefusedError):
        plan_profiles(host, ["postgresql"], {"huge_pages": "40000"})


def test_on_a_small_host_the_kernels_share_of_dirty_pages_stays() -> None:
    plan = plan_profiles(serving_host([UNITS["postgresql"]], gib=8), ["postgresql"], {})
    assert {one.tunable for one in plan.changes} == {"thp:enabled"}
    [left] = [one for one in plan.skipped if one.tunable == "sysctl:vm.dirty_background_bytes"]
    assert left.state == "in-place"
    assert left.reason == ("already sufficient: vm.dirty_background_ratio is 10, of this host's memory 819 MiB at most")


def test_a_host_without_iris_is_not_sent_to_its_configuration() -> None:
    with pytest.raises(RefusedError) as refused:
        plan_profiles(serving_host([UNITS["postgresql"]]), ["postgresql"], {"huge_pages": "40000"})
    assert refused.value.hint == "ask for fewer huge pages, or free memory first"


@pytest.mark.parametrize("name", ["cloud-guest", "virtual-guest"])
def test_a_volume_that_is_attached_later_has_the_time_as_well(name: str) -> None:
    host = cloud_host() if name == "cloud-guest" else serving_host((), vendor="VMware, Inc.", model="Virtual disk")
    plan = plan_profiles(host, [name], {})
    # No udev runs on the host of the test: its rule is named, with that reason.
    rules = [one for one in plan.skipped if one.tunable.startswith("udev:block:")]
    assert rules != []
    assert {one.reason for one in rules} == {
        "udev does not run here, so no rule would reach a device that appears later"
    }


@pytest.mark.parametrize(("vendor", "model", "expected"), DATA["a_virtual_disk_has_the_time_that_its"])
def test_a_virtual_disk_has_the_time_that_its_maker_asks_for(vendor: str, model: str, expected: dict[str, str]) -> None:
    plan = plan_profiles(serving_host((), vendor=vendor, model=model), ["virtual-guest"], {})
    assert {one.tunable: one.after for one in plan.changes} == expected


def test_an_instance_of_a_cloud_keeps_its_connections_and_waits_for_its_volumes() -> None:
    plan = plan_profiles(cloud_host(), ["cloud-guest"], {})
    changes = {one.tunable: one.after for one in plan.changes}
    assert changes["sysctl:net.ipv4.tcp_keepalive_time"] == "60"
    assert changes["sysctl:net.ipv4.tcp_keepalive_intvl"] == "60"
    assert [one for one in changes if one.startswith("block:") and one.endswith(":io_timeout")] != []
    assert plan_profiles(serving_host(()), ["cloud-guest"], {}).is_empty


def test_an_instance_of_oracle_keeps_its_connections_too() -> None:
    """Its load balancers forget them after 300 and 360 seconds; of its volumes no source speaks."""
    made = WholeHost(DISTRIBUTIONS["debian-12"], gib=64, cpus=8)
    made.sysctl(MORE_SYSCTLS)
    made.firmware("QEMU", "Standard PC (i440FX + PIIX, 1996)", chassis_asset_tag="OracleCloud.com")
    plan = plan_profiles(made.host(), ["cloud-guest"], {})
    assert {one.tunable: one.after for one in plan.changes} == {
        "sysctl:net.ipv4.tcp_keepalive_time": "60",
        "sysctl:net.ipv4.tcp_keepalive_intvl": "60",
    }
    sources = " ".join(plan.changes[0].sources)
    assert "docs.oracle.com/en-us/iaas/Content/Balance/Reference/connectionreuse.htm" in sources


def test_low_latency_is_a_matter_of_intent() -> None:
    host = serving_host(())
    facts = scan(host)
    made = {one.profile: one for one in recommend(facts, None, outlooks(host, facts))}["low-latency"]
    assert (made.fits, made.standing) == ("perhaps", "intent")
    plan = plan_profiles(host, ["low-latency"], {})
    assert {one.tunable: one.after for one in plan.changes} == DATA["low_latency_is_a_matter_of_intent"]


def test_what_does_nothing_on_a_host_is_left_out_with_the_reason() -> None:
    host = serving_host([UNITS["web-server"]], sysctl={"net.ipv4.tcp_syncookies": "1"})
    plan = plan_profiles(host, ["web-server"], {})
    [backlog] = [one for one in plan.skipped if one.tunable == "sysctl:net.ipv4.tcp_max_syn_backlog"]
    assert "this value does nothing" in backlog.reason
