"""What it costs to read the sysctls that the kernel changes together: 50 values planned and applied, verified, rolled
back by this version and by an earlier one, in turn.

    git worktree add /tmp/earlier COMMIT
    python -m benchmarks.coupled_reads /tmp/earlier [ROUNDS]      needs root; runs in a network namespace of its own

CPU time in milliseconds: of the work alone, and of the whole process. Prints a Markdown table; docs/benchmarks.md holds
one run. The machine is left as it is.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_LINKS = "ip link set lo up; for one in 0 1 2 3; do ip link add v$one type veth peer name w$one; done"
_COUNT = 50
STEPS = ("plan and apply", "verify", "rollback", "whole process")


def keys(kind: str) -> list[str]:
    """50 keys that hold a number: of no group, half of them with a group, all of them with one."""
    below = Path("/proc/sys/net")
    plain = sorted((below / "ipv4").glob("tcp_*"))
    wide = [
        path
        for place in (
            "ipv4/conf/all",
            "ipv4/conf/default",
            "ipv6/conf/all",
            "ipv6/conf/default",
            "ipv4/conf/v0",
            "ipv6/conf/v0",
        )
        for path in sorted((below / place).iterdir())
    ]
    groups = {"none": (plain, 1), "half": (plain, 2), "all": (wide, 1)}
    first, part = groups[kind]
    found = [path for path in first if _is_usable(path)][: _COUNT // part]
    found += [path for path in wide if _is_usable(path) and path not in found][: _COUNT - len(found)]
    return [str(path.relative_to("/proc/sys")).replace("/", ".") for path in found]


def _is_usable(path: Path) -> bool:
    """Whether it holds 0 or 1, takes the other of the two, and shows it."""
    try:
        live = path.read_text()
        if live not in ("0\n", "1\n") or path.name in ("forwarding", "disable_ipv6"):
            return False
        other = "1\n" if live == "0\n" else "0\n"
        path.write_text(other)
        is_taken = path.read_text() == other
        path.write_text(live)
        return is_taken and path.read_text() == live
    except OSError:
        return False


def work(kind: str) -> None:
    """One plan, apply, verify and rollback in this process; prints its CPU milliseconds. Runs on either version."""
    import msgspec

    from advisor.host.machine import tree_host
    from advisor.planning.compute import make_plan
    from advisor.planning.observations import observe_targets
    from advisor.planning.records import PlanTarget
    from advisor.transaction.apply import apply_plan
    from advisor.transaction.journal import Store
    from advisor.transaction.rollback import roll_back
    from advisor.transaction.status import find_drift
    from tests.transaction.system import bare_facts

    bare = bare_facts()
    facts = msgspec.structs.replace(bare, host=msgspec.structs.replace(bare.host, machine_id=None))
    wanted = {key: "10"[int(Path("/proc/sys", *key.split(".")).read_text())] for key in keys(kind)}
    host = tree_host("/")
    with tempfile.TemporaryDirectory() as where:
        store = Store(where)
        times = [time.process_time()]
        targets = tuple(
            PlanTarget(f"sysctl:{key}", value, "exactly", "test", "test", ("test",), "test", rank=place)
            for place, (key, value) in enumerate(wanted.items())
        )
        plan = make_plan(("test",), targets, (), observe_targets(host, targets, {}), facts, runtime_only=True)
        with store.hold_lock():
            record = apply_plan(host, plan, store)
        times.append(time.process_time())
        drift = find_drift(host, store.read_records())
        times.append(time.process_time())
        with store.hold_lock():
            roll_back(host, record, store)
        times.append(time.process_time())
    assert (len(plan.changes), drift) == (_COUNT, ()), (len(plan.changes), drift)
    spent = [(later - sooner) * 1000 for sooner, later in itertools.pairwise(times)]
    print(json.dumps([*spent, time.process_time() * 1000]))


def once(tree: str, kind: str) -> list[float]:
    # This file, on the code of that tree.
    command = [sys.executable, __file__, "work", kind]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=tree, env={**os.environ, "PYTHONPATH": tree}
    )
    found: list[float] = json.loads(done.stdout)
    return found


def main(earlier: str, rounds: int) -> None:
    """Runs itself again inside a network namespace of its own."""
    if os.environ.get("ADVISOR_BENCH_NAMESPACE") != "1":
        inside = ["unshare", "--net", "--mount", "--pid", "--fork", "sh", "-c"]
        own = f'mount -t proc proc /proc && mount -t sysfs sysfs /sys && {{ {_LINKS}; }} && exec "$@"'
        words = [sys.executable, "-m", "benchmarks.coupled_reads", earlier, str(rounds)]
        environment = {**os.environ, "ADVISOR_BENCH_NAMESPACE": "1"}
        raise SystemExit(subprocess.call([*inside, own, "sh", *words], env=environment))
    now = str(Path(__file__).parents[1])
    print("| 50 values | step | before, CPU ms | now, CPU ms | ratio |\n|---|---|---|---|---|")
    for kind, title in (("none", "none with a group"), ("half", "half with a group"), ("all", "all with a group")):
        runs = [(once(earlier, kind), once(now, kind)) for _ in range(rounds + 1)][1:]
        for place, step in enumerate(STEPS):
            before, after = ([run[version][place] for run in runs] for version in (0, 1))
            ratio = statistics.median(two / one for one, two in zip(before, after, strict=True))
            print(
                f"| {title} | {step} | {statistics.median(before):.1f} | {statistics.median(after):.1f} | {ratio:.2f} |"
            )


if __name__ == "__main__":
    if sys.argv[1] == "work":
        work(sys.argv[2])
    else:
        main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 9)
