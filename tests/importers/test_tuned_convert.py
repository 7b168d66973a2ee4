"""What becomes of TuneD's settings, plugin by plugin: faithfully, and as they are meant."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from advisor.host import DirectoryFiles, Host, NoCommands
from advisor.importers.records import Imported, Mode
from advisor.importers.to_profile import to_profile
from advisor.importers.tuned.convert import import_tuned
from advisor.importers.tuned.devices import parse_assignment
from advisor.importers.tuned.plugin_boot import parse_cmdline
from advisor.importers.tuned.plugin_devices import parse_link_parameters, parse_readahead
from tests.cases import read_cases
from tests.importers.hosts import CPU, PROC, became, machine, tuned, values
from tests.trees import make_tree


def imported(body: str, mode: Mode = "faithful", files: Mapping[str, str | bytes] | None = None) -> Imported:
    host = machine({**tuned(mine=body), **(files or {})})
    return import_tuned("mine", host, mode)


DATA = read_cases(__file__)


@pytest.mark.parametrize(
    ("body", "expected"),
    DATA["a_setting_becomes_a_tunable"],
)  # fmt: skip
def test_a_setting_becomes_a_tunable(body: str, expected: dict[str, str | None]) -> None:
    found = imported(body)
    assert values(found) == expected
    assert len(to_profile(found).tunables) == len(expected)


@pytest.mark.parametrize(("body", "words"), DATA["what_tuned_swallows_is_ignored"])
def test_what_tuned_swallows_is_ignored_faithfully_and_told(body: str, words: str) -> None:
    found = imported(body)
    assert values(found) == {}
    (one,) = [one for one in found.settings if not one.sets_nothing]
    assert one.outcome == "ignored"
    assert words in one.why
    assert [(difference.key, difference.faithful) for difference in found.differences if difference.kind != "dynamic"]


@pytest.mark.parametrize(("body", "expected"), DATA["what_its_author_meant"])
def test_what_its_author_meant(body: str, expected: dict[str, str]) -> None:
    assert values(imported(body, "intent")) == expected


@pytest.mark.parametrize(("body", "words"), DATA["what_is_left_to_a_person"])
@pytest.mark.parametrize("mode", ["faithful", "intent"])
def test_what_is_left_to_a_person(body: str, words: str, mode: Mode) -> None:
    found = imported(body, mode)
    (one,) = [one for one in found.settings if not one.sets_nothing]
    assert one.outcome == "manual"
    assert words in one.why


@pytest.mark.parametrize("value", ["true", "Yes", "1", "t"])
def test_what_skips_the_configuration_of_grub_adds_no_words(value: str) -> None:
    body = f"[bootloader]\nskip_grub_config={value}\ncmdline=+nosmt\ncmdline_x=-quiet\ngrub2_cfg_file=/boot/x\n"
    found = imported(body)
    assert values(found) == {}
    (one,) = became(found, "cmdline")
    assert (one.outcome, one.departs) == ("ignored", "other")
    assert one.why == "skip_grub_config: TuneD changes no boot loader, and only checks that the words are there"
    assert became(found, "cmdline_x")[0].outcome == "ignored"
    assert became(found, "grub2_cfg_file")[0].why == "it says where TuneD finds GRUB's configuration"
    assert became(found, "skip_grub_config")[0].why == (
        "it says that TuneD leaves the configuration of the boot loader as it is"
    )
    differing = [difference for difference in found.differences if difference.key == "cmdline"]
    assert [(one.kind, one.faithful, one.intent, one.why) for one in differing] == [
        ("other", "nothing", "cmdline:nosmt (set)", became(found, "cmdline")[0].why)
    ]
    assert values(imported(body, "intent")) == {"cmdline:nosmt": "(set)"}


@pytest.mark.parametrize("value", ["false", "0", "on", ""])
def test_what_does_not_skip_it_adds_its_words(value: str) -> None:
    found = imported(f"[bootloader]\nskip_grub_config={value}\ncmdline=+nosmt\n")
    assert values(found) == {"cmdline:nosmt": "(set)"}
    assert became(found, "skip_grub_config")[0].why == (
        "it is not true: TuneD changes the configuration of the boot loader, as without this line"
    )


def test_a_word_that_decides_whether_grub_is_skipped_is_expanded() -> None:
    body = "[variables]\nskip=true\n[bootloader]\ncmdline=nosmt\nskip_grub_config=${skip}\n"
    assert values(imported(body)) == {}
    body = "[bootloader]\ncmdline=nosmt\nskip_grub_config=${f:exec:id}\n"
    (one,) = became(imported(body), "cmdline")
    assert (one.outcome, one.why) == ("manual", "whether skip_grub_config keeps TuneD from it is unknown")


def test_initrd_images_that_are_not_given_to_the_boot_loader() -> None:
    body = "[bootloader]\ninitrd_add_dir=/srv/x\ninitrd_dst_img=/boot/x.img\nskip_grub_config=true\n"
    found = imported(body)
    assert {one.outcome for one in became(found, "initrd_add_dir")} == {"manual"}
    assert became(found, "initrd_add_dir")[0].why.endswith("; skip_grub_config: TuneD does not name it to GRUB")


@pytest.mark.parametrize("mode", ["faithful", "intent"])
def test_a_module_is_loaded_again_where_the_profile_says_so(mode: Mode) -> None:
    found = imported("[modules]\ntcp_bbr=\n", mode)
    (one,) = became(found, "tcp_bbr")
    assert one.outcome == "ignored"
    assert one.why == "a module without an option and without +r: TuneD neither loads it nor writes a line"
    found = imported("[modules]\ntcp_bbr=+r\n", mode)
    assert values(found) == {"module:tcp_bbr": "loaded"}
    assert became(found, "tcp_bbr")[0].note.startswith("TuneD unloads it first")


@pytest.mark.parametrize(("option", "why"), DATA["what_an_option_of_initrd_images_says"])
def test_what_an_option_of_initrd_images_says(option: str, why: str) -> None:
    (one,) = became(imported(f"[bootloader]\n{option}=/x\n"), option)
    assert (one.outcome, one.why) == ("manual", why)


def test_only_sections_for_this_host() -> None:
    body = (
        "[a]\ntype=vm\nuname_regex=aarch64\ntransparent_hugepages=never\n"
        "[b]\ntype=vm\ncpuinfo_regex=model name\\s+:.*Xeon\ntransparent_hugepages=always\n"
    )
    found = imported(body)
    assert values(found) == {"thp:enabled": "always"}
    assert became(found, "transparent_hugepages", "a")[0].why == "it is not for this host: uname_regex does not fit"
    assert (
        became(imported("[vm]\nenabled=0\ntransparent_hugepages=never\n"), "transparent_hugepages")[0].outcome
        == "ignored"
    )


def test_a_section_for_all_disks_takes_them_from_those_after_it() -> None:
    body = "[disk]\nreadahead=4096\n[fast]\ntype=disk\ndevices=nvme*\nelevator=none\nreadahead=0\n"
    found = imported(body)
    assert "block:{disk}:scheduler nvme*" not in values(found)
    (lost,) = became(found, "elevator")
    assert (lost.outcome, lost.departs) == ("ignored", "inert")
    meant = imported(body, "intent")
    assert values(meant)["block:{disk}:read_ahead_kb nvme*"] == "0"
    # What is for all disks leaves those out that have a line of their own.
    assert values(meant)["block:{disk}:read_ahead_kb sda,vda"] == "4096"
    assert {one.kind for one in found.differences} >= {"inert"}


def test_the_order_of_priorities_decides_who_gets_a_device() -> None:
    body = "[disk]\npriority=9\nreadahead=4096\n[fast]\ntype=disk\ndevices=nvme*\nreadahead=0\n"
    found = values(imported(body))
    assert found["block:{disk}:read_ahead_kb nvme*"] == "0"
    assert found["block:{disk}:read_ahead_kb sda,vda"] == "4096"
    assert found["block:{array}:read_ahead_kb dm-0"] == "4096"


def test_removable_disks_are_none_of_tuneds() -> None:
    found = values(imported("[disk]\nreadahead=64\n", files={"/sys/block/sdb/removable": "1\n"}))
    assert found["block:{disk}:read_ahead_kb nvme0n1,nvme1n1,sda,vda"] == "64"


def test_of_two_units_of_one_limit_the_later_counts() -> None:
    found = imported("[sysctl]\nvm.dirty_ratio=0\nvm.dirty_bytes=1000000\n")
    assert values(found) == {"sysctl:vm.dirty_bytes": "1000000"}
    assert "zeroes" in became(found, "vm.dirty_ratio")[0].why


def test_the_systems_own_sysctl_files_have_the_last_word() -> None:
    files: dict[str, str | bytes] = {"/etc/sysctl.d/50-own.conf": "vm.swappiness = 1\n"}
    found = imported("[sysctl]\nvm.swappiness=10\n", files=files)
    assert values(found) == {}
    assert "/etc/sysctl.d/50-own.conf line 1 sets it to 1" in became(found, "vm.swappiness")[0].why
    off: dict[str, str | bytes] = {**files, "/etc/tuned/tuned-main.conf": "reapply_sysctl = 0\n"}
    assert values(imported("[sysctl]\nvm.swappiness=10\n", files=off)) == {"sysctl:vm.swappiness": "10"}
    assert values(imported("[sysctl]\nvm.swappiness=10\n", "intent", files)) == {"sysctl:vm.swappiness": "10"}


def test_lowering_what_the_kernel_has_by_itself_is_told_and_not_meant() -> None:
    body = '[sysctl]\nnet.ipv4.tcp_rmem="4096 87380 16777216"\nnet.core.somaxconn=>2048\n'
    found = imported(body)
    (difference,) = [one for one in found.differences if one.kind == "lowers"]
    assert difference.faithful == "lowers it from 131072 to 87380, 33554432 to 16777216"
    assert became(found, "net.ipv4.tcp_rmem")[0].sense == "exactly"
    assert became(imported(body, "intent"), "net.ipv4.tcp_rmem")[0].sense == "at-least"
    assert became(found, "net.core.somaxconn")[0].sense == "at-least"


def test_the_command_line_keeps_huge_pages_as_they_are() -> None:
    files: dict[str, str | bytes] = {"/proc/cmdline": "ro transparent_hugepage=always\n"}
    body = "[vm]\ntransparent_hugepages=never\n"
    assert values(imported(body, files=files)) == {}
    assert values(imported(body, "intent", files)) == {"thp:enabled": "never"}


def test_what_tuned_does_by_itself_while_it_runs() -> None:
    found = imported("[net]\nnf_conntrack_hashsize=1048576\n")
    assert [one.kind for one in found.differences] == ["dynamic"]
    assert "100 Mbit/s" in found.differences[0].faithful
    twice = imported("[disk]\nreadahead=1024\n[disk-b]\ntype=disk\ndevices=sd*\n")
    assert [one.kind for one in twice.differences] == ["dynamic"]
    assert imported("[net]\ndynamic=0\nmtu=9000\n").differences == ()
    off: dict[str, str | bytes] = {"/etc/tuned/tuned-main.conf": "dynamic_tuning = 0\n"}
    assert imported("[cpu]\ngovernor=powersave\n", files=off).differences == ()


def test_an_unknown_part_of_an_include_costs_that_part() -> None:
    body = "[main]\ninclude=base, ${f:exec:echo,other}\n[sysctl]\nvm.dirty_ratio=20\n"
    files = tuned(base="[sysctl]\nvm.swappiness=10\n")
    found = imported(body, files=files)
    assert values(found) == {"sysctl:vm.swappiness": "10", "sysctl:vm.dirty_ratio": "20"}
    (line,) = became(found, "include")
    assert (line.outcome, line.line, "exec" in line.why) == ("manual", 2, True)


UDEV: Mapping[str, str | bytes] = {
    f"{place}/net/eth{number}/uevent": f"INTERFACE=eth{number}\nIFINDEX={number + 2}\n"
    for number, place in enumerate(("/sys/devices/pci0000:00/0000:00:03.0", "/sys/devices/pci0000:00/0000:00:04.0"))
} | {
    f"/run/udev/data/n{number + 2}": f"I:4711\nE:ID_NET_DRIVER={driver}\nG:systemd\n"
    for number, driver in enumerate(("ixgbe", "virtio_net"))
}


@pytest.mark.parametrize(("pattern", "names"), DATA["devices_are_chosen_by_the_properties_of_udev"])
@pytest.mark.parametrize("mode", ["faithful", "intent"])
def test_devices_are_chosen_by_the_properties_of_udev(pattern: str, names: list[str], mode: Mode) -> None:
    body = f"[net]\ndynamic=0\ndevices_udev_regex={pattern}\nmtu=9000\n"
    (line,) = became(imported(body, mode, UDEV), "mtu")
    assert (line.outcome, [*(line.only.names if line.only else ())]) == ("tunable" if names else "ignored", names)


def test_without_udevs_database_devices_are_unknown() -> None:
    files = {path: text for path, text in UDEV.items() if path != "/run/udev/data/n3"}
    (line,) = became(imported("[net]\ndevices_udev_regex=x\nmtu=9000\n", files=files), "mtu")
    assert (line.outcome, "eth1" in line.why) == ("manual", True)


def test_devices_that_hold_nothing_of_their_own_are_told() -> None:
    """TuneD's disk plugin uses unused loop devices, which no line of advisor is for."""
    loop: dict[str, str | bytes] = {"/sys/block/loop0/removable": "0\n", "/sys/block/loop0/size": "0\n"}
    body = "[disk]\nreadahead=1024\n"
    found = [one for one in imported(body, files=loop).differences if one.kind == "other"]
    assert [(one.key, one.line, one.faithful) for one in found] == [("readahead", 2, "is set on loop0, too")]
    elsewhere = imported("[disk]\ndevices=sd*\nreadahead=1024\n", files=loop)
    assert [one.kind for one in (*elsewhere.differences, *imported(body).differences)] == ["dynamic", "dynamic"]


