"""Hosts whose CPUs are held slow, and hosts whose CPUs are not."""

from __future__ import annotations

from typing import Any

from advisor.facts.frequency import ClockGroup, Frequency
from advisor.facts.power import IdleState, Power, Throttling
from tests.rules.build import facts, identity, replaced

DEEP = (IdleState("POLL", 0, disabled=False), IdleState("C1", 2, disabled=False), IdleState("C6", 170, disabled=False))


def cpu(frequency: Frequency | None = None, **power: Any) -> dict[str, Any]:
    return {"cpu": replaced(facts().cpu, {"frequency": frequency, "power": Power(**power)})}


def clocks(driver: str, governor: str, preference: str | None = None, mode: str | None = None) -> dict[str, Any]:
    return cpu(Frequency(driver, mode, (ClockGroup("0-3", governor, preference),)))


METAL = {"host": identity(virtualization="none")}
SLOW: dict[str, Any] = {"clock_source": "hpet", "clock_sources": ("tsc", "hpet", "acpi_pm")}
DAY = 86_400

FIRES: list[tuple[str, str | None, dict[str, Any], str, str]] = [
    ("cpu.slowest-clock", None, clocks("acpi-cpufreq", "powersave"), "warning", "0-3"),
    ("cpu.slowest-clock", None, clocks("intel_cpufreq", "powersave", mode="passive"), "warning", "intel_cpufreq"),
    (
        "cpu.energy-saving-preference",
        None,
        clocks("intel_pstate", "powersave", "balance_power", "active"),
        "info",
        "balance_power",
    ),
    ("cpu.turbo-off", None, cpu(turbo=False), "info", "off"),
    ("cpu.deep-idle", "oltp", {**cpu(idle_states=DEEP), **METAL}, "info", "C6: 170 µs"),
    ("cpu.slow-clock-source", None, cpu(**SLOW), "advice", "hpet"),
    ("cpu.slow-clock-source", None, cpu(clock_source="xen", clock_sources=("xen", "tsc")), "advice", "xen"),
    ("cpu.slow-clock-source", None, cpu(clock_source="hpet", clock_sources=("hpet", "acpi_pm")), "info", "hpet"),
    (
        "cpu.throttled-by-heat",
        None,
        cpu(throttling=(Throttling(0, 912, 3_000_000),), uptime_seconds=DAY),
        "warning",
        "912",
    ),
    ("cpu.throttled-by-heat", None, cpu(throttling=(Throttling(0, 3, 40),), uptime_seconds=DAY), "info", "3 times"),
    # A counter that says more than the machine has been running is not believed.
    ("cpu.throttled-by-heat", None, cpu(throttling=(Throttling(0, 3, 1 << 40),), uptime_seconds=DAY), "info", "3"),
]
SILENT: list[tuple[str, str | None, dict[str, Any]]] = [
    *(
        (rule, None, {"cpu": replaced(facts().cpu, {"power": None, "frequency": None})})
        for rule in ("cpu.slowest-clock", "cpu.energy-saving-preference", "cpu.turbo-off", "cpu.slow-clock-source")
    ),
    ("cpu.slowest-clock", None, clocks("intel_pstate", "powersave", "performance", "active")),
    ("cpu.slowest-clock", None, clocks("amd-pstate-epp", "powersave", "balance_performance", "active")),
    ("cpu.slowest-clock", None, clocks("acpi-cpufreq", "schedutil")),
    ("cpu.energy-saving-preference", None, clocks("intel_pstate", "powersave", "balance_performance", "active")),
    ("cpu.turbo-off", None, cpu(turbo=True)),
    ("cpu.turbo-off", None, cpu()),
    ("cpu.deep-idle", None, {**cpu(idle_states=DEEP), **METAL}),
    ("cpu.deep-idle", "oltp", {**cpu(idle_states=DEEP[:2]), **METAL}),
    ("cpu.deep-idle", "oltp", {**cpu(idle_states=DEEP, wakeup_limit_us=20), **METAL}),
    ("cpu.deep-idle", "oltp", {**cpu(idle_states=DEEP), "host": identity(virtualization="kvm")}),
    ("cpu.slow-clock-source", None, cpu(clock_source="tsc", clock_sources=("tsc", "hpet"))),
    ("cpu.slow-clock-source", None, cpu(clock_source="kvm-clock", clock_sources=("kvm-clock", "tsc"))),
    ("cpu.throttled-by-heat", None, cpu(throttling=(Throttling(0, 0, 0),), uptime_seconds=DAY)),
    ("cpu.throttled-by-heat", None, cpu()),
]
