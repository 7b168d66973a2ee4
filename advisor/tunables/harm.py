"""When a value does harm, where nobody says so of this very value: by what is set, never by who wrote it."""

from __future__ import annotations

import re
from typing import Final

_SLOWER: Final = "Single threads are slower, as no CPU goes above its nominal clock."
_COOLER: Final = "Work waits for CPUs that take their time to reach their clock, or may not reach it."
# The id and the value, with a blank between them.
_KNOWN: Final[tuple[tuple[str, str], ...]] = (
    (r"cpufreq:boost 0|intel_pstate:no_turbo 1", _SLOWER),
    (
        r"cpufreq:.*:(governor (powersave|conservative|ondemand|schedutil)|energy_performance_preference .*power)"
        r"|intel_pstate:max_perf_pct \d\d?",
        _COOLER,
    ),
    (
        r"cpufreq:.*|intel_pstate:.*",
        "It costs power and heat at all times, and a warm package boosts single cores less.",
    ),
    (r"sysfs:.*energy_perf_bias", "A bias to performance costs power; one to power costs clock."),
    (
        r"pm-qos:.*",
        "CPUs that must not sleep deeply draw more power, and their neighbours boost less; those that may, wake up "
        "later.",
    ),
    (
        r"sysctl:vm\.swappiness",
        "A lower value drops file pages that are read again and again; a higher one swaps out programs that wait.",
    ),
    (
        r"sysctl:vm\.dirty_(background_)?(bytes|ratio)",
        "More dirty memory means longer stalls when it is written out, and more lost at a crash; with less of it, "
        "writers wait earlier, and the disk gets smaller pieces.",
    ),
    (
        r"sysctl:vm\.dirty_(expire|writeback)_centisecs",
        "What is written later is lost at a crash; what is written earlier may be written several times.",
    ),
    (
        r"sysctl:net\.(core\.[rw]mem|ipv4\.tcp_[rw]mem|ipv4\.(tcp|udp)_mem).*",
        "Larger: many sockets take memory from the page cache, and deep buffers add delay. Smaller: a long path is not "
        "filled, and bursts of datagrams are lost.",
    ),
    (
        r"sysctl:kernel\.numa_balancing",
        "Without balancing, memory of services that nobody pinned stays remote; with it, pinned ones pay for faults.",
    ),
    (r"sysctl:net\.core\.busy_.* 0", "Without polling, each answer waits for an interrupt and for a wake-up."),
    (r"sysctl:net\.core\.busy_.*", "Busy polling burns CPU time that other threads may need."),
    (
        r"thp:.*",
        "Databases with huge pages of their own stall on allocations; programs with large heaps lose without them.",
    ),
    (r"block:.*:scheduler", "Another medium or a mixed load may need fairness between readers and writers."),
    (r"block:.*:read_ahead_kb", "Random reads then fetch what nobody asked for; or streams wait for each request."),
    (r"link:.*:(ring|channels).*", "The link is interrupted for a moment; more queues take memory and interrupts."),
    (r"link:.*", "Another driver or load may need another value; offloads hide packets from captures."),
    (
        r"cmdline:(mitigations|no_?pti|pti|nospectre_v[12]|spec\w*|l1tf|mds|tsx\w*|mmio_stale_data|retbleed|srbds"
        r"|gather_data_sampling|reg_file_data_sampling|kvm-\w+\.\w*l1d\w*|init_on_\w+|randomize_kstack_offset)",
        "Where it switches a protection off, programs and guests can read memory not theirs by flaws of the CPU.",
    ),
    (r"cmdline:.*", "A wrong word can keep the host from booting; nothing of it acts before the next start."),
    (r"module:.*", "A module that is in use takes a new option with the next load only."),
    (r"unit:.*", "Whoever needs the service misses it, or its load disturbs the others."),
    (
        r"sched:.*",
        "Tasks that are switched less often wait longer for each other; more often, caches are cold more often.",
    ),
)
_OTHER_SYSCTL: Final = "A host of another size or with another load may be better off with its kernel's own value."
_OTHER: Final = "It was not measured on this host."


def hurts_when(tunable: str, value: str) -> str:
    """One sentence on when this value of a tunable does harm, be it of all that are not known."""
    return find_harm(tunable, value) or (_OTHER_SYSCTL if tunable.startswith("sysctl:") else _OTHER)


def find_harm(tunable: str, value: str) -> str | None:
    """When this value of a tunable does harm; None where that is not known."""
    both = f"{tunable} {value}"
    return next((words for pattern, words in _KNOWN if re.fullmatch(rf"(?:{pattern})(?: .*)?", both)), None)
