"""``advisor tune``: a race of candidates in randomised blocks, and one confirmation of its winner on fresh data.

Everything that can be refused is refused before the host is touched. The session is written to the state directory
before it starts and after every block: a search that was killed goes on where it was (`load_session`), and its values
are restored as those of every trial are. The engine (`advisor.proof.tuning.records`) knows arms by number alone. The
confirmation is a proof of its own (`advisor.proof.profile`), registered in the session before it starts.
"""

from __future__ import annotations

import gzip
import math
import os
import random
import secrets
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from advisor.errors import AdvisorError, InvalidInputError, RefusedError, UsageError
from advisor.facts.host_facts import Facts, scan
from advisor.host import Host
from advisor.host.patterns import lazy_regex
from advisor.host.putfile import put_file
from advisor.host.safe_open import make_own_directory, read_own_file
from advisor.proof.blocks import design_words, group_changes, kept_values, run_count
from advisor.proof.command_runner import explain_not_stored, results_directory, store_result
from advisor.proof.covariates import read_gate
from advisor.proof.metrics import read_identity
from advisor.proof.path import require_other_way_in
from advisor.proof.process import Stop, StoppedError, caught_signals
from advisor.proof.profile import ArmPlan, Means, locked_store, measure_arms
from advisor.proof.records import Proof
from advisor.proof.schedule import (
    HOLD_SECONDS,
    MEASURED_SLACK,
    MODES,
    RESERVE_SECONDS,
    WARM_UP_RUNS,
    enough_budget,
    level_for,
    looks_for,
    write_budget,
)
from advisor.proof.session import BLOCKS, PLACE_SECONDS
from advisor.proof.session_runner import Progress, ProgressEvent, Settings
from advisor.proof.statistics import median
from advisor.proof.tuning.arms import (
    MAX_BLOCKS,
    Candidates,
    CandidateSwitch,
    RaceArm,
    RaceLoad,
    metric_of,
    plan_offers,
    reduce_arm,
)
from advisor.proof.tuning.records import (
    PLACEBO,
    PRESENT,
    STATE_BEFORE,
    Block,
    LeftOutCandidate,
    RaceBlock,
    RaceRun,
    Registration,
    TuneAblation,
    Tuned,
    TuneSession,
    drop_arms,
    find_winner,
    rank_arms,
)
from advisor.transaction.journal import Store

MAX_CANDIDATES = 24
MIN_BLOCKS = 10
"""With fewer blocks a gain of 10 % among 12 candidates is missed more often than it is found."""
MIN_PAIRS, MAX_PAIRS = 16, 24
"""Of the confirmation."""
_KEPT_SESSIONS = 20
_MAX_SESSION = 64 << 20
_ID = lazy_regex(r"[0-9]{8}-[0-9]{6}")

Say = Callable[[str], None]


class TuneOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the user chose: the time for all of it in seconds, and what the session records of the call."""

    budget_seconds: float
    seed: int | None = None
    force: bool = False
    keep_if_gain: bool = False
    is_ablating: bool = True
    asked: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    hold_seconds: float = HOLD_SECONDS


def count_placebos(candidates: int) -> int:
    """How many arms of the race are the present value again."""
    return 1 if candidates < 6 else 2


# -- the session on disk -----------------------------------------------------------------------------------------------


def session_path(store: Store, identity: str) -> Path:
    """Where a session is kept while it may go on. Raises UsageError for what is no id of a session."""
    if not _ID.fullmatch(identity):
        raise UsageError(
            f"--resume {identity[:40]}: expected the id of a search",
            hint="the search printed it when it began, such as 20250131-142500",
        )
    return store.directory.absolute() / "searches" / f"{identity}.json"


def load_session(store: Store, identity: str) -> TuneSession:
    """A session that was begun. Raises UsageError where there is none, InvalidInputError, RefusedError."""
    path = session_path(store, identity)
    try:
        content = read_own_file(str(path), limit=_MAX_SESSION)
    except FileNotFoundError:
        known = sorted(one.stem for one in path.parent.glob("*.json")) if path.parent.is_dir() else []
        raise UsageError(
            f"--resume {identity}: there is no such search",
            hint=f"here: {', '.join(known)}"
            if known
            else f"one that has ended cannot go on; its result is in {results_directory()}",
        ) from None
    try:
        found = msgspec.json.decode(content, type=TuneSession)
        fault = "its id is another" if found.id != identity else _find_fault(found)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(f"{path}: not a search: {error}") from error
    if fault is not None:
        raise InvalidInputError(f"{path}: not a search: {fault}")
    return found


def _find_fault(session: TuneSession) -> str | None:
    """What the types do not say about a session: that it can go on, and that every figure is one."""
    names = sorted(one.name for one in session.candidates)
    if not names or session.arms[:1] != (STATE_BEFORE,):
        return "it has no arms"
    if sorted(name for name in session.arms[1:] if name != PLACEBO) != names:
        return "its arms are not its candidates"
    if not all(one.words for one in session.candidates):
        return "a candidate without words"
    if session.pattern is None and (session.command is None or not session.command.argv or not session.command.metrics):
        return "a command without words or metrics"
    if not len(session.blocks) <= session.blocks_planned <= MAX_BLOCKS or session.blocks_planned < 1:
        return "its number of blocks"
    if session.winner is not None and not 0 < session.winner < len(session.arms):
        return "a winner that is no arm"
    ablation = session.ablation
    if ablation is not None and ablation.dropped:
        raced = session.find_candidate(session.arms[session.winner or 0])
        if not ablation.kept or raced is None or not set(ablation.kept) < {one.tunable for one in raced.values}:
            return "values of the winner that it has not"
    if session.registration is not None and not 1 <= session.registration.pairs <= MAX_PAIRS:
        return "its number of pairs"
    try:
        datetime.fromisoformat(session.started)
    except ValueError:
        return "its start is no time"
    return _find_block_fault(session)


def _find_block_fault(session: TuneSession) -> str | None:
    arms, metric = set(range(len(session.arms))), metric_of(session).name
    for block in session.blocks:
        if sorted(run.arm for run in block.runs) != sorted(arms):
            return f"block {block.index} has not each of its arms once"
        if not all(run.measures.get(metric, 0.0) > 0 for run in block.runs):
            return f"block {block.index}: a run without a figure of {metric}"
        if not set(block.dropped) <= arms - {PRESENT}:
            return f"block {block.index}: an arm is dropped that it has not"
        arms -= set(block.dropped)
    return None


def _write_session(store: Store, session: TuneSession) -> None:
    path = session_path(store, session.id)
    for place in (path.parent.parent, path.parent):
        make_own_directory(str(place))
    put_file(str(path), msgspec.json.encode(session), mode=0o600, uid=os.geteuid(), gid=os.getegid())
    others = sorted((one for one in path.parent.glob("*.json") if one != path), reverse=True)
    for old in others[_KEPT_SESSIONS - 1 :]:
        old.unlink(missing_ok=True)


# -- the whole ---------------------------------------------------------------------------------------------------------


def tune(
    host: Host,
    candidates: Candidates,
    load: RaceLoad,
    options: TuneOptions,
    *,
    resumed: TuneSession | None = None,
    progress: Progress,
    say: Say,
    store: Store | None = None,
) -> Tuned:
    """Race candidates by a load within the budget, reduce the winner to the values that did it, and confirm that.

    ``resumed`` is a session that goes on, with the candidates of its record. Raises UsageError and RefusedError before
    anything is changed, StoppedError after a signal (the session can be resumed), NotRestoredError.
    """
    began = time.monotonic()
    with caught_signals() as stop, locked_store(host, store, say) as kept:
        facts = scan(host)
        arms, left = plan_offers(host, candidates.offers, facts, kept, load)
        if resumed is None:
            session = _begin_session(host, arms, (*candidates.left_out, *left), load, options, facts, stop, say)
        else:
            session = _continue_session(host, resumed, arms)
        _write_session(kept, session)
        say(f"search {session.id}: if it is cut off, advisor tune --resume {session.id} goes on")
        return _Search(host, arms, session, load, kept, facts, stop, say, progress, began).run()


def _begin_session(
    host: Host,
    arms: Sequence[RaceArm],
    left: tuple[LeftOutCandidate, ...],
    load: RaceLoad,
    options: TuneOptions,
    facts: Facts,
    stop: Stop,
    say: Say,
) -> TuneSession:
    if not arms:
        reasons = "; ".join(f"{one.name}: {one.reason}" for one in left)
        raise RefusedError(
            f"no candidate can be raced here: {reasons or 'none was found'}",
            hint="--candidates names profiles, files and values; advisor profiles lists the library",
        )
    if len(arms) > MAX_CANDIDATES:
        raise UsageError(f"--candidates: expected at most {MAX_CANDIDATES}, found {len(arms)}")
    for one in arms:
        require_other_way_in(host, facts, one.plan, force=options.force)
    gate = read_gate(host)
    for reason in gate.busy:
        say(f"the host is busy: {reason}: the search takes more runs to see an effect")
    # Before anything is changed: that it runs, holds its figures, and how long it takes.
    run_seconds = load.try_out(stop)
    names = [one.candidate.name for one in arms]
    seed = options.seed if options.seed is not None else secrets.randbits(32)
    numbered = [*names, *[PLACEBO] * count_placebos(len(names))]
    random.Random(f"arms {seed}").shuffle(numbered)
    turn = run_seconds + PLACE_SECONDS + max(one.settle_seconds for one in arms)
    reserve = max(_ablation_seconds(one, turn) for one in arms) if options.is_ablating else 0.0
    blocks = _fitting_blocks(options.budget_seconds, run_seconds, turn, 1 + len(numbered), load, reserve)
    return TuneSession(
        id=datetime.now(UTC).strftime("%Y%m%d-%H%M%S"),
        candidates=tuple(one.candidate for one in arms),
        left_out=left,
        arms=(STATE_BEFORE, *numbered),
        command=load.command,
        pattern=load.pattern,
        is_ablating=options.is_ablating,
        budget_seconds=options.budget_seconds,
        run_seconds=run_seconds,
        blocks_planned=blocks,
        seed=seed,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        host=read_identity(host),
        gate=gate,
        forced=bool(gate.busy),
        keep_if_gain=options.keep_if_gain,
        asked=options.asked,
        options=options.options,
        hold_seconds=options.hold_seconds,
    )


def _ablation_seconds(arm: RaceArm, turn: float) -> float:
    """What it takes to examine which of its values did it; 0 of one that has no two that can be switched singly."""
    try:
        units, _ = group_changes(arm.plan.changes)
        runs = run_count(design_words(len(units))) * BLOCKS["quick"] + 1 + WARM_UP_RUNS
    except AdvisorError:
        return 0.0
    return runs * turn + RESERVE_SECONDS


def _fitting_blocks(budget: float, run: float, turn: float, arms: int, load: RaceLoad, reserve: float) -> int:
    """The blocks of the race that leave room for a confirmation, and for ``reserve`` seconds if there is room for them.
    Raises RefusedError that names what would do."""
    confirmation = load.confirmation_seconds(turn, MIN_PAIRS)
    room = budget - run - confirmation
    blocks = min(MAX_BLOCKS, max(int((room - reserve) / (arms * turn)), min(MIN_BLOCKS, int(room / (arms * turn)))))
    if blocks < MIN_BLOCKS:
        needed = enough_budget(MEASURED_SLACK * (run + confirmation + MIN_BLOCKS * arms * turn))
        raise RefusedError(
            (
                f"a budget of {write_budget(budget)} is too small: a run took {run:.1f} s, so {MIN_BLOCKS} "
                f"blocks of {arms} arms and a confirmation of {MIN_PAIRS} pairs need {needed}"
            ),
            hint=f"--budget {needed}, fewer candidates, or a shorter run",
        )
    return blocks


def _continue_session(host: Host, session: TuneSession, arms: Sequence[RaceArm]) -> TuneSession:
    """The session as it goes on. Raises RefusedError where its candidates mean something else by now."""
    now = {one.candidate.name: one.candidate.values for one in arms}
    for one in session.candidates:
        bare = [(each.tunable, each.before, each.after) for each in one.values]
        if [(each.tunable, each.before, each.after) for each in now.get(one.name, ())] != bare:
            raise RefusedError(
                f"{one.name}: its values are no longer those that the search began with", hint="begin a new search"
            )
    if session.host is not None and read_identity(host).machine != session.host.machine:
        raise RefusedError("the search was begun on another host", hint="begin a new search")
    return session


class _Search:
    """Runs one session to its end. Use once."""

    def __init__(
        self,
        host: Host,
        arms: Sequence[RaceArm],
        session: TuneSession,
        load: RaceLoad,
        store: Store,
        facts: Facts,
        stop: Stop,
        say: Say,
        progress: Progress,
        began: float,
    ) -> None:
        self.host = host
        self.arms = {one.candidate.name: one for one in arms}
        self.session = session
        self.load = load
        self.store = store
        self.facts = facts
        self.stop = stop
        self.say = say
        self.progress = progress
        self._began = began - session.seconds
        self._metric = metric_of(session)
        # The proofs name these themselves.
        own = ("--workload=", "--target=")
        self._options = tuple(one for one in session.options if not one.startswith(own))

    def _update(self, **changes: object) -> None:
        seconds = time.monotonic() - self._began
        self.session = msgspec.structs.replace(self.session, seconds=seconds, **changes)
        _write_session(self.store, self.session)

    def run(self) -> Tuned:
        """Race, reduce, register, confirm. Raises StoppedError that says how to go on, and what ends a proof."""
        try:
            if not self.session.is_raced:
                with (
                    self.load.hold(len(self.session.arms), self.stop),
                    CandidateSwitch(self.host, tuple(self.arms.values()), self.store).hold() as switch,
                ):
                    self._race(switch)
            if self.session.ablation is None and self.session.registration is None:
                self._ablate()
            return self._finish(self._confirm())
        except StoppedError as error:
            raise StoppedError(
                f"{error.message}; every value is as before", hint=f"advisor tune --resume {self.session.id} goes on"
            ) from error

    # -- the race ----------------------------------------------------------------------------------------------------

    def _race(self, switch: CandidateSwitch) -> None:
        session, most = self.session, self.session.blocks_planned
        started = len(session.arms) - 1
        while True:
            done = len(self.session.blocks)
            arms = self.session.survivors
            is_last = done > 0 and not self._has_time(len(arms))
            if done:
                standings = rank_arms(self._values())
                winner = find_winner(standings, started, done, most, is_last=is_last)
                if winner is not None or is_last or done >= most or arms == (PRESENT,):
                    self._update(winner=winner, is_raced=True)
                    return
            self._run_block(switch, done, arms)

    def _run_block(self, switch: CandidateSwitch, index: int, arms: Sequence[int]) -> None:
        self._show_block(index)
        runs = []
        for arm in random.Random(f"{self.session.seed} {index}").sample(arms, len(arms)):
            self.stop.check()
            arm_of = self.arms.get(self.session.arms[arm])
            switch.place(arm_of.candidate.name if arm_of is not None else None)
            self.stop.sleep(max(one.settle_seconds for one in self.arms.values()))
            runs.append(RaceRun(arm, *self.load.run(self.stop)))
        block = RaceBlock(index, tuple(runs))
        standings = rank_arms([*self._values(), self._block_values(block)])
        dropped = drop_arms(standings, index + 1, self.session.blocks_planned)
        self._update(blocks=(*self.session.blocks, msgspec.structs.replace(block, dropped=dropped)))

    def _show_block(self, index: int) -> None:
        """Show the place in the race, without a figure: what is ahead now may be so by chance."""
        session, standing = self.session, ""
        if session.blocks:
            ahead = session.arms[max(rank_arms(self._values()), key=lambda one: one.lead).arm]
            left = {session.arms[arm] for arm in session.survivors} - {STATE_BEFORE, PLACEBO}
            standing = f"{len(left)} of {len(session.candidates)} candidates left; ahead so far, which may be chance: "
            standing += "the present state" if ahead in (STATE_BEFORE, PLACEBO) else ahead
        left_seconds = max(0.0, self._seconds_left())
        self.progress(ProgressEvent("block", index + 1, session.blocks_planned, left_seconds, standing=standing))

    def _block_values(self, block: RaceBlock) -> Block:
        return {run.arm: self._metric.sign * math.log(run.measures[self._metric.name]) for run in block.runs}

    def _values(self) -> list[Block]:
        return [self._block_values(block) for block in self.session.blocks]

    def _turn_seconds(self) -> float:
        """What a run takes with its switch: the median of the latest ones."""
        runs = [run.seconds for block in self.session.blocks[-3:] for run in block.runs]
        settle = max(one.settle_seconds for one in self.arms.values())
        return (median(runs) if runs else self.session.run_seconds) + PLACE_SECONDS + settle

    def _seconds_left(self) -> float:
        return self.session.budget_seconds - (time.monotonic() - self._began)

    def _has_time(self, arms: int) -> bool:
        """Whether one more block fits before the confirmation."""
        turn = self._turn_seconds()
        return self._seconds_left() >= arms * turn + self.load.confirmation_seconds(turn, MIN_PAIRS)

    # -- which value did it ------------------------------------------------------------------------------------------

    @property
    def _winner(self) -> RaceArm | None:
        return self.arms.get(self.session.arms[self.session.winner]) if self.session.winner is not None else None

    @property
    def _offered(self) -> RaceArm | None:
        """The winner without the values of which no effect was shown."""
        winner, ablation = self._winner, self.session.ablation
        if winner is None or ablation is None or not ablation.dropped:
            return winner
        return reduce_arm(winner, ablation.kept)

    def _ablate(self) -> None:
        """Find the winner's values with an effect, in the time that a confirmation leaves."""
        winner = self._winner
        if winner is None or not self.session.is_ablating or len(winner.plan.changes) < 2:
            return
        turn = self._turn_seconds()
        room = self._seconds_left() - self.load.confirmation_seconds(turn, MIN_PAIRS)
        needed = _ablation_seconds(winner, turn)
        if not needed:
            self._update(ablation=TuneAblation(reason="its values cannot be switched singly"))
            return
        if room < needed:
            reason = f"the budget left {max(0.0, room) / 60:.0f} min for it, and it takes {needed / 60:.0f} min"
            self._update(ablation=TuneAblation(reason=reason))
            return
        self.say(f"which of the values of {winner.candidate.name} did it: combinations of them")
        settings = Settings(
            mode="quick",
            budget_seconds=room,
            seed=random.Random(f"ablation {self.session.seed}").getrandbits(32),
            force=True,
            keep_result=True,
            keep_partial=False,
        )
        found = self._measure(winner, settings, are_values=True)
        design = found.session.ablation
        assert design is not None
        shown = {tunable for name in kept_values(found) for tunable in design.units[name]}
        unswitched = {one.tunable for one in design.left_out}
        every = [one.tunable for one in winner.plan.changes]
        kept = [one for one in every if one in shown | unswitched] if shown else every
        self._update(
            ablation=TuneAblation(
                tuple(kept),
                tuple(one for one in every if one not in kept),
                is_examined=True,
                reason="" if shown else "no effect of a single value is shown, so the whole was confirmed",
                saved_to=found.saved_to,
            )
        )

    def _measure(self, arm: RaceArm, settings: Settings, *, are_values: bool = False) -> Proof:
        means = Means(command=self.load.process, options=self._options, progress=self.progress, say=self.say)
        return measure_arms(
            self.host,
            [ArmPlan(arm.asked.profile.name, arm.asked, arm.plan)],
            self.facts,
            self.load.claims,
            self.load.complete(settings),
            means,
            self.store,
            are_values=are_values,
        )

    # -- the confirmation --------------------------------------------------------------------------------------------

    def _confirm(self) -> Proof | None:
        """The registered comparison of the winner with the state before; None where there is nothing to confirm."""
        session = self.session
        winner = self._offered
        if winner is None:
            return None
        registered = session.registration or self._register(winner)
        attempts = registered.attempts + 1
        self._update(registration=msgspec.structs.replace(registered, attempts=attempts))
        self.say(
            f"registered: {winner.candidate.name} against the state before, by {registered.metric}, at most "
            f"{registered.pairs} pairs on fresh data"
        )
        turn = self._turn_seconds()
        budget = max(self._seconds_left(), self.load.confirmation_seconds(turn, registered.pairs))
        settings = Settings(
            pairs=registered.pairs,
            budget_seconds=budget,
            seed=registered.seed,
            force=True,
            keep_result=True,
            keep_partial=False,
            attempts=attempts,
            hold_seconds=session.hold_seconds,
        )
        try:
            return self._measure(winner, settings)
        except RefusedError:
            # No pair was measured.
            self._update(registration=registered)
            raise

    def _register(self, winner: RaceArm) -> Registration:
        """Fix what is compared, as large as the time that is left allows, before it starts."""
        turn = self._turn_seconds()
        pairs = MIN_PAIRS
        while pairs < MAX_PAIRS and self.load.confirmation_seconds(turn, pairs + 1) <= self._seconds_left():
            pairs += 1
        looks = looks_for(pairs, MODES["default"])
        return Registration(
            candidate=winner.candidate.name,
            metric=self._metric.name,
            pairs=pairs,
            looks=looks,
            alpha=level_for(looks),
            margin=MODES["default"].margin,
            seed=random.Random(f"confirmation {self.session.seed}").getrandbits(32),
            registered=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _finish(self, proof: Proof | None) -> Tuned:
        self._update()
        session, offered = self.session, self._offered
        if proof is not None and offered is not None:
            is_ablated = session.ablation is not None and session.ablation.is_examined
            found = Tuned(proof.verdict, session, offered.candidate, proof, is_ablated, reasons=proof.reasons)
        elif session.winner is not None and session.arms[session.winner] == PLACEBO:
            found = Tuned("placebo-ahead", self.session)
        else:
            found = Tuned("no-winner", self.session)
        return found


def save_tuned(found: Tuned, store: Store) -> Tuned:
    """Keep a result with the proofs and forget the session, as it cannot go on; a note where it cannot be written."""
    started = datetime.fromisoformat(found.session.started).astimezone(UTC)
    try:
        path = store_result(gzip.compress(msgspec.json.encode(found), mtime=0), "tune", started)
    except (OSError, AdvisorError) as error:
        reason = f"the result was not saved: {explain_not_stored(error)}"
        return msgspec.structs.replace(found, reasons=(*found.reasons, reason))
    session_path(store, found.session.id).unlink(missing_ok=True)
    return msgspec.structs.replace(found, saved_to=str(path))
