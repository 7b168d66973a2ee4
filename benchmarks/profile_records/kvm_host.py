"""kvm-host: page tables of a guest and huge pages in use, with its memory in huge pages and not; and what merging equal
pages saves.

Run by `python -m benchmarks.profile_records kvm-host`, with Debian's QEMU. Its guests are not started (-S): what counts
is their memory, of which a part is filled with the same random bytes in each. Restores vm.nr_hugepages and ksm/run.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .guest import counters, print_table, require_guest, sysctl

MEMORY_MIB, ALIKE_MIB, GUESTS = 256, 96, 3
KSM = Path("/sys/kernel/mm/ksm")


@contextmanager
def guests(directory: Path, count: int, *, huge: bool) -> Iterator[list[int]]:
    """So many guests; their process numbers, once their memory is there."""
    kind = "memory-backend-memfd,hugetlb=on,hugetlbsize=2M" if huge else "memory-backend-ram"
    memory = f"{kind},id=m,size={MEMORY_MIB}M,prealloc=on,merge=on"
    command = ["qemu-system-x86_64", "-S", "-accel", "tcg", "-machine", "q35,memory-backend=m", "-m", f"{MEMORY_MIB}M"]
    command += ["-object", memory, "-nodefaults", "-display", "none", "-monitor", "none", "-serial", "none"]
    command += ["-device", f"loader,file={directory}/alike,addr=0x1000000,force-raw=on"]
    going = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(count)]
    try:
        time.sleep(30)
        for one in going:
            if one.poll() is not None:
                raise RuntimeError(one.stderr.read() if one.stderr else "")
        yield [one.pid for one in going]
    finally:
        for one in going:
            one.kill()
            one.wait()


def page_tables(directory: Path, huge_pages: int, *, huge: bool) -> tuple[str, int]:
    """kB of page tables of one guest, and huge pages in use; or what QEMU says."""
    with sysctl("vm.nr_hugepages", huge_pages):
        try:
            with guests(directory, 1, huge=huge) as (one,):
                memory = counters("/proc/meminfo")
                used = memory["HugePages_Total"] - memory["HugePages_Free"]
                return f"{counters(f'/proc/{one}/status')['VmPTE']}", used
        except RuntimeError as error:
            return str(error).strip().splitlines()[-1][-100:], 0


def merging(directory: Path) -> list[tuple[str, int, int]]:
    """Pages that are merged and MiB free after each step."""
    before = (KSM / "run").read_text().strip()
    (KSM / "pages_to_scan").write_text("20000")
    rows = []
    try:
        with guests(directory, GUESTS, huge=False):
            for value in ("0", "1", "0"):
                (KSM / "run").write_text(value)
                time.sleep(90 if value == "1" else 5)
                free = counters("/proc/meminfo")["MemAvailable"] // 1024
                rows.append((value, int((KSM / "pages_sharing").read_text()), free))
    finally:
        (KSM / "run").write_text("2")
        (KSM / "run").write_text(before)
        (KSM / "pages_to_scan").write_text("100")
    return rows


def main() -> None:
    """Print two tables."""
    require_guest()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        directory = Path(name)
        (directory / "alike").write_bytes(os.urandom(ALIKE_MIB << 20))
        pages = MEMORY_MIB // 2
        rows = []
        for reserved, huge in ((0, False), (pages, True), (pages, False), (pages - 1, True)):
            rows.append((reserved, "yes" if huge else "no", *page_tables(directory, reserved, huge=huge)))
        print_table(("vm.nr_hugepages", "asked for by the guest", "page tables of QEMU, kB", "huge pages in use"), rows)
        print_table(("ksm/run, in this order", "pages merged", "MiB available"), merging(directory))


if __name__ == "__main__":
    main()
