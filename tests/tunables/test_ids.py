"""Tunable ids: what each names, the values that it takes, and that a hostile one names nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import UsageError
from advisor.host import ReadCommand, ReadFile, RunCommand, WriteFile
from advisor.tunables import FileEdit, Persisted, all_kinds, apply_edit, mentions_key, parse_tunable
from advisor.tunables.preflight import ExpandsIds
from tests.each import for_each
from tests.trees import host_of, make_tree

CPU = "/sys/devices/system/cpu"
QUEUE = "/sys/block/{}/queue/{}"
THP = "/sys/kernel/mm/transparent_hugepage"
PLACES = [
    ("sysctl:net.core.rmem_max", "/proc/sys/net/core/rmem_max", "words"),
    ("sysctl:net.ipv4.conf.eth0/10.mtu", "/proc/sys/net/ipv4/conf/eth0.10/mtu", "words"),
    ("link:eth1:mtu", "/sys/class/net/eth1/mtu", "words"),
    ("link:bond0.100:mtu", "/sys/class/net/bond0.100/mtu", "words"),
    ("link:em\u2003x:mtu", "/sys/class/net/em\u2003x/mtu", "words"),
    ("irq:42:affinity", "/proc/irq/42/smp_affinity_list", "words"),
    ("irq:0:affinity", "/proc/irq/0/smp_affinity_list", "words"),
    ("cpufreq:policy0:governor", f"{CPU}/cpufreq/policy0/scaling_governor", None),
    ("cpufreq:policy12:energy_performance_preference", f"{CPU}/cpufreq/policy12/energy_performance_preference", None),
    ("cpufreq:policy1:scaling_min_freq", f"{CPU}/cpufreq/policy1/scaling_min_freq", None),
    ("cpufreq:boost", f"{CPU}/cpufreq/boost", None),
    ("intel_pstate:no_turbo", f"{CPU}/intel_pstate/no_turbo", None),
    ("sched:migration_cost_ns", "/sys/kernel/debug/sched/migration_cost_ns", None),
    ("sched:numa_balancing/scan_size_mb", "/sys/kernel/debug/sched/numa_balancing/scan_size_mb", None),
    ("sysfs:/sys/kernel/mm/ksm/run", "/sys/kernel/mm/ksm/run", None),
    ("module:nvme_core:io_timeout", "/sys/module/nvme_core/parameters/io_timeout", None),
    ("block:nvme0n1:scheduler", QUEUE.format("nvme0n1", "scheduler"), "selected"),
    ("block:cciss!c0d0:read_ahead_kb", QUEUE.format("cciss!c0d0", "read_ahead_kb"), "words"),
    ("block:dm-3:write_cache", QUEUE.format("dm-3", "write_cache"), "words"),
    ("md:md127:stripe_cache_size", "/sys/block/md127/md/stripe_cache_size", "words"),
    ("md:md_d0:sync_speed_min", "/sys/block/md_d0/md/sync_speed_min", "md-speed"),
    ("thp:enabled", f"{THP}/enabled", "selected"),
    ("thp:khugepaged/defrag", f"{THP}/khugepaged/defrag", "words"),
    ("thp:khugepaged/max_ptes_none", f"{THP}/khugepaged/max_ptes_none", "words"),
    ("file:/etc/beegfs/beegfs-meta.conf:tuneNumWorkers", "/etc/beegfs/beegfs-meta.conf", "conf:tuneNumWorkers"),
    (
        "file:/etc/beegfs/a.d/beegfs-storage.conf:connMaxInternodeNum",
        "/etc/beegfs/a.d/beegfs-storage.conf",
        "conf:connMaxInternodeNum",
    ),
    ("file:/etc/multipath.conf:defaults/rr_min_io_rq", "/etc/multipath.conf", "multipath:defaults/rr_min_io_rq"),
    (
        "file:/etc/iscsi/iscsid.conf:node.conn[0].timeo.noop_out_interval",
        "/etc/iscsi/iscsid.conf",
        "conf:node.conn[0].timeo.noop_out_interval",
    ),
    ("file:/etc/llttab:set-arp", "/etc/llttab", "directive:set-arp"),
    ("file:/etc/llttab:link.link-1.mtu", "/etc/llttab", "llttab-mtu:link-1"),
    ("file:/opt/iris/iris.cpf:config/globals", "/opt/iris/iris.cpf", "cpf:config/globals"),
]


@pytest.mark.parametrize(("identity", "path", "form"), PLACES)
def test_an_id_is_a_file(identity: str, path: str, form: str | None) -> None:
    one = parse_tunable(identity)
    assert one.id == identity
    assert isinstance(one.probe, ReadFile)
    assert (one.probe.path, one.probe.form) == (path, form or one.probe.form)
    if not identity.startswith("link:"):
        assert one.make_steps("7") == (() if identity.startswith("file:") else (WriteFile(path, "7"),))


def test_an_id_is_what_a_command_answers() -> None:
    timer = parse_tunable("llt:timer.peerinact")
    assert (timer.id, timer.probe) == (
        "llt:timer.peerinact",
        ReadCommand(("lltconfig", "-T", "query"), "timer:peerinact"),
    )
    assert timer.make_steps("3200") == (RunCommand(("lltconfig", "-T", "peerinact:3200")),)
    limit = parse_tunable("unit:a@b.service:LimitNOFILE")
    words = ("systemctl", "show", "--property=LoadState,LimitNOFILE,LimitNOFILESoft", "--", "a@b.service")
    assert (limit.id, limit.probe) == ("unit:a@b.service:LimitNOFILE", ReadCommand(words, "unit-setting:LimitNOFILE"))
    assert (limit.make_steps("1"), limit.takes_effect, limit.risk) == ((), "service-restart", "restart")


@pytest.mark.parametrize(
    "identity",
    [
        *("llt:highwater", "unit:a@b\\x2dc.service:numa", "unit:beegfs-storage@a.service:numa"),
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
        *("", ":", "sysctl", "sysctl:", "Sysctl:vm.swappiness", "nix:1", " sysctl:vm.swappiness"),
        *("sysctl:../../etc/passwd", "sysctl:/etc/passwd", "sysctl:.a", "sysctl:a.", "sysctl:a b", "sysctl:a\n"),
        # A slash stands for a dot, so that two of them would lead to the parent directory.
        *("sysctl:net.//.//.//.etc.passwd", "sysctl:a.//", "sysctl:a./.b", "sysctl:a//b"),
        # sysctl(8) takes these for net.core.rmem_max; one thing has one id.
        *("sysctl:net/core/rmem_max", "sysctl:kernel/sysrq"),
        *("sysctl:a\0b", "sysctl:$(id)", "sysctl:a;b", "sysctl:*"),
        # What the kernel would run as root.
        *(
            "sysctl:kernel.core_pattern",
            "sysctl:kernel.modprobe",
            "sysctl:kernel.poweroff_cmd",
            "sysctl:kernel.hotplug",
        ),
        *("sysctl:fs.binfmt_misc.register", "sysctl:kernel.usermodehelper.bset"),
        *("link:eth1", "link:eth1:speed", "link::mtu", "link:..:mtu", "link:.:mtu", "link:a/b:mtu", "link:a b:mtu"),
        *("link:eth1:mtu\n", "link:a\0b:mtu", "link:a\nb:mtu", "link:sixteen-letters-:mtu", "link:öööööööö:mtu"),
        *("irq:1", "irq:-1:affinity", "irq:01:affinity", "irq:1:affinity\n", "irq:٣:affinity", "irq:99999999:affinity"),
        *("llt:", "llt:a:b", "llt:-F", "llt:HIGH", "llt:a b", "llt:highwater\n"),
        *("unit:a:numa", "unit:a.mount:numa", "unit:../a.service:numa", "unit:a/b.service:numa", "unit:a.service"),
        *("unit:.service:numa", "unit:a b.service:numa", "unit:a.service\n:numa"),
        "unit:" + "a" * 248 + ".service:numa",
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
        *(
            "block:sda",
            "block:sda:",
            "block::scheduler",
            "block:sda:optimal_io_size",
            "block:sda:../../x",
            "block:..:iostats",
        ),
        *("block:a/b:scheduler", "block:sd a:scheduler", "block:sda:scheduler\n", "block:sda\n:scheduler"),
        *("udev:block:nvme*:rotational", 'udev:block:nv"me*:scheduler', "udev:block:nvme*/model/:scheduler", "udev:"),
        *("udev:block:nvme*/model/A|B:scheduler", "udev:block:nvme*/rotational/2:scheduler", "udev:usb:x:y"),
        *("udev:block:nvme*/role/other:scheduler", "udev:block:nvme*/model/A/model/B:scheduler"),
        *("udev:block:nvme*/model:scheduler", "udev:block:$attr:scheduler", "udev:link:virtio_net:mtu"),
        *("udev:link:virtio*:txqueuelen",),
        *("md:md0:chunk_size", "md:md0:sync_action", "md:..:skip_copy", "md:md0", "md:md/0:skip_copy"),
        *("thp:", "thp:../enabled", "thp:khugepaged", "thp:khugepaged/full_scans", "thp:enabled\n"),
        *("llt:timer.", "llt:timer.A", "llt:timer.a:b", "llt:timer.a\n"),
        *(
            "unit:a.service:ExecStart",
            "unit:a.service:User",
            "unit:a.socket:Nice",
            "unit:a.service:nice",
            "unit:a.service:",
        ),
        *("file:/etc/passwd:root", "file:/etc/beegfs/../passwd:tuneX", "file:/etc/beegfs/x.conf:tuneNumWorkers"),
        *(
            "file:etc/llttab:set-arp",
            "file:/etc/llttab:set-node",
            "file:/etc/llttab:set-cluster",
            "file:/etc/llttab:link",
        ),
        # What the program would run, read or trust.
        *(
            "file:/etc/iscsi/iscsid.conf:iscsid.startup",
            "file:/etc/iscsi/iscsid.conf:node.session.auth.password",
            "file:/etc/multipath.conf:defaults/multipath_dir",
            "file:/etc/multipath.conf:defaults/getuid_callout",
            "file:/etc/multipath.conf:blacklist/devnode",
            "file:/etc/beegfs/beegfs-meta.conf:connAuthFile",
            "file:/etc/beegfs/beegfs-meta.conf:connDisableAuthentication",
            "file:/etc/beegfs/beegfs-meta.conf:connInterfacesFile",
            "file:/etc/beegfs/beegfs-meta.conf:sysMgmtdHost",
            "file:/etc/beegfs/beegfs-meta.conf:storeMetaDirectory",
            "file:/opt/iris/iris.cpf:Startup/SystemMode",
            "file:/opt/iris/iris.cpf:config/LibPath",
        ),
        *(
            "file:/opt/../etc/iris.cpf:config/globals",
            "file:/opt/./iris.cpf:config/globals",
            "file:/opt//iris.cpf:config/a",
        ),
    ],
)
def test_an_id_that_is_refused(identity: str) -> None:
    with pytest.raises(UsageError, match="is not a tunable") as caught:
        parse_tunable(identity)
    assert caught.value.hint


@given(
    st.builds(
        "{}:{}{}".format,
        st.sampled_from(sorted(kind.name for kind in all_kinds())),
        st.text(),
        st.sampled_from(["", ":mtu", ":numa"]),
    )
)
def test_any_text(identity: str) -> None:
    try:
        one = parse_tunable(identity)
    except UsageError:
        return
    # The kernel takes a hyphen in the name of a module for an underscore.
    assert one.id == identity or one.id == f"module:{identity[7:].replace('-', '_')}"
    assert one.check_value("\0")
    path = one.probe.path if isinstance(one.probe, ReadFile) else "/"
    assert not {"", ".", ".."} & set(path.split("/")[1:-1])
    assert "\0" not in path


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
        (
            "sysctl:net.ipv4.tcp_rmem",
            ["4096 87380 8388608", "1 1 1"],
            ["10", "9 5 1", "", '"10"', "'1'", "1\n2", "1\0", "1\r2", "\x7f"],
        ),
        ("link:eth1:mtu", ["9000", "1"], ["", "0", "-1", "9000x", "٩٠٠٠", "9000\n", "12345678901"]),
        ("irq:1:affinity", ["0", "0-3,8"], ["", "4-5, 7", "0,1,2,3", "0-7:1/2", "x", "3-0", "0-", "-1", "99999999"]),
        ("llt:highwater", ["2000"], ["", "-1", "2k", "٢٠٠٠", "2000\n"]),
        (
            "unit:a.service:numa",
            ["NUMAPolicy=bind NUMAMask=0-1 CPUAffinity=numa", "NUMAPolicy=default NUMAMask= CPUAffinity="],
            [
                "",
                "NUMAPolicy=bind",
                "NUMAPolicy=bind NUMAMask=0 CPUAffinity=numa\nExecStart=/x",
                "NUMAPolicy=x NUMAMask=0 CPUAffinity=1",
            ],
        ),
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
        ("block:a:scheduler", ["none", "mq-deadline"], ["", "[none]", "a b", 'x"', "none\n", "A"]),
        ("block:a:read_ahead_kb", ["0", "128", "4096"], ["", "-4", "130", "0128", "12x", "٤", "9" * 11, "9" * 5000]),
        ("block:a:nr_requests", ["4", "1023"], ["3", "0", ""]),
        ("block:a:rq_affinity", ["0", "1", "2"], ["3", "", "on"]),
        ("block:a:iostats", ["0", "1"], ["2", "true"]),
        ("block:a:max_sectors_kb", ["4", "512"], ["0", "-1"]),
        ("block:a:wbt_lat_usec", ["0", "2000"], ["-1"]),
        # A volatile cache that the kernel no longer flushes loses what it held.
        ("block:a:write_cache", ["write back"], ["write through", "", "x"]),
        ("md:a:stripe_cache_size", ["17", "32768"], ["16", "32769", ""]),
        ("md:a:sync_speed_max", ["system", "200000"], ["local", "0", "1000 (system)"]),
        ("md:a:skip_copy", ["0", "1"], ["2", "system"]),
        ("thp:enabled", ["never", "madvise"], ["", "[never]", "a b", "1"]),
        ("thp:defrag", ["defer+madvise"], ["defer madvise", "+"]),
        ("thp:use_zero_page", ["0", "1"], ["2"]),
        ("thp:khugepaged/pages_to_scan", ["4096"], ["", "-1", "01"]),
        ("llt:timer.peerinact", ["1", "3200"], ["0", "", "-1", "1.5", "٣"]),
        ("unit:a.service:LimitNOFILE",
         ["1048576", "infinity", "1024:4096", "1024:infinity"], ["1M", "", "5:5", "infinity:5", "5:1", ":5", "1:2:3"]),
        ("unit:a.service:TasksMax", ["100", "infinity"], ["1:2", "10%"]),
        ("unit:a.service:Nice", ["-20", "0", "19"], ["20", "+5", "-0", ""]),
        ("unit:a.service:OOMScoreAdjust", ["-1000", "500"], ["1001"]),
        ("unit:a.service:IOWeight", ["1", "10000"], ["0", "10001", "(unset)"]),
        # As systemd shows it again.
        ("unit:a.service:CPUAffinity", ["0-3,8", "0"], ["", "0,1", "3-0", "0 1", "numa", "0-3,8\nExecStart=/x"]),
        ("file:/etc/beegfs/beegfs-meta.conf:tuneNumWorkers",
         ["32", "2m", "randomized"], ["", "a\nb", "(unset)", "/x", "$(x)", "a  b", '"1"']),
        ("file:/etc/multipath.conf:defaults/path_selector", ["service-time 0"], ['a" b', "{", "#", "a/b"]),
        ("file:/etc/llttab:set-arp", ["0", "1"], ["2", "", "1 # x"]),
        ("file:/opt/iris/iris.cpf:config/globals", ["0,0,512,0,0,0"], ["[x]", "a=b", "x;y"]),
    ],
)  # fmt: skip
def test_values_that_can_be(identity: str, good: list[str], bad: list[str]) -> None:
    one = parse_tunable(identity)
    assert [one.check_value(value) for value in good] == [None] * len(good)
    assert [value for value in bad if not one.check_value(value)] == []


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
