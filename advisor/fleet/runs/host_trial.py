"""A trial with hosts as units: measure all, treat those that a coin names, measure all again, judge, roll back.

The treated hosts await their confirmation until the verdict: should this process end, the watchdog of each rolls it
back when its window is over. A resumed trial rolls back first and measures again, with the toss that its
journal holds: nobody can toss until he likes it.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Final, Literal

import msgspec

from advisor.errors import AdvisorError, CommandError, NotRestoredError, RefusedError, UsageError
from advisor.fleet import counted_hosts
from advisor.fleet.inventory import Access, Inventory, InventoryHost, file_name
from advisor.fleet.runs import run as running
from advisor.fleet.runs.changes import Wish, asked_entry, named_hosts, plan_hosts, scratch_hands
from advisor.fleet.runs.executor import Hands, Result, Say, end_orphans
from advisor.fleet.runs.journal import Ended, Planned, PlannedHost, Resumed, RunJournal, RunRecord, read_run
from advisor.fleet.runs.order import mtu_order
from advisor.fleet.runs.planning import FleetPlan
from advisor.fleet.runs.reconcile import FleetRollback, make_host_done, settle_transactions
from advisor.fleet.runs.run_store import find_run, lock_store, next_id
from advisor.fleet.runs.status import host_standing
from advisor.fleet.runs.trial_figures import baseline_change, level_of, read_phase
from advisor.fleet.runs.trial_records import HostsAssigned, PhaseMeasured, TrialJudged, TrialTerms
from advisor.fleet.runs.trial_verdict import judge_trial
from advisor.fleet.runs.waves import Candidate, Waves, WaveShape, make_waves
from advisor.fleet.store import FleetStore
from advisor.host.signals import interruptible
from advisor.planner import profile_requests
from advisor.proof.host_units import LEVEL, Design, detectable_effect, estimate_spread, fewest_hosts, make_design

MAX_WINDOW_SECONDS: Final = 99_999
_WAVE_SECONDS: Final = 300
"""For a wave to be applied and its gate to be asked."""
_HOST_SECONDS: Final = 1
"""For each host of the waves besides: what it takes of this machine's processors (docs/benchmarks.md)."""
_END_SECONDS: Final = 300
"""For the verdict, until the hosts are confirmed or rolled back."""

AgreeTrial = Callable[[FleetPlan, Design], bool]


class TrialResult(msgspec.Struct, frozen=True):
    """What a trial came to; no record where nothing was begun."""

    plan: FleetPlan | None
    design: Design | None
    record: RunRecord | None
    code: int


def draw_seed() -> int:
    """A seed for the toss, from the system's own randomness."""
    return secrets.randbits(48)


def plan_trial(wish: Wish, terms: TrialTerms, store: FleetStore, say: Say) -> TrialResult:
    """The plan of each host and the design, without anything being measured. Raises RefusedError where so few hosts
    cannot show anything, or none answers."""
    profile_requests(wish.profiles, wish.settings)
    hosts = named_hosts(wish.inventory)
    _refuse_few(len(hosts))
    with scratch_hands(wish, store) as scratch:
        try:
            plan = plan_hosts(wish, scratch, frozenset(), say)
        except CommandError as error:
            # There is no trial yet that could have failed.
            raise RefusedError(error.message, hint=error.hint) from error
    return TrialResult(plan, _design_of(plan, plan.changing, terms, hosts), None, 0)


def prove_on_fleet(wish: Wish, terms: TrialTerms, store: FleetStore, *, agree: AgreeTrial, say: Say) -> TrialResult:
    """Plan, ask, and carry the trial out. Raises RefusedError with nothing changed where it is not agreed to, or where
    the hosts cannot show anything."""
    with lock_store(store):
        planned = plan_trial(wish, terms, store, say)
        assert planned.plan is not None
        assert planned.design is not None
        # Who is treated is written down later; how many waves that takes is known now, before anything is measured.
        window_seconds(terms, trial_waves(planned.plan, planned.design.toss(terms.seed), wish.shape))
        if not agree(planned.plan, planned.design):
            raise RefusedError("cancelled; nothing was changed")
        run_id = next_id(store)
        hosts = named_hosts(wish.inventory)
        hands = _make_hands(wish, hosts, store, run_id)
        with RunJournal(store.run(run_id)) as journal:
            journal.write(asked_entry(wish, terms))
            return _HostTrial(hands, wish, terms, journal, say).run(planned.plan, planned.design, None)


