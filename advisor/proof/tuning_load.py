"""What a search measures its arms by: a command of the user's own, or a pattern of fio on a scratch file."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Protocol

import msgspec

from advisor.errors import RefusedError, UsageError
from advisor.host import Host
from advisor.planning.records import Plan
from advisor.profiles.profile import ProofDeclaration
from advisor.proof.command_runner import CommandProcess
from advisor.proof.fio import FioProcess, read_version
from advisor.proof.interrupt import Stop
from advisor.proof.measurer import Measurer
from advisor.proof.metrics import METRICS, Metric
from advisor.proof.own_command import COMMAND_WORKLOAD, OwnCommand
from advisor.proof.relevance import class_of, require_visible
from advisor.proof.schedule import (
    HOLD_RUNS,
    HOLD_SECONDS,
    LONG_TURN_SECONDS,
    MODES,
    RESERVE_SECONDS,
    WARM_UP_RUNS,
    Schedule,
    looks_for,
    make_schedule,
)
from advisor.proof.session import PLACE_SECONDS, chosen_mode
from advisor.proof.session_runner import Settings
from advisor.proof.target import read_target
from advisor.proof.tuning_records import TunePattern, TuneSession
from advisor.proof.workloads import get_workload

MAX_BLOCKS = 24
"""Of a race."""


class RaceLoad(Protocol):
    """One of the two. ``command`` is None of a pattern, ``pattern`` None of a command."""

    @property
    def command(self) -> OwnCommand | None: ...

    @property
    def process(self) -> CommandProcess | None: ...

    @property
    def pattern(self) -> TunePattern | None: ...

    @property
    def claims(self) -> tuple[str, ...]:
        """The workloads of the proofs of a search."""

    def require_shown(self, host: Host, plan: Plan, proof: ProofDeclaration) -> None:
        """Raise RefusedError where a run would show nothing of the plan."""

    def try_out(self, stop: Stop) -> float:
        """One run before anything is changed: its wall seconds."""

    def hold(self, arms: int, stop: Stop) -> contextlib.AbstractContextManager[None]:
        """What the runs of ``arms`` arms need, and no longer than they do."""

    def run(self, stop: Stop) -> tuple[Mapping[str, float], float]:
        """One run: its figures by the names of the metrics, the first of which judges, and its wall seconds."""

    def confirmation_seconds(self, turn: float, pairs: int) -> float:
        """What a confirmation of so many pairs takes, where a run with its switch takes ``turn``."""

    def complete(self, settings: Settings) -> Settings:
        """The settings of a proof with what the load is."""


class CommandLoad:
    """A command of the user's own."""

    pattern = None
    claims = (COMMAND_WORKLOAD,)

    def __init__(self, process: CommandProcess) -> None:
        self.process = process

    @property
    def command(self) -> OwnCommand:
        return self.process.command

    def require_shown(self, host: Host, plan: Plan, proof: ProofDeclaration) -> None:
        # A run is a new process and opens sockets of its own; what acts on mounts or sessions would be unseen.
        late = [one for one in plan.changes if class_of(one) == "T1"]
        stale = [one for one in late if not one.tunable.startswith("sysctl:net.")]
        if stale or (proof.toggle == "T1" and not late):
            raise RefusedError("acts on new sessions or mounts only, and the command does not make them")

    def try_out(self, stop: Stop) -> float:
        return self.process.try_out(stop)

    @contextlib.contextmanager
    def hold(self, arms: int, stop: Stop) -> Iterator[None]:
        yield

    def run(self, stop: Stop) -> tuple[Mapping[str, float], float]:
        figures, _ = self.process.run_command(stop)
        return figures.measures, figures.runtime_seconds

    def confirmation_seconds(self, turn: float, pairs: int) -> float:
        # A try-out, the warm-up of both arms, and the pairs, as `advisor.proof.schedule` lays them out.
        held = 2 * max(HOLD_SECONDS, HOLD_RUNS * turn) if turn < LONG_TURN_SECONDS else 0.0
        return turn + 2 * (1 + WARM_UP_RUNS) * turn + 2 * pairs * turn + held + RESERVE_SECONDS

    def complete(self, settings: Settings) -> Settings:
        return settings


