"""Recorded or made-up runs through the decision code of ``advisor prove``, as a session would take them.

What the conductor does with fio is done here with numbers: warm-up, the coin of each pair, the blind contamination
check and its repeats, the looks. The rules (``judge_group``, ``is_settled``, ``decide_session``, the schedule) are the
product's own. tests/proof/test_error_rates.py holds a replay against a session that the conductor itself conducts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from advisor.proof.covariates import Covariates, judge_group
from advisor.proof.metrics import RunFigures
from advisor.proof.records import Arm, Claim, FioRun, Pair, Proof, ProofSubject, Session, resolve_subject
from advisor.proof.schedule import MODES, REPEAT_SHARE, WARM_UP_RUNS, ModeName, make_schedule
from advisor.proof.scratch import GIB
from advisor.proof.verdict import decide_session, is_settled
from advisor.proof.workloads import get_workload
from benchmarks.validation_series import Series, run_covariates, run_figures
from tests.proof.sessions import Drift

INVENTED = ("gain", "loss", "gain-with-cost")
WARM_UP = 2 * WARM_UP_RUNS


class Measured(msgspec.Struct, frozen=True):
    """One run: what fio reported, and the covariates."""

    figures: RunFigures
    covariates: Covariates


Streams = Mapping[str, Sequence[Measured]]
"""For each claimed workload its runs, in the order in which the session takes them."""


def scaled(figures: RunFigures, factor: float) -> RunFigures:
    """The run at ``factor`` times the speed."""
    return replace(
        figures,
        iops=figures.iops * factor,
        bandwidth_bytes_per_s=figures.bandwidth_bytes_per_s * factor,
        latency_mean_us=figures.latency_mean_us / factor,
        latency_p50_us=figures.latency_p50_us / factor,
        latency_p95_us=figures.latency_p95_us / factor,
        latency_p99_us=figures.latency_p99_us / factor,
        latency_p999_us=figures.latency_p999_us / factor,
    )


def block(source: random.Random, series: Series, seconds: float, runs: int, drift: Drift) -> list[Measured]:
    """So many consecutive recorded runs from a random place, with the drift on top."""
    start = source.randrange(len(series.rows) - runs + 1)
    rows = series.rows[start : start + runs]
    return [
        Measured(scaled(run_figures(row, seconds), factor), run_covariates(row, seconds))
        for row, factor in zip(rows, drift(source, runs), strict=True)
    ]


def runs_needed(mode: ModeName, *, repeats: bool) -> int:
    """Runs of one workload that a session can take at most: with repeats, also those and the warm-up."""
    pairs = MODES[mode].pairs
    return 2 * (pairs + int(pairs * REPEAT_SHARE)) + WARM_UP if repeats else 2 * pairs


@lru_cache
def empty_session(workloads: tuple[str, ...], mode: ModeName) -> Session:
    """A session of the mode that claims each workload, before its first run."""
    schedule = make_schedule(
        MODES[mode], [get_workload(name) for name in workloads], free_bytes=1000 * GIB, place_seconds=0.0
    )
    subject = resolve_subject(ProofSubject("replay", tuple(map(Claim, workloads)), control=None), MODES[mode])
    return Session(
        subject=subject,
        schedule=schedule,
        toggle_class="T0",
        seed=0,
        target="/srv",
        file_system="ext4",
        device=None,
        fio_version="replayed",
        judged_by="pair",
        started="1970-01-01T00:00:00+00:00",
    )


class Replay:
    """One session over streams of runs; arm B is ``effect`` times as fast, and its p99 as much shorter, or ``tail``
    times as long. Use once: ``Replay(...).conclude()``."""

    def __init__(
        self,
        streams: Streams,
        mode: ModeName,
        seed: int,
        *,
        effect: float = 1.0,
        tail: float | None = None,
        repeats: bool,
        warm_up_runs: int = WARM_UP_RUNS,
    ) -> None:
        self.streams: dict[str, Iterator[Measured]] = {name: iter(runs) for name, runs in streams.items()}
        self.session = replace(empty_session(tuple(streams), mode), seed=seed)
        self.coin = random.Random(seed)
        self.effect = effect
        self.tail = tail
        self.repeats = repeats
        self.warm_up_runs = warm_up_runs
        self.history: dict[str, list[Sequence[Covariates]]] = {}

    def conclude(self, *, may_stop: bool = True) -> Proof:
        """The proof at the end, or at the first look that settles every claim."""
        schedule = self.session.schedule
        if self.repeats:
            self._warm_up()
        left = int(schedule.pairs * REPEAT_SHARE) if self.repeats else 0
        for index in range(schedule.pairs):
            found = self._replay_pair(index, 0)
            while found.contaminated and left > 0:
                left -= 1
                self._keep_pair(replace(found, superseded=True))
                found = self._replay_pair(index, found.attempt + 1)
            self._keep_pair(found)
            if may_stop and index + 1 in schedule.looks[:-1] and is_settled(self.session):
                self.session = replace(self.session, ended="settled")
                break
        return decide_session(self.session)

    def _warm_up(self) -> None:
        arms: tuple[Arm, ...] = ("A", "B")
        runs = [run for arm in arms for _ in range(self.warm_up_runs) for run in self._arm_runs(arm)]
        for name in self.streams:
            covariates = [[run.covariates for run in runs if (run.workload, run.arm) == (name, arm)] for arm in arms]
            self.history[name] = list(zip(*covariates, strict=True))

    def _replay_pair(self, index: int, attempt: int) -> Pair:
        order: tuple[Arm, ...] = ("A", "B") if self.coin.getrandbits(1) else ("B", "A")
        runs = tuple(run for arm in order for run in self._arm_runs(arm))
        return Pair(index, attempt, "".join(order), runs, contaminated=self.repeats and self._is_contaminated(runs))

    def _is_contaminated(self, runs: Sequence[FioRun]) -> bool:
        lamps: list[str] = []
        for name, history in self.history.items():
            group = [run.covariates for run in runs if run.workload == name]
            lamps += judge_group(group, history)
            history.append(group)
        return bool(lamps)

    def _keep_pair(self, pair: Pair) -> None:
        self.session = replace(self.session, pairs=(*self.session.pairs, pair))

    def _arm_runs(self, arm: Arm) -> list[FioRun]:
        return [self._replay_run(arm, name) for name in self.streams]

    def _replay_run(self, arm: Arm, name: str) -> FioRun:
        measured = next(self.streams[name])
        figures = scaled(measured.figures, self.effect) if arm == "B" else measured.figures
        if arm == "B" and self.tail is not None:
            figures = replace(figures, latency_p99_us=measured.figures.latency_p99_us * self.tail)
        return FioRun(0, arm, name, 0.0, figures, measured.covariates)


def is_invented(proof: Proof) -> bool:
    """Whether the claims alone call a difference; with A = A that is an error, whatever else the proof says."""
    return proof.tendency in INVENTED
