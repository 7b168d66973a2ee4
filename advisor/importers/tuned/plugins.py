"""TuneD's plugins: which options each of them knows, and what converts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from advisor.facts.settings.value import refusal
from advisor.facts.sysctl_files import key_path
from advisor.facts.tuned.reapplied import dotted_key
from advisor.host import Missing
from advisor.importers.made import LACKS_KEY, Found, is_growing
from advisor.importers.records import ImportedSetting
from advisor.importers.tuned import plugin_boot, plugin_cpu, plugin_disk, plugin_files, plugin_net
from advisor.importers.tuned.context import Converter, Given, can_compare, parse_assignment, strip_quotes

_DEPRECATED = ("base_reachable_time", "retrans_time")


def convert_sysctl(given: Given) -> Found:
    key = dotted_key(given.key)
    text = strip_quotes(given.text)
    if key.rpartition(".")[2] in _DEPRECATED:
        return given.swallowed("TuneD refuses this key as deprecated", "unknown")
    current = given.host.read(key_path(key))
    live = None if isinstance(current, Missing) else current
    if given.is_faithful:
        found = _faithful_setting(given, key, text, live)
        if found is not None:
            return found
    written = parse_assignment(text)
    value = " ".join(written.value.strip("\"'").split() if not given.is_faithful else written.value.split())
    why = refusal(key, value)
    if why is not None:
        return given.swallowed(f"the kernel refuses the value: {why}")
    sense = written.sense
    if not given.is_faithful and sense == "exactly" and is_growing(key):
        sense = "at-least"
    note = "" if live is not None else LACKS_KEY
    return given.line.wanted(f"sysctl:{key}", value, sense=sense, note=note)


def _faithful_setting(given: Given, key: str, text: str, live: str | None) -> ImportedSetting | None:
    """What stands between the value and the kernel; None where nothing does."""
    if live is not None and "\n" in live:
        return given.line.ignored("the key has several lines, and TuneD leaves such keys alone", "refused")
    if not can_compare(text, live):
        return given.line.ignored(
            f"TuneD compares whole numbers only: it writes the text {text[:60]!r} as it is, operator and all, "
            "which the kernel refuses; TuneD passes over the error",
            "refused",
        )
    value, path, number = given.reapplied.get(key, (text, "", 0))
    if value != text:
        return given.line.ignored(
            f"{path} line {number} sets it to {value[:60]}, and TuneD applies that again afterwards (reapply_sysctl)",
            "overridden",
        )
    return None


class Plugin(NamedTuple):
    """``options`` that it knows; None for one that takes any name."""

    convert: Converter
    options: frozenset[str] | None = None
    also: Callable[[str], bool] = lambda _: False

    def knows(self, option: str) -> bool:
        return self.options is None or option in self.options or self.also(option)


def _convert_script(given: Given) -> ImportedSetting:
    scripts = given.text.split("\n")
    many = "scripts" if len(scripts) > 1 else "a script"
    return given.line.manual(
        f"{many} that TuneD runs as root, which is never executed here: {', '.join(scripts)[:300]}"
    )


_SCHEDULER = frozenset(
    {
        *("isolated_cores", "cgroup_mount_point", "cgroup_mount_point_init", "cgroup_groups_init"),
        *("cgroup_for_isolated_cores", "cgroup_ps_blacklist", "ps_whitelist", "ps_blacklist", "irq_process"),
        *("kthread_process", "default_irq_smp_affinity", "perf_mmap_pages", "perf_process_fork", "runtime"),
        *plugin_boot.KNOBS,
    }
)
PLUGINS = {
    "sysctl": Plugin(convert_sysctl),
    "sysfs": Plugin(plugin_files.convert_sysfs),
    "vm": Plugin(
        plugin_files.convert_vm,
        frozenset({"transparent_hugepages", "transparent_hugepage", "transparent_hugepage.defrag"})
        | plugin_files.DIRTY_OPTIONS.keys(),
    ),
    "cpu": Plugin(plugin_cpu.convert_cpu, plugin_cpu.OPTIONS),
    "disk": Plugin(plugin_disk.convert_disk, plugin_disk.OPTIONS),
    "net": Plugin(plugin_net.convert_net, plugin_net.OPTIONS),
    "scheduler": Plugin(plugin_boot.convert_scheduler, _SCHEDULER, lambda key: key.startswith("group.")),
    "bootloader": Plugin(
        plugin_boot.convert_bootloader, plugin_boot.BOOTLOADER_OPTIONS, lambda key: key.startswith("cmdline")
    ),
    "modules": Plugin(plugin_boot.convert_modules),
    "systemd": Plugin(
        lambda given: given.line.manual(
            f"CPUAffinity={given.text[:60]} in /etc/systemd/system.conf: every service on these CPUs from the next boot"
        ),
        frozenset({"cpu_affinity"}),
    ),
    "service": Plugin(plugin_boot.convert_service),
    "irqbalance": Plugin(
        lambda given: given.line.manual(
            f"IRQBALANCE_BANNED_CPULIST={given.text[:60]} in irqbalance's configuration, where irqbalance runs"
        ),
        frozenset({"banned_cpus"}),
    ),
    "mounts": Plugin(
        lambda given: given.line.manual(
            "it turns write barriers off, which loses data at a power cut; ext4 and XFS have no such option any more"
        ),
        frozenset({"disable_barriers"}),
    ),
    "script": Plugin(_convert_script, frozenset({"script"})),
    "rtentsk": Plugin(lambda given: given.line.ignored("TuneD knows no option of it"), frozenset()),
    "selinux": Plugin(plugin_files.convert_selinux, frozenset({"avc_cache_threshold"})),
    "scsi_host": Plugin(plugin_files.convert_scsi_host, frozenset({"alpm"})),
    "audio": Plugin(plugin_files.convert_audio, frozenset({"timeout", "reset_controller"})),
    "video": Plugin(plugin_files.convert_video, frozenset({"radeon_powersave", "panel_power_savings"})),
    "usb": Plugin(plugin_files.convert_usb, frozenset({"autosuspend"})),
    "eeepc_she": Plugin(
        plugin_files.convert_eeepc,
        frozenset({"load_threshold_normal", "load_threshold_powersave", "she_powersave", "she_normal"}),
    ),
    "acpi": Plugin(plugin_files.convert_acpi, frozenset({"platform_profile"})),
    "uncore": Plugin(plugin_files.convert_uncore, frozenset({"max_freq_khz", "min_freq_khz", "max_freq_delta_khz"})),
}
# Known by name, and steered while TuneD runs or by a tool of its own: nothing that one value could stand for.
STEERED = {
    "irq": "where interrupts run, one after the other, as irq:N:affinity does",
    "intel_sst": "Intel's Speed Select is set with intel-speed-select, package by package",
}
