"""The workload library: which I/O patterns can be measured, with which metric, and where each comes from.

A workload is data; ``advisor.proof.fio`` turns it into a command line. The names are part of the contract with
profiles. Those of the group ``net`` run between two hosts and touch no storage (``advisor.proof.network``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

import msgspec

from advisor.errors import UsageError, near_names
from advisor.host.patterns import lazy_regex
from advisor.proof.own_command import COMMAND_WORKLOAD, LIVE_WORKLOAD, OwnCommand
from advisor.proof.pattern import KIB as KIB
from advisor.proof.pattern import AccessPattern as AccessPattern
from advisor.proof.pattern import JobSection as JobSection
from advisor.proof.pattern import Pattern as Pattern
from advisor.proof.pattern import Protocol as Protocol
from advisor.proof.pattern import default_metric as default_metric
from advisor.proof.pattern import is_workload_path, read_workload

SATURATION_DEPTH = 16


class UnknownWorkloadError(UsageError):
    """No workload of that name; the hint names the closest ones."""

    kind = "unknown-workload"


PAPER = "Veritas InfoScale 7.4.2 for RHEL on AWS, performance test results (2020), chapter 4"
ISCSI = "Openfiler iSCSI tuning article, IOMETER table (VMware forum configuration)"
IRIS = "InterSystems IRIS on gp3 and io2 article (2023), RANREAD and RANWRITE"
BEEGFS = "Dell EMC Ready Solution for HPC BeeGFS High Performance Storage, benchmark section"


def _single_pattern(name: str, title: str, source: str, section: JobSection) -> Pattern:
    return Pattern(name, title, (section,), default_metric(section.block_bytes), source)


def _iometer_patterns() -> list[Pattern]:
    return [
        _single_pattern(
            "iometer.maxtp-r100",
            "Max throughput, 100 % read: 32 KiB sequential, 64 outstanding",
            ISCSI,
            JobSection("io", "read", 32 * KIB, depth=64),
        ),
        _single_pattern(
            "iometer.maxtp-rw50",
            "Max throughput, 50 % read: 32 KiB sequential, 64 outstanding",
            ISCSI,
            JobSection("io", "rw", 32 * KIB, depth=64),
        ),
        _single_pattern(
            "iometer.reallife",
            "RealLife: 8 KiB, 60 % random, 65 % read, 64 outstanding",
            ISCSI,
            JobSection("io", "randrw", 8 * KIB, depth=64, read_percent=65, random_percent=60),
        ),
        _single_pattern(
            "iometer.rnd8k-r70",
            "Random 8 KiB, 70 % read, 64 outstanding",
            ISCSI,
            JobSection("io", "randrw", 8 * KIB, depth=64, read_percent=70),
        ),
    ]


def _ranread_pattern(name: str, jobs: int) -> Pattern:
    section = JobSection("db", "randread", 8 * KIB, jobs=jobs, engine="psync")
    return _single_pattern(name, f"RANREAD: 8 KiB random reads by {jobs} processes", IRIS, section)


def _beegfs_patterns() -> list[Pattern]:
    # IOzone gives each thread a file of its own; here each job has a region of its own in the one scratch file.
    sequential = JobSection("io", "write", 1024 * KIB, jobs=4, engine="psync", own_regions=True, end_fsync=True)
    return [
        _single_pattern("beegfs.iozone-seq", "IOzone -i 0: 1 MiB sequential writes by 4 threads", BEEGFS, sequential),
        _single_pattern(
            "beegfs.iozone-seq-read",
            "IOzone -i 1: 1 MiB sequential reads by 4 threads",
            BEEGFS,
            JobSection("io", "read", 1024 * KIB, jobs=4, engine="psync", own_regions=True),
        ),
        _single_pattern(
            "beegfs.iozone-rand",
            "IOzone -i 2: 4 KiB random direct reads by 4 threads",
            BEEGFS,
            JobSection("io", "randread", 4 * KIB, jobs=4, engine="psync", own_regions=True),
        ),
        _single_pattern(
            "beegfs.iozone-rand-write",
            "IOzone -i 2: 4 KiB random direct writes by 4 threads",
            BEEGFS,
            JobSection("io", "randwrite", 4 * KIB, jobs=4, engine="psync", own_regions=True),
        ),
        _single_pattern(
            "beegfs.dd",
            "dd bs=1M oflag=direct: 1 MiB sequential writes, one at a time",
            BEEGFS,
            JobSection("io", "write", 1024 * KIB, engine="psync"),
        ),
        _single_pattern(
            "beegfs.storagebench",
            "StorageBench: 512 KiB sequential writes",
            BEEGFS,
            JobSection("io", "write", 512 * KIB, engine="psync"),
        ),
        _single_pattern(
            "beegfs.storagebench-read",
            "StorageBench: 512 KiB sequential reads",
            BEEGFS,
            JobSection("io", "read", 512 * KIB, engine="psync"),
        ),
    ]


KERNEL_READAHEAD = "Linux kernel documentation, admin-guide/sysctl and block/queue-sysfs: read_ahead_kb"


def _buffered_patterns() -> list[Pattern]:
    """Reads through the page cache: what read-ahead acts on, and direct I/O passes by."""
    return [
        _single_pattern(
            f"buffered.seq-{label}-r100",
            f"{words} sequential reads through an empty page cache, one at a time",
            KERNEL_READAHEAD,
            JobSection("io", "read", block, engine="psync", buffered=True),
        )
        for label, words, block in (("128k", "128 KiB", 128 * KIB), ("1m", "1 MiB", 1024 * KIB))
    ]


FIO_NET = "fio(1), ioengine=net"


def _network_patterns() -> list[Pattern]:
    """What earlier versions measured between two hosts: their results are read."""
    shapes: tuple[tuple[Protocol, int, str], ...] = (
        ("tcp", 64, "one TCP connection, 64 KiB writes"),
        ("udp", 8, "8 KiB UDP datagrams"),
    )
    ways: tuple[tuple[str, AccessPattern, str], ...] = (
        ("", "write", "this host sends to the peer"),
        ("-receive", "read", "the peer sends to this host"),
    )
    return [
        _single_pattern(
            f"net.{protocol}-{kib}k{suffix}",
            f"{title}, {way}",
            FIO_NET,
            JobSection("net", pattern, kib * KIB, engine="net", protocol=protocol),
        )
        for protocol, kib, title in shapes
        for suffix, pattern, way in ways
    ]


NULL_CONTROL = "null.4k"


def _make_catalogue() -> Mapping[str, Pattern]:
    section = JobSection("null", "randread", 4 * KIB, engine="null")
    mixes: tuple[tuple[str, str, AccessPattern, AccessPattern], ...] = (
        ("r100", "reads", "read", "randread"),
        ("rw50", "half reads, half writes", "rw", "randrw"),
        ("w100", "writes", "write", "randwrite"),
    )
    shapes = ((4, "rand", "random"), (4, "seq", "sequential"), (64, "seq", "sequential"))
    found = []
    for kib, order, word in shapes:
        for mix, mix_word, sequential, scattered in mixes:
            pattern = scattered if order == "rand" else sequential
            for depth, suffix in ((1, ""), (SATURATION_DEPTH, "-qd16")):
                name = f"infoscale.{kib}k-{order}-{mix}{suffix}"
                title = f"{kib} KiB {word} {mix_word}, queue depth {depth}"
                found.append(_single_pattern(name, title, PAPER, JobSection("io", pattern, kib * KIB, depth=depth)))
    # Asyncwij=16 outstanding journal writes; 16 write daemons; the image journal goes first through its own region.
    journal = JobSection("wij", "write", 256 * KIB, depth=16, region=(0, 25))
    database = JobSection("db", "randwrite", 8 * KIB, jobs=16, engine="psync", region=(25, 75))
    workloads = [
        *found,
        *_iometer_patterns(),
        _ranread_pattern("iris.ranread", 20),
        _ranread_pattern("iris.ranread-10", 10),
        _ranread_pattern("iris.ranread-40", 40),
        Pattern(
            "iris.ranwrite",
            "RANWRITE: 256 KiB image-journal burst with 8 KiB random writes by 16 write daemons",
            (journal, database),
            "iops",
            IRIS,
        ),
        _single_pattern(
            "iris.oltp-7030",
            "8 KiB random, 70 % read, 16 processes",
            IRIS,
            JobSection("db", "randrw", 8 * KIB, jobs=16, engine="psync", read_percent=70),
        ),
        *_beegfs_patterns(),
        *_buffered_patterns(),
        *_network_patterns(),
        _single_pattern(NULL_CONTROL, "fio's null engine: touches no storage (negative control)", "fio(1)", section),
    ]
    return {workload.name: workload for workload in workloads}


WORKLOADS: Mapping[str, Pattern] = _make_catalogue()
"""Every workload by its name."""


THREADS_MAX = 1024
"""What the BeeGFS article runs at most."""


def with_threads(workload: Pattern, threads: int) -> Pattern:
    """The workload run by that many threads, named ``NAME@N``; of one with several sections the last, which is for the
    data itself. Raises UsageError for a number that cannot be, and for a workload that has no threads."""
    if not 1 <= threads <= THREADS_MAX:
        raise UsageError(f"{workload.name}@{threads}: expected 1 to {THREADS_MAX} threads")
    if not workload.needs_scratch:
        raise UsageError(f"{workload.name}@{threads}: only workloads on storage take a number of threads")
    last = msgspec.structs.replace(workload.sections[-1], jobs=threads)
    title = f"{_THREADS.sub('', workload.title)}, {threads} thread{'s' if threads > 1 else ''}"
    return msgspec.structs.replace(
        workload, name=f"{workload.name}@{threads}", title=title, sections=(*workload.sections[:-1], last)
    )


_THREADS = lazy_regex(r" by [0-9]+ (?:threads|processes)|, [0-9]+ processes|, one at a time")
_VARIANT = lazy_regex(r"(.+)@([0-9]{1,6})")


def split_threads(name: str) -> tuple[str, int | None]:
    """``beegfs.iozone-seq@64`` as its name and 64; without a number, None."""
    match = _VARIANT.fullmatch(name)
    return (match[1], int(match[2])) if match else (name, None)


def get_workload(name: str) -> Pattern:
    """The workload of that name or of that file, ``NAME@N`` with N threads. Raises UnknownWorkloadError, whose hint
    names close matches, UsageError as `with_threads`, and InvalidInputError as `read_workload`."""
    base, threads = split_threads(name)
    if threads is None and is_workload_path(name):
        # A session works in other directories, and its result is read in yet others.
        path = os.path.abspath(name)
        return read_workload(path).pattern(path)
    if threads is not None:
        return with_threads(get_workload(base), threads)
    try:
        return WORKLOADS[name]
    except KeyError:
        close = near_names(name, WORKLOADS)
        hint = f"did you mean {', '.join(close)}?"
        if os.path.isfile(name):
            hint = f"the file of that name is ./{name}"
        elif not close:
            hint = f"known: {', '.join(sorted(WORKLOADS))}"
        raise UnknownWorkloadError(f"no workload is named {name!r}", hint=hint) from None


OWN_COMMAND = Pattern(COMMAND_WORKLOAD, "a command of the user's own", (), "time", "the user")
"""Stands for a command of the user's own: no workload of the library, so that no profile can name it."""


