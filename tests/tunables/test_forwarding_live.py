"""Forwarding switched on and restored in a network namespace: the kernel sets other switches along with it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tunables.form_shell import SHELLS
from tests.tunables.test_link_live import Namespace

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a network namespace needs root")

SWITCHES = "cd /proc/sys/net; grep -s . ipv4/ip_forward ipv[46]/conf/*/forwarding ipv4/conf/all/accept_redirects"
KEYS = ("sysctl:net.ipv4.ip_forward", "sysctl:net.ipv6.conf.all.forwarding")


@pytest.fixture
def namespace(tmp_path: Path) -> Iterator[Namespace]:
    """One link forwards by itself, and redirects are taken from nobody."""
    one = Namespace(f"advisorfwd{os.getpid()}", tmp_path / "state")
    subprocess.run(["ip", "netns", "add", one.name], check=True)
    try:
        one.out("ip link add a0 type veth peer name b0; ip link set a0 up; ip link set b0 up")
        one.out("cd /proc/sys/net; echo 0 >ipv4/ip_forward; echo 0 >ipv6/conf/all/forwarding")
        one.out("cd /proc/sys/net; echo 1 >ipv4/conf/a0/forwarding; echo 1 >ipv6/conf/b0/forwarding")
        one.out("echo 0 >/proc/sys/net/ipv4/conf/all/accept_redirects")
        yield one
    finally:
        subprocess.run(["ip", "netns", "delete", one.name], check=True)


@pytest.mark.parametrize("shell", [None, SHELLS[0]], ids=["rollback", "script"])
@pytest.mark.parametrize("key", KEYS)
def test_each_switch_is_as_it_was(namespace: Namespace, key: str, shell: list[str] | None) -> None:
    before = namespace.out(SWITCHES)
    namespace.apply({key: "1"})
    assert namespace.out(SWITCHES) != before
    if shell is None:
        namespace.ours("rollback")
    else:
        done = namespace.script(shell)
        assert done.returncode == 0, done.stdout + done.stderr
    assert namespace.out(SWITCHES) == before
