"""Plans for clocks, latency, scheduler, sysfs, modules, the command line and units: order, choice and reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.host import Host, MemoryFiles, NoCommands
from advisor.planning.expansion import expand_targets
from advisor.profiles.profile import parse_profile
from advisor.report.plan import plan_text
from advisor.tunables.cmdline import boot_commands
from tests.cases import cases
from tests.transaction.kernel_system import FILES, build, order, plan_of, reasons, targets_of, values

CASES = cases(__file__)

CPUFREQ = "/sys/devices/system/cpu/cpufreq"
POLICY = f"{CPUFREQ}/policy0"
LATENCY = "pm-qos:cpu_dma_latency"


def without(beginning: str) -> dict[str, str | bytes | None]:
    """Of the system's files those that begin so are taken away."""
    return {path: None for path in FILES if path.startswith(beginning)}


NO_CPUS, NO_DEBUG = without("/sys/devices/system/cpu"), without("/sys/kernel/debug")
LOCKED = NO_DEBUG | {"/sys/kernel/security/lockdown": "none [integrity] confidentiality"}
NO_PSTATE = without(f"{CPUFREQ[:-8]}/intel_pstate") | {f"{POLICY}/scaling_driver": "acpi-cpufreq"}
THEIRS = {"/etc/tmpfiles.d/aa.conf": f"w {POLICY}/scaling_governor - - - - schedutil\n"}
GOVERNOR, NOT = "cpufreq:policy0:governor", "not-applicable"
OUR_UNIT = {"/proc/self/cgroup": "0::/system.slice/demo.service\n"}


@pytest.mark.parametrize(
    ("files", "identity", "value", "state", "why"),
    [
        ({}, "cpufreq:policy[5-9]:governor", "performance", NOT, "no policy fits; policies here: policy0, policy1, p"),
        (NO_CPUS, "cpufreq:*:governor", "1", NOT, "no driver of cpufreq runs, as in most virtual machines"),
        (NO_CPUS, "cpufreq:policy0:scaling_max_freq", "1", NOT, "no driver of cpufreq runs, as in most virtual"),
        ({}, "cpufreq:policy0:scaling_max_freq", "4000000", NOT, "its hardware goes from 800000 to 3500000 kHz"),
        (NO_PSTATE, "intel_pstate:no_turbo", "1", NOT, "intel_pstate does not run here, acpi-cpufreq does"),
        (THEIRS, GOVERNOR, "performance", "overridden", "aa.conf"),
        ({"/run/other": "5"}, LATENCY, "10", NOT, "another process holds 5 µs, and the least counts"),
        ({"/run/systemd/system/x": None}, LATENCY, "10", NOT, "systemd does not run here"),
        ({}, "sched:wakeup_granularity_ns", "1000000", NOT, "EEVDF, since Linux 6.6) has dropped it; nothing"),
        ({}, "sched:min_granularity_ns", "1000000", NOT, "sched:base_slice_ns is nearest"),
        ({}, "sched:nr_migrate", "1000000", NOT, "this kernel has no such value of its scheduler"),
        (NO_DEBUG, "sched:nr_migrate", "1000000", NOT, "debugfs is not mounted"),
        (LOCKED, "sched:nr_migrate", "1000000", "unknown", "debugfs is closed, as the kernel is locked down"),
        ({}, "sched:preempt", "lazy", NOT, "this kernel offers none, voluntary, full"),
        ({}, "sysfs:/sys/devices/none*/x", "1", NOT, "no file fits the pattern"),
        ({}, "module:core_part", "loaded", "in-place", "is built into this kernel"),
        ({}, "module:other", "loaded", "in-place", "already set"),
        ({}, "module:nowhere", "loaded", NOT, "this kernel has no such module"),
        ({}, "module:core_part:option.x", "1", "by-hand", "core_part.x=1"),
        *(({}, "module:other:quick", off, "in-place", "") for off in ("0", "off", "N")),
        ({}, "unit:hidden.service:state", "enabled active", NOT, "it is masked"),
        (
            {},
            "unit:fixed.service:state",
            "enabled inactive",
            NOT,
            "it is static, which systemctl does not make enabled",
        ),
        ({}, "unit:none.service:state", "enabled active", NOT, "systemd knows no such unit"),
        (OUR_UNIT, "unit:demo.service:state", "disabled inactive", NOT, "the unit that this command runs in"),
    ],
)
def test_what_is_not_changed_says_why(
    tmp_path: Path, files: dict[str, str | bytes | None], identity: str, value: str, state: str, why: str
) -> None:
    plan = plan_of(build(tmp_path, files), {identity: value})
    ((found, reason),) = reasons(plan).values()
    assert (found, why in reason) == (state, True), reason
    assert plan.changes == ()
    assert plan.cannot_apply == (state != "in-place")


