"""What a copy of the project gets into its environment to measure planted faults: a plugin of pytest, and the probe."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pytest

_HERE: Final = Path(__file__).parent
_seen: set[str] = set()


def reach(number: int) -> None:
    """Note that the running test reached the place of this number; at import, that its module did."""
    test = os.environ.get("PYTEST_CURRENT_TEST")
    frame: FrameType | None = sys._getframe()
    while test is None and frame is not None:
        place = Path(frame.f_code.co_filename)
        if place.name.startswith("test_"):
            test = "tests/" + str(place).rpartition("/tests/")[2]
        frame = frame.f_back
    line = f"{number}\t{test}\n"
    if test and line not in _seen:
        _seen.add(line)
        with suppress(OSError), (_HERE / "reached").open("a") as file:
            file.write(line)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the chosen tests, in their order."""
    if (chosen := _HERE / "chosen.json").exists():
        order = {test: place for place, test in enumerate(json.loads(chosen.read_text()))}
        items[:] = sorted((one for one in items if one.nodeid in order), key=lambda one: order[one.nodeid])


def _note(test: str, seconds: float, *, failed: bool) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:  # the process that starts the workers gets all reports
        with (_HERE / "record").open("a") as file:
            file.write(json.dumps([test, seconds, failed]) + "\n")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a module of tests that cannot be imported."""
    if report.failed:
        _note(report.nodeid, 0.0, failed=True)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how long a part of a test takes, and whether it fails."""
    _note(report.nodeid, report.duration, failed=report.failed)
