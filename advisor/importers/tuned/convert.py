"""A loaded TuneD profile → what becomes of each of its lines."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from advisor.facts.host_facts import Facts
from advisor.facts.settings.sysctl import key_path
from advisor.facts.settings.value import refusal
from advisor.facts.tuned.files import (
    IniOption,
    dotted_key,
    is_on,
    lacks_perf,
    main_settings,
    profile_directories,
    read_reapplied,
)
from advisor.facts.tuned.functions import AssertionFailedError
from advisor.facts.tuned.profile import SCOPE, TunedProfile, load_tuned
from advisor.host import Host, Missing
from advisor.importers.records import (
    LACKS_KEY,
    Found,
    Imported,
    ImportedSetting,
    Mode,
    SourceLine,
    flatten_found,
    is_growing,
    without_rivals,
)
from advisor.importers.to_profile import last_wins, made_of, make_disjoint, profile_name
from advisor.importers.tuned import plugin_boot, plugin_devices
from advisor.importers.tuned.devices import (
    Context,
    Converter,
    Given,
    PluginInstance,
    can_compare,
    devices_of,
    make_instances,
    parse_assignment,
    strip_quotes,
)
from advisor.importers.tuned.differences import (
    NEWEST,
    TunedVersion,
    find_differences,
    installed_version,
    known_since,
    known_version,
    show_version,
)

# TuneD's plugins: which options each of them knows, and what converts them.

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
    "sysfs": Plugin(plugin_devices.convert_sysfs),
    "vm": Plugin(
        plugin_devices.convert_vm,
        frozenset({"transparent_hugepages", "transparent_hugepage", "transparent_hugepage.defrag"})
        | plugin_devices.DIRTY_OPTIONS.keys(),
    ),
    "cpu": Plugin(plugin_boot.convert_cpu, plugin_boot.OPTIONS),
    "disk": Plugin(plugin_devices.convert_disk, plugin_devices.DISK_OPTIONS),
    "net": Plugin(plugin_devices.convert_net, plugin_devices.NET_OPTIONS),
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
    "selinux": Plugin(plugin_devices.convert_selinux, frozenset({"avc_cache_threshold"})),
    "scsi_host": Plugin(plugin_devices.convert_scsi_host, frozenset({"alpm"})),
    "audio": Plugin(plugin_devices.convert_audio, frozenset({"timeout", "reset_controller"})),
    "video": Plugin(plugin_devices.convert_video, frozenset({"radeon_powersave", "panel_power_savings"})),
    "usb": Plugin(plugin_devices.convert_usb, frozenset({"autosuspend"})),
    "eeepc_she": Plugin(
        plugin_devices.convert_eeepc,
        frozenset({"load_threshold_normal", "load_threshold_powersave", "she_powersave", "she_normal"}),
    ),
    "acpi": Plugin(plugin_devices.convert_acpi, frozenset({"platform_profile"})),
    "uncore": Plugin(plugin_devices.convert_uncore, frozenset({"max_freq_khz", "min_freq_khz", "max_freq_delta_khz"})),
}
# Known by name, and steered while TuneD runs or by a tool of its own: nothing that one value could stand for.
STEERED = {
    "irq": "where interrupts run, one after the other, as irq:N:affinity does",
    "intel_sst": "Intel's Speed Select is set with intel-speed-select, package by package",
}


def convert_profile(
    profile: TunedProfile,
    host: Host,
    mode: Mode,
    *,
    files: Host,
    main: Mapping[str, str],
    version: TunedVersion | None = None,
) -> tuple[ImportedSetting, ...]:
    """Every line of the profile and of what it includes, in the order in which TuneD applies them.

    ``faithful``: what TuneD does with it on this host; ``intent``: what its author meant by it. ``version`` of TuneD
    decides what it knows; None is the newest.
    """
    context = Context(host, mode, main, profile.variables, read_reapplied(files, main), lacks_perf(files), version)
    lost_lines: list[ImportedSetting] = []
    for each in profile.lost:
        lost_lines += _repeated_lines(each.unit, each.key, each.option)
        sets_nothing = each.unit == "variables" or each.key in (*SCOPE, "priority")
        lost_lines.append(_source_line(each.unit, each.key, each.option).ignored(each.why, sets_nothing=sets_nothing))
    found = [*_head_settings(profile), *lost_lines]
    for instance in make_instances(profile, host, mode, main):
        # The lines that say what a section is for; scripts among them are never run.
        for key, option in instance.unit.settings.items():
            scope_line = _source_line(instance.unit.name, key, option)
            found += _repeated_lines(instance.unit.name, key, option)
            if key.startswith("script_"):
                found.append(
                    scope_line.manual("a script that TuneD runs as root for each device, which is never executed here")
                )
            else:
                found.append(scope_line.ignored("it says for whom or how the section is read", sets_nothing=True))
        for key, option in instance.unit.options.items():
            line = _source_line(instance.unit.name, key, option)
            found.extend(_repeated_lines(instance.unit.name, key, option))
            found += flatten_found([_convert_option(context, profile, instance, key, option, line)])
    # What is for all devices first: what is for some of them was meant to hold there.
    ordered = (
        sorted(found, key=lambda one: one.for_each is not None and one.only is not None) if mode == "intent" else found
    )
    return without_rivals(make_disjoint(last_wins(ordered), host))


def _source_line(section: str, key: str, option: IniOption) -> SourceLine:
    return SourceLine(section, key, option.value or "", option.path, option.line, option.comment)


def _head_settings(profile: TunedProfile) -> Iterator[ImportedSetting]:
    for key, option in profile.main_lines:
        yield from _repeated_lines("main", key, option)
        line = _source_line("main", key, option)
        unknown = profile.not_included.get(option) if key == "include" else None
        if unknown is not None:
            yield line.manual(f"{unknown}; import that profile by itself")
        else:
            yield line.ignored("it says what the profile is, or builds on", sets_nothing=True)
    for key, option in profile.variable_lines.items():
        yield from _repeated_lines("variables", key, option)
        yield _source_line("variables", key, option).ignored(
            "a variable, filled in where it is named", sets_nothing=True
        )


def _repeated_lines(section: str, key: str, option: IniOption) -> Iterator[ImportedSetting]:
    """What the same file says about it before."""
    for number, value in option.earlier:
        line = SourceLine(section, key, value, option.path, number)
        yield line.ignored(f"line {option.line} of the same file sets it again", sets_nothing=section in _NAMES)


_NAMES = ("main", "variables")


def _convert_option(
    context: Context, profile: TunedProfile, instance: PluginInstance, key: str, option: IniOption, line: SourceLine
) -> Found:
    if key == "priority":
        return line.ignored("it says when TuneD applies the section", sets_nothing=True)
    if profile.failed is not None and context.is_faithful:
        return line.ignored(f"TuneD refuses to load the profile on this host: {profile.failed}", "not-loaded")
    if instance.left_out is not None:
        return line.ignored(instance.left_out)
    if instance.unclear is not None:
        return line.manual(instance.unclear)
    kind = instance.unit.type
    if instance.inert is not None:
        what = {"disk": "disk", "net": "link"}.get(kind, "CPU")
        why = f"the section [{instance.inert}] comes first and takes every {what}, so that this one gets none"
        return line.ignored(why, "inert")
    since = known_since(kind, key)
    if context.version is not None and context.version < since and context.is_faithful:
        what = f"the option {key[:40]} of {kind}" if known_since(kind, "") < since else f"the plugin {kind}"
        why = f"TuneD {show_version(context.version)} does not know {what} yet, which is of {show_version(since)}"
        return line.ignored(why, "unknown")
    if kind in STEERED:
        return line.manual(STEERED[kind])
    if kind == "scheduler" and context.lacks_perf and context.is_faithful:
        why = "TuneD does not load its plugin scheduler on that host, as Python's module perf is missing"
        return line.ignored(why, "not-loaded")
    plugin = PLUGINS.get(kind)
    if plugin is None or not plugin.knows(key):
        what = f"the plugin {kind[:40]}" if plugin is None else f"the option {key[:40]} of {kind}"
        why = f"TuneD does not know {what}, says so in its log, and goes on"
        return line.ignored(why, "unknown") if context.is_faithful else line.manual(why, "unknown")
    text, problem = _expand_option(context, option, line)
    if problem is not None:
        return problem
    known = {name: getattr(context, name) for name in context.__struct_fields__}
    return plugin.convert(Given(**known, line=line, key=key, text=text, instance=instance))


def _expand_option(context: Context, option: IniOption, line: SourceLine) -> tuple[str, ImportedSetting | None]:
    value = option.value or ""
    try:
        expanded = context.variables.expand(value)
    except AssertionFailedError as error:
        return value, line.manual(f"an assertion in it does not hold: {error}", "not-loaded")
    if expanded.unresolved:
        return value, line.manual(f"its value is unknown here: {'; '.join(expanded.unresolved)[:300]}")
    missing = context.variables.missing(expanded.text)
    if missing:
        why = f"nothing defines the variable {missing[0][:40]}"
        if context.is_faithful:
            return value, line.ignored(f"{why}: TuneD writes the name itself, which is refused", "refused")
        return value, line.manual(why, "refused")
    return expanded.text, None


# TuneD's profiles → imported profiles: the one door for ``advisor profiles import tuned:NAME``.


def import_tuned(
    name: str,
    host: Host,
    mode: Mode,
    *,
    files: Host | None = None,
    path: str | None = None,
    version: TunedVersion | None = None,
) -> Imported:
    """A TuneD profile as it comes over to ``host``.

    ``files`` is the machine whose /usr/lib/tuned and /etc/tuned are read, without it the same; ``path`` is the file of
    a profile that lies elsewhere, what it includes is also looked up in the same directory. ``version`` of TuneD that
    is judged by, without it the one that is installed there, or the newest known. Raises UsageError for a
    profile that is not there, InvalidInputError naming file and line for one that TuneD would not load.
    """
    source = host if files is None else files
    directories = profile_directories(source)
    if path is not None:
        directories = (*directories, os.path.dirname(os.path.dirname(path)) or "/")
    profile = load_tuned(name, source, host, directories=directories, path=path)
    main = main_settings(source)
    installed = installed_version(source)
    judged = version or known_version(installed)
    each = {
        one: convert_profile(profile, host, one, files=source, main=main, version=judged)
        for one in ("faithful", "intent")
    }
    settings = each[mode]
    found = find_differences(profile, host, main, each["faithful"], each["intent"])
    option = profile.main.get("summary")
    shown = show_version(version) if version else installed
    notes = [
        "Which sections are for this host, and which idle states and CPUs it has, was judged when it was imported."
    ]
    if judged is None:
        notes.append(f"Which TuneD will read it is unknown: judged as {show_version(NEWEST)} does (--tuned-version).")
    if profile.failed is not None:
        notes.append(f"TuneD refuses to load it on that host: {profile.failed}.")
    # The physical links of this host, where a line is for links: TuneD knows no others.
    return Imported(
        name=profile_name(f"tuned-{profile.name}"),
        origin=f"tuned:{profile.name}",
        mode=mode,
        title=f"TuneD's profile {profile.name}",
        about=(option.value or "") if option else "",
        sources=tuple(f"{path} (tuned {shown})" if shown else path for path in profile.files),
        settings=settings,
        differences=found,
        links=() if not any(one.for_each == "links" for one in settings) else devices_of(host, "net") or (),
        notes=tuple(notes),
    )


def read_again(files: Host) -> Mapping[str, str]:
    """``sysctl:`` tunable → value that TuneD sets after its own: that of the system's files
    (``reapply_sysctl``)."""
    return {f"sysctl:{key}": value for key, (value, _, _) in read_reapplied(files, main_settings(files)).items()}


def reads_sysctl_files(files: Host) -> bool:
    """Whether TuneD reads /etc/sysctl.d after its own values, so that what stands there wins."""
    return is_on(main_settings(files), "reapply_sysctl")


def made_by_tuned(name: str, values: Mapping[str, str], host: Host, facts: Facts) -> tuple[dict[str, str], set[str]]:
    """What TuneD makes of these values (by tunable) when it activates a profile on this host, its own reading of
    the system's sysctl files left out; and those of them that give way to such a file. Raises as `import_tuned`."""
    imported = import_tuned(name, host, "faithful")
    hidden = {
        f"sysctl:{one.key}"
        for one in imported.settings
        if one.departs == "overridden" and values.get(f"sysctl:{one.key}", one.raw) != one.raw.strip("=<>")
    }
    return dict(made_of(values, imported, host, facts)), hidden & values.keys()
