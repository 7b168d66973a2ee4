"""postgresql, nfs-server, nfs-client, minio, kvm-host: how much is dirty while a file is written and what is left for
the fsync at its end, by vm.dirty_background_bytes and vm.dirty_bytes, on a host with 36 GiB.

Run by `python -m benchmarks.profile_records dirty-pages`, which limits the drive to 100 MiB/s. The writer is paced to
half of that. Makes a file system on the first NVMe drive of the lab; restores the values.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path

from .guest import counters, print_table, require_guest, shell, sysctl

MIB, GIB = 1 << 20, 1 << 30
BLOCK = b"x" * MIB
PLACE = Path("/var/tmp/records")
SETTINGS: dict[str, dict[str, int]] = {
    "the kernel's (10 %, 20 %)": {},
    "dirty_background_bytes 1 GiB": {"vm.dirty_background_bytes": GIB},
    "and dirty_bytes 4 GiB": {"vm.dirty_background_bytes": GIB, "vm.dirty_bytes": 4 * GIB},
}
EXPIRY, NEVER = 3000, 360000
"""vm.dirty_expire_centisecs: the kernel's 30 seconds, and longer than a run takes."""
WRITES = {"512 MiB": (512, EXPIRY), "3 GiB": (3072, EXPIRY), "3 GiB, nothing expires": (3072, NEVER)}
RATE = 50
"""MiB/s of the writer, where the emulated CPU is fast enough."""


def dirty_mib() -> int:
    """Dirty pages and pages under writeback, of the whole host."""
    now = counters("/proc/meminfo")
    return (now["Dirty"] + now["Writeback"]) // 1024


def write(mib: int) -> tuple[int, int, str]:
    """The largest amount of dirty memory, what is left when fsync begins, and the seconds of that fsync."""
    peak, done = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.1):
            peak = max(peak, dirty_mib())

    watcher = threading.Thread(target=watch)
    watcher.start()
    path = PLACE / "file"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    started = time.monotonic()
    for number in range(mib):
        os.write(descriptor, BLOCK)
        if (ahead := number / RATE - (time.monotonic() - started)) > 0:
            time.sleep(ahead)
    left = dirty_mib()
    waited = time.monotonic()
    os.fsync(descriptor)
    waited = time.monotonic() - waited
    os.close(descriptor)
    done.set()
    watcher.join()
    path.unlink()
    os.sync()
    return peak, left, f"{waited:.0f}"


def main() -> None:
    """Print a table of thresholds and one of writes."""
    require_guest()
    PLACE.mkdir(exist_ok=True)
    shell(f"mkfs.ext4 -q -F /dev/nvme0n1 && mount /dev/nvme0n1 {PLACE}")
    try:
        thresholds, rows = [], []
        for name, settings in SETTINGS.items():
            with contextlib.ExitStack() as stack:
                for key, value in settings.items():
                    stack.enter_context(sysctl(key, value))
                now = counters("/proc/vmstat")
                thresholds.append((name, now["nr_dirty_background_threshold"] // 256, now["nr_dirty_threshold"] // 256))
                if "vm.dirty_bytes" in settings:
                    continue  # The emulated CPU does not write fast enough to reach it.
                for kind, (mib, expiry) in WRITES.items():
                    with sysctl("vm.dirty_expire_centisecs", expiry):
                        rows.append((kind, name, *write(mib)))
                    print(rows[-1], flush=True)
        print_table(("setting", "MiB from which the background writes", "MiB from which writers wait"), thresholds)
        print_table(
            ("file", "setting", "most dirty, MiB", "left for fsync, MiB", "its seconds"),
            [row for kind in WRITES for row in rows if row[0] == kind],
        )
    finally:
        shell(f"umount {PLACE}")


if __name__ == "__main__":
    main()
