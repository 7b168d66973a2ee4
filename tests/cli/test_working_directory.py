"""Where advisor is started must not matter: what lies in the working directory is neither imported nor run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = Path(sys.executable).with_name("advisor")
# What is imported once our own code runs. Python itself looks for runpy and what that needs before.
MODULES = (
    *(
        "typer",
        "click",
        "msgspec",
        "rich",
        "jinja2",
        "markupsafe",
        "pyroute2",
        "psutil",
        "shellingham",
        "typing_extensions",
    ),
    *("json", "tomllib", "difflib", "shlex", "tempfile", "subprocess", "select", "signal", "tarfile", "gzip", "socket"),
    *(
        "textwrap",
        "inspect",
        "logging",
        "datetime",
        "random",
        "hashlib",
        "struct",
        "array",
        "fcntl",
        "string",
        "platform",
    ),
)
TOOLS = ("ip", "ethtool", "udevadm", "lltconfig", "lvs", "dmsetup", "multipath", "systemctl", "xfs_info", "sh", "fio")
CALLS = (
    ("--help",),
    ("scan", "--json"),
    ("scan",),
    ("profiles", "list"),
    ("plan", "socket-buffers-8m"),
    ("explain", "sysctl:net.core.rmem_max"),
    ("rollback-script", "nothing"),
    ("status",),
)


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A directory full of modules and commands that leave a trace."""
    place = tmp_path / "trap"
    place.mkdir()
    for name in MODULES:
        (place / f"{name}.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'a').write('{name} ')\n")
    for name in TOOLS:
        (place / name).write_text(f"#!/bin/sh\necho '{name}' >> '{tmp_path / 'sprung'}'\n")
        (place / name).chmod(0o755)
    return place


@pytest.mark.repeats(8)
@pytest.mark.parametrize("call", CALLS, ids="-".join)
@pytest.mark.parametrize("start", ["script", "module", "safe module"])
def test_nothing_of_the_working_directory_is_used(
    start: str, call: tuple[str, ...], trap: Path, tmp_path: Path
) -> None:
    if start == "script" and not SCRIPT.exists():
        pytest.skip("the command is not installed")
    command = {
        "script": [str(SCRIPT)],
        "module": [sys.executable, "-m", "advisor"],
        "safe module": [sys.executable, "-P", "-m", "advisor"],
    }[start]
    path = f".:{trap}:" + os.environ["PATH"]
    environment = {**os.environ, "PATH": path, "ADVISOR_STATE_DIR": str(tmp_path / "state"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*command, *call], cwd=trap, env=environment, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 2, 3)
    assert not (tmp_path / "sprung").exists(), (tmp_path / "sprung").read_text()
