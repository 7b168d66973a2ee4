"""Values of the kernel that imported profiles set as a rule: read for a snapshot, so that it can answer for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from advisor.host import Host
from advisor.planning.expansion import expand_targets
from advisor.planning.observations import observe_targets
from advisor.planning.records import PlanTarget
from advisor.tunables.sched import KEYS

# Each with a value that it takes, as some of what bears on a value is read for one alone.
_VALUES: Final[Mapping[str, str]] = {
    "cpufreq:*:governor": "performance",
    "cpufreq:*:energy_performance_preference": "performance",
    "cpufreq:*:scaling_min_freq": "1",
    "cpufreq:*:scaling_max_freq": "1",
    "cpufreq:boost": "1",
    "intel_pstate:no_turbo": "0",
    "intel_pstate:min_perf_pct": "100",
    "intel_pstate:max_perf_pct": "100",
    "pm-qos:cpu_dma_latency": "0",
    "cmdline:advisor": "(set)",
    "module:advisor": "loaded",
    **{f"sched:{key}": "full" if key == "preempt" else "1" for key in KEYS},
}


def read_kernel_values(host: Host) -> None:
    """Read what plans for these values read."""
    targets = tuple(PlanTarget(name, value, "exactly", "", "", (), "advisor") for name, value in _VALUES.items())
    observe_targets(host, expand_targets(host, targets)[0], {})
