"""Planning for many hosts, changing them, and resuming it: what the command line and other programs call."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from advisor.errors import CommandError, RefusedError, UsageError
from advisor.fleet import counted_hosts
from advisor.fleet.inventory import Access, Inventory, file_name, named_hosts
from advisor.fleet.runs import run as running
from advisor.fleet.runs.executor import Hands, Say, take_up
from advisor.fleet.runs.journal import (
    Asked,
    Ended,
    Planned,
    ProofDone,
    RunJournal,
    RunRecord,
    find_run,
    lock_store,
    next_id,
    read_entries,
    read_run,
)
from advisor.fleet.runs.planning import FleetPlan, check_failover, plan_fleet
from advisor.fleet.runs.proving import (
    SentProfile,
    check_provers,
    prove_on_canaries,
    read_sent_profile,
    settle_open_proofs,
)
from advisor.fleet.runs.waves import Canary, WaveShape
from advisor.fleet.scan import FleetStore
from advisor.planner import profile_requests
from advisor.version import __version__

WINDOW_SECONDS = 300
"""How long a host waits for its confirmation: a wave of many hosts is applied, and its gate asked, in this time."""

Agree = Callable[[FleetPlan], bool]


class Wish(msgspec.Struct, frozen=True):
    """What is asked of a fleet."""

    inventory: Inventory
    profiles: tuple[str, ...]
    settings: Mapping[str, str]
    shape: WaveShape
    forks: int
    options: running.Options


class RunResult(msgspec.Struct, frozen=True):
    """What a run came to; no record where there was nothing to change, or it was a dry run."""

    plan: FleetPlan
    record: RunRecord | None
    code: int


def make_fleet_plan(wish: Wish, store: FleetStore, say: Say) -> FleetPlan:
    """Capture every host and plan for it. Changes nothing; needs root there, as only root can read what is active."""
    profile_requests(wish.profiles, wish.settings)
    with scratch_hands(wish, store, say) as hands:
        return plan_hosts(wish, hands, frozenset())


@contextmanager
def scratch_hands(wish: Wish, store: FleetStore, say: Say) -> Iterator[Hands]:
    """Hands that leave nothing but the captures."""
    place = Path(tempfile.mkdtemp(prefix="advisor-plan."))
    try:
        yield Hands(wish.inventory, named_hosts(wish.inventory), store, place, say, forks=wish.forks)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def plan_hosts(wish: Wish, hands: Hands, leave: frozenset[str]) -> FleetPlan:
    """Capture the hosts and plan for all but ``leave``. Raises CommandError where none could be asked."""
    names = [*hands.hosts]
    check_failover(hands.hosts.values(), wish.shape.failover)
    hands.say(f"capturing {counted_hosts(len(names))}")
    captured = hands.capture(names)
    plan = plan_fleet(
        [captured[name] for name in names],
        wish.profiles,
        wish.settings,
        inventory=[*hands.hosts.values()],
        shape=wish.shape,
        leave=leave,
        progress=hands.count("planned"),
    )
    if plan.hosts and all(one.state == "failed" for one in plan.hosts):
        first = plan.hosts[0]
        raise CommandError(
            f"no host could be asked; {first.name}: {first.message}", hint="advisor fleet scan says more"
        )
    return plan


def apply_fleet(wish: Wish, store: FleetStore, *, agree: Agree, say: Say) -> RunResult:
    """Plan, ask, and carry it out wave by wave. Raises RefusedError where it is not agreed to: nothing was changed."""
    profile_requests(wish.profiles, wish.settings)
    with lock_store(store):
        run_id = next_id(store)
        hosts = named_hosts(wish.inventory)
        directory = store.directory / "runs" / file_name(run_id)
        hands = Hands(wish.inventory, hosts, store, directory, say, forks=wish.forks)
        # As it is before anything is planned: a file that changes later is another profile than the one agreed to.
        sent = None if wish.options.proof is None else read_sent_profile(wish.profiles)
        with scratch_hands(wish, store, say) as scratch:
            plan = plan_hosts(wish, scratch, frozenset())
            if not plan.changing:
                return RunResult(plan, None, nothing_code(plan))
            if sent is not None:
                check_provers(scratch, plan, sent, wish.settings)
        if not agree(plan):
            raise RefusedError("cancelled; nothing was changed")
        with RunJournal(store.run(run_id)) as journal:
            journal.write(asked_entry(wish))
            return _carried_out(wish, hands, plan, journal, run_id, sent)


def _carried_out(
    wish: Wish, hands: Hands, plan: FleetPlan, journal: RunJournal, run_id: str, sent: SentProfile | None
) -> RunResult:
    """The proof on the canary first, where a profile is sent for one, then every wave."""
    code = 0
    if sent is not None:
        code = prove_on_canaries(hands, plan, sent, wish.settings, wish.options.proof or (), journal)
        if code:
            last = next(one for one in reversed(journal.entries) if isinstance(one, ProofDone))
            journal.write(Ended(time.time(), code, "stopped", f"{last.host}: {last.message}"))
            return RunResult(plan, read_run(run_id, tuple(journal.entries)), code)
    journal.write(Planned(time.time(), plan.hosts, plan.waves.waves, plan.notes))
    running.write_scripts(hands, plan)
    code = running.FleetRun(hands, plan, journal, wish.options).go()
    return RunResult(plan, read_run(run_id, tuple(journal.entries)), code)


def resume_fleet(
    wanted: str | None, store: FleetStore, access: Access, *, agree: Agree, say: Say, rollback_all: bool = False
) -> RunResult:
    """Resume a run where it was cut short. Raises RefusedError for one that has ended, UsageError for none,
    NotRestoredError where it is not known what a proof of it left."""
    with lock_store(store):
        run = find_run(store, wanted)
        if run.ended is not None and run.ended.outcome in ("done", "rolled-back"):
            raise RefusedError(
                f"run {run.id} has ended ({run.ended.outcome})", hint="advisor fleet apply begins a new run"
            )
        # What a run was asked for; how to get in is not kept with it.
        asked = run.asked
        wish = Wish(
            Inventory(asked.inventory, asked.limit, access),
            asked.profiles,
            dict(asked.settings),
            asked.shape,
            asked.forks,
            running.Options(asked.confirm_within, asked.gate_command, rollback_all, asked.proof),
        )
        directory = store.run(run.id)
        hands = Hands(wish.inventory, named_hosts(wish.inventory), store, directory, say, forks=wish.forks)
        missing = [name for name in {**run.hosts, **run.open_proofs} if name not in hands.hosts]
        if missing:
            raise UsageError(
                f"run {run.id}: {', '.join(missing)} left the inventory since", hint="add them to it again"
            )
        check_failover(hands.hosts.values(), wish.shape.failover)
        # What stopped before its proof let it begin has nothing to resume but that proof.
        sent = read_sent_profile(wish.profiles) if run.is_to_be_proven else None
        with RunJournal(directory) as journal:
            done = take_up(hands, journal, run)
            settle_open_proofs(hands, journal, run)
            plan = plan_hosts(_without_canary(wish, done), hands, done)
            if not plan.changing:
                code = running.finish_run(journal, plan)
                return RunResult(plan, read_run(run.id, read_entries(directory)), code)
            if sent is not None:
                check_provers(hands, plan, sent, wish.settings)
            if not agree(plan):
                raise RefusedError(f"cancelled; what run {run.id} has done stays: {counted_hosts(len(done))}")
            return _carried_out(wish, hands, plan, journal, run.id, sent)


def _without_canary(wish: Wish, done: frozenset[str]) -> Wish:
    """Once a wave has passed there is no canary any more."""
    if not done:
        return wish
    return msgspec.structs.replace(wish, shape=msgspec.structs.replace(wish.shape, canary=Canary(count=0)))


def asked_entry(wish: Wish) -> Asked:
    """The first entry of a run's journal."""
    return Asked(
        time.time(),
        __version__,
        wish.profiles,
        tuple(sorted(wish.settings.items())),
        tuple(str(Path(one).absolute()) if "," not in one else one for one in wish.inventory.sources),
        wish.inventory.limit,
        wish.forks,
        wish.options.confirm_within,
        wish.shape,
        wish.options.gate_command,
        wish.options.proof,
    )


def nothing_code(plan: FleetPlan) -> int:
    """The exit code of a plan: 4 where a host could not be asked, 3 where something is blocked or none fits."""
    states = {one.state for one in plan.hosts} - {"same"}
    if "failed" in states:
        return 4
    return 3 if "cannot" in states or states == {"unfit"} else 0


def write_plan(plan: FleetPlan, directory: Path) -> list[Path]:
    """A script for each host, and ``waves.json``, for use with plain Ansible (or ssh). Raises UsageError, OSError."""
    from advisor.host.putfile import save_output

    directory.mkdir(parents=True, exist_ok=True)
    made = []
    for name in plan.changing:
        path = directory / (file_name(name) + ".sh")
        save_output(str(path), plan.script(name), mode=0o700)
        made.append(path)
    waves = [{"number": one.number, "hosts": one.hosts, "is_canary": one.is_canary} for one in plan.waves.waves]
    body = msgspec.json.format(msgspec.json.encode({"schema": "advisor.fleet-waves/1", "waves": waves}), indent=2)
    save_output(str(directory / "waves.json"), body + b"\n", mode=0o600)
    return [*made, directory / "waves.json"]
