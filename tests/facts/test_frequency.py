"""Driver, governor and preference of the CPUs' clocks, alike or not."""

from __future__ import annotations

from advisor.facts.processors.power import ClockGroup, Frequency, read_frequency
from advisor.facts.unknown import Unknowns
from advisor.host import Host, MemoryFiles, NoCommands

CPUS = "/sys/devices/system/cpu"


def read(files: dict[str, str]) -> tuple[Frequency | None, Unknowns]:
    unknown = Unknowns()
    contents = {f"{CPUS}/{path}": text.encode() for path, text in files.items()}
    return read_frequency(Host(MemoryFiles(contents), NoCommands()), unknown), unknown


def policies(**governors: str) -> dict[str, str]:
    return {f"cpufreq/{name}/scaling_governor": f"{text}\n" for name, text in governors.items()}


def test_policies_that_are_set_alike_are_one_group() -> None:
    names = {f"policy{number}": "powersave" for number in (0, 1, 2, 10)} | {"policy11": "performance"}
    files = policies(**names) | {"cpufreq/policy0/scaling_driver": "intel_pstate\n", "intel_pstate/status": "active\n"}
    files |= {f"cpufreq/{name}/energy_performance_preference": "balance_power\n" for name in names}
    found, unknown = read(files)
    assert found == Frequency(
        "intel_pstate",
        "active",
        (ClockGroup("0-2,10", "powersave", "balance_power"), ClockGroup("11", "performance", "balance_power")),
    )
    assert unknown.listed() == ()


def test_a_virtual_machine_has_none() -> None:
    assert read({"online": "0-3"})[0] is None
    assert read({"cpufreq/boost": "1", "cpufreq/policyx/scaling_governor": "a"})[0] is None


def test_odd_words_are_unknown_and_never_raise() -> None:
    found, unknown = read(
        policies(policy0="a b\x1b[0m", policy99999="x" * 99) | {"cpufreq/policy0/scaling_driver": "\0"}
    )
    assert found == Frequency(None, None, (ClockGroup("0,99999", None, None),))
    assert [one.fact for one in unknown.listed()] == ["cpu.frequency.driver"]
