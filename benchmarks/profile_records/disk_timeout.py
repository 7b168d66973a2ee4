"""virtual-guest, cloud-guest: what becomes of a write that waits for a disk which pauses, by its time limit.

Run by `python -m benchmarks.profile_records disk-timeout`; some minutes, as the times are real ones. The SCSI disk is
the kernel's scsi_debug, which is given a maker and a model, and drops every command for a time: as storage that
changes over. What the guest's kernel prints meanwhile is counted. Unloads scsi_debug at the end.
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from .guest import print_table, require_guest, shell

DRIVER = Path("/sys/bus/pseudo/drivers/scsi_debug")
PAUSES = (60, 240)
LIMITS = (30000, 180000)
DROP = 4
"""SDEBUG_OPT_TIMEOUT: no answer, ever, to each every_nth-th command."""
WRITER = """
import os, sys, mmap
descriptor = os.open(sys.argv[1], os.O_WRONLY | os.O_DIRECT | os.O_DSYNC)
try:
    print(os.pwrite(descriptor, mmap.mmap(-1, 4096), 4096), "bytes")
except OSError as error:
    print(error.strerror)
"""


def drop_commands(*, on: bool) -> None:
    """From now on drop all commands, or none."""
    (DRIVER / "opts").write_text(str(DROP if on else 0))
    (DRIVER / "every_nth").write_text("1" if on else "0")


def find_disks(wanted: int) -> list[str]:
    """The names of scsi_debug's disks."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        models = Path("/sys/block").glob("sd*/device/model")
        found = sorted(one.parts[-3] for one in models if "Virtual disk" in one.read_text())
        if len(found) == wanted:
            return found
        time.sleep(0.2)
    raise RuntimeError("scsi_debug has not its disks")


def measure(pause: int) -> list[tuple[str, str, str, str, int, str]]:
    """For a disk of each limit, each with a host adapter of its own, at the same time: what the writer gets, after
    how long, how often the kernel said that an I/O failed, and the disk's state at the end."""
    identity = "inq_vendor=VMware inq_product='Virtual disk'"
    shell(f"modprobe scsi_debug dev_size_mb=64 delay=0 add_host={len(LIMITS)} {identity}")
    try:
        found = find_disks(len(LIMITS))
        shell("udevadm settle; dmesg --clear")
        for disk, limit in zip(found, LIMITS, strict=True):
            Path("/sys/block", disk, "queue", "io_timeout").write_text(str(limit))
        drop_commands(on=True)
        started = time.monotonic()
        writers = {
            disk: subprocess.Popen([sys.executable, "-c", WRITER, f"/dev/{disk}"], stdout=subprocess.PIPE, text=True)
            for disk in found
        }
        ended: dict[str, float] = {}
        while len(ended) < len(writers):
            passed = time.monotonic() - started
            if passed >= pause:
                drop_commands(on=False)
            ended |= {disk: passed for disk, one in writers.items() if one.poll() is not None and disk not in ended}
            time.sleep(0.2)
        log = shell("dmesg").splitlines()
        return [
            (
                f"{pause} s",
                f"{limit // 1000} s",
                writers[disk].communicate()[0].strip(),
                f"{ended[disk]:.0f} s",
                sum("I/O error" in line and f"dev {disk}," in line for line in log),
                Path("/sys/block", disk, "device", "state").read_text().strip(),
            )
            for disk, limit in zip(found, LIMITS, strict=True)
        ]
    finally:
        with suppress(OSError):
            drop_commands(on=False)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with suppress(RuntimeError):
                shell("modprobe -r scsi_debug")
                break
            time.sleep(1)


def main() -> None:
    """Print a table."""
    require_guest()
    rows = []
    for pause in PAUSES:
        rows += measure(pause)
        print(rows[-len(LIMITS) :], flush=True)
    print_table(("pause", "io_timeout", "the writer gets", "after", "I/O errors", "disk"), rows)


if __name__ == "__main__":
    main()
