"""Sessions made of numbers: what a session would have recorded, for the pure part and for simulations."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from advisor.proof.covariates import Covariates
from advisor.proof.metrics import RunFigures
from advisor.proof.records import Arm, Claim, FioRun, Guardrail, Pair, ProofSubject, Session, resolve_subject
from advisor.proof.schedule import MODES, ModeName, make_schedule
from advisor.proof.workloads import get_workload

WORKLOAD = "infoscale.4k-rand-r100"
GIB = 1 << 30


def figures(iops: float, *, p99_us: float = 500.0, cpu_us: float = 20.0) -> RunFigures:
    """A run at that speed; median latency is its inverse."""
    return RunFigures(
        iops=iops,
        bandwidth_bytes_per_s=iops * 4096,
        latency_mean_us=1e6 / iops,
        latency_p50_us=1e6 / iops,
        latency_p95_us=2e6 / iops,
        latency_p99_us=p99_us,
        latency_p999_us=4 * p99_us,
        ios=int(iops * 2),
        read_bytes=int(iops * 2) * 4096,
        written_bytes=0,
        runtime_seconds=2.0,
        cpu_us_per_io=cpu_us,
        cpu_seconds=0.1,
    )


def run(arm: Arm, value: float | RunFigures, workload: str = WORKLOAD) -> FioRun:
    found = value if isinstance(value, RunFigures) else figures(value)
    return FioRun(0, arm, workload, 0.0, found, Covariates(2.0))


def pair(
    index: int, before: float | RunFigures, after: float | RunFigures, *, order: str = "AB", contaminated: bool = False
) -> Pair:
    runs = (run("A", before), run("B", after))
    return Pair(index, 0, order, runs if order == "AB" else runs[::-1], contaminated=contaminated)


def subject(
    *claims: Claim, guardrails: tuple[Guardrail, ...] = (), control: str | None = None, mode: ModeName = "default"
) -> ProofSubject:
    bare = ProofSubject("storage", claims or (Claim(WORKLOAD),), guardrails, control)
    return resolve_subject(bare, MODES[mode])


def session(pairs: Sequence[Pair], *claims: Claim, mode: ModeName = "default", control: str | None = None) -> Session:
    """A session of the mode with these pairs and the default guardrails."""
    schedule = make_schedule(MODES[mode], [get_workload(WORKLOAD)], free_bytes=1000 * GIB, place_seconds=0.0)
    return Session(
        subject=subject(*claims, control=control, mode=mode),
        schedule=schedule,
        toggle_class="T0",
        seed=1,
        target="/srv",
        file_system="xfs",
        device="sda",
        fio_version="fio-3.33",
        started="2024-05-17T12:00:00+00:00",
        pairs=tuple(pairs),
    )


Drift = Callable[[random.Random, int], list[float]]
"""Factors on the speed of each of that many runs: what other load does to them."""


def calm(_: random.Random, runs: int) -> list[float]:
    return [1.0] * runs


def linear(source: random.Random, runs: int) -> list[float]:
    slope = source.uniform(-0.3, 0.3)
    return [1 + slope * position / runs for position in range(runs)]


def step(source: random.Random, runs: int) -> list[float]:
    where, factor = source.randrange(runs // 4, 3 * runs // 4), source.choice([0.6, 1.5])
    return [1.0 if position < where else factor for position in range(runs)]


def burst(source: random.Random, runs: int) -> list[float]:
    factors, slow = [], 0
    for _ in range(runs):
        slow = 3 if not slow and source.random() < 0.08 else max(0, slow - 1)
        factors.append(0.5 if slow else 1.0)
    return factors


def periodic(source: random.Random, runs: int) -> list[float]:
    phase = source.randrange(4)
    return [0.7 if position % 4 == phase else 1.0 for position in range(runs)]


DRIFTS: dict[str, Drift] = {"calm": calm, "linear": linear, "step": step, "burst": burst, "periodic": periodic}
