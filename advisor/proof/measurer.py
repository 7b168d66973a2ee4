"""What `prove` and `bench` share: fio runs in a scratch file, the counters during each run, and the budgets.

It measures and counts; which run comes when, and what follows from it, is its user's business.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from advisor.errors import AdvisorError, RefusedError, UsageError
from advisor.host import Host
from advisor.proof import fio
from advisor.proof.covariates import (
    LAMPS,
    Covariates,
    covariates_between,
    foreign_io,
    judge_group,
    name_storage_users,
    read_counters,
    sample_processes,
    wait_for_writeback,
)
from advisor.proof.process import Stop
from advisor.proof.records import Arm, FioRun
from advisor.proof.schedule import RESERVE_SECONDS, WARM_UP_RUNS, Schedule
from advisor.proof.scratch import MIB, Area, Keep, Scratch, make_scratch
from advisor.proof.scratch_registry import forget_scratch, register_scratch, sweep_scratch
from advisor.proof.statistics import median
from advisor.proof.target import MeasuredTarget, read_target
from advisor.proof.workloads import Pattern, get_measured

WARM_UP_AGREEMENT = 0.20
IDLE_SAMPLE_SECONDS = 1.0
MINIMUM_TIMED_SECONDS = 0.02
"""fio reports time in milliseconds: a shorter run is known to no better than 5 %."""
WELL_TIMED_SECONDS = 0.1
MAX_PRESSED = 3
SUSTAINED_SHARE = 0.9
"""A run shorter than this share of what was asked for was ended by its bytes, and that is said."""
_NOWHERE: Mapping[str, MeasuredTarget] = {}


def place_targets(
    host: Host, places: Iterable[tuple[str, str]], workloads: Iterable[Pattern]
) -> dict[str, MeasuredTarget]:
    """The directories of sections that work elsewhere. Raises UsageError for a section that no workload has, and what
    `read_target` raises."""
    known = dict.fromkeys(section.name for one in workloads for section in one.sections if section.needs_scratch)
    found = {}
    for name, directory in places:
        if name not in known:
            raise UsageError(f"--place {name}: no workload has such a section", hint=f"here: {', '.join(known)}")
        found[name] = read_target(host, directory)
    return found


class Measurer:
    """Runs fio and keeps what it printed: ``raw`` is fio's JSON by the numbers of the runs."""

    def __init__(
        self,
        host: Host,
        target: MeasuredTarget,
        schedule: Schedule,
        keep: Keep,
        runner: fio.FioRunner,
        stop: Stop,
        notes: Iterable[str] = (),
        places: Mapping[str, MeasuredTarget] = _NOWHERE,
    ) -> None:
        self._host = host
        self._target = target
        self._schedule = schedule
        self._keep = keep
        self._runner = runner
        self._stop = stop
        self.began = time.monotonic()
        self.scratch: Area | None = None
        self._place_targets = places
        self._places: dict[str, Scratch] = {}
        self.raw: dict[int, str] = {}
        self._storage_users = ""
        self._groups: dict[str, list[Sequence[Covariates]]] = {}
        self.warm_up: list[FioRun] = []
        self.notes = list(notes)
        for line in sweep_scratch():
            self.note(line)
        for name, place in places.items():
            self.note(f"section {name} works in {place.path}; other I/O there is not watched")
        self.bytes_written = 0

    def note(self, text: str) -> None:
        """Remember something worth saying, once."""
        if text not in self.notes:
            self.notes.append(text)

    # -- scratch file --------------------------------------------------------------------------------------------

    def make_scratch(self) -> None:
        """Make the scratch file, where the layout has one, and wait for its writeback."""
        size_bytes = self._schedule.scratch_bytes
        if not size_bytes:
            return
        self.scratch = make_scratch(
            self._target, size_bytes, keep=self._keep, check_stop=self._stop.check, on_made=register_scratch
        )
        self.bytes_written += size_bytes
        for name, place in self._place_targets.items():
            self._places[name] = make_scratch(
                place, size_bytes, keep=self._keep, check_stop=self._stop.check, on_made=register_scratch
            )
            self.bytes_written += size_bytes
        if not wait_for_writeback(self._host, self._stop.sleep):
            self.note("much was still dirty or under writeback when the measurement began")

    def find_scratch_again(self) -> None:
        """After a remount the file has another device number. Raises ScratchChangedError if it is another file."""
        if self.scratch is not None:
            self.scratch = self.scratch.after_remount()

    def remove_scratch(self, *, after_remount: bool = False) -> None:
        """Remove the scratch file if it is still ours; otherwise a note says what is left."""
        if self.scratch is None:
            return
        try:
            if after_remount:
                self.find_scratch_again()
            self.scratch.remove()
            if isinstance(self.scratch, Scratch):
                forget_scratch(self.scratch.directory)
        except AdvisorError as error:
            self.note(f"the scratch file was not removed: {error.message}")
        for area in self._places.values():
            try:
                area.remove()
                forget_scratch(area.directory)
            except AdvisorError as error:
                self.note(f"a scratch file was not removed: {error.message}")

    # -- runs ----------------------------------------------------------------------------------------------------

    def run(self, arm: Arm, workload: Pattern, seconds: float, options: tuple[str, ...] = ()) -> FioRun:
        """One fio run with its covariates, not judged yet."""
        self._stop.check()
        schedule = self._schedule
        scratch = self.scratch if workload.needs_scratch else None
        job = fio.FioJob(workload, seconds, schedule.scratch_bytes, schedule.run_write_bytes, options)
        if scratch is not None:
            job = msgspec.structs.replace(job, file_name=scratch.file_name, is_read_only=scratch.is_read_only)
        before = read_counters(self._host, self._target.device, time.monotonic())
        places = {name: self._places[name] for name in (one.name for one in workload.sections) if name in self._places}
        figures, text = fio.run_fio(self._runner, job, scratch, self._stop, places)
        after = read_counters(self._host, self._target.device, time.monotonic())
        number = len(self.raw)
        self.raw[number] = text
        self.bytes_written += figures.written_bytes
        if workload.is_writing and figures.runtime_seconds < SUSTAINED_SHARE * seconds:
            self.note(
                f"runs of {workload.name} ended before {seconds:g} s: each had written the"
                f" {schedule.run_write_bytes // MIB} MiB that the byte budget leaves it (--byte-budget)"
            )
        at_seconds = before.at_seconds - self.began
        return FioRun(number, arm, workload.name, at_seconds, figures, covariates_between(before, after, figures))

    def judged(self, runs: Sequence[FioRun]) -> tuple[FioRun, ...]:
        """The runs of one pair (or round) with the lamps that they light, each lamp at the run with the most of it."""
        lit: dict[int, list[str]] = {}
        for name in dict.fromkeys(run.workload for run in runs if _is_disturbable(run)):
            group = [run for run in runs if run.workload == name]
            covariates = [run.covariates for run in group]
            # What the warm-up would have been as pairs or rounds such as this one.
            arms = (
                [one.covariates for one in self.warm_up if ((one.arm, one.workload) == (run.arm, run.workload))]
                for run in group
            )
            history = self._groups.setdefault(name, list(zip(*arms, strict=False)))
            for lamp in judge_group(covariates, history):
                lit.setdefault(
                    max(group, key=lambda run: getattr(run.covariates, LAMPS[lamp].field)).number, []
                ).append(lamp)
            history.append(covariates)
        return tuple(msgspec.structs.replace(run, lamps=tuple(lit.get(run.number, ()))) for run in runs)

    def warm_up_workload(self, arm: Arm, workload: Pattern, options: tuple[str, ...] = ()) -> None:
        """Runs that do not count, until two in a row agree."""
        values: list[float] = []
        for _ in range(WARM_UP_RUNS):
            run = self.run(arm, workload, self._schedule.seconds_per_run, options)
            self.warm_up.append(run)
            values.append(run.figures.value(workload.metric))
            if len(values) > 1 and abs(math.log(values[-1] / values[-2])) <= math.log1p(WARM_UP_AGREEMENT):
                return
        self.note(f"{workload.name} was still changing by more than {WARM_UP_AGREEMENT:.0%} after the warm-up")

    # -- is it worth going on ------------------------------------------------------------------------------------

    def sample_idle(self) -> Covariates:
        """What others do on the device while fio does nothing."""
        if self._target.device is None:
            now = read_counters(self._host, None, time.monotonic())
            return covariates_between(now, now, None)
        others = sample_processes(self._host)
        before = read_counters(self._host, self._target.device, time.monotonic())
        self._stop.sleep(IDLE_SAMPLE_SECONDS)
        after = read_counters(self._host, self._target.device, time.monotonic())
        self._storage_users = name_storage_users(others, sample_processes(self._host))
        return covariates_between(before, after, None)

    def foreign_reason(self, idle: Covariates) -> str | None:
        """Why the device is not calm enough for the rates of the warm-up; ``None`` if it is."""
        stored = self._stored_warm_up()
        reason = foreign_io(idle, min(run.figures.bandwidth_bytes_per_s for run in stored)) if stored else None
        return f"{reason} ({self._storage_users})" if reason is not None and self._storage_users else reason

    def require_timed(self) -> None:
        """Raise RefusedError where the byte budget makes runs too short to be timed."""
        stored = self._stored_warm_up()
        shortest = min(stored, key=lambda run: run.figures.runtime_seconds, default=None)
        if shortest is not None and shortest.figures.runtime_seconds < MINIMUM_TIMED_SECONDS:
            longer = WELL_TIMED_SECONDS / max(shortest.figures.runtime_seconds, 1e-3)
            schedule = self._schedule
            enough = schedule.scratch_bytes + longer * (schedule.byte_budget - schedule.scratch_bytes)
            raise RefusedError(
                (
                    f"{shortest.workload}: {self._schedule.run_write_bytes // MIB} MiB, all that the byte budget "
                    f"allows for a run, are written in {shortest.figures.runtime_seconds * 1000:.0f} ms: too "
                    "short to be timed"
                ),
                hint=f"--byte-budget {math.ceil(enough / MIB)}, for runs of {WELL_TIMED_SECONDS:g} s",
            )

    def _stored_warm_up(self) -> list[FioRun]:
        return [run for run in self.warm_up if get_measured(run.workload).needs_scratch]


