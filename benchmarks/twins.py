"""Random fio jobs observed and recovered: how near the twin comes, against how near the job comes to itself.

    sudo python -m benchmarks.twins --jobs 30 --directory /var/tmp

Each job runs on a file in an ext4 file system on a loop device of its own, is observed, and its twin runs on the same
file system. The job runs a second time as the control: what differs between two runs of one job is the machine's, and
no twin can be nearer. Nothing outside the directory is touched; the mount is private to the process. ``--applications``
observes SQLite, PostgreSQL (pgbench) and RocksDB (db_bench) in place of the jobs, where they are installed.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import functools
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from advisor.errors import AdvisorError
from advisor.host import live_host
from advisor.operations.observation import judge_twin
from advisor.proof.observing import observe_workload
from advisor.proof.twin_check import TwinComparison, compare_loads
from advisor.proof.workload_file import WorkloadFile

IMAGE_BYTES: Final = 8 << 30
DATA_BYTES: Final = 256 << 20
_PRIVATE, _RECURSIVE, _NEW_MOUNTS = 1 << 18, 1 << 14, 0x00020000
SIZES: Final = (4, 8, 16, 32, 64, 128)


class Trial(msgspec.Struct, frozen=True):
    """One job: what it was, whether a twin was made, and how both it and the job itself came out."""

    job: str
    outcome: str
    worst: str = ""
    sizes: float | None = None
    reads: float | None = None
    order: float | None = None
    rate: float | None = None
    p99: float | None = None
    control_rate: float | None = None
    control_p99: float | None = None
    control_faithful: bool | None = None


@contextlib.contextmanager
def mounted_image(directory: Path) -> Iterator[tuple[Path, str]]:
    """An ext4 file system in a file, mounted for this process alone: the mount point and the loop device's name."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(_NEW_MOUNTS) or library.mount(b"none", b"/", None, _PRIVATE | _RECURSIVE, None):
        raise SystemExit("a mount namespace needs root")
    with tempfile.TemporaryDirectory(dir=directory) as place:
        image, point = Path(place, "image"), Path(place, "mnt")
        point.mkdir()
        # PostgreSQL runs as a user of its own.
        Path(place).chmod(0o711)
        with image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        call = ["losetup", "--find", "--show", "--direct-io=on", str(image)]
        device = subprocess.run(call, check=True, capture_output=True, text=True).stdout.strip()
        os.environ["ADVISOR_STATE_DIR"] = place
        try:
            # All is written at once: a lazy initialisation would be another load.
            options = ("-E", "lazy_itable_init=0,lazy_journal_init=0")
            subprocess.run(["mkfs.ext4", "-q", *options, device], check=True)
            subprocess.run(["mount", "-o", "noatime", device, str(point)], check=True)
            try:
                yield point, device.rpartition("/")[2]
            finally:
                subprocess.run(["umount", str(point)], check=True)
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)


def random_job(chance: random.Random) -> list[str]:
    """Options of a job as an application may have it."""
    kind = chance.choice(("randread", "randwrite", "randrw", "read", "write", "rw", "randrw", "randread"))
    options = [f"--rw={kind}"]
    if chance.random() < 0.4:
        sizes = sorted(chance.sample(SIZES, 2))
        share = chance.randrange(20, 81)
        options.append(f"--bssplit={sizes[0]}k/{share}:{sizes[1]}k/{100 - share}")
    else:
        options.append(f"--bs={chance.choice(SIZES)}k")
    if "rw" in kind[-2:]:
        options.append(f"--rwmixread={chance.randrange(10, 91)}")
    if kind.startswith("rand") and chance.random() < 0.4:
        options.append(f"--percentage_random={chance.randrange(20, 100)}")
    if kind != "read" and kind != "randread" and chance.random() < 0.3:
        options.append(f"--fdatasync={chance.choice((1, 2, 8, 32))}")
    depth = chance.choice((1, 1, 2, 4, 8, 16, 32))
    arrival = chance.choice(("closed", "closed", "closed", "steady", "poisson", "think", "bursts"))
    if arrival in ("steady", "poisson"):
        rate = chance.choice((500, 1000, 2000))
        options.append(f"--rate_iops={rate}" if "rw" not in kind[-2:] else f"--rate_iops={rate // 2},{rate // 2}")
        options.append(f"--rate_process={'poisson' if arrival == 'poisson' else 'linear'}")
        depth = max(depth, 8)
    elif arrival == "think":
        options.append(f"--thinktime={chance.choice((300, 1000))}")
        depth = 1
    elif arrival == "bursts":
        options += [f"--thinktime={chance.choice((10_000, 30_000))}", f"--thinktime_blocks={chance.choice((32, 100))}"]
    return [*options, f"--iodepth={depth}", f"--ioengine={'libaio' if depth > 1 else 'psync'}"]


@contextlib.contextmanager
def running_job(options: list[str], data: Path, seconds: float) -> Iterator[None]:
    """fio with the job, until the block ends."""
    call = ["fio", "--name=job", f"--filename={data}", f"--size={DATA_BYTES}", "--direct=1", "--norandommap"]
    call += ["--randrepeat=0", "--time_based", f"--runtime={seconds:.0f}", "--thread", *options]
    with subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            time.sleep(1)
            yield
        finally:
            process.terminate()
            process.communicate()