# --- clocks ---------------------------------------------------------------------------------------------------------


def test_the_first_of_several_that_the_driver_offers(tmp_path: Path) -> None:
    host = build(tmp_path)
    plan = plan_of(host, {"cpufreq:policy0:governor": "schedutil|performance|powersave"})
    assert values(plan) == {"cpufreq:policy0:governor": ("powersave", "performance")}
    plan = plan_of(host, {"cpufreq:policy0:governor": "schedutil | ondemand"})
    why = "the driver intel_pstate offers performance, powersave"
    assert reasons(plan) == {"cpufreq:policy0:governor": ("not-applicable", why)}
    assert not plan.blocking


LOW, HIGH = "cpufreq:policy0:scaling_min_freq", "cpufreq:policy0:scaling_max_freq"


@pytest.mark.parametrize(("live", "wanted", "names"), CASES["the lowest clock never passes the highest"])
def test_the_lowest_clock_never_passes_the_highest(
    tmp_path: Path, live: tuple[str, str], wanted: tuple[str, str], names: list[str]
) -> None:
    host = build(tmp_path, {f"{POLICY}/scaling_min_freq": live[0], f"{POLICY}/scaling_max_freq": live[1]})
    plan = plan_of(host, {LOW: wanted[0], HIGH: wanted[1]})
    assert order(plan, names) == names
    for changes in (plan.changes, tuple(reversed(plan.changes))):
        standing = dict(zip((LOW, HIGH), live if changes is plan.changes else wanted, strict=True))
        for one in changes:
            standing[one.tunable] = one.after if changes is plan.changes else one.before
            assert int(standing[LOW]) <= int(standing[HIGH])


def test_a_lowest_clock_above_the_highest_is_refused(tmp_path: Path) -> None:
    host = build(tmp_path)
    plan = plan_of(host, {LOW: "2500000"})
    assert reasons(plan)[LOW] == ("blocked", f"2500000 would be above {HIGH}, which is then 2000000")
    assert values(plan_of(host, {LOW: "2500000", HIGH: "2600000"})) == {
        HIGH: ("2000000", "2600000"),
        LOW: ("800000", "2500000"),
    }
    plan = plan_of(host, {"intel_pstate:min_perf_pct": "70"})
    assert reasons(plan)["intel_pstate:min_perf_pct"][0] == "blocked"


def test_a_preference_comes_after_the_governor_that_takes_it(tmp_path: Path) -> None:
    governor, preference = "cpufreq:policy0:governor", "cpufreq:policy0:energy_performance_preference"
    host = build(
        tmp_path,
        {f"{POLICY}/scaling_governor": "performance", f"{POLICY}/energy_performance_preference": "performance"},
    )
    plan = plan_of(host, {preference: "balance_power", governor: "powersave"})
    assert [one.tunable for one in plan.changes] == [governor, preference]
    plan = plan_of(host, {preference: "balance_power"})
    why = f"{governor} is then performance, and its driver takes no preference but performance with it"
    assert reasons(plan) == {preference: ("blocked", why)}


