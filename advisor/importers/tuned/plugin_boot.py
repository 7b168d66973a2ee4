"""What acts when the kernel, a module or a service starts, and the scheduler: ``[bootloader]``, ``[modules]``,
``[systemd]``, ``[service]``, ``[irqbalance]``, ``[scheduler]``, ``[script]`` and ``[mounts]``."""

from __future__ import annotations

import re

from advisor.facts.tuned.functions import AssertionFailedError
from advisor.importers.made import Found
from advisor.importers.records import ImportedSense, ImportedSetting
from advisor.importers.tuned.context import Given, parse_assignment
from advisor.tunables.programs import refused_word

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
