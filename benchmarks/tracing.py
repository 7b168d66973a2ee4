"""What it costs to trace each request, and how many events are lost: at several rates.

    python -m benchmarks.tracing [--rates 10000,50000] [--seconds 4]

As root, with fio. fio reads a loop device over a file in memory (/dev/shm) with 32 requests in flight, at each of
the rates (0: as fast as it can). Costs are CPU time of this process for each request: user and system time while
the load runs and its requests are matched, and the figures of the load after it. An observation ends early with about
200,000 requests.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator

from advisor.host import live_host
from advisor.observe import tracing
from advisor.observe.load import measure_load

FILE_BYTES = 512 << 20


@contextlib.contextmanager
def memory_disk() -> Iterator[str]:
    """A loop device over a file in memory: its path."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        for _ in range(FILE_BYTES >> 20):
            file.write(os.urandom(1 << 20))
        file.flush()
        call = ["losetup", "--find", "--show", file.name]
        device = subprocess.run(call, check=True, capture_output=True, text=True).stdout.strip()
        try:
            yield device
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)


def cpu_seconds() -> tuple[float, float]:
    """User and system time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime, used.ru_stime


def trace_reads(device: str, rate: int, seconds: float) -> str:
    """A row of the table."""
    call = ["fio", "--name=reads", f"--filename={device}", "--readonly", "--direct=1", "--rw=randread", "--bs=4k"]
    call += ["--iodepth=32", "--ioengine=libaio", "--thread", "--time_based", f"--runtime={seconds + 5:.0f}"]
    call += [f"--rate_iops={rate}"] if rate else []
    host = live_host()
    name = device.rpartition("/")[2]
    with subprocess.Popen(call, stdout=subprocess.DEVNULL) as running:
        try:
            time.sleep(2)
            before = cpu_seconds()
            traced = tracing.trace_requests(seconds, tracing.events_of(host, name))
            after = cpu_seconds()
        finally:
            running.terminate()
    requests = traced.devices[tracing.device_number(host, name) or ""].requests
    count = len(requests)
    user, system = ((late - early) / count * 1e6 for early, late in zip(before, after, strict=True))
    measure_load(requests)
    figures = (sum(cpu_seconds()) - sum(after)) / count * 1e6
    cells = (f"{rate or 'as many as it can'}", f"{count / traced.seconds:,.0f}", f"{traced.lost:,} of {2 * count:,}")
    return f"| {' | '.join(cells)} | {user:.1f} | {system:.1f} | {figures:.1f} | {user + system + figures:.1f} |"


def main() -> None:
    """Print the table."""
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("--rates", default="10000,50000,0")
    asked.add_argument("--seconds", type=float, default=4.0)
    given = asked.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}\n")
    print("| asked for | requests/s | events lost | user, µs | system, µs | figures, µs | together, µs |")
    print("|---|---|---|---|---|---|---|")
    with memory_disk() as device:
        for rate in given.rates.split(","):
            print(trace_reads(device, int(rate), given.seconds), flush=True)


if __name__ == "__main__":
    main()