LIVE_TRAFFIC = Pattern(LIVE_WORKLOAD, "the traffic that was there", (), "time", "the user")
"""Stands for what the host does by itself."""


def get_measured(name: str) -> Pattern:
    """The workload of a record, a command of the user's own and live traffic among them. Raises as `get_workload`."""
    return next((one for one in (OWN_COMMAND, LIVE_TRAFFIC) if one.name == name), None) or get_workload(name)


def command_pattern(command: OwnCommand, name: str = COMMAND_WORKLOAD) -> Pattern:
    """A command of the user's own, or live traffic, as a workload: its first metric judges."""
    return msgspec.structs.replace(get_measured(name), metric=command.metrics[0].name)


_DEPTH_VARIANT = f"-qd{SATURATION_DEPTH}"


def expand_workloads(patterns: Iterable[str]) -> tuple[str, ...]:
    """Workload names; one with ``*`` or ``?`` stands for all that match it, without the variants of queue depth 16
    unless it names them. Raises UsageError, UnknownWorkloadError."""
    found: dict[str, None] = {}
    for pattern in patterns:
        if is_workload_path(split_threads(pattern)[0]) or not set(pattern) & set("*?["):
            found[get_workload(pattern).name] = None
            continue
        names = [name for name in WORKLOADS if fnmatchcase(name, pattern)]
        names = [name for name in names if not name.endswith(_DEPTH_VARIANT) or _DEPTH_VARIANT in pattern]
        names = [name for name in names if WORKLOADS[name].needs_scratch]
        if not names:
            raise UsageError(f"--workload {pattern}: no workload matches", hint="advisor bench --help lists the groups")
        found.update(dict.fromkeys(names))
    return tuple(found)
