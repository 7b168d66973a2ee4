"""Hosts whose CPUs are held slow, and hosts whose CPUs are not."""

from __future__ import annotations

from typing import Any

from advisor.facts.processors.power import ClockGroup, Frequency, IdleState, Power, Throttling
from tests.cases import read_cases
from tests.rules.build import Table, facts, identity, joined, replaced

DEEP = (IdleState("POLL", 0, disabled=False), IdleState("C1", 2, disabled=False), IdleState("C6", 170, disabled=False))


def cpu(frequency: Frequency | None = None, **power: Any) -> dict[str, Any]:
    return {"cpu": replaced(facts().cpu, {"frequency": frequency, "power": Power(**power)})}


def clocks(driver: str, governor: str, preference: str | None = None, mode: str | None = None) -> dict[str, Any]:
    return cpu(Frequency(driver, mode, (ClockGroup("0-3", governor, preference),)))


METAL = {"host": identity(virtualization="none")}
SLOW: dict[str, Any] = {"clock_source": "hpet", "clock_sources": ("tsc", "hpet", "acpi_pm")}

UNKNOWN = {"cpu": replaced(facts().cpu, {"power": None, "frequency": None})}

DATA = read_cases(__file__, Throttling, clocks, cpu, identity, DEEP=DEEP, METAL=METAL, UNKNOWN=UNKNOWN)

CASES: Table = joined(
    DATA["CASES"],
    {
        "cpu.deep-idle": [("oltp", {**cpu(idle_states=DEEP[:2]), **METAL})],
        "cpu.slow-clock-source": [(cpu(**SLOW), "advice", "hpet")],
    },
)