SQLITE: Final = """
import random, sqlite3, sys
base = sqlite3.connect(sys.argv[1], isolation_level=None)
for pragma in ("journal_mode=" + sys.argv[2], "synchronous=full", "cache_size=-2000"):
    base.execute("pragma " + pragma)
base.execute("create table if not exists t (id integer primary key, v blob)")
if not base.execute("select count(*) from t").fetchone()[0]:
    base.execute("begin")
    base.executemany("insert into t values (?, ?)", ((n, random.randbytes(900)) for n in range(60000)))
    base.execute("commit")
print("ready", flush=True)
while True:
    base.execute("begin")
    for _ in range(3):
        base.execute("update t set v = ? where id = ?", (random.randbytes(900), random.randrange(60000)))
        base.execute("select v from t where id = ?", (random.randrange(60000),)).fetchone()
    base.execute("commit")
"""
_SETTLE_SECONDS: Final = 4.0


@contextlib.contextmanager
def running_sqlite(journal: str, point: Path) -> Iterator[None]:
    """Small durable transactions on a table larger than the database's cache."""
    call = [sys.executable, "-c", SQLITE, str(point / f"base-{journal}"), journal]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise SystemExit("SQLite did not start")
            time.sleep(_SETTLE_SECONDS)
            yield
        finally:
            process.terminate()


@contextlib.contextmanager
def running_postgresql(clients: int, point: Path) -> Iterator[None]:
    """pgbench on a private cluster, its own transactions (TPC-B like)."""
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)
    if programs is None:
        raise FileNotFoundError("postgresql")
    place = point / "cluster"
    socket = ["-h", str(place), "-U", "postgres"]
    as_user = ["runuser", "-u", "postgres", "--"]
    options = f"-c listen_addresses= -c unix_socket_directories={place} -c shared_buffers=64MB"
    is_new = not place.exists()
    if is_new:
        place.mkdir(mode=0o700)
        shutil.chown(place, "postgres", "postgres")
        _run_quietly([*as_user, str(programs / "initdb"), "-D", str(place), "-A", "trust"])
    control = [*as_user, str(programs / "pg_ctl"), "-D", str(place), "-w", "-l", str(place / "log")]
    _run_quietly([*control, "-o", options, "start"])
    try:
        if is_new:
            _run_quietly([*as_user, "pgbench", "-i", "-q", "-s", "20", *socket, "postgres"])
        call = [*as_user, "pgbench", "-c", str(clients), "-T", "600", "-n", *socket, "postgres"]
        with _running(call):
            yield
    finally:
        _run_quietly([*control, "-m", "immediate", "stop"])


@contextlib.contextmanager
def running_rocksdb(benchmark: str, point: Path) -> Iterator[None]:
    """db_bench with direct I/O on 600,000 values of 800 bytes."""
    options = ["--num=600000", "--value_size=800", "--compression_type=none", "--cache_size=8388608"]
    options += ["--use_direct_reads=true", "--use_direct_io_for_flush_and_compaction=true", "--duration=600"]
    place = point / "rocks"
    if not place.exists():
        _run_quietly(["db_bench", "--benchmarks=fillrandom,compact", f"--db={place}", *options, "--duration=0"])
    threads = ["--threads=4"] if benchmark == "readrandom" else ["--threads=2", "--sync=true"]
    with _running(["db_bench", f"--benchmarks={benchmark}", f"--db={place}", "--use_existing_db", *options, *threads]):
        yield


