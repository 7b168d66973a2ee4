"""Series made of numbers: what a bench would have recorded, for the pure part."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import msgspec

from advisor.proof.archive import SavedBench
from advisor.proof.metrics import HostIdentity
from advisor.proof.records import FioRun
from advisor.proof.schedule import MODES, ModeName, make_schedule
from advisor.proof.series import Round, Series, summarise_series
from advisor.proof.workloads import get_workload

from .sessions import GIB, WORKLOAD, figures, run

HOST = HostIdentity("vm1", "0123456789abcdef0123456789abcdef", "6.1.0", "0.1.0")
OTHER = "infoscale.4k-rand-rw50"


def speeds(count: int, *, around: float = 1000.0, noise: float = 0.05, seed: int = 1) -> list[float]:
    source = random.Random(seed)
    return [around * math.exp(source.gauss(0, noise)) for _ in range(count)]


def rounds(values: Mapping[str, Sequence[float]]) -> tuple[Round, ...]:
    """One round for each value, all workloads in it."""
    made: list[Round] = []
    for index, row in enumerate(zip(*values.values(), strict=True)):
        runs: list[FioRun] = []
        for name, value in zip(values, row, strict=True):
            runs.append(msgspec.structs.replace(run("A", figures(value), name), number=index))
        made.append(Round(index, 0, tuple(runs)))
    return tuple(made)


def series(values: Mapping[str, Sequence[float]] | Sequence[float], *, mode: ModeName = "default") -> Series:
    """A series in which the workloads ran at these speeds (IOPS)."""
    named = values if isinstance(values, Mapping) else {WORKLOAD: values}
    plan = make_schedule(
        MODES[mode], [get_workload(name) for name in named], free_bytes=1000 * GIB, place_seconds=0.0, arms=1
    )
    return Series(
        workloads=tuple(named),
        schedule=plan,
        seed=7,
        target="/srv",
        file_system="xfs",
        device="sda",
        fio_version="fio-3.33",
        started="2024-05-17T12:00:00+00:00",
        host=HOST,
        rounds=rounds(named),
    )


def saved(values: Mapping[str, Sequence[float]] | Sequence[float], **changes: object) -> SavedBench:
    whole = msgspec.structs.replace(series(values), **changes)
    return SavedBench(summarise_series(whole), {})
