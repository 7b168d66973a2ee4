"""The session itself, step by step: scratch file, warm-up, pairs and looks, restore. See ``protocol.prove``.

The one mutable object of the room. It only ever measures and counts; what the figures mean is asked of
``verdict`` at the looks fixed beforehand, and no figure is shown while the session runs.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Literal

import msgspec

from advisor.errors import AdvisorError, NotRestoredError, RefusedError
from advisor.host import Host
from advisor.i18n import msg
from advisor.proof import fio
from advisor.proof.arms import Arms, Reconnect, Toggle
from advisor.proof.credits import EbsVolume
from advisor.proof.interrupt import Stop, StoppedError
from advisor.proof.measurer import MeasurePace, Measurer, is_under_pressure, lamps_of, place_targets
from advisor.proof.recorder import Recorder
from advisor.proof.records import Arm, Ended, FioRun, Hold, Pair, Proof, Session, measured_workloads
from advisor.proof.schedule import CONTROL_SECONDS, HOLD_SECONDS, REPEAT_SHARE, ModeName, Schedule
from advisor.proof.scratch import DEFAULT_KEEP, Keep
from advisor.proof.target import MeasuredTarget, RawDevice
from advisor.proof.verdict import decide_session, is_settled
from advisor.proof.workloads import Pattern, get_workload

SEQUENCE_RUNS = 8
MAX_HOLD_RUNS = 60

Stage = Literal["plan", "scratch", "warm-up", "pair", "round", "block", "hold", "restore"]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the user chose.

    ``target`` is a directory, ``raw`` a disk itself instead. ``budget_seconds`` always wins over the mode.
    ``byte_budget`` replaces both defaults (8 GiB and 1 % of the device),
    ``seconds`` (0.1 to 600) the mode's length of a run. ``places`` are sections of workloads with the directory that
    each works in, where that is not the target. ``seed`` of the coin is drawn and recorded where none is given.
    ``volume`` is what the target lies on, where it has burst credits.
    ``save_to`` is where the result with every run goes; without it, ``keep_result`` keeps it in the state directory.
    """

    target: str = ""
    raw: RawDevice | None = None
    mode: ModeName = "default"
    budget_seconds: float | None = None
    byte_budget: int | None = None
    volume: EbsVolume | None = None
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
    self_test: bool = False


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


Progress = Callable[[ProgressEvent], None]


def silent(_event: ProgressEvent) -> None:
    """Show nothing."""


