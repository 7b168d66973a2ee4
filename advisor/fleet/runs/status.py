"""What is active on the hosts of a fleet, its drift, and the rollback of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from advisor.errors import AdvisorError, RefusedError
from advisor.fleet import FORKS, counted_hosts
from advisor.fleet.inventory import Access, Inventory, InventoryHost, named_hosts
from advisor.fleet.runs.executor import FleetRollback, Hands, Result, Say, end_orphans
from advisor.fleet.runs.journal import (
    Ended,
    Resumed,
    RunJournal,
    RunRecord,
    all_runs,
    find_run,
    lock_store,
    read_run,
    same_order,
)
from advisor.fleet.runs.planning import CapturedHost
from advisor.fleet.scan import FleetStore
from advisor.host.signals import interruptible
from advisor.snapshot.archive import open_snapshot
from advisor.snapshot.remote.store import captured_status
from advisor.transaction.journal import Record
from advisor.transaction.status import Drift

HostState = Literal["as-set", "drifted", "nothing", "waiting", "unfinished", "failed"]
"""``as-set`` all that is active matches, ``drifted`` some of it does not, ``nothing`` is active, ``waiting`` a
transaction waits for its confirmation, ``unfinished`` one was interrupted and is not rolled back, ``failed`` the host
could not be asked."""


class HostStanding(msgspec.Struct, frozen=True):
    """A host and its transactions. ``taken`` is when it was captured, by the controller's clock."""

    name: str
    state: HostState
    records: tuple[Record, ...] = ()
    drift: tuple[Drift, ...] = ()
    message: str = ""
    taken: float | None = None

    @property
    def in_force(self) -> tuple[Record, ...]:
        return tuple(one for one in self.records if one.is_active)


class FleetStanding(msgspec.Struct, frozen=True):
    """Every host that was asked; with ``run``, only what that run set. ``runs`` are those of this controller."""

    hosts: tuple[HostStanding, ...]
    run: RunRecord | None = None
    runs: tuple[RunRecord, ...] = ()

    @property
    def failed(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.hosts if one.state == "failed")

    @property
    def code(self) -> int:
        """4 where a host could not be asked, 1 where one has drifted or is half-done, else 0."""
        if self.failed:
            return 4
        return 1 if any(one.state in ("drifted", "unfinished") for one in self.hosts) else 0


def verify_fleet(
    inventory: Inventory | None, access: Access, wanted: str | None, store: FleetStore, *, forks: int = FORKS, say: Say
) -> FleetStanding:
    """Capture the hosts again and compare, by the code of ``advisor verify``; with a run, its hosts and values alone.

    Without an inventory, the last run is meant. Raises RefusedError for a run that left nothing active, UsageError
    for one that there is not.
    """
    run = find_run(store, wanted) if wanted is not None or inventory is None else None
    if run is not None and not run.touched:
        raise RefusedError(f"run {run.id} has nothing active", hint="advisor fleet status lists the runs")
    meant = inventory
    if meant is None:
        assert run is not None
        meant = Inventory(run.asked.inventory, run.asked.limit, access)
    hosts = [one for one in named_hosts(meant) if run is None or one.name in run.touched]
    gone = [] if run is None else [name for name in run.touched if name not in {one.name for one in hosts}]
    found = [*_ask_hosts(meant, hosts, store, forks, say, run)]
    found += [HostStanding(name, "failed", message="no longer in the inventory") for name in gone]
    return FleetStanding(tuple(found), run)


def _ask_hosts(
    inventory: Inventory, hosts: Sequence[InventoryHost], store: FleetStore, forks: int, say: Say, run: RunRecord | None
) -> Iterator[HostStanding]:
    say(f"capturing {counted_hosts(len(hosts))}")
    hands = Hands(inventory, hosts, store, store.directory, say, forks=forks)
    with interruptible():
        captured = hands.capture([one.name for one in hosts])
    for one in hosts:
        known = run.hosts[one.name].transaction if run is not None else None
        header = store.header(one.name)
        yield host_standing(
            captured[one.name], None if known is None else (known,), None if header is None else header.taken
        )


