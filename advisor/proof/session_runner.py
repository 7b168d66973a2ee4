"""The session itself, step by step: scratch file, warm-up, pairs and looks, restore. See ``protocol.prove``.

The one mutable object of the room. It only ever measures and counts; what the figures mean is asked of
``verdict`` at the looks fixed beforehand, and no figure is shown while the session runs. ``SessionRunner`` is what the
pairs and blocks of `prove` and the rounds of `bench` have in common.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import msgspec

from advisor.errors import AdvisorError, NotRestoredError, RefusedError
from advisor.host import Host
from advisor.host.numbers import count_noun
from advisor.proof import fio
from advisor.proof.archive import Result
from advisor.proof.arms import Arms, Reconnect, Record, Recorder, Toggle
from advisor.proof.blocks import combination_digits, conclude_session, draw_combinations, is_withheld
from advisor.proof.covariates import CalmGate
from advisor.proof.measurer import MeasurePace, Measurer, is_under_pressure, lamps_of, place_targets
from advisor.proof.own_command import COMMAND_WORKLOAD
from advisor.proof.process import Stop, StoppedError
from advisor.proof.records import PAIRED, Arm, Ended, FioRun, Hold, Pair, Proof, Session, measured_workloads
from advisor.proof.schedule import CONTROL_SECONDS, HOLD_RUNS, HOLD_SECONDS, REPEAT_SHARE, ModeName, Schedule
from advisor.proof.scratch import DEFAULT_KEEP, Keep
from advisor.proof.series import Round
from advisor.proof.target import MeasuredTarget
from advisor.proof.verdict import is_settled
from advisor.proof.workloads import Pattern, get_workload

SEQUENCE_RUNS = 8

Stage = Literal["plan", "scratch", "warm-up", "probe", "pair", "round", "block", "hold", "restore"]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the user chose.

    ``target`` is a directory. ``budget_seconds`` always wins over the mode.
    ``pairs`` replaces the mode's number of them. ``byte_budget`` replaces both defaults (8 GiB and 1 % of the device),
    ``seconds`` (0.1 to 600) the mode's length of a run. ``places`` are sections of workloads with the directory that
    each works in, where that is not the target. ``seed`` of the coin is drawn and recorded where none is given.
    ``save_to`` is where the result with every run goes; without it, ``keep_result`` keeps it in the state directory.
    Without ``keep_partial``, only a session that was measured to its end is kept. ``attempts`` counts how often this
    comparison was started, with this one.
    """

    target: str = ""
    mode: ModeName = "default"
    pairs: int | None = None
    budget_seconds: float | None = None
    byte_budget: int | None = None
    scratch_bytes: int | None = None
    places: tuple[tuple[str, str], ...] = ()
    seconds: float | None = None
    seed: int | None = None
    keep_if_gain: bool = False
    force: bool = False
    allow_link_flap: bool = False
    keep: Keep = DEFAULT_KEEP
    save_to: str | None = None
    keep_result: bool = False
    keep_partial: bool = True
    attempts: int = 1
    self_test: bool = False
    hold_seconds: float = HOLD_SECONDS
    """How long each arm is held before a verdict."""
    is_check: bool = False
    """Whether to end before anything is changed, with what would be measured."""
    ask: Callable[[str], None] = lambda _: None
    """Tells what a busy host costs. Raises RefusedError where it is not to be measured."""


class ProgressEvent(msgspec.Struct, frozen=True):
    """Where a session is: pair (or round) ``pair`` of ``pairs``, seconds left at most, contamination lamps of the last.

    No figure and no effect, so that nobody stops at a lucky moment. ``schedule`` comes with the stage ``plan``, and
    with it the number of ``workloads`` where rounds are laid out.
    """

    stage: Stage
    pair: int
    pairs: int
    seconds_left: float
    lamps: tuple[str, ...] = ()
    schedule: Schedule | None = None
    workloads: int = 0
    are_combined: bool = False
    """Whether a block has combinations of values in place of arms."""
    standing: str = ""
    """The candidates that are left in a race."""


Progress = Callable[[ProgressEvent], None]


def silent(_event: ProgressEvent) -> None:
    """Show nothing."""


