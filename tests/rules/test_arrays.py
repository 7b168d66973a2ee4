"""What is advised for an array that has lost members, by who manages it and by what is being done about it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import read_cases
from tests.rules.build import array
from tests.rules.test_edges import only


def degraded(**parts: Any) -> Any:
    return only("arrays.degraded", arrays=(array(**{"level": "raid6", "missing": 1, **parts}),))


DATA = read_cases(__file__)


@pytest.mark.parametrize("parts", DATA["an_array_that_is_being_rebuilt"])
def test_an_array_that_is_being_rebuilt_is_waited_for(parts: dict[str, Any]) -> None:
    found = degraded(**parts)
    assert found.severity == "warning"
    assert "wait" in found.advice
    assert "/proc/mdstat" in found.advice
    assert "--add" not in found.advice


def test_what_a_rebuild_leaves_missing_is_replaced_after_it() -> None:
    found = degraded(state="recovering", missing=2, detail={"rebuilding": "sdd"})
    assert found.advice.index("/proc/mdstat") < found.advice.index("--add")
    assert "--add" not in degraded(state="recovering", missing=2, detail={"rebuilding": "sdd sde"}).advice


@pytest.mark.parametrize("state", ["degraded", "failed", None])
def test_an_array_that_nobody_rebuilds_needs_a_member(state: str | None) -> None:
    # A check or a reshape has a progress as well, and heals nothing.
    assert "--add" in degraded(state=state, progress_percent=3.0).advice


def test_each_manager_shows_its_rebuild_by_its_own_tool() -> None:
    assert "lvs " in degraded(manager="lvm", state="recovering").advice
    assert "lvconvert" not in degraded(manager="lvm", state="recovering").advice
    assert "/proc/mdstat" not in degraded(manager="controller", state="recovering").advice
    assert "wait" in degraded(manager="controller", state="recovering").advice


@pytest.mark.parametrize(("manager", "named"), DATA["a_rebuild_hurts_each_in_its_own_way"])
def test_a_rebuild_hurts_each_in_its_own_way(manager: str, named: str) -> None:
    hurts = degraded(manager=manager, state="degraded").hurts_when
    assert named in hurts
    assert ("dev.raid" in hurts) is (manager == "md")


@pytest.mark.parametrize(("level", "what"), DATA["only_parity_is_computed_at_a_read"])
def test_only_parity_is_computed_at_a_read(level: str | None, what: str) -> None:
    found = degraded(level=level, state="degraded")
    assert what in found.why
    assert ("computed" in found.why) is (level in ("raid5", "raid6"))


def test_paths_are_not_rebuilt() -> None:
    found = degraded(manager="dm-multipath", level="multipath", state="degraded")
    assert "rebuild" not in found.hurts_when.lower()
    assert "dev.raid" not in found.hurts_when
    assert "on purpose" in found.hurts_when
