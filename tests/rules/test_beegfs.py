"""Each rule about BeeGFS fires on a server that needs it and is silent on one that does not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from advisor.facts.beegfs import BeegfsService, BeegfsTarget
from advisor.facts.host_facts import Facts
from advisor.rules.beegfs_sizes import (
    MIB,
    buffers_of_workers,
    connection_bytes,
    streams_for_all_targets,
    stripe_counts,
    worker_bytes,
    workers,
)
from advisor.rules.finding import Finding
from advisor.rules.registry import judge
from advisor.rules.workload import parse_workload
from tests.beegfs_server import CPUS, SOURCE_RULES, layout, server
from tests.rules.build import nothing_known, replaced
from tests.rules.cases_beegfs import (
    QUIET_ARP,
    STOPPED,
    STOPPED_ONE,
    both_zones,
    calm,
    changed,
    everywhere,
    process,
    small,
    unbound,
    with_buffer,
    with_level,
    with_pattern,
)
from tests.rules.selection import rules_of

RULES = rules_of("beegfs", "beegfs_links", "beegfs_settings")


def found(facts: Facts, workload: str | None = None) -> dict[str, Finding]:
    declared = parse_workload(workload) if workload else None
    return {one.id: one for rule in RULES for one in rule(facts, declared)}


@pytest.mark.parametrize("role", ["storage", "meta"])
def test_the_article_s_servers_are_quiet(role: str) -> None:
    assert found(calm(role)) == {}


def test_hosts_without_beegfs_and_unknown_hosts_are_quiet() -> None:
    for facts in (nothing_known(), replaced(calm(), {"beegfs": None})):
        assert found(facts) == found(facts, "beegfs") == {}


@pytest.mark.parametrize(
    ("facts", "fires"),
    [
        (unbound(), True),
        (process(calm(), **STOPPED, numa_policy=None, numa_mask=None, cpu_affinity=None), True),
        # Bound by its unit, or by its own file, once it runs.
        (process(calm(), **STOPPED), False),
        (
            changed(
                process(calm(), **STOPPED, numa_policy=None, numa_mask=None, cpu_affinity=None),
                settings={"tuneBindToNumaZone": "0"},
            ),
            False,
        ),
        # Nothing is known of the process, or of the node.
        (process(calm(), cpus_allowed=None), False),
        (changed(calm(), service=None), False),
        (changed(unbound(), targets=()), False),
        (replaced(unbound(), {"numa": replaced(calm().numa, {"nodes": calm().numa.nodes[:1]})}), False),
    ],
)
def test_services_that_are_not_bound(facts: Facts, fires: bool) -> None:
    assert ("beegfs.not-bound" in found(facts)) is fires


def test_what_is_not_bound_names_unit_node_and_profile() -> None:
    one = found(unbound())["beegfs.not-bound"]
    assert one.evidence["units"] == ("beegfs-storage@numa0-storage0.service",)
    assert one.evidence["detail"] == ("beegfs-storage@numa0-storage0.service: targets on node 0, runs on CPUs 0-95",)
    assert (one.profile, one.advice) == ("beegfs-nvme", "advisor plan beegfs-nvme")


@pytest.mark.parametrize(
    ("facts", "fires"),
    [
        (process(calm(), cpus_allowed=CPUS[1]), True),
        (changed(calm(), settings={"tuneBindToNumaZone": "1"}), True),
        (changed(calm(), settings={"tuneBindToNumaZone": "0"}), False),
        (changed(calm(), settings={"tuneBindToNumaZone": "first"}), False),
        (changed(calm(), settings={"tuneBindToNumaZone": ""}), False),
    ],
)
def test_services_that_are_bound_to_the_wrong_node(facts: Facts, fires: bool) -> None:
    assert ("beegfs.wrong-node" in found(facts)) is fires
    assert "beegfs.not-bound" not in found(facts)


@pytest.mark.parametrize(
    ("facts", "fires"),
    [
        (process(calm(), numa_policy=None, numa_mask=None), True),
        (process(calm(), numa_policy="default"), True),
        (process(calm(), numa_policy="preferred"), False),
        (unbound(numa_policy=None), False),
    ],
)
def test_memory_that_is_not_bound(facts: Facts, fires: bool) -> None:
    assert ("beegfs.memory-not-bound" in found(facts)) is fires


def test_a_service_of_two_zones() -> None:
    one = found(both_zones())["beegfs.service-spans-nodes"]
    assert "/data/storage0 on node 0, /data/storage5 on node 1" in str(one.evidence["detail"])
    assert "beegfs.not-bound" not in found(both_zones())


def test_an_array_of_two_nodes_is_another_rule_s_business() -> None:
    target = BeegfsTarget("/x", "/x", "xfs", "md0", "md0", "raid0", ("nvme0n1", "nvme12n1"), (0, 1))
    assert "beegfs.service-spans-nodes" not in found(changed(calm(), targets=(target,)))


@pytest.mark.parametrize(
    ("facts", "fires"),
    [
        (server(targets=layout("storage")[:4], arp=QUIET_ARP), True),
        (server(link_nodes=(0, 0), arp=QUIET_ARP), True),
        (server(link_nodes=(0,), arp=QUIET_ARP), True),
        (server(link_nodes=(), networks=(), arp=QUIET_ARP), False),
        (calm("meta"), False),
    ],
)
def test_zones_that_are_not_alike(facts: Facts, fires: bool) -> None:
    assert ("beegfs.uneven-zones" in found(facts)) is fires


@pytest.mark.parametrize("unknown", [{"default_route": None}, {"speed_mbps": None}, {"numa_node": None}])
def test_links_of_which_it_cannot_be_told_whether_they_carry_data_are_left_out(unknown: dict[str, Any]) -> None:
    def without(host: Facts) -> Facts:
        return replaced(host, {"links": tuple(replaced(one, unknown) for one in host.links)})

    assert "beegfs.uneven-zones" not in found(without(server(link_nodes=(0, 0), arp=QUIET_ARP)))
    one = found(without(server(targets=layout("storage")[:4], arp=QUIET_ARP)))["beegfs.uneven-zones"]
    assert "link" not in str(one.evidence["detail"])
    assert "drive" in str(one.evidence["detail"])


def test_one_link_and_one_drive_are_singular() -> None:
    detail = str(found(server(link_nodes=(0,), arp=QUIET_ARP))["beegfs.uneven-zones"].evidence["detail"])
    assert "1 link'" in detail
    assert "0 links'" in detail
    lone = server(targets=(("storage", 0, (0,), "raid0"),), arp=QUIET_ARP)
    detail = str(found(lone)["beegfs.uneven-zones"].evidence["detail"])
    assert "1 drive," in detail
    assert "0 drives," in detail


def test_zones_of_drives_on_an_unknown_node_are_not_counted() -> None:
    facts = server(targets=layout("storage")[:4], arp=QUIET_ARP)
    disks = tuple(replaced(one, {"numa_node": None}) if one.name == "nvme0n1" else one for one in facts.disks)
    assert "beegfs.uneven-zones" not in found(replaced(facts, {"disks": disks}))


@pytest.mark.parametrize(
    ("level", "target", "fires"),
    [
        ("raid6", {}, True),
        ("raid5_ls", {}, True),
        ("raid0", {}, True),
        ("linear", {}, True),
        ("raid10", {}, False),
        ("raid1", {}, False),
        (None, {"array": None, "disks": ("nvme0n1",)}, True),
        (None, {"array": None, "disks": ("sda",)}, False),
        (None, {"array": None, "disks": (), "device": None}, False),
    ],
)
def test_metadata_that_is_not_mirrored(level: str | None, target: dict[str, Any], fires: bool) -> None:
    assert ("beegfs.metadata-not-mirrored" in found(with_level(level, "meta", **target))) is fires


@pytest.mark.parametrize(("level", "fires"), [("raid6", True), ("raid5", True), ("raid10", False), ("raid0", False)])
def test_storage_on_parity_is_a_matter_of_intent(level: str, fires: bool) -> None:
    facts = with_level(level, "storage")
    assert ("beegfs.storage-on-parity" in found(facts)) is fires
    assert all(one.intent for one in found(facts).values())


def test_storage_on_parity_of_hard_disks_is_as_it_should_be() -> None:
    facts = with_level("raid6", "storage")
    disks = tuple(replaced(one, {"kind": "scsi"}) for one in facts.disks)
    assert "beegfs.storage-on-parity" not in found(replaced(facts, {"disks": disks}))


NETAPP = {"rp_filter": 1, "arp_filter": 1, "arp_ignore": 2, "arp_announce": 2}


@pytest.mark.parametrize(
    ("arp", "rules", "words"),
    [
        ({}, None, "arp_ignore 0, arp_announce 0"),
        ({"arp_ignore": 1}, None, "arp_announce 0"),
        ({**QUIET_ARP, "rp_filter": 1}, None, "rp_filter 1"),
        ({**QUIET_ARP, "arp_filter": 1}, None, "arp_filter 1 without routing by source"),
        (QUIET_ARP, None, None),
        # What NetApp sets is right where it also routes by source, and makes addresses unreachable where it does not.
        (NETAPP, SOURCE_RULES, None),
        ({**NETAPP, "arp_ignore": 0}, SOURCE_RULES, None),
        (NETAPP, None, "arp_filter 1 without routing by source"),
    ],
)
def test_links_in_one_subnet(arp: dict[str, int], rules: object, words: str | None) -> None:
    one = found(server(arp=arp, rules=rules)).get("beegfs.links-in-one-subnet")
    assert (one is not None) is (words is not None)
    if one is not None:
        assert words is not None
        assert words in str(one.evidence["detail"])


def test_both_sides_of_the_contradiction_are_named() -> None:
    one = found(server())["beegfs.links-in-one-subnet"]
    assert [each.id for each in one.contradictions] == ["contradiction.several-links-arp"]
    assert any("NetApp" in source for source in one.sources)
    assert any("53031" in source for source in one.sources)


def one_node(facts: Facts) -> Facts:
    return replaced(facts, {"numa": replaced(facts.numa, {"nodes": facts.numa.nodes[:1]})})


@pytest.mark.parametrize(
    ("facts", "rule", "profile", "words"),
    [
        (server(), "beegfs.links-in-one-subnet", "beegfs-nvme", "advisor plan beegfs-nvme"),
        (
            one_node(server()),
            "beegfs.links-in-one-subnet",
            None,
            "advisor apply sysctl:net.ipv4.conf.ib0.arp_ignore=1 sysctl:net.ipv4.conf.ib0.arp_announce=2",
        ),
        (calm(), "beegfs.memory-settings", "beegfs-nvme", "advisor plan beegfs-nvme"),
        (one_node(calm()), "beegfs.memory-settings", None, "advisor apply sysctl:vm.dirty_background_ratio=5"),
        (unbound(), "beegfs.not-bound", "beegfs-nvme", "advisor plan beegfs-nvme"),
        (
            small(16 << 30, unbound()),
            "beegfs.not-bound",
            "numa-pinning",
            "advisor plan numa-pinning --set 'units=beegfs-meta*,beegfs-storage*'",
        ),
    ],
)
def test_a_profile_is_named_only_where_it_has_a_plan(facts: Facts, rule: str, profile: str | None, words: str) -> None:
    one = found(facts, "beegfs")[rule]
    assert one.profile == profile
    assert one.advice.startswith(words)


def test_links_in_networks_of_their_own_are_quiet() -> None:
    facts = server(networks=("10.10.0.1/24", "10.11.0.1/24"))
    assert "beegfs.links-in-one-subnet" not in found(facts)


@pytest.mark.parametrize(
    ("facts", "fires"),
    [
        (server(interfaces=False, arp=QUIET_ARP), True),
        (changed(calm(), interfaces=("ib1", "ib0")), True),
        (changed(calm(), interfaces=("ib0", "ib1")), False),
        (changed(calm(), interfaces=None), False),
        (changed(calm(), interfaces=("eth9",)), False),
        (server(interfaces=False, link_nodes=(0, 0), arp=QUIET_ARP), False),
    ],
)
def test_services_without_the_link_of_their_node(facts: Facts, fires: bool) -> None:
    assert ("beegfs.interfaces" in found(facts)) is fires


@pytest.mark.parametrize(
    ("facts", "fires"),
    [
        # 96 CPUs × 2 workers × six services × 8 MiB = 9 GiB.
        (small(16 << 30, everywhere(calm("meta"), tuneNumWorkers="0")), True),
        (small(1 << 30, everywhere(calm(), tuneNumWorkers="1")), True),
        # 79 MiB for each client: 52 of them take a quarter of 16 GiB, 208 of 64 GiB.
        (small(16 << 30), True),
        (small(64 << 30), False),
        (everywhere(calm(), connRDMABufSize="65536", connRDMABufNum="10000"), True),
        (everywhere(calm(), tuneNumWorkers="many"), False),
        (replaced(calm(), {"memory": replaced(calm().memory, {"total_bytes": None})}), False),
    ],
)
def test_memory_in_buffers(facts: Facts, fires: bool) -> None:
    assert ("beegfs.buffer-memory" in found(facts)) is fires


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ("8388608", "is cut to net.core.rmem_max 4194304"),
        ("65536", "is below net.core.rmem_default 212992, so it is ignored"),
        ("524288", None),
        ("0", None),
        ("-1", None),
        ("", None),
    ],
)
def test_socket_buffers(size: str, words: str | None) -> None:
    one = found(with_buffer(size)).get("beegfs.socket-buffers")
    assert (one is not None) is (words is not None)
    assert one is None or str(words) in str(one.evidence["detail"])


def test_a_client_s_own_file_says_how_many_connections_it_opens() -> None:
    facts = calm()
    assert facts.beegfs is not None
    client = BeegfsService("client", None, "/etc/beegfs/beegfs-client.conf", None, {"connMaxInternodeNum": "9000"})
    both = msgspec.structs.replace(facts.beegfs, services=(*facts.beegfs.services, client))
    assert "beegfs.buffer-memory" in found(replaced(facts, {"beegfs": both}))


def test_six_metadata_services_with_the_default_start_twelve_workers_for_each_cpu() -> None:
    one = found(server("meta", arp=QUIET_ARP))["beegfs.workers"]
    assert one.evidence == {"workers": 6 * 2 * 96 + 3 * 12, "cpus": 96, "services": 9}
    assert [each.id for each in one.contradictions] == ["contradiction.beegfs-meta-workers"]


@pytest.mark.parametrize(
    ("settings", "fires"),
    [
        ({"tuneFileReadSize": "4m"}, True),
        ({"tuneFileWriteSize": "8m", "tuneWorkerBufSize": "8m"}, True),
        ({"tuneFileWriteSize": "8m", "tuneWorkerBufSize": "9m"}, False),
        ({"tuneFileReadSize": "3m"}, False),
        ({"tuneFileReadSize": "all"}, False),
    ],
)
def test_worker_buffers(settings: dict[str, str], fires: bool) -> None:
    assert ("beegfs.worker-buffer" in found(changed(calm(), settings=settings))) is fires


@pytest.mark.parametrize(
    ("facts", "fires"),
    [
        # The article's chunks of 2 MiB, with the default of 70 × 8 KiB.
        (with_pattern(calm(), 2 << 20, 3), True),
        (with_pattern(calm(), 512 << 10, 3), False),
        # It would fit, but for the four buffers more.
        (with_pattern(calm(), 560 << 10, 3), True),
        (with_pattern(everywhere(calm(), connRDMABufSize="32768"), 2 << 20, 3), False),
        (with_pattern(calm(), None, 3), False),
        (everywhere(calm(), connRDMABufSize="10000"), True),
    ],
)
def test_rdma_buffers(facts: Facts, fires: bool) -> None:
    assert ("beegfs.rdma-buffers" in found(facts)) is fires


@pytest.mark.parametrize(
    ("facts", "fires"),
    [
        (changed(STOPPED_ONE, settings={"connStoragePortTCP": "9001"}), True),
        (changed(STOPPED_ONE, settings={"connStoragePortTCP": "8001", "connPortShift": "1000"}), True),
        (changed(STOPPED_ONE, settings={"connStoragePort": "9001"}), True),
        # Both run: they have found their ports.
        (changed(calm(), settings={"connStoragePortTCP": "9001"}), False),
        (STOPPED_ONE, False),
        (changed(STOPPED_ONE, settings={"connStoragePortTCP": "x"}), False),
    ],
)
def test_instances_of_one_port(facts: Facts, fires: bool) -> None:
    assert ("beegfs.same-port" in found(facts)) is fires


@pytest.mark.parametrize(
    ("facts", "workload", "fires"),
    [
        (with_pattern(calm(), 512 << 10, 4), None, True),
        (with_pattern(calm(), 512 << 10, 3), "beegfs", False),
        (with_pattern(calm(), 512 << 10, 1), None, False),
        (calm(), "beegfs", True),
        (calm(), "beegfs,write=100%", True),
        (calm(), "oltp", False),
        (calm(), None, False),
    ],
)
def test_stripes(facts: Facts, workload: str | None, fires: bool) -> None:
    one = found(facts, workload).get("beegfs.stripes")
    assert (one is not None) is fires
    assert one is None or one.intent


def test_stripes_say_how_many_streams_reach_every_target_of_the_host() -> None:
    one = found(calm(), "beegfs")["beegfs.stripes"]
    assert one.evidence["targets"] == 6
    assert "2 such files at once" in one.why
    assert "--numtargets=3" in one.advice


def test_memory_settings_are_those_on_which_the_guides_agree() -> None:
    one = found(calm(), "beegfs")["beegfs.memory-settings"]
    assert one.evidence["detail"] == (
        "vm.dirty_background_ratio 10, the guides say 5",
        "vm.min_free_kbytes 90112, the guides say 262144",
        "vm.vfs_cache_pressure 100, the guides say 50",
    )
    assert {each.id for each in one.contradictions} >= {
        "contradiction.zone-reclaim-mode",
        "contradiction.transparent-huge-pages",
    }


TUNED = {"vm.dirty_background_ratio": "0", "vm.min_free_kbytes": "1048576", "vm.vfs_cache_pressure": "50"}


@pytest.mark.parametrize(
    ("facts", "workload"),
    [
        (calm(), None),
        (calm(), "batch"),
        (small(16 << 30), "beegfs"),
        (replaced(calm(), {"sysctl": {**calm().sysctl, **TUNED}}), "beegfs"),
        (replaced(calm(), {"sysctl": {}}), "beegfs"),
    ],
)
def test_memory_settings_are_left_where_nobody_asks_or_they_fit(facts: Facts, workload: str | None) -> None:
    assert "beegfs.memory-settings" not in found(facts, workload)


def test_the_arithmetic() -> None:
    assert [streams_for_all_targets(33, count) for count in (3, 4, 33, 0)] == [11, 9, 1, 33]
    assert stripe_counts(6) == (6, 3, 2, 1)
    assert stripe_counts(0) == ()
    assert connection_bytes(clients=32, connections=24, buffers=70, buffer_bytes=8192) // MIB == 840
    assert worker_bytes(workers=32 * 6, buffer_bytes=4 * MIB) == 3 << 29


def test_workers_of_a_service() -> None:
    storage, meta = server().beegfs, server("meta").beegfs
    assert storage is not None
    assert meta is not None
    assert workers(storage.services[0], 96) == 12
    two = msgspec.structs.replace(storage.services[0], targets=storage.services[0].targets * 2)
    assert workers(two, 96) == 24
    shared = msgspec.structs.replace(two, settings={"tuneUsePerTargetWorkers": "false"})
    assert workers(shared, 96) == 12
    assert (workers(meta.services[0], 96), workers(meta.services[0], None)) == (192, None)
    assert buffers_of_workers(meta.services, None) is None


def test_findings_are_among_those_of_a_scan() -> None:
    assert {one.id for one in judge(unbound())} >= {"beegfs.not-bound"}