class Site(NamedTuple):
    """Where and with what a session measures, how it is stopped, and where it shows its progress."""

    host: Host
    target: MeasuredTarget
    settings: Settings
    runner: fio.FioRunner
    stop: Stop
    progress: Progress = silent


def accept_busy(gate: CalmGate, schedule: Schedule, settings: Settings) -> None:
    """Say what a busy host costs, and ask. Raises RefusedError where the answer is no."""
    if gate.busy and not settings.force:
        unit = {1: "round", 2: "pair"}.get(schedule.arms, "block")
        settings.ask(
            f"the host is busy: {'; '.join(gate.busy)}. Other load falls on all arms alike: it takes more time, and a"
            f" smaller effect may stay unseen. At most {count_noun(schedule.pairs, unit)}, about"
            f" {math.ceil(schedule.predicted_seconds / 60)} min"
        )


class InterruptedSessionError(StoppedError):
    """A signal ended the session; the host is as before and the scratch file gone. ``result`` is the partial one."""

    def __init__(self, message: str, result: Any, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.result = result


Unit = TypeVar("Unit", bound=Pair | Round)


class SessionRunner(Generic[Record, Result, Unit]):
    """Measures a session unit by unit (pair, block or round) and restores the host however it ends. Use once."""

    unit: Stage
    field: ClassVar[str]
    """The field of the record that holds the units."""
    aftermath: str
    """What is true of the host after an interruption."""
    baseline: Arm = "A"
    """The host as it was."""

    def __init__(
        self, site: Site, record: Record, workloads: Sequence[Pattern], conclude: Callable[[Record], Result]
    ) -> None:
        host, target, settings, runner, self.stop, self.progress = site
        self.settings = settings
        self.schedule = record.schedule
        self.workloads = workloads
        self.runs_command = any(one.name == COMMAND_WORKLOAD for one in workloads)
        self.coin = random.Random(record.seed)
        places = place_targets(host, settings.places, self.workloads)
        self.measurer = Measurer(host, target, record.schedule, settings.keep, runner, self.stop, record.notes, places)
        self.pace = MeasurePace(record.schedule, self.workloads, settings.budget_seconds, self.measurer.began)
        self.unfinished: list[Any] = []
        """What is measured of the unit under way."""
        self.by_hand: str | None = None
        """The command that sets the value that could not be restored."""
        self.is_restored = True
        self.recorder: Recorder[Record, Result] = Recorder(
            record, self.measurer, conclude, save_to=settings.save_to, keep_result=settings.keep_result
        )

    # -- what a kind of session adds ------------------------------------------------------------------------------

    def measure_all(self) -> None:
        """Everything from the idle sample on."""
        self.prepare()
        self.measure_units()

    def measure_unit(self, index: int, attempt: int) -> Unit:
        """One pair, block or round. ``unfinished`` holds what there is of it while it is measured."""
        raise NotImplementedError

    def partial_unit(self, unfinished: list[Any]) -> Unit:
        """What an interruption left of a unit."""
        raise NotImplementedError

    def runs_of(self, one: Unit) -> Sequence[FioRun]:
        """The runs that contamination is judged by."""
        raise NotImplementedError

    def is_settled(self, done: int) -> bool:
        """Whether the verdict cannot change any more after ``done`` units."""
        return False

    def describe_fault(self, error: AdvisorError) -> str:
        """What the result says about an error that ended the session."""
        return f"{error.message}; {error.hint}" if self.runs_command and error.hint else error.message

    def restore_host(self) -> None:
        """The host as it was. Signals cannot reach in here: they are only noted."""

    def remove_scratch(self) -> None:
        self.measurer.remove_scratch()

    def not_restored_error(self) -> NotRestoredError:
        raise NotImplementedError

    # -- the whole -----------------------------------------------------------------------------------------------

    def run(self) -> Result:
        """Measure to the end and restore the host.

        Raises RefusedError, NotRestoredError, and InterruptedSessionError with the partial result after a signal.
        """
        early: StoppedError | RefusedError | None = None
        is_foreseen = False
        try:
            try:
                self.measure_all()
            except (StoppedError, RefusedError) as error:
                early = error
                self.end_session("interrupted")
            except AdvisorError as error:
                self._record_fault(self.describe_fault(error))
            finally:
                # the host is restored before the scratch file goes
                try:
                    self.restore_host()
                finally:
                    self.remove_scratch()
            is_foreseen = True
        finally:
            # written also when something unforeseen goes past
            if not is_foreseen:
                self.end_session("fault")
            # of a refusal there is nothing to keep
            is_whole = is_foreseen and early is None
            is_kept = is_whole or self.settings.keep_partial
            found = self.recorder.finish(is_worth_keeping=is_kept and not isinstance(early, RefusedError))
        if not self.is_restored:
            raise self.not_restored_error()
        if isinstance(early, RefusedError):
            raise early
        if early is not None:
            hint = f"the partial result is in {found.saved_to}" if found.saved_to else None
            message = f"{early.message} after {self.done_units()} {self.unit}s; {self.aftermath}"
            raise InterruptedSessionError(message, found, hint=hint)
        return found

    def prepare(self) -> None:
        """Scratch file and warm-up, before anything is changed, and whether others use the device. Raises RefusedError
        where runs are too short to be timed."""
        idle = self.measurer.sample_idle()
        if self.schedule.scratch_bytes:
            self.show_progress("scratch")
        self.measurer.make_scratch()
        self.warm_up(self.baseline)
        reason = self.measurer.foreign_reason(idle)
        if reason is not None:
            before: CalmGate = self.session.gate
            self.recorder.update(gate=msgspec.structs.replace(before, busy=(*before.busy, reason)), forced=True)
        self.measurer.require_timed()

    def warm_up(self, arm: Arm) -> None:
        self.show_progress("warm-up")
        for workload in self.workloads:
            self.measurer.warm_up_workload(arm, workload)

    def measure_units(self) -> None:
        repeats_left = int(self.schedule.pairs * REPEAT_SHARE)
        for index in range(self.schedule.pairs):
            if not self.pace.has_time():
                return self.end_session("budget")
            if not self.pace.has_bytes(self.measurer.bytes_written, 1):
                return self.end_session("bytes")
            one = self._run_unit(index, 0)
            while one.contaminated and repeats_left > 0 and self.pace.has_time() and self._has_bytes():
                repeats_left -= 1
                repeated = self._run_unit(index, one.attempt + 1)
                # only now: a unit whose repeat never came to an end stays in
                done = msgspec.structs.replace(one, superseded=True)
                self.recorder.update(**{self.field: tuple(done if seen is one else seen for seen in self._recorded())})
                one = repeated
            if is_under_pressure([self.runs_of(seen) for seen in self._recorded()]):
                self.measurer.note(f"ended early: others were waiting for I/O in three {self.unit}s in a row")
                return self.end_session("io-pressure")
            if self.is_settled(index + 1):
                return self.end_session("settled")
        return None

    def _run_unit(self, index: int, attempt: int) -> Unit:
        began, before = time.monotonic(), self._recorded()
        self.show_progress(self.unit, index + 1, lamps_of(self.runs_of(before[-1])) if before else ())
        one = self.measure_unit(index, attempt)
        self.unfinished = []
        self.add_unit(one)
        self.pace.seconds.append(time.monotonic() - began)
        return one

    def _has_bytes(self) -> bool:
        """Whether one more unit fits in addition to the planned ones: repeats use what time-bound runs leave."""
        return self.pace.has_bytes(self.measurer.bytes_written, self.schedule.pairs - self.done_units() + 1)

    # -- records -------------------------------------------------------------------------------------------------

    @property
    def session(self) -> Record:
        """All that is recorded so far."""
        return self.recorder.record

    def _recorded(self) -> tuple[Unit, ...]:
        found: tuple[Unit, ...] = getattr(self.session, self.field)
        return found

    def add_unit(self, one: Unit) -> None:
        self.recorder.update(**{self.field: (*self._recorded(), one)})

    def done_units(self) -> int:
        return sum(1 for one in self._recorded() if one.whole and not one.superseded)

    def end_session(self, how: Ended) -> None:
        self.recorder.update(ended=how)
        if self.unfinished:
            left, self.unfinished = self.unfinished, []
            self.add_unit(self.partial_unit(left))

    def _record_fault(self, text: str) -> None:
        self.recorder.update(faults=(*self.session.faults, text))
        self.end_session("fault")

    def show_progress(self, stage: Stage, number: int = 0, lamps: tuple[str, ...] = ()) -> None:
        left = self.pace.seconds_left(max(number - 1, 0), is_under_way=stage == self.unit)
        self.progress(ProgressEvent(stage, number, self.schedule.pairs, left, lamps))

    def restore_arm(self, restore: Callable[[], None], subject: str) -> None:
        """Restore the host by ``restore``; what fails is recorded. ``subject`` is what was to be restored."""
        try:
            self.show_progress("restore")
        finally:
            # whatever became of the terminal that progress is shown on
            try:
                restore()
            except BaseException as error:
                self.is_restored = False
                self.recorder.update(restored=False)
                if not isinstance(error, AdvisorError):
                    raise
                self.by_hand = error.hint
                self._record_fault(f"{subject} could not be restored: {error.message}")


class Conductor(SessionRunner[Session, Proof, Pair]):
    """Runs one session of two arms, in pairs, or of several, in blocks."""

    field = "pairs"

    def __init__(self, site: Site, toggle: Toggle, session: Session, reconnect: Reconnect | None = None) -> None:
        workloads = [session.subject.pattern_of(name) for name in measured_workloads(session.subject)]
        self.unit = "pair" if session.is_paired else "block"
        self.baseline = session.arms[0]
        super().__init__(site, session, workloads, conclude_session)
        place = "nothing was changed" if session.self_test else "the host is as before"
        self.aftermath = place if session.subject.command else f"{place}, the scratch file is gone"
        self.control = get_workload(session.subject.control) if session.subject.control else None
        self.arms = Arms(toggle, reconnect, self.measurer, self.stop)

    def measure_all(self) -> None:
        # arm B is not placed before the host was found calm
        self.prepare()
        if self.arms.toggle_class == "T3":
            self._measure_sequence()
        else:
            if self.session.is_paired:
                self.warm_up("B")
            self.measure_units()
            self._hold_arms()
        self.stop.check()
        if self.settings.keep_if_gain and self.recorder.result().is_gain:
            self.arms.place("B")
            self.recorder.update(kept=True)

    def _measure_sequence(self) -> None:
        """A-B-A for what cannot be toggled freely: a block of each, and the return to A as the check."""
        count = min(SEQUENCE_RUNS, self.schedule.pairs)
        if self.settings.budget_seconds is not None:
            # three blocks where the layout reckoned with two arms
            count = max(1, count * 2 // 3)
        blocks: list[list[list[FioRun]]] = []
        self.unfinished = unfinished = []
        order: Sequence[Arm] = ("A", "B", "A")
        for arm in order:
            self.show_progress("pair")
            if self.arms.placed != arm:
                self.arms.place(arm)
            block = []
            for _ in range(count):
                block.append([self._run_fio(arm, one, self.schedule.seconds_per_run) for one in self.workloads])
                unfinished.extend(block[-1])
            blocks.append(block)
        self.unfinished = []
        for index, parts in enumerate(zip(*blocks, strict=True)):
            runs = self.measurer.judged([run for part in parts for run in part])
            self.add_unit(Pair(index, 0, "ABA", runs, contaminated=bool(lamps_of(runs))))

    def partial_unit(self, unfinished: list[FioRun]) -> Pair:
        order = "".join(dict.fromkeys(run.arm for run in unfinished)) if self.session.is_paired else ""
        return Pair(len(self.session.pairs), 0, order, tuple(unfinished), whole=False)

    def runs_of(self, one: Pair) -> Sequence[FioRun]:
        return one.runs

    def is_settled(self, done: int) -> bool:
        return done in self.schedule.looks[:-1] and is_settled(self.session)

    def show_progress(self, stage: Stage, number: int = 0, lamps: tuple[str, ...] = ()) -> None:
        super().show_progress(stage, number or self.done_units(), lamps)

    def remove_scratch(self) -> None:
        self.measurer.remove_scratch(after_remount=self.arms.is_reconnecting)

    def restore_host(self) -> None:
        if self.arms.placed is not None and not (self.session.kept and self.arms.placed == "B"):
            self.restore_arm(lambda: self.arms.put_back(self.baseline), f"arm {self.baseline}")

    def not_restored_error(self) -> NotRestoredError:
        words = self.session.faults[-1] if self.session.faults else "the values from before could not be restored"
        # Where the transaction that holds the arms restores nothing either, its own error names each value instead.
        items = ((f"profile {self.session.subject.profile}", self.by_hand or "advisor status"),)
        return NotRestoredError(words, items=items)

    # -- runs ----------------------------------------------------------------------------------------------------

    def _run_fio(self, arm: Arm, workload: Pattern, seconds: float) -> FioRun:
        return self.measurer.run(arm, workload, seconds, self._fio_options(arm, workload))

    def _fio_options(self, arm: Arm, workload: Pattern) -> tuple[str, ...]:
        return () if workload == self.control else self.arms.fio_options(arm)

    def warm_up(self, arm: Arm) -> None:
        self.show_progress("warm-up")
        self.arms.place(arm)
        for workload in self.workloads:
            self.measurer.warm_up_workload(arm, workload, self._fio_options(arm, workload))

    def draw_order(self) -> Sequence[Arm]:
        """The arms of a pair or block in the order of their turns, by the coin."""
        arms, ablation = self.session.arms, self.session.ablation
        if ablation is not None:
            turns = draw_combinations(arms[1:], ablation.words, self.coin)
            return [combination_digits(arms[1:], active) for active in turns]
        if self.session.is_paired:
            return PAIRED if self.coin.getrandbits(1) else PAIRED[::-1]
        return self.coin.sample(arms, len(arms))

    def measure_unit(self, index: int, attempt: int) -> Pair:
        order, is_paired = self.draw_order(), self.session.is_paired
        seconds = self.schedule.seconds_per_run
        control_runs: list[FioRun] = []
        self.unfinished = runs = list[FioRun]()
        for arm in order:
            self.arms.place(arm)
            turn = self.workloads if is_paired else self.coin.sample(self.workloads, len(self.workloads))
            for workload in turn:
                runs.append(self._run_fio(arm, workload, seconds))
            if self.control is not None:
                control_runs.append(self._run_fio(arm, self.control, min(CONTROL_SECONDS, seconds)))
        judged = self.measurer.judged(runs)
        shown = "".join(order) if is_paired else ""
        return Pair(index, attempt, shown, judged, tuple(control_runs), contaminated=bool(lamps_of(judged)))

    def _hold_arms(self) -> None:
        """Before a verdict: each arm for a longer time, as an effect may come after a turn's end, and then count for
        the arm that comes next. Where the held arms say otherwise than the pairs, which noise may do, once more."""
        if self.settings.self_test or not self.schedule.hold_seconds:
            return
        found = self.recorder.result()
        called = {one.arm for one in found.workloads if one.verdict in ("gain", "loss")}
        self.recorder.update(wants_hold=self.session.is_paired, holds_all=True)
        if self.session.is_paired:
            called = {"B"} if called or found.tendency == "no-difference" else set()
        arms = [arm for arm in self.session.arms if arm in called or (called and arm == self.baseline)]
        for _ in range(2):
            seconds = len(arms) * (self.schedule.hold_seconds + self.schedule.pair_seconds / self.schedule.arms)
            if not arms or not self.pace.has_seconds(seconds):
                return
            for arm in self.coin.sample(arms, len(arms)):
                self.show_progress("hold")
                self.recorder.update(holds=(*self.session.holds, self._hold_arm(arm)))
            if not is_withheld(self.session):
                return

    def _hold_arm(self, arm: Arm) -> Hold:
        """Spread over the time as many runs of each claimed workload as the layout has room for; those of a short
        command take longer than itself, and end with the time."""
        names = list(dict.fromkeys(claim.workload for claim in self.session.subject.claims))
        self.arms.place(arm)
        began, runs = time.monotonic(), list[FioRun]()
        for number in range(self.schedule.hold_runs):
            is_over = number >= HOLD_RUNS and time.monotonic() - began >= self.schedule.hold_seconds
            if is_over or not self.pace.has_bytes(self.measurer.bytes_written, 1):
                break
            due = began + number * self.schedule.hold_seconds / self.schedule.hold_runs
            self.stop.sleep(max(0.0, due - time.monotonic()))
            for name in names:
                pattern = self.session.subject.pattern_of(name)
                runs.append(self._run_fio(arm, pattern, self.schedule.seconds_per_run))
        return Hold(arm, tuple(runs))
