"""Links of a real kernel, built in a network namespace of their own, against what ip and sysfs say without us.

Needs root (unshare, mount); nothing outside the namespace is touched.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.cases import read_cases

ROOT = Path(__file__).parents[2]

DATA = read_cases(__file__)

BUILD = DATA["BUILD"]

READER = """
import sys
sys.path.insert(0, sys.argv[1])
import msgspec
from advisor.facts.network.links import read_links
from advisor.facts.unknown import Unknowns
from advisor.host import Host, LiveCommands, live_host
host = live_host()
if sys.argv[2] == "without ip":
    host = Host(host.files, LiveCommands(path="/nonexistent"), is_live=True, is_root=True)
unknown = Unknowns()
links = read_links(host, unknown)
sys.stdout.buffer.write(msgspec.json.encode({"links": links, "unknown": unknown.listed()}))
"""

# Attributes as sysfs has them, one shell read each: nothing of advisor.
JUDGE = DATA["JUDGE"]


def in_namespace(script: str) -> bytes:
    """Standard output of a shell script in a new network and mount namespace with its own /sys."""
    if os.geteuid() != 0:
        pytest.skip("making a network namespace needs root")
    argv = ["unshare", "--net", "--mount", "sh", "-c", f"mount -t sysfs sysfs /sys || exit 99\n{script}"]
    done = subprocess.run(argv, capture_output=True, check=False, timeout=120)
    if done.returncode == 99 or b"unshare failed" in done.stderr or b"Unknown device type" in done.stderr:
        pytest.skip(f"this kernel cannot build the links: {done.stderr.decode(errors='replace').strip()}")
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def _load_answer(ip: bytes) -> Any:
    """ip's own JSON; Ubuntu's prints a word of its own among the details of a vxlan."""
    return json.loads(ip.decode(errors="replace").replace("fan-map ", ""), strict=False)


@cache
def everything() -> tuple[Any, Any, dict[str, dict[str, Any]], list[Any]]:
    """Our links with ip and without, sysfs as the shell reads it, and ip's own answer, all of one namespace."""
    read = f"{sys.executable} -c '{READER}' {ROOT}"
    out = in_namespace(
        f"{BUILD}\n{read} 'with ip'\nprintf '\\034'\n{read} 'without ip'\nprintf '\\034'\n{JUDGE}\n"
        "printf '\\034'\nip -j -d addr show"
    )
    with_ip, without_ip, sysfs, ip = out.split(b"\x1c")
    judged: dict[str, dict[str, Any]] = {}
    for record in sysfs.decode(errors="replace").split("\x1d")[:-1]:
        name, attribute, value = record.split("\x1e")
        link = judged.setdefault(name, {"stack": set()})
        if attribute == "stack":
            link["stack"].add(value)
        else:
            link[attribute] = value
    return json.loads(with_ip), json.loads(without_ip), judged, _load_answer(ip)


def links(answer: Any) -> dict[str, dict[str, Any]]:
    return {link["name"]: link for link in answer["links"]}


def text(value: object) -> str:
    return "" if value is None else str(int(value)) if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("way", [0, 1], ids=["with ip", "without ip"])
def test_attributes_are_those_of_sysfs(way: int) -> None:
    ours, judged = links(everything()[way]), everything()[2]
    assert ours.keys() == judged.keys()
    for name, link in ours.items():
        truth = judged[name]
        assert text(link["mtu"]) == truth["mtu"], name
        assert text(link["ifindex"]) == truth["ifindex"], name
        assert text(link["state"]) == truth["operstate"], name
        assert text(link["carrier"]) == truth["carrier"], name
        assert text(link["txqueuelen"]) == truth["tx_queue_len"], name
        assert text(link["mac"]) == truth["address"], name
        # The kernel says -1 for an unknown speed, and reports of none while there is no carrier.
        speed = truth["speed"] if truth["carrier"] == "1" and truth["operstate"] != "down" else ""
        assert text(link["speed_mbps"]) == speed.replace("-1", ""), name
        stack = {f"lower_{one}" for one in link["lower"]} | {f"upper_{one}" for one in link["upper"]}
        assert stack == truth["stack"], name


