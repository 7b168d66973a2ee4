"""Counters of CPUs: kinds ``cpu`` (``all`` and each number), ``scheduler``, ``irq``, ``irq-cpu`` and ``thermal``.

Source: proc_stat(5); proc_interrupts(5); arch/x86/kernel/cpu/mce/therm_throt.c. Ticks are of 1/100 s on every
architecture but Alpha; only their shares are used.
"""

from __future__ import annotations

from collections.abc import Mapping

from advisor.host import Host, Missing
from advisor.host.numbers import is_count
from advisor.observe.sample import Reading, parse_counts

_TICKS = (
    *("user_ticks", "nice_ticks", "system_ticks", "idle_ticks", "iowait_ticks", "irq_ticks", "softirq_ticks"),
    *("steal_ticks", "guest_ticks", "guest_nice_ticks"),
)
_SCHEDULER = {"ctxt": "context_switches", "intr": "interrupts", "softirq": "soft_interrupts", "processes": "forks"}
_LEVELS = {"procs_running": "running", "procs_blocked": "blocked"}
_THROTTLE = (
    *("core_throttle_count", "core_throttle_total_time_ms", "core_power_limit_count"),
    *("package_throttle_count", "package_throttle_total_time_ms", "package_power_limit_count"),
)


def parse_cpu_times(text: str) -> dict[str, dict[str, int]]:
    """Ticks of ``all`` and of each CPU in /proc/stat; user time contains guest time.

    ``resting_ticks`` are idle and iowait together: the kernel may move time from the second to the first, never from
    their sum. Kernels before 2.6.11 have no steal.
    """
    found = {}
    for line in text.split("\n"):
        if not line.startswith("cpu"):
            break
        name, *words = line.split()
        counts = parse_counts(words[: len(_TICKS)]) if len(words) >= 4 else None
        if counts is not None:
            ticks = dict(zip(_TICKS, counts, strict=False))
            ticks["resting_ticks"] = ticks["idle_ticks"] + ticks.get("iowait_ticks", 0)
            found[name[3:] or "all"] = ticks
    return found


def parse_scheduler(text: str) -> tuple[dict[str, int], dict[str, float]]:
    """Context switches, interrupts, soft interrupts and forks since boot; tasks that run and that wait for storage."""
    counters: dict[str, int] = {}
    levels: dict[str, float] = {}
    for line in text.split("\n"):
        name, _, rest = line.partition(" ")
        if name in _SCHEDULER or name in _LEVELS:
            # The total comes first; the line of interrupts goes on for thousands of words.
            count = parse_counts([rest.partition(" ")[0]])
            if count:
                (counters if name in _SCHEDULER else levels)[(_SCHEDULER.get(name) or _LEVELS[name])] = count[0]
    return counters, levels


def parse_interrupts(text: str) -> dict[str, tuple[dict[str, int], str]]:
    """/proc/interrupts: for each interrupt its counts by CPU number, those that are not 0, and what it is called.

    The columns are the online CPUs. An interrupt that no CPU took has no counts; lines that are not whole are left out.
    """
    head, _, rest = text.partition("\n")
    cpus = [word[3:] for word in head.split()]
    if not cpus or not all(word.startswith("CPU") for word in head.split()):
        return {}
    found = {}
    for line in rest.split("\n"):
        name, colon, values = line.partition(":")
        words = values.split(None, len(cpus))
        counts = parse_counts(words[: len(cpus)]) if colon and len(words) >= len(cpus) else None
        if counts is not None:
            by_cpu = {cpu: count for cpu, count in zip(cpus, counts, strict=True) if count}
            found[name.strip()] = by_cpu, " ".join(words[len(cpus)].split()) if len(words) > len(cpus) else ""
    return found


def read_cpus(host: Host, reading: Reading) -> None:
    reading.ask("cpu", "scheduler")
    text = reading.read_file(host, "/proc/stat", "cpu")
    times = parse_cpu_times(text)
    if not times and "cpu" not in reading.missing:
        reading.note_missing("cpu", "/proc/stat: no line of a CPU that can be read")
    for name, ticks in times.items():
        reading.add("cpu", name, ticks)
    reading.add("scheduler", "host", *parse_scheduler(text))


def read_task_table(host: Host, reading: Reading) -> None:
    """Kind ``tasks``: threads of the whole host, of /proc/loadavg (proc_loadavg(5)), and the most that it can have."""
    reading.ask("tasks")
    _, _, every = host.read_or_empty("/proc/loadavg").partition("/")
    limits = {name: host.read_int(f"/proc/sys/kernel/{name}") for name in ("pid_max", "threads-max")}
    levels: dict[str, float] = {name: limit for name, limit in limits.items() if not isinstance(limit, Missing)}
    count = parse_counts(every.split()[:1]) if every.split() else None
    if count:
        reading.add("tasks", "host", None, {"tasks": count[0], **levels})


def read_interrupts(host: Host, reading: Reading) -> None:
    """``irq`` has each interrupt's counts by CPU; ``irq-cpu`` each CPU's count of all of them."""
    reading.ask("irq", "irq-cpu")
    by_cpu: dict[str, int] = {}
    found = parse_interrupts(reading.read_file(host, "/proc/interrupts", "irq"))
    for name, (counts, called) in found.items():
        # One that no CPU has taken yet is counted from 0 once one does.
        reading.add(
            "irq", name, {**counts, "total": sum(counts.values())}, words={"called": called} if called else None
        )
        for cpu, count in counts.items():
            by_cpu[cpu] = by_cpu.get(cpu, 0) + count
    for cpu, count in by_cpu.items():
        reading.add("irq-cpu", cpu, {"total": count})
    if not found and "irq" not in reading.missing:
        reading.note_missing("irq", "/proc/interrupts: no line that can be read")


def read_thermal(host: Host, reading: Reading) -> None:
    """How often, and for how many ms, each CPU's core and package were slowed down for heat or power; x86 alone."""
    reading.ask("thermal")
    top = "/sys/devices/system/cpu"
    for name in host.names(top):
        if name.startswith("cpu") and is_count(name[3:]):
            counters = read_numbers(host, f"{top}/{name}/thermal_throttle", _THROTTLE)
            reading.add("thermal", name[3:], counters)


def read_numbers(host: Host, directory: str, fields: tuple[str, ...]) -> Mapping[str, int]:
    """The attributes of a directory that are there and are counts."""
    found = {}
    if host.is_dir(directory):
        for field in fields:
            text = host.read(f"{directory}/{field}")
            counts = None if isinstance(text, Missing) else parse_counts([text])
            if counts:
                found[field] = counts[0]
    return found
