"""Profiles on the hosts of an inventory: planned, applied in waves, verified, rolled back, from a controller with
Ansible.

The runs are kept in the state directory of the controller. An `Inventory` names what follows ``-i`` and ``--limit``, an
`Access` how to get in. ``say`` receives a line about each step, and counts the hosts that are done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from advisor.fleet import FORKS
from advisor.fleet.inventory import Access, Inventory, named_hosts
from advisor.fleet.runs import changes
from advisor.fleet.runs import status as standing
from advisor.fleet.runs.changes import RunResult, Wish
from advisor.fleet.runs.executor import SILENT, Say
from advisor.fleet.runs.journal import RunRecord
from advisor.fleet.runs.planning import FleetPlan
from advisor.fleet.runs.run import Options
from advisor.fleet.runs.status import FleetStanding
from advisor.fleet.runs.waves import WaveShape, batch_of, canary_of
from advisor.fleet.store import FleetStore
from advisor.planning.records import refuse_warnings


def make_wish(
    inventory: Inventory,
    profiles: Sequence[str],
    settings: Mapping[str, str],
    *,
    canary: Sequence[str] = (),
    batch: str | None = None,
    failover: str | None = None,
    forks: int = FORKS,
    confirm_within: int = 0,
    gate_command: str | None = None,
    rollback_all: bool = False,
    prove: str | None = None,
    prove_options: Sequence[str] = (),
) -> Wish:
    """Return what is asked of a fleet; the arguments are what the options of their names take.

    ``canary`` are hosts or a number, ``batch`` a number or a percentage, ``failover`` a group or ``var=NAME``;
    ``confirm_within`` is in seconds. ``prove`` is the directory on the canary in which the profile is proven there
    first, ``-`` for none, with ``prove_options``, words of ``advisor prove``. Raises UsageError, InvalidInputError for
    an inventory that cannot be read.
    """
    known = [host.name for host in named_hosts(inventory)] if canary else []
    shape = WaveShape(canary_of(canary, known), batch_of(batch), failover)
    proof = None if prove is None else (*_place_words(prove, prove_options), *prove_options)
    options = Options(confirm_within, gate_command, rollback_all, proof)
    return Wish(inventory, tuple(dict.fromkeys(profiles)), settings, shape, forks, options)


def _place_words(directory: str, options: Sequence[str]) -> tuple[str, ...]:
    """How ``advisor prove`` takes the directory: for fio's file, or for a command of the user's to work in."""
    if directory == "-":
        return ()
    has_command = any(word.startswith("--command") for word in options)
    return (f"--directory={directory}" if has_command else f"--target={directory}",)


def plan_fleet(wish: Wish, *, say: Say = SILENT) -> RunResult:
    """Return what the profiles would change on each host, in waves, and the exit code of that; changes nothing there.

    A machine with several names (one machine-id and boot id) is planned for under the first, and changed once.
    Captures every host again. Raises UsageError, InvalidInputError, RefusedError without Ansible.
    """
    made = changes.make_fleet_plan(wish, FleetStore(), say)
    return RunResult(made, None, changes.nothing_code(made))


def write_fleet_plan(plan: FleetPlan, directory: Path) -> int:
    """Write a script for each host that would be changed, and ``waves.json``, for use with plain Ansible or ssh; return
    the number of scripts. Raises UsageError where they cannot be written."""
    return len(changes.write_plan(plan, directory)) - 1


def apply_fleet(
    wish: Wish, *, agree: Callable[[FleetPlan], bool] | None = None, force: bool = False, say: Say = SILENT
) -> RunResult:
    """Apply the profiles wave by wave; each host rolls back automatically unless its wave passes its gate.

    ``agree`` is called once with the plan before anything is changed; without it, a plan because of which a scan of a
    host would newly warn is refused, unless with ``force``. Changes the hosts; what became of each is in the
    record. Raises UsageError, RefusedError with nothing changed.
    """
    return changes.apply_fleet(wish, FleetStore(), agree=agree or agree_unasked(force=force), say=say)


def agree_unasked(*, force: bool) -> Callable[[FleetPlan], bool]:
    """Return the agreement where nobody is asked: it raises RefusedError for a plan because of which a scan of a host
    would newly warn, unless with ``force``."""

    def agree(made: FleetPlan) -> bool:
        for name in () if force else made.changing:
            refuse_warnings(made.plan(name).warnings, f"{name}: ")
        return True

    return agree


def resume_fleet(
    run: str,
    access: Access,
    *,
    rollback_all: bool = False,
    agree: Callable[[FleetPlan], bool] | None = None,
    force: bool = False,
    say: Say = SILENT,
) -> RunResult:
    """Resume a run (by number, or ``last``) that was interrupted, with the profiles and inventory that it was begun
    with. Changes the hosts. Raises UsageError for a run that there is not, RefusedError for one that has ended."""
    agreed = agree or agree_unasked(force=force)
    return changes.resume_fleet(run, FleetStore(), access, agree=agreed, say=say, rollback_all=rollback_all)


def verify_fleet(
    inventory: Inventory | None, access: Access, run: str | None = None, *, forks: int = FORKS, say: Say = SILENT
) -> FleetStanding:
    """Capture the hosts again and compare their values with what was applied: ``code`` is 0 where all match.

    With a run, its hosts and values alone; without an inventory, the last run is meant. Changes nothing. Raises
    UsageError for a run that there is not, RefusedError for one that has nothing active.
    """
    return standing.verify_fleet(inventory, access, run, FleetStore(), forks=forks, say=say)


def roll_back_fleet(
    run: str | None,
    access: Access,
    *,
    inventory: Inventory | None = None,
    only: str | None = None,
    force: bool = False,
    say: Say = SILENT,
) -> RunRecord:
    """Roll back a run, by default the last, on every host, its last wave first; what became of each is in the record.

    ``inventory`` replaces that of the run, of whose hosts those that it names are rolled back, ``only`` is a pattern
    as of ``--limit``. ``force`` restores values that were modified externally, too. Changes the hosts. Raises
    UsageError for a run that there is not, RefusedError where nothing of it is active.
    """
    return standing.rollback_fleet(run, access, FleetStore(), inventory=inventory, only=only, force=force, say=say)


def read_fleet_status(
    inventory: Inventory | None, *, kept: bool = False, forks: int = FORKS, say: Say = SILENT
) -> FleetStanding:
    """Return the runs of this controller and, with an inventory, what is active on each host: captured again, or with
    ``kept`` as it was last. Changes nothing. Raises InvalidInputError, RefusedError."""
    return standing.fleet_status(inventory, FleetStore(), kept=kept, forks=forks, say=say)
