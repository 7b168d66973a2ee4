"""Live values of a plan that are set and restored repeatedly while a measurement runs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator, Mapping

from advisor.errors import CommandError
from advisor.host import Host, Missing, observe
from advisor.planning.records import Change, Plan
from advisor.transaction.apply import begin_transaction, check_link, check_preconditions, read_back, set_value
from advisor.transaction.journal import Doing, Store
from advisor.transaction.restore import not_restored_error, restore_change, restore_plan
from advisor.transaction.rollback import close_rolled_back, taken_over_error
from advisor.transaction.watchdog import TakenOverError, Watchdog

_TRIAL_SECONDS = 60.0
"""For one step of a trial, and for the time that its process may be stopped between two."""


class _Pace:
    """Keeps the watchdog's limit ahead while a trial runs, between its steps: a measurement may take minutes, but a
    process that is stopped, or blocked in a step, does not come to it."""

    def __init__(self, watchdog: Watchdog | None) -> None:
        self._watchdog = watchdog
        self._step = threading.Lock()
        self._is_over = threading.Event()

    @contextlib.contextmanager
    def guard_step(self) -> Iterator[None]:
        """Raises TakenOverError before and after the block, where the transaction is no longer this process's."""
        with self._step:
            self._check_ownership()
            yield
            self._check_ownership()

    def _check_ownership(self) -> None:
        if self._watchdog is not None:
            self._watchdog.check_ownership()

    def require_watchdog(self) -> None:
        """Raise CommandError where the watchdog's process is gone: nobody would restore the values after a kill."""
        if self._watchdog is not None and not self._watchdog.is_watching:
            raise CommandError("the watchdog of this measurement was killed: nothing is switched without it")

    @contextlib.contextmanager
    def extend_during(self, hung_after: float) -> Iterator[None]:
        """For the time of the block, where a watchdog runs."""
        if self._watchdog is None:
            yield
            return
        thread = threading.Thread(target=self._extend_limit, args=(hung_after / 8,), name="advisor-pace", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()

    def _extend_limit(self, seconds: float) -> None:
        while not self._is_over.wait(seconds):
            with self._step:
                try:
                    self._check_ownership()
                except TakenOverError:
                    # The next step says so.
                    return


class Trial:
    """A plan whose live values a measurement sets and restores repeatedly. Persists nothing."""

    def __init__(self, host: Host, plan: Plan, watchdog: Watchdog | None = None) -> None:
        self._host = host
        self._plan = plan
        self._pace = _Pace(watchdog)
        self.pending: str | None = None
        """The tunable that was being set when the trial failed: its live value is the trial's, whatever it is."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """What the trial switches."""
        return self._plan.changes

    def keep_pace(self, hung_after: float) -> contextlib.AbstractContextManager[None]:
        """Keep the watchdog's limit ahead for the time of the block."""
        return self._pace.extend_during(hung_after)

    def set_values(self, tunables: Collection[str] | None = None) -> None:
        """Set every value of the plan, or those of ``tunables`` alone, and read it back. Raises CommandError."""
        for change in self._plan.changes:
            if tunables is None or change.tunable in tunables:
                self._set_change(change)
                self.pending = None

    def set_variant(self, change: Change) -> None:
        """Set the tunable that `run_trial` was given as ``varied`` to another value than the plan's, until the values
        are restored. Raises CommandError."""
        self._set_change(change)

    def _set_change(self, change: Change) -> None:
        self._pace.require_watchdog()
        with self._pace.guard_step():
            check_link(self._host, self._plan, change)
            self.pending = change.tunable
            kept = None if observe(self._host, change.probe) == change.after else set_value(self._host, change)
            if kept is None:
                read_back(self._host, change)

    def observe_values(self) -> Mapping[str, str | Missing]:
        """Each value of the plan as it is now, by its tunable."""
        return {change.tunable: observe(self._host, change.probe) for change in self._plan.changes}

    def restore_values(self, tunables: Collection[str] | None = None) -> None:
        """Restore every value, or those of ``tunables`` alone, and read it back. Raises CommandError."""
        for change in reversed(self._plan.changes):
            if tunables is not None and change.tunable not in tunables:
                continue
            with self._pace.guard_step():
                outcome = restore_change(self._host, self._plan, change, force=change.tunable == self.pending)
            if not outcome.is_back:
                raise CommandError(f"{outcome.what}: {outcome.detail}", hint=outcome.by_hand)
        self.pending = None


@contextlib.contextmanager
def run_trial(
    host: Host, plan: Plan, store: Store, *, hung_after: float = _TRIAL_SECONDS, varied: str | None = None
) -> Iterator[Trial]:
    """A trial of a plan's live values under the journal; the caller holds ``store.lock()``. ``varied`` is a tunable of
    the plan that may get other values than the plan's as well.

    A process that is stopped, or blocked in a step, for ``hung_after`` seconds counts as hung.

    However the block ends, every value is restored and read back; after a kill or a power cut the next run does it, or
    the rollback script. Raises RefusedError before anything is changed, NotRestoredError where a value is not restored.
    """
    check_preconditions(host, plan)
    with begin_transaction(host, plan, store, hung_after) as (journal, watchdog):
        for change in sorted(plan.changes, key=lambda one: one.tunable == varied):
            # From here on any of them may be active, and this process restores it. What is announced last is the
            # transaction's after a crash, whatever it reads.
            journal.write_entry(Doing(change.tunable))
        running = Trial(host, plan, watchdog if host.is_live else None)
        try:
            with running.keep_pace(hung_after):
                yield running
        finally:
            if not watchdog.claim_rollback():
                raise taken_over_error(host, plan, watchdog, running.pending)
            try:
                outcomes = restore_plan(
                    host, plan, journal, why="trial", force_one=running.pending, check=watchdog.check_ownership
                )
            except TakenOverError as error:
                raise taken_over_error(host, plan, watchdog, running.pending) from error
            close_rolled_back(journal, watchdog, outcomes)
    lost = tuple(one for one in outcomes if not one.is_back)
    if lost:
        raise not_restored_error("the trial is over", lost)
