"""A small system with one tunable of every kind, and the plan that changes them all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from advisor.facts.host_facts import Facts
from advisor.host import Host
from advisor.planning.compute import make_plan
from advisor.planning.observations import observe_targets
from advisor.planning.records import Plan, PlanTarget
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import Record, Store
from advisor.transaction.rollback import roll_back
from advisor.transaction.side_effects import ItemOutcome
from tests.cases import cases
from tests.rules.build import nothing_known
from tests.trees import host_of, make_command, make_tree

CASES = cases(__file__)

MACHINE = "0123456789abcdef0123456789abcdef"

LLTCONFIG = CASES["LLTCONFIG"]

SYSTEMCTL = CASES["SYSTEMCTL"]

FILES = CASES["FILES"]

TARGETS = CASES["TARGETS"]


def build(where: Path) -> Host:
    """The system below ``where``/root, its commands in ``where``/bin."""
    root, commands = make_tree(where / "root", FILES), where / "bin"
    make_command(commands, "lltconfig", LLTCONFIG.format(root=root))
    make_command(commands, "systemctl", SYSTEMCTL.format(root=root))
    make_command(commands, "udevadm", "exit 0")
    return host_of(root, commands)


def store_of(where: Path) -> Store:
    return Store(str(where / "state"))


def bare_facts() -> Facts:
    """Facts of a host of which nothing is known but its machine-id; what a plan of fixed targets needs."""
    nothing = nothing_known()
    host = msgspec.structs.replace(nothing.host, machine_id=MACHINE)
    return msgspec.structs.replace(nothing, host=host, unknown=())


def plan_of_values(
    host: Host,
    wanted: Mapping[str, str],
    *,
    runtime_only: bool = False,
    is_ranked: bool = False,
    known: Facts | None = None,
) -> Plan:
    """A plan of these values; ranked, they are set in this order."""
    targets = tuple(
        PlanTarget(name, value, "exactly", "why", "hurts", ("source",), "test", rank=place * is_ranked)
        for place, (name, value) in enumerate(wanted.items())
    )
    seen = observe_targets(host, targets, {})
    return make_plan(("test",), targets, (), seen, known or bare_facts(), runtime_only=runtime_only)


def apply_locked(host: Host, plan: Plan, store: Store) -> Record:
    with store.hold_lock():
        return apply_plan(host, plan, store)


def roll_back_locked(host: Host, record: Record, store: Store, *, force: bool = False) -> tuple[ItemOutcome, ...]:
    with store.hold_lock():
        return roll_back(host, record, store, force=force)


def plan_of(host: Host, only: Iterable[int] = range(len(TARGETS)), *, runtime_only: bool = False) -> Plan:
    """A plan for some of the targets; the machine's facts beyond its id do not matter here."""
    chosen = [TARGETS[number] for number in sorted(set(only))]
    targets = tuple(
        PlanTarget(
            name, value, tuple(sense) if isinstance(sense, list) else sense, "why", "hurts", ("source",), "test", rank
        )
        for name, value, sense, rank in chosen
    )
    seen = observe_targets(host, targets, {})
    return make_plan(("test",), targets, (), seen, bare_facts(), runtime_only=runtime_only)