def test_the_scheduler_needs_a_module_of_python() -> None:
    """As on Debian 12, which has no package of it: TuneD logs that its plugin cannot be loaded, and goes on."""
    body = "[scheduler]\nsched_latency_ns=60000000\n"
    lacking: dict[str, str | bytes] = {"/usr/lib/python3/dist-packages/tuned/__init__.py": ""}
    module: dict[str, str | bytes] = {"/usr/lib/python3.11/site-packages/perf.cpython-311-x86_64-linux-gnu.so": ""}
    found = imported(body, files=lacking)
    assert values(found) == {}
    assert [one.kind for one in found.differences] == ["not-loaded"]
    assert "module perf is missing" in found.differences[0].why
    wanted = {"sched:latency_ns": "60000000"}
    assert values(imported(body, "intent", lacking)) == wanted
    assert values(imported(body, files={**lacking, **module})) == wanted
    assert values(imported(body)) == wanted


def test_a_profile_that_tuned_refuses_sets_nothing_faithfully() -> None:
    body = "[variables]\na=${f:assertion_non_equal:set:x:x}\n[sysctl]\nvm.swappiness=10\n"
    assert values(imported(body)) == {}
    assert became(imported(body), "vm.swappiness")[0].departs == "not-loaded"
    assert values(imported(body, "intent")) == {"sysctl:vm.swappiness": "10"}


