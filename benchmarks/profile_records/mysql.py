"""mysql: what is swapped out of MariaDB's buffer pool while a file is read, by vm.swappiness, and huge pages in use.

Run by `python -m benchmarks.profile_records mysql`, with Debian's MariaDB 10.11. Its data are in a temporary directory;
restores vm.swappiness and vm.nr_hugepages and removes the swap file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .guest import counters, print_table, require_guest, shell, sysctl

USER = "plain"
POOL_MIB = 512
ROWS = 420000
"""Of a kB each: four fifths of the pool."""
CREATE = "create database if not exists test; create table test.t (n int primary key, pad varchar(1000)) engine=innodb"
SOME_ROWS = 120000
FILE_MIB, READS = 1300, 3


@contextmanager
def server(directory: Path, *options: str) -> Iterator[int]:
    """The server; its process number."""
    command = [
        "mariadbd",
        "--no-defaults",
        f"--datadir={directory}/data",
        f"--socket={directory}/socket",
        f"--user={USER}",
    ]
    command += ["--skip-networking", "--skip-grant-tables", f"--innodb-buffer-pool-size={POOL_MIB}M", "--skip-log-bin"]
    command += [
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-log-file-size=256M",
        "--lc-messages-dir=/usr/share/mysql",
    ]
    command += [
        f"--pid-file={directory}/pid",
        "--innodb-buffer-pool-load-at-startup=0",
        "--innodb-buffer-pool-dump-at-shutdown=0",
    ]
    with (directory / "log").open("ab") as log:
        process = subprocess.Popen([*command, *options], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 300
        while not (directory / "socket").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((directory / "log").read_text()[-2000:])
            time.sleep(0.5)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def sql(directory: Path, statement: str) -> str:
    """One statement."""
    return shell(f"mariadb --no-defaults -S {directory}/socket -N -e '{statement}'", timeout=1200)


def scan(directory: Path) -> str:
    """Read all of the table, which is in the buffer pool."""
    return sql(directory, "select sum(length(pad)) from test.t")


def major_faults(process: int) -> int:
    """Of a process so far."""
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[9])


def measure(directory: Path, swappiness: int) -> tuple[int, int, int]:
    """MiB of the server resident and in swap after the reads, major faults of a scan."""
    with sysctl("vm.swappiness", swappiness), server(directory) as process:
        scan(directory)
        scan(directory)
        for _ in range(READS):
            with (directory / "file").open("rb", buffering=0) as file:
                while file.read(1 << 20):
                    pass
        status = counters(f"/proc/{process}/status")
        faults = major_faults(process)
        scan(directory)
        return status["VmRSS"] // 1024, status["VmSwap"] // 1024, major_faults(process) - faults


def large_pages(directory: Path, pages: int, option: str) -> tuple[int, int, str]:
    """Huge pages in use when some of the buffer pool is filled, MiB of them that nobody uses, and what became of the
    server."""
    (directory / "log").write_text("")
    outcome = "runs"
    with sysctl("vm.nr_hugepages", pages), server(directory, *option.split()) as process:
        try:
            sql(directory, "drop table if exists test.f")
            sql(directory, CREATE.replace("test.t", "test.f"))
            sql(directory, f'use test; insert into f select seq, repeat("x", 960) from seq_1_to_{SOME_ROWS}')
        except RuntimeError as error:
            ended = [line for line in (directory / "log").read_text().splitlines() if "got signal" in line]
            outcome = (ended or [str(error).splitlines()[-1]])[0]
        memory = counters("/proc/meminfo")
        if Path(f"/proc/{process}/status").exists() and "runs" in outcome:
            outcome = f"runs, {counters(f'/proc/{process}/status')['VmRSS'] // 1024} MiB in ordinary pages"
        used = memory["HugePages_Total"] - memory["HugePages_Free"]
        idle = memory["HugePages_Free"] * memory["Hugepagesize"] // 1024
    return used, idle, outcome


def main() -> None:
    """Print two tables, the second with a row for each run in the order of the runs."""
    require_guest()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        directory = Path(name)
        shutil.chown(directory, USER, USER)
        shell(f"mariadb-install-db --no-defaults --user={USER} --datadir={directory}/data")
        enough = POOL_MIB // 2 + 40
        bounded = f"--large-pages --innodb-buffer-pool-size-max={POOL_MIB}M"
        cases = ((enough, bounded), (enough // 2, bounded), (enough, "--large-pages"), (enough, "--skip-large-pages"))
        rows: list[tuple[object, ...]] = []
        for pages, option in cases:
            rows.append((pages, option.replace("--", ""), *large_pages(directory, pages, option)))
            print(rows[-1], flush=True)
        print_table(("vm.nr_hugepages", "my.cnf", "huge pages in use", "MiB of others unused", "the server"), rows)
        shell("fallocate -l 2G /swap && chmod 600 /swap && mkswap /swap && swapon /swap")
        try:
            with server(directory):
                sql(directory, CREATE)
                sql(directory, f'use test; insert into t select seq, repeat("x", 960) from seq_1_to_{ROWS}')
            shell(f"dd if=/dev/zero of={directory}/file bs=1M count={FILE_MIB}; sync")
            rows = []
            for swappiness in (60, 1, 60, 1):
                shell("echo 3 >/proc/sys/vm/drop_caches")
                rows.append((str(swappiness), *measure(directory, swappiness)))
                print(rows[-1], flush=True)
            print_table(("vm.swappiness", "resident, MiB", "in swap, MiB", "pages read from swap by a scan"), rows)
        finally:
            shell("swapoff -a; rm -f /swap")
            os.sync()


if __name__ == "__main__":
    main()
