"""A twin judged by its outcome: it runs on a scratch file, is observed in the same way, and is compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from advisor.errors import RefusedError
from advisor.host import Host
from advisor.host.trace_instance import open_trace
from advisor.observe.load import DIRECTIONS, LatencyFigures, LoadFigures, joint_sizes, measure_load, total_variation
from advisor.observe.tracing import RequestTracer, TracedRequests, device_number, events_of
from advisor.proof.covariates import wait_for_writeback
from advisor.proof.fio import FioJob, run_fio
from advisor.proof.interrupt import Stop
from advisor.proof.process import EndedProcess, FioProcess
from advisor.proof.scratch import DEFAULT_KEEP, MIB, Keep, make_scratch, require_space
from advisor.proof.scratch_registry import forget_scratch, register_scratch, sweep_scratch
from advisor.proof.target import MeasuredTarget, lower_devices
from advisor.proof.twin import DEPTH_BOUND, LATENCY_BOUND, ORDER_BOUND, RATE_BOUND, READ_BOUND, SIZES_BOUND
from advisor.proof.workload_file import WorkloadFile

SCRATCH_BYTES: Final = 256 * MIB
_LEAST_WRITE_BYTES: Final = 64 * MIB
_MOST_WRITE_BYTES: Final = 8 << 30
_SKIP_SECONDS: Final = 0.3
"""What a twin does first is that of an empty queue and of a file just made."""
_DEPTH_STEP: Final = 0.5
_MOST_DEVICES: Final = 8

RowKind = Literal["count", "rate", "share", "distance", "depth", "us"]


class TwinRow(msgspec.Struct, frozen=True):
    """One figure of both. ``difference`` is relative for rates, depths and latencies, absolute for shares; a distance
    of distributions has no figure of each. Without a bound it is shown and not judged."""

    name: str
    kind: RowKind
    observed: float | None
    twin: float | None
    difference: float
    bound: float | None = None

    @property
    def is_within(self) -> bool:
        return self.bound is None or self.difference <= self.bound


class TwinComparison(msgspec.Struct, frozen=True):
    """What was observed against what the twin did. ``others`` is the share of requests on the device, while the twin
    ran, that were not its own."""

    rows: tuple[TwinRow, ...]
    observed: LoadFigures
    twin: LoadFigures
    others: float = 0.0

    @property
    def is_faithful(self) -> bool:
        return all(row.is_within for row in self.rows)

    @property
    def worst(self) -> TwinRow:
        """The row that is the nearest to its bound, or the farthest beyond."""
        return max((row for row in self.rows if row.bound), key=lambda row: row.difference / (row.bound or 1))


def compare_loads(observed: LoadFigures, twin: LoadFigures, others: float = 0.0) -> TwinComparison:
    """The rows of the comparison, judged by the bounds of the twin."""
    rows = [
        TwinRow("requests/s", "rate", observed.iops, twin.iops, _relative(observed.iops, twin.iops), RATE_BOUND),
        TwinRow(
            "sizes by direction",
            "distance",
            None,
            None,
            total_variation(joint_sizes(observed.sizes), joint_sizes(twin.sizes)),
            SIZES_BOUND,
        ),
        TwinRow(
            "reads",
            "share",
            observed.read_share,
            twin.read_share,
            abs(observed.read_share - twin.read_share),
            READ_BOUND,
        ),
    ]
    for name, weight in zip(DIRECTIONS, (observed.read_share, 1 - observed.read_share), strict=True):
        if weight >= 0.05:
            before, after = observed.sequential[name], twin.sequential[name]
            rows.append(TwinRow(f"{name}s in order", "share", before, after, abs(before - after), ORDER_BOUND))
    # Of few requests in flight a part of one is a large share, and no difference: the bound is wider by it.
    for label, before, after, step in (
        ("depth, mean", observed.depth_mean, twin.depth_mean, _DEPTH_STEP),
        ("depth, p95", observed.depth_high, twin.depth_high, 1),
    ):
        bound = DEPTH_BOUND + step / max(before, 1e-9)
        rows.append(TwinRow(label, "depth", before, after, _relative(before, after), bound))
    both = observed.latency["all"], twin.latency["all"]
    for label, before, after, most in (
        ("latency, p50", both[0].p50_us, both[1].p50_us, LATENCY_BOUND),
        ("latency, p95", both[0].p95_us, both[1].p95_us, None),
        ("latency, p99", both[0].p99_us, both[1].p99_us, LATENCY_BOUND),
    ):
        rows.append(TwinRow(label, "us", before, after, _relative(before, after), most))
    rows.append(TwinRow("latency, distribution", "distance", None, None, total_variation(*map(_shares, both))))
    return TwinComparison(tuple(rows), observed, twin, others)


def _relative(before: float, after: float) -> float:
    return abs(after - before) / max(before, 1e-9)


def _shares(latency: LatencyFigures) -> Mapping[object, float]:
    total = sum(latency.bins.values())
    return {key: number / total for key, number in latency.bins.items()}


def check_twin(
    host: Host,
    found: WorkloadFile,
    target: MeasuredTarget,
    seconds: float,
    stop: Stop,
    *,
    scratch_bytes: int = SCRATCH_BYTES,
    keep: Keep = DEFAULT_KEEP,
) -> TwinComparison:
    """Run the twin on a scratch file on the target, trace it, and compare. The scratch file is removed.

    Raises RefusedError where nothing can be compared: a file from counters, a target without a block device.
    """
    load = None if found.observed is None else found.observed.figures
    if load is None:
        raise RefusedError(
            "nothing to compare with: the file has no figures of single requests",
            hint="advisor observe as root traces each request",
        )
    device = traced_device(host, target)
    for _ in sweep_scratch():
        pass
    written = load.bytes_per_s * (1 - load.read_share) * seconds * 3
    section = found.sections[0]
    size = max(scratch_bytes, 16 * section.largest_bytes * section.jobs)
    require_space(target, size, keep)
    scratch = make_scratch(target, size, keep=keep, check_stop=stop.check, on_made=register_scratch)
    try:
        # What the making of the file left to be written would be another load.
        wait_for_writeback(host, stop.sleep)
        limit = int(min(_MOST_WRITE_BYTES, max(_LEAST_WRITE_BYTES, written)))
        job = FioJob(found.pattern("twin"), seconds, size, limit, file_name=scratch.file_name)
        runner = _TracedRunner(host, device)
        run_fio(runner, job, scratch, stop)
    finally:
        scratch.remove()
        forget_scratch(scratch.directory)
    return _judge_run(host, runner, device, load)


class _TracedRunner:
    """fio, with the requests of its device traced."""

    def __init__(self, host: Host, device: str) -> None:
        self._host = host
        self._device = device
        self.traced: TracedRequests | None = None
        self.threads: set[int] = set()
        """The twin's own, by their numbers."""

    def run(
        self, argv: Sequence[str], *, timeout: float, cwd: str, stop: Stop, keep_open: Sequence[int] = ()
    ) -> EndedProcess:
        events = events_of(self._host, self._device)
        with open_trace(events) as trace, FioProcess().started(argv, cwd=cwd, keep_open=keep_open) as running:
            tracer = RequestTracer(trace, events)

            def collect() -> None:
                self.threads |= running.list_threads()
                tracer.collect()

            done = running.finish(timeout=timeout, stop=stop, meanwhile=collect)
            self.traced = tracer.finish()
        return done


