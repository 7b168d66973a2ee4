"""What a search measures its arms by: a command of the user's own, or a pattern of fio on a scratch file."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping

import msgspec

from advisor.errors import RefusedError, UsageError
from advisor.host import Host
from advisor.planning.records import Plan
from advisor.profiles.profile import ProofDeclaration
from advisor.proof.command_runner import CommandProcess
from advisor.proof.fio import read_version
from advisor.proof.interrupt import Stop
from advisor.proof.measurer import Measurer
from advisor.proof.metrics import METRICS, Metric
from advisor.proof.own_command import COMMAND_WORKLOAD, OwnCommand
from advisor.proof.profile import ground_for, ground_for_command
from advisor.proof.relevance import class_of, require_visible
from advisor.proof.schedule import MODES, Schedule, looks_for
from advisor.proof.session import PLACE_SECONDS, chosen_mode, lay_out_runs
from advisor.proof.session_runner import Settings
from advisor.proof.tuning_records import TunePattern, TuneSession
from advisor.proof.workloads import command_pattern, get_workload

MAX_BLOCKS = 24
"""Of a race."""


class RaceLoad:
    """A command, ready to run, or a pattern; the other one is None."""

    def __init__(
        self, host: Host, *, process: CommandProcess | None = None, pattern: TunePattern | None = None
    ) -> None:
        self.process = process
        self.pattern = pattern
        self._host = host
        self._settings = Settings()
        self._measurer: Measurer | None = None
        if process is not None:
            self._workload, self.claims = command_pattern(process.command), (COMMAND_WORKLOAD,)
            self._ground = ground_for_command(process)
            return
        assert pattern is not None
        self._workload, self.claims = get_workload(pattern.workload), (pattern.workload,)
        if self._workload.is_network:
            raise UsageError(
                f"--workload {pattern.workload}: the network is measured by a command of yours",
                hint="--command 'iperf3 -c HOST -t 5 -J' --metric json:.end.sum_received.bits_per_second",
            )
        self._settings = self.complete(self._settings)
        self._ground = ground_for(host, self._settings)

    @property
    def command(self) -> OwnCommand | None:
        """The command as it is recorded."""
        return None if self.process is None else self.process.command

    def require_shown(self, host: Host, plan: Plan, proof: ProofDeclaration) -> None:
        """Raise RefusedError where a run would show nothing of the plan."""
        late = [one for one in plan.changes if class_of(one) == "T1"]
        # A run of a command opens sockets of its own; what acts on mounts or sessions would be unseen.
        stale = [one for one in late if self.process is None or not one.tunable.startswith("sysctl:net.")]
        if stale or (proof.toggle == "T1" and not (late and self.process is not None)):
            raise RefusedError("acts on new sessions or mounts only, and a search does not make them")
        if self.process is None and proof.place_fio:
            raise RefusedError("moves fio to a node, which advisor prove measures")
        if self.process is None:
            require_visible(host, plan, self._ground.target, [self._workload])

    def _schedule(self, pairs: int, arms: int, run_seconds: float | None = None) -> Schedule:
        mode, looks = chosen_mode(self._settings), looks_for(pairs, MODES["default"])
        return lay_out_runs(
            msgspec.structs.replace(mode, pairs=pairs, looks=looks),
            [self._workload],
            self._settings,
            self._ground.target,
            run_seconds=run_seconds,
            place_seconds=PLACE_SECONDS if run_seconds is None else 0.0,
            arms=arms,
        )

    def try_out(self, stop: Stop) -> float:
        """One run before anything is changed: its wall seconds."""
        if self.process is not None:
            return self.process.try_out(stop)
        read_version(self._ground.runner, stop)
        with self.hold(1, stop):
            return self.run(stop)[1]

    @contextlib.contextmanager
    def hold(self, arms: int, stop: Stop) -> Iterator[None]:
        """What the runs of ``arms`` arms need, and no longer than they do."""
        schedule = self._schedule(MAX_BLOCKS, arms)
        target, runner = self._ground.target, self._ground.runner
        self._measurer = Measurer(self._host, target, schedule, self._settings.keep, runner, stop)
        try:
            self._measurer.make_scratch()
            yield
        finally:
            self._measurer.remove_scratch()
            self._measurer = None

    def run(self, stop: Stop) -> tuple[Mapping[str, float], float]:
        """One run: its figures by the names of the metrics, the first of which judges, and its wall seconds."""
        assert self._measurer is not None, "a run outside of hold"
        began = time.monotonic()
        figures = self._measurer.run("A", self._workload, chosen_mode(self._settings).seconds).figures
        own = {} if self.pattern is None else {self.pattern.metric.name: figures.value(self.pattern.metric.name)}
        return {**figures.measures, **own}, time.monotonic() - began

    def confirmation_seconds(self, turn: float, pairs: int) -> float:
        """What a confirmation of so many pairs takes, where a run with its switch takes ``turn``."""
        if self.process is None:
            return self._schedule(pairs, 2).predicted_seconds
        return turn + self._schedule(pairs, 2, turn).predicted_seconds

    def complete(self, settings: Settings) -> Settings:
        """The settings of a proof with what the load is."""
        if self.pattern is None:
            return settings
        return msgspec.structs.replace(
            settings,
            target=self.pattern.target,
            seconds=self.pattern.seconds,
            scratch_bytes=self.pattern.scratch_bytes,
            byte_budget=self.pattern.byte_budget,
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
