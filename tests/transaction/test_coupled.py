"""Sysctls that the kernel changes together: nothing differs after a rollback, whichever two are applied together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a network namespace needs root")
_OWN = 'mount -t proc proc /proc && mount -t sysfs sysfs /sys && exec "$@"'


def tried(where: Path, way: str, which: str, *, seed: int, seconds: int) -> dict[str, object]:
    words = [sys.executable, "-m", "tests.transaction.coupled_pairs", str(where), way, which, str(seed), str(seconds)]
    command = ["unshare", "-n", "-m", "-p", "--fork", "sh", "-c", _OWN, "sh", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.repeats(1)
@pytest.mark.parametrize("way", ["command", "script"])
def test_pairs_of_sysctls_leave_nothing_behind(tmp_path: Path, way: str) -> None:
    found = tried(tmp_path, way, "400", seed=20260, seconds=10)
    assert found["failed"] == {}
    assert isinstance(found["done"], int)
    assert found["done"] > 10


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("way", ["command", "script"])
def test_every_pair_of_one_setting_leaves_nothing_behind(tmp_path: Path, way: str, seed: int) -> None:
    found = tried(tmp_path, way, "near", seed=seed, seconds=900)
    assert (found["failed"], found["done"]) == ({}, found["plans"])
