"""low-latency: what the kernel does on its own next to a program, as counts of 20 s: faults of the balancing of NUMA
nodes, runs of the work that sums up memory statistics, and timers that are moved to another CPU than the one that set
them.

Run by `python -m benchmarks.profile_records low-latency`. Restores the three values and leaves tracing as it was, which
is off. Wake-up times are not measured: the clock of an emulated machine is no measure.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from .guest import counters, print_table, require_guest, shell, sysctl

SECONDS = 20
TRACING = Path("/sys/kernel/tracing")
BALANCED = ("numa_pte_updates", "numa_hint_faults", "numa_pages_migrated")
READER = """
import mmap, os, time
os.sched_setaffinity(0, {0, 1})
memory = mmap.mmap(-1, 128 << 20)
for offset in range(0, len(memory), 4096): memory[offset] = 1
os.sched_setaffinity(0, {2, 3})
end = time.monotonic() + 60
while time.monotonic() < end:
    for offset in range(0, len(memory), 4096): memory[offset]
"""


def balance(value: int) -> list[int]:
    """What the kernel does to a program that was moved to the other node."""
    with sysctl("kernel.numa_balancing", value):
        reader = subprocess.Popen([sys.executable, "-c", READER])
        time.sleep(10)
        first = counters("/proc/vmstat")
        time.sleep(SECONDS)
        last = counters("/proc/vmstat")
        reader.kill()
        reader.wait()
    return [last[name] - first[name] for name in BALANCED]


def trace(event: str, condition: str) -> list[str]:
    """The lines of one event in SECONDS."""
    place = TRACING / "events" / event
    (place / "filter").write_text(condition)
    (TRACING / "trace").write_text("")
    (TRACING / "buffer_size_kb").write_text("8192")
    (place / "enable").write_text("1")
    time.sleep(SECONDS)
    (place / "enable").write_text("0")
    (place / "filter").write_text("0")
    return [line for line in (TRACING / "trace").read_text().splitlines() if line and not line.startswith("#")]


def statistics_runs(value: int) -> int:
    """Runs of vmstat_update on all CPUs, while a program allocates and frees."""
    with sysctl("vm.stat_interval", value):
        time.sleep(value)
        busy = subprocess.Popen(
            ["sh", "-c", "while :; do dd if=/dev/zero of=/dev/null bs=1M count=20 2>/dev/null; done"]
        )
        try:
            return sum("vmstat_update" in line for line in trace("workqueue/workqueue_execute_start", "0"))
        finally:
            busy.kill()
            busy.wait()


def moved_timers(value: int) -> tuple[int, int]:
    """Timers that were started for another CPU than the one that started them, and all."""
    with sysctl("kernel.timer_migration", value):
        time.sleep(2)
        lines = trace("timer/timer_start", "0")
    moved = total = 0
    for line in lines:
        here, there = re.search(r"\[(\d+)\]", line), re.search(r" cpu=(\d+)", line)
        if here and there:
            total += 1
            moved += int(here[1]) != int(there[1])
    return moved, total


def main() -> None:
    """Print three tables."""
    require_guest()
    if not (TRACING / "events").exists():
        shell(f"mount -t tracefs tracefs {TRACING}")
    rounds = (0, 1)
    print_table(
        ("kernel.numa_balancing", *BALANCED), [(str(value), *balance(value)) for _ in rounds for value in (1, 0)]
    )
    print_table(
        ("vm.stat_interval", f"runs in {SECONDS} s on {os.cpu_count()} CPUs"),
        [(str(value), statistics_runs(value)) for _ in rounds for value in (1, 10)],
    )
    print_table(
        ("kernel.timer_migration", "timers for another CPU", "of"),
        [(str(value), *moved_timers(value)) for _ in rounds for value in (1, 0)],
    )


if __name__ == "__main__":
    main()