def _judge_run(host: Host, runner: _TracedRunner, device: str, load: LoadFigures) -> TwinComparison:
    found = None if runner.traced is None else runner.traced.devices.get(device_number(host, device) or "")
    requests = [] if found is None else [one for one in found.requests if one.pid in runner.threads]
    first = min((one.at_seconds for one in requests), default=0.0) + _SKIP_SECONDS
    counted = [one for one in requests if one.at_seconds >= first]
    if found is None or len(counted) < 2:
        raise RefusedError(
            f"the twin's requests were not seen on {device}",
            hint="choose a target directory on a local file system of that device",
        )
    flushes = [one for one in found.flushes if one[0] >= first]
    twin = measure_load(counted, flushes=flushes, durable_writes=found.durable_writes)
    return compare_loads(load, twin, 1 - len(requests) / len(found.requests))


def traced_device(host: Host, target: MeasuredTarget) -> str:
    """The whole disk below the target whose requests are traced. Raises RefusedError where there is none."""
    name = target.device
    for _ in range(_MOST_DEVICES):
        if name is None or device_number(host, name) is None:
            break
        if name in host.names("/sys/block") and not host.names(f"/sys/class/block/{name}/slaves"):
            return name
        below = lower_devices(host, name)
        name = below[0] if len(below) == 1 else None
    raise RefusedError(
        f"{target.path}: not on one disk whose requests can be traced",
        hint="choose a directory on a local file system of one disk",
    )
