"""What it costs to observe a host each second: CPU time of a sample, at 10, 100 and 1,000 devices.

    python benchmarks/observation.py [DIRECTORY]

The host is a tree of files with what its kernel would print: as many SCSI and NVMe drives as are named, a link for each
three of them, 32 CPUs, 40 services. The files lie in DIRECTORY (memory, /dev/shm, unless one is named), so that the
figures are those of reading and parsing; the kernel's own part, to print the text, is not in them.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from advisor.host import Host, tree_host  # noqa: E402
from advisor.observe.rates import take_sample  # noqa: E402
from advisor.operations.diagnosis import WatchedHost  # noqa: E402
from tests.diagnosis.moments import Disk, Group, Link, Machine, files_at  # noqa: E402
from tests.trees import make_tree  # noqa: E402

SIZES: Final = (10, 24, 100, 1000)
CPUS: Final = 32
SERVICES: Final = 40
SECONDS: Final = 10
LOOK_SECONDS: Final = 2.0
WATCHED_SECONDS: Final = 10.0


def machine_of(devices: int) -> Machine:
    """Two drives of three are SCSI."""
    disks = tuple(
        Disk(f"nvme{at}n1" if at % 3 == 0 else f"sd{_letters(at)}", 100, 50, number=f"8:{at}") for at in range(devices)
    )
    return Machine(
        cpus=CPUS,
        disks=disks,
        links=tuple(Link(f"eth{at}") for at in range(max(1, devices // 3))),
        groups=tuple(Group(f"/system.slice/s{at}.service", read_bytes=1e6, reads=10) for at in range(SERVICES)),
        thermal=0.0,
        edac=0.0,
        nodes=((20_000, 10), (20_000, 10)),
    )


def _letters(number: int) -> str:
    first, rest = number % 26, number // 26
    return (_letters(rest - 1) if rest else "") + chr(97 + first)


def cpu_ms(work: Callable[[], object], rounds: int = 9) -> float:
    """The median CPU time of some rounds, in milliseconds."""
    times = []
    for _ in range(rounds):
        begun = time.process_time()
        work()
        times.append((time.process_time() - begun) * 1000)
    return median(times)


def look_ms(host: Host, whole: float) -> float:
    """The CPU time of a look of ``why --watch``, with what it judges: at one of three it reads everything."""
    watched = WatchedHost(host, WATCHED_SECONDS)
    for _ in range(int(WATCHED_SECONDS / LOOK_SECONDS)):
        watched.advance()
    return cpu_ms(watched.advance) + (whole - cpu_ms(partial(take_sample, host, costly=False))) / 3


def main() -> None:
    print("| devices | links | sample of each second, CPU ms | whole sample, CPU ms | a run of 10 s | --watch |")
    print("|---|---|---|---|---|---|")
    for devices in SIZES:
        with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else "/dev/shm") as place:
            machine = machine_of(devices)
            host = tree_host(str(make_tree(Path(place), files_at(machine, 1000))))
            each, whole = (cpu_ms(partial(take_sample, host, whole=is_whole)) for is_whole in (False, True))
            share = (each * (SECONDS - 1) + whole * 2) / (SECONDS * 1000)
            watch = look_ms(host, whole) / (LOOK_SECONDS * 1000)
            links = len(machine.links)
            print(f"| {devices:,} | {links:,} | {each:.1f} | {whole:.1f} | {share:.1%} | {watch:.1%} |")


if __name__ == "__main__":
    main()
