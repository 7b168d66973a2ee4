"""Recorded fio series: what one run after another gave on a real host on which nothing was changed."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from advisor.proof.covariates import Covariates
from advisor.proof.metrics import RunFigures

FIGURES = ("iops", "bandwidth_bytes_per_s", "latency_mean_us", "latency_p50_us", "latency_p99_us", "cpu_us_per_io")
"""Fields of :class:`RunFigures` that are kept."""

COVARIATES = ("foreign_share", "foreign_cpu_share", "steal_share", "psi_cpu_share", "psi_io_full_share")
"""Fields of :class:`Covariates` that are kept; psi_cpu_share is the CPU pressure during the run, 0 to 1."""

COLUMNS = ("at_seconds", *FIGURES, *COVARIATES)

SHIPPED = Path(__file__).parent / "series"


class Series(msgspec.Struct, frozen=True):
    """One workload: a row of ``COLUMNS`` for each run, in the order in which they were run."""

    workload: str
    rows: list[tuple[float | None, ...]]


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """One recording: when and how, and a series for each workload."""

    recorded: str
    fio: str
    host: str
    how: str
    seconds: float
    series: list[Series]
    columns: tuple[str, ...] = COLUMNS

    def write(self, path: str | Path) -> None:
        """As JSON, one run a line, so that a change shows as a change."""
        text = msgspec.json.format(msgspec.json.encode(self), indent=1).decode()
        Path(path).write_text(_rows_on_lines(text))


def _rows_on_lines(text: str) -> str:
    """Indented JSON with each innermost list on one line."""
    return re.sub(r"\[[^\[\]]*\]", lambda found: re.sub(r"\s+", " ", found[0]), text) + "\n"


def load_series(path: str | Path) -> Recording:
    """A recording. Raises msgspec.DecodeError where it is none."""
    return msgspec.json.decode(Path(path).read_bytes(), type=Recording)


def run_figures(row: tuple[float | None, ...], seconds: float) -> RunFigures:
    """A recorded run as the runner gave it; what was not kept is derived or 0."""
    kept = {name: value or 0.0 for name, value in zip(COLUMNS, row, strict=True) if name in FIGURES}
    derived = {
        "latency_p95_us": kept["latency_mean_us"],
        "latency_p999_us": kept["latency_mean_us"],
        "ios": int(kept["iops"] * seconds),
        "read_bytes": int(kept["bandwidth_bytes_per_s"] * seconds),
        "written_bytes": 0,
        "runtime_seconds": seconds,
        "cpu_seconds": 0.0,
    }
    return msgspec.convert({**kept, **derived}, RunFigures)


def run_covariates(row: tuple[float | None, ...], seconds: float) -> Covariates:
    """The covariates of a recorded run."""
    kept = {name: value for name, value in zip(COLUMNS, row, strict=True) if name in COVARIATES}
    return msgspec.convert({**kept, "seconds": seconds}, Covariates)