def test_kinds_ranges_and_addresses_are_those_of_ip() -> None:
    ours = links(everything()[0])
    for entry in everything()[3]:
        link, info = ours[entry["ifname"]], entry.get("linkinfo", {})
        kind = info.get("info_data", {}).get("type") or info.get("info_kind") or entry["link_type"]
        assert link["kind"] == kind, entry["ifname"]
        assert (link["mtu_min"] or 0, link["mtu_max"] or 0) == (entry["min_mtu"], entry["max_mtu"])
        addresses = [f"{one['local']}/{one['prefixlen']}" for one in entry["addr_info"]]
        assert sorted(link["addresses"]) == sorted(addresses)


def test_details() -> None:
    ours = links(everything()[0])
    assert ours["va"]["detail"] == {"peer": "vb"}
    assert ours["mv"]["detail"] == {"mode": "bridge"}
    assert ours["mt"]["detail"] == {"mode": "vepa"}
    assert {"id": "42", "port": "4789", "local": "10.0.0.1"}.items() <= ours["vx0"]["detail"].items()
    assert ours["pa"]["detail"]["port_state"] == "forwarding"
    assert ours["ta0"]["detail"]["multi_queue"] == "on"
    assert (ours["vx0"]["lower"], ours["br0"]["lower"]) == (["va"], ["pa"])
    assert ours["va"]["addresses"][:2] == ["10.0.0.1/24", "fd00::1/64"]
    assert [name for name, link in ours.items() if link["default_route"]] == ["va"]
    assert ours["va"]["driver"] == "veth"
    assert ours["va"]["channels"]["combined_max"] == 0
    assert ours["va"]["features"]["tx-generic-segmentation"] is True
    assert {link["numa_node"] for link in ours.values()} == {None}


def test_nothing_is_unknown_of_virtual_links() -> None:
    assert everything()[0]["unknown"] == []


def test_without_ip_the_kinds_are_the_same() -> None:
    with_ip, without_ip = links(everything()[0]), links(everything()[1])
    assert {name: link["kind"] for name, link in without_ip.items()} == {
        name: link["kind"] for name, link in with_ip.items()
    }
    noted = {one["fact"] for one in everything()[1]["unknown"]}
    assert {"links.mtu_min", "links.mtu_max"} <= noted


def test_without_ip_addresses_are_those_of_ip_or_noted() -> None:
    with_ip, answer = links(everything()[0]), everything()[1]
    homeless = " ".join(one["why"] for one in answer["unknown"] if one["fact"] == "links.addresses")
    for name, link in links(answer).items():
        assert set(link["addresses"]) <= set(with_ip[name]["addresses"])
        for lost in set(with_ip[name]["addresses"]) - set(link["addresses"]):
            assert lost.partition("/")[0] in homeless


def test_drivers_answer_as_ethtool_prints() -> None:
    from advisor.facts.network.ethtool_text import kernel_feature_names, parse_ethtool_channels, parse_ethtool_features

    script = f"{BUILD}\n{sys.executable} -c '{READER}' {ROOT} 'with ip'\nprintf '\\034'\nethtool -k va\n"
    ours, features, channels = in_namespace(f"{script}\nprintf '\\034'\nethtool -l va").split(b"\x1c")
    link = links(json.loads(ours))["va"]
    printed = parse_ethtool_features(features.decode())
    assert isinstance(printed, dict)
    assert link["features"] == kernel_feature_names(printed)
    counts = parse_ethtool_channels(channels.decode())
    assert isinstance(counts, dict)
    assert link["channels"] == counts


def test_sysfs_of_the_outer_namespace_is_told_from_ours() -> None:
    """`unshare -n` alone leaves the outer /sys in place."""
    if os.geteuid() != 0:
        pytest.skip("making a network namespace needs root")
    script = f"ip link add va type veth peer name vb; {sys.executable} -c '{READER}' {ROOT} 'with ip'"
    done = subprocess.run(["unshare", "--net", "sh", "-c", script], capture_output=True, check=True, timeout=60)
    answer = json.loads(done.stdout)
    assert links(answer).keys() == {"lo", "va", "vb"}
    assert links(answer)["va"]["kind"] == "veth"
