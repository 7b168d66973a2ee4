"""A state directory without room: refused, or applied and rolled back whole, whatever number of pages is free."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.running import network_namespace
from tests.transaction.full import SIZE_PAGES

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a namespace needs root")
PAGES = [0, 20, 28, 64]
PARTS = [PAGES, pytest.param([*range(SIZE_PAGES)], marks=pytest.mark.thorough)]


def outcome(where: Path, pages: int, how: str) -> Any:
    name = f"full{os.getpid()}"
    place = where / str(pages)
    place.mkdir()
    with network_namespace(name):
        subprocess.run(["ip", "-n", name, "link", "add", "d0", "type", "veth", "peer", "name", "d1"], check=True)
        words = [sys.executable, "-m", "tests.transaction.full", str(place), str(pages), how]
        done = subprocess.run(["ip", "netns", "exec", name, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (pages, done.stdout + done.stderr)
        return json.loads(done.stdout)


def is_consistent(one: Any, pages: int) -> None:
    """What is live is what the states say."""
    assert one["damaged"] == [], (pages, one)
    if one["mtu"] == 9000:
        assert one["states"] in (["applied"], ["awaiting-confirmation"]), (pages, one)
        assert one["drift"] == 0
    else:
        assert one["mtu"] == 1500
        assert not {"applied", "awaiting-confirmation"} & set(one["states"]), (pages, one)


@pytest.mark.repeats(2)
@pytest.mark.parametrize("how", ["kept", "waiting"])
@pytest.mark.parametrize("pages", PARTS, ids=len)
def test_any_number_of_free_pages(tmp_path: Path, pages: list[int], how: str) -> None:
    codes = []
    for free in pages:
        found = outcome(tmp_path, free, how)
        applied, full, room = found["applied"], found["full"], found["room"]
        codes.append(applied["code"])
        assert applied["code"] in (0, 3, 4), (free, applied)
        assert (applied["mtu"] == 9000) == (applied["code"] == 0), (free, applied)
        is_consistent(applied, free)
        assert full["mtu"] == 1500, (free, full)
        is_consistent(full, free)
        if how == "kept" and applied["code"] == 0:
            assert full["code"] == 0, (free, full)
        assert room["mtu"] == 1500
        assert set(room["states"]) <= {"rolled-back"}, (free, room)
        is_consistent(room, free)
    assert codes[0] == 3, "refused with nothing begun"
    assert codes[-1] == 0
