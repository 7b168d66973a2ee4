"""What decides how fast CPUs run and wake up: turbo, idle states, SMT, the clock source, and heat.

Sources: the kernel's admin-guide/pm/cpufreq, cpuidle and intel_pstate; ABI/testing/sysfs-devices-system-cpu (smt,
thermal_throttle). Governor and energy preference are in `advisor.facts.processors.power`.
"""

from __future__ import annotations

import re

import msgspec

from advisor.facts.block.block import clean
from advisor.facts.processors.cpulist import format_list
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, is_count, lazy_regex
from advisor.host.missing import ABSENT

_CPUS = "/sys/devices/system/cpu"
_CLOCKS = "/sys/devices/system/clocksource/clocksource0"
_WORD = lazy_regex(r"[A-Za-z0-9_.:-]{1,40}", re.ASCII)
_MAX_STATES = 32
WAKEUP_LIMIT = ("od", "-A", "n", "-t", "d4", "/dev/cpu_dma_latency")
"""As the tunable pm-qos:cpu_dma_latency reads it."""
_NO_LIMIT = 2_000_000_000


class IdleState(msgspec.Struct, frozen=True):
    """A state that an idle CPU may enter, as CPU 0 has it; ``latency_us`` is what waking up takes."""

    name: str
    latency_us: int | None
    disabled: bool | None


class Throttling(msgspec.Struct, frozen=True):
    """How often a package was throttled by its own heat since boot, and for how long in all; Intel alone counts it.

    ``cpu`` is the one of the package that was read.
    """

    cpu: int
    count: int
    total_ms: int | None


class Power(msgspec.Struct, frozen=True):
    """``turbo`` is whether CPUs may go above their nominal clock; ``uptime_seconds`` is read next to throttling alone.
    ``smt`` is the kernel's word: on, off, forceoff, notsupported, notimplemented. All is None or empty where the kernel
    does not say."""

    turbo: bool | None = None
    idle_driver: str | None = None
    idle_states: tuple[IdleState, ...] = ()
    smt: str | None = None
    clock_source: str | None = None
    clock_sources: tuple[str, ...] = ()
    throttling: tuple[Throttling, ...] = ()
    uptime_seconds: int | None = None
    wakeup_limit_us: int | None = None
    """The longest time in which a CPU wakes up, by what processes hold (root alone reads it); None for no limit."""


def parse_uptime(text: str) -> int | None:
    """Whole seconds since boot, of /proc/uptime."""
    found = re.match(r"([0-9]{1,10})\.[0-9]+ ", text + " ", re.ASCII)
    return int(found[1]) if found else None


def read_power(host: Host, packages: tuple[int, ...]) -> Power:
    """``packages`` are the first online CPUs of each package: what they count is counted for the whole package."""
    text = host.read(f"{_CLOCKS}/available_clocksource")
    sources = () if isinstance(text, Missing) else tuple(word for word in text.split()[:16] if _WORD.fullmatch(word))
    throttling = tuple(filter(None, (_read_throttling(host, cpu) for cpu in packages)))
    # Of use as a measure of these counts alone; on other hosts each scan would differ from the one before.
    uptime = host.read("/proc/uptime") if throttling else ABSENT
    held = host.run(WAKEUP_LIMIT) if host.is_root is not False else ABSENT
    limit = "" if isinstance(held, Missing) or not held.ok else held.stdout.strip()
    place = f"{_CPUS}/cpu0/cpuidle"
    numbers = sorted(int(name[5:]) for name in host.names(place) if re.fullmatch(r"state[0-9]{1,2}", name, re.ASCII))
    found = []
    for number in numbers[:_MAX_STATES]:
        name, latency, disabled = (host.read(f"{place}/state{number}/{one}") for one in ("name", "latency", "disable"))
        found.append(
            IdleState(
                f"state{number}" if isinstance(name, Missing) else clean(name)[:40] or f"state{number}",
                int(latency) if not isinstance(latency, Missing) and is_count(latency) else None,
                None if isinstance(disabled, Missing) or not is_count(disabled) else disabled != "0",
            )
        )
    return Power(
        turbo=_read_turbo(host),
        idle_driver=_read_word(host, f"{_CPUS}/cpuidle/current_driver"),
        idle_states=tuple(found),
        smt=_read_word(host, f"{_CPUS}/smt/control"),
        clock_source=_read_word(host, f"{_CLOCKS}/current_clocksource"),
        clock_sources=sources,
        throttling=throttling,
        uptime_seconds=None if isinstance(uptime, Missing) else parse_uptime(uptime),
        wakeup_limit_us=int(limit) if is_count(limit) and int(limit) < _NO_LIMIT else None,
    )


