"""How the clocks of the CPUs are chosen: driver, governor and preference (the kernel's admin-guide/pm/cpufreq)."""

from __future__ import annotations

import re

import msgspec

from advisor.facts.cpulist import format_list
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, lazy_regex

_CPUS = "/sys/devices/system/cpu"
_WORD = lazy_regex(r"[A-Za-z0-9_.-]{1,40}", re.ASCII)


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


def _read_word(host: Host, path: str) -> str | None:
    text = host.read(path)
    return None if isinstance(text, Missing) or not _WORD.fullmatch(text) else text
