"""What the packages are built with: the programs of the tests' own environment, and the registry that set it up."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*words: str | Path, extra: Mapping[str, str] | None = None, cwd: Path = ROOT) -> str:
    """Standard output of a command; its whole output is reported where it fails."""
    environment = {**os.environ, "PYTHON": sys.executable, **(extra or {})}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sdist, and the wheel that was built from it."""
    directory = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "uv", "--quiet", "build", "--out-dir", directory, ROOT)
    return directory