def resume_trial(wanted: str | None, store: FleetStore, access: Access, *, agree: AgreeTrial, say: Say) -> TrialResult:
    """Resume a trial where it was cut short: what is active goes back first. Raises RefusedError for one that has
    ended, UsageError for none."""
    with lock_store(store):
        run = find_run(store, wanted)
        terms = run.asked.trial
        if terms is None:
            raise RefusedError(f"run {run.id} is no trial", hint=f"advisor fleet apply --resume {run.id}")
        if run.ended is not None and run.ended.outcome in ("done", "rolled-back"):
            raise RefusedError(
                f"run {run.id} has ended ({run.ended.outcome})", hint="advisor fleet prove begins a new trial"
            )
        asked = run.asked
        wish = Wish(
            Inventory(asked.inventory, asked.limit, access),
            asked.profiles,
            dict(asked.settings),
            asked.shape,
            asked.forks,
            running.Options(asked.confirm_within, asked.gate_command, is_trial=True),
        )
        hosts = named_hosts(wish.inventory)
        names = {one.name for one in hosts}
        units = [name for block in run.assigned.blocks for name in block] if run.assigned else []
        if missing := [name for name in (*run.hosts, *units) if name not in names]:
            raise UsageError(
                f"run {run.id}: {', '.join(missing)} left the inventory since", hint="add them to it again"
            )
        hands = _make_hands(wish, hosts, store, run.id)
        end_orphans(hands.directory)
        with RunJournal(hands.directory) as journal:
            journal.write(Resumed(time.time()))
            trial = _HostTrial(hands, wish, terms, journal, say)
            with interruptible():
                code = trial.settle(run)
            if code is not None:
                return TrialResult(None, None, read_run(run.id, tuple(journal.entries)), code)
            plan = plan_hosts(wish, hands, frozenset(), say)
            design = Design(run.assigned.blocks) if run.assigned else _design_of(plan, plan.changing, terms, hosts)
            if not agree(plan, design):
                raise RefusedError("cancelled; nothing was changed")
            return trial.run(plan, design, run.assigned)


def _make_hands(wish: Wish, hosts: Sequence[InventoryHost], store: FleetStore, run_id: str) -> Hands:
    # All hosts are measured at the same time.
    forks = max(wish.forks, len(hosts))
    return Hands(wish.inventory, hosts, store, store.directory / "runs" / file_name(run_id), forks=forks)


def _refuse_few(count: int, left_out: str = "") -> None:
    if count < fewest_hosts():
        design = Design((tuple(map(str, range(count))),))
        raise RefusedError(
            (
                f"{counted_hosts(count)} can be treated: the smallest p of {design.assignments} assignments is "
                f"{design.smallest_p:.3f}, and a claim needs {LEVEL:g}; nothing was touched"
            ),
            hint=left_out or f"expected {fewest_hosts()} hosts or more; on one host, advisor prove toggles the value",
        )


def _design_of(plan: FleetPlan, names: Sequence[str], terms: TrialTerms, hosts: Sequence[InventoryHost]) -> Design:
    """Blocks of the hosts that can be treated. Raises RefusedError where they cannot show anything."""
    _refuse_few(len(names), "; ".join(f"{one.name}: {one.message}" for one in plan.hosts if one.state != "change"))
    known = {one.name: one for one in hosts}
    if terms.blocks.startswith("var="):
        variable = terms.blocks.removeprefix("var=")
        kinds = {name: known[name].variables.get(variable, "") for name in names}
        if not any(kinds.values()):
            raise UsageError(f"--block {terms.blocks}: no host has this variable")
    elif terms.blocks == "none":
        kinds = dict.fromkeys(names, "")
    else:
        kinds = {name: plan.subjects[name].hardware for name in names}
    return make_design(kinds)


def trial_waves(plan: FleetPlan, treated: Sequence[str], shape: WaveShape) -> Waves:
    """The waves in which those of the plan's hosts that are treated get the values."""
    candidates = [Candidate(name, plan.groups.get(name, ())) for name in plan.changing if name in set(treated)]
    order = mtu_order([*plan.subjects.values()])
    return make_waves(candidates, order=order, canary=shape.canary, batch=shape.batch)


