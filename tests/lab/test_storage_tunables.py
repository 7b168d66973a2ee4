"""Block devices, md arrays, huge pages, paired sysctls, LLT timers, units and products' files on a real kernel.

Judged by sysfs, ``sysctl``, ``udevadm``, ``systemctl``, ``/proc`` and the products' own readers (``iscsiadm``,
``multipath``), never by our own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cases import cases

from .guest import Machine
from .road import advisor, document, goes_in_and_out, out, profile, script_puts_back

CASES = cases(__file__)

pytestmark = pytest.mark.thorough

# A RAID 5 over the drives of node 0, a logical volume on one of node 1, each with what distinguishes it from others.
SETUP = CASES["SETUP"]
TEAR_DOWN = CASES["TEAR_DOWN"]

# What "as before" means; devices by what does not change with a boot.
STATE = CASES["STATE"]

LINES = CASES["LINES"]


@pytest.fixture(scope="module")
def storage(guest: Machine) -> Iterator[Machine]:
    guest.run(SETUP, timeout=240).check()
    lines = LINES
    if guest.run("command -v multipath").rc == 0:
        guest.put("/etc/multipath.conf", '# site\ndefaults {\n\tpath_selector "round-robin 0" # old\n}\n')
        lines += (("file:/etc/multipath.conf:defaults/path_selector", "service-time 0", ""),)
    guest.put("/etc/advisor/profiles/storage-lab.toml", profile("storage-lab", lines))
    yield guest
    guest.run(f"rm -f /etc/multipath.conf\n{TEAR_DOWN}", timeout=240)


def state(guest: Machine) -> list[str]:
    return guest.run(STATE, timeout=120).stdout.splitlines()


def live(guest: Machine) -> dict[str, str]:
    """Attribute and value of everything that is set at once; devices by what does not change with a boot."""
    return dict(line.rsplit(" ", 1) for line in out(guest, LIVE).splitlines())


LIVE = CASES["LIVE"]

SERIALS = [f"LAB-N{node}-{index}" for node in (0, 1) for index in range(3)]
IN_FORCE: dict[str, str] = CASES["IN_FORCE"] | {
    f"{serial} {name}": value for serial in SERIALS for name, value in CASES["DISK_IN_FORCE"].items()
}


def judge(guest: Machine) -> None:
    """Whether everything is active, by other eyes than ours."""
    assert live(guest).items() >= IN_FORCE.items()


def judge_services(guest: Machine) -> None:
    """What services and products make of their files."""
    out(guest, "systemctl restart demo-storage.service")
    pid = out(guest, "systemctl show -P MainPID demo-storage.service").strip()
    limits = out(guest, f"grep 'Max open files' /proc/{pid}/limits").split()
    assert limits[3:5] == ["262144", "262144"]
    assert "Cpus_allowed_list:\t1-2\n" in out(guest, f"cat /proc/{pid}/status")
    assert out(guest, f"cat /proc/{pid}/oom_score_adj") == "-500\n"
    assert out(guest, "systemctl show -P IOWeight demo-storage.service") == "200\n"
    # A node record takes its settings from iscsid.conf when it is made, where iscsid runs: if it does not yet, iscsiadm
    # 2.1.8 asks it in vain and takes its built-in defaults. No target is contacted.
    out(guest, "systemctl start iscsid.service")
    target = "-T iqn.2024-01.lab:x -p 127.0.0.1"
    record = out(guest, f"iscsiadm -m node -o new {target} >/dev/null && iscsiadm -m node {target}")
    out(guest, f"iscsiadm -m node -o delete {target}; rm -rf /etc/iscsi/nodes /etc/iscsi/send_targets")
    assert "node.session.queue_depth = 64\n" in record
    if guest.run("command -v multipath").rc == 0:
        assert 'path_selector "service-time 0"' in out(guest, "multipath -t")


def judge_all(guest: Machine) -> None:
    judge(guest)
    judge_services(guest)


def test_every_kind_goes_in_and_out_without_a_trace(storage: Machine) -> None:
    planned = document(storage, "plan", "storage-lab")
    assert {one["tunable"].split(":")[0] for one in planned["changes"]} == {
        *("block", "md", "thp", "sysctl", "llt", "unit", "file")
    }
    goes_in_and_out(storage, "storage-lab", lambda: judge_all(storage), lambda: state(storage))


@pytest.mark.parametrize("shell", ["dash", "busybox sh"])
def test_the_script_puts_every_kind_back(storage: Machine, shell: str) -> None:
    script_puts_back(storage, "storage-lab", shell, lambda: judge(storage), lambda: state(storage))


def test_udev_and_tmpfiles_bring_it_back_and_so_does_a_reboot(storage: Machine) -> None:
    before = state(storage)
    advisor(storage, "apply", "storage-lab", "--yes")
    rules = out(storage, "cat /etc/udev/rules.d/90-advisor-block.rules")
    assert 'KERNEL=="nvme' not in rules
    # As a drive that is plugged in and an array that starts would have it.
    out(
        storage,
        "for q in /sys/block/nvme*/queue; do echo none >$q/scheduler; echo 512 >$q/max_sectors_kb; done;"
        "cd /sys/block/md5/md; echo 1 >preread_bypass_threshold; echo 256 >stripe_cache_size;"
        "echo system >sync_speed_min; echo 0 >skip_copy; echo 128 >/sys/block/dm-0/queue/read_ahead_kb;"
        "cd /sys/kernel/mm/transparent_hugepage; echo always >enabled; echo 1 >khugepaged/pages_to_scan;"
        "udevadm trigger --action=change --subsystem-match=block; udevadm settle;"
        "systemd-tmpfiles --create --prefix=/sys/kernel/mm",
    )
    judge(storage)
    log = out(storage, "udevadm test --action=change /sys/block/md5 2>&1")
    assert "90-advisor-block.rules" in log
    assert not [line for line in log.splitlines() if "advisor" in line and ("nvalid" in line or "ailed" in line)]
    storage.reboot()
    out(storage, "udevadm settle")
    judge_all(storage)
    # Whatever names the drives have now.
    advisor(storage, "verify")
    advisor(storage, "rollback", "--all")
    assert sorted({*before} ^ {*state(storage)}) == []


TIED = (
    ("sysctl:vm.dirty_ratio", "15", ""),
    ("block:nvme0n1:scheduler", "mq-deadline", ""),
    ("md:md5:sync_speed_min", "system", ""),
)


def test_what_the_kernel_ties_together_comes_back_as_it_was(storage: Machine) -> None:
    """Bytes against ratio the other way round, a queue length set by hand, a limit of the array's own."""
    first = state(storage)
    out(
        storage,
        "sysctl -q vm.dirty_bytes=134217728; echo 33 >/sys/block/nvme0n1/queue/nr_requests;"
        "echo 1234 >/sys/block/md5/md/sync_speed_min",
    )
    storage.put("/etc/advisor/profiles/tied.toml", profile("tied", TIED))
    before = state(storage)
    for undo in ("dash $(ls -d /var/lib/advisor/transactions/* | tail -n 1)/rollback.sh", "true"):
        advisor(storage, "apply", "tied", "--yes")
        assert out(storage, "sysctl -n vm.dirty_bytes vm.dirty_ratio") == "0\n15\n"
        assert "(system)" in out(storage, "cat /sys/block/md5/md/sync_speed_min")
        assert out(storage, "cat /sys/block/nvme0n1/queue/nr_requests") != "33\n"
        out(storage, undo)
        assert (state(storage) == before) == undo.startswith("dash")
        advisor(storage, "rollback", "--all", code=3 if undo.startswith("dash") else 0)
        assert state(storage) == before
    out(
        storage,
        "rm /etc/advisor/profiles/tied.toml; sysctl -q vm.dirty_ratio=20;"
        "echo 1023 >/sys/block/nvme0n1/queue/nr_requests; echo system >/sys/block/md5/md/sync_speed_min",
    )
    assert state(storage) == first


def test_a_scheduler_in_a_module_and_a_value_that_the_kernel_refuses(storage: Machine) -> None:
    path = "/etc/advisor/profiles/module.toml"
    storage.put(path, profile("module", (("block:nvme0n1:scheduler", "bfq", ""),)))
    advisor(storage, "apply", "module", "--yes")
    assert "[bfq]" in out(storage, "cat /sys/block/nvme0n1/queue/scheduler")
    advisor(storage, "rollback")
    assert "[none]" in out(storage, "cat /sys/block/nvme0n1/queue/scheduler")
    # Without a scheduler the queue is no longer than the drive's own: the kernel refuses, and all goes back.
    storage.put(path, profile("module", (("block:nvme0n1:nr_requests", "2000", ""), ("thp:enabled", "never", ""))))
    before = state(storage)
    done = advisor(storage, "apply", "module", "--yes", code=4)
    assert "nr_requests" in done.stderr
    assert state(storage) == before
    out(storage, f"rm {path}")
