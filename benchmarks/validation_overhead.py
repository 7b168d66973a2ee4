"""What the tool itself costs for each run, beyond the bare fio of the same command line.

    python -m benchmarks.validation_overhead [PAIRS]      default: 8 pairs of 1 s and 8 of 2 s; needs root

A self-test of the real session on /var/tmp. Next to each of its runs the same fio is started once more with nothing
around it, before or after by turns, so that what else the host does falls on both alike.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

import msgspec

from advisor.host import live_host
from advisor.proof.process import EndedProcess, FioProcess, Stop
from advisor.proof.scratch import MIB
from advisor.proof.session import Settings, self_test

WORKLOAD = "infoscale.4k-rand-r100"


class Cost(msgspec.Struct, frozen=True):
    """Seconds of one run: wall clock inside the runner, outside it since the run before, and of the bare fio; and the
    CPU time that our own process spent meanwhile."""

    runner: float
    between: float
    bare: float
    cpu: float

    @property
    def overhead(self) -> float:
        """The tool's own time over the bare fio's."""
        return (self.runner + self.between) / self.bare - 1


class PairedRunner:
    """The real runner; next to each of its runs, outside its clock, a bare fio with the same arguments."""

    def __init__(self) -> None:
        self.costs: list[Cost] = []
        self.ended: float | None = None
        self.cpu_ended = 0.0

    def run(
        self, argv: Sequence[str], *, timeout: float, cwd: str, stop: Stop, keep_open: Sequence[int] = ()
    ) -> EndedProcess:
        called, cpu_called = time.perf_counter(), time.process_time()
        if argv[1:] == ["--version"]:
            return FioProcess().run(argv, timeout=timeout, cwd=cwd, stop=stop)
        is_bare_first = len(self.costs) % 2 == 0
        bare = _run_bare(argv, cwd) if is_bare_first else 0.0
        began, cpu_began = time.perf_counter(), time.process_time()
        done = FioProcess().run(argv, timeout=timeout, cwd=cwd, stop=stop)
        runner, cpu = time.perf_counter() - began, time.process_time() - cpu_began
        bare = bare or _run_bare(argv, cwd)
        # before the first run lies the making of the scratch file
        gap = called - self.ended if self.ended is not None else 0.0
        self.costs.append(Cost(runner, gap, bare, cpu + cpu_called - self.cpu_ended))
        self.ended, self.cpu_ended = time.perf_counter(), time.process_time()
        return done


def _run_bare(argv: Sequence[str], cwd: str) -> float:
    began = time.perf_counter()
    # a session of its own as in the runner: the scheduler may give each session its own share of the CPU
    subprocess.run(
        argv, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True, check=True
    )
    return time.perf_counter() - began


def measure(seconds: float, pairs: int) -> list[Cost]:
    """Every run of one self-test, without the first, before which the scratch file was made."""
    paired = PairedRunner()
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="advisor-overhead-") as place:
        budget = 60 + pairs * 2 * 2 * (seconds + 1.0)
        chosen = Settings(
            target=place,
            mode="quick",
            seconds=seconds,
            scratch_bytes=64 * MIB,
            byte_budget=512 * MIB,
            force=True,
            budget_seconds=budget,
            seed=1,
        )
        self_test(live_host(), [WORKLOAD], chosen, runner=paired)
    return paired.costs[1 : 2 * pairs + 1]


def main(pairs: int = 8) -> None:
    print("| run | runs | bare fio s | tool s | overhead (min–max) | in the runner ms | between ms | own CPU ms |")
    print("|---|---|---|---|---|---|---|---|")
    for seconds in (1.0, 2.0):
        costs = measure(seconds, pairs)
        bare, runner, between, cpu = (
            statistics.median(getattr(cost, field) for cost in costs) for field in ("bare", "runner", "between", "cpu")
        )
        shares = [cost.overhead for cost in costs]
        extra = statistics.median(cost.runner - cost.bare for cost in costs)
        print(
            f"| {seconds:g} s | {len(costs)} | {bare:.3f} | {runner + between:.3f}"
            f" | {statistics.median(shares):+.1%} ({min(shares):+.1%} to {max(shares):+.1%})"
            f" | {extra * 1000:+.1f} | {between * 1000:.1f} | {cpu * 1000:.1f} |"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
