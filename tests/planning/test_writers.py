"""A plan says where each value persists, and who sets it again: every key, files and programs alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import cases
from tests.planning.system import change, planned, skipped, system

CASES = cases(__file__)


@pytest.mark.parametrize("name", CASES)
def test_where_a_value_persists(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    system(tmp_path, files=case["files"])
    plan = planned(tmp_path, *case["words"], runtime_only=case.get("runtime", ""))
    assert {one.tunable for one in plan.blocking} == case.get("refused", {}).keys()
    for tunable, why in case.get("refused", {}).items():
        found = skipped(plan, tunable)
        assert found.state == "overridden"
        assert why in found.reason
    for tunable, (value, writer) in case.get("next", {}).items():
        made = change(plan, tunable)
        assert (made.next_boot, made.last_word and made.last_word.writer) == (value, writer)
        assert bool(made.persist_note) == bool(writer or case.get("runtime"))
