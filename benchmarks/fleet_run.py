"""What a fleet over ssh costs: ``python -m benchmarks.fleet_run [--hosts 10,30,100] [--forks 20]``. Needs root.

The hosts are namespaces of this machine with an sshd each (tests/fleet/hosts.py). On each size in turn: Ansible alone
(``raw -a true``: a connection and nothing else; ``setup``: its own facts, for which Python is there), a scan, jumbo
frames applied in waves with their gates, verified and rolled back. What each command costs the controller is separated
from what it costs the hosts, which share this machine's CPUs; nothing is left when it ends.

Prints Markdown tables; docs/benchmarks.md holds one run. ``--only`` leaves steps out, ``--json FILE`` keeps all
figures, ``--read FILE,FILE`` prints the tables of such files once more.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.fleet_meters import ROLES, Cost, command_lines, measure_cost
from tests.fleet.hosts import Hosts, Kind, why_not

ADVISOR: Final = (sys.executable, "-P", "-m", "advisor", "fleet")
ANSIBLE: Final = str(Path(sys.executable).parent / "ansible")
WINDOW_SECONDS: Final = 3600
"""Of a wave: as the CPUs carry the hosts as well, a wave of 50 takes longer here than on 50 machines."""
MIB: Final = 1 << 20


class Step(NamedTuple):
    """A command, its environment, and what its document has to say about every host."""

    words: tuple[str | Path, ...]
    more: Mapping[str, str]
    states: str | None


def steps(inventory: Path, forks: int) -> dict[str, Step]:
    """In the order in which they are run; each but the first two is the product's own."""
    limit = ("--forks", str(forks))
    ansible = (ANSIBLE, "all", "-i", inventory, *limit)
    pipelined = {"ANSIBLE_PIPELINING": "1"}
    advisor = {"ADVISOR_BENCH": "1"}
    jumbo = ("jumbo-frames", "--set", "links=eth0", "-i", inventory, "--confirm-within", str(WINDOW_SECONDS))
    return {
        "ansible -m raw -a true": Step((*ansible, "-m", "ansible.builtin.raw", "-a", "true"), {}, None),
        "ansible -m setup": Step((*ansible, "-m", "ansible.builtin.setup"), pipelined, None),
        "fleet scan": Step((*ADVISOR, "scan", "-i", inventory, *limit, "--json"), advisor, "ok"),
        "fleet apply": Step((*ADVISOR, "apply", *jumbo, *limit, "--json"), advisor, "applied"),
        "fleet verify": Step((*ADVISOR, "verify", *limit, "--json"), advisor, "as-set"),
        "fleet rollback": Step((*ADVISOR, "rollback", "--json"), advisor, "rolled-back"),
    }


def run(count: int, forks: int, only: Sequence[str]) -> dict[str, Any]:
    """All steps on so many hosts. What one costs, and whether every host came out of it as it should."""
    found: dict[str, Any] = {"hosts": count, "forks": forks, "steps": {}}
    # What a rival needs, and what the gate of a wave asks with.
    kind = Kind(has_python=True)
    began = time.monotonic()
    with Hosts(count, **{f"node{at:02}": kind for at in range(1, count + 1)}) as hosts:
        found["up_seconds"] = time.monotonic() - began
        inventory = hosts.inventory(more="[storage:vars]\nansible_python_interpreter=/usr/bin/python3")
        for name, step in steps(inventory, forks).items():
            if only and not any(word in name for word in only):
                continue
            cost = measure_cost(hosts, step.words, step.more)
            found["steps"][name] = {**cost._asdict(), "memory": cost.memory._asdict(), "said": ""}
            wrong = _find_fault(step, cost, hosts)
            found["steps"][name]["wrong"] = wrong
            _print_line(
                f"{count} hosts, {name}: code {cost.code}, {cost.wall:.0f} s at load {cost.load:.0f}; {wrong or 'ok'}"
            )
            if wrong:
                _print_line(cost.said[-3000:])
        home = str(hosts.home)
    found["left"] = left_behind(home)
    return found


def left_behind(home: str) -> list[str]:
    """What of the hosts is still on this machine: processes, mounts and directories that name their home."""
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if home in line]
    processes = [f"{pid}: {line}" for pid, line in command_lines() if home in line]
    return [*mounts, *processes, *([home] if Path(home).exists() else [])]