def _read_turbo(host: Host) -> bool | None:
    boost, no_turbo = (_read_word(host, f"{_CPUS}/{name}") for name in ("cpufreq/boost", "intel_pstate/no_turbo"))
    if boost in ("0", "1"):
        return boost == "1"
    return no_turbo == "0" if no_turbo in ("0", "1") else None


def _read_throttling(host: Host, cpu: int) -> Throttling | None:
    place = f"{_CPUS}/cpu{cpu}/thermal_throttle"
    count, total = (host.read(f"{place}/package_throttle_{one}") for one in ("count", "total_time_ms"))
    if isinstance(count, Missing) or not is_count(count):
        return None
    return Throttling(cpu, int(count), int(total) if not isinstance(total, Missing) and is_count(total) else None)


def _read_word(host: Host, path: str) -> str | None:
    text = host.read(path)
    return None if isinstance(text, Missing) or not _WORD.fullmatch(text) else text


# How the clocks of the CPUs are chosen: driver, governor and preference (the kernel's admin-guide/pm/cpufreq).


class ClockGroup(msgspec.Struct, frozen=True):
    """Policies that are set alike; ``policies`` are their numbers as a kernel list string."""

    policies: str
    governor: str | None
    energy_performance_preference: str | None


class Frequency(msgspec.Struct, frozen=True):
    """``driver`` is that of the first policy, ``mode`` what intel_pstate or amd_pstate says that it is in."""

    driver: str | None
    mode: str | None
    groups: tuple[ClockGroup, ...]


def read_frequency(host: Host, unknown: Unknowns) -> Frequency | None:
    """None where the kernel sets no clock, as in most virtual machines. Two files of each policy are read."""
    found = (re.fullmatch(r"policy(0|[1-9][0-9]{0,4})", name) for name in host.names(f"{_CPUS}/cpufreq"))
    numbers = sorted(int(one[1]) for one in found if one)
    if not numbers:
        return None
    first = f"{_CPUS}/cpufreq/policy{numbers[0]}"
    driver = _read_word(host, f"{first}/scaling_driver")
    if driver is None:
        unknown.note("cpu.frequency.driver", "the kernel does not say which driver sets the clocks")
    has_preference = host.exists(f"{first}/energy_performance_preference")
    alike: dict[tuple[str | None, str | None], list[int]] = {}
    for number in numbers:
        policy = f"{_CPUS}/cpufreq/policy{number}"
        preference = _read_word(host, f"{policy}/energy_performance_preference") if has_preference else None
        alike.setdefault((_read_word(host, f"{policy}/scaling_governor"), preference), []).append(number)
    groups = tuple(ClockGroup(format_list(some), *key) for key, some in alike.items())
    modes = (_read_word(host, f"{_CPUS}/{name}/status") for name in ("intel_pstate", "amd_pstate"))
    return Frequency(driver, next(filter(None, modes), None), groups)


# /proc/cpuinfo, whose words differ from architecture to architecture (``arch/*/kernel/`` show_cpuinfo).

# x86 prints "processor : 0", s390 "processor 0: version = ..." and in its second part "cpu number : 0".
_ENTRY = lazy_regex(r"^(?:processor|cpu number)[ \t]*(?::[ \t]*(\d{1,6})\s*$|[ \t](\d{1,6}):)", re.MULTILINE | re.ASCII)
_MACHINE = lazy_regex(r"^processor[ \t]+[0-9]+:.*\bmachine = (\w+)", re.MULTILINE)