def window_seconds(terms: TrialTerms, waves: Waves) -> int:
    """How long a treated host waits before it rolls back by itself: the first one waits while all the others are
    changed and measured. Raises UsageError where that is too long."""
    hosts = sum(len(wave.hosts) for wave in waves.waves)
    applied = _WAVE_SECONDS * len(waves.waves) + _HOST_SECONDS * hosts
    measured = terms.period_seconds + (terms.rounds + 1) * terms.timeout_seconds * (1 + len(terms.metrics))
    window = int(applied + terms.settle_seconds + measured + _END_SECONDS)
    if window > MAX_WINDOW_SECONDS:
        raise UsageError(
            f"--period: a host would wait {window} s before it rolls back, {MAX_WINDOW_SECONDS} s at most",
            hint="a shorter --period, fewer --readings, a shorter --command-timeout or a larger --batch",
        )
    return window


class _HostTrial:
    """One trial: its inventory, its terms and its journal."""

    def __init__(self, hands: Hands, wish: Wish, terms: TrialTerms, journal: RunJournal, say: Say) -> None:
        self._hands, self._wish, self._terms, self._journal, self._say = hands, wish, terms, journal, say

    @property
    def _record(self) -> RunRecord:
        found = read_run(self._journal.directory.name, tuple(self._journal.entries))
        assert found is not None
        return found

    def run(self, plan: FleetPlan, design: Design, assigned: HostsAssigned | None) -> TrialResult:
        """The whole of it. Whatever ends it, the treated hosts are rolled back first."""
        with interruptible():
            try:
                code, design = self._measure(plan, design, assigned)
            except BaseException as error:
                reason = str(error) or type(error).__name__
                left = self._roll_back(self._record)
                code = 5 if left else error.exit_code if isinstance(error, AdvisorError) else 4
                self._journal.note(Ended(time.time(), code, "stopped", reason))
                if left:
                    items = tuple((name, self._hands.by_hand(name)) for name in left)
                    raise NotRestoredError(f"{reason}; hosts not known to be back: {len(left)}", items=items) from error
                run_id = self._journal.directory.name
                self._say(f"run {run_id}: nothing of it is active on any host")
                if not isinstance(error, RefusedError):
                    self._say(f"to resume it: advisor fleet prove --resume {run_id}")
                raise
        return TrialResult(plan, design, self._record, code)

    def settle(self, run: RunRecord) -> int | None:
        """What an interrupted trial left: kept where that was decided, else rolled back. The exit code where the trial
        is over by that. Raises NotRestoredError where a host is not known to be back."""
        if run.judged is not None:
            return self._finish(run.judged)
        opened = [*(run.open_wave.hosts if run.open_wave else ()), *run.touched]
        if opened:
            self._say(f"rolling back {', '.join(dict.fromkeys(opened))}")
        if left := self._roll_back(run, opened):
            self._journal.write(Ended(time.time(), 5, "stopped", f"not rolled back: {', '.join(left)}"))
            raise NotRestoredError(
                f"the trial was cut short; hosts not known to be back: {len(left)}",
                items=tuple((name, self._hands.by_hand(name)) for name in left),
            )
        return None

    # -- its steps ------------------------------------------------------------------------------------------------

    def _measure(self, plan: FleetPlan, design: Design, assigned: HostsAssigned | None) -> tuple[int, Design]:
        terms, claim = self._terms, self._terms.metrics[0]
        before = self._read("before", design.hosts)
        if assigned is None:
            # Nobody has been treated yet: who cannot be measured is no unit.
            levels = {name: level_of(before.figures[claim.name][name], terms.rounds) for name in design.hosts}
            measured = [name for name, level in levels.items() if level is not None]
            for name in design.hosts:
                if name not in measured:
                    why = before.failures.get(name, "no figure")
                    self._say(f"{name}: left out, as it cannot be measured: {why}")
            if len(measured) < len(design.hosts):
                design = _design_of(plan, measured, terms, [*self._hands.hosts.values()])
            detectable = self._detectable(before, design)
            assigned = HostsAssigned(time.time(), design.blocks, design.toss(terms.seed), terms.seed, detectable)
            self._journal.write(assigned)
        self._say(f"treated by the toss: {', '.join(assigned.treated)}")
        code = self._treat(plan, assigned.treated)
        if code is not None:
            return code, design
        time.sleep(terms.settle_seconds)
        after = self._read("after", design.hosts)
        not_held = self._find_not_held(assigned.treated)
        judged = judge_trial(terms, design, assigned.treated, (before, after), not_held)
        self._journal.write(judged)
        return self._finish(judged), design

    def _read(self, phase: str, names: Sequence[str]) -> PhaseMeasured:
        found = read_phase(self._hands, self._terms, names, "before" if phase == "before" else "after", self._say)
        self._journal.write(found)
        return found

    def _detectable(self, before: PhaseMeasured, design: Design) -> float | None:
        """As a ratio minus one; said, as it is all that the trial can promise."""
        claim = self._terms.metrics[0]
        changes = [baseline_change(before.figures[claim.name][name]) for name in design.hosts]
        spread = estimate_spread([change for change in changes if change is not None])
        shift = None if spread is None else detectable_effect(design, spread)
        if shift is None:
            return None
        # The halves of a period scatter more than two whole ones; so this rather overstates it.
        ratio = math.expm1(shift)
        self._say(f"by the scatter of the baseline, {ratio:.1%} on {claim.name} is found in about 80 % of trials")
        return ratio

    def _treat(self, plan: FleetPlan, treated: Sequence[str]) -> int | None:
        """Apply on the treated hosts, wave by wave; the exit code where a wave failed, and all of them are back."""
        hosts = tuple(one if one.state != "change" or one.name in treated else _as_control(one) for one in plan.hosts)
        waves = trial_waves(plan, treated, self._wish.shape)
        chosen = msgspec.structs.replace(plan, hosts=hosts, waves=waves)
        self._journal.write(Planned(time.time(), hosts, waves.waves, waves.notes))
        running.write_scripts(self._hands, chosen)
        window = window_seconds(self._terms, waves)
        options = running.Options(window, self._wish.options.gate_command, rollback_all=True, is_trial=True)
        return running.FleetRun(self._hands, chosen, self._journal, options, self._say).run_waves()

    def _find_not_held(self, treated: Sequence[str]) -> dict[str, str]:
        """Treated hosts on which the values are not as they were set, and why; a host that is gone is none of them."""
        run = self._record
        names = [name for name in treated if name in run.hosts]
        found = {name: "it was not changed" for name in treated if name not in run.hosts}
        captured = self._hands.capture(names)
        for name in names:
            known = run.hosts[name].transaction
            standing = host_standing(captured[name], (known,) if known else None, None)
            if standing.state == "drifted":
                found[name] = f"{standing.drift[0].what}: {standing.drift[0].reason}"
            elif standing.state == "nothing":
                found[name] = "it has rolled back"
        return found

    def _finish(self, judged: TrialJudged) -> int:
        """Keep the gain or roll back, and journal the end. Returns the exit code."""
        keeps = judged.verdict == "gain" and self._terms.keeps_gain
        if keeps:
            self._confirm()
        # What cannot be confirmed has rolled back, or goes back now.
        run = self._record
        left = self._roll_back(run, [name for name in run.touched if not keeps or run.hosts[name].state != "applied"])
        code = 5 if left else 0 if judged.verdict == "gain" else 1
        kept = bool(self._record.touched) and not left
        outcome: Literal["stopped", "done", "rolled-back"] = "stopped" if left else "done" if kept else "rolled-back"
        message = f"{judged.verdict}; not rolled back: {', '.join(left)}" if left else judged.verdict
        self._journal.write(Ended(time.time(), code, outcome, message))
        return code

    def _confirm(self) -> None:
        run = self._record
        waiting = [name for name, one in run.hosts.items() if one.state == "awaiting-confirmation"]
        done = {result.host: result for result in self._hands.do("confirm", waiting)}
        unsure = {name: run.sought[name] for name in waiting if name not in done or done[name].state != "applied"}
        done |= {result.host: result for result in settle_transactions(self._hands, unsure, seconds=0)}
        for result in done.values():
            self._journal.write(make_host_done(self._hands, 1, "confirm", result))

    def _roll_back(self, run: RunRecord, names: Sequence[str] | None = None) -> list[str]:
        """Roll back what is active, or may be; the hosts that are not known to be back afterwards."""
        wanted = {name: run.sought[name] for name in (run.touched if names is None else names) if name in run.sought}
        if not wanted:
            return []
        states = {name: Result(name, one.state, one.transaction, one.message) for name, one in run.hosts.items()}
        # A host that is silent is not waited for: its watchdog rolls it back, and the run names it.
        FleetRollback(self._hands, self._journal, states, self._say, window_seconds=0.0).run(1, wanted)
        return [name for name in wanted if states[name].state not in ("rolled-back", "failed", "unchanged", "refused")]


def _as_control(one: PlannedHost) -> PlannedHost:
    return msgspec.structs.replace(one, state="control", message="measured, and not changed")
