"""A state directory without room, for the scripts: refused, or applied and rolled back whole, and no outcome that could
not be written is claimed, whatever number of pages is free."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.exporters.apply_script.full import NEW, OLD
from tests.exporters.apply_script.stage import SHELLS
from tests.running import network_namespace

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a namespace needs root")
ALL = [*range(10), 12, 16, 20, 24, 28, 32, 36, 40, 48, 64]


def outcome(where: Path, pages: int, how: str) -> Any:
    name, place = f"sfull{os.getpid()}", where / str(pages)
    place.mkdir()
    with network_namespace(name):
        subprocess.run(["ip", "-n", name, "link", "add", "d0", "type", "veth", "peer", "name", "d1"], check=True)
        shell = " ".join(SHELLS[pages % len(SHELLS)])
        words = [sys.executable, "-m", "tests.exporters.apply_script.full", str(place), str(pages), how, shell]
        done = subprocess.run(["ip", "netns", "exec", name, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (pages, done.stdout + done.stderr)
        return json.loads(done.stdout)


def is_consistent(one: Any, pages: int) -> None:
    """What is live is all or nothing, and what the states say."""
    assert one["damaged"] == [], (pages, one)
    assert one["live"] in (OLD, NEW), (pages, one)
    if one["live"] == NEW:
        assert one["states"] in (["applied"], ["awaiting-confirmation"]), (pages, one)
        assert one["drift"] == [], (pages, one)


@pytest.mark.repeats(2)
@pytest.mark.parametrize("how", ["apply", "waiting", "script", "bare"])
@pytest.mark.parametrize("pages", [[0, 9, 64], pytest.param(ALL, marks=pytest.mark.thorough)], ids=len)
def test_any_number_of_free_pages(tmp_path: Path, pages: list[int], how: str) -> None:
    codes = []
    for free in pages:
        found = outcome(tmp_path, free, how)
        applied, full, room = found["applied"], found["full"], found["room"]
        codes.append(applied["code"])
        assert applied["code"] in ((0, 3, 4) if how in ("apply", "waiting") else (0,)), (free, applied)
        assert (applied["live"] == NEW) == (applied["code"] == 0), (free, applied)
        is_consistent(applied, free)
        assert full["live"] == OLD, (free, full)
        is_consistent(full, free)
        if how in ("script", "bare"):
            assert full["code"] == 0, (free, full)
        # What is restored and could not be recorded is open, or drift; it is never claimed to be active and whole.
        assert "applied" not in full["states"] or full["drift"], (free, full)
        assert room["live"] == OLD, (free, room)
        assert set(room["states"]) <= {"rolled-back"}, (free, room)
        assert not {name for name in room["files"] if name.endswith(".new")}, (free, room)
    if how in ("apply", "waiting"):
        assert codes[0] == 3, "refused with nothing begun"
    assert codes[-1] == 0