def _is_disturbable(run: FioRun) -> bool:
    """Whether others can get in its way: fio's null engine touches nothing."""
    workload = get_measured(run.workload)
    return workload.needs_scratch or not workload.sections


class MeasurePace:
    """How long pairs (or rounds) take, and whether one more fits into what is left of time and bytes."""

    def __init__(self, schedule: Schedule, workloads: Sequence[Pattern], budget_seconds: float | None, began: float):
        self._schedule = schedule
        self._writers = sum(1 for workload in workloads if workload.is_writing)
        self._budget_seconds = budget_seconds
        self._began = began
        self.seconds: list[float] = []

    @property
    def expected_seconds(self) -> float:
        """Of the next one."""
        return median(self.seconds[-4:]) if self.seconds else self._schedule.pair_seconds

    def seconds_left(self, done: int, *, is_under_way: bool) -> float:
        """At most, with ``done`` pairs behind; before the first one, what the layout predicted."""
        left = self._schedule.predicted_seconds - (time.monotonic() - self._began)
        if is_under_way and self.seconds:
            left = (self._schedule.pairs - done) * self.expected_seconds
        if self._budget_seconds is not None:
            left = min(left, self._end_time() - time.monotonic())
        return max(0.0, left)

    def _end_time(self) -> float:
        return self._began + (self._budget_seconds or math.inf)

    def has_time(self) -> bool:
        """Whether one more can end before the budget does."""
        return time.monotonic() + self.expected_seconds + RESERVE_SECONDS <= self._end_time()

    def has_seconds(self, seconds: float) -> bool:
        """Whether so much more fits into the budget."""
        return time.monotonic() + seconds + RESERVE_SECONDS <= self._end_time()

    def has_bytes(self, bytes_written: int, pairs: int) -> bool:
        """Whether that many more may be written."""
        return bytes_written + pairs * self._bytes_each() <= self._schedule.byte_budget

    def _bytes_each(self) -> int:
        return self._schedule.arms * self._writers * self._schedule.run_write_bytes


def lamps_of(runs: Iterable[FioRun]) -> tuple[str, ...]:
    """The lamps that any of the runs lit, each once."""
    return tuple(dict.fromkeys(lamp for run in runs for lamp in run.lamps))


def is_under_pressure(attempts: Sequence[Sequence[FioRun]]) -> bool:
    """Whether others waited for I/O in the latest attempts at a pair or round, again and again: leave it to them."""
    latest = attempts[-MAX_PRESSED:]
    return len(latest) == MAX_PRESSED and all("io-pressure" in lamps_of(runs) for runs in latest)
