"""One fio micro-run: the command line, the process and how it is stopped, and the accepted figures.

Source: fio(1) and fio 3.33's own behaviour. What a run must survive: text before the JSON, exit status 0 with an
error inside, no I/O at all, whole JSON after SIGINT, workers that outlive a kill (hence ``--thread``: one process,
one session of its own, so that one signal reaches everything).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Protocol, runtime_checkable

import msgspec

from advisor.host.numbers import is_count
from advisor.observe.load import DIRECTIONS
from advisor.proof.metrics import RunFigures
from advisor.proof.process import EndedProcess as EndedProcess
from advisor.proof.process import FioError as FioError
from advisor.proof.process import FioMissingError as FioMissingError
from advisor.proof.process import FioProcess as FioProcess
from advisor.proof.process import FioRunner as FioRunner
from advisor.proof.process import Stop
from advisor.proof.scratch import FILE_NAME, Area
from advisor.proof.workloads import JobSection, Pattern

GRACE_SECONDS = 10.0
"""What fio may take beyond the run itself before it is killed."""
SECONDS_PER_THREAD = 0.05
"""What starting and ending one more thread may take on a slow machine."""
MINIMUM_RUNTIME_SHARE = 0.9
MINIMUM_BYTES_SHARE = 0.9
NULL_BYTES = 1 << 30


_NOWHERE: Mapping[str, Area] = {}


@runtime_checkable
class RunsCommand(Protocol):
    """A runner of a command of the user's own."""

    def try_out(self, stop: Stop) -> float:
        """One run that does not count: its seconds."""

    def run_command(self, stop: Stop) -> tuple[RunFigures, str]:
        """One run: the figures, and what it printed as JSON text. Raises CommandError, StoppedError."""


