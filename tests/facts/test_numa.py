"""NUMA facts: sparse, CPU-less and memory-less nodes, old kernels, and odd content."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from advisor.facts.processors.numa import Numa, read_numa
from advisor.facts.unknown import Unknowns
from advisor.host import Host, MemoryFiles, NoCommands, tree_host
from tests.cases import read_cases
from tests.trees import make_tree

NODE = "/sys/devices/system/node"
CPU = "/sys/devices/system/cpu"


def look(files: Mapping[str, str]) -> tuple[Numa, dict[str, str]]:
    host = Host(MemoryFiles({path: text.encode() for path, text in files.items()}), NoCommands())
    unknown = Unknowns()
    numa = read_numa(host, unknown)
    return numa, {entry.fact: entry.why for entry in unknown.listed()}


def node(number: int, cpus: str, memory_kb: int, distances: str) -> dict[str, str]:
    return {
        f"{NODE}/node{number}/cpulist": f"{cpus}\n",
        f"{NODE}/node{number}/distance": f"{distances}\n",
        f"{NODE}/node{number}/meminfo": (
            f"\nNode {number} MemTotal:       {memory_kb} kB\nNode {number} MemFree:        {memory_kb // 2} kB\n"
            f"Node {number} Active(anon):   1 kB\nNode {number} HugePages_Total:     0\n"
        ),
    }


def test_sparse_nodes_one_without_cpus_and_one_without_memory(tmp_path: Path) -> None:
    files = {f"{NODE}/online": "0,8,250\n", f"{CPU}/online": "0-3\n", "/proc/sys/kernel/numa_balancing": "1\n"}
    files |= node(0, "0-3", 1000, "10 20 40") | node(8, "", 500, "20 10 40") | node(250, "", 0, "40 40 10")
    unknown = Unknowns()
    numa = read_numa(tree_host(str(make_tree(tmp_path, files))), unknown)
    assert [(one.id, one.cpus, one.memory_bytes, one.distances) for one in numa.nodes] == [
        (0, "0-3", 1_024_000, (10, 20, 40)),
        (8, "", 512_000, (20, 10, 40)),
        (250, "", 0, (40, 40, 10)),
    ]
    assert numa.nodes[0].free_bytes == 512_000
    assert numa.balancing == 1
    assert numa.allowed_nodes == "0,8,250"
    assert not unknown.listed()


def test_a_list_wider_than_the_cpus_is_cut_to_those_online() -> None:
    files = {f"{NODE}/online": "0-1", f"{CPU}/online": "0-2"}
    numa, _ = look(files | node(0, "0-63", 1, "10 20") | node(1, "2-255", 1, "20 10"))
    assert [one.cpus for one in numa.nodes] == ["0-2", "2"]


def test_old_kernel_with_masks_and_no_list_of_nodes() -> None:
    files = {f"{NODE}/node2/cpumap": "00000000,0000000c", f"{NODE}/node0/cpumap": "00000003", f"{NODE}/has_cpu": "0"}
    numa, _ = look(files | {f"{CPU}/cpu{cpu}/topology/core_id": str(cpu) for cpu in range(4)})
    assert [(one.id, one.cpus) for one in numa.nodes] == [(0, "0-1"), (2, "2-3")]


def test_cpus_from_the_links_of_a_node_where_there_is_neither_list_nor_mask() -> None:
    numa, unknown = look({f"{NODE}/online": "0", f"{NODE}/node0/cpu1/x": "", f"{CPU}/online": "0-1"})
    assert numa.nodes[0].cpus == "1"
    assert "numa.nodes.0.cpus" not in unknown


def test_a_node_that_is_not_online_is_not_listed() -> None:
    numa, _ = look({f"{NODE}/online": "1"} | node(0, "", 0, "10") | node(1, "0", 5, "10"))
    assert [one.id for one in numa.nodes] == [1]


def test_an_online_node_without_a_directory_is_listed_with_unknowns() -> None:
    numa, unknown = look({f"{NODE}/online": "0-1"} | node(0, "0", 5, "10 20"))
    assert [one.id for one in numa.nodes] == [0, 1]
    assert numa.nodes[1].memory_bytes is None
    assert {"numa.nodes.1.cpus", "numa.nodes.1.memory_bytes", "numa.nodes.1.distances"} <= set(unknown)


def test_a_kernel_without_numa_has_no_nodes() -> None:
    numa, unknown = look({f"{CPU}/online": "0-1"})
    assert numa == Numa((), None, None)
    assert not unknown


DATA = read_cases(__file__)


@pytest.mark.parametrize(("text", "why"), DATA["distances_that_do_not_fit_are"])
def test_distances_that_do_not_fit_are_unknown(text: str, why: str) -> None:
    numa, unknown = look({f"{NODE}/online": "0-1"} | node(0, "0", 5, text) | node(1, "1", 5, "20 10"))
    assert numa.nodes[0].distances == ()
    assert numa.nodes[1].distances == (20, 10)
    assert why in unknown["numa.nodes.0.distances"]


def test_allowed_nodes_are_those_of_the_process() -> None:
    files = {f"{NODE}/online": "0-1", "/proc/self/status": "Mems_allowed_list:\t1\n"} | node(0, "0", 5, "10 20")
    assert look(files)[0].allowed_nodes == "1"
    files["/proc/self/status"] = "Mems_allowed_list:\tx\n"
    numa, unknown = look(files)
    assert numa.allowed_nodes is None
    assert "numa.allowed_nodes" in unknown


def test_unreadable_balancing_is_noted() -> None:
    numa, unknown = look({"/proc/sys/kernel/numa_balancing": "x"})
    assert numa.balancing is None
    assert "numa.balancing" in unknown
