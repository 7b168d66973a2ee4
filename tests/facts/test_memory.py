"""Memory facts."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import pytest

from advisor.facts.system.memory import HugePagePool, Memory, Sockets, parse_page_bytes, read_memory
from advisor.facts.unknown import Unknowns
from advisor.host import Host, MemoryFiles, NoCommands, tree_host
from tests import captured
from tests.cases import read_cases
from tests.trees import make_tree

THP = "/sys/kernel/mm/transparent_hugepage"
POOLS = "/sys/kernel/mm/hugepages"
AUXV = struct.pack("<6Q", 33, 0x7F00, 6, 65536, 0, 0)


def look(files: Mapping[str, str | bytes], unreadable: Mapping[str, str] | None = None) -> tuple[Memory, set[str]]:
    contents = {path: text if isinstance(text, bytes) else text.encode() for path, text in files.items()}
    unknown = Unknowns()
    memory = read_memory(Host(MemoryFiles(contents, unreadable=unreadable), NoCommands()), unknown)
    return memory, {entry.fact for entry in unknown.listed()}


DATA = read_cases(__file__, HugePagePool, Memory, Sockets, AUXV=AUXV)


def test_memory_of_a_host(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = DATA["memory_of_a_host"]
    unknown = Unknowns()
    memory = read_memory(tree_host(str(make_tree(tmp_path, files))), unknown)
    assert memory == DATA["memory_of_a_host_2"]
    assert not unknown.listed()


def test_an_empty_tree_is_unknown_and_not_zero() -> None:
    memory, unknown = look({})
    assert (memory.total_bytes, memory.thp_enabled, memory.hugepages) == (None, None, ())
    assert memory.sockets == Sockets(None, None)
    assert unknown == {"memory.total_bytes", "memory.page_bytes"}


def test_the_pool_of_old_kernels_is_in_meminfo() -> None:
    memory, _ = look({"/proc/meminfo": "HugePages_Total:    3\nHugePages_Free:    1\nHugepagesize:    2048 kB\n"})
    assert memory.hugepages == (HugePagePool(2 << 20, 3, 1),)


def test_what_cannot_be_read_or_understood_is_noted() -> None:
    files: dict[str, str | bytes] = {"/proc/self/auxv": AUXV, f"{THP}/enabled": "always"}
    files[f"{POOLS}/hugepages-64kB/nr_hugepages"] = "x"
    memory, unknown = look(files, {"/proc/meminfo": "Permission denied", "/proc/net/sockstat": "Permission denied"})
    assert (memory.thp_enabled, memory.hugepages) == (None, ())
    assert unknown == {"memory.total_bytes", "memory.thp_enabled", "memory.hugepages.64kB", "memory.sockets"}


@pytest.mark.parametrize("layout", ["<6Q", ">6Q", "<6I", ">6I"])
def test_page_size_of_either_word_size_and_byte_order(layout: str) -> None:
    assert parse_page_bytes(struct.pack(layout, 16, 1, 6, 65536, 0, 0)) == 65536
    assert parse_page_bytes(struct.pack(layout, 16, 1, 6, 5000, 0, 0)) is None


@pytest.mark.captured
def test_sockets_of_a_captured_host() -> None:
    memory = read_memory(captured.host("procfs/procfs-fixtures"), Unknowns())
    assert memory.sockets == Sockets(tcp=52, udp=21)
