"""A plan of interrupts is complete: what was set before it is set after it."""

from __future__ import annotations

from pathlib import Path

from tests.planning.system import applied, planned
from tests.planning.test_placement import PINNING
from tests.transaction.test_interrupts_kept import build
from tests.trees import make_tree


def test_interrupts_that_were_in_place_need_no_file_after_others_got_one(tmp_path: Path) -> None:
    build(tmp_path)
    make_tree(tmp_path / "root", {"/proc/irq/41/smp_affinity_list": "4-7\n"})
    assert {one.tunable for one in planned(tmp_path, PINNING).changes} == {"irq:40:affinity", "irq:50:affinity"}
    applied(tmp_path, PINNING)
    assert planned(tmp_path, PINNING).is_empty