def _find_fault(step: Step, cost: Cost, hosts: Hosts) -> str:
    """What is not as it should be, in words; empty where all is well."""
    if cost.code:
        return f"exit code {cost.code}"
    if step.states is None:
        answered = cost.said.count(" | CHANGED | ") + cost.said.count(" | SUCCESS => ")
        return "" if answered == len(hosts.names) else f"{answered} hosts answered"
    document = json.loads((hosts.home / "said.out").read_text())
    states = [host["state"] for host in document["hosts"]]
    odd = [host["name"] for host in document["hosts"] if host["state"] != step.states]
    return (
        "" if len(states) == len(hosts.names) and not odd else f"{len(states)} reported, not {step.states}: {odd[:10]}"
    )


def _print_line(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def format_tables(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Costs for each host, memory of the controller by what runs there, and how it grows with the hosts."""
    yield "| command | hosts | CPU s, controller | ms per host | CPU s, hosts | wall s (load) |"
    yield "|---|---|---|---|---|---|"
    for name, found, cost in _step_costs(runs):
        count = found["hosts"]
        yield (
            f"| `{name}` | {count} | {cost['cpu']:.1f} | {cost['cpu'] / count * 1000:.0f} | {cost['hosts_cpu']:.1f} "
            f"| {cost['wall']:.0f} ({cost['load']:.0f}) |"
        )
    yield from ("", "| command | hosts | KB sent to each | received | between hosts | kept | files |")
    yield "|---|---|---|---|---|---|---|"
    for name, found, cost in _step_costs(runs):
        sizes = (cost[key] / found["hosts"] / 1000 for key in ("sent", "received", "between", "kept_bytes"))
        cells = " | ".join(f"{size:.1f}" for size in sizes)
        yield f"| `{name}` | {found['hosts']} | {cells} | {cost['kept_files'] / found['hosts']:.1f} |"
    yield from ("", "| command | hosts | MiB in all | advisor | Ansible | workers | receivers | ssh | of a host |")
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, found, cost in _step_costs(runs):
        memory = cost["memory"]
        by_role = " | ".join(f"{memory['highest'][role] / MIB:.0f}" for role in ROLES[:5])
        one = cost["hosts_memory"] / found["hosts"] / MIB
        yield f"| `{name}` | {found['hosts']} | {memory['total'] / MIB:.0f} | {by_role} | {one:.1f} |"
    yield ""
    yield from format_growth(runs)


def merge_runs(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Runs on as many hosts with as many forks become one, of all their steps."""
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for one in runs:
        known = found.setdefault((one["hosts"], one["forks"]), {**one, "steps": {}})
        known["steps"].update(one["steps"])
    return list(found.values())


def format_growth(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Between the smallest and the largest number of hosts: what each further one costs the controller."""
    least, most = min(runs, key=lambda one: one["hosts"]), max(runs, key=lambda one: one["hosts"])
    more = most["hosts"] - least["hosts"]
    if not more:
        return
    yield f"| each further host, {least['hosts']} to {most['hosts']} | CPU ms | KiB of advisor | KiB of Ansible |"
    yield "|---|---|---|---|"
    for name in most["steps"]:
        first, last = least["steps"].get(name), most["steps"][name]
        if first is None:
            continue
        kib = [(last["memory"]["highest"][role] - first["memory"]["highest"][role]) / more / 1024 for role in ROLES[:2]]
        yield f"| `{name}` | {(last['cpu'] - first['cpu']) / more * 1000:.0f} | {kib[0]:.1f} | {kib[1]:.1f} |"


def _step_costs(runs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    for name in dict.fromkeys(name for found in runs for name in found["steps"]):
        for found in runs:
            if name in found["steps"]:
                yield name, found, found["steps"][name]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", default="10,30,100", help="numbers of hosts (%(default)s)")
    parser.add_argument("--forks", type=int, default=20, help="so many hosts at a time (%(default)s)")
    parser.add_argument("--only", default="", help="steps whose name holds one of these words: scan,raw")
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--read", help="run nothing, print the tables of such files")
    given = parser.parse_args()
    if given.read:
        print(
            "\n".join(
                format_tables(
                    merge_runs([run for path in given.read.split(",") for run in json.loads(Path(path).read_text())])
                )
            )
        )
        return 0
    if why := why_not():
        _print_line(why)
        return 2
    runs = []
    for count in map(int, given.hosts.split(",")):
        runs.append(run(count, given.forks, [word for word in given.only.split(",") if word]))
        if given.json:
            given.json.write_text(json.dumps(runs, indent=1))
    print("\n".join(format_tables(runs)))
    for found in runs:
        _print_line(f"{found['hosts']} hosts: " + ("; ".join(found["left"]) or "nothing is left of them"))
    return 1 if any(cost["wrong"] for _, _, cost in _step_costs(runs)) or any(found["left"] for found in runs) else 0


if __name__ == "__main__":
    sys.exit(main())