class PatternLoad:
    """A pattern of fio on a scratch file below a directory."""

    command = None
    process = None

    def __init__(self, host: Host, pattern: TunePattern) -> None:
        self.pattern = pattern
        self.claims = (pattern.workload,)
        self._host = host
        self._workload = get_workload(pattern.workload)
        if self._workload.is_network:
            raise UsageError(
                f"--workload {pattern.workload}: the network is measured by a command of yours",
                hint="--command 'iperf3 -c HOST -t 5 -J' --metric json:.end.sum_received.bits_per_second",
            )
        self._settings = Settings(
            target=pattern.target,
            seconds=pattern.seconds,
            scratch_bytes=pattern.scratch_bytes,
            byte_budget=pattern.byte_budget,
        )
        self._target = read_target(host, self._settings.target)
        self._measurer: Measurer | None = None

    def require_shown(self, host: Host, plan: Plan, proof: ProofDeclaration) -> None:
        if any(class_of(one) == "T1" for one in plan.changes) or proof.toggle == "T1":
            raise RefusedError("acts on new sessions or mounts only, and a search does not make them")
        if proof.place_fio:
            raise RefusedError("moves fio to a node, which advisor prove measures")
        require_visible(host, plan, self._target, [self._workload])

    def _schedule(self, pairs: int, arms: int) -> Schedule:
        mode = msgspec.structs.replace(
            chosen_mode(self._settings), pairs=pairs, looks=looks_for(pairs, MODES["default"])
        )
        return make_schedule(
            mode,
            [self._workload],
            free_bytes=self._settings.keep.room_of(self._target.size_bytes, self._target.free_bytes),
            place_seconds=PLACE_SECONDS,
            byte_budget=self.pattern.byte_budget,
            scratch_bytes=self.pattern.scratch_bytes,
            arms=arms,
        )

    def try_out(self, stop: Stop) -> float:
        read_version(FioProcess(), stop)
        with self.hold(1, stop):
            return self.run(stop)[1]

    @contextlib.contextmanager
    def hold(self, arms: int, stop: Stop) -> Iterator[None]:
        schedule = self._schedule(MAX_BLOCKS, arms)
        self._measurer = Measurer(self._host, self._target, schedule, self._settings.keep, FioProcess(), stop)
        try:
            self._measurer.make_scratch()
            yield
        finally:
            self._measurer.remove_scratch()
            self._measurer = None

    def run(self, stop: Stop) -> tuple[Mapping[str, float], float]:
        assert self._measurer is not None, "a run outside of hold"
        began = time.monotonic()
        run = self._measurer.run("A", self._workload, chosen_mode(self._settings).seconds)
        metric = self.pattern.metric.name
        return {metric: run.figures.value(metric)}, time.monotonic() - began

    def confirmation_seconds(self, turn: float, pairs: int) -> float:
        return self._schedule(pairs, 2).predicted_seconds

    def complete(self, settings: Settings) -> Settings:
        own = self._settings
        return msgspec.structs.replace(
            settings,
            target=own.target,
            seconds=own.seconds,
            scratch_bytes=own.scratch_bytes,
            byte_budget=own.byte_budget,
        )


def metric_of(session: TuneSession) -> Metric:
    """What a search is judged by."""
    if session.pattern is not None:
        return session.pattern.metric
    assert session.command is not None
    return session.command.metrics[0].described


def pattern_metric(workload: str) -> Metric:
    """What a workload of fio is judged by. Raises as `advisor.proof.workloads.get_workload`."""
    return METRICS[get_workload(workload).metric]
