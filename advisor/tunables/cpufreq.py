"""Kind ``cpufreq:``: how clocks of CPUs are chosen, and whether they boost."""

from __future__ import annotations

from advisor.tunables.cpufreq_boost import CpuBoost
from advisor.tunables.cpufreq_policy import CPUFREQ, CpuFrequency
from advisor.tunables.kind import Capture, Kind
from advisor.tunables.tunable import Tunable


def parse_cpufreq(rest: str) -> Tunable:
    """The tunable of ``boost`` or ``POLICY:ATTRIBUTE``. Raises UsageError for what names none."""
    return CpuBoost.parse(rest) if rest == "boost" else CpuFrequency.parse(rest)


KIND = Kind(
    name="cpufreq",
    order=100,
    parse=parse_cpufreq,
    noun="clock setting",
    examples=(("cpufreq:policy0:governor", "performance"), ("cpufreq:boost", "1")),
    capture=Capture(
        files=(
            (CPUFREQ, ("boost",)),
            (
                f"{CPUFREQ}/policy*",
                (
                    *("scaling_driver", "scaling_governor", "scaling_available_governors"),
                    *("scaling_min_freq", "scaling_max_freq", "cpuinfo_min_freq", "cpuinfo_max_freq"),
                    *("energy_performance_preference", "energy_performance_available_preferences"),
                ),
            ),
        ),
        listed=(CPUFREQ,),
        values={
            "cpufreq:*:governor": "performance",
            "cpufreq:*:energy_performance_preference": "performance",
            "cpufreq:*:scaling_min_freq": "1",
            "cpufreq:*:scaling_max_freq": "1",
            "cpufreq:boost": "1",
        },
    ),
    written_by=frozenset({"tuned", "saptune", "power-profiles-daemon"}),
    sysfs=(
        (rf"{CPUFREQ}/(policy\d+)/(?:scaling_)?(governor|energy_performance_preference)", r"cpufreq:\1:\2"),
        (rf"{CPUFREQ}/(policy\d+)/(scaling_(?:min|max)_freq)", r"cpufreq:\1:\2"),
        (rf"{CPUFREQ}/boost", "cpufreq:boost"),
    ),
    units=((r".*_freq", "kHz"),),
    harms=(
        (r"boost 0", "Single threads are slower, as no CPU goes above its nominal clock."),
        (
            r".*:(governor (powersave|conservative|ondemand|schedutil)|energy_performance_preference .*power)",
            "Work waits for CPUs that take their time to reach their clock, or may not reach it.",
        ),
        (r".*", "It costs power and heat at all times, and a warm package boosts single cores less."),
    ),
)
