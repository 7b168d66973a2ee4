"""What acts when the kernel, a module or a service starts, and the scheduler: ``[bootloader]``, ``[modules]``,
``[systemd]``, ``[service]``, ``[irqbalance]``, ``[scheduler]``, ``[script]`` and ``[mounts]``."""

from __future__ import annotations

import itertools
import re

from advisor.facts.tuned.functions import AssertionFailedError
from advisor.host import Host, Missing
from advisor.importers.records import Found, ImportedSense, ImportedSetting
from advisor.importers.tuned.devices import Given, parse_assignment
from advisor.tunables.preflight import refused_word

_INITRD = {
    "initrd_dst_img": "it names the image that the boot loader is given: /boot, and the name of its source, without it",
    "initrd_add_img": "it gives the boot loader an image besides the kernel's own: dracut or initramfs-tools",
    "initrd_add_dir": "it builds an image for the boot loader from a directory: dracut or initramfs-tools",
    "initrd_remove_dir": "it says whether TuneD removes the directory that an image was built from",
}
BOOTLOADER_OPTIONS = frozenset({"grub2_cfg_file", "skip_grub_config", *_INITRD})
# TuneD's name of a knob → its name below /sys/kernel/debug/sched since Linux 5.13; a sysctl of its own name before.
KNOBS = {
    **{
        f"sched_{name}": name
        for name in (
            *("min_granularity_ns", "latency_ns", "wakeup_granularity_ns"),
            *("tunable_scaling", "migration_cost_ns", "nr_migrate", "base_slice_ns"),
        )
    },
    **{
        f"numa_balancing_{name}": f"numa_balancing/{name}"
        for name in ("scan_delay_ms", "scan_period_min_ms", "scan_period_max_ms", "scan_size_mb")
    },
}
_MOVING = {
    "isolated_cores": "it takes processes and interrupts off these CPUs, again and again while it runs: isolcpus=, "
    "a cpuset, CPUAffinity= of services and irqaffinity= do that for good",
    "default_irq_smp_affinity": "where new interrupts run: /proc/irq/default_smp_affinity",
    "ps_whitelist": "it names processes that are moved",
    "ps_blacklist": "it names processes that are left where they are",
    "irq_process": "it says which interrupts are moved",
}
_OWN = ("runtime", "perf_mmap_pages", "perf_process_fork")


def convert_bootloader(given: Given) -> Found:
    skips = _skips_grub(given)
    if given.key in _INITRD:
        why = _INITRD[given.key]
        is_lost = skips and given.key.startswith("initrd_add_")
        return given.line.manual(f"{why}; skip_grub_config: TuneD does not name it to GRUB" if is_lost else why)
    if given.key == "skip_grub_config":
        if skips:
            return given.line.ignored("it says that TuneD leaves the configuration of the boot loader as it is")
        why = "it is not true: TuneD changes the configuration of the boot loader, as without this line"
        return given.line.ignored(why)
    if not given.key.startswith("cmdline"):
        return given.line.ignored("it says where TuneD finds GRUB's configuration")
    if given.is_faithful and skips is None:
        return given.line.manual("whether skip_grub_config keeps TuneD from it is unknown")
    operator, words = parse_cmdline(given.text)
    if given.is_faithful and skips and words:
        why = "skip_grub_config: TuneD changes no boot loader, and only checks that the words are there"
        return given.line.ignored(why, "other")
    if operator == "-":
        return given.line.manual(f"remove from the kernel's command line, if present: {' '.join(words)[:200]}")
    if not words:
        return given.line.ignored("it adds no words")
    return [_word(given, word) for word in words]


def _skips_grub(given: Given) -> bool | None:
    """Whether the section keeps TuneD from changing the boot loader; None where that is unknown."""
    option = given.instance.unit.options.get("skip_grub_config")
    if option is None:
        return False
    try:
        value = given.variables.expand(option.value or "")
    except AssertionFailedError:
        return None
    # TuneD's words for true (its get_bool).
    return None if value.unresolved else value.text.strip().upper() in ("Y", "YES", "T", "TRUE", "1")


