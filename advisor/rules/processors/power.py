"""CPUs that are held slow: by their governor, an energy preference, idle states, a slow clock source, or heat."""

from __future__ import annotations

from advisor.facts.processors.power import Power
from advisor.host.numbers import count_noun
from advisor.rules import sources
from advisor.rules.queries import is_virtual_machine, split_ids
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, RunShell, SetTunable, rule

ORDER = 116

# Those that read a device, or leave the guest, for every question of the time.
_SLOW_CLOCKS = frozenset({"hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies", "xen"})
_SAVING = frozenset({"power", "balance_power"})
_DEEP_US = 100
"""Waking up takes about as long as a read of an NVMe drive."""
_SHALLOW_US = 20
_HOT_SHARE = 0.01
_CLOCK_FILE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


def _power(facts: Facts) -> Power:
    return facts.cpu.power or Power()


def _is_pstate_active(facts: Facts) -> bool:
    """Whether the processor chooses clocks itself: there powersave is no fixed clock."""
    frequency = facts.cpu.frequency
    return frequency is not None and (
        (frequency.driver or "") in ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp") or frequency.mode == "active"
    )


@rule(
    id="cpu.slowest-clock",
    severity="warning",
    title="Governor powersave holds CPUs at the lowest clock",
    what="Governors of cpufreq policies where the driver, not the processor, chooses clocks (acpi-cpufreq, "
    "cppc_cpufreq, intel_cpufreq, amd-pstate passive).",
    why="With these drivers powersave asks for the lowest clock at all times, whatever the load is.",
    helps_when="Always, unless a limit of power is meant.",
    hurts_when="The host is held slow on purpose: a power or cooling budget, a machine on standby. The remedy costs "
    "power at all times.",
    sources=(sources.CPUFREQ,),
    seen_live=False,
)
def slowest_clock(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    frequency = facts.cpu.frequency
    if frequency is None or frequency.driver is None or _is_pstate_active(facts):
        return None
    slow = [group for group in frequency.groups if group.governor == "powersave"]
    if not slow:
        return None
    return slowest_clock.found(
        why="Every program on these CPUs runs at the lowest clock that they have.",
        evidence={
            "driver": frequency.driver,
            "policies": tuple(group.policies for group in slow),
            "governor": "powersave",
        },
        remedy=[
            SetTunable(f"cpufreq:policy{policy}:governor", "performance")
            for group in slow
            for policy in sorted(split_ids(group.policies))
        ],
    )


@rule(
    id="cpu.energy-saving-preference",
    severity="info",
    title="CPUs prefer to save energy",
    what="energy_performance_preference power or balance_power, where the processor chooses clocks itself.",
    why="The processor then raises its clock later and less: work of microseconds, such as handling interrupts, runs "
    "at low clocks between two waits.",
    helps_when="Latency of I/O or of the network counts more than power.",
    hurts_when="Power or heat is limited, or the host is idle most of the time: it draws more at all times.",
    sources=(sources.INTEL_PSTATE,),
    seen_live=False,
)
def energy_saving(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    frequency = facts.cpu.frequency
    saving = [
        group for group in (frequency.groups if frequency else ()) if group.energy_performance_preference in _SAVING
    ]
    if not saving or not _is_pstate_active(facts):
        return None
    return energy_saving.found(
        why="Latency is traded for power on these CPUs: which of them counts is for the owner to say.",
        evidence={
            "policies": tuple(group.policies for group in saving),
            "preference": tuple(group.energy_performance_preference or "" for group in saving),
        },
        remedy=[
            SetTunable(f"cpufreq:policy{policy}:energy_performance_preference", "performance")
            for group in saving
            for policy in sorted(split_ids(group.policies))
        ],
        intent=True,
    )


@rule(
    id="cpu.turbo-off",
    severity="info",
    title="CPUs may not go above their nominal clock",
    what="cpufreq/boost 0, or intel_pstate/no_turbo 1.",
    why="Turbo is what single busy threads gain most by: a fifth to a half of their clock on most servers.",
    helps_when="Few threads are busy, and the speed of one of them counts.",
    hurts_when="Clocks must be steady, as for measurements or real time; power or cooling is at its limit.",
    sources=(sources.CPUFREQ, sources.INTEL_PSTATE),
    seen_live=False,
)
def turbo_off(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if _power(facts).turbo is not False:
        return None
    frequency = facts.cpu.frequency
    is_intel = frequency is not None and frequency.driver in ("intel_pstate", "intel_cpufreq")
    return turbo_off.found(
        why="Somebody switched turbo off, in the firmware or here.",
        evidence={"driver": frequency.driver if frequency else None, "turbo": "off"},
        remedy=SetTunable("intel_pstate:no_turbo", "0") if is_intel else SetTunable("cpufreq:boost", "1"),
        intent=True,
    )


@rule(
    id="cpu.deep-idle",
    severity="info",
    title="Idle states are too deep for the workload",
    what="Idle states with an exit latency of 100 µs and more that are enabled and that no process rules out "
    "(cpu_dma_latency), with a declared workload that waits for a peer or for random reads.",
    why="A CPU that sleeps while it waits for I/O adds the time of waking up to each wait.",
    helps_when="Single requests that wait for each other: synchronous replication, random reads at low depth.",
    hurts_when="CPUs that do not sleep draw more power and leave less of it for turbo: throughput of busy hosts falls.",
    sources=(sources.CPUIDLE,),
    seen_live=False,
)
def deep_idle(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    limit = _power(facts).wakeup_limit_us
    reachable = (
        one
        for one in _power(facts).idle_states
        if one.disabled is not True and (limit is None or (one.latency_us or 0) <= limit)
    )
    deep = [one for one in reachable if (one.latency_us or 0) >= _DEEP_US]
    waits = workload is not None and (workload.replication == "sync" or workload.access == "random")
    if not deep or not waits or is_virtual_machine(facts):
        return None
    return deep_idle.found(
        why=f"Waking up from {deep[-1].name} takes {deep[-1].latency_us} µs, and such a workload waits often.",
        evidence={"states": tuple(f"{one.name}: {one.latency_us} µs" for one in deep)},
        remedy=SetTunable("pm-qos:cpu_dma_latency", str(_SHALLOW_US), "at-most"),
        intent=True,
    )


@rule(
    id="cpu.slow-clock-source",
    severity="advice",
    title="Asking for the time is slow",
    what="current_clocksource hpet, acpi_pm, xen or the like.",
    why="With tsc a program reads the time in some 20 ns without entering the kernel. With these every question is a "
    "system call that reads a device or leaves the guest, a microsecond or more; databases and tracing ask thousands "
    "of times a second.",
    helps_when="The kernel offers tsc, and has not found it to be unstable.",
    hurts_when="The kernel left tsc because it ran unevenly (see the log): then times jump. Guests that are moved "
    "between unlike machines.",
    sources=(sources.CLOCK_SOURCE,),
)
def slow_clock_source(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    power = _power(facts)
    if power.clock_source not in _SLOW_CLOCKS:
        return None
    has_tsc = "tsc" in power.clock_sources
    look = RunShell("journalctl -k --grep clocksource", "see why the kernel did not choose tsc")
    return slow_clock_source.found(
        severity="advice" if has_tsc else "info",
        why="Every program that asks for the time enters the kernel for it."
        + ("" if has_tsc else " The kernel offers no tsc here: it found none, or found it unstable."),
        evidence={"clock_source": power.clock_source, "available": power.clock_sources},
        remedy=(look, SetTunable(f"sysfs:{_CLOCK_FILE}", "tsc")) if has_tsc else look,
    )


@rule(
    id="cpu.throttled-by-heat",
    severity="warning",
    title="CPUs were throttled by their heat",
    what="package_throttle_count and package_throttle_total_time_ms since boot (Intel): a warning where it was one "
    "per cent of the time or more.",
    why="A processor that reaches its limit of temperature lowers its clocks until it has cooled down.",
    helps_when="Always: fans, air filters, a heat sink that sits badly, a room that is too warm.",
    hurts_when="The count is of one event long ago, such as a failure of the cooling that has been repaired.",
    sources=(sources.THERMAL_THROTTLE, sources.PCP_THROTTLE),
    seen_live=False,
)
def throttled(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    power = _power(facts)
    hot = [one for one in power.throttling if one.count]
    if not hot:
        return None
    up_ms = (power.uptime_seconds or 0) * 1000
    # A time that is longer than the machine has been running cannot be.
    known = [one.total_ms for one in hot if one.total_ms is not None and one.total_ms <= up_ms]
    share = max(known) / up_ms if known and up_ms else None
    return throttled.found(
        severity="warning" if share is not None and share >= _HOT_SHARE else "info",
        why="What was measured in that time is the heat's. " + ("" if share is None else f"It was {share:.2%} of all."),
        evidence={
            "packages": tuple(
                f"of CPU {one.cpu}: {count_noun(one.count, 'time')}"
                + ("" if one.total_ms is None else f", {one.total_ms:,} ms")
                for one in hot
            ),
            "uptime_seconds": power.uptime_seconds,
        },
        remedy=(
            RunShell("grep . /sys/class/hwmon/hwmon*/temp*_input", "see the temperatures now, in thousandths of °C"),
            "check the cooling before anything is tuned or measured",
        ),
    )
