"""Every fact of the fourteen captured hosts against what is known to be true of them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import msgspec
import pytest

from advisor.facts.processors.cpu import Cpu, read_cpu
from advisor.facts.processors.cpulist import parse_list
from advisor.facts.processors.numa import Numa, read_numa
from advisor.facts.processors.pci import Irq, read_irqs, read_place
from advisor.facts.system.identity import Identity, read_identity
from advisor.facts.system.memory import Memory, read_memory
from advisor.facts.unknown import Unknowns
from tests import captured

pytestmark = pytest.mark.captured

HOSTS = (*(f"hwloc/{name}" for name in captured.HWLOC_HOSTS), *(f"pepc/{name}" for name in captured.PEPC_HOSTS))

OLD_KERNEL = "an old kernel has no such list: ours is derived from the directories of the CPUs"
ALL_ALLOWED = "lstopo shows what its cgroup allows; ours is the whole host, and what is allowed stands next to it"
NO_NODES = "a kernel without NUMA has no node directories; hwloc shows one node in their place, we show none"

# (host, key) → (ours, why it is right too). An entry that is not needed any more fails the test.
ACCEPTED: dict[tuple[str, str], tuple[Any, str]] = {
    ("hwloc/2arm-2c", "model"): ("ARMv7 Processor rev 1 (v7l)", "old ARM kernels name the model under 'Processor'"),
    ("hwloc/2arm-2c", "all_numa"): (0, NO_NODES),
    ("hwloc/2arm-2c", "lstopo_numa"): (0, NO_NODES),
    ("hwloc/2arm-2c", "exp_numa"): (0, NO_NODES),
    ("hwloc/16em64t-4s2c2t", "sysfs_online"): ("0-15", OLD_KERNEL),
    ("hwloc/16em64t-4s2c2t", "sysfs_present"): ("0-15", OLD_KERNEL),
    ("hwloc/8ia64-2n2s2c", "sysfs_online"): ("0-7", OLD_KERNEL),
    ("hwloc/8ia64-2n2s2c", "sysfs_present"): ("0-7", OLD_KERNEL),
    ("hwloc/8em64t-2s2ca2c", "hugepages"): ("2048kB=0", "the pool is in /proc/meminfo, as before 2.6.27"),
    **{
        ("hwloc/16amd64-4n4c-cgroup-distance-merge", f"{source}_{what}"): (value, ALL_ALLOWED)
        for source in ("lstopo", "exp")
        for what, value in (("numa", 4), ("pkgs", 4), ("cores", 16), ("pus", 16))
    },
    ("hwloc/16amd64-4n4c-cgroup-distance-merge", "lstopo_mem_bytes"): (34_359_005_184, ALL_ALLOWED),
}
NOT_OURS = {
    "answer_key": {"accept", "trap", "net", "aspm", "cmdline", "cstates", "driver", "epp", "governor", "host"}
    | {"idle_driver", "no_turbo", "vendor"},
    "hwloc_truth": {"host", "loads", "fake", "lstopo_dies", "expected_file", "sysfs_possible", "sysfs_pkg_ids"}
    | {"sysfs_pkg_masks", "sysfs_topo_cpus", "cpuinfo_processors", "cpuset_path", "net_total", "net_pci"}
    | {"block_total", "block_pci_disks", "ib", "lstopo_net", "lstopo_block", "lstopo_ib", "lstopo_pcidev"},
    "hwloc_nodes_truth": {"host", "node", "lstopo_cpus"},
    "pepc_truth": {"host", "vendor", "governor", "driver", "epp", "no_turbo", "cstates", "idle_driver", "aspm"}
    | {"cmdline", "files"},
}


class Read(msgspec.Struct, frozen=True):
    cpu: Cpu
    numa: Numa
    memory: Memory
    identity: Identity
    irqs: tuple[Irq, ...]
    unknown: frozenset[str]


@cache
def read(name: str) -> Read:
    host, unknown = captured.host(name), Unknowns()
    return Read(
        cpu=read_cpu(host, unknown),
        numa=read_numa(host, unknown),
        memory=read_memory(host, unknown),
        identity=read_identity(host, unknown),
        irqs=read_irqs(host, unknown),
        unknown=frozenset(entry.fact for entry in unknown.listed()),
    )


def kib(value: int | None) -> int | None:
    return None if value is None else value // 1024


def family(architecture: str | None) -> str:
    families = {"x86_64": "x86", "i686": "x86", "armv7l": "arm", "aarch64": "arm"}
    return families.get(architecture or "", architecture or "")


def pools(memory: Memory) -> str:
    return " ".join(sorted(f"{pool.size_bytes // 1024}kB={pool.total}" for pool in memory.hugepages))


def count(cpus: str | None) -> int | None:
    return None if cpus is None else len(parse_list(cpus))


def our_answers(name: str) -> dict[str, Any]:
    """Our facts under the keys of the answer key and of both tables of hosts."""
    got = read(name)
    cpu, nodes, memory, identity = got.cpu, got.numa.nodes, got.memory, got.identity
    cpuless = [node.id for node in nodes if not node.cpus]
    memless = [node.id for node in nodes if node.memory_bytes == 0]
    in_nodes = sum(node.memory_bytes or 0 for node in nodes) or memory.total_bytes or 0
    return {
        "allowed_cpus": cpu.allowed,
        "arch": family(identity.architecture),
        "cores": cpu.cores,
        "cpus": cpu.threads,
        "cpus_online": cpu.threads,
        "cpus_present": count(cpu.present),
        "complete_cpus": cpu.present,
        "cpuless_nodes": len(cpuless),
        "distances": {str(node.id): [str(distance) for distance in node.distances] for node in nodes},
        "dmi": " ".join(filter(None, (identity.vendor, identity.product))),
        "hugepages": pools(memory),
        "kernel": identity.kernel,
        "lstopo_mem_bytes": in_nodes,
        "memtotal_kib": kib(memory.total_bytes),
        "memtotal_kb": kib(memory.total_bytes),
        "model": cpu.model or "",
        "node_cpus": {str(node.id): node.cpus for node in nodes},
        "node_mem_kib": {str(node.id): kib(node.memory_bytes) for node in nodes},
        "node_online": format_ids(nodes),
        "numa_cpuless": cpuless,
        "numa_memless": memless,
        "numa_node_ids": [node.id for node in nodes],
        "numa_nodes": len(nodes),
        "offline": cpu.offline,
        "online": cpu.online,
        "packages": cpu.packages,
        "present": cpu.present,
        "sysfs_cores": cpu.cores,
        "sysfs_cpu_dirs": count(cpu.present),
        "sysfs_node_dirs": len(nodes),
        "sysfs_nodes_cpuless": len(cpuless),
        "sysfs_nodes_memless": len(memless),
        "sysfs_offline": cpu.offline,
        "sysfs_online": cpu.online,
        "sysfs_present": cpu.present,
        "threads_per_core_max": cpu.threads_per_core,
        **{f"{source}_numa": len(nodes) for source in ("all", "lstopo", "exp")},
        **{f"{source}_pkgs": cpu.packages for source in ("all", "lstopo", "exp")},
        **{f"{source}_cores": cpu.cores for source in ("all", "lstopo", "exp")},
        **{f"{source}_pus": cpu.threads for source in ("all", "lstopo", "exp")},
    }


def format_ids(nodes: tuple[Any, ...]) -> str:
    from advisor.facts.processors.cpulist import format_list

    return format_list(node.id for node in nodes)


def disagreements(name: str, truth: dict[str, Any], table: str) -> dict[str, tuple[Any, Any]]:
    """Key → (truth, ours) of what differs and is not accepted."""
    ours = our_answers(name)
    asked = set(truth) - NOT_OURS[table]
    assert asked <= set(ours), f"no answer to {sorted(asked - set(ours))}"
    return {
        key: (truth[key], ours[key])
        for key in sorted(asked)
        if not same(truth[key], ours[key]) and ACCEPTED.get((name, key), (object(), ""))[0] != ours[key]
    }


def same(truth: Any, ours: Any) -> bool:
    """Equal, reading the tables' text as what it stands for; an empty cell is an unknown."""
    if truth in ("", None) and ours in ("", None):
        return True
    if isinstance(truth, str) and isinstance(ours, int):
        return truth == str(ours)
    if isinstance(truth, dict) and isinstance(ours, dict):
        return {str(key).removeprefix("node"): value for key, value in truth.items()} == ours
    return bool(truth == ours)


