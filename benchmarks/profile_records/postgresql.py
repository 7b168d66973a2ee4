"""postgresql: page tables of many connections with and without huge pages, what strict accounting does to a backend
that asks for too much, and what transparent huge pages a sort takes.

Run by `python -m benchmarks.profile_records postgresql`, with Debian's PostgreSQL 15. Makes a cluster of its own in a
temporary directory; restores vm.nr_hugepages, vm.overcommit_memory and transparent huge pages.
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

BIN = "/usr/lib/postgresql/15/bin"
USER = "plain"
CONNECTIONS = 20
SHARED_MIB = 256
MAKE = """
create table t (n int, pad text);
alter table t alter pad set storage plain;
insert into t select i, repeat('x', 7900) from generate_series(1, 25000) i;
create index on t (n);
vacuum analyze t;
checkpoint;
"""
GREEDY = """
select count(*) from (
  select repeat(md5(i::text), 32) as r from generate_series(1, 3000000) i offset 0
) a group by r limit 1
"""
SORT = """
select count(*) from (select md5(i::text) as h from generate_series(1, 400000) i order by h offset 0) s
"""
THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def as_user(command: str) -> str:
    """Output of a shell line that the servers' user runs."""
    return shell(f"setpriv --reuid={USER} --regid={USER} --clear-groups env LC_ALL=C.UTF-8 {command}")


def sql(directory: Path, statement: str) -> subprocess.CompletedProcess[str]:
    """One statement by psql."""
    command = ["psql", "-h", str(directory), "-U", USER, "-d", "postgres", "-qAtX"]
    return subprocess.run(
        command, input=statement, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C.UTF-8"}
    )


@contextmanager
def server(directory: Path, **options: str) -> Iterator[int]:
    """The server under these options; the process number of its first process."""
    words = " ".join(f"-c {key}={value}" for key, value in options.items())
    fixed = (
        f"-c listen_addresses= -c unix_socket_directories={directory} -c jit=off -c max_parallel_workers_per_gather=0"
    )
    as_user(f"{BIN}/pg_ctl -w -t 300 -D {directory}/data -l {directory}/log -o '{fixed} {words}' start")
    try:
        yield int((directory / "data" / "postmaster.pid").read_text().split()[0])
    finally:
        as_user(f"{BIN}/pg_ctl -w -t 300 -D {directory}/data -m fast stop")


def children(parent: int) -> list[int]:
    """Processes of a server."""
    return [int(word) for word in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def page_tables(directory: Path, huge: str) -> tuple[int, int, int]:
    """kB of page tables of the backends together and each, and huge pages in use, after each has read all of the shared
    buffers."""
    with server(directory, huge_pages=huge, shared_buffers=f"{SHARED_MIB}MB", max_connections="60") as parent:
        # By the index: a scan of the table would pass through a ring of a few buffers.
        read = "set enable_seqscan = off; set enable_bitmapscan = off; select count(pad) from t where n > 0"
        sql(directory, read)
        before = set(children(parent))
        command = ["psql", "-h", str(directory), "-U", USER, "-d", "postgres", "-qAtX"]
        sessions = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(CONNECTIONS)
        ]
        for session in sessions:
            assert session.stdin is not None
            assert session.stdout is not None
            session.stdin.write(read + ";\n")
            session.stdin.flush()
            session.stdout.readline()
        backends = set(children(parent)) - before
        tables = [counters(f"/proc/{one}/status")["VmPTE"] for one in backends]
        memory = counters("/proc/meminfo")
        used = memory["HugePages_Total"] - memory["HugePages_Free"]
        for session in sessions:
            session.communicate("\\q\n")
    return sum(tables), sum(tables) // max(1, len(tables)), used


def greedy(directory: Path, mode: int) -> tuple[str, str, int, str]:
    """A query that asks for more memory than there is, next to a session that has done nothing: what each gets."""
    killed = counters("/proc/vmstat")["oom_kill"]
    with (
        server(directory, shared_buffers="128MB", work_mem="8GB", hash_mem_multiplier="4"),
        sysctl("vm.overcommit_memory", mode),
    ):
        other = subprocess.Popen(
            ["psql", "-h", str(directory), "-U", USER, "-d", "postgres", "-qAtX"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert other.stdin is not None
        assert other.stdout is not None
        other.stdin.write("begin; select 1;\n")
        other.stdin.flush()
        other.stdout.readline()
        done = sql(directory, GREEDY)
        answer = (done.stderr.strip().splitlines() or [done.stdout.strip() + " rows"])[0]
        time.sleep(10)
        said = other.communicate("select 'still here';\n", timeout=120)[0].strip().splitlines()
        restarts = (directory / "log").read_text().count("all server processes terminated; reinitializing")
    (directory / "log").unlink()
    return answer, said[0] if said else "", counters("/proc/vmstat")["oom_kill"] - killed, str(restarts)


def sort(directory: Path, mode: str) -> tuple[int, int]:
    """Huge pages that the kernel made while a server started and sorted, without being asked, and stalls of
    compaction."""
    before = THP.read_text().split("[")[1].split("]")[0]
    THP.write_text(mode)
    try:
        with server(directory, shared_buffers="128MB", work_mem="512MB"):
            first = counters("/proc/vmstat")
            sql(directory, SORT)
            last = counters("/proc/vmstat")
    finally:
        THP.write_text(before)
    return last["thp_fault_alloc"] - first["thp_fault_alloc"], last["compact_stall"] - first["compact_stall"]


def main() -> None:
    """Print three tables."""
    require_guest()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        directory = Path(name)
        shutil.chown(directory, USER, USER)
        as_user(f"{BIN}/initdb -D {directory}/data --no-sync -E UTF8 --no-locale -U {USER} >/dev/null")
        print_table(
            ("transparent huge pages", "made for a sort", "stalls of compaction"),
            [(mode, *sort(directory, mode)) for mode in ("always", "madvise", "always", "madvise")],
        )
        rows = []
        for mode in (0, 2, 0, 2):
            rows.append((str(mode), *greedy(directory, mode)))
            print(rows[-1], flush=True)
        print_table(("vm.overcommit_memory", "the query gets", "another session", "processes killed", "restarts"), rows)
        with server(directory, shared_buffers=f"{SHARED_MIB}MB", fsync="off"):
            # A row of each page.
            made = sql(directory, MAKE)
            if made.returncode:
                raise RuntimeError(made.stderr)
        options = f"-c shared_buffers={SHARED_MIB}MB -c max_connections=60 -C shared_memory_size_in_huge_pages"
        wanted = int(as_user(f"{BIN}/postgres -D {directory}/data {options}"))
        tables = []
        for pages, huge in ((0, "try"), (wanted, "try"), (wanted - 1, "try"), (0, "try")):
            with sysctl("vm.nr_hugepages", pages):
                tables.append((pages, *page_tables(directory, huge)))
                print(tables[-1], flush=True)
        print_table(
            ("vm.nr_hugepages", f"page tables of {CONNECTIONS} connections, kB", "of each, kB", "huge pages in use"),
            tables,
        )


if __name__ == "__main__":
    main()