def test_turbo_comes_first_and_goes_last(tmp_path: Path) -> None:
    host = build(tmp_path)
    wanted = {"intel_pstate:no_turbo": "1", "intel_pstate:max_perf_pct": "90", HIGH: "1900000"}
    assert plan_of(host, wanted).changes[-1].tunable == "intel_pstate:no_turbo"
    (tmp_path / "root/sys/devices/system/cpu/intel_pstate/no_turbo").write_text("1\n")
    assert plan_of(host, wanted | {"intel_pstate:no_turbo": "0"}).changes[0].tunable == "intel_pstate:no_turbo"


# --- latency --------------------------------------------------------------------------------------------------------


# --- scheduler ------------------------------------------------------------------------------------------------------


def test_a_kernel_before_5_13_has_the_sysctl(tmp_path: Path) -> None:
    old = without("/sys/kernel/debug") | {"/proc/sys/kernel/sched_migration_cost_ns": "500000"}
    plan = plan_of(build(tmp_path, old), {"sched:migration_cost_ns": "5000000"})
    assert values(plan) == {"sysctl:kernel.sched_migration_cost_ns": ("500000", "5000000")}
    assert plan.changes[0].persist == "/etc/sysctl.d/90-advisor-test.conf"


# --- sysfs ----------------------------------------------------------------------------------------------------------


def test_one_id_for_each_file_and_none_outside(tmp_path: Path) -> None:
    host = build(tmp_path, {"/etc/secret/power/control": "auto", "/sys/devices/pci0/c/power/other": "auto"})
    devices = tmp_path / "root/sys/devices/pci0"
    (devices / "astray").symlink_to("/etc/secret")
    (devices / "again").symlink_to("a")
    plan = plan_of(host, {"sysfs:/sys/devices/pci0/*/power/control": "on"})
    assert values(plan) == {"sysfs:/sys/devices/pci0/a/power/control": ("auto", "on")}
    assert reasons(plan) == {"sysfs:/sys/devices/pci0/b/power/control": ("in-place", "already set")}


def test_a_name_that_leads_out_of_sys_is_not_followed(tmp_path: Path) -> None:
    host = build(tmp_path, {"/etc/secret": "1"})
    (tmp_path / "root/sys/devices/pci0/a/out").symlink_to("/etc/secret")
    plan = plan_of(host, {"sysfs:/sys/devices/pci0/a/out": "2"})
    why = "it leads to /etc/secret, which is not set here"
    assert reasons(plan) == {"sysfs:/sys/devices/pci0/a/out": ("not-applicable", why)}


def test_a_pattern_does_not_reach_what_acts(tmp_path: Path) -> None:
    host = build(tmp_path, {"/sys/devices/pci0/a/remove": "1", "/sys/devices/pci0/a/power/state": "1"})
    assert values(plan_of(host, {"sysfs:/sys/devices/pci0/a/r*": "1"})) == {}
    assert values(plan_of(host, {"sysfs:/sys/devices/pci0/a/power/*": "1"})) == {
        "sysfs:/sys/devices/pci0/a/power/control": ("auto", "1")
    }


@pytest.mark.parametrize(("path", "identity"), CASES["a file of another kind has its id"])
def test_a_file_of_another_kind_has_its_id(tmp_path: Path, path: str, identity: str) -> None:
    files = {
        "/sys/block/sda/queue/nr_requests": "64",
        "/sys/kernel/mm/transparent_hugepage/enabled": "[always] never",
        "/sys/class/net/eth0/mtu": "1500",
    }
    host = build(tmp_path, files)
    cpu = tmp_path / "root/sys/devices/system/cpu/cpu0"
    cpu.mkdir()
    (cpu / "cpufreq").symlink_to("../cpufreq/policy0")
    targets, skipped = expand_targets(host, targets_of({f"sysfs:{path}": "1"}))
    assert [one.tunable for one in targets] == [identity]
    assert skipped == ()


