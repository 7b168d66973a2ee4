"""Values of the CPUs' clocks that bear on each other: their order, and which the kernel does not take together."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.host.numbers import is_count
from advisor.planning.observations import Observations, ObservedTarget
from advisor.planning.records import PlanTarget

_LOWEST = ("scaling_min_freq", "min_perf_pct")
_HIGHEST = ("scaling_max_freq", "max_perf_pct")
_PREFERENCE = "energy_performance_preference"
_KINDS = ("cpufreq:", "intel_pstate:")
_TURBO_ON = {"intel_pstate:no_turbo": "0", "cpufreq:boost": "1"}


def clock_clashes(seen: Observations) -> dict[str, str]:
    """Values that the kernel would refuse with the other values of the plan: id → the reason."""
    found = ((name, _explain_clash(name, one, seen)) for name, one in seen.values.items() if name.startswith(_KINDS))
    return {name: why for name, why in found if why is not None}


def _explain_clash(name: str, one: ObservedTarget, seen: Observations) -> str | None:
    for other, after in _read_others(one, seen):
        if name.endswith(_PREFERENCE) and after == "performance" and one.combined not in (None, "performance"):
            return f"{other} is then performance, and its driver takes no preference but performance with it"
        if name.endswith(_LOWEST) and _parse_number(one.combined) > _parse_number(after) > 0:
            return f"{one.combined} would be above {other}, which is then {after}"
    return None


def clock_rank(target: PlanTarget, seen: Observations) -> int:
    """What is added to a target's rank: the clock stays possible at every step, as the highest rises before the lowest
    and sinks after it, turbo comes first and goes last, and a preference is set under the governor that takes it."""
    one = seen.values.get(target.tunable)
    if one is None or not target.tunable.startswith(_KINDS) or not isinstance(one.live, str):
        return 0
    if target.tunable in _TURBO_ON:
        return -1 if one.combined == _TURBO_ON[target.tunable] else 2
    if target.tunable.endswith(_PREFERENCE):
        return 1
    return 1 if target.tunable.endswith(_HIGHEST) and _parse_number(one.combined) < _parse_number(one.live) else 0


def _read_others(one: ObservedTarget, seen: Observations) -> Iterator[tuple[str, str]]:
    """What other values are once the plan is carried out."""
    for name, live in one.preflight.related:
        other = seen.values.get(name)
        yield name, live if other is None or other.combined is None else other.combined


def _parse_number(text: str | None) -> int:
    return int(text) if text is not None and is_count(text) else 0
