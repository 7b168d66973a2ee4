"""A port of a bridge is changed: the hosts behind the bridge are asked, in network namespaces."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.reach.space import Spaces, advisor

LOWERED = ("apply", "link:st0:mtu=1500", "-y", "--runtime-only")


def bridged(spaces: Spaces) -> None:
    """br0 over st0, with a peer at 9000 that nobody has spoken to."""
    spaces.add("here", "there")
    spaces.wire(("here", "st0"), ("there", "peer0"), mtu=9000)
    spaces.run("here", "ip link add br0 type bridge")
    # An MTU that was set by hand no longer follows that of the ports.
    spaces.run("here", "ip link set br0 mtu 9000 up")
    spaces.run("here", "ip link set st0 master br0")
    spaces.address("here", "br0", "192.0.2.1/24")
    spaces.address("there", "peer0", "192.0.2.2/24")


def test_a_port_s_mtu_is_not_lowered_under_peers_behind_the_bridge(spaces: Spaces, tmp_path: Path) -> None:
    bridged(spaces)
    spaces.run("here", "ping -c 1 -W 2 192.0.2.2")
    foreseen = advisor(spaces, "here", tmp_path, *LOWERED)
    assert (foreseen.returncode, "links.mtu-above-port" in foreseen.stderr) == (3, True)
    done = advisor(spaces, "here", tmp_path, *LOWERED, "--force")
    assert done.returncode not in (0, 2), done.stdout + done.stderr
    assert "192.0.2.2" in done.stderr + done.stdout
    assert spaces.run("here", "cat /sys/class/net/st0/mtu").strip() == "9000"
    spaces.run("here", "ping -M do -s 8900 -c 1 -W 2 192.0.2.2")


def test_a_key_of_the_whole_host_is_for_the_host_s_namespace(spaces: Spaces, tmp_path: Path) -> None:
    spaces.add("here")
    done = advisor(spaces, "here", tmp_path, "plan", "net.core.rmem_max=99999999", "--json")
    (skipped,) = json.loads(done.stdout)["skipped"]
    assert skipped["state"] == "blocked"
    assert "network namespace" in skipped["reason"]
    done = advisor(spaces, "here", tmp_path, "plan", "net.core.netdev_max_backlog=99999")
    assert (done.returncode, "network namespace" in done.stderr) == (2, True), done.stderr


def test_where_nobody_was_spoken_to_all_are_asked_once(spaces: Spaces, tmp_path: Path) -> None:
    bridged(spaces)
    done = advisor(spaces, "here", tmp_path, *LOWERED, "--force")
    assert done.returncode not in (0, 2), done.stdout + done.stderr
    assert re.search(r"fe80:\S+%br0 answers 104 bytes, but not 9000", done.stderr), done.stderr


def test_confirm_says_that_no_peer_was_asked(spaces: Spaces, tmp_path: Path) -> None:
    bridged(spaces)
    for version, key in (("4", "echo_ignore_all"), ("6", "icmp/echo_ignore_all")):
        spaces.set("there", f"net/ipv{version}/{'icmp_' if version == '4' else ''}{key}", "1")
    done = advisor(spaces, "here", tmp_path, "apply", "link:br0:mtu=8000", "-y", "--runtime-only", "--force")
    assert (done.returncode, "--peer" in done.stderr) == (0, True), done.stderr
    confirmed = advisor(spaces, "here", tmp_path, "confirm", "--json")
    assert json.loads(confirmed.stdout)["peers"] == 0, confirmed.stderr