def test_hosts_without_the_files_are_no_trouble() -> None:
    body = "[cpu]\ngovernor=a|b\nforce_latency=cstate.id:1\n[disk]\nelevator=none\n[sysctl]\nvm.x=>5\n[net]\nmtu=9000\n"
    host = machine(tuned(mine=body), without=("/sys", PROC, "/proc/cpuinfo"))
    for mode in ("faithful", "intent"):
        found = import_tuned("mine", host, "faithful" if mode == "faithful" else "intent")
        to_profile(found)
        assert found.settings


def test_words_of_single_settings() -> None:
    assert parse_assignment(">4096") == ("4096", "at-least")
    assert parse_assignment("< 5") == ("5", "at-most")
    assert parse_assignment(">") == (">", "exactly")
    assert parse_readahead("8192 s") == 4096
    assert parse_readahead("8192s") is None
    assert parse_readahead("4096") == 4096
    assert parse_link_parameters("rx: on; tx off,autoneg on") == {"rx": "on", "tx": "off", "autoneg": "on"}
    assert parse_link_parameters("rx") is None
    assert parse_cmdline("+a=1 b") == ("+", ("a=1", "b"))
    assert parse_cmdline("-quiet splash") == ("-", ("quiet", "splash"))
    assert parse_cmdline("\\\\x y") == ("+", ("\\x", "y"))
    assert parse_cmdline("skew_tick=1") == ("+", ("skew_tick=1",))


