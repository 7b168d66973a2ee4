"""The road's first half on a real kernel: what a scan says, and what is refused before anything is changed.

Judged by ``ip``, ``numactl``, ``mdadm`` and ``lsblk``, never by our own readers.
"""

from __future__ import annotations

import json

import pytest

from .guest import Machine
from .road import advisor, document, out, state


def test_scan_agrees_with_ip_about_links(storage: Machine) -> None:
    ours = {link["name"]: link for link in document(storage, "scan")["links"]}
    theirs = {link["ifname"]: link for link in json.loads(out(storage, "ip -j -d addr show"))}
    assert ours.keys() == theirs.keys()
    for name, link in theirs.items():
        assert ours[name]["mtu"] == link["mtu"]
        assert ours[name]["mtu_max"] == (link["max_mtu"] or None)
        assert {address.split("/")[0] for address in ours[name]["addresses"]} == {
            one["local"] for one in link["addr_info"]
        }
    routes = json.loads(out(storage, "ip -j route show default"))
    assert {name for name, link in ours.items() if link["default_route"]} == {route["dev"] for route in routes}
    for name in ("eth0", "eth1", "eth2"):
        node = int(out(storage, f"cat /sys/class/net/{name}/device/numa_node || echo -1") or -1)
        assert ours[name]["numa_node"] == (None if node < 0 else node)


def test_scan_agrees_with_numactl_mdadm_and_lsblk(storage: Machine) -> None:
    found = document(storage, "scan")
    hardware = out(storage, "numactl -H")
    for node in found["numa"]["nodes"]:
        cpus = hardware.split(f"node {node['id']} cpus:")[1].splitlines()[0].split()
        assert node["cpus"] == f"{cpus[0]}-{cpus[-1]}"
    disks = {disk["name"]: disk for disk in found["disks"]}
    for disk in json.loads(out(storage, "lsblk -J -b -d -o NAME,SIZE,ROTA,SCHED,TYPE"))["blockdevices"]:
        if disk["type"] == "disk":
            assert disks[disk["name"]]["size_bytes"] == disk["size"]
            assert disks[disk["name"]]["rotational"] == disk["rota"]
            assert disks[disk["name"]]["scheduler"] == disk["sched"]
    arrays = {array["name"]: array for array in found["arrays"]}
    for name in ("md0", "md1", "md2"):
        lines = out(storage, f"mdadm --detail --export /dev/{name}").splitlines()
        detail = dict(line.split("=", 1) for line in lines)
        assert arrays[name]["level"] == detail["MD_LEVEL"]
        members = {value.removeprefix("/dev/") for key, value in detail.items() if key.endswith("_DEV")}
        assert set(arrays[name]["members"]) == members
    assert (arrays["md0"]["numa_nodes"], arrays["md1"]["numa_nodes"]) == ([0], [0, 1])
    assert arrays["md2"]["state"] == "degraded"


def test_scan_finds_what_is_wrong_with_this_host(storage: Machine) -> None:
    findings = {finding["id"]: finding for finding in document(storage, "scan")["findings"]}
    for finding in findings.values():
        assert all(finding[key] for key in ("title", "why", "hurts_when", "sources"))
    assert any("degraded" in identity for identity in findings), sorted(findings)
    assert any("span" in identity for identity in findings), sorted(findings)


def test_an_ordinary_user_scans_and_plans_and_changes_nothing(storage: Machine) -> None:
    before = state(storage)
    root, plain = document(storage, "scan"), document(storage, "scan", user="plain")
    assert [link["name"] for link in plain["links"]] == [link["name"] for link in root["links"]]
    for one in plain["unknown"]:
        assert one["fact"]
        assert one["why"]
    document(storage, "plan", "socket-buffers-8m", user="plain")
    refused = document(storage, "apply", "socket-buffers-8m", code=6, user="plain")
    assert refused["error"]["code"] == 6
    assert state(storage) == before


@pytest.mark.thorough  # the same refusals are tested on trees
def test_refusals_change_nothing_and_say_what_to_do(storage: Machine) -> None:
    before = state(storage)
    for words, code, expected in [
        (["plan", "jumbo-frames", "--set", "links=eth9"], 2, "eth9"),
        (["apply", "jumbo-frames", "--set", "links=lo", "--yes"], 3, "loopback"),
        (["apply", "jumbo-frames", "--set", "links=eth0", "--set", "mtu=9001", "--yes"], 3, "9000"),
        (["apply", "jumbo-frames", "--set", "mtu=70000", "--yes"], 2, "1280..65535"),
        (["apply", "no-such-profile", "--yes"], 2, "no profile"),
        (["rollback"], 3, "no transaction"),
        (["verify", "99"], 2, "99"),
    ]:
        done = advisor(storage, *words, code=code)
        assert expected in done.stdout + done.stderr, done.stdout + done.stderr
    assert state(storage) == before


def test_a_full_disk_refuses_or_puts_back(storage: Machine) -> None:
    before = state(storage)
    out(storage, "mkdir -p /tmp/full && mount -t tmpfs -o size=16k,mode=700 tmpfs /tmp/full")
    storage.run("head -c 14k /dev/zero > /tmp/full/x", timeout=30)
    done = storage.run("ADVISOR_STATE_DIR=/tmp/full/state advisor apply socket-buffers-8m --yes", timeout=60)
    assert done.rc in (3, 4), done.stdout + done.stderr
    assert "space" in done.stderr.lower()
    out(storage, "umount /tmp/full")
    assert state(storage) == before


def test_a_read_only_etc_is_refused_before_anything_is_touched(storage: Machine) -> None:
    before = state(storage)
    script = "mount --bind /etc /etc && mount -o remount,bind,ro /etc && advisor apply socket-buffers-8m --yes"
    done = storage.run(["unshare", "-m", "sh", "-c", script], timeout=60)
    assert done.rc == 3, done.stdout + done.stderr
    assert "/etc/sysctl.d" in done.stderr
    assert state(storage) == before
