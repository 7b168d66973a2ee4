"""Facts of what is nearly used up, of memory that errs, and of a cloud's agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.facts.host_facts import scan
from advisor.facts.system.memory import parse_file_handles
from advisor.host import tree_host
from tests.cases import read_cases
from tests.trees import make_tree

DATA = read_cases(__file__)


@pytest.mark.parametrize(("text", "handles"), DATA["file_handles"])
def test_file_handles(text: str, handles: int | None) -> None:
    assert parse_file_handles(text) == handles


def test_memory_that_errs(tmp_path: Path) -> None:
    place = "/sys/devices/system/edac/mc"
    files = {
        **{f"{place}/mc0/ce_count": "5\n", f"{place}/mc1/ce_count": "2\n", f"{place}/mc0/ue_count": "1\n"},
        "/proc/meminfo": "MemTotal:       16777216 kB\nHardwareCorrupted:     8 kB\n",
    }
    memory = scan(tree_host(str(make_tree(tmp_path, files)))).memory
    assert (memory.corrected_errors, memory.uncorrected_errors, memory.poisoned_bytes) == (7, 1, 8192)


@pytest.mark.parametrize(("files", "sets"), DATA["whether_googles_agent_sets_queues"])
def test_whether_googles_agent_sets_queues(tmp_path: Path, files: dict[str, str], sets: bool) -> None:
    host = tree_host(str(make_tree(tmp_path, {"/proc/x": "", **files})))
    assert scan(host).owners.cloud_multiqueue is sets
