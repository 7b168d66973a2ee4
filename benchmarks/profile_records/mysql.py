"""mysql: whether MariaDB's buffer pool lies in huge pages, by their number.

Run by `python -m benchmarks.profile_records mysql`, with Debian's MariaDB 10.11. Its data are in a temporary directory;
restores vm.nr_hugepages.
"""

from __future__ import annotations

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
CREATE = "create database if not exists test; create table test.f (n int primary key, pad varchar(1000)) engine=innodb"
ROWS = 120000
"""Of a kB each."""


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


def large_pages(directory: Path, pages: int, option: str) -> tuple[int, int, str]:
    """Huge pages in use when some of the buffer pool is filled, MiB of them that nobody uses, and what became of the
    server."""
    (directory / "log").write_text("")
    outcome = "runs"
    with sysctl("vm.nr_hugepages", pages), server(directory, option) as process:
        try:
            sql(directory, "drop table if exists test.f")
            sql(directory, CREATE)
            sql(directory, f'use test; insert into f select seq, repeat("x", 960) from seq_1_to_{ROWS}')
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
    """Print a table."""
    require_guest()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        directory = Path(name)
        shutil.chown(directory, USER, USER)
        shell(f"mariadb-install-db --no-defaults --user={USER} --datadir={directory}/data")
        pool = POOL_MIB // 2
        cases = ((pool + 160, "--large-pages"), (pool + 40, "--large-pages"), (pool + 40, "--skip-large-pages"))
        rows: list[tuple[object, ...]] = []
        for pages, option in cases:
            rows.append((pages, option.replace("--", ""), *large_pages(directory, pages, option)))
            print(rows[-1], flush=True)
        print_table(("vm.nr_hugepages", "my.cnf", "huge pages in use", "MiB of others unused", "the server"), rows)


if __name__ == "__main__":
    main()
