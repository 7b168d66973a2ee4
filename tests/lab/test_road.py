"""The whole road on a real kernel: scan, plan, apply, verify, rollback, rollback script, for each profile.

Judged by ``ip``, ``sysctl``, ``systemctl`` and pytest-testinfra, never by our own readers.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cases import cases

from .road import AT_ONCE, advisor, document, out, state
from .state import changed

CASES = cases(__file__)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from testinfra.host import Host

    from .guest import Machine

PROFILES = CASES["PROFILES"]


def judge(lab: Host, guest: Machine, profile: str) -> None:
    """Whether the profile is active, by other eyes than ours."""
    if profile == "jumbo-frames":
        mtus = {link["ifname"]: link["mtu"] for link in json.loads(out(guest, "ip -j link"))}
        assert (mtus["eth0"], mtus["eth1"], mtus["eth2"]) == (9000, 9000, 1500)
        assert lab.file("/etc/systemd/network/10-advisor-eth0.link").contains("MTUBytes=9000")
    elif profile == "socket-buffers-8m":
        assert lab.sysctl("net.core.rmem_max") == 8388608
        assert lab.sysctl("net.core.wmem_default") == 8388608
        assert lab.sysctl("net.ipv4.tcp_rmem").split() == ["4096", "131072", "8388608"]
        assert lab.file("/etc/sysctl.d/90-advisor-socket-buffers-8m.conf").mode == 0o644
        out(guest, "sysctl -p /etc/sysctl.d/90-advisor-socket-buffers-8m.conf")
    elif profile == "llt-highwater-doubled":
        flow = out(guest, "lltconfig -F query")
        assert "highwater = 2000" in flow
        assert "lowwater = 800" in flow
        assert lab.file("/etc/llttab").contains("^set-flow highwater:2000$")
    else:
        shown = out(guest, "systemctl show -p NUMAPolicy -p NUMAMask -p CPUAffinity demo-storage.service")
        assert "NUMAPolicy=bind" in shown
        assert "NUMAMask=0" in shown
        assert lab.sysctl("kernel.numa_balancing") == 0
        out(guest, "systemctl restart demo-storage.service")
        pid = lab.service("demo-storage").systemd_properties["MainPID"]
        assert lab.file(f"/proc/{pid}/status").contains("^Cpus_allowed_list:.0-1$")
        assert lab.file(f"/proc/{pid}/numa_maps").contains("bind:0")


@pytest.fixture(scope="module")
def before(storage: Machine) -> list[str]:
    """The guest as the module found it. Each test or class leaves it so: one such look takes as long as two scans."""
    return state(storage)


@pytest.fixture(scope="class")
def _nothing_is_changed(storage: Machine, before: list[str]) -> Iterator[None]:
    """By any of the tests of a class."""
    yield
    assert state(storage) == before


@pytest.fixture(scope="class")
def scanned(storage: Machine) -> dict[str, Any]:
    """What root's scan says."""
    return document(storage, "scan")


@pytest.mark.usefixtures("_nothing_is_changed")
class TestBeforeAnythingIsChanged:
    """What a scan says, judged by ``ip``, ``numactl``, ``mdadm`` and ``lsblk``, and what is refused."""

    def test_scan_agrees_with_ip_about_links(self, storage: Machine, scanned: dict[str, Any]) -> None:
        ours = {link["name"]: link for link in scanned["links"]}
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
        nodes = out(storage, "for at in 0 1 2; do cat /sys/class/net/eth$at/device/numa_node || echo -1; done").split()
        assert [ours[f"eth{at}"]["numa_node"] for at in range(3)] == [
            int(node) if node != "-1" else None for node in nodes
        ]

    def test_scan_agrees_with_numactl_mdadm_and_lsblk(self, storage: Machine, scanned: dict[str, Any]) -> None:
        found = scanned
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

    def test_an_ordinary_user_scans_and_plans_and_changes_nothing(
        self, storage: Machine, scanned: dict[str, Any]
    ) -> None:
        plain = document(storage, "scan", user="plain")
        assert [link["name"] for link in plain["links"]] == [link["name"] for link in scanned["links"]]
        for one in plain["unknown"]:
            assert one["fact"]
            assert one["why"]
        document(storage, "plan", "socket-buffers-8m", user="plain")
        refused = document(storage, "apply", "socket-buffers-8m", code=6, user="plain")
        assert refused["error"]["code"] == 6

    def test_a_full_disk_refuses_or_puts_back(self, storage: Machine) -> None:
        out(storage, "mkdir -p /tmp/full && mount -t tmpfs -o size=16k,mode=700 tmpfs /tmp/full")
        storage.run("head -c 14k /dev/zero > /tmp/full/x", timeout=30)
        done = storage.run("ADVISOR_STATE_DIR=/tmp/full/state advisor apply socket-buffers-8m --yes", timeout=60)
        assert done.rc in (3, 4), done.stdout + done.stderr
        assert "space" in done.stderr.lower()
        out(storage, "umount /tmp/full && rmdir /tmp/full")

    def test_a_read_only_etc_is_refused_before_anything_is_touched(self, storage: Machine) -> None:
        script = "mount --bind /etc /etc && mount -o remount,bind,ro /etc && advisor apply socket-buffers-8m --yes"
        done = storage.run(["unshare", "-m", "sh", "-c", script], timeout=60)
        assert done.rc == 3, done.stdout + done.stderr
        assert "/etc/sysctl.d" in done.stderr


@pytest.mark.parametrize("shell", [pytest.param("dash", marks=pytest.mark.thorough), "busybox sh"])
def test_the_script_puts_all_four_back_with_nothing_installed(
    storage: Machine, lab: Host, before: list[str], shell: str
) -> None:
    words = ("apply", *PROFILES, *(word for options in PROFILES.values() for word in options), *AT_ONCE)
    applied = document(storage, *words)
    assert (applied["schema"], applied["state"]) == ("advisor.transaction/1", "applied")
    for profile in PROFILES:
        judge(lab, storage, profile)
    directory = sorted(out(storage, "ls -d /var/lib/advisor/transactions/*").split())[-1]
    # No Python on the way: the script has to do with the base system.
    done = storage.run(f"PATH=/usr/sbin:/usr/bin:/sbin:/bin {shell} {directory}/rollback.sh", timeout=60)
    assert done.rc == 0, done.stdout + done.stderr
    # It leaves a note of that, which advisor knows.
    (last,) = document(storage, "status")["transactions"][-1:]
    assert (last["state"], last["why_undone"]) == ("rolled-back", "rolled back by its rollback script")
    advisor(storage, "rollback", "--all", code=3)
    assert state(storage) == before


def test_what_is_applied_outlasts_a_reboot_and_then_goes(storage: Machine, lab: Host, before: list[str]) -> None:
    lasting = ("jumbo-frames", "socket-buffers-8m", "llt-highwater-doubled")
    advisor(storage, "apply", *lasting, *PROFILES["jumbo-frames"], *AT_ONCE)
    storage.reboot()
    for profile in lasting:
        judge(lab, storage, profile)
    advisor(storage, "verify")
    advisor(storage, "rollback", "--all")
    assert changed(before, state(storage)) == []
