"""What a large support archive costs to read, beside ``tar -tf`` of it: CPU and wall time, and memory.

    python -m benchmarks.support_archives [gz xz]     needs 3 GiB below $TMPDIR, and some minutes to make the archives

An archive of 2 GiB and 120,000 members, as a sosreport of a busy host is: logs, units, modules and containers, of which
readers want a few thousand files; and a second one of 120,000 small members, whose headers are most of it. Prints a
Markdown table.
"""

from __future__ import annotations

import io
import os
import random
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.commands import Cost, run_interleaved

MEMBERS = 120_000
BYTES = 2 << 30
ROUNDS = int(os.environ.get("ADVISOR_BENCH_ROUNDS", "5"))
TOP = "sosreport-db7-2026-03-04"
OPEN = "import sys; from advisor.snapshot.open import open_host; assert open_host(snapshot=sys.argv[1]).origin"
PACKERS = {"gz": ["gzip", "-6"], "xz": ["xz", "-2", "-T0"], "tar": ["cat"]}
FOLDERS = (
    ("sos_commands/logs/journal_{0}", 60),
    ("var/log/pods/{0}/app.log", 60),
    ("sys/module/m{0}/parameters/p", 40),
    ("sys/fs/cgroup/system.slice/u{0}.service/x/memory.stat", 40),
    ("proc/{0}/status", 4),
    ("etc/app.d/{0}.conf", 2),
)


def make_names(chance: random.Random) -> Iterator[str]:
    yield "sos_commands/date/date"
    places, weights = zip(*FOLDERS, strict=True)
    for number, place in enumerate(chance.choices(places, weights, k=MEMBERS - 1)):
        yield place.format(number)


def write_archive(path: Path, packer: list[str], size: int) -> None:
    """A tar of ``size`` bytes in `MEMBERS` files, a few large and most of them small, as logs are."""
    chance = random.Random(1)
    words = [f"{chance.getrandbits(32):x}" for _ in range(120)]
    lines = [
        f" db7 app[{chance.randrange(9999)}]: request {' '.join(chance.choices(words, k=6))} done\n".encode()
        for _ in range(100_000)
    ]
    with path.open("wb") as file, subprocess.Popen(packer, stdin=subprocess.PIPE, stdout=file) as process:
        assert process.stdin
        with tarfile.open(fileobj=process.stdin, mode="w|", format=tarfile.GNU_FORMAT) as archive:
            for name in make_names(chance):
                share = min(chance.expovariate(MEMBERS / size), 30 << 20) if size > MEMBERS * 1024 else 100
                count = max(1, int(share / 110))
                data = b"".join(
                    b"Mar  4 11:%02d:%06.3f" % (number % 60, chance.random() * 60) + line
                    for number, line in enumerate(chance.choices(lines, k=count))
                )
                member = tarfile.TarInfo(f"{TOP}/{name}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))


def show(costs: list[Cost]) -> str:
    wall, cpu, peak = (statistics.median(values) for values in zip(*costs, strict=True))
    return f"{wall / 1000:.2f} s / {cpu / 1000:.2f} s / {peak:.0f} MiB"


def main() -> None:
    print("| archive | `tar -tf`: wall / CPU / memory | read as a host | ratio of wall, CPU |\n|---|---|---|---|")
    for size, what in ((BYTES, "2 GiB"), (0, "small members")):
        for form in sys.argv[1:] or ("gz", "xz"):
            with tempfile.TemporaryDirectory() as directory:
                path = Path(directory) / f"sosreport.tar.{form}"
                write_archive(path, PACKERS[form], size)
                commands = {"tar": ["tar", "-tf", str(path)], "ours": [sys.executable, "-c", OPEN, str(path)]}
                costs = run_interleaved(commands, ROUNDS)
                packed = path.stat().st_size >> 20
            ratios = [
                statistics.median(getattr(cost, field) for cost in costs["ours"])
                / statistics.median(getattr(cost, field) for cost in costs["tar"])
                for field in ("wall_ms", "cpu_ms")
            ]
            row = (f"{what}, {form} ({packed} MiB)", show(costs["tar"]), show(costs["ours"]))
            print(f"| {' | '.join(row)} | {ratios[0]:.2f}, {ratios[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