def test_two_patterns_that_fit_one_file() -> None:
    """The later one keeps it; the earlier one is reported file by file."""
    base = "/sys/devices/virtual/workqueue"
    files: dict[str, str | bytes] = {f"{base}/{name}/cpumask": "f\n" for name in ("a", "b", "c")}
    body = f"[sysfs]\n{base}/*/cpumask=1\n{base}/b/cpumask=2\n"
    assert values(imported(body, files=files)) == {
        f"sysfs:{base}/a/cpumask": "1",
        f"sysfs:{base}/b/cpumask": "2",
        f"sysfs:{base}/c/cpumask": "1",
    }
    hidden = imported(f"[sysfs]\n{base}/b/cpumask=2\n{base}/*/cpumask=1\n", files=files)
    assert values(hidden) == {f"sysfs:{base}/*/cpumask": "1"}


def test_tuned_breaks_off_where_there_are_no_idle_states() -> None:
    """As in most virtual machines; what comes before the name of a state still counts."""
    bare = (f"{CPU}/cpu0/cpuidle",)
    for text, latency in DATA["tuned_breaks_off_where_there_are"]:
        host = machine(tuned(mine=f"[cpu]\nforce_latency={text}\n"), without=bare)
        found = became(import_tuned("mine", host, "faithful"), "force_latency")
        assert [one.value for one in found] == [latency]
        assert latency or "TuneD breaks off" in found[0].why
        (meant,) = became(import_tuned("mine", host, "intent"), "force_latency")
        assert meant.value == "10"