@pytest.mark.parametrize(("identity", "path"), CASES["a file that the kernel lets be read alone holds no plan up"])
def test_a_file_that_the_kernel_lets_be_read_alone_holds_no_plan_up(tmp_path: Path, identity: str, path: str) -> None:
    host = build(tmp_path, {"/sys/kernel/mm/transparent_hugepage/enabled": "[always] never"})
    live = values(
        plan_of(host, {identity: "1" if identity.endswith("turbo") else "never" if "thp" in identity else "2500000"})
    )
    assert identity in live
    (tmp_path / "root" / path.lstrip("/")).chmod(0o444)
    plan = plan_of(host, {identity: live[identity][1]})
    assert reasons(plan) == {identity: ("not-applicable", "the kernel lets it be read alone")}
    assert not plan.blocking


def test_what_only_root_may_read_is_unknown() -> None:
    files = MemoryFiles({"/etc/machine-id": b"0"}, unreadable={"/sys/devices/a/b": "Permission denied"})
    plan = plan_of(Host(files, NoCommands()), {"sysfs:/sys/devices/a/b": "1"})
    state, why = reasons(plan)["sysfs:/sys/devices/a/b"]
    assert state == "unknown"
    assert why == "cannot be read: Permission denied; what cannot be read cannot be restored"


# --- modules --------------------------------------------------------------------------------------------------------


def test_a_kernel_that_loads_no_modules(tmp_path: Path) -> None:
    """Without CONFIG_MODULES there is no /proc/modules: what has a directory in /sys/module is part of the kernel."""
    host = build(
        tmp_path,
        {**without("/proc/modules"), **without("/lib/modules"), "/sys/module/tcp_cubic/parameters/beta": "717\n"},
    )
    wanted = {"module:tcp-cubic": "loaded", "module:nowhere": "loaded"}
    plan = plan_of(Host(host.files, host.commands, is_live=True, is_root=True), wanted)
    assert reasons(plan) == {
        "module:nowhere": ("not-applicable", "cannot be read: this kernel loads no modules"),
        "module:tcp_cubic": ("in-place", "is built into this kernel"),
    }
    assert "module:tcp_cubic  is built into this kernel" in plan_text(plan, width=80, color=False)
    # A capture that lacks /proc/modules does not show that.
    of_capture = plan_of(Host(host.files, host.commands), wanted)
    assert {why for _, why in reasons(of_capture).values()} == {"cannot be read: does not exist"}


def test_what_a_module_brought_along_goes_with_it_and_nothing_else(tmp_path: Path) -> None:
    (change,) = plan_of(build(tmp_path), {"module:new_mod": "loaded"}).changes
    assert [getattr(step, "argv", ()) for step in change.undo] == [("rmmod", "new_mod", "dep_b")]
    assert change.persist == "/etc/modules-load.d/advisor-test.conf"


def test_a_module_tells_which_keys_it_sets_and_so_does_one_that_brings_it(tmp_path: Path) -> None:
    needs = "kernel/a/br_netfilter.ko:\nkernel/a/nf_conntrack.ko:\nkernel/a/nf_nat.ko: kernel/a/nf_conntrack.ko\n"
    host = build(tmp_path, {"/lib/modules/6.1.0/modules.dep": needs})
    for name, key in {"br_netfilter": "net.bridge.bridge-nf-call-iptables", "nf_nat": "nf_conntrack_max"}.items():
        (note,) = plan_of(host, {f"module:{name}": "loaded"}).notes
        assert key in note


