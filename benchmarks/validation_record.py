"""Record the same fio run many times on this host, with the covariates of each run.

    python -m benchmarks.validation_record FILE [SECONDS]     default: 360 s for each workload

Each run is started, checked and parsed by the project's own runner; nothing is changed between the runs. The file
holds numbers only and is what :mod:`benchmarks.validation` replays. Writes one scratch file of 512 MiB to /var/tmp.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import time
from datetime import UTC, datetime

from advisor.host import live_host
from advisor.proof.covariates import covariates_between, read_counters
from advisor.proof.fio import FioJob, read_version, run_fio
from advisor.proof.process import FioProcess, Stop, caught_signals
from advisor.proof.scratch import MIB, Scratch, scratch_file
from advisor.proof.target import MeasuredTarget, read_target
from advisor.proof.workloads import get_workload
from benchmarks.validation_series import COVARIATES, FIGURES, Recording, Series

WORKLOADS = ("infoscale.4k-rand-r100", "infoscale.64k-seq-r100")
RUN_SECONDS = 1.0
SCRATCH_BYTES = 512 * MIB
DIGITS = 5


def record_series(name: str, seconds: float, scratch: Scratch, target: MeasuredTarget, stop: Stop) -> Series:
    """Run the workload back to back for that long: one row for each run, in the order in which they were run."""
    host, workload = live_host(), get_workload(name)
    job = FioJob(workload, RUN_SECONDS, scratch.size_bytes, 0)
    rows: list[tuple[float | None, ...]] = []
    began = time.monotonic()
    while (at := time.monotonic() - began) < seconds:
        before = read_counters(host, target.device, time.monotonic())
        figures, _ = run_fio(FioProcess(), job, scratch, stop)
        covariates = covariates_between(before, read_counters(host, target.device, time.monotonic()), figures)
        numbers = [at, *(getattr(figures, field) for field in FIGURES), *(getattr(covariates, f) for f in COVARIATES)]
        rows.append(tuple(None if number is None else float(f"{number:.{DIGITS}g}") for number in numbers))
    return Series(name, rows)


def main(path: str, seconds: float = 360.0) -> None:
    with caught_signals() as stop, tempfile.TemporaryDirectory(dir="/var/tmp", prefix="advisor-record-") as place:
        target = read_target(live_host(), place)
        with scratch_file(target, SCRATCH_BYTES, check_stop=stop.check) as scratch:
            found = Recording(
                recorded=datetime.now(UTC).date().isoformat(),
                fio=read_version(FioProcess(), stop),
                host=f"{os.cpu_count()} CPUs, {platform.system()} {platform.release()}, {target.file_system}",
                how=f"A = A, {RUN_SECONDS:g} s runs back to back on one {SCRATCH_BYTES // MIB} MiB file, direct I/O,"
                f" nice {os.nice(0)}, one workload after the other",
                seconds=RUN_SECONDS,
                series=[record_series(name, seconds, scratch, target, stop) for name in WORKLOADS],
            )
    found.write(path)
    print(json.dumps({series.workload: len(series.rows) for series in found.series}))


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:]))