def parse_cmdline(text: str) -> tuple[str, tuple[str, ...]]:
    """The operator of a ``cmdline`` setting (``-`` removes words, all others add them) and its words."""
    operator, rest = text[:1], text[1:].strip()
    if operator == "-":
        return "-", tuple(rest.split())
    if operator == "+" or (operator == "\\" and text[1:2] in ("\\", "+", "-")):
        return "+", tuple(rest.split())
    return "+", tuple(text.split())


def _word(given: Given, word: str) -> ImportedSetting:
    name, equals, value = word.partition("=")
    found = given.line.wanted(f"cmdline:{name}", value if equals else "(set)")
    if found.outcome == "tunable" or refused_word(name):
        return found
    return given.line.manual(f"add to the kernel's command line: {word[:200]}")


def convert_modules(given: Given) -> Found:
    module = given.key
    # False only where the kernel's index of modules says that there is none.
    host = given.host
    release = host.read("/proc/sys/kernel/osrelease")
    index = host.read(f"/lib/modules/{release}/modules.dep") if isinstance(release, str) else None
    if not isinstance(index, str) or host.is_dir(f"/sys/module/{module}"):
        is_module = True
    else:
        pattern = re.escape(module).replace("_", "[_-]")
        built_in = host.read(f"/lib/modules/{release}/modules.builtin")
        listed = f"{index}\n{built_in if isinstance(built_in, str) else ''}"
        is_module = re.search(rf"(?m)^(?:\S*/)?{pattern}\.ko", listed) is not None
    if not is_module:
        why = f"this host's kernel has no module {module[:40]}, and TuneD passes over it"
        return given.line.ignored(why, "refused")
    if not given.text:
        why = "a module without an option and without +r: TuneD neither loads it nor writes a line"
        return given.line.ignored(why)
    options = re.sub(r"^\s*\+r\s*,?\s*", "", given.text)
    if not options.strip():
        note = "TuneD unloads it first, where nothing uses it, and loads it again"
        return given.line.wanted(f"module:{module}", "loaded", note=note)
    words = (word.partition("=") for word in options.split())
    return [given.line.wanted(f"module:{module}:{name}", value if equals else "1") for name, equals, value in words]


def convert_service(given: Given) -> Found:
    if not given.key.startswith("service.") or len(given.key) <= len("service."):
        return given.swallowed("TuneD takes service.NAME alone here", "unknown")
    name = given.key.removeprefix("service.")
    unit = name if name.endswith(".service") else f"{name}.service"
    # A service's wanted state; words that are none are passed over by TuneD, one by one.
    words = re.split(r"\s*[,;]\s*", given.text)
    states = [word for word in words if word in ("start", "stop", "enable", "disable")]
    found = [
        given.line.manual(f"a drop-in of {unit[:80]}: {word.removeprefix('file:')[:120]}")
        for word in words
        if word.startswith("file:")
    ]
    if states:
        value, sense = state_of(states)
        found.append(given.line.wanted(f"unit:{unit}:state", value, sense=sense))
    return found or [given.swallowed("it says neither start, stop, enable nor disable", "unknown")]


def state_of(words: list[str]) -> tuple[str, ImportedSense]:
    """``enabled active`` and such like, and the sense of each of the two: one that nothing is said about is kept.

    The last of two words that contradict each other counts.
    """
    at_boot, runs = None, None
    for word in words:
        at_boot = f"{word}d" if word in ("enable", "disable") else at_boot
        runs = {"start": "active", "stop": "inactive"}.get(word, runs)
    value = f"{at_boot or 'enabled'} {runs or 'active'}"
    if at_boot and runs:
        return value, "exactly"
    return value, ("exactly" if at_boot else "keep", "exactly" if runs else "keep")


