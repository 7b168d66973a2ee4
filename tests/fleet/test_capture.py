"""The capture script on this machine: under every shell, as root and not, and what it leaves behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleet.captures import captured, differences, replayed, script

ROOT = Path(__file__).parents[2]
SHELLS = {"dash": ("dash",), "bash": ("bash",), "bash-posix": ("bash", "--posix"), "busybox": ("busybox", "sh")}
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces")


def shell(name: str) -> tuple[str, ...]:
    if shutil.which(SHELLS[name][0]) is None:
        pytest.skip(f"no {SHELLS[name][0]} here")
    return SHELLS[name]


@pytest.mark.repeats(2)
@pytest.mark.parametrize("name", SHELLS)
def test_the_scan_and_all_plans_of_a_capture_are_those_of_the_host_itself(name: str) -> None:
    assert differences(replayed(captured(shell(name)))) == {}


# Links of every kind that this kernel may have, and names that a shell would stumble over.
LINKS = r"""
mount -t sysfs sysfs /sys || exit 99
set -e
ip link set lo up
ip link add va type veth peer name vb
ip link set va mtu 3000
ip link add mv link va type macvlan mode bridge
ip link add vx0 type vxlan id 42 dev va dstport 4789 local 10.0.0.1
ip link add br0 type bridge
ip link add pa type veth peer name pb
ip link set pa master br0
# Where the kernel loads this kind's module by itself, that puts two links on the machine, outside of the namespace.
modprobe ifb numifbs=0 2>/dev/null || :
ip link add if0 type ifb
ip tuntap add tu0 mode tun
ip link add 'q"\$(x)' type veth peer name "a'b*"
for link in va vb pa pb br0 mv; do ip link set "$link" up; done
ip addr add 10.0.0.1/24 dev va
ip addr add fd00::1/64 dev va nodad
ip addr add 10.9.0.1 peer 10.9.0.2/32 dev tu0
ip route add default via 10.0.0.2 dev va
ip route add 10.8.0.0/16 nexthop via 10.0.0.3 dev va nexthop via 10.0.0.4 dev va
ip -6 route add default via fd00::2 dev va
echo 1 > /sys/class/net/va/queues/rx-0/rps_cpus
until grep -qx up /sys/class/net/br0/operstate; do sleep 0.05; done
sleep 0.5
exec "$@"
"""


@needs_root
def test_links_of_all_kinds_are_captured_as_they_are() -> None:
    inside = [sys.executable, "-m", "tests.fleet.captures"]
    argv = ["unshare", "--net", "--mount", "sh", "-c", LINKS, "sh", *inside]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode == 99 or "unshare failed" in done.stderr or "Unknown device type" in done.stderr:
        pytest.skip(f"this kernel cannot build the links: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout)
    assert reported["differences"] == {}
    assert {"va", "br0", "vx0", "if0", "tu0", 'q"\\$(x)', "a'b*"} <= set(reported["links"])


def test_shellcheck_finds_nothing(tmp_path: Path) -> None:
    file = tmp_path / "capture.sh"
    file.write_text(script())
    done = subprocess.run(
        [Path(sys.executable).parent / "shellcheck", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_command_prints_the_script_and_scans_what_it_printed(tmp_path: Path) -> None:
    advisor = [sys.executable, "-m", "advisor"]
    file, stream = tmp_path / "capture.sh", tmp_path / "host.capture"
    assert (
        subprocess.run([*advisor, "snapshot", "--script"], capture_output=True, check=True).stdout == script().encode()
    )
    subprocess.run([*advisor, "snapshot", "--script", "-o", file], capture_output=True, check=True)
    with stream.open("wb") as output:
        subprocess.run(["sh", file], stdout=output, check=True)
    done = subprocess.run([*advisor, "scan", "--json", "--snapshot", stream], capture_output=True, check=True)
    assert json.loads(done.stdout)["schema"] == "advisor.scan/1"
    stream.write_bytes(stream.read_bytes()[:-30])
    refused = subprocess.run([*advisor, "scan", "--json", "--snapshot", stream], capture_output=True, check=False)
    assert refused.returncode == 2
    assert "truncated" in json.loads(refused.stdout)["error"]["message"]
    for words in (["--script", "--root", "/"], []):
        assert subprocess.run([*advisor, "snapshot", *words], capture_output=True, check=False).returncode == 2