# In this order: "cpu" is POWER's and SPARC's name for the model, "Processor" that of 32-bit ARM, "family" of old ia64.
_MODEL_FIELDS = ("model name", "Model Name", "cpu model", "cpu", "Processor", "uarch", "family")

# Server and cloud cores by (implementer, part) of MIDR_EL1; Arm's, Cavium's, HiSilicon's and Ampere's own lists.
_ARM_CORES = {
    ("0x41", "0xd03"): "ARM Cortex-A53",
    ("0x41", "0xd07"): "ARM Cortex-A57",
    ("0x41", "0xd08"): "ARM Cortex-A72",
    ("0x41", "0xd0c"): "ARM Neoverse-N1",
    ("0x41", "0xd40"): "ARM Neoverse-V1",
    ("0x41", "0xd49"): "ARM Neoverse-N2",
    ("0x41", "0xd4f"): "ARM Neoverse-V2",
    ("0x43", "0x0a1"): "Cavium ThunderX",
    ("0x43", "0x0af"): "Cavium ThunderX2",
    ("0x48", "0xd01"): "HiSilicon TaiShan-v110",
    ("0xc0", "0xac3"): "Ampere-1",
    ("0xc0", "0xac4"): "Ampere-1a",
}


class Processor(msgspec.Struct, frozen=True):
    """One logical CPU: number, ``physical id`` and ``core id``; None where the architecture does not print them."""

    number: int
    package: int | None
    core: int | None


def parse_cpuinfo(text: str) -> tuple[Processor, ...]:
    """The logical CPUs, sorted by number. The kernel lists online CPUs only."""
    found: dict[int, Processor] = {}
    starts = list(_ENTRY.finditer(text))
    ends = [*(start.start() for start in starts[1:]), len(text)]
    for start, end in zip(starts, ends, strict=False):
        number, block = int(start[1] or start[2]), text[start.end() : end]
        known = found.get(number, Processor(number, None, None))
        package = _parse_number(block, "physical id")
        core = _parse_number(block, "core id")
        found[number] = Processor(
            number, known.package if package is None else package, known.core if core is None else core
        )
    return tuple(found[number] for number in sorted(found))


def parse_model(text: str) -> str | None:
    """The model of the first CPU in the vendor's words; None where the text has none."""
    fields = _first_fields(text)
    for name in _MODEL_FIELDS:
        if fields.get(name) and not is_count(fields[name]):
            return fields[name]
    if machine := _MACHINE.search(text):
        return f"{fields.get('vendor_id', 'IBM/S390')} machine {machine[1]}"
    implementer, part = fields.get("CPU implementer"), fields.get("CPU part")
    if not implementer or not part:
        return None
    return _ARM_CORES.get((implementer.lower(), part.lower())) or f"ARM implementer {implementer} part {part}"


def parse_flags(text: str) -> frozenset[str]:
    """Feature words of the first CPU (``flags`` of x86, ``Features`` of ARM, ``features`` of s390)."""
    found = re.search(r"^(?:flags|[Ff]eatures)[ \t]*:[ \t]*(.*)$", text, re.MULTILINE)
    return frozenset(found[1].split()) if found else frozenset()


def _parse_number(block: str, name: str) -> int | None:
    found = re.search(rf"^{name}[ \t]*:[ \t]*(\d{{1,9}})[ \t\r]*$", block, re.MULTILINE | re.ASCII)
    return int(found[1]) if found else None


def _first_fields(text: str) -> dict[str, str]:
    # 32-bit ARM prints what is common to all CPUs after the last one; hundreds of CPUs between are not looked at.
    ends = text if len(text) < 16384 else f"{text[:8192]}\n{text[-4096:]}"
    fields: dict[str, str] = {}
    for line in ends.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip(), value.strip())
    return fields