def convert_scheduler(given: Given) -> Found:
    key = given.key
    if key in KNOBS:
        name = KNOBS[key]
        written = parse_assignment(given.text)
        if not re.fullmatch(r"-?[0-9]{1,18}", written.value):
            knob = given.swallowed("it is no whole number")
        else:
            identities = (f"sched:{name}", f"sysctl:kernel.{given.key}")
            knob = given.line.wanted(identities, written.value, sense=written.sense)
        return knob
    if key in _OWN:
        return given.line.ignored("it says how TuneD itself watches processes", "dynamic")
    if key.startswith("group."):
        return given.line.manual("scheduling class, priority and CPUs of processes: systemd's CPUSchedulingPolicy=")
    if key.startswith("cgroup"):
        return given.line.manual("it moves processes between control groups while it runs")
    return given.line.manual(_MOVING.get(key, "it moves processes while it runs"))


# ``[cpu]``: frequency, energy preferences and the latency of idle states.

_CPUS = "/sys/devices/system/cpu"
_STATES = f"{_CPUS}/cpu0/cpuidle"
_DYNAMIC = ("load_threshold", "latency_low", "latency_high")
_FIRST_ONLY = ("force_latency", "min_perf_pct", "max_perf_pct", "no_turbo")
# The kernel's numbers for the words of its energy_perf_bias files (arch/x86/kernel/cpu/intel_epb.c).
_BIAS = {"performance": 0, "balance-performance": 4, "normal": 6, "balance-power": 8, "power": 15}
_OLD_BIAS = {"powersave": 15}
OPTIONS = frozenset(
    {*_DYNAMIC, *_FIRST_ONLY, "governor", "sampling_down_factor", "energy_perf_bias"}
    | {"pm_qos_resume_latency_us", "energy_performance_preference", "boost"}
)


def convert_cpu(given: Given) -> Found:
    key = given.key
    if key in _DYNAMIC:
        return given.line.ignored("it steers what TuneD does by itself while it runs", "dynamic")
    if key in _FIRST_ONLY and not given.instance.is_first and given.is_faithful:
        return given.line.ignored("TuneD takes this from the first section of the plugin alone", "inert")
    if given.instance.unit.devices != "*" and key not in _FIRST_ONLY:
        return given.line.manual("it is for some CPUs only, and our tunable is for all of them")
    if key == "governor":
        if "" in _split_alternatives(given.text):
            governor = given.swallowed("one of its alternatives is empty, and TuneD then sets none")
        else:
            governor = _first_offered(given, "scaling_available_governors", "governor")
        return governor
    if key == "energy_performance_preference":
        return _first_offered(given, "energy_performance_available_preferences", "energy_performance_preference")
    if key == "energy_perf_bias":
        return _bias(given)
    if key == "force_latency":
        return _latency(given)
    if key == "pm_qos_resume_latency_us":
        path = f"{_CPUS}/cpu*/power/pm_qos_resume_latency_us"
        return given.line.wanted((f"sysfs:{path}",), given.text)
    if key in ("min_perf_pct", "max_perf_pct"):
        return given.line.wanted(f"intel_pstate:{key}", given.text)
    if key == "no_turbo":
        return _no_turbo(given)
    if key == "boost":
        return given.line.wanted(("cpufreq:boost", f"sysfs:{_CPUS}/cpufreq/boost"), given.text)
    return given.line.manual("it belongs to one governor, and which of them runs is known only while it does")


def _split_alternatives(text: str) -> list[str]:
    return [word.strip() for word in text.split("|")]


def _first_offered(given: Given, file: str, attribute: str) -> ImportedSetting:
    """With all of its alternatives, of which a plan takes the first that the CPUs of its host offer."""
    wanted = _split_alternatives(given.text)
    # What CPU 0 offers; None where nothing says so.
    text = given.host.read(f"{_CPUS}/cpu0/cpufreq/{file}")
    if isinstance(text, Missing):
        text = given.host.read(f"{_CPUS}/cpufreq/policy0/{file}")
    offered = None if isinstance(text, Missing) else text.split()
    if offered and not set(wanted) & set(offered):
        return given.swallowed(f"these CPUs offer {', '.join(offered)}, and none of what is wanted")
    note = "this host shows no such setting of its CPUs: TuneD and a plan pass over it" if offered is None else ""
    return given.line.wanted(f"cpufreq:*:{attribute}", "|".join(wanted), note=note)