def test_one_file_by_two_names(tmp_path: Path) -> None:
    """As the queue of write-back, on its bus and among all others: the later line keeps it."""
    queues, bus = "/sys/devices/virtual/workqueue", "/sys/bus/workqueue/devices"
    files = {f"{queues}/{name}/cpumask": "f\n" for name in ("a", "writeback")}
    body = f"[sysfs]\n{bus}/writeback/cpumask=1\n{queues}/*/cpumask=1\n"
    profile = {path: text for path, text in tuned(mine=body).items() if isinstance(text, str)}
    links = {f"{bus}/writeback": "../../../devices/virtual/workqueue/writeback"}
    root = make_tree(tmp_path, {**files, **profile}, links)
    found = import_tuned("mine", Host(DirectoryFiles(str(root)), NoCommands()), "faithful")
    assert values(found) == {f"sysfs:{queues}/*/cpumask": "1"}


def test_a_section_that_gets_no_device_does_nothing_at_all() -> None:
    """Not even what is for no device: TuneD does not apply it."""
    body = (
        "[net]\nmtu=9000\n[again]\ntype=net\nnf_conntrack_hashsize=5\n"
        "[cpu]\ngovernor=powersave\n[more]\ntype=cpu\nboost=1\n"
    )
    found = imported(body)
    assert values(found) == {"link:{link}:mtu": "9000", "cpufreq:*:governor": "powersave"}
    assert {one.key for one in found.differences if one.kind == "inert"} == {"nf_conntrack_hashsize", "boost"}
