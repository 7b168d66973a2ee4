"""ceph-osd: how many contexts of asynchronous I/O of BlueStore's size fit below fs.aio-max-nr, how many of them a real
OSD takes, what it does without one, and how many threads fit below kernel.pid_max.

Run by `python -m benchmarks.profile_records ceph-osd`. Restores fs.aio-max-nr, kernel.pid_max and kernel.threads-max,
and ends its OSDs, whose files are in a temporary directory.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from pathlib import Path

from .guest import print_table, read_sysctl, require_guest, shell, sysctl

IO_SETUP, IO_DESTROY = 206, 207  # x86-64
DEPTH = 1024
"""bdev_aio_max_queue_depth, Ceph's default."""
LIBC = ctypes.CDLL(None, use_errno=True)


def count_contexts() -> int:
    """Contexts of DEPTH requests until the kernel refuses one."""
    made = []
    while True:
        context = ctypes.c_ulong(0)
        if LIBC.syscall(IO_SETUP, DEPTH, ctypes.byref(context)):
            break
        made.append(context)
    refusal = os.strerror(ctypes.get_errno())
    for context in made:
        LIBC.syscall(IO_DESTROY, context)
    print(f"{read_sysctl('fs.aio-max-nr')}: {len(made)} contexts, then {refusal}")
    return len(made)


def start_osd(directory: Path, number: int, *, separate: bool) -> tuple[subprocess.Popen[bytes], Path]:
    """An OSD without a cluster: it opens its store and then waits for a monitor that is not there."""
    data, log = directory / f"osd{number}", directory / f"osd{number}.log"
    options = ["-i", str(number), "--conf", "/dev/null", "--no-mon-config", "--mon-host", "127.0.0.1:6789"]
    options += [
        "--osd-data",
        str(data),
        "--log-file",
        str(log),
        "--auth-supported",
        "none",
        "--osd-max-object-name-len",
        "256",
    ]
    options += ["--bluestore-block-create", "true", "--bluestore-block-size", str(1 << 30), "--run-dir", str(directory)]
    options += ["--admin-socket", "", "--osd-objectstore", "bluestore", "--osd-memory-target", str(1 << 30)]
    if separate:
        options += ["--bluestore-block-db-create", "true", "--bluestore-block-db-size", str(256 << 20)]
        options += ["--bluestore-block-wal-create", "true", "--bluestore-block-wal-size", str(96 << 20)]
    if not data.exists():
        data.mkdir()
        identity = ["--osd-uuid", str(uuid.uuid4()), "--fsid", str(uuid.uuid4())]
        shell(" ".join(["ceph-osd", "--mkfs", *map(repr, options), *identity]))
    return subprocess.Popen(["ceph-osd", "-f", *options], stderr=log.with_suffix(".err").open("wb")), log


def osd_takes(directory: Path, number: int, *, separate: bool) -> str:
    """What fs.aio-nr grows by while an OSD has its store open, or how it ended."""
    before = int(read_sysctl("fs.aio-nr"))
    process, log = start_osd(directory, number, separate=separate)
    taken, deadline = 0, time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(1)
        taken = max(taken, int(read_sysctl("fs.aio-nr")) - before)
        if taken and time.monotonic() > deadline - 100:
            break
    threads = len(list(Path(f"/proc/{process.pid}/task").iterdir())) if process.poll() is None else 0
    if process.poll() is not None:
        printed = log.read_text().splitlines() + log.with_suffix(".err").read_text().splitlines()
        said = [one for one in printed if "aio" in one or "ERROR" in one]
        return f"ended with {process.returncode}: " + " / ".join(said[-4:] or printed[-4:])
    process.send_signal(signal.SIGKILL)
    process.wait()
    return f"{taken} requests ({taken // DEPTH} contexts), {threads} threads"


def count_threads(limit: int) -> int:
    """Threads of several processes until one is refused, or until `limit`."""
    each, going = 2000, []
    total = 0
    while total < limit:
        reading, writing = os.pipe()
        child = -1
        try:
            child = os.fork()
        except OSError:
            break
        if child == 0:
            made = 0
            threading.stack_size(32768)
            idle = threading.Event()
            try:
                for _ in range(min(each, limit - total)):
                    threading.Thread(target=idle.wait, daemon=True).start()
                    made += 1
            except RuntimeError:
                pass
            os.write(writing, str(made).encode())
            os.close(writing)
            signal.pause()
            os._exit(0)
        os.close(writing)
        made = int(os.read(reading, 20) or b"0")
        os.close(reading)
        going.append(child)
        total += made
        if made < min(each, limit):
            break
    for child in going:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return total


def main() -> None:
    """Print three tables."""
    require_guest()
    limits = (65536, 1048576)
    rows = []
    for limit in limits:
        with sysctl("fs.aio-max-nr", limit):
            rows.append((limit, count_contexts(), count_contexts()))
    print_table(("fs.aio-max-nr", f"contexts of {DEPTH}", "again"), rows)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        osds = [(f"block alone, of {read_sysctl('fs.aio-max-nr')}", osd_takes(directory, 0, separate=False))]
        osds += [("block, db and wal", osd_takes(directory, 1, separate=True))]
        for room in (2048, 1024):
            with sysctl("fs.aio-max-nr", room):
                osds.append((f"block alone, fs.aio-max-nr {room}", osd_takes(directory, 0, separate=False)))
        print_table(("OSD", "takes"), osds)
    threads = []
    with sysctl("kernel.threads-max", 120000):
        for limit in (8192, 4194304):
            with sysctl("kernel.pid_max", limit):
                threads.append((limit, count_threads(10000)))
    print_table(("kernel.pid_max", "threads, of 10,000 asked for"), threads)


if __name__ == "__main__":
    main()
