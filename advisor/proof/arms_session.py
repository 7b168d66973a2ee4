"""The session of several arms: randomised blocks, each arm once a block, the host restored however it ends.

The seed draws the order of the arms in each block and the order of the workloads in each arm, so that a drift or a
periodic load falls on all arms alike. There are no interim looks: a session is judged once, after its last block.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Protocol

import msgspec

from advisor.errors import AdvisorError, NotRestoredError, RefusedError
from advisor.host import Host
from advisor.i18n import msg
from advisor.proof.arms import Reconnect, ToggleError
from advisor.proof.blocks import NONE, ArmBlock, ArmsProof, ArmsSession, ArmTurn, conclude_session
from advisor.proof.fio import FioRunner
from advisor.proof.interrupt import Stop, StoppedError
from advisor.proof.measurer import MeasurePace, Measurer, is_under_pressure, lamps_of, place_targets
from advisor.proof.recorder import Recorder
from advisor.proof.records import Arm, Ended, FioRun
from advisor.proof.schedule import CONTROL_SECONDS, REPEAT_SHARE
from advisor.proof.session import require_calm
from advisor.proof.session_runner import Progress, ProgressEvent, Settings, Stage
from advisor.proof.target import MeasuredTarget
from advisor.proof.workloads import NULL_CONTROL, get_workload


class ArmSwitch(Protocol):
    """What makes an arm active: one of the session's names, ``none`` among them."""

    def place(self, arm: str) -> None:
        """Set the arm's values and read every one back. Raises AdvisorError on a mismatch."""

    def fio_options(self, arm: str) -> tuple[str, ...]:
        """fio options of the arm, such as ``--numa_cpu_nodes=1``; none for the negative control."""

    def settle_seconds(self, before: str | None, after: str) -> float:
        """What to wait after a switch between two arms."""


