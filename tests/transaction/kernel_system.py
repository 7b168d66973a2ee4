"""A small system with clocks, a latency device, modules, units and a scheduler, and stand-ins that keep its state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from advisor.facts.writers import read_writes
from advisor.host import Host
from advisor.planning.compute import make_plan
from advisor.planning.expansion import expand_targets
from advisor.planning.observations import observe_targets
from advisor.planning.records import Plan, PlanTarget
from tests.cases import cases
from tests.transaction.system import bare_facts
from tests.trees import host_of, make_command, make_tree

CASES = cases(__file__)

# What a stand-in of systemctl keeps: run/units/NAME holds "enabled active"; run/held the hexadecimal number held.
SYSTEMCTL = CASES["SYSTEMCTL"]
SYSTEMD_RUN = CASES["SYSTEMD_RUN"]
# The least of what is held: by us, and by another process, whose number run/other holds.
OD = CASES["OD"]
MODPROBE = CASES["MODPROBE"]
RMMOD = CASES["RMMOD"]
_POLICY = {
    f"/sys/devices/system/cpu/cpufreq/policy{n}/{name}": f"{text}\n"
    for n in (0, 1, 10)
    for name, text in CASES["POLICY"].items()
}
FILES: dict[str, str | bytes] = CASES["FILES"] | _POLICY
WANTED = CASES["WANTED"]


def build(where: Path, files: Mapping[str, str | bytes | None] | None = None) -> Host:
    """The system below ``where``/root, its commands in ``where``/bin; ``files`` go over its own, or take them away."""
    merged = {path: text for path, text in {**FILES, **(files or {})}.items() if text is not None}
    root, commands = make_tree(where / "root", merged), where / "bin"
    scripts = {"systemctl": SYSTEMCTL, "systemd-run": SYSTEMD_RUN, "od": OD, "modprobe": MODPROBE, "rmmod": RMMOD}
    for name, script in scripts.items():
        make_command(commands, name, script.format(root=root))
    return host_of(root, commands)


def targets_of(wanted: Mapping[str, str], sense: str | tuple[str, ...] = "exactly") -> tuple[PlanTarget, ...]:
    return tuple(
        PlanTarget(name, value, sense, "why", "hurts", ("source",), "test")  # type: ignore[arg-type]
        for name, value in wanted.items()
    )


def plan_of(
    host: Host, wanted: Mapping[str, str], *, runtime_only: bool = False, sense: str | tuple[str, ...] = "exactly"
) -> Plan:
    targets, skipped = expand_targets(host, targets_of(wanted, sense))
    seen = observe_targets(host, targets, {})
    known = msgspec.structs.replace(bare_facts(), writes=read_writes(host))
    return make_plan(("test",), targets, skipped, seen, known, runtime_only=runtime_only)


def values(plan: Plan) -> dict[str, tuple[str, str]]:
    """Tunable → before and after, in the plan's order."""
    return {one.tunable: (one.before, one.after) for one in plan.changes}


def reasons(plan: Plan) -> dict[str, tuple[str, str]]:
    """Tunable → state and reason of what is not done."""
    return {one.tunable: (one.state, one.reason) for one in plan.skipped}


def order(plan: Plan, names: Iterable[str]) -> list[str]:
    wanted = set(names)
    return [one.tunable for one in plan.changes if one.tunable in wanted]