class InterruptedProofError(StoppedError):
    """A signal ended the session; arm A is back and the scratch file gone. ``proof`` is the partial result."""

    def __init__(self, message: str, proof: Proof, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.proof = proof


class Conductor:
    """Conducts one session. Use once: ``Conductor(...).conduct()``."""

    def __init__(
        self,
        host: Host,
        target: MeasuredTarget,
        toggle: Toggle,
        settings: Settings,
        session: Session,
        runner: fio.FioRunner,
        stop: Stop,
        progress: Progress,
        reconnect: Reconnect | None,
    ) -> None:
        self.settings = settings
        self.schedule = session.schedule
        self.stop = stop
        self.progress = progress
        self.workloads = [get_workload(name) for name in measured_workloads(session.subject)]
        self.control = get_workload(session.subject.control) if session.subject.control else None
        self.coin = random.Random(session.seed)
        places = place_targets(host, settings.places, self.workloads)
        self.measurer = Measurer(host, target, session.schedule, settings.keep, runner, stop, session.notes, places)
        self.pace = MeasurePace(session.schedule, self.workloads, settings.budget_seconds, self.measurer.began)
        self.arms = Arms(toggle, reconnect, self.measurer, stop)
        self.unfinished: list[FioRun] = []
        self.by_hand: str | None = None
        """The command that sets the value that could not be restored."""
        self.recorder: Recorder[Session, Proof] = Recorder(
            session, self.measurer, decide_session, save_to=settings.save_to, keep_result=settings.keep_result
        )

    # -- the whole -----------------------------------------------------------------------------------------------

    def conduct(self) -> Proof:
        """Run the session to its end and restore the host. See ``protocol.prove`` for what is raised."""
        early: StoppedError | RefusedError | None = None
        is_foreseen = False
        try:
            with ExitStack() as stack:
                # last in, first out: the host is restored before the scratch file goes
                stack.callback(self._remove_scratch)
                stack.callback(self._restore_host)
                try:
                    self._measure_session()
                    self._keep_gain()
                except (StoppedError, RefusedError) as error:
                    early = error
                    self._end_session("interrupted")
                except AdvisorError as error:
                    self._record_fault(error.message)
            is_foreseen = True
        finally:
            # written also when something unforeseen goes past
            if not is_foreseen:
                self._end_session("fault")
            # of a refusal there is nothing to keep
            proof = self.recorder.finish(is_worth_keeping=not isinstance(early, RefusedError))
        if not self.session.restored:
            raise self._not_restored()
        if isinstance(early, RefusedError):
            raise early
        if early is not None:
            raise self._interrupted_error(early, proof)
        return proof

    def _interrupted_error(self, stopped: StoppedError, proof: Proof) -> InterruptedProofError:
        hint = msg("the partial result is in {path}", path=proof.saved_to) if proof.saved_to else None
        message = f"{stopped.message} after {self._done_pairs()} pairs; arm A is in place, the scratch file is gone"
        return InterruptedProofError(message, proof, hint=hint)

    def _measure_session(self) -> None:
        idle = self.measurer.sample_idle()
        self._make_scratch()
        self._warm_up("A")
        # before arm B is ever placed
        reason = self.measurer.foreign_reason(idle)
        if reason is not None:
            self._refuse_or_force(reason)
        self.measurer.require_timed()
        if self.arms.toggle_class == "T3":
            self._measure_sequence()
            return
        self._warm_up("B")
        self._measure_pairs()
        self._hold_arms()

    # -- records -------------------------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        """All that is recorded so far."""
        return self.recorder.record

    def _end_session(self, how: Ended) -> None:
        self.recorder.update(ended=how)
        if self.unfinished:
            runs, self.unfinished = tuple(self.unfinished), []
            pair = Pair(len(self.session.pairs), 0, "".join(dict.fromkeys(run.arm for run in runs)), runs, whole=False)
            self.recorder.update(pairs=(*self.session.pairs, pair))

    def _record_fault(self, text: str) -> None:
        self.recorder.update(faults=(*self.session.faults, text))
        self._end_session("fault")

    def _show_progress(self, stage: Stage, number: int | None = None, lamps: tuple[str, ...] = ()) -> None:
        done = self._done_pairs() if number is None else number - 1
        left = self.pace.seconds_left(done, is_under_way=stage == "pair")
        self.progress(ProgressEvent(stage, number or done, self.schedule.pairs, left, lamps))

    def _done_pairs(self) -> int:
        return sum(1 for pair in self.session.pairs if pair.whole and not pair.superseded)

    # -- scratch file --------------------------------------------------------------------------------------------

    def _make_scratch(self) -> None:
        if self.schedule.scratch_bytes:
            self._show_progress("scratch")
        self.measurer.make_scratch()

    def _remove_scratch(self) -> None:
        self.measurer.remove_scratch(after_remount=self.arms.is_reconnecting)

    # -- arms ----------------------------------------------------------------------------------------------------

    def _restore_host(self) -> None:
        """Arm A, or B where it is kept. Signals cannot reach in here: they are only noted."""
        if self.arms.placed is None or (self.session.kept and self.arms.placed == "B"):
            return
        try:
            self._show_progress("restore")
        finally:
            # whatever became of the terminal that progress is shown on
            self._put_back()

    def _put_back(self) -> None:
        try:
            self.arms.put_back()
        except AdvisorError as error:
            self.by_hand = error.hint
            self.recorder.update(restored=False)
            self._record_fault(f"arm A could not be restored: {error.message}")
        except BaseException:
            self.recorder.update(restored=False)
            raise

    def _keep_gain(self) -> None:
        self.stop.check()
        if not self.settings.keep_if_gain or not decide_session(self.session).is_gain:
            return
        self.arms.place("B")
        self.recorder.update(kept=True)

    def _not_restored(self) -> NotRestoredError:
        words = self.session.faults[-1] if self.session.faults else "arm A could not be restored"
        # Where the transaction that holds the arms restores nothing either, its own error names each value instead.
        items = ((f"profile {self.session.subject.profile}", self.by_hand or "advisor status"),)
        return NotRestoredError(words, items=items)

    # -- runs ----------------------------------------------------------------------------------------------------

    def _run_fio(self, arm: Arm, workload: Pattern, seconds: float) -> FioRun:
        return self.measurer.run(arm, workload, seconds, self._fio_options(arm, workload))

    def _fio_options(self, arm: Arm, workload: Pattern) -> tuple[str, ...]:
        return () if workload == self.control else self.arms.fio_options(arm)

    # -- warm-up -------------------------------------------------------------------------------------------------

    def _warm_up(self, arm: Arm) -> None:
        self._show_progress("warm-up")
        self.arms.place(arm)
        for workload in self.workloads:
            self.measurer.warm_up_workload(arm, workload, self._fio_options(arm, workload))

    def _refuse_or_force(self, reason: str) -> None:
        if not self.settings.force:
            raise RefusedError(
                msg("the host is busy: {reason}", reason=reason),
                hint="try again later; --force measures all the same, and the verdict is then indicative at most",
            )
        gate = msgspec.structs.replace(self.session.gate, busy=(*self.session.gate.busy, reason))
        self.recorder.update(gate=gate, forced=True)

    # -- pairs ---------------------------------------------------------------------------------------------------

    def _measure_pairs(self) -> None:
        repeats_left = int(self.schedule.pairs * REPEAT_SHARE)
        index = 0
        while index < self.schedule.pairs:
            if not self.pace.has_time():
                self._end_session("budget")
                return
            if not self.pace.has_bytes(self.measurer.bytes_written, 1):
                self._end_session("bytes")
                return
            pair = self._run_pair(index, 0)
            attempt = 0
            while pair.contaminated and repeats_left > 0 and self.pace.has_time() and self._has_bytes():
                repeats_left -= 1
                attempt += 1
                repeated = self._run_pair(index, attempt)
                # only now: a pair whose repeat never came to an end stays in
                self._supersede_pair(pair)
                pair = repeated
            index += 1
            if self._is_under_pressure():
                return
            if index in self.schedule.looks[:-1] and is_settled(self.session):
                self._end_session("settled")
                return

    def _run_pair(self, index: int, attempt: int) -> Pair:
        began = time.monotonic()
        self._show_progress("pair", index + 1, lamps_of(self.session.pairs[-1].runs) if self.session.pairs else ())
        order: Sequence[Arm] = ("A", "B") if self.coin.getrandbits(1) else ("B", "A")
        runs: list[FioRun] = []
        control_runs: list[FioRun] = []
        self.unfinished = runs
        for arm in order:
            self.arms.place(arm)
            for workload in self.workloads:
                runs.append(self._run_fio(arm, workload, self.schedule.seconds_per_run))
            if self.control is not None:
                control_runs.append(
                    self._run_fio(arm, self.control, min(CONTROL_SECONDS, self.schedule.seconds_per_run))
                )
        judged = self.measurer.judged(runs)
        pair = Pair(index, attempt, "".join(order), judged, tuple(control_runs), contaminated=bool(lamps_of(judged)))
        self.unfinished = []
        self.recorder.update(pairs=(*self.session.pairs, pair))
        self.pace.seconds.append(time.monotonic() - began)
        return pair

    def _hold_arms(self) -> None:
        """Before "no difference" is said: each arm for a longer time, as an effect may come after the pairs' end."""
        if self.settings.self_test:
            return
        self.recorder.update(wants_hold=True)
        session = msgspec.structs.replace(self.session, wants_hold=False)
        if decide_session(session).tendency != "no-difference" or not self.pace.has_seconds(2 * self._hold_seconds()):
            return
        names = dict.fromkeys(claim.workload for claim in self.session.subject.claims)
        holds = []
        order: Sequence[Arm] = ("A", "B") if self.coin.getrandbits(1) else ("B", "A")
        for arm in order:
            self._show_progress("hold")
            self.arms.place(arm)
            began, runs = time.monotonic(), list[FioRun]()
            while time.monotonic() - began < HOLD_SECONDS or len(runs) < 3 * len(names):
                if not self.pace.has_bytes(self.measurer.bytes_written, 1) or len(runs) >= MAX_HOLD_RUNS * len(names):
                    break
                runs += [self._run_fio(arm, get_workload(name), self.schedule.seconds_per_run) for name in names]
            holds.append(Hold(arm, tuple(runs)))
        self.recorder.update(holds=tuple(holds))

    def _hold_seconds(self) -> float:
        return HOLD_SECONDS + self.schedule.pair_seconds

    def _supersede_pair(self, old: Pair) -> None:
        pairs = tuple(
            msgspec.structs.replace(pair, superseded=True) if pair is old else pair for pair in self.session.pairs
        )
        self.recorder.update(pairs=pairs)

    def _is_under_pressure(self) -> bool:
        if not is_under_pressure([pair.runs for pair in self.session.pairs]):
            return False
        self.measurer.note("ended early: others were waiting for I/O in three pairs in a row")
        self._end_session("io-pressure")
        return True

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
            self._show_progress("pair")
            if self.arms.placed != arm:
                self.arms.place(arm)
            block = []
            for _ in range(count):
                block.append(self._run_block(arm))
                unfinished.extend(block[-1])
            blocks.append(block)
        self.unfinished = []
        for index, parts in enumerate(zip(*blocks, strict=True)):
            runs = self.measurer.judged([run for part in parts for run in part])
            pair = Pair(index, 0, "ABA", runs, contaminated=bool(lamps_of(runs)))
            self.recorder.update(pairs=(*self.session.pairs, pair))

    def _run_block(self, arm: Arm) -> list[FioRun]:
        return [self._run_fio(arm, workload, self.schedule.seconds_per_run) for workload in self.workloads]

    def _has_bytes(self) -> bool:
        """Whether one more pair fits in addition to the planned ones: repeats use what time-bound runs leave."""
        return self.pace.has_bytes(self.measurer.bytes_written, self.schedule.pairs - self._done_pairs() + 1)
