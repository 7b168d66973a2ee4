"""Each rule about BeeGFS fires on a server that needs it and is silent on one that does not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from advisor.facts.clusters.beegfs import BeegfsService, BeegfsTarget
from advisor.facts.host_facts import Facts
from advisor.rules.clusters.beegfs import all_bound
from advisor.rules.clusters.beegfs_settings import (
    MIB,
    buffers_of_workers,
    connection_bytes,
    streams_for_all_targets,
    stripe_counts,
    worker_bytes,
    workers,
)
from advisor.rules.rule import Finding
from advisor.rules.workload import parse_workload
from tests import beegfs_server
from tests.beegfs_server import CPUS, layout, server
from tests.cases import read_cases
from tests.each import for_each
from tests.rules import cases_beegfs
from tests.rules.build import nothing_known, replaced
from tests.rules.cases_beegfs import (
    QUIET_ARP,
    STOPPED,
    both_zones,
    calm,
    changed,
    everywhere,
    process,
    small,
    unbound,
    with_buffer,
    with_level,
)
from tests.rules.selection import rules_of

RULES = rules_of("beegfs", "beegfs_links", "beegfs_settings")


def found(facts: Facts, workload: str | None = None) -> dict[str, Finding]:
    declared = parse_workload(workload) if workload else None
    return {one.id: one for rule in RULES for one in rule(facts, declared)}


@pytest.mark.parametrize("role", ["storage", "meta"])
def test_the_article_s_servers_are_quiet(role: str) -> None:
    """But for the kernel's own memory settings, which the guides do not leave."""
    assert {name: one.severity for name, one in found(calm(role)).items()} == {"beegfs.memory-settings": "info"}


def test_one_on_the_wrong_node_leaves_the_others_and_zone_reclaim() -> None:
    facts = process(calm(), cpus_allowed="24-47,72-95")
    assert facts.beegfs is not None
    one = found(facts)["beegfs.wrong-node"]
    labels = [service.label for service in facts.beegfs.servers]
    assert one.evidence["units"] == (labels[0],)
    said = f"{one.advice} {one.commands}"
    assert [label in said for label in labels] == [True, *(False for _ in labels[1:])]
    assert all_bound(facts)


def test_hosts_without_beegfs_and_unknown_hosts_are_quiet() -> None:
    for facts in (nothing_known(), replaced(calm(), {"beegfs": None})):
        assert found(facts) == found(facts, "beegfs") == {}


def one_node(facts: Facts) -> Facts:
    return replaced(facts, {"numa": replaced(facts.numa, {"nodes": facts.numa.nodes[:1]})})


HALF = server(targets=layout("storage")[:4], arp=QUIET_ARP)
IDLE = process(calm(), **STOPPED, numa_policy=None, numa_mask=None, cpu_affinity=None)
TUNED = {"vm.dirty_background_ratio": "0", "vm.min_free_kbytes": "1048576", "vm.vfs_cache_pressure": "50"}
OVER_TWO_NODES = BeegfsTarget("/x", "/x", "xfs", "md0", "md0", "raid0", ("nvme0n1", "nvme12n1"), (0, 1))
CLIENT = BeegfsService("client", None, "/etc/beegfs/beegfs-client.conf", None, {"connMaxInternodeNum": "9000"})


def with_disks(facts: Facts, name: str = "", **parts: Any) -> Facts:
    """With these parts in the disk of that name, or in all disks."""
    return replaced(facts, {"disks": tuple(replaced(one, parts) if name in one.name else one for one in facts.disks)})


def with_client(facts: Facts) -> Facts:
    assert facts.beegfs is not None
    services = (*facts.beegfs.services, CLIENT)
    return replaced(facts, {"beegfs": msgspec.structs.replace(facts.beegfs, services=services)})


# rule: hosts on which it fires, hosts on which it is silent; each with its workload where one is declared
DATA = read_cases(__file__, cases_beegfs, beegfs_server, globals())

