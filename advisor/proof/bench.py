"""`bench`: one measured series of the host as it is. Nothing is changed but for the scratch file, which goes again.

As in `prove` everything that can be refused is refused first, and a signal, a failing fio or a terminal that has gone
ends in the scratch file removed and the partial result written. In each round every workload runs once, in random
order, so that a drift or a periodic load falls on all alike.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from advisor.errors import AdvisorError, RefusedError, UsageError
from advisor.host import Host
from advisor.i18n import msg
from advisor.proof import schedule as scheduling
from advisor.proof.covariates import read_gate
from advisor.proof.fio import FioProcess, FioRunner, read_version
from advisor.proof.identity import read_identity
from advisor.proof.interrupt import Stop, StoppedError, caught_signals
from advisor.proof.measurer import MeasurePace, Measurer, is_under_pressure, lamps_of, place_targets
from advisor.proof.recorder import Recorder
from advisor.proof.records import Ended, FioRun
from advisor.proof.schedule import REPEAT_SHARE, Schedule
from advisor.proof.scratch import require_space
from advisor.proof.series import Bench, Round, Series, summarise_series
from advisor.proof.session import chosen_mode, chosen_target, layout_notes, require_calm
from advisor.proof.session_runner import Progress, ProgressEvent, Settings, Stage, silent
from advisor.proof.sizes import thread_counts
from advisor.proof.target import MeasuredTarget
from advisor.proof.workloads import get_workload

DEFAULT_WORKLOADS = ("infoscale.4k-rand-rw50", "iometer.maxtp-r100")
"""Small random I/O one at a time, and large reads with many outstanding."""
READING_WORKLOADS = ("infoscale.4k-rand-r100", "iometer.maxtp-r100")
"""The same for a disk itself, where nothing is to be written."""


class InterruptedBenchError(StoppedError):
    """A signal ended the series; the scratch file is gone. ``bench`` is the partial result."""

    def __init__(self, message: str, bench: Bench, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.bench = bench


def bench(
    host: Host,
    workloads: Sequence[str],
    settings: Settings,
    *,
    runner: FioRunner | None = None,
    options: Sequence[str] = (),
    progress: Progress = silent,
) -> Bench:
    """Measure workloads on the host as it is. Of the settings, those on arms and profiles mean nothing here.
    ``options`` are recorded, as the words that repeat the call.

    Raises UnknownWorkloadError and RefusedError before anything is written, InterruptedBenchError with the partial
    result after a signal.
    """
    names = require_workloads(workloads or (DEFAULT_WORKLOADS if settings.raw is None else READING_WORKLOADS))
    runner = runner or FioProcess()
    with caught_signals() as stop:
        target = chosen_target(host, settings, names)
        version = read_version(runner, stop)
        plan = _make_schedule(names, settings, target)
        if plan.scratch_bytes:
            require_space(target, plan.scratch_bytes, settings.keep)
        gate = read_gate(host)
        require_calm(gate, force=settings.force)
        series = Series(
            workloads=names,
            schedule=plan,
            seed=settings.seed if settings.seed is not None else secrets.randbits(32),
            target=target.path,
            file_system=target.file_system,
            device=target.device,
            fio_version=version,
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            host=read_identity(host),
            gate=gate,
            forced=bool(gate.busy),
            raw_device=target.raw,
            options=tuple(options),
            notes=tuple(layout_notes(host, target, plan, settings, names, arms=1)),
        )
        event = ProgressEvent("plan", 0, plan.pairs, plan.predicted_seconds, schedule=plan, workloads=len(names))
        progress(event)
        return _Rounds(host, target, settings, series, runner, stop, progress).conduct()


def require_workloads(workloads: Sequence[str]) -> tuple[str, ...]:
    """The names, each once. Raises UnknownWorkloadError, and UsageError for one that needs a second host."""
    found = {name: get_workload(name) for name in workloads}
    for name, workload in found.items():
        if workload.is_network:
            raise UsageError(msg("{name} runs between two hosts; a series is measured on this one alone", name=name))
    return tuple(found)


def sweep_threads(workloads: Sequence[str], threads: str | None) -> tuple[str, ...]:
    """Each workload with each number of threads (``--threads``). Raises UsageError."""
    if threads is None:
        return tuple(workloads)
    if not workloads:
        raise UsageError("--threads needs --workload NAME", hint="--workload beegfs.iozone-seq --threads 1..64")
    return tuple(f"{name}@{count}" for name in workloads for count in thread_counts(threads))


def _make_schedule(names: Sequence[str], settings: Settings, target: MeasuredTarget) -> Schedule:
    return scheduling.make_schedule(
        chosen_mode(settings),
        [get_workload(name) for name in names],
        device_bytes=target.size_bytes,
        place_seconds=0.0,
        budget_seconds=settings.budget_seconds,
        byte_budget=settings.byte_budget,
        scratch_bytes=settings.scratch_bytes,
        is_raw=target.raw is not None,
        files=1 + len(settings.places),
        arms=1,
    )


class _Rounds:
    """Conducts one series. Use once."""

    def __init__(
        self,
        host: Host,
        target: MeasuredTarget,
        settings: Settings,
        series: Series,
        runner: FioRunner,
        stop: Stop,
        progress: Progress,
    ) -> None:
        self.settings = settings
        self.schedule = series.schedule
        self.progress = progress
        self.workloads = [get_workload(name) for name in series.workloads]
        self.order = random.Random(series.seed)
        places = place_targets(host, settings.places, self.workloads)
        self.measurer = Measurer(host, target, series.schedule, settings.keep, runner, stop, series.notes, places)
        self.pace = MeasurePace(series.schedule, self.workloads, settings.budget_seconds, self.measurer.began)
        self.unfinished: list[FioRun] = []
        self.recorder: Recorder[Series, Bench] = Recorder(
            series, self.measurer, summarise_series, save_to=settings.save_to, keep_result=settings.keep_result
        )

    # -- the whole -----------------------------------------------------------------------------------------------

    def conduct(self) -> Bench:
        """Measure to the end, and leave nothing but the result. See `bench` for what is raised."""
        early: StoppedError | RefusedError | None = None
        is_foreseen = False
        try:
            try:
                self._measure_series()
            except (StoppedError, RefusedError) as error:
                early = error
                self._end_series("interrupted")
            except AdvisorError as error:
                self.recorder.update(faults=(*self.series.faults, error.message))
                self._end_series("fault")
            finally:
                self.measurer.remove_scratch()
            is_foreseen = True
        finally:
            # written also when something unforeseen goes past
            if not is_foreseen:
                self._end_series("fault")
            # of a refusal there is nothing to keep
            found = self.recorder.finish(is_worth_keeping=not isinstance(early, RefusedError))
        if isinstance(early, RefusedError):
            raise early
        if early is not None:
            hint = msg("the partial result is in {path}", path=found.saved_to) if found.saved_to else None
            words = f"{early.message} after {self._done_rounds()} rounds; the scratch file is gone"
            raise InterruptedBenchError(words, found, hint=hint)
        return found

    def _measure_series(self) -> None:
        idle = self.measurer.sample_idle()
        if self.schedule.scratch_bytes:
            self._show_progress("scratch")
        self.measurer.make_scratch()
        self._show_progress("warm-up")
        for workload in self.workloads:
            self.measurer.warm_up_workload("A", workload)
        reason = self.measurer.foreign_reason(idle)
        if reason is not None:
            gate = msgspec.structs.replace(self.series.gate, busy=(reason,))
            require_calm(gate, force=self.settings.force)
            self.recorder.update(gate=msgspec.structs.replace(gate, busy=(*self.series.gate.busy, reason)), forced=True)
        self.measurer.require_timed()
        self._measure_rounds()

    # -- records -------------------------------------------------------------------------------------------------

    @property
    def series(self) -> Series:
        """All that is recorded so far."""
        return self.recorder.record

    def _end_series(self, how: Ended) -> None:
        self.recorder.update(ended=how)
        if self.unfinished:
            runs, self.unfinished = tuple(self.unfinished), []
            self._add_round(Round(len(self.series.rounds), 0, runs, whole=False))

    def _add_round(self, one: Round) -> None:
        self.recorder.update(rounds=(*self.series.rounds, one))

    def _done_rounds(self) -> int:
        return sum(1 for one in self.series.rounds if one.whole and not one.superseded)

    def _show_progress(self, stage: Stage, number: int = 0, lamps: tuple[str, ...] = ()) -> None:
        left = self.pace.seconds_left(number - 1, is_under_way=stage == "round")
        self.progress(ProgressEvent(stage, number, self.schedule.pairs, left, lamps))

    # -- rounds --------------------------------------------------------------------------------------------------

    def _measure_rounds(self) -> None:
        repeats_left = int(self.schedule.pairs * REPEAT_SHARE)
        for index in range(self.schedule.pairs):
            if not self.pace.has_time():
                self._end_series("budget")
                return
            if not self.pace.has_bytes(self.measurer.bytes_written, 1):
                self._end_series("bytes")
                return
            one = self._run_round(index, 0)
            while one.contaminated and repeats_left > 0 and self.pace.has_time() and self._has_bytes():
                repeats_left -= 1
                repeated = self._run_round(index, one.attempt + 1)
                # only now: a round whose repeat never came to an end stays in
                self._supersede_round(one)
                one = repeated
            if is_under_pressure([seen.runs for seen in self.series.rounds]):
                self.measurer.note("ended early: others were waiting for I/O in three rounds in a row")
                self._end_series("io-pressure")
                return

    def _run_round(self, index: int, attempt: int) -> Round:
        began = time.monotonic()
        rounds = self.series.rounds
        self._show_progress("round", index + 1, lamps_of(rounds[-1].runs) if rounds else ())
        order = self.order.sample(self.workloads, len(self.workloads))
        self.unfinished = runs = []
        for workload in order:
            runs.append(self.measurer.run("A", workload, self.schedule.seconds_per_run))
        judged = self.measurer.judged(runs)
        one = Round(index, attempt, judged, contaminated=bool(lamps_of(judged)))
        self.unfinished = []
        self._add_round(one)
        self.pace.seconds.append(time.monotonic() - began)
        return one

    def _supersede_round(self, old: Round) -> None:
        done = msgspec.structs.replace(old, superseded=True)
        self.recorder.update(rounds=tuple(done if one is old else one for one in self.series.rounds))

    def _has_bytes(self) -> bool:
        """Whether one more round fits in addition to the planned ones: repeats use what time-bound runs leave."""
        return self.pace.has_bytes(self.measurer.bytes_written, self.schedule.pairs - self._done_rounds() + 1)
