"""Whole commands side by side: wall time, CPU time and memory of each, interleaved so that noise falls on all alike.

    python benchmarks/commands.py            this host, with whichever rivals are installed
    python benchmarks/commands.py start      what a start costs, against the interpreter, lshw and tuned-adm: the ratios
    python benchmarks/commands.py links      scan of 10, 100 and 1,000 links in a network namespace (needs root)

Prints Markdown tables; docs/benchmarks.md holds one run. Reads only: the host is left as it is.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ADVISOR = str(Path(sys.executable).parent / "advisor")
ROUNDS = int(os.environ.get("ADVISOR_BENCH_ROUNDS", "15"))

OURS = {
    "advisor scan --json": [ADVISOR, "scan", "--json"],
    "advisor plan socket-buffers-8m": [ADVISOR, "plan", "socket-buffers-8m", "--json"],
    "advisor verify": [ADVISOR, "verify", "--json"],
}
RIVALS = {
    "lshw -json": ["lshw", "-quiet", "-json"],
    "lstopo": ["lstopo-no-graphics", "--of", "xml", "-"],
    "tuned-adm list": ["tuned-adm", "list"],
    "tuned-adm verify": ["tuned-adm", "verify"],
}


class Cost(NamedTuple):
    wall_ms: float
    cpu_ms: float
    peak_mib: float


def measure_command(command: list[str]) -> Cost:
    """One run from outside: wall clock, the kernel's accounting of CPU time, and the largest resident set."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = 0
    return Cost(wall * 1000, (usage.ru_utime + usage.ru_stime) * 1000, usage.ru_maxrss / 1024)


def run_interleaved(commands: dict[str, list[str]], rounds: int = ROUNDS) -> dict[str, list[Cost]]:
    """``rounds`` runs of each, one after the other in turn; the first round warms caches and is left out."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            cost = measure_command(command)
            if number:
                costs[name].append(cost)
    return costs


def print_table(costs: dict[str, list[Cost]], reference: str) -> None:
    """Medians, and the ratio of wall times to the reference's, round by round."""
    print(f"| command | wall ms (min–max) | CPU ms | MiB | wall / {reference} |\n|---|---|---|---|---|")
    base = [cost.wall_ms for cost in costs[reference]]
    for name, runs in costs.items():
        walls = [cost.wall_ms for cost in runs]
        ratio = statistics.median(wall / other for wall, other in zip(walls, base, strict=True))
        print(
            f"| `{name}` | {statistics.median(walls):.0f} ({min(walls):.0f}–{max(walls):.0f})"
            f" | {statistics.median(cost.cpu_ms for cost in runs):.0f}"
            f" | {max(cost.peak_mib for cost in runs):.0f} | {ratio:.2f} |"
        )


def commands() -> None:
    found = {name: command for name, command in {**OURS, **RIVALS}.items() if shutil.which(command[0])}
    # An empty store of our own: what verify costs, not what this machine's history is.
    os.environ["ADVISOR_STATE_DIR"] = "/tmp/advisor-bench-state"
    print(f"{os.uname().sysname} {os.uname().release}, {os.cpu_count()} CPUs, {ROUNDS} rounds\n")
    print_table(run_interleaved({"python3 -c pass": [sys.executable, "-c", "pass"], **found}), "advisor scan --json")


# a call, its reference, and the largest ratio that is wanted
WANTED = (
    ("advisor --version", "python -c pass", 3.0),
    ("advisor scan", "lshw -json", 1.6),
    ("advisor scan --json", "lshw -json", 1.6),
    ("advisor verify", "tuned-adm verify", 1.6),
    ("advisor status", "tuned-adm verify", 1.6),
    ("completion of a word", "tuned-adm verify", 1.6),
)
"""A call, the command that it is compared with, and the largest accepted ratio of CPU times."""


def start() -> None:
    """Installed from a wheel into a fresh environment, as a user has it: an editable install costs at every start."""
    with tempfile.TemporaryDirectory(prefix="advisor-bench.") as place:
        programs = _install_programs(Path(place))
        os.environ["ADVISOR_STATE_DIR"] = f"{place}/state"
        own = str(programs / "advisor")
        asked = ["env", "_ADVISOR_COMPLETE=complete_bash", "COMP_WORDS=advisor sc", "COMP_CWORD=1", own]
        calls = {"python -c pass": [str(programs / "python"), "-c", "pass"], "completion of a word": asked}
        calls |= {what: [own, *what.split()[1:]] for what, _, _ in WANTED if what.startswith("advisor ")}
        calls |= {name: command for name, command in RIVALS.items() if shutil.which(command[0])}
        costs = run_interleaved(calls)
    print(f"{os.uname().sysname} {os.uname().release}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.0f}\n")
    print("| call | CPU ms, shortest (median) | compared with | CPU ms | CPU ratio | wall ratio | wanted |")
    print("|---|---|---|---|---|---|---|")
    for what, reference, most in WANTED:
        if reference in costs:
            ratios = (_cost_ratio(costs[what], costs[reference], field) for field in (1, 0))
            print(
                f"| `{what}` | {_format_cpu(costs[what])} | `{reference}` | {_format_cpu(costs[reference])}"
                f" | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} | ≤ {most:g} |"
            )


def _install_programs(place: Path) -> Path:
    """The directory of programs of a new environment that has the wheel of this checkout."""
    root = Path(__file__).parents[1]
    subprocess.run([sys.executable, "-m", "uv", "build", "--wheel", "-q", "-o", str(place), str(root)], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(place / "env")], check=True)
    subprocess.run([str(place / "env/bin/pip"), "install", "-q", *map(str, place.glob("*.whl"))], check=True)
    return place / "env/bin"


def _format_cpu(runs: list[Cost]) -> str:
    times = [run.cpu_ms for run in runs]
    return f"{min(times):.0f} ({statistics.median(times):.0f})"


def _cost_ratio(ours: list[Cost], others: list[Cost], field: int) -> float:
    """Of the shortest times: what other work on the machine adds is never taken away again."""
    return min(one[field] for one in ours) / min(other[field] for other in others)


def links() -> None:
    """Runs itself again inside a network namespace of its own, where it may make links."""
    if os.environ.get("ADVISOR_BENCH_NAMESPACE") != "1":
        inside = ["unshare", "--net", "--mount", sys.executable, __file__, "links"]
        raise SystemExit(subprocess.call(inside, env={**os.environ, "ADVISOR_BENCH_NAMESPACE": "1"}))
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
    print("| links | wall ms | CPU ms | µs of CPU for each further link |\n|---|---|---|---|")
    made, last = 0, (0, 0.0)
    for count in (10, 100, 1000):
        lines = [f"link add v{number} type veth peer name w{number}" for number in range(made // 2, count // 2)]
        subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)
        made = count
        runs = run_interleaved({"scan": OURS["advisor scan --json"]}, max(5, ROUNDS // 2))["scan"]
        wall, cpu = (statistics.median(run[field] for run in runs) for field in (0, 1))
        slope = f"{(cpu - last[1]) * 1000 / (count - last[0]):.0f}" if last[0] else ""
        print(f"| {count} | {wall:.0f} | {cpu:.0f} | {slope} |")
        last = (count, cpu)


if __name__ == "__main__":
    {"links": links, "start": start}.get("".join(sys.argv[1:]), commands)()
