"""TuneD as its package has it, unpacked into a cache and never installed: its profiles, and its loader as an oracle.

``ADVISOR_TUNED=required``, or CI in the environment, turns "cannot be had here" from a skip into a failure.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from advisor.host import DirectoryFiles, Host, NoCommands
from tests.running import run_text
from tests.trees import make_command

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "advisor-tests"
ORACLE = Path(__file__).with_name("tuned_oracle.py")
# Debian 12's. Others have other profiles and options; what the tests say about those is in test_tuned_versions.
VERSION = "2.20.0"
NAMES = (
    *("accelerator-performance", "atomic-guest", "atomic-host", "aws", "balanced", "cpu-partitioning"),
    *("cpu-partitioning-powersave", "default", "desktop", "desktop-powersave", "enterprise-storage", "hpc-compute"),
    *("intel-sst", "laptop-ac-powersave", "laptop-battery-powersave", "latency-performance", "mssql"),
    *("network-latency", "network-throughput", "openshift", "openshift-control-plane", "openshift-node"),
    *("optimize-serial-console", "oracle", "postgresql", "powersave", "realtime", "realtime-virtual-guest"),
    *("realtime-virtual-host", "sap-hana", "sap-netweaver", "server-powersave", "spectrumscale-ece"),
    *("spindown-disk", "throughput-performance", "virtual-guest", "virtual-host"),
)
"""Those that TuneD 2.28 has besides."""


def tuned_root() -> Path:
    """The tree of the package; skips the calling test, or fails it, where it cannot be had."""
    root, why = _unpacked()
    if root is None:
        message = f"TuneD's package cannot be had here: {why}"
        if os.environ.get("CI") or os.environ.get("ADVISOR_TUNED") == "required":
            pytest.fail(message, pytrace=False)
        pytest.skip(message)
    return root


@cache
def _unpacked() -> tuple[Path | None, str]:
    for known in sorted(CACHE.glob(f"tuned-{VERSION}-*/usr/lib/tuned")):
        return known.parents[2], ""
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            return None, f"there is no {program}"
    try:
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as directory:
            return _download(Path(directory))
    except (OSError, subprocess.SubprocessError) as error:
        return None, str(error)


def _download(directory: Path) -> tuple[Path | None, str]:
    done = run_text(["apt-get", "download", "tuned"], cwd=directory, timeout=300)
    packages = list(directory.glob("tuned_*.deb"))
    if not packages:
        return None, f"apt-get download tuned: {done.stderr.strip()[-200:]}"
    version = packages[0].name.split("_")[1]
    if not version.startswith(f"{VERSION}-"):
        return None, f"the distribution has {version}, and these tests judge by {VERSION}"
    tree = directory / "tree"
    subprocess.run(["dpkg-deb", "-x", packages[0], tree], check=True, timeout=60)
    target = CACHE / f"tuned-{version}"
    if not target.exists():
        # Another process may be as far as this one.
        try:
            tree.rename(target)
        except OSError:
            if not target.exists():
                raise
    return target, ""


def tuned_files() -> Host:
    """A host whose files are those of the package."""
    return Host(DirectoryFiles(str(tuned_root())), NoCommands(), is_root=True)


def ask(question: dict[str, Any], *, commands: Path | None = None) -> dict[str, Any]:
    """What TuneD's own code answers; ``commands`` are found before the system's."""
    packages = tuned_root() / "usr/lib/python3/dist-packages"
    path = f"{commands}:{os.environ['PATH']}" if commands else os.environ["PATH"]
    done = run_text(
        [sys.executable, "-B", "-W", "ignore", str(ORACLE)],
        input=json.dumps(question),
        env={**os.environ, "PYTHONPATH": str(packages), "PATH": path},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def stand_ins(directory: Path, *, virtual: bool, cpus: int) -> Path:
    """The two commands that functions of TuneD ask."""
    make_command(directory, "virt-what", "echo kvm" if virtual else ":")
    make_command(directory, "nproc", f"echo {cpus}")
    return directory


def moved_profiles(target: Path) -> tuple[str, str]:
    """Copies of the package's profiles and variables whose absolute paths lead to the copies: its two directories."""
    for part in ("usr/lib/tuned", "etc/tuned"):
        for path in (tuned_root() / part).rglob("*"):
            place = target / path.relative_to(tuned_root())
            if path.is_file():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(path.read_bytes().replace(b"/etc/tuned/", f"{target}/etc/tuned/".encode()))
    return f"{target}/usr/lib/tuned", f"{target}/etc/tuned"