class FioJob(msgspec.Struct, frozen=True):
    """One micro-run: a workload for ``seconds`` on ``size_bytes`` of scratch. ``write_limit_bytes`` bounds what a
    writing run may write; such a run ends at the time or at the bytes, whichever comes first. ``options`` are added to
    every section (where fio itself is placed, for instance). With ``is_read_only`` fio refuses to write whatever the
    rest says."""

    workload: Pattern
    seconds: float
    size_bytes: int
    write_limit_bytes: int
    options: tuple[str, ...] = ()
    file_name: str = FILE_NAME
    is_read_only: bool = False
    file_names: Mapping[str, str] = {}
    """The file of a section, by its name, where it works elsewhere than the others."""

    @property
    def limited_bytes(self) -> int:
        """Bytes, read and written, after which the bounded sections end by themselves."""
        bounded = [section for section in self.workload.sections if section.write_share > 0]
        return sum(self.section_limit(section) * section.jobs for section in bounded)

    def section_limit(self, section: JobSection) -> int:
        """fio's ``io_size`` for each job of a writing section: reads and writes together, whole blocks."""
        writers = sum(other.jobs for other in self.workload.sections if other.write_share > 0)
        share = self.write_limit_bytes / writers / section.write_share
        return max(1, int(share) // section.largest_bytes) * section.largest_bytes


def fio_command(job: FioJob) -> list[str]:
    """The argument vector of a run. The scratch file is named relatively: fio starts in its directory."""
    argv = ["fio", "--output-format=json+", "--eta=never", *(["--readonly"] if job.is_read_only else [])]
    for section in job.workload.sections:
        argv += _section_options(job, section)
    return argv


def _section_options(job: FioJob, section: JobSection) -> Iterable[str]:
    yield f"--name={section.name}"
    # fio takes options before a --name as another job's: each section carries all of its own
    yield from ("--thread", "--group_reporting", "--norandommap", "--randrepeat=0", "--allow_file_create=0")
    yield f"--ioengine={section.engine}"
    yield f"--rw={section.pattern}"
    yield from _size_options(section)
    yield f"--iodepth={section.depth}"
    yield f"--numjobs={section.jobs}"
    if section.pattern in ("rw", "randrw"):
        yield f"--rwmixread={section.read_percent}"
    if section.random_percents:
        yield f"--percentage_random={','.join(map(str, section.random_percents))}"
    elif section.random_percent is not None:
        yield f"--percentage_random={section.random_percent}"
    if section.zones:
        yield f"--random_distribution=zoned:{_zone_list(section.zones)}"
    if section.end_fsync:
        yield "--end_fsync=1"
    if section.flush_every:
        yield f"--fdatasync={section.flush_every}"
    if section.durable:
        yield "--sync=dsync"
    yield from _arrival_options(section)
    yield from _place_options(job, section)
    yield from job.options
    yield f"--runtime={round(job.seconds * 1000)}ms"
    yield "--time_based" if section.write_share == 0 else f"--io_size={job.section_limit(section)}"


def _size_options(section: JobSection) -> Iterable[str]:
    if not section.sizes:
        yield f"--bs={section.block_bytes}"
        return
    splits = (":".join(f"{size}/{part}" for size, part in section.sizes.get(one, {}).items()) for one in DIRECTIONS)
    # A direction that is left out takes what the one before it has; it has no requests.
    read, write = splits
    yield f"--bssplit={read or write},{write or read}"
    sizes = [[*map(int, found)] for found in section.sizes.values()]
    if any(size % min(found) for found in sizes for size in found):
        # Else each is cut to a multiple of the smallest, 12 KiB to 8 where there are 8.
        yield "--bs_unaligned"


def _zone_list(zones: Sequence[int]) -> str:
    """fio's shares of accesses over shares of the region: whole percents of both, that add up to 100."""
    ends = [100 * number // len(zones) for number in range(len(zones) + 1)]
    return ":".join(f"{part}/{after - before}" for part, before, after in zip(zones, ends, ends[1:], strict=False))


def _arrival_options(section: JobSection) -> Iterable[str]:
    arrival = section.arrival
    if arrival.kind in ("steady", "poisson"):
        read = section.read_percent / 100 if section.pattern in ("rw", "randrw") else 1.0
        rates = [max(1, round(arrival.rate * share)) for share in (read, 1 - read)]
        # A mix has a rate for each direction; else the one rate is that of the only direction.
        yield f"--rate_iops={rates[0]},{rates[1]}" if read < 1 else f"--rate_iops={rates[0]},{rates[0]}"
        yield f"--rate_process={'poisson' if arrival.kind == 'poisson' else 'linear'}"
    elif arrival.kind in ("think", "bursts"):
        yield from (f"--thinktime={arrival.think_us}", f"--thinktime_blocks={arrival.think_blocks}")


def _place_options(job: FioJob, section: JobSection) -> Iterable[str]:
    if section.engine == "null":
        yield f"--size={NULL_BYTES}"
        return
    start, length = (_whole_blocks(job.size_bytes * percent // 100, section) for percent in section.region)
    name = job.file_names.get(section.name, job.file_name)
    yield from (f"--filename={name}", f"--direct={int(not section.buffered)}", "--fallocate=none")
    # A block of one size may begin where a smaller one still fits: none is to reach beyond the end of the file.
    spare = section.largest_bytes if len({size for found in section.sizes.values() for size in found}) > 1 else 0
    if section.own_regions:
        own = _whole_blocks(length // section.jobs, section)
        yield from (f"--offset={start}", f"--size={own - spare}", f"--offset_increment={own}")
    else:
        yield from (f"--offset={start}", f"--size={length - spare}")


def _whole_blocks(size_bytes: int, section: JobSection) -> int:
    return size_bytes // section.largest_bytes * section.largest_bytes


def run_fio(
    runner: FioRunner, job: FioJob, scratch: Area | None, stop: Stop, places: Mapping[str, Area] = _NOWHERE
) -> tuple[RunFigures, str]:
    """One run, after the check that the scratch file (or the disk) is still ours: the figures and fio's own JSON text.
    ``places`` are the scratch files of sections that work elsewhere, by the section's name.

    Raises FioError for a run that does not count, ScratchChangedError, FioMissingError and StoppedError.
    """
    if isinstance(runner, RunsCommand) and not job.workload.sections:
        return runner.run_command(stop)
    timeout = job.seconds + GRACE_SECONDS + SECONDS_PER_THREAD * sum(one.jobs for one in job.workload.sections)
    if scratch is None:
        done = runner.run(fio_command(job), timeout=timeout, cwd="/", stop=stop)
    else:
        with ExitStack() as stack:
            # the descriptor, not the path: whatever happens to the path meanwhile, fio works in our directory
            cwd = f"/proc/self/fd/{stack.enter_context(scratch.opened())}"
            opened = {name: stack.enter_context(area.opened()) for name, area in places.items()}
            names = {name: f"/proc/self/fd/{number}/{places[name].file_name}" for name, number in opened.items()}
            placed = msgspec.structs.replace(job, file_names=names)
            done = runner.run(
                fio_command(placed), timeout=timeout, cwd=cwd, stop=stop, keep_open=tuple(opened.values())
            )
    return read_figures(job, done), json_text(done.stdout)


def read_version(runner: FioRunner, stop: Stop) -> str:
    """What ``fio --version`` prints. Raises FioMissingError."""
    done = runner.run(["fio", "--version"], timeout=GRACE_SECONDS, cwd="/", stop=stop)
    if done.timed_out or done.returncode != 0:
        raise FioMissingError(f"fio --version failed: {_last_line(done)}", hint="install the package fio again")
    return done.stdout.strip()


class _Latency(msgspec.Struct, frozen=True):
    mean: float = 0.0
    N: int = 0
    bins: dict[str, int] = {}


class _Direction(msgspec.Struct, frozen=True):
    io_bytes: int
    bw_bytes: float
    iops: float
    runtime: float
    total_ios: int
    short_ios: int = 0
    drop_ios: int = 0
    clat_ns: _Latency = _Latency()


class _Syncs(msgspec.Struct, frozen=True):
    total_ios: int = 0


class _JobReport(msgspec.Struct, frozen=True):
    jobname: str
    error: int
    read: _Direction
    write: _Direction
    usr_cpu: float = 0.0
    sys_cpu: float = 0.0
    job_runtime: float = 0.0
    sync: _Syncs = _Syncs()


class _Report(msgspec.Struct, frozen=True):
    jobs: list[_JobReport]


def json_text(stdout: str) -> str:
    """fio's output from the first line that begins with a brace. Raises FioError where there is none."""
    position = 0
    for line in stdout.splitlines(keepends=True):
        if line.startswith("{"):
            return stdout[position:]
        position += len(line)
    raise FioError("fio printed no JSON")


def parse_report(stdout: str) -> _Report:
    """fio's JSON, typed. Raises FioError where it is missing, cut off or not of the known form."""
    try:
        # raw_decode: text may follow the document as it may precede it
        document, _ = json.JSONDecoder().raw_decode(json_text(stdout))
        return msgspec.convert(document, _Report)
    except (ValueError, msgspec.ValidationError, RecursionError) as error:
        raise FioError(f"fio's JSON cannot be read: {error}") from error


def _flush_spread(jobs: Sequence[_JobReport], flush_every: int) -> float:
    """Three standard deviations of the flushes of a mix: of the reads between two writes, a geometric distribution."""
    reads, writes = (sum(getattr(entry, name).total_ios for entry in jobs) for name in ("read", "write"))
    mean = reads / writes if writes else 0.0
    return 3 * math.sqrt(writes / flush_every * mean * (1 + mean))


def read_figures(job: FioJob, done: EndedProcess) -> RunFigures:
    """The figures of a run that may be counted. Raises FioError that says why it may not."""
    if done.timed_out:
        raise FioError(f"fio did not end within {job.seconds + GRACE_SECONDS:g} s and was killed")
    report = accepted_report(done)
    directions = [direction for entry in report.jobs for direction in (entry.read, entry.write)]
    ios = sum(direction.total_ios for direction in directions)
    total_bytes = sum(direction.io_bytes for direction in directions)
    runtime = max((direction.runtime for direction in directions), default=0.0) / 1000
    if ios <= 0:
        raise FioError("fio ended well but did no I/O")
    short_reads = sum(entry.read.short_ios for entry in report.jobs)
    spoiled = sum(direction.short_ios + direction.drop_ios for direction in directions) - short_reads
    # fio 3.33 counts each flush as a short read, and not all of them as a flush. While the number of writes is a
    # multiple of flush_every it flushes before each request: in a mix before the reads that follow as well, whose
    # number is by chance. Where nothing was read, none of them is a read.
    flushing = [section for section in job.workload.sections if section.flush_every]
    if flushing and not any(entry.read.total_ios for entry in report.jobs):
        short_reads = 0
    elif flushing:
        flush_every = min(section.flush_every for section in flushing)
        under_way = sum(section.depth * section.jobs for section in flushing)
        expected = ios / flush_every + _flush_spread(report.jobs, flush_every) + under_way
        flushes = max(sum(entry.sync.total_ios for entry in report.jobs), math.ceil(expected))
        short_reads = max(0, short_reads - flushes)
    spoiled += short_reads
    if spoiled:
        raise FioError(f"fio had {spoiled} short or dropped I/Os")
    long_enough = runtime >= MINIMUM_RUNTIME_SHARE * job.seconds
    # a run bounded by its bytes may end early, but not before it moved them
    bounded = job.workload.is_writing and total_bytes >= MINIMUM_BYTES_SHARE * job.limited_bytes
    if not (long_enough or bounded):
        raise FioError(f"fio ran for {runtime:.3f} s instead of {job.seconds:g} s")
    if runtime <= 0 or not math.isfinite(runtime):
        raise FioError("the run was too short to be timed")
    bins = pooled_bins(direction.clat_ns.bins for direction in directions)
    weighted = sum(direction.clat_ns.mean * direction.clat_ns.N for direction in directions)
    samples = sum(direction.clat_ns.N for direction in directions)
    io_cpu_ms = sum((entry.usr_cpu + entry.sys_cpu) / 100 * entry.job_runtime for entry in report.jobs)
    p50, p95, p99, p999 = (percentile(bins, share) / 1000 for share in (0.5, 0.95, 0.99, 0.999))
    return RunFigures(
        iops=sum(direction.iops for direction in directions),
        bandwidth_bytes_per_s=float(sum(direction.bw_bytes for direction in directions)),
        latency_mean_us=weighted / samples / 1000 if samples else 0.0,
        latency_p50_us=p50,
        latency_p95_us=p95,
        latency_p99_us=p99,
        latency_p999_us=p999,
        ios=ios,
        read_bytes=sum(entry.read.io_bytes for entry in report.jobs),
        written_bytes=sum(entry.write.io_bytes for entry in report.jobs),
        runtime_seconds=runtime,
        cpu_us_per_io=io_cpu_ms * 1000 / ios,
        cpu_seconds=done.cpu_seconds,
    )


def accepted_report(done: EndedProcess) -> _Report:
    """The report of a run in which no job failed. Raises FioError with fio's own words."""
    try:
        report = parse_report(done.stdout)
    except FioError as error:
        raise FioError(f"{error.message} (exit status {done.returncode}): {_last_line(done)}") from error
    failed = [entry for entry in report.jobs if entry.error]
    if failed:
        words = os.strerror(abs(failed[0].error))
        raise FioError(f"fio job {failed[0].jobname}: error {failed[0].error} ({words}): {_last_line(done)}")
    if done.returncode != 0:
        raise FioError(f"fio ended with status {done.returncode}: {_last_line(done)}")
    return report


def _last_line(done: EndedProcess) -> str:
    lines = [line.strip() for line in (done.stderr or done.stdout[:2000]).splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no message"


def pooled_bins(parts: Iterable[dict[str, int]]) -> dict[int, int]:
    """Completion-latency bins of ``json+``, nanoseconds to number, of several directions taken together."""
    pooled: dict[int, int] = {}
    for bins in parts:
        for key, number in bins.items():
            if not is_count(key):
                raise FioError(f"fio's JSON cannot be read: latency bin {key!r}")
            pooled[int(key)] = pooled.get(int(key), 0) + number
    return pooled


def percentile(bins: dict[int, int], share: float) -> float:
    """Latency in ns below or at which the share of the I/Os completed; 0 without bins."""
    rank = math.ceil(share * sum(bins.values()))
    passed = 0
    for latency in sorted(bins):
        passed += bins[latency]
        if passed >= rank:
            return float(latency)
    return 0.0
