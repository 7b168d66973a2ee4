"""Hosts whose CPUs are held slow, and hosts whose CPUs are not."""

from __future__ import annotations

from typing import Any

from advisor.facts.frequency import ClockGroup, Frequency
from advisor.facts.power import IdleState, Power, Throttling
from tests.rules.build import Table, facts, identity, replaced

DEEP = (IdleState("POLL", 0, disabled=False), IdleState("C1", 2, disabled=False), IdleState("C6", 170, disabled=False))


def cpu(frequency: Frequency | None = None, **power: Any) -> dict[str, Any]:
    return {"cpu": replaced(facts().cpu, {"frequency": frequency, "power": Power(**power)})}


def clocks(driver: str, governor: str, preference: str | None = None, mode: str | None = None) -> dict[str, Any]:
    return cpu(Frequency(driver, mode, (ClockGroup("0-3", governor, preference),)))


METAL = {"host": identity(virtualization="none")}
SLOW: dict[str, Any] = {"clock_source": "hpet", "clock_sources": ("tsc", "hpet", "acpi_pm")}
DAY = 86_400

UNKNOWN = {"cpu": replaced(facts().cpu, {"power": None, "frequency": None})}

CASES: Table = {
    "cpu.slowest-clock": [
        (clocks("acpi-cpufreq", "powersave"), "warning", "0-3"),
        (clocks("intel_cpufreq", "powersave", mode="passive"), "warning", "intel_cpufreq"),
        clocks("intel_pstate", "powersave", "performance", "active"),
        clocks("amd-pstate-epp", "powersave", "balance_performance", "active"),
        clocks("acpi-cpufreq", "schedutil"),
        UNKNOWN,
    ],
    "cpu.energy-saving-preference": [
        (clocks("intel_pstate", "powersave", "balance_power", "active"), "info", "balance_power"),
        clocks("intel_pstate", "powersave", "balance_performance", "active"),
        UNKNOWN,
    ],
    "cpu.turbo-off": [(cpu(turbo=False), "info", "off"), cpu(turbo=True), cpu(), UNKNOWN],
    "cpu.deep-idle": [
        ("oltp", {**cpu(idle_states=DEEP), **METAL}, "info", "C6: 170 µs"),
        {**cpu(idle_states=DEEP), **METAL},
        ("oltp", {**cpu(idle_states=DEEP[:2]), **METAL}),
        ("oltp", {**cpu(idle_states=DEEP, wakeup_limit_us=20), **METAL}),
        ("oltp", {**cpu(idle_states=DEEP), "host": identity(virtualization="kvm")}),
    ],
    "cpu.slow-clock-source": [
        (cpu(**SLOW), "advice", "hpet"),
        (cpu(clock_source="xen", clock_sources=("xen", "tsc")), "advice", "xen"),
        (cpu(clock_source="hpet", clock_sources=("hpet", "acpi_pm")), "info", "hpet"),
        cpu(clock_source="tsc", clock_sources=("tsc", "hpet")),
        cpu(clock_source="kvm-clock", clock_sources=("kvm-clock", "tsc")),
        UNKNOWN,
    ],
    "cpu.throttled-by-heat": [
        (cpu(throttling=(Throttling(0, 912, 3_000_000),), uptime_seconds=DAY), "warning", "912"),
        (cpu(throttling=(Throttling(0, 3, 40),), uptime_seconds=DAY), "info", "3 times"),
        # A counter that says more than the machine has been running is not believed.
        (cpu(throttling=(Throttling(0, 3, 1 << 40),), uptime_seconds=DAY), "info", "3"),
        cpu(throttling=(Throttling(0, 0, 0),), uptime_seconds=DAY),
        cpu(),
    ],
}
