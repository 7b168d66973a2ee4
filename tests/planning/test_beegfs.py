"""The profile beegfs-nvme on the article's servers: what it sets, what it leaves, and where it does not apply; and the
parts of the format that it is made of."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.facts.network.link_sources import IP_JSON
from advisor.host import Completed
from advisor.planner import plan_profiles
from advisor.planning.records import Plan
from tests.beegfs_server import CPUS, layout, tree
from tests.cases import cases
from tests.facts.storage import Tree
from tests.planning.system import changes, reasons
from tests.profiles.build import document, toml, wanted
from tests.profiles.test_profiles import refusal

CASES = cases(__file__)

PROFILE = "beegfs-nvme"
FIRST = "/etc/beegfs/numa0-storage0.d/beegfs-storage.conf"


def planned(made: Tree, *profiles: str, **settings: str) -> Plan:
    return plan_profiles(made.host(), profiles or (PROFILE,), settings)


def unbound(role: Any = "storage", **parts: Any) -> Tree:
    return tree(role, bound=False, **parts)


def test_each_service_is_bound_to_the_node_of_its_targets() -> None:
    plan = planned(unbound())
    assert not plan.cannot_apply
    found = changes(plan)
    for number, one in enumerate(layout("storage")):
        node, instance = one[1], f"numa{one[1]}-storage{number}"
        assert found[f"unit:beegfs-storage@{instance}.service:numa"] == (
            f"NUMAPolicy=bind NUMAMask={node} CPUAffinity=numa"
        )
        assert found[f"file:/etc/beegfs/{instance}.d/beegfs-storage.conf:tuneBindToNumaZone"] == str(node)


def test_what_is_asked_for_is_set() -> None:
    plan = planned(unbound("meta"), zone_reclaim="2", thp="always", meta_workers="24", storage_workers="16")
    found = changes(plan)
    assert found["sysctl:vm.zone_reclaim_mode"] == "2"
    assert found["thp:enabled"] == "always"
    workers = {key: value for key, value in found.items() if key.endswith(":tuneNumWorkers")}
    assert sorted(workers.values()) == ["16"] * 3 + ["24"] * 6
    assert all(("beegfs-meta" in key) == (value == "24") for key, value in workers.items())


def test_workers_are_never_lowered() -> None:
    made = unbound()
    made.files[FIRST] += "tuneNumWorkers = 64\n"
    plan = planned(made)
    key = f"file:{FIRST}:tuneNumWorkers"
    assert key not in changes(plan)
    assert next(one.state for one in plan.skipped if one.tunable == key) == "would-lower"


def test_links_in_one_subnet_answer_for_themselves() -> None:
    found = changes(planned(unbound(arp={"rp_filter": 1})))
    assert {key.partition(".conf.")[2]: value for key, value in found.items() if ".conf." in key} == {
        f"{link}.{key}": value
        for link in ("ib0", "ib1")
        for key, value in (("arp_announce", "2"), ("arp_ignore", "1"), ("rp_filter", "2"))
    }


@pytest.mark.parametrize(
    ("arp", "settings", "state", "reason"), CASES["what holds for all links is taken into account"]
)
def test_what_holds_for_all_links_is_taken_into_account(
    arp: dict[str, int], settings: dict[str, str], state: str, reason: str
) -> None:
    plan = planned(unbound(arp=arp), **settings)
    (key,) = arp
    found = [one for one in plan.skipped if one.tunable in (f"sysctl:net.ipv4.conf.ib{link}.{key}" for link in (0, 1))]
    assert [one.state for one in found] == [state, state]
    assert all(reason in one.reason for one in found)


def test_a_dot_in_a_link_s_name_is_a_slash_in_its_key() -> None:
    made = unbound()
    made.files |= {
        path.replace("/ib1/", "/ib1.8001/"): text for path, text in made.files.items() if "/conf/ib1/" in path
    }
    answer = made.answers[IP_JSON]
    assert isinstance(answer, Completed)
    made.answer(IP_JSON, answer.stdout.replace('"ib1"', '"ib1.8001"'))
    found = [key for key in changes(planned(made)) if ".conf." in key]
    assert "sysctl:net.ipv4.conf.ib1/8001.arp_ignore" in found


def test_links_in_networks_of_their_own_are_left() -> None:
    plan = planned(unbound(networks=("10.10.0.1/24", "10.11.0.1/24")))
    assert not [key for key in changes(plan) if ".conf." in key]
    assert reasons(plan)["sysctl:net.ipv4.conf.{shared_link}.arp_ignore"] == "no two links of this host share a network"


def test_a_service_of_two_zones_is_left_with_the_reason_and_blocks_nothing() -> None:
    made = unbound()
    made.files[FIRST] = made.files[FIRST].replace("= /data/storage0", "= /data/storage0,/data/storage5")
    plan = planned(made)
    said = reasons(plan)
    assert "its targets (/data/storage0, /data/storage5) are on nodes 0, 1" in said[f"file:{FIRST}:tuneBindToNumaZone"]
    assert "several nodes" in said["unit:beegfs-storage@numa0-storage0.service:numa"]
    assert plan.blocking == ()
    assert f"file:{FIRST}:tuneNumWorkers" in changes(plan)


def test_a_server_that_has_it_all_is_left_alone() -> None:
    made = tree(arp={"arp_ignore": 1, "arp_announce": 2, "rp_filter": 2}, running=True)
    made.files |= {"/proc/sys/vm/dirty_background_ratio": "5\n", "/proc/sys/vm/min_free_kbytes": "262144\n"}
    made.files["/proc/sys/vm/vfs_cache_pressure"] = "50\n"
    for number, one in enumerate(layout("storage")):
        path = f"/etc/beegfs/numa{one[1]}-storage{number}.d/beegfs-storage.conf"
        made.files[path] += f"tuneNumWorkers = 32\ntuneBindToNumaZone = {one[1]}\n"
    for drive in range(12, 24):
        made.files[f"/proc/irq/{100 + 2 * drive}/smp_affinity_list"] = CPUS[1]
    plan = planned(made)
    assert changes(plan) == {}
    assert not plan.cannot_apply


@pytest.mark.parametrize(("change", "words"), CASES["where it does not apply"])
def test_where_it_does_not_apply(change: dict[str, str | None], words: str) -> None:
    made = unbound()
    for path, text in change.items():
        for name in [name for name in made.files if name.startswith(path)]:
            del made.files[name]
        if text is not None:
            made.files[path] = text
    plan = planned(made)
    assert plan.is_empty
    assert plan.skipped
    assert all(words in one.reason for one in plan.skipped)


@pytest.mark.parametrize(("line", "words"), CASES["lines that are wrong are named"])
def test_lines_that_are_wrong_are_named(line: dict[str, Any], words: str) -> None:
    assert words in refusal(toml(document(tunables=[wanted(**line)])))