def test_a_parameter_that_cannot_be_written_is_for_the_next_load(tmp_path: Path) -> None:
    host = build(tmp_path)
    (tmp_path / "root/sys/module/other/parameters/depth").chmod(0o444)
    plan = plan_of(host, {"module:other:depth": "4", "module:new_mod:depth": "5"})
    assert {one.tunable: (one.before, one.after, one.takes_effect) for one in plan.changes} == {
        "module:other:option.depth": ("1", "4", "reboot"),
        "module:new_mod:option.depth": ("3", "5", "reboot"),
    }
    assert [note.partition(";")[0] for note in plan.notes] == [
        "module:new_mod:option.depth takes effect when new_mod is loaded again",
        "module:other:option.depth takes effect when other is loaded again",
    ]


def test_a_parameter_of_what_is_built_in_that_cannot_be_written(tmp_path: Path) -> None:
    """modprobe.d is never read for it, and no output of modprobe is needed to say so."""
    host = build(tmp_path, {"/sys/module/core_part/parameters/x": "0\n"})
    (tmp_path / "root/sys/module/core_part/parameters/x").chmod(0o444)
    plan = plan_of(host, {"module:core-part:x": "1"})
    assert {name: state for name, (state, _) in reasons(plan).items()} == {"cmdline:core_part.x": "by-hand"}
    assert not plan.changes


def test_a_parameter_of_the_kernel_itself_is_written_at_boot(tmp_path: Path) -> None:
    files = {"/sys/module/pcie_aspm/parameters/policy": "[default] performance powersave\n"}
    plan = plan_of(build(tmp_path, files), {"module:pcie_aspm:policy": "performance"})
    (change,) = plan.changes
    assert (change.before, change.after) == ("default", "performance")
    assert change.persist == "/etc/tmpfiles.d/advisor-test.conf"
    assert any("is set by cmdline:pcie_aspm.policy=performance alone" in note for note in plan.notes)


# --- the command line -----------------------------------------------------------------------------------------------


def test_a_word_that_the_kernel_was_started_with(tmp_path: Path) -> None:
    plan = plan_of(build(tmp_path), {"cmdline:nosmt": "(set)", "cmdline:mitigations": "off"})
    assert {state for state, _ in reasons(plan).values()} == {"in-place"}


def test_a_word_that_it_was_not_is_left_to_the_administrator(tmp_path: Path) -> None:
    wanted = {"cmdline:intel_idle.max_cstate": "1", "cmdline:mitigations": "auto", "intel_pstate:max_perf_pct": "90"}
    plan = plan_of(build(tmp_path), wanted)
    add = "to GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub, run update-grub, then reboot"
    said = {name: (state, *why.split(". When it hurts: ")) for name, (state, why) in reasons(plan).items()}
    assert said == {
        "cmdline:intel_idle.max_cstate": (
            "by-hand",
            f"the kernel was started without it; by hand: add intel_idle.max_cstate=1 {add}",
            "hurts",
        ),
        "cmdline:mitigations": (
            "by-hand",
            f"the kernel was started with off; by hand: add mitigations=auto {add}",
            "hurts",
        ),
    }
    # It holds nothing else up.
    assert list(values(plan)) == ["intel_pstate:max_perf_pct"]
    assert not plan.cannot_apply


@pytest.mark.parametrize(("paths", "expected"), CASES["the commands are those of the boot loader"])
def test_the_commands_are_those_of_the_boot_loader(paths: list[str], expected: str) -> None:
    assert expected in boot_commands(Host(MemoryFiles(dict.fromkeys(paths, b"")), NoCommands()), "a=1")


# --- units ----------------------------------------------------------------------------------------------------------


# --- profiles -------------------------------------------------------------------------------------------------------

PROFILE = CASES["PROFILE"]


@pytest.mark.parametrize(("tunable", "value", "sense"), CASES["a profile may say it"])
def test_a_profile_may_say_it(tunable: str, value: str, sense: str) -> None:
    text = PROFILE.format(tunable=tunable, value=value, sense=sense)
    (wanted,) = parse_profile(text.encode(), "mine.toml").tunables
    assert (wanted.tunable, wanted.value) == (tunable, value)
