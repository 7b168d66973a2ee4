"""A link that has another name than it had, and another link with its name: by ``ip`` and sysfs on a real kernel."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tunables.link_shell import SHELLS
from tests.tunables.test_link_live import Namespace

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a network namespace needs root")

STATE = """
for link in $(ls /sys/class/net); do
  number=$(cat /sys/class/net/$link/ifindex)
  cd /sys/class/net/$link
  grep -s . mtu tx_queue_len queues/rx-0/rps_cpus /proc/sys/net/ipv[46]/conf/$link/accept_redirects |
    sed "s,/$link/,/,; s/^/$number /"
  tc qdisc show dev $link | sed "s/^/$number /; s/dev $link //"
  ethtool -k $link 2>/dev/null | sed "s/^/$number /; s/for $link//"
done
"""
VALUES = {
    "link:v0:mtu": "8000",
    "link:v0:txqueuelen": "555",
    "link:v0:qdisc": "pfifo",
    "link:v0:feature.tx-checksum-ip-generic": "off",
    "link:v0:rps.rx-0": "0",
    "sysctl:net.ipv4.conf.v0.accept_redirects": "0",
    "sysctl:net.ipv6.conf.v0.accept_redirects": "0",
}
SWAPPED = (
    "ip link set v0 down; ip link set v2 down; ip link set v0 name w0; ip link set v2 name v0; "
    "ip link set v0 up; ip link set w0 up"
)
MADE_AGAIN = "ip link delete v0; ip link add v0 type veth peer name v1; ip link set v0 mtu 8000 up"


@pytest.fixture
def namespace(tmp_path: Path) -> Iterator[Namespace]:
    one = Namespace(f"advisormark{os.getpid()}", tmp_path / "state")
    subprocess.run(["ip", "netns", "add", one.name], check=True)
    try:
        one.out("ip link add v0 type veth peer name v1; ip link add v2 type veth peer name v3")
        one.out("for link in lo v0 v1 v2 v3; do ip link set $link up; done")
        yield one
    finally:
        subprocess.run(["ip", "netns", "delete", one.name], check=True)


def rolled_back(namespace: Namespace, shell: list[str] | None) -> str:
    if shell is None:
        return namespace.ours("rollback")
    done = namespace.script(shell)
    assert done.returncode == 5, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("shell", [None, SHELLS[0]], ids=["command", "script"])
@pytest.mark.parametrize("change", [SWAPPED, MADE_AGAIN], ids=["swapped", "made-again"])
@pytest.mark.parametrize("name", VALUES)
def test_another_link_is_left_alone(namespace: Namespace, name: str, change: str, shell: list[str] | None) -> None:
    # The other link reads as was set on this one: it is not for its value that it is left alone.
    namespace.out("ip link set v2 mtu 8000 txqueuelen 555; ethtool -K v2 tx-checksum-ip-generic off")
    namespace.out("for one in 4 6; do echo 0 > /proc/sys/net/ipv$one/conf/v2/accept_redirects; done")
    namespace.apply({name: VALUES[name]})
    namespace.out(change)
    before = namespace.out(STATE)
    said = rolled_back(namespace, shell)
    assert namespace.out(STATE) == before
    assert any(name in line and "failed" in line for line in said.splitlines()), said
    if shell is None and change == SWAPPED:
        assert "the one that is meant is w0 now" in said


@pytest.mark.parametrize("shell", [None, SHELLS[0]], ids=["command", "script"])
def test_a_link_that_has_its_name_again_is_restored(namespace: Namespace, shell: list[str] | None) -> None:
    before = namespace.out(STATE)
    namespace.apply(VALUES)
    namespace.out("ip link set v0 down; ip link set v0 name w0; ip link set w0 name v0; ip link set v0 up")
    if shell is None:
        namespace.ours("rollback")
    else:
        done = namespace.script(shell)
        assert done.returncode == 0, done.stdout + done.stderr
    assert namespace.out(STATE) == before
