"""What the packages are built with: the programs of the tests' own environment, and the registry that set it up."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from packaging.requirements import Requirement

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
    """A directory with the sdist, and the wheel that was built from it: built once for all processes of a run."""
    base = tmp_path_factory.getbasetemp()
    directory = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "dist"
    directory.mkdir(exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not [*directory.glob("*.whl")]:
            run(sys.executable, "-m", "uv", "--quiet", "build", "--out-dir", directory, ROOT)
    return directory


def read_floors(python: str, tree: Path = ROOT) -> dict[str, str]:
    """The lowest version of each library that the project declares for this Python, as 3.13."""
    named = tomllib.loads((tree / "pyproject.toml").read_text())["project"]["dependencies"]
    wanted = [
        one for one in map(Requirement, named) if not one.marker or one.marker.evaluate({"python_version": python})
    ]
    floors = {one.name: part.version for one in wanted for part in one.specifier if part.operator == ">="}
    assert len(floors) == len(wanted)
    return floors


def find_python(version: str) -> Path:
    """The interpreter of this version, where this machine has it."""
    places = [str(Path(sys.executable).parent), *os.environ["PATH"].split(":")]
    places += map(str, Path.home().glob(".pyenv/versions/*/bin"))
    named = (Path(place, f"python{version}") for place in places)
    found = next((one for one in named if os.access(one, os.X_OK) and _version_of(one) == one.name), None)
    if found is None:
        pytest.skip(f"no Python {version} here")
    return found


def _version_of(python: Path) -> str:
    """A shim of another interpreter's name answers with nothing."""
    code = "import sys; print('python%d.%d' % sys.version_info[:2])"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False).stdout.strip()