class InterruptedArmsError(StoppedError):
    """A signal ended the session; the host is as before and the scratch file gone. ``result`` is the partial one."""

    def __init__(self, message: str, result: ArmsProof, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.result = result


class ArmsRunner:
    """Runs one session. Use once: ``ArmsRunner(...).run()``."""

    def __init__(
        self,
        host: Host,
        target: MeasuredTarget,
        switch: ArmSwitch,
        settings: Settings,
        session: ArmsSession,
        runner: FioRunner,
        stop: Stop,
        progress: Progress,
        reconnect: Reconnect | None,
    ) -> None:
        self.settings = settings
        self.schedule = session.schedule
        self.stop = stop
        self.progress = progress
        self.switch = switch
        self.reconnect = reconnect
        self.placed: str | None = None
        self.workloads = [get_workload(name) for name in session.workloads]
        self.coin = random.Random(session.seed)
        places = place_targets(host, settings.places, self.workloads)
        self.measurer = Measurer(host, target, session.schedule, settings.keep, runner, stop, session.notes, places)
        self.pace = MeasurePace(session.schedule, self.workloads, settings.budget_seconds, self.measurer.began)
        self.unfinished: list[ArmTurn] = []
        self.by_hand: str | None = None
        self.recorder: Recorder[ArmsSession, ArmsProof] = Recorder(
            session, self.measurer, conclude_session, save_to=settings.save_to, keep_result=settings.keep_result
        )

    # -- the whole -----------------------------------------------------------------------------------------------

    def run(self) -> ArmsProof:
        """Measure to the end and restore the host. Raises InterruptedArmsError, NotRestoredError, RefusedError."""
        early: StoppedError | RefusedError | None = None
        is_foreseen = False
        try:
            try:
                self._measure_session()
            except (StoppedError, RefusedError) as error:
                early = error
                self._end_session("interrupted")
            except AdvisorError as error:
                self._record_fault(error.message)
            finally:
                try:
                    self._restore_host()
                finally:
                    self.measurer.remove_scratch(after_remount=self.reconnect is not None)
            is_foreseen = True
        finally:
            if not is_foreseen:
                self._end_session("fault")
            found = self.recorder.finish(is_worth_keeping=not isinstance(early, RefusedError))
        if not self.session.restored:
            items = (("the arm's values", self.by_hand or "advisor status"),)
            raise NotRestoredError(self.session.faults[-1], items=items)
        if isinstance(early, RefusedError):
            raise early
        if early is not None:
            hint = msg("the partial result is in {path}", path=found.saved_to) if found.saved_to else None
            words = (
                f"{early.message} after {self._done_blocks()} blocks; the host is as before, the scratch file is gone"
            )
            raise InterruptedArmsError(words, found, hint=hint)
        return found

    def _measure_session(self) -> None:
        idle = self.measurer.sample_idle()
        if self.schedule.scratch_bytes:
            self._show_progress("scratch")
        self.measurer.make_scratch()
        self._show_progress("warm-up")
        for workload in self.workloads:
            self.measurer.warm_up_workload("A", workload)
        reason = self.measurer.foreign_reason(idle)
        if reason is not None:
            gate = msgspec.structs.replace(self.session.gate, busy=(*self.session.gate.busy, reason))
            require_calm(gate, force=self.settings.force)
            self.recorder.update(gate=gate, forced=True)
        self.measurer.require_timed()
        self._measure_blocks()

    # -- records -------------------------------------------------------------------------------------------------

    @property
    def session(self) -> ArmsSession:
        """All that is recorded so far."""
        return self.recorder.record

    def _end_session(self, how: Ended) -> None:
        self.recorder.update(ended=how)
        if self.unfinished:
            cells, self.unfinished = tuple(self.unfinished), []
            self._add_block(ArmBlock(len(self.session.blocks), 0, cells, whole=False))

    def _record_fault(self, text: str) -> None:
        self.recorder.update(faults=(*self.session.faults, text))
        self._end_session("fault")

    def _add_block(self, one: ArmBlock) -> None:
        self.recorder.update(blocks=(*self.session.blocks, one))

    def _done_blocks(self) -> int:
        return sum(1 for one in self.session.blocks if one.whole and not one.superseded)

    def _show_progress(self, stage: Stage, number: int = 0, lamps: tuple[str, ...] = ()) -> None:
        left = self.pace.seconds_left(max(number - 1, 0), is_under_way=stage == "block")
        self.progress(ProgressEvent(stage, number, self.schedule.pairs, left, lamps))

    # -- arms ----------------------------------------------------------------------------------------------------

    def _place_arm(self, arm: str) -> None:
        before, self.placed = self.placed, arm
        try:
            self.switch.place(arm)
            self._reconnect_for(arm)
        except AdvisorError as error:
            raise ToggleError(
                msg("arm {arm} could not be made active: {reason}", arm=arm, reason=error.message)
            ) from error
        if self.reconnect is not None:
            self.measurer.find_scratch_again()
        self.stop.sleep(self.switch.settle_seconds(before, arm))

    def _reconnect_for(self, arm: str) -> None:
        if self.reconnect is not None:
            side: Arm = "A" if arm == NONE else "B"
            self.reconnect(side)

    def _restore_host(self) -> None:
        """The host as before. No signal is heeded here, and nothing is asked of the path."""
        if self.placed is None:
            return
        try:
            self._show_progress("restore")
        finally:
            try:
                self.switch.place(NONE)
                self._reconnect_for(NONE)
            except AdvisorError as error:
                self.by_hand = error.hint
                self.recorder.update(restored=False)
                self._record_fault(f"the values from before could not be restored: {error.message}")

    # -- blocks --------------------------------------------------------------------------------------------------

    def _measure_blocks(self) -> None:
        repeats_left = int(self.schedule.pairs * REPEAT_SHARE)
        for index in range(self.schedule.pairs):
            if not self.pace.has_time():
                self._end_session("budget")
                return
            if not self.pace.has_bytes(self.measurer.bytes_written, 1):
                self._end_session("bytes")
                return
            one = self._run_block(index, 0)
            while one.contaminated and repeats_left > 0 and self.pace.has_time() and self._has_bytes():
                repeats_left -= 1
                repeated = self._run_block(index, one.attempt + 1)
                self._supersede_block(one)
                one = repeated
            if is_under_pressure([_runs_of(seen.cells) for seen in self.session.blocks]):
                self.measurer.note("ended early: others were waiting for I/O in three blocks in a row")
                self._end_session("io-pressure")
                return

    def _run_block(self, index: int, attempt: int) -> ArmBlock:
        began = time.monotonic()
        blocks = self.session.blocks
        self._show_progress("block", index + 1, lamps_of(_runs_of(blocks[-1].cells)) if blocks else ())
        self.unfinished = cells = []
        for arm in self.coin.sample(self.session.arms, len(self.session.arms)):
            self._place_arm(arm)
            cells.append(self._run_cell(arm))
        judged = self._judge_cells(cells)
        one = ArmBlock(index, attempt, judged, contaminated=bool(lamps_of(_runs_of(judged))))
        self.unfinished = []
        self._add_block(one)
        self.pace.seconds.append(time.monotonic() - began)
        return one

    def _run_cell(self, arm: str) -> ArmTurn:
        side: Arm = "A" if arm == NONE else "B"
        options = self.switch.fio_options(arm)
        seconds = self.schedule.seconds_per_run
        order = self.coin.sample(self.workloads, len(self.workloads))
        runs = tuple(self.measurer.run(side, workload, seconds, options) for workload in order)
        control = self.measurer.run(side, get_workload(NULL_CONTROL), min(CONTROL_SECONDS, seconds))
        return ArmTurn(arm, runs, control)

    def _judge_cells(self, cells: Sequence[ArmTurn]) -> tuple[ArmTurn, ...]:
        """The cells with what contaminated their runs."""
        judged = {run.number: run for run in self.measurer.judged(_runs_of(cells))}
        return tuple(
            msgspec.structs.replace(cell, runs=tuple(judged[run.number] for run in cell.runs)) for cell in cells
        )

    def _supersede_block(self, old: ArmBlock) -> None:
        done = msgspec.structs.replace(old, superseded=True)
        self.recorder.update(blocks=tuple(done if one is old else one for one in self.session.blocks))

    def _has_bytes(self) -> bool:
        return self.pace.has_bytes(self.measurer.bytes_written, self.schedule.pairs - self._done_blocks() + 1)


def _runs_of(cells: Sequence[ArmTurn]) -> list[FioRun]:
    return [run for cell in cells for run in cell.runs]
