"""What one fio run yields, and the metrics that a claim can be made on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

FioMetric = Literal[
    "iops",
    "bandwidth",
    "latency_mean",
    "latency_p50",
    "latency_p95",
    "latency_p99",
    "latency_p999",
    "cpu_per_io",
    "delivered",
]
MetricName = str
"""One of fio's, or what the user calls a figure of a command of their own."""


class Metric(msgspec.Struct, frozen=True):
    """Name, unit as printed, and whether a higher or a lower value is better."""

    name: MetricName
    unit: str
    better: Literal["higher", "lower"]

    @property
    def sign(self) -> int:
        """+1 or -1: what turns a raw ln ratio into one where plus is better."""
        return 1 if self.better == "higher" else -1


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("iops", "IOPS", "higher"),
        Metric("bandwidth", "MB/s", "higher"),
        Metric("latency_mean", "us", "lower"),
        Metric("latency_p50", "us", "lower"),
        Metric("latency_p95", "us", "lower"),
        Metric("latency_p99", "us", "lower"),
        # run-to-run noise of 33-68 %: for display, never for a claim
        Metric("latency_p999", "us", "lower"),
        Metric("cpu_per_io", "us", "lower"),
        # of what one end of a network run sent, the share that the other end received
        Metric("delivered", "%", "higher"),
    )
}
CLAIMABLE: tuple[FioMetric, ...] = ("iops", "bandwidth", "latency_mean", "latency_p50", "latency_p95", "latency_p99")


class RunFigures(msgspec.Struct, frozen=True):
    """One accepted fio run, reads and writes and all jobs taken together. Latencies are completion latencies."""

    iops: float
    bandwidth_bytes_per_s: float
    latency_mean_us: float
    latency_p50_us: float
    latency_p95_us: float
    latency_p99_us: float
    latency_p999_us: float
    ios: int
    read_bytes: int
    written_bytes: int
    runtime_seconds: float
    cpu_us_per_io: float
    cpu_seconds: float
    """CPU time of the whole fio process, start-up included; ``cpu_us_per_io`` counts the I/O threads only."""
    sent_bytes: int | None = None
    received_bytes: int | None = None
    """Of a network run, each as the side that did it counted; IOPS and bandwidth are those of the receiver."""
    measures: Mapping[str, float] = {}
    """Of a command of the user's own, its metrics by name; all figures of fio are 0 then."""

    def value(self, metric: MetricName) -> float:
        """The figure in the metric's printed unit; 0 for one that the run has not."""
        if metric in self.measures:
            return self.measures[metric]
        match metric:
            case "iops":
                return self.iops
            case "bandwidth":
                return self.bandwidth_bytes_per_s / 1e6
            case "latency_mean":
                return self.latency_mean_us
            case "latency_p50":
                return self.latency_p50_us
            case "latency_p95":
                return self.latency_p95_us
            case "latency_p99":
                return self.latency_p99_us
            case "latency_p999":
                return self.latency_p999_us
            case "cpu_per_io":
                return self.cpu_us_per_io
            case "delivered":
                # 0 is "no value": what touches no network delivers nothing
                return 100 * (self.received_bytes or 0) / self.sent_bytes if self.sent_bytes else 0.0
            case _:
                return 0.0