def host_standing(captured: CapturedHost, only: Sequence[str] | None, taken: float | None) -> HostStanding:
    """What a capture says about the transactions of a host, or of ``only`` these."""
    if captured.archive is None:
        return HostStanding(captured.name, "failed", message=captured.message)
    try:
        status = captured_status(open_snapshot(captured.archive), only=only)
    except AdvisorError as error:
        return HostStanding(captured.name, "failed", message=error.message, taken=taken)
    host_state: HostState
    if status.unfinished:
        host_state = "unfinished"
    elif status.drift:
        host_state = "drifted"
    elif any(one.state == "awaiting-confirmation" for one in status.records):
        host_state = "waiting"
    else:
        host_state = "as-set" if any(one.is_active for one in status.records) else "nothing"
    return HostStanding(captured.name, host_state, status.records, status.drift, taken=taken)


def fleet_status(
    inventory: Inventory | None, store: FleetStore, *, kept: bool = False, forks: int = FORKS, say: Say
) -> FleetStanding:
    """The runs of this controller and what is active on each host: captured again, or with ``kept`` as it was last."""
    runs = all_runs(store)
    if inventory is None and not kept:
        return FleetStanding((), runs=runs)
    if not kept:
        assert inventory is not None
        return FleetStanding(tuple(_ask_hosts(inventory, named_hosts(inventory), store, forks, say, None)), runs=runs)
    wanted = None if inventory is None else [one.name for one in named_hosts(inventory)]
    headers = {one.host: one for one in store.headers()}
    names = [*headers] if wanted is None else wanted
    found = [
        host_standing(CapturedHost(name, store.archive(name)), None, headers[name].taken if name in headers else None)
        for name in names
    ]
    return FleetStanding(tuple(found), runs=runs)


def rollback_fleet(
    wanted: str | None,
    access: Access,
    store: FleetStore,
    *,
    inventory: Inventory | None = None,
    only: str | None = None,
    force: bool = False,
    say: Say,
) -> RunRecord:
    """Roll a run back, its last wave first. ``only`` is a pattern of hosts as Ansible's --limit; ``inventory`` stands
    in for that of the run, of whose hosts those that it names are rolled back.

    Raises RefusedError where nothing of it is active; what became of each host is in the record.
    """
    with lock_store(store):
        run = find_run(store, wanted)
        meant = inventory or Inventory(run.asked.inventory, only or run.asked.limit, access)
        hosts = named_hosts(meant)
        waves = _hosts_to_roll_back(run, {one.name for one in hosts})
        if not waves:
            raise RefusedError(f"run {run.id} has nothing active to roll back", hint="advisor fleet status")
        directory = store.run(run.id)
        end_orphans(directory)
        hands = Hands(meant, hosts, store, directory, say, forks=run.asked.forks)
        with RunJournal(directory) as journal, interruptible():
            journal.write(Resumed(time.time(), "rollback"))
            states = {name: Result(name, one.state, one.transaction, one.message) for name, one in run.hosts.items()}
            rollback = FleetRollback(hands, journal, states, window_seconds=float(run.asked.confirm_within))
            for number, names in waves:
                hands.wave = f"wave {number}"
                say(f"rolling back {hands.wave}: {', '.join(names)}")
                rollback.run(number, {name: run.sought[name] for name in names}, force=force)
            # Who was not left out on purpose should be back: also one that has left the inventory since.
            asked = [name for _, names in waves for name in names] if inventory or only else [*run.touched]
            # 5 where a host that was asked is not back. Those that were not asked stay as they are, and are counted.
            left = [one.host for one in states.values() if one.state in ("applied", "awaiting-confirmation", "unknown")]
            message = f"{len(left)} {'host is' if len(left) == 1 else 'hosts are'} not rolled back" if left else ""
            code = 5 if set(left) & {*asked} else 0
            journal.write(Ended(time.time(), code, "stopped" if left else "rolled-back", message))
            found = read_run(run.id, tuple(journal.entries))
    assert found is not None
    return found


def _hosts_to_roll_back(run: RunRecord, known: set[str]) -> list[tuple[int, list[str]]]:
    waves = [(number, [name for name in names if name in known]) for number, names in reversed(same_order(run))]
    return [(number, names) for number, names in waves if names]
