"""kafka, mysql, minio, kvm-host: what is swapped out of memory that a program holds while files are read, by
vm.swappiness.

Run by `python -m benchmarks.profile_records swapping`. A program touches 900 MiB and then leaves them alone, as a heap
between collections or a guest that sleeps; meanwhile a file larger than what is left is read over and over; at last the
program touches all of its memory once more. Removes its swap file and its file, restores vm.swappiness.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from pathlib import Path

from .guest import counters, print_table, require_guest, shell, sysctl

MIB = 1 << 20
HELD, FILE, READS = 900, 1100, 3
ORDER = (60, 10, 1, 60, 1)


def touch(memory: mmap.mmap) -> None:
    """One byte of each page."""
    for offset in range(0, len(memory), 4096):
        memory[offset] = 1


def major_faults() -> int:
    """Of this process so far."""
    return int(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[9])


def measure(path: Path, swappiness: int) -> tuple[int, int, int]:
    """MiB written to swap, major faults of one pass, MiB of the file read again."""
    with sysctl("vm.swappiness", swappiness):
        shell("swapoff -a; echo 3 >/proc/sys/vm/drop_caches; swapon /swap")
        before = counters("/proc/vmstat")
        memory = mmap.mmap(-1, HELD * MIB)
        touch(memory)
        for _ in range(READS):
            with path.open("rb", buffering=0) as file:
                while file.read(MIB):
                    pass
        after = counters("/proc/vmstat")
        faults = major_faults()
        touch(memory)
        faults = major_faults() - faults
        memory.close()
    written = (after["pswpout"] - before["pswpout"]) // 256
    return written, faults, (after["workingset_refault_file"] - before["workingset_refault_file"]) // 256


def main() -> None:
    """Print a table, a row for each run in the order of the runs."""
    require_guest()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        path = Path(name, "file")
        shell(
            f"fallocate -l 2G /swap && chmod 600 /swap && mkswap /swap && dd if=/dev/zero of={path} bs=1M count={FILE}"
        )
        os.sync()
        try:
            print_table(
                ("vm.swappiness", "MiB swapped out", "pages read from swap in one pass", "MiB of the file read again"),
                [(str(value), *measure(path, value)) for value in ORDER],
            )
        finally:
            shell("swapoff -a; rm -f /swap")


if __name__ == "__main__":
    main()