HOSTS: dict[str, tuple[list[Any], list[Any]]] = {
    **DATA["HOSTS"],
    "beegfs.not-bound": (
        [unbound(), IDLE],
        [
            # Bound by its unit, or by its own file, once it runs.
            process(calm(), **STOPPED),
            changed(IDLE, settings={"tuneBindToNumaZone": "0"}),
            # Nothing is known of the process, or of the node.
            process(calm(), cpus_allowed=None),
            changed(calm(), service=None),
            changed(unbound(), targets=()),
            one_node(unbound()),
            process(calm(), cpus_allowed=CPUS[1]),
            changed(calm(), settings={"tuneBindToNumaZone": "1"}),
        ],
    ),
    "beegfs.wrong-node": (
        [process(calm(), cpus_allowed=CPUS[1]), changed(calm(), settings={"tuneBindToNumaZone": "1"})],
        [changed(calm(), settings={"tuneBindToNumaZone": zone}) for zone in ("0", "first", "")],
    ),
    "beegfs.metadata-not-mirrored": (
        [
            *(with_level(level, "meta") for level in ("raid6", "raid5_ls", "raid0", "linear")),
            with_level(None, "meta", array=None, disks=("nvme0n1",)),
        ],
        [
            *(with_level(level, "meta") for level in ("raid10", "raid1")),
            with_level(None, "meta", array=None, disks=("sda",)),
            with_level(None, "meta", array=None, disks=(), device=None),
        ],
    ),
    "beegfs.storage-on-parity": (
        [with_level(level, "storage") for level in ("raid6", "raid5")],
        # On parity of hard disks it is as it should be.
        [
            *(with_level(level, "storage") for level in ("raid10", "raid0")),
            with_disks(with_level("raid6", "storage"), kind="scsi"),
        ],
    ),
    "beegfs.interfaces": (
        [server(interfaces=False, arp=QUIET_ARP), changed(calm(), interfaces=("ib1", "ib0"))],
        [
            *(changed(calm(), interfaces=names) for names in (("ib0", "ib1"), None, ("eth9",))),
            server(interfaces=False, link_nodes=(0, 0), arp=QUIET_ARP),
        ],
    ),
    "beegfs.buffer-memory": (
        [
            # 96 CPUs × 2 workers × six services × 8 MiB = 9 GiB.
            small(16 << 30, everywhere(calm("meta"), tuneNumWorkers="0")),
            small(1 << 30, everywhere(calm(), tuneNumWorkers="1")),
            # 79 MiB for each client: 52 of them take a quarter of 16 GiB, 208 of 64 GiB.
            small(16 << 30),
            everywhere(calm(), connRDMABufSize="65536", connRDMABufNum="10000"),
            # A client's own file says how many connections it opens.
            with_client(calm()),
        ],
        [
            small(64 << 30),
            everywhere(calm(), tuneNumWorkers="many"),
            replaced(calm(), {"memory": replaced(calm().memory, {"total_bytes": None})}),
        ],
    ),
    "beegfs.worker-buffer": (
        [
            changed(calm(), settings={"tuneFileReadSize": "4m"}),
            changed(calm(), settings={"tuneFileWriteSize": "8m", "tuneWorkerBufSize": "8m"}),
        ],
        [
            changed(calm(), settings={"tuneFileWriteSize": "8m", "tuneWorkerBufSize": "9m"}),
            *(changed(calm(), settings={"tuneFileReadSize": size}) for size in ("3m", "all")),
        ],
    ),
}


@for_each("rule", HOSTS)
def test_hosts_on_which_a_rule_fires_and_is_silent(rule: str) -> None:
    fires, silent = (
        [found(*host) if isinstance(host, tuple) else found(host) for host in hosts] for hosts in HOSTS[rule]
    )
    assert [number for number, findings in enumerate(fires) if rule not in findings] == []
    assert [number for number, findings in enumerate(silent) if rule in findings] == []
    if rule in ("beegfs.storage-on-parity", "beegfs.stripes"):
        assert all(findings[rule].intent for findings in fires)


def test_what_is_not_bound_names_unit_node_and_profile() -> None:
    one = found(unbound())["beegfs.not-bound"]
    assert one.evidence["units"] == ("beegfs-storage@numa0-storage0.service",)
    assert one.evidence["detail"] == ("beegfs-storage@numa0-storage0.service: targets on node 0, runs on CPUs 0-95",)
    assert (one.profile, one.advice) == ("beegfs-nvme", "advisor plan beegfs-nvme")


def test_a_service_of_two_zones() -> None:
    one = found(both_zones())["beegfs.service-spans-nodes"]
    assert "/data/storage0 on node 0, /data/storage5 on node 1" in str(one.evidence["detail"])
    assert "beegfs.not-bound" not in found(both_zones())


@pytest.mark.parametrize("unknown", [{"default_route": None}, {"speed_mbps": None}, {"numa_node": None}])
def test_links_of_which_it_cannot_be_told_whether_they_carry_data_are_left_out(unknown: dict[str, Any]) -> None:
    def without(host: Facts) -> Facts:
        return replaced(host, {"links": tuple(replaced(one, unknown) for one in host.links)})

    assert "beegfs.uneven-zones" not in found(without(server(link_nodes=(0, 0), arp=QUIET_ARP)))
    one = found(without(HALF))["beegfs.uneven-zones"]
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


@pytest.mark.parametrize(("arp", "rules", "words"), DATA["links_in_one_subnet"])
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


@pytest.mark.parametrize(("facts", "rule", "profile", "words"), DATA["a_profile_is_named_only_where_it"])
def test_a_profile_is_named_only_where_it_has_a_plan(facts: Facts, rule: str, profile: str | None, words: str) -> None:
    one = found(facts, "beegfs")[rule]
    assert one.profile == profile
    assert one.advice.startswith(words)


@pytest.mark.parametrize(("size", "words"), DATA["socket_buffers"])
def test_socket_buffers(size: str, words: str | None) -> None:
    one = found(with_buffer(size)).get("beegfs.socket-buffers")
    assert (one is not None) is (words is not None)
    assert one is None or str(words) in str(one.evidence["detail"])


def test_six_metadata_services_with_the_default_start_twelve_workers_for_each_cpu() -> None:
    one = found(server("meta", arp=QUIET_ARP))["beegfs.workers"]
    assert one.evidence == {"workers": 6 * 2 * 96 + 3 * 12, "cpus": 96, "services": 9}
    assert [each.id for each in one.contradictions] == ["contradiction.beegfs-meta-workers"]


def test_stripes_say_how_many_streams_reach_every_target_of_the_host() -> None:
    one = found(calm(), "beegfs")["beegfs.stripes"]
    assert one.evidence["targets"] == 6
    assert "2 such files at once" in one.why
    assert "--numtargets=3" in one.advice


def test_memory_settings_are_those_on_which_the_guides_agree() -> None:
    one = found(calm(), "beegfs")["beegfs.memory-settings"]
    assert one.evidence["detail"] == (
        "vm.dirty_background_ratio 10, the guides say 5",
        "vm.min_free_kbytes 90112, the guides say >=262144",
        "vm.vfs_cache_pressure 100, the guides say 50",
    )
    assert {each.id for each in one.contradictions} >= {
        "contradiction.zone-reclaim-mode",
        "contradiction.transparent-huge-pages",
    }


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
