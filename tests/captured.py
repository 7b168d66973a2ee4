"""The captured hosts that lie next to the project: where they are, and how a test opens one.

They belong to other projects' test suites, so they are not part of this one. A test that needs them is marked
``@pytest.mark.captured`` and asks for `host` or `tree`, which skip it, with a message, where they are not there.
"""

from __future__ import annotations

import atexit
import csv
import json
import shutil
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from advisor.host import CommandRunner, Host, MemoryFiles, tree_host
from advisor.host.commands import NoCommands

FIXTURES = Path(__file__).parents[2] / "shared" / "fixtures"

HWLOC_HOSTS = (
    "16amd64-4n4c-cgroup-distance-merge",
    "16amd64-8n2c",
    "16em64t-4s2c2t",
    "20em64t-hybrid-1p6c2t+2ca4co1t",
    "2arm-2c",
    "32intel64-2p8co2t+8ve",
    "8em64t-2s2ca2c",
    "8ia64-2n2s2c",
    "fakeheteromemtiers",
)
PEPC_HOSTS = ("icx2s3", "knm0-n0", "milan0", "sklep0", "snr0")


def captured_root() -> Path:
    """The folder of the captured hosts; skips the calling test where it does not exist."""
    if not FIXTURES.is_dir():
        pytest.skip(f"the captured hosts are not here: {FIXTURES}")
    return FIXTURES


def captured_file(name: str) -> Path:
    """A file of the folder, such as ``truth/answer_key.json``; skips where it does not exist."""
    path = captured_root() / name
    if not path.is_file():
        pytest.skip(f"not among the captured hosts: {name}")
    return path


def tree(name: str) -> Path:
    """The directory into which ``hwloc/2arm-2c`` (or another host) is unpacked, once per test process.

    The tree is shared: a test that writes copies it first.
    """
    return _unpacked(captured_file(f"{name}.tar.xz"))


def on_disk(name: str, commands: CommandRunner | None = None) -> Host:
    """A captured host read from a directory."""
    return tree_host(str(tree(name)), commands)


def host(name: str, commands: CommandRunner | None = None) -> Host:
    """A captured host read from memory: quicker than `on_disk`, as nothing is unpacked."""
    return Host(_in_memory(captured_file(f"{name}.tar.xz")), commands or NoCommands(), is_root=True)


def answer_key() -> dict[str, Any]:
    """Per host (``hwloc/2arm-2c``) what is true of it."""
    key: dict[str, Any] = json.loads(captured_file("truth/answer_key.json").read_text())
    return key


def truth_rows(name: str) -> list[dict[str, str]]:
    """Rows of ``truth/NAME.csv``."""
    with captured_file(f"truth/{name}.csv").open(newline="") as lines:
        return list(csv.DictReader(lines))


@cache
def _in_memory(archive: Path) -> MemoryFiles:
    contents: dict[str, bytes] = {}
    links: dict[str, str] = {}
    directories: set[str] = set()
    with tarfile.open(archive) as tar:
        for member in tar:
            path = "/" + member.name.partition("/")[2].rstrip("/")
            if member.issym():
                links[path] = member.linkname
            elif member.isdir():
                directories.add(path)
            elif opened := tar.extractfile(member):
                contents[path] = opened.read()
    return MemoryFiles(contents, links, frozenset(directories))


@cache
def _unpacked(archive: Path) -> Path:
    place = Path(tempfile.mkdtemp(prefix="captured-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    with tarfile.open(archive) as tar:
        # "tar", not "data": links to absolute places are part of a captured host, and `Host` keeps them inside it.
        tar.extractall(place, filter="tar")
    tops = list(place.iterdir())
    return tops[0] if len(tops) == 1 else place
