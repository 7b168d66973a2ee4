"""Latency, scheduler, sysfs, modules, the command line and states of units on a real kernel with a real systemd.

Judged by ``/proc``, ``/sys``, ``od`` and ``systemctl``, never by our own. The guest has no driver of cpufreq: clocks
are tested on trees alone, and here for what a plan says where there are none.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cases import cases

from .guest import Machine
from .road import advisor, document, goes_in_and_out, out, profile, script_puts_back

CASES = cases(__file__)

pytestmark = pytest.mark.thorough

UNIT = CASES["UNIT"]
LINES = CASES["LINES"]

# What is there, as far as it does not count up or change by itself.
LIVE = CASES["LIVE"]
FILES = CASES["FILES"]
IN_FORCE = CASES["IN_FORCE"]


@pytest.fixture(scope="module")
def kernel(guest: Machine) -> Iterator[Machine]:
    for name in ("lab-state", "lab-idle"):
        guest.put(f"/etc/systemd/system/{name}.service", UNIT)
    out(guest, "systemctl daemon-reload; systemctl enable --quiet --now lab-state.service; modprobe nvme_core")
    guest.put("/etc/advisor/profiles/kernel-lab.toml", profile("kernel-lab", LINES))
    yield guest
    guest.run(
        "advisor rollback --all --force >/dev/null 2>&1; systemctl disable --quiet --now lab-state.service;"
        "rm -rf /etc/systemd/system/lab-*.service /var/lib/advisor /etc/advisor; systemctl daemon-reload"
    )


def live(guest: Machine) -> dict[str, str]:
    found = guest.run(LIVE, timeout=60).stdout.splitlines()
    return {name: value for name, _, value in (line.partition(" ") for line in found)}


def files(guest: Machine) -> list[str]:
    return out(guest, FILES).splitlines()


def judge(guest: Machine) -> None:
    assert live(guest).items() >= IN_FORCE.items()


def test_every_kind_goes_in_and_out_without_a_trace(kernel: Machine) -> None:
    assert not live(kernel).items() & {(name, value) for name, value in IN_FORCE.items() if name != "resume"}
    planned = document(kernel, "plan", "kernel-lab")
    left = {one["tunable"]: (one["state"], one["reason"]) for one in planned["skipped"]}
    assert left["cpufreq:*:governor"][0] == "not-applicable"
    assert "no driver of cpufreq runs" in left["cpufreq:*:governor"][1]
    state, reason = left["cmdline:lab.none"]
    assert state == "by-hand"
    assert "add lab.none=1" in reason
    goes_in_and_out(kernel, "kernel-lab", lambda: judge(kernel), lambda: (live(kernel), files(kernel)))


@pytest.mark.parametrize("shell", ["dash", "busybox sh"])
def test_the_script_puts_every_kind_back(kernel: Machine, shell: str) -> None:
    script_puts_back(kernel, "kernel-lab", shell, lambda: judge(kernel), lambda: (live(kernel), files(kernel)))


def test_a_module_in_use_is_told_and_stays(kernel: Machine) -> None:
    kernel.put("/etc/advisor/profiles/macvlan-lab.toml", profile("macvlan-lab", (("module:macvlan", "loaded", ""),)))
    assert document(kernel, "apply", "macvlan-lab", "--yes")["state"] == "applied"
    out(kernel, "ip link add link eth1 name lab-mv type macvlan")
    # The kernel does not call it in use: the link would go along with the module.
    (done,) = document(kernel, "rollback", code=5)["transactions"]
    assert done["state"] == "unfinished"
    (lost,) = [one for one in done["outcomes"] if one["by_hand"]]
    assert "in use" in lost["detail"]
    assert "lab-mv" in lost["detail"]
    assert kernel.run("ls /etc/modules-load.d/advisor-macvlan-lab.conf").rc
    # What is to be done by hand waits for the link too.
    assert kernel.run(lost["by_hand"]).rc
    out(kernel, "ip link show lab-mv; grep '^macvlan ' /proc/modules")
    out(kernel, f"ip link del lab-mv; rm /etc/advisor/profiles/macvlan-lab.toml; {lost['by_hand']}")
    assert kernel.run("grep '^macvlan ' /proc/modules").rc


def test_a_restart_brings_it_back(kernel: Machine) -> None:
    before = live(kernel), files(kernel)
    advisor(kernel, "apply", "kernel-lab", "--yes")
    kernel.reboot()
    kernel.run("systemctl is-system-running --wait", timeout=240)
    judge(kernel)
    # The unit of the next boot holds the latency, and the one of this transaction is gone with the last.
    assert out(kernel, "systemctl is-active advisor-cpu-dma-latency.service") == "active\n"
    advisor(kernel, "verify")
    assert out(kernel, "modprobe dummy; ls -d /sys/class/net/dummy* | wc -l; rmmod dummy") == "3\n"
    advisor(kernel, "rollback")
    assert (live(kernel), files(kernel)) == before


def test_a_power_cut_in_between_is_put_back_at_boot(kernel: Machine) -> None:
    before = live(kernel), files(kernel)
    # The last value is one that cannot be had, after a wait in which the power goes.
    slow = (
        "[Service]\nType=oneshot\nExecStart=/bin/sleep 90\nRemainAfterExit=yes\n[Install]\nWantedBy=multi-user.target\n"
    )
    kernel.put("/etc/systemd/system/zz-slow.service", slow)
    kernel.put(
        "/etc/advisor/profiles/slow-lab.toml",
        profile("slow-lab", (*LINES, ("unit:zz-slow.service:state", "enabled active", ""))),
    )
    out(kernel, "systemctl daemon-reload; (advisor apply slow-lab --yes >/dev/null 2>&1 &)")
    starting = 'until [ "$(systemctl is-active zz-slow)" = activating ]; do sleep 1; done; sync'
    kernel.run(starting, timeout=240).check()
    assert live(kernel)["lab-state"] == "disabled inactive"
    kernel.power_cut()
    kernel.boot()
    kernel.run("systemctl is-system-running --wait", timeout=240)
    kernel.run("rm -f /etc/systemd/system/zz-slow.service /etc/advisor/profiles/slow-lab.toml; systemctl daemon-reload")
    assert (live(kernel), files(kernel)) == before
