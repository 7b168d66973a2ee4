"""The session of several arms: randomised blocks, each arm once a block, the host restored however it ends.

The seed draws the order of the arms in each block and the order of the workloads in each arm, so that a drift or a
periodic load falls on all arms alike. There are no interim looks: a session is judged once, after its last block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from advisor.errors import AdvisorError, NotRestoredError
from advisor.host import Host
from advisor.proof.ablation import combination_digits, draw_combinations
from advisor.proof.arms import ChecksValues, Reconnect, ToggleError
from advisor.proof.blocks import NONE, ArmBlock, ArmsProof, ArmsSession, ArmTurn, conclude_session
from advisor.proof.fio import FioRunner
from advisor.proof.interrupt import Stop, StoppedError
from advisor.proof.measurer import lamps_of
from advisor.proof.records import Arm, FioRun
from advisor.proof.schedule import CONTROL_SECONDS
from advisor.proof.session_runner import Progress, SessionRunner, Settings
from advisor.proof.target import MeasuredTarget
from advisor.proof.workloads import NULL_CONTROL, command_pattern, get_workload


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


class ArmsRunner(SessionRunner[ArmsSession, ArmsProof, ArmBlock]):
    """Runs one session of several arms."""

    unit = "block"
    units = "blocks"
    aftermath = "the host is as before, the scratch file is gone"

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
        workloads = (
            [get_workload(name) for name in session.workloads]
            if session.command is None
            else [command_pattern(session.command)]
        )
        super().__init__(host, target, settings, session, workloads, runner, stop, progress, conclude_session)
        self.switch = switch
        self.reconnect = reconnect
        self.placed: str | None = None
        if session.command is not None:
            self.aftermath = "the host is as before"

    def interrupted_error(self, message: str, result: ArmsProof, hint: str | None) -> StoppedError:
        return InterruptedArmsError(message, result, hint=hint)

    def not_restored_error(self) -> NotRestoredError:
        items = (("the arm's values", self.by_hand or "advisor status"),)
        return NotRestoredError(self.session.faults[-1], items=items)

    def partial_unit(self, unfinished: list[ArmTurn]) -> ArmBlock:
        return ArmBlock(len(self.session.blocks), 0, tuple(unfinished), whole=False)

    def runs_of(self, one: ArmBlock) -> Sequence[FioRun]:
        return _runs_of(one.cells)

    def remove_scratch(self) -> None:
        self.measurer.remove_scratch(after_remount=self.reconnect is not None)

    def restore_host(self) -> None:
        if self.placed is not None:
            self.restore_arm(lambda: self._place_arm(NONE), "the values from before")

    def _place_arm(self, arm: str) -> None:
        self.switch.place(arm)
        if self.reconnect is not None:
            side: Arm = "A" if arm == NONE else "B"
            self.reconnect(side)

    def draw_turns(self) -> list[tuple[str, tuple[str, ...] | None]]:
        """The arms of a block in the order of their turns; of single values each turn's digits and active values."""
        names, ablation = self.session.arms[1:], self.session.ablation
        if ablation is None:
            return [(arm, None) for arm in self.coin.sample(self.session.arms, len(self.session.arms))]
        turns = draw_combinations(names, ablation.words, self.coin)
        return [(combination_digits(names, active), active) for active in turns]

    def measure_unit(self, index: int, attempt: int) -> ArmBlock:
        self.unfinished = cells = list[ArmTurn]()
        for arm, active in self.draw_turns():
            if self.placed is not None and isinstance(self.switch, ChecksValues):
                self.switch.require_unchanged()
            before, self.placed = self.placed, arm
            try:
                self._place_arm(arm)
            except AdvisorError as error:
                raise ToggleError(f"arm {arm} could not be made active: {error.message}") from error
            if self.reconnect is not None:
                self.measurer.find_scratch_again()
            self.stop.sleep(self.switch.settle_seconds(before, arm))
            side: Arm = "A" if arm == NONE else "B"
            options = self.switch.fio_options(arm)
            seconds = self.schedule.seconds_per_run
            order = self.coin.sample(self.workloads, len(self.workloads))
            runs = tuple(self.measurer.run(side, workload, seconds, options) for workload in order)
            control = None
            if not self.runs_command:
                control = self.measurer.run(side, get_workload(NULL_CONTROL), min(CONTROL_SECONDS, seconds))
            cells.append(ArmTurn(arm, runs, control, active))
        # The cells with what contaminated their runs.
        by_number = {run.number: run for run in self.measurer.judged(_runs_of(cells))}
        judged = tuple(
            msgspec.structs.replace(cell, runs=tuple(by_number[run.number] for run in cell.runs)) for cell in cells
        )
        return ArmBlock(index, attempt, judged, contaminated=bool(lamps_of(_runs_of(judged))))


def _runs_of(cells: Sequence[ArmTurn]) -> list[FioRun]:
    return [run for cell in cells for run in cell.runs]
