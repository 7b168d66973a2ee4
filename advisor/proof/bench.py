"""`bench`: one measured series of the host as it is. Nothing is changed but for the scratch file, which goes again.

As in `prove` everything that can be refused is refused first, and a signal, a failing fio or a terminal that has gone
ends in the scratch file removed and the partial result written. In each round every workload runs once, in random
order, so that a drift or a periodic load falls on all alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from advisor.errors import UsageError
from advisor.host import Host
from advisor.proof.fio import FioProcess, FioRunner
from advisor.proof.interrupt import caught_signals
from advisor.proof.measurer import lamps_of
from advisor.proof.obstacles import Obstacles
from advisor.proof.own_command import COMMAND_WORKLOAD, OwnCommand
from advisor.proof.records import FioRun
from advisor.proof.schedule import Schedule
from advisor.proof.series import Bench, Round, Series, summarise_series
from advisor.proof.session import begin_record, chosen_mode, lay_out_runs
from advisor.proof.session_runner import Progress, ProgressEvent, SessionRunner, Settings, Site, silent
from advisor.proof.sizes import thread_counts
from advisor.proof.target import MeasuredTarget, read_target
from advisor.proof.workloads import command_pattern, get_workload

DEFAULT_WORKLOADS = ("infoscale.4k-rand-rw50", "iometer.maxtp-r100")
"""Small random I/O one at a time, and large reads with many outstanding."""


def bench(
    host: Host,
    workloads: Sequence[str],
    settings: Settings,
    *,
    runner: FioRunner | None = None,
    target: MeasuredTarget | None = None,
    command: OwnCommand | None = None,
    options: Sequence[str] = (),
    progress: Progress = silent,
) -> Bench:
    """Measure workloads on the host as it is. Of the settings, those on arms and profiles mean nothing here.
    ``options`` are recorded, as the words that repeat the call. ``command`` is measured in place of workloads, with a
    runner and a target that are its own.

    Raises UnknownWorkloadError and RefusedError before anything is written, InterruptedSessionError with the partial
    result after a signal.
    """
    if command is None:
        names = require_workloads(workloads or DEFAULT_WORKLOADS)
        patterns = [get_workload(name) for name in names]
    else:
        names, patterns = (COMMAND_WORKLOAD,), [command_pattern(command)]
    runner = runner or FioProcess()
    with caught_signals() as stop:
        target = target or read_target(host, settings.target)
        site = Site(host, target, settings, runner, stop, progress)

        def lay_out(*, is_busy: bool, run_seconds: float | None = None) -> Schedule:
            return lay_out_runs(chosen_mode(settings), patterns, settings, target, arms=1, run_seconds=run_seconds)

        begun = begin_record(site, "", names, lay_out, runs_fio=command is None, found=Obstacles(), options=options)
        series = Series(**begun, workloads=names, command=command)
        plan = series.schedule
        progress(ProgressEvent("plan", 0, plan.pairs, plan.predicted_seconds, schedule=plan, workloads=len(names)))
        return _Rounds(site, series, patterns, summarise_series).run()


def require_workloads(workloads: Sequence[str]) -> tuple[str, ...]:
    """The names, each once. Raises UnknownWorkloadError, and UsageError for one over the network."""
    found = {name: get_workload(name) for name in workloads}
    for name, workload in found.items():
        if workload.is_network:
            raise UsageError(
                f"{name}: the network is measured by a command of yours",
                hint="--command 'iperf3 -c HOST -t 2 -J' --metric json:.end.sum_received.bits_per_second",
            )
    return tuple(found)


def sweep_threads(workloads: Sequence[str], threads: str | None) -> tuple[str, ...]:
    """Each workload with each number of threads (``--threads``). Raises UsageError."""
    if threads is None:
        return tuple(workloads)
    if not workloads:
        raise UsageError("--threads needs --workload NAME", hint="--workload beegfs.iozone-seq --threads 1..64")
    return tuple(f"{name}@{count}" for name in workloads for count in thread_counts(threads))


class _Rounds(SessionRunner[Series, Bench, Round]):
    """Runs one series."""

    unit = "round"
    field = "rounds"

    @property
    def aftermath(self) -> str:  # type: ignore[override]
        """Of a command there was nothing to remove."""
        return "nothing was changed" if self.runs_command else "the scratch file is gone"

    def partial_unit(self, unfinished: list[FioRun]) -> Round:
        return Round(len(self.session.rounds), 0, tuple(unfinished), whole=False)

    def runs_of(self, one: Round) -> Sequence[FioRun]:
        return one.runs

    def measure_unit(self, index: int, attempt: int) -> Round:
        self.unfinished = runs = list[FioRun]()
        for workload in self.coin.sample(self.workloads, len(self.workloads)):
            runs.append(self.measurer.run("A", workload, self.schedule.seconds_per_run))
        judged = self.measurer.judged(runs)
        return Round(index, attempt, judged, contaminated=bool(lamps_of(judged)))
