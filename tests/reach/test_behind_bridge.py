"""A port of a bridge is changed: the hosts behind the bridge are asked, in network namespaces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.reach.space import Spaces

ROOT = Path(__file__).parents[2]
ALONE = "mount -t tmpfs tmpfs /run && exec "


def bridged(spaces: Spaces) -> None:
    """br0 over st0, with a peer at 9000 that was spoken to."""
    spaces.add("here", "there")
    spaces.wire(("here", "st0"), ("there", "peer0"), mtu=9000)
    spaces.run("here", "ip link add br0 type bridge")
    # An MTU that was set by hand no longer follows that of the ports.
    spaces.run("here", "ip link set br0 mtu 9000 up")
    spaces.run("here", "ip link set st0 master br0")
    spaces.address("here", "br0", "192.0.2.1/24")
    spaces.address("there", "peer0", "192.0.2.2/24")
    spaces.run("here", "ping -c 1 -W 2 192.0.2.2")


def apply(spaces: Spaces, store: Path, *words: str) -> subprocess.CompletedProcess[str]:
    call = f"{sys.executable} -m advisor apply {' '.join(words)} -y --runtime-only"
    command = ["ip", "netns", "exec", spaces.name("here"), "unshare", "-m", "sh", "-c", ALONE + call]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "ADVISOR_STATE_DIR": str(store)}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=env)


def test_a_port_s_mtu_is_not_lowered_under_peers_behind_the_bridge(spaces: Spaces, tmp_path: Path) -> None:
    bridged(spaces)
    foreseen = apply(spaces, tmp_path / "store", "link:st0:mtu=1500")
    assert (foreseen.returncode, "links.mtu-above-port" in foreseen.stderr) == (3, True)
    done = apply(spaces, tmp_path / "store", "link:st0:mtu=1500", "--force")
    assert done.returncode not in (0, 2), done.stdout + done.stderr
    assert "192.0.2.2" in done.stderr + done.stdout
    assert spaces.run("here", "cat /sys/class/net/st0/mtu").strip() == "9000"
    spaces.run("here", "ping -M do -s 8900 -c 1 -W 2 192.0.2.2")


def test_a_key_of_the_whole_host_is_for_the_host_s_namespace(spaces: Spaces) -> None:
    spaces.add("here")
    call = [sys.executable, "-m", "advisor", "plan", "net.core.rmem_max=99999999", "--json"]
    command = ["ip", "netns", "exec", spaces.name("here"), *call]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=env)
    (skipped,) = json.loads(done.stdout)["skipped"]
    assert skipped["state"] == "blocked"
    assert "network namespace" in skipped["reason"]