@pytest.mark.parametrize("name", HOSTS)
def test_answer_key(name: str) -> None:
    assert disagreements(name, captured.answer_key()[name], "answer_key") == {}


@pytest.mark.parametrize("name", captured.HWLOC_HOSTS)
def test_table_of_hwloc_hosts(name: str) -> None:
    (row,) = (row for row in captured.truth_rows("hwloc_truth") if row["host"] == name)
    assert disagreements(f"hwloc/{name}", row, "hwloc_truth") == {}


@pytest.mark.parametrize("name", captured.PEPC_HOSTS)
def test_table_of_pepc_hosts(name: str) -> None:
    (row,) = (row for row in captured.truth_rows("pepc_truth") if row["host"] == name)
    truth = {**row, "node_cpus": json.loads(row["node_cpus"])}
    assert disagreements(f"pepc/{name}", truth, "pepc_truth") == {}


def test_each_accepted_alternative_is_needed() -> None:
    truths = {
        **{(name, key): value for name, answers in captured.answer_key().items() for key, value in answers.items()},
        **{
            (f"hwloc/{row['host']}", key): value
            for row in captured.truth_rows("hwloc_truth")
            for key, value in row.items()
        },
    }
    unneeded = [place for place, (ours, _) in ACCEPTED.items() if place not in truths or same(truths[place], ours)]
    assert unneeded == []


