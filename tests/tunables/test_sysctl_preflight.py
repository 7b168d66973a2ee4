"""What a kernel parameter needs of the host before it is changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.tunables.sysctl import Sysctl
from tests.trees import host_of, make_tree


@pytest.mark.parametrize(
    ("limit", "asked", "words"),
    [(1048576, 1782579, "have asked for 1740 MiB"), (4194304, 1782579, None), (None, None, None)],
)
def test_strict_accounting_needs_room_for_what_is_asked_for_already(
    tmp_path: Path, limit: int | None, asked: int | None, words: str | None
) -> None:
    figures = "" if limit is None else f"CommitLimit:    {limit} kB\nCommitted_AS:   {asked} kB\n"
    tree = {"/proc/sys/vm/overcommit_memory": "0\n", "/proc/meminfo": f"MemTotal:  2097152 kB\n{figures}"}
    found = Sysctl("vm.overcommit_memory").run_preflight(host_of(make_tree(tmp_path, tree)), "0", "2", profile="x")
    assert (found.refusal is None) == (words is None)
    assert words is None or words in str(found.refusal)
