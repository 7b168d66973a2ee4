"""CPU sets: from the kernel's lists, from the command line, from cgroups and irqbalance; the nearest CPUs of a node."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.facts.processors.cpu import CpuSets, read_cpu_sets
from advisor.facts.processors.cpulist import format_list
from advisor.facts.processors.numa import Node, Numa, near_cpus
from advisor.facts.unknown import Unknowns
from advisor.host import Host, MemoryFiles, NoCommands
from tests.cases import read_cases

CASES = read_cases(__file__)


def read(files: dict[str, str], online: int) -> tuple[CpuSets, list[str]]:
    host = Host(MemoryFiles({path: text.encode() for path, text in files.items()}), NoCommands())
    unknown = Unknowns()
    return read_cpu_sets(host, range(online), unknown), [one.fact for one in unknown.listed()]


@pytest.mark.parametrize(("name", "files", "online", "expected"), CASES["hosts"])
def test_sets(name: str, files: dict[str, str], online: int, expected: dict[str, str]) -> None:
    found, unknown = read(files, online)
    everything = {"isolated": "", "nohz_full": "", "interrupts": "", "banned": "", "housekeeping": f"0-{online - 1}"}
    assert {field: getattr(found, field) for field in everything} == {**everything, **expected}, name
    assert unknown == []


def test_a_damaged_list_is_unknown() -> None:
    found, unknown = read({"/sys/devices/system/cpu/isolated": "2-x\n"}, 4)
    assert (found.isolated, unknown) == ("", ["cpu.sets.isolated"])


@pytest.mark.parametrize(("sets", "node", "interrupts", "expected"), CASES["near"])
def test_nearest(sets: dict[str, str], node: int | None, interrupts: bool, expected: str) -> None:
    far: Any = ((10, 12, 21), (12, 10, 21), (21, 21, 10))
    numa = Numa(tuple(Node(one, f"{4 * one}-{4 * one + 3}", 1, 1, far[one]) for one in range(3)), 0, "0-2")
    assert format_list(near_cpus(CpuSets(**sets), numa, node, interrupts=interrupts)) == expected