def _bias(given: Given) -> ImportedSetting:
    known = _BIAS if _has_flag(given.host, "hwp_epp") else {**_OLD_BIAS, **_BIAS}
    chosen = next(
        (word for word in _split_alternatives(given.text) if word in known or re.fullmatch(r"[0-9]{1,2}", word)), None
    )
    if chosen is None:
        return given.swallowed("none of its words is one of the kernel's for it")
    value = str(known.get(chosen, chosen))
    note = f"{chosen} is {value} in the kernel's file" if chosen != value else ""
    return given.line.wanted((f"sysfs:{_CPUS}/cpu*/power/energy_perf_bias",), value, note=note)


def _has_flag(host: Host, flag: str) -> bool:
    text = host.read("/proc/cpuinfo")
    return isinstance(text, str) and re.search(rf"^flags\s*:.*\b{flag}\b", text, re.MULTILINE) is not None


def _no_turbo(given: Given) -> ImportedSetting:
    word = given.text.strip().lower()
    if re.fullmatch(r"[01]", word):
        return given.line.wanted("intel_pstate:no_turbo", word)
    value = {"true": "1", "yes": "1", "y": "1", "false": "0", "no": "0", "n": "0"}.get(word)
    why = f"TuneD writes the word {given.text[:20]!r}, where intel_pstate takes a number, and passes over the error"
    if given.is_faithful or value is None:
        return given.swallowed(why)
    return given.line.wanted("intel_pstate:no_turbo", value, note=why, departs="refused")


def _latency(given: Given) -> ImportedSetting:
    latency, note = latency_of(given.text, given.host)
    if note == "none":
        return given.line.ignored("none: TuneD sets no latency")
    if latency is None:
        return given.swallowed(f"no latency follows from it here: {note}")
    if given.is_faithful and _breaks_off(given.text, given.host):
        why = f"these CPUs show no idle states: TuneD breaks off where it looks for the name of one, and sets no {note}"
        return given.line.ignored(why, "refused")
    return given.line.wanted("pm-qos:cpu_dma_latency", str(latency), note=note)


def latency_of(text: str, host: Host) -> tuple[int | None, str]:
    """Microseconds from ``cstate.id:1|cstate.name:C1|3``: the first alternative that holds on this host; and how."""
    for word in text.split("|"):
        if word in ("none", "None"):
            return None, "none"
        if re.fullmatch(r"\s*[+-]?\d{1,10}\s*", word, re.ASCII):
            return int(word), "" if word == text else f"{word.strip()} of {text[:60]}"
        found = re.fullmatch(r"cstate\.(id|name)(_no_zero)?:(.*)", word, re.DOTALL)
        if found is None:
            continue
        latency = _of_state(host, found[1], found[3])
        if latency is not None and not (found[2] and latency == 0):
            return latency, f"{word} is {latency} on this host"
    return None, "this host has no such idle state"


def _breaks_off(text: str, host: Host) -> bool:
    """Whether TuneD lists idle states that are not there, which it does not expect; alternatives before have failed."""
    if host.is_dir(_STATES):
        return False
    reached = itertools.takewhile(
        lambda word: not re.fullmatch(r"\s*[+-]?[0-9]{1,10}\s*|none|None", word), text.split("|")
    )
    return any(re.match(r"cstate\.name(_no_zero)?:", word) for word in reached)


def _of_state(host: Host, by: str, wanted: str) -> int | None:
    if by == "id":
        found = host.read_int(f"{_STATES}/state{wanted}/latency") if re.fullmatch(r"[0-9]{1,4}", wanted) else None
        return found if isinstance(found, int) else None
    for state in host.names(_STATES):
        if host.read(f"{_STATES}/{state}/name") == wanted:
            found = host.read_int(f"{_STATES}/{state}/latency")
            return found if isinstance(found, int) else None
    return None