@pytest.mark.parametrize("name", captured.HWLOC_HOSTS)
def test_nodes(name: str) -> None:
    rows = [row for row in captured.truth_rows("hwloc_nodes_truth") if row["host"] == name]
    ours = [
        {
            "node": str(node.id),
            "mem_kb": str(kib(node.memory_bytes)),
            "cpus": node.cpus,
            "ncpus": str(count(node.cpus)),
            "distance": " ".join(map(str, node.distances)),
            "lstopo_mem_bytes": str(node.memory_bytes),
        }
        for node in read(f"hwloc/{name}").numa.nodes
    ]
    assert ours == [{key: row[key] for key in ours[0]} for row in rows] if rows else not ours


@pytest.mark.parametrize("name", captured.HWLOC_HOSTS)
def test_cpus_of_a_cpuless_node_are_none_although_hwloc_places_it_near_some(name: str) -> None:
    rows = {int(row["node"]): row for row in captured.truth_rows("hwloc_nodes_truth") if row["host"] == name}
    for node in read(f"hwloc/{name}").numa.nodes:
        assert node.cpus in ("", rows[node.id]["lstopo_cpus"])


def test_devices() -> None:
    rows = captured.truth_rows("hwloc_devices_truth")
    assert rows
    for row in rows:
        unknown = Unknowns()
        host = captured.host(f"hwloc/{row['host']}")
        place = read_place(host, f"/sys/class/{row['class']}/{row['name']}/device", "links.x", unknown)
        assert place is not None
        assert (place.address, str(place.numa_node)) == (row["pci"], row["numa_node"])
        assert place.local_cpus == row["local_cpus"]
        assert row["lstopo_nodes"] == str(place.numa_node)
        assert not unknown.listed()


def test_a_network_function_behind_a_slow_bridge() -> None:
    """enp96s0f0 and the bridge above it are PCIe 1.0 x1: 2.5 GT/s less 8b/10b."""
    host = captured.host("hwloc/32intel64-2p8co2t+8ve")
    place = read_place(host, "/sys/class/net/enp96s0f0/device", "links.enp96s0f0", Unknowns())
    assert place is not None
    assert place.pcie is not None
    assert place.pcie.bandwidth_mbps == 2000
    assert place.pcie.limiting is None
    assert (place.pcie.speed_gts, place.pcie.speed_max_gts, place.pcie.width) == (2.5, 8.0, 1)
    assert len(place.irqs) > 30


@pytest.mark.parametrize("name", HOSTS)
def test_what_a_capture_lacks_is_null_and_noted(name: str) -> None:
    got = read(name)
    assert (got.cpu.model is None) == ("cpu.model" in got.unknown)
    assert (got.memory.total_bytes is None) == ("memory.total_bytes" in got.unknown)
    assert (got.identity.kernel is None) == ("host.kernel" in got.unknown)
    for node in got.numa.nodes:
        assert (node.memory_bytes is None) == (f"numa.nodes.{node.id}.memory_bytes" in got.unknown)
        assert (node.distances == ()) == (f"numa.nodes.{node.id}.distances" in got.unknown)


def test_cgroup_of_a_captured_host_limits_cpus_and_nodes() -> None:
    got = read("hwloc/16amd64-4n4c-cgroup-distance-merge")
    assert got.cpu.allowed == "0-3"
    assert got.numa.allowed_nodes == "2-3"