@contextlib.contextmanager
def _running(call: list[str]) -> Iterator[None]:
    with subprocess.Popen(
        call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            time.sleep(_SETTLE_SECONDS)
            if process.poll() is not None:
                raise SystemExit(f"{call[0]} ended early")
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def _run_quietly(call: list[str]) -> None:
    subprocess.run(call, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


Application = Callable[[Path], contextlib.AbstractContextManager[None]]
APPLICATIONS: Final[Mapping[str, Application]] = {
    "SQLite, write-ahead log": functools.partial(running_sqlite, "wal"),
    "SQLite, rollback journal": functools.partial(running_sqlite, "delete"),
    "PostgreSQL, pgbench, 1 client": functools.partial(running_postgresql, 1),
    "PostgreSQL, pgbench, 8 clients": functools.partial(running_postgresql, 8),
    "RocksDB, readrandom": functools.partial(running_rocksdb, "readrandom"),
    "RocksDB, durable overwrite": functools.partial(running_rocksdb, "overwrite"),
}


def try_load(
    name: str, running: Callable[[], contextlib.AbstractContextManager[None]], point: Path, device: str, seconds: float
) -> Trial:
    """Observe a load, run its twin, and observe the load once more."""
    host = live_host()
    try:
        with running():
            found = observe_workload(host, seconds, device=device)
    except AdvisorError as error:
        return Trial(name, f"refused: {error.message}")
    try:
        judged = judge_twin(found, point, seconds=seconds)
    except AdvisorError as error:
        return Trial(name, f"not judged: {error.message}")
    # After the twin: what changes on the machine meanwhile is in both.
    control = observe_again(running, found, device, seconds)
    return describe_trial(name, judged.comparison, control)


def observe_again(
    running: Callable[[], contextlib.AbstractContextManager[None]], found: WorkloadFile, device: str, seconds: float
) -> TwinComparison | None:
    """The load compared with itself."""
    try:
        with running():
            again = observe_workload(live_host(), seconds, device=device)
    except AdvisorError:
        return None
    first, second = (None if one.observed is None else one.observed.figures for one in (found, again))
    return None if first is None or second is None else compare_loads(first, second)


def describe_trial(name: str, twin: TwinComparison | None, control: TwinComparison | None) -> Trial:
    if twin is None:
        return Trial(name, "not judged")
    rows = {row.name: row.difference for row in twin.rows}
    same = {} if control is None else {row.name: row.difference for row in control.rows}
    return Trial(
        name,
        "faithful" if twin.is_faithful else "beyond a bound",
        "" if twin.is_faithful else ", ".join(row.name for row in twin.rows if not row.is_within),
        rows["sizes by direction"],
        rows["reads"],
        max((rows[key] for key in rows if key.endswith("in order")), default=0.0),
        rows["requests/s"],
        rows["latency, p99"],
        same.get("requests/s"),
        same.get("latency, p99"),
        None if control is None else control.is_faithful,
    )


def print_table(trials: list[Trial]) -> None:
    print("| job | outcome | sizes | reads | order | requests/s | p99 | itself: requests/s | p99 |")
    print("|---|---|---|---|---|---|---|---|---|")
    for one in trials:
        words = one.outcome if not one.worst else f"{one.outcome}: {one.worst}"
        cells: list[str] = []
        for value in (one.sizes, one.reads, one.order):
            cells.append("" if value is None else f"{value:.3f}")
        for value in (one.rate, one.p99, one.control_rate, one.control_p99):
            cells.append("" if value is None else f"{value:.0%}")
        print(f"| `{one.job}` | {words} | {' | '.join(cells)} |")
    made = [one for one in trials if one.sizes is not None]
    shapes = [one for one in made if (one.sizes or 0) <= 0.05 and (one.reads or 0) <= 0.02 and (one.order or 0) <= 0.05]
    steady = [one for one in made if one.control_faithful]
    load = os.getloadavg()[0]
    print(f"\n{os.cpu_count()} CPUs, load average {load:.1f} from everything on the machine.")
    print(f"{len(trials)} loads: {len(trials) - len(made)} refused, {len(made)} twins.")
    print(f"Sizes, mix and order within their bounds: {len(shapes)} of {len(made)}.")
    print(f"All figures within their bounds: {sum(one.outcome == 'faithful' for one in made)} of {len(made)}.")
    for label, twin, control in (
        ("requests/s", [one.rate for one in made], [one.control_rate for one in made]),
        ("p99", [one.p99 for one in made], [one.control_p99 for one in made]),
    ):
        known = [value for value in control if value is not None]
        both = [value for value in twin if value is not None]
        if known and both:
            print(
                f"Median difference of {label}: the twin {statistics.median(both):.0%},"
                f" the load from itself {statistics.median(known):.0%} ({len(known)} runs)."
            )
    print(
        f"Of the {len(steady)} loads that were within the bounds of themselves when they ran twice:"
        f" {sum(one.outcome == 'faithful' for one in steady)}."
    )


def main() -> None:
    """Run the trials and print the table; ``--json FILE`` keeps the figures."""
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("--jobs", type=int, default=20)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--seconds", type=float, default=5.0)
    asked.add_argument("--directory", type=Path, default=Path("/var/tmp"))
    asked.add_argument(
        "--applications", nargs="?", const="", metavar="WORD", help="in place of fio: all, or those with WORD"
    )
    asked.add_argument("--json", type=Path)
    given = asked.parse_args()
    if os.geteuid() or shutil.which("fio") is None:
        raise SystemExit("needs root and fio")
    trials: list[Trial] = []
    with mounted_image(given.directory) as (point, device):
        data = point / "data"
        if given.applications is not None:
            for name, running in APPLICATIONS.items():
                if given.applications.lower() in name.lower():
                    trials.append(try_load(name, functools.partial(running, point), point, device, given.seconds))
                    print(trials[-1].outcome, trials[-1].worst, name, file=sys.stderr)
        else:
            chance = random.Random(given.seed)
            fill = ["fio", "--name=fill", f"--filename={data}", f"--size={DATA_BYTES}", "--rw=write", "--bs=1m"]
            subprocess.run(fill, check=True, capture_output=True)
            for _ in range(given.jobs):
                options = random_job(chance)
                name = " ".join(options).replace("--", "")
                running = functools.partial(running_job, options, data, 3 * given.seconds + 5)
                trials.append(try_load(name, running, point, device, given.seconds))
                print(trials[-1].outcome, trials[-1].worst, name, file=sys.stderr)
    print_table(trials)
    if given.json is not None:
        given.json.write_bytes(msgspec.json.encode(trials))


if __name__ == "__main__":
    main()
