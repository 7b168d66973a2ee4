"""The whole road on a real kernel: plan, apply, verify, rollback, rollback script, for each profile.

Judged by ``ip``, ``sysctl``, ``systemctl`` and pytest-testinfra, never by our own readers.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from .guest import Machine
from .road import AT_ONCE, advisor, document, out, state
from .state import changed

if TYPE_CHECKING:
    from testinfra.host import Host

PROFILES = {
    "jumbo-frames": ["--set", "links=eth0,eth1"],
    "socket-buffers-8m": [],
    "llt-highwater-doubled": [],
    "numa-pinning": ["--set", "units=demo-storage=md0"],
}


def judge(lab: Host, guest: Machine, profile: str) -> None:
    """Whether the profile is in force, by other eyes than ours."""
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


# All four go in and out together with the script; one by one they take minutes.
ONE_BY_ONE = [pytest.param(name, marks=[] if name == "jumbo-frames" else [pytest.mark.thorough]) for name in PROFILES]


@pytest.mark.parametrize("profile", ONE_BY_ONE)
def test_a_profile_goes_in_and_out_without_a_trace(storage: Machine, lab: Host, profile: str) -> None:
    before = state(storage)
    planned = document(storage, "plan", profile, *PROFILES[profile])
    assert planned["changes"]
    applied = document(storage, "apply", profile, *PROFILES[profile], *AT_ONCE)
    assert (applied["schema"], applied["state"]) == ("advisor.transaction/1", "applied")
    judge(lab, storage, profile)
    advisor(storage, "verify")
    again = document(storage, "apply", profile, *PROFILES[profile], *AT_ONCE)
    assert (again["state"], again["changes"]) == ("unchanged", [])
    advisor(storage, "rollback")
    assert state(storage) == before
    advisor(storage, "verify")


@pytest.mark.parametrize("shell", [pytest.param("dash", marks=pytest.mark.thorough), "busybox sh"])
def test_the_script_puts_all_four_back_with_nothing_installed(storage: Machine, lab: Host, shell: str) -> None:
    before = state(storage)
    advisor(storage, "apply", *PROFILES, *(word for options in PROFILES.values() for word in options), *AT_ONCE)
    for profile in PROFILES:
        judge(lab, storage, profile)
    directory = sorted(out(storage, "ls -d /var/lib/advisor/transactions/*").split())[-1]
    # No Python on the way: the script has to do with the base system.
    done = storage.run(f"PATH=/usr/sbin:/usr/bin:/sbin:/bin {shell} {directory}/rollback.sh", timeout=60)
    assert done.rc == 0, done.stdout + done.stderr
    assert state(storage) == before
    # It leaves a note of that, which advisor knows.
    (last,) = document(storage, "status")["transactions"][-1:]
    assert (last["state"], last["why_undone"]) == ("rolled-back", "rolled back by its rollback script")
    advisor(storage, "verify")
    advisor(storage, "rollback", "--all", code=3)
    assert state(storage) == before


def test_what_is_applied_outlasts_a_reboot_and_then_goes(storage: Machine, lab: Host) -> None:
    before = state(storage)
    lasting = ("jumbo-frames", "socket-buffers-8m", "llt-highwater-doubled")
    advisor(storage, "apply", *lasting, *PROFILES["jumbo-frames"], *AT_ONCE)
    storage.reboot()
    for profile in lasting:
        judge(lab, storage, profile)
    advisor(storage, "verify")
    advisor(storage, "rollback", "--all")
    assert changed(before, state(storage)) == []


@pytest.mark.thorough  # clients are killed at every step on trees and in namespaces, and in the crash matrix
def test_a_client_that_is_killed_half_way_is_put_back_by_the_next_run(storage: Machine) -> None:
    before = state(storage)
    # The stand-in is slow for once, so that the kill comes between two steps.
    storage.run("mv /sbin/lltconfig /sbin/lltconfig.real", timeout=30).check()
    storage.put(
        "/sbin/lltconfig", '#!/bin/sh\ncase $2 in rport*) sleep 600;; esac\nexec /sbin/lltconfig.real "$@"\n', 0o755
    )
    storage.run("setsid advisor apply llt-highwater-doubled --yes >/dev/null 2>&1 & sleep 1", timeout=30)
    out(
        storage,
        "for i in $(seq 100); do lltconfig -F query | grep -q ' highwater = 2000' && exit; sleep 0.3; done; exit 1",
    )
    out(storage, "pkill -KILL -f 'm advisor appl[y]'; pkill -f 'sleep 60[0]'; mv /sbin/lltconfig.real /sbin/lltconfig")
    advisor(storage, "rollback")
    assert state(storage) == before
    (last,) = document(storage, "status")["transactions"][-1:]
    assert (last["state"], last["unfinished"]) == ("rolled-back", False)
