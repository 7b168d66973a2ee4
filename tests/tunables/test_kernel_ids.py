"""Ids and values of clocks, latency, scheduler, sysfs, modules, command line and states of units."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.errors import UsageError
from advisor.host import ReadFile, RunCommand, WriteFile
from advisor.tunables import FileEdit, Persisted, apply_edit, mentions_key, parse_tunable
from advisor.tunables.preflight import ExpandsIds
from tests.each import for_each
from tests.trees import host_of, make_tree

CPU = "/sys/devices/system/cpu"
PATHS = {
    "cpufreq:policy0:governor": f"{CPU}/cpufreq/policy0/scaling_governor",
    "cpufreq:policy12:energy_performance_preference": f"{CPU}/cpufreq/policy12/energy_performance_preference",
    "cpufreq:policy1:scaling_min_freq": f"{CPU}/cpufreq/policy1/scaling_min_freq",
    "cpufreq:boost": f"{CPU}/cpufreq/boost",
    "intel_pstate:no_turbo": f"{CPU}/intel_pstate/no_turbo",
    "sched:migration_cost_ns": "/sys/kernel/debug/sched/migration_cost_ns",
    "sched:numa_balancing/scan_size_mb": "/sys/kernel/debug/sched/numa_balancing/scan_size_mb",
    "sysfs:/sys/kernel/mm/ksm/run": "/sys/kernel/mm/ksm/run",
    "module:nvme_core:io_timeout": "/sys/module/nvme_core/parameters/io_timeout",
}


@pytest.mark.parametrize(("identity", "path"), PATHS.items())
def test_an_id_is_a_file_of_the_kernel(identity: str, path: str) -> None:
    one = parse_tunable(identity)
    assert one.id == identity
    assert isinstance(one.probe, ReadFile)
    assert one.probe.path == path
    assert one.make_steps("1") == (WriteFile(path, "1"),)


@pytest.mark.parametrize(
    "identity",
    [
        *("cpufreq:*:governor", "cpufreq:policy[0-3]:scaling_max_freq", "pm-qos:cpu_dma_latency", "sched:preempt"),
        *("sysfs:/sys/devices/system/cpu/cpu*/power/energy_perf_bias", "module:nf_conntrack", "cmdline:nosmt"),
        *("module:nvme_core:option.multipath", "cmdline:intel_idle.max_cstate", "unit:a@b.service:state"),
        *("unit:sysstat.timer:state", "unit:uuidd.socket:state"),
    ],
)
def test_other_ids(identity: str) -> None:
    assert parse_tunable(identity).id == identity


@for_each(
    "identity",
    [
        *("cpufreq:governor", "cpufreq:policy0:scaling_governor", "cpufreq:../policy0:governor", "cpufreq::governor"),
        *("cpufreq:policy01:governor", "cpufreq:policy*/x:governor", "cpufreq:all:governor", "cpufreq:Boost"),
        *("intel_pstate:status", "intel_pstate:", "pm-qos:network_latency", "sched:features", "sched:../x"),
        *("sched:sched_migration_cost_ns", "sched:autogroup_enabled"),
        *("sysfs:/proc/sys/vm/swappiness", "sysfs:/sys/../etc/passwd", "sysfs:/sys/a/./b", "sysfs:sys/a/b"),
        *("sysfs:/sys//kernel/x", "sysfs:/sys/kernel/x/", "sysfs:/sys/kernel", "sysfs:/sys/kernel/a b"),
        *("sysfs:/sys/kernel/mm/\0", "sysfs:/sys/kernel/mm/%h", "sysfs:/sys/kernel/x\n"),
        # They act, make the kernel run a program, or are no values of the kernel.
        *("sysfs:/sys/kernel/uevent_helper", "sysfs:/sys/devices/pci0/remove", "sysfs:/sys/power/state"),
        *("sysfs:/sys/bus/pci/drivers/nvme/unbind", "sysfs:/sys/block/sda/device/delete"),
        *("sysfs:/sys/class/net/eth0/flags", "sysfs:/sys/kernel/debug/x", "sysfs:/sys/fs/cgroup/cgroup.procs"),
        *("sysfs:/sys/firmware/efi/efivars/x", "sysfs:/sys/devices/system/cpu/cpu1/online"),
        *("module:", "module:a:", "module:a:b:c", "module:../a", "module:a b"),
        *("module:a:option.", "module:a:option.b.c", "module:firmware_class:path", "module:firmware-class:path"),
        *("module:drbd:usermode_helper"),
        *("module:firmware_class:option.path", "module:nfsd:option.cltrack_prog", "sysctl:fs.ocfs2.nm.hb_ctl_path"),
        *("cmdline:", "cmdline:a=b", "cmdline:-a", "cmdline:a b", "cmdline:$(id)"),
        *("cmdline:init", "cmdline:rdinit", "cmdline:root", "cmdline:systemd.run", "cmdline:rd.break"),
        *("cmdline:sysctl.kernel.core_pattern", "cmdline:sysctl.kernel.modprobe", "cmdline:nfsd.cltrack_prog"),
        *("cmdline:firmware-class.path", "cmdline:selinux", "cmdline:lockdown", "cmdline:module.sig_enforce"),
        *("cmdline:systemd.debug-shell", "cmdline:emergency", "cmdline:lsm", "cmdline:nosmep"),
        *("unit:a.mount:state", "unit:-a.service:state", "unit:a.service:State", "unit:a/b.service:state"),
    ],
)
def test_an_id_that_is_refused(identity: str) -> None:
    with pytest.raises(UsageError, match="is not a tunable") as caught:
        parse_tunable(identity)
    assert caught.value.hint


@pytest.mark.parametrize(
    "unit",
    [
        *("ssh.service", "sshd.service", "sshd@1.service", "ssh.socket", "NetworkManager.service", "dbus.service"),
        *(
            "NetworkManager-dispatcher.service",
            "systemd-networkd.service",
            "systemd-logind.service",
            "networking.service",
        ),
        *("wicked.service", "wickedd-dhcp4.service", "ifup@eth0.service", "getty@tty1.service", "user@0.service"),
        *("iscsid.service", "multipathd.service", "dhcpcd.service", "cloud-init.service", "qemu-guest-agent.service"),
        *("advisor-1.service", "vxfen.service", "polkit.service"),
    ],
)
def test_a_unit_that_this_host_hangs_on_is_refused(unit: str) -> None:
    with pytest.raises(UsageError, match="is not a tunable here"):
        parse_tunable(f"unit:{unit}:state")


@pytest.mark.parametrize("unit", ["irqbalance.service", "sshguard.service", "sysstat.service", "tuned.service"])
def test_a_unit_of_another_name_is_not(unit: str) -> None:
    assert parse_tunable(f"unit:{unit}:state").id == f"unit:{unit}:state"


@pytest.mark.parametrize(
    ("identity", "good", "bad"),
    [
        ("cpufreq:policy0:governor", ["performance"], ["", "a|b", "a b", "Performance", "1\n"]),
        ("cpufreq:policy0:scaling_min_freq", ["800000"], ["", "0", "-1", "1e6", "performance", "٣"]),
        ("cpufreq:boost", ["0", "1"], ["", "2", "on"]),
        ("intel_pstate:no_turbo", ["0", "1"], ["", "2", "100"]),
        ("intel_pstate:max_perf_pct", ["0", "7", "100"], ["", "101", "-1", "050", "5.5"]),
        ("pm-qos:cpu_dma_latency", ["0", "10", "2000000000"], ["", "-1", "2000000001", "0x10", "1 2"]),
        ("sched:migration_cost_ns", ["0", "500000"], ["", "-1", "a", "1 2"]),
        ("sched:preempt", ["full", "lazy"], ["", "1", "(full)"]),
        ("sysfs:/sys/a/b", ["0", "a b", "on"], ["", "a\nb", '"1"', "\\n", "%h", "ü", "x" * 401]),
        ("module:a", ["loaded"], ["", "1", "yes"]),
        ("module:a:b", ["1", "a,b:c"], ["", "a b", "1\n", '"x"']),
        ("module:a:option.b", ["1", "(unset)"[1:-1]], ["", "a b", "(unset)"]),
        ("cmdline:a", ["1", "(set)", "UUID=1"], ["", "a b", "(unset)", '"x"', "$(id)"]),
        (
            "unit:a.service:state",
            ["enabled active", "disabled inactive", "static active"],
            ["", "enabled", "active", "enabled failed", "enabled  active", "enabled active now"],
        ),
    ],
)
def test_values_that_can_be(identity: str, good: list[str], bad: list[str]) -> None:
    one = parse_tunable(identity)
    assert [one.check_value(value) for value in good] == [None] * len(good)
    assert all(one.check_value(value) for value in bad)


def test_a_line_of_its_own_for_each_module() -> None:
    edit = FileEdit("/etc/modules-load.d/x.conf", "word", "nf_conntrack", "", b"# ours\n")
    made = apply_edit(None, edit)
    assert made == b"# ours\nnf_conntrack\n"
    assert apply_edit(made, edit) == made
    assert mentions_key(b" nf_conntrack \r\n", edit)
    assert not mentions_key(b"nf_conntrack_ftp\n#nf_conntrack\n", edit)
    assert apply_edit(b"a\nnf_conntrack_ftp", edit) == b"a\nnf_conntrack_ftp\nnf_conntrack\n"


def test_an_option_of_a_module_beside_those_of_others() -> None:
    edit = FileEdit("/etc/modprobe.d/x.conf", "module-option", "nvme_core io_timeout", "255")
    before = b"options nvme_core multipath=N\noptions nvme_core io_timeout=30\noptions nvme io_timeout=1\n"
    after = before.replace(b"=30", b"=255")
    assert apply_edit(before, edit) == apply_edit(after, edit) == after
    assert apply_edit(b"", edit) == b"options nvme_core io_timeout=255\n"


def test_the_unit_that_holds_the_latency_starts_with_the_host(tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"/etc/x": ""})
    edit = parse_tunable("pm-qos:cpu_dma_latency").make_edit(host_of(root), "10", profile="p")
    assert isinstance(edit, FileEdit)
    unit, target = (apply_edit(None, one).decode() for one in edit.whole)
    assert "Environment=CPU_DMA_LATENCY=0x0000000a\n" in unit
    assert 'Type=forking\nExecStart=/bin/sh -c \'exec 3> /dev/cpu_dma_latency && printf "$$CPU_DMA_LATENCY" >&3' in unit
    assert target == "[Unit]\nWants=advisor-cpu-dma-latency.service\n"
    assert [one.path.rpartition("/")[2] for one in edit.whole] == [
        "advisor-cpu-dma-latency.service",
        "50-advisor-cpu-dma-latency.conf",
    ]


def test_a_state_is_set_by_systemctl_and_kept_by_it(tmp_path: Path) -> None:
    one = parse_tunable("unit:demo.service:state")
    assert one.make_steps("disabled active") == (
        RunCommand(("systemctl", "disable", "--", "demo.service")),
        RunCommand(("systemctl", "start", "--", "demo.service")),
    )
    # What cannot be enabled is started and stopped alone.
    assert one.make_steps("static inactive") == (RunCommand(("systemctl", "stop", "--", "demo.service")),)
    assert isinstance(one.make_edit(host_of(tmp_path), "", profile="p"), Persisted)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("module:nf-conntrack", "module:nf_conntrack"),
        ("module:cpuidle-haltpoll:force", "module:cpuidle_haltpoll:force"),
        ("module:cpuidle-haltpoll:option.force", "module:cpuidle_haltpoll:option.force"),
    ],
)
def test_a_hyphen_in_a_module_s_name_is_an_underscore(written: str, meant: str, tmp_path: Path) -> None:
    one = parse_tunable(written)
    assert one.id == meant
    host = host_of(make_tree(tmp_path, {"sys/module/cpuidle_haltpoll/parameters/force": "N\n"}))
    assert isinstance(one, ExpandsIds)
    assert one.expand_ids(host) == (meant,)
