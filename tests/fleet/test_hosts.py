"""The test hosts: what they promise, and that nothing of them stays on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fleet.hosts import Hosts, Kind, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def machine() -> dict[str, object]:
    """What of this machine test hosts could leave something on."""

    def listed(path: Path) -> list[tuple[str, int]]:
        return [(str(one), one.lstat().st_mtime_ns) for one in sorted(path.rglob("*"))] if path.is_dir() else []

    return {
        "/etc": listed(Path("/etc")),
        "~/.ssh": listed(Path.home() / ".ssh"),
        "/var/lib/advisor": listed(Path("/var/lib/advisor")),
        "hostname": os.uname().nodename,
    }


def test_a_host_is_its_own_and_is_gone_without_a_trace() -> None:
    before = machine()
    with Hosts(2, node02=Kind(links={"eth1": 9000}, clock=3600)) as hosts:
        home = hosts.home
        assert {hosts.shell(name, "hostname").strip() for name in hosts.names} == {"node01", "node02"}
        assert len({hosts.shell(name, "cat /etc/machine-id") for name in hosts.names}) == 2
        assert hosts.shell("node02", "cat /sys/class/net/eth1/mtu") == "9000\n"
        assert int(hosts.shell("node02", "date +%s")) - int(hosts.shell("node01", "date +%s")) >= 3590
        hosts.shell(
            "node01", "touch /etc/of-the-host /run/x; ip link set eth0 mtu 4000; setsid sleep 4711 >/dev/null 2>&1 &"
        )
        for place in ("/usr/x", "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/sys/vm/swappiness"):
            assert hosts.shell("node01", f"(echo 1 >{place}) 2>/dev/null && echo written", check=False) == ""
        boot_id = hosts.shell("node01", "cat /proc/sys/kernel/random/boot_id")
        hosts.reboot("node01")
        assert hosts.shell("node01", "ls /etc/of-the-host; ls /run/x", check=False) == "/etc/of-the-host\n"
        assert hosts.shell("node01", "cat /sys/class/net/eth0/mtu") == "1500\n"
        assert hosts.shell("node01", "cat /proc/sys/kernel/random/boot_id") != boot_id
        done = hosts.run("ssh", "-F", home / "ssh_config", f"root@{hosts.address('node01')}", "hostname")
        assert done.stdout == "node01\n", done.stderr
    assert not home.exists()
    assert str(home) not in Path("/proc/self/mountinfo").read_text()
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if _is_there(path)]
    assert not [line for line in commands if b"4711" in line or str(home).encode() in line]
    assert machine() == before


def _is_there(path: Path) -> bool:
    try:
        return bool(path.read_bytes())
    except OSError:
        return False


@pytest.mark.thorough
def test_many_hosts_do_not_fill_the_table_of_neighbours_that_all_namespaces_share() -> None:
    with Hosts(17) as hosts:
        others = " ".join(hosts.address(name) for name in hosts.names[1:])
        keys = hosts.shell("node01", f"ssh-keyscan -t ed25519 {others} 2>/dev/null")
        assert len(keys.splitlines()) == 16, keys
        known = hosts.shell("node01", "ip -4 neighbour").splitlines()
        assert len(known) >= 16
        assert all(line.rstrip().endswith("PERMANENT") for line in known), known
