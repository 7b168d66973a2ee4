"""``advisor fleet compare -i``: real hosts are captured and compared. Judged by what was set on them with ip(8)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.hosts import Hosts, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    """Four hosts; node03 has another MTU and another sysctl, node04 is off."""
    with Hosts(5) as found:
        found.shell("node03", "ip link set eth0 mtu 1400; sysctl -qw net.ipv4.tcp_sack=0")
        found.kill("node04")
        yield found


def run(hosts: Hosts, *arguments: str | Path, code: int) -> str:
    argv = [sys.executable, "-P", "-m", "advisor", "fleet", "compare", "-i", hosts.inventory(), *arguments]
    done = hosts.run(*argv, timeout=300)
    assert done.returncode == code, done.stdout + done.stderr
    return str(done.stdout)


def test_the_odd_host_is_found_and_the_dead_one_is_named(hosts: Hosts) -> None:
    document: dict[str, Any] = json.loads(run(hosts, "--json", "--probe", code=4))
    assert document["failed"] == ["node04"]
    found = {one["id"]: one for one in document["findings"]}
    assert found["fleet.mtu-in-network"]["hosts"] == ["node03"]
    words = f"advisor fleet apply link:eth0:mtu=1500 -i {hosts.inventory()} --limit node03"
    assert found["fleet.mtu-in-network"]["commands"] == [words]
    sysctls = {row["attribute"]: row for row in found["fleet.sysctl"]["differences"]}
    assert sysctls["sysctl.net.ipv4.tcp_sack"]["groups"] == [{"value": "0", "hosts": ["node03"]}]
    assert {one["source"] for one in document["matrix"]["cells"]} == {"node01", "node02", "node03", "node05"}
