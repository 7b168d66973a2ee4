"""BeeGFS' clients: connections, links, stripes and fsync; RDMA that is off; and what a server says about its arrays."""

from __future__ import annotations

import msgspec
import pytest

from advisor.facts.host_facts import Facts
from advisor.facts.settings.sysctl import SysctlOrigin, SysctlSource
from advisor.recommend.records import declared
from advisor.rules.clusters.beegfs import all_bound
from advisor.rules.clusters.infoscale import transport_seen
from advisor.rules.judged import judge
from advisor.rules.rule import Finding
from advisor.rules.workload import parse_workload
from tests.beegfs_client import ETHERNET, INFINIBAND, TUNED, client
from tests.beegfs_server import server, tree
from tests.cases import read_cases
from tests.rules.cases_beegfs import STOPPED, calm, process, unbound, with_level

CONNECTIONS = "file:/etc/beegfs/beegfs-client.conf:connMaxInternodeNum>="


def found(facts: Facts, workload: str | None = None) -> dict[str, Finding]:
    return {one.id: one for one in judge(facts, declared(workload) if workload else None)}


@pytest.mark.parametrize(
    ("workload", "severity"), [(None, "info"), ("beegfs", "advice"), ("beegfs.iozone-seq", "advice")]
)
def test_a_client_with_the_package_s_file_is_shown_what_the_article_sets(workload: str | None, severity: str) -> None:
    said = found(client(), workload)
    for rule in ("beegfs.client-connections", "beegfs.client-interfaces", "beegfs.client-stripes"):
        assert said[rule].severity == severity
        assert said[rule].intent is (workload is None)
    assert f"{CONNECTIONS}24" in said["beegfs.client-connections"].advice
    assert "--numtargets=3 --chunksize=2m" in said["beegfs.client-stripes"].advice
    assert f"echo {INFINIBAND} > /etc" in said["beegfs.client-interfaces"].commands[0]


def test_the_article_s_client_is_quiet() -> None:
    said = found(client({**TUNED}, pattern=("2M", 3)), "beegfs")
    assert not [one for one in said if one.startswith("beegfs.client")]


def test_connections_are_not_above_the_client_s_cpus() -> None:
    assert f"{CONNECTIONS}16" in found(client(cores=16))["beegfs.client-connections"].advice
    assert "beegfs.client-connections" not in found(client(cores=8))
    assert "beegfs.client-connections" not in found(client({"connMaxInternodeNum": "48"}))


def test_an_interfaces_file_that_begins_with_the_slow_link() -> None:
    one = found(client({**TUNED}, interfaces=(ETHERNET, INFINIBAND)))["beegfs.client-interfaces"]
    assert one.severity == "advice"
    assert f"{ETHERNET} comes first, {INFINIBAND} is faster" in str(one.evidence["detail"])
    assert "beegfs.client-interfaces" not in found(client(has_ethernet=False))


def test_a_file_of_any_name_that_a_mount_names_is_the_client_s() -> None:
    one = found(client({"tuneRemoteFSync": "false"}, file="/etc/beegfs/medium.conf"))["beegfs.client-fsync"]
    assert "/etc/beegfs/medium.conf" in str(one.evidence["detail"])
    assert one.commands[0] == "${EDITOR:-vi} +1 /etc/beegfs/medium.conf"


def test_a_client_s_file_on_a_server_that_mounts_nothing_does_not_count() -> None:
    made = tree()
    made.files["/etc/beegfs/beegfs-client.conf"] = "connMaxInternodeNum = 12\ntuneRemoteFSync = false\n"
    from advisor.facts.host_facts import scan

    assert not [one for one in found(scan(made.host()), "beegfs") if one.startswith("beegfs.client")]


def test_raid_10_below_storage_targets_has_the_article_s_figures() -> None:
    one = found(with_level("raid10", "storage"))["beegfs.storage-on-mirror"]
    assert (one.severity, one.intent) == ("info", True)
    assert "3.4 GB/s" in one.why
    assert "5.1" in one.why
    assert "loss of one drive loses the target" in one.advice


# -- transport -------------------------------------------------------------------------------------------------------


DATA = read_cases(__file__, client, server)


@pytest.mark.parametrize(("facts", "transport"), DATA["the_transport_is_that_of_files"])
def test_the_transport_is_that_of_files_and_links(facts: Facts, transport: str | None) -> None:
    assert transport_seen(facts) == transport


def small_buffers(facts: Facts) -> Facts:
    small = {"net.core.rmem_max": "212992", "net.core.wmem_max": "212992"}
    small |= {"net.ipv4.tcp_rmem": "4096 87380 6291456", "net.ipv4.tcp_wmem": "4096 16384 4194304"}
    return msgspec.structs.replace(facts, sysctl={**facts.sysctl, **small})


@pytest.mark.parametrize(("facts", "workload", "fires"), DATA["socket_buffers_are_for_sockets"])
def test_socket_buffers_are_for_sockets(facts: Facts, workload: str, fires: bool) -> None:
    assert ("buffers.below-profile" in found(small_buffers(facts), workload)) is fires


@pytest.mark.parametrize("threads", ["1", "8", "256", "1024"])
def test_any_number_of_threads_may_be_declared(threads: str) -> None:
    assert parse_workload(f"beegfs,threads={threads}").threads == int(threads)
    assert declared(f"beegfs.iozone-seq,threads={threads}").threads == int(threads)


def test_threads_and_the_targets_that_they_reach() -> None:
    assert "With the declared thread, at most 3 of 6 work" in found(server(), "beegfs,threads=1")["beegfs.stripes"].why
    assert "at most 6 of 6 work" in found(server(), "beegfs,threads=1024")["beegfs.stripes"].why


# -- vm.zone_reclaim_mode --------------------------------------------------------------------------------------------


def reclaiming(facts: Facts) -> Facts:
    line = SysctlSource("vm.zone_reclaim_mode", "2", "/etc/sysctl.d/90-beegfs.conf", 3)
    origin = SysctlOrigin(line)
    return msgspec.structs.replace(facts, sysctl_origin={"vm.zone_reclaim_mode": origin})


@pytest.mark.parametrize(
    ("facts", "fires"),
    [
        (calm(), False),
        (calm("meta"), False),
        (process(calm(), **STOPPED), False),
        (unbound(), True),
        (process(calm(), cpus_allowed=None, cpu_affinity=None), True),
        (client(), True),
    ],
)
def test_zone_reclaim_is_for_services_that_are_bound(facts: Facts, fires: bool) -> None:
    assert all_bound(facts) is not fires
    assert ("advice.zone-reclaim" in found(reclaiming(facts))) is fires
