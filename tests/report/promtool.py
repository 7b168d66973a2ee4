"""promtool, of the search path or out of Debian's package, which is unpacked into a cache and never installed: it would
start a server. Where it cannot be had the calling test is skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "advisor-tests"


def find_promtool() -> str:
    """The program; skips the calling test where there is none."""
    found, why = _find()
    if found is None:
        pytest.skip(f"promtool cannot be had here: {why}")
    return found


@cache
def _find() -> tuple[str | None, str]:
    installed = shutil.which("promtool")
    unpacked = CACHE / "promtool"
    if installed is not None or os.access(unpacked, os.X_OK):
        return installed or str(unpacked), ""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return None, "it is not installed, and there is no apt-get"
    try:
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as directory:
            return _download(Path(directory), unpacked)
    except (OSError, subprocess.SubprocessError) as error:
        return None, str(error)


def _download(directory: Path, target: Path) -> tuple[str | None, str]:
    done = subprocess.run(
        ["apt-get", "download", "prometheus"], cwd=directory, capture_output=True, text=True, timeout=300, check=False
    )
    packages = list(directory.glob("prometheus_*.deb"))
    if not packages:
        return None, f"apt-get download prometheus: {done.stderr.strip()[-200:]}"
    subprocess.run(["dpkg-deb", "-x", packages[0], directory / "tree"], check=True, timeout=120)
    # Whole at once: another process may be as far as this one.
    (directory / "tree/usr/bin/promtool").rename(target)
    return str(target), ""
