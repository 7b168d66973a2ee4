"""The committed snapshots of the lab host: every one scans and plans the same wherever it is opened."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from advisor.facts import host_facts
from advisor.facts.host_facts import Facts, scan
from advisor.facts.record_types import RARE_TYPES
from advisor.planner import plan_profiles
from advisor.planning.records import Plan, plan_document
from advisor.profiles.profile import profile_paths
from advisor.report.json import scan_document
from advisor.rules.judged import judge
from advisor.snapshot.archive import capture_host, open_snapshot

FIXTURES = Path(__file__).parent.parent / "fixtures"
HOSTS = sorted(FIXTURES.glob("*.tar.gz"))
SETTINGS = {"jumbo-frames": {"links": "eth0"}, "numa-pinning": {"units": "demo-storage=md0"}}

# The lab's hosts are nodes of a cluster with LLT over UDP; what is for other systems says why it sets nothing.
# Low latency is for any host whose owner wants it.
FITTING = {
    *("jumbo-frames", "socket-buffers-8m", "llt-highwater-doubled", "numa-pinning"),
    *("infoscale-fss-udp", "infoscale-fss-zones", "low-latency"),
}


def facts_of(path: Path) -> Facts:
    return scan(open_snapshot(path))


def test_there_are_captured_lab_hosts() -> None:
    assert {path.name for path in HOSTS} >= {"storage-host-root.tar.gz", "storage-host-plain.tar.gz"}


@pytest.mark.parametrize("path", HOSTS, ids=lambda path: path.name)
def test_a_scan_is_the_same_each_time_and_after_being_captured_again(path: Path, tmp_path: Path) -> None:
    facts = facts_of(path)
    first = scan_document(facts, judge(facts))
    assert first == scan_document(facts_of(path), judge(facts_of(path)))
    again = tmp_path / "again.tar.gz"
    again.write_bytes(capture_host(open_snapshot(path), scan))
    assert first == scan_document(facts_of(again), judge(facts_of(again)))
    # The types of rare subjects are not imported by a scan of a host that has none; decoding names all.
    vars(host_facts).update(RARE_TYPES)
    assert msgspec.json.decode(msgspec.json.encode(facts), type=Facts) == facts


def test_what_root_saw_of_the_storage_host() -> None:
    facts = facts_of(FIXTURES / "storage-host-root.tar.gz")
    assert [(node.id, node.cpus, node.distances) for node in facts.numa.nodes] == [
        (0, "0-1", (10, 21)),
        (1, "2-3", (21, 10)),
    ]
    links = {link.name: (link.kind, link.mtu, link.mtu_max, link.numa_node, link.default_route) for link in facts.links}
    assert links["eth0"] == ("ethernet", 1500, 9000, 0, False)
    assert links["eth1"] == ("ethernet", 1500, 9000, 1, False)
    assert links["eth2"][3:] == (None, True)
    arrays = {array.name: (array.level, array.state, array.numa_nodes, array.mountpoints) for array in facts.arrays}
    assert arrays["md0"] == ("raid0", "clean", (0,), ("/srv/node0",))
    assert arrays["md1"] == ("raid1", "clean", (0, 1), ("/srv/span",))
    assert arrays["md2"][1] == "degraded"
    nvme = [disk for disk in facts.disks if disk.kind == "nvme"]
    assert sorted(disk.numa_node for disk in nvme if disk.numa_node is not None) == [0, 0, 0, 1, 1, 1]
    assert facts.llt is not None
    assert facts.llt.flow_control["highwater"] == 1000
    assert {finding.id for finding in judge(facts)} >= {"arrays.degraded", "arrays.span-nodes", "llt.mtu-fragments"}


def test_an_ordinary_user_sees_the_same_host_and_says_what_is_missing() -> None:
    root = facts_of(FIXTURES / "storage-host-root.tar.gz")
    plain = facts_of(FIXTURES / "storage-host-plain.tar.gz")
    assert [link.name for link in plain.links] == [link.name for link in root.links]
    assert [array.name for array in plain.arrays] == [array.name for array in root.arrays]
    assert len(plain.unknown) >= len(root.unknown)


@pytest.mark.parametrize("path", HOSTS, ids=lambda path: path.name)
@pytest.mark.parametrize("name", profile_paths())
def test_every_profile_plans_the_same_on_every_host(path: Path, name: str) -> None:
    plans = [plan_profiles(open_snapshot(path), [name], SETTINGS.get(name, {})) for _ in range(2)]
    first, second = (msgspec.json.encode(plan_document(plan)) for plan in plans)
    assert first == second
    assert msgspec.json.decode(msgspec.json.encode(plans[0]), type=Plan) == plans[0]
    assert bool(plans[0].changes) == (name in FITTING)
    assert all(one.reason for one in plans[0].skipped)
    assert plans[0].fingerprint == plans[1].fingerprint
