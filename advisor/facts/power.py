"""What decides how fast CPUs run and wake up: turbo, idle states, SMT, the clock source, and heat.

Sources: the kernel's admin-guide/pm/cpufreq, cpuidle and intel_pstate; ABI/testing/sysfs-devices-system-cpu (smt,
thermal_throttle). Governor and energy preference are in `advisor.facts.frequency`.
"""

from __future__ import annotations

import re

import msgspec

from advisor.facts.block import clean
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
