"""Which parameters each network namespace has for itself, against the running kernel."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest

from advisor.tunables import namespace_of
from tests.cases import cases

CASES = cases(__file__)

LIST = "find /proc/sys/net -type f -printf '%m %p\\n'"


@pytest.mark.parametrize(("identity", "namespace"), CASES["namespace"])
def test_namespace(identity: str, namespace: str | None) -> None:
    assert namespace_of(identity) == namespace


def _keys(listed: str) -> dict[str, int]:
    """Key and mode of each file below /proc/sys/net."""
    found = (line.split(" ", 1) for line in listed.splitlines())
    swap = str.maketrans("./", "/.")
    return {path.removeprefix("/proc/sys/").translate(swap): int(mode, 8) for mode, path in found}


@pytest.mark.skipif(os.geteuid() != 0, reason="making a namespace needs root")
def test_the_kernel_has_the_same_parameters_in_a_network_namespace() -> None:
    """Those that it shows and lets be written there, and no other."""
    release = tuple(map(int, platform.release().split(".")[:2]))
    if release < (6, 18) or not Path("/proc/sys/net/core/netdev_max_backlog").exists():
        pytest.skip("the list is of Linux 6.18, read in the first network namespace")
    own = _keys(subprocess.run(["unshare", "-n", "sh", "-c", LIST], capture_output=True, text=True, check=True).stdout)
    first = _keys(subprocess.run(["sh", "-c", LIST], capture_output=True, text=True, check=True).stdout)
    assert {key for key, mode in own.items() if (namespace_of(f"sysctl:{key}") == "net") != bool(mode & 0o222)} == set()
    # Links of this machine are not in the new namespace.
    links = [name for name in os.listdir("/sys/class/net") if name != "lo"]
    gone = {key for key in first.keys() - own.keys() if not any(f".{name}." in key for name in links)}
    assert {key for key in gone if namespace_of(f"sysctl:{key}") == "net"} == set()
