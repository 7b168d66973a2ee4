"""The ceilings of a host, and what a saved series measured against them."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from advisor.errors import AdvisorError, InvalidInputError, RefusedError, UsageError
from advisor.facts.host_facts import scan
from advisor.host import Host
from advisor.limits.declared import Declared, read_declared
from advisor.limits.figures import Figures
from advisor.limits.links import read_pci_and_network
from advisor.limits.machine_file import read_machines
from advisor.limits.notes import Measurement, with_observed
from advisor.limits.paths import with_findings
from advisor.limits.records import Limits
from advisor.limits.storage_use import MeasuredThroughput, parse_measured, read_front, with_measured
from advisor.limits.what_if import KEYS, Scene, limits_of_scene, parse_changes, with_what_if
from advisor.proof.archive import SavedBench, load_any, reanalyse_series
from advisor.proof.command_runner import explain_not_stored, store_result
from advisor.proof.fio import GRACE_SECONDS, FioJob, FioProcess, FioRunner, fio_command, read_figures, read_version
from advisor.proof.pattern import JobSection, Pattern
from advisor.proof.process import Stop, caught_signals
from advisor.proof.series import Bench, WorkloadSeries
from advisor.proof.workloads import get_workload
from advisor.sizing.cloud import read_prices
from advisor.sizing.records import Cloud, Demand, Sizing, parse_demand
from advisor.sizing.search import CLOUDS, SizeQuestion, answer, parse_layouts


def host_limits(
    host: Host,
    *,
    volumes: Path | None = None,
    instance_types: Path | None = None,
    bench: Path | None = None,
    measured: str | None = None,
    what_if: Sequence[str] = (),
    more: Sequence[str] = (),
    readings: Mapping[str, Figures] | None = None,
) -> Limits:
    """Return the ceilings of each path of ``host`` and of the host as a whole. Measures and changes nothing.

    ``volumes``, ``instance_types`` and ``bench`` are files as the options of their names take them, ``measured`` a
    throughput to compare with, ``what_if`` other hardware as ``K=V``, ``more`` further ones, ``readings`` what drives
    were measured with. Raises UsageError, InvalidInputError.
    """
    declared = read_declared(volumes) if volumes else Declared()
    declared = msgspec.structs.replace(declared, measured=readings or {})
    machines = read_machines(instance_types) if instance_types else None
    measurements = read_measurements(bench) if bench else ()
    given = parse_measured(measured) if measured is not None else ()
    # What --what-if says, with further K=V behind it. Raises UsageError, InvalidInputError.
    if more and not what_if:
        raise UsageError(
            f"unexpected argument: {more[0]}",
            hint=f"K=V stands after --what-if, K is one of {', '.join(KEYS)}: advisor limits --what-if raid=raid10",
        )
    changes = parse_changes((*what_if, *more))
    facts = scan(host)
    scene = Scene(facts, read_pci_and_network(host, facts), declared, read_front(host, facts), machines)
    found = limits_of_scene(scene)
    if changes:
        found = with_what_if(found, scene, changes)
    if bench:
        found = with_observed(found, measurements, facts, declared)
    found = with_findings(found, facts, declared)
    return _with_measured(found, given) if given else found


def _with_measured(limits: Limits, given: Sequence[MeasuredThroughput]) -> Limits:
    """The figures as shares of the host's ceiling, and of the one with other hardware."""
    if limits.host is None:
        return limits
    limits = msgspec.structs.replace(limits, host=with_measured(limits.host, given))
    if limits.what_if is None:
        return limits
    after = msgspec.structs.replace(limits.what_if, host=with_measured(limits.what_if.host, given))
    return msgspec.structs.replace(limits, what_if=after)


def read_measurements(path: Path, *, option: str = "--bench") -> tuple[Measurement, ...]:
    """The medians of a saved series, as the value of an option. Raises InvalidInputError for what is none."""
    saved = load_any(path)
    if not isinstance(saved, SavedBench):
        raise InvalidInputError(
            f"{path}: not a saved series but a saved proof", hint=f"{option} takes what bench saved"
        )
    series = reanalyse_series(saved)
    return tuple(one for measured in series.workloads for one in _of_workload(series, measured))


def _of_workload(series: Bench, measured: WorkloadSeries) -> Iterator[Measurement]:
    """MB/s and IOPS of a workload that touches storage."""
    workload = get_workload(measured.name)
    shares = [section.write_share for section in workload.sections if section.needs_scratch]
    if not shares:
        return
    read_share = 1 - sum(shares) / len(shares)
    device = series.series.device
    if measured.bandwidth_mb_per_s:
        yield Measurement(measured.name, device, "mb_per_s", measured.bandwidth_mb_per_s, read_share)
    if measured.iops:
        yield Measurement(measured.name, device, "iops", measured.iops, read_share)


# Which hardware carries a demand.


def size_hardware(
    *,
    read: str | None = None,
    write: str | None = None,
    iops: str | None = None,
    latency: str | None = None,
    capacity: str | None = None,
    series: Path | None = None,
    cloud: str | None = None,
    instance: str | None = None,
    layout: str | None = None,
    instance_types: Path | None = None,
    volumes: Path | None = None,
    prices: Path | None = None,
    limit: int = 10,
) -> Sizing:
    """Return the machines and volumes, or drives and links, that carry a demand, at most ``limit`` of each cloud.

    The arguments are what the options of their names take (``8GB/s``, ``200k``, ``1ms``, ``10TiB``, files); ``series``
    is that of ``--from``. Reads nothing of this host. Raises UsageError, InvalidInputError.
    """
    return answer(
        SizeQuestion(
            demand=_make_demand(read, write, iops, latency, capacity, series),
            clouds=_parse_clouds(cloud) if cloud is not None else CLOUDS,
            instances=tuple(name.strip() for name in instance.split(",")) if instance is not None else (),
            layouts=parse_layouts(layout) if layout is not None else (),
            given=read_machines(instance_types) if instance_types else None,
            declared=read_declared(volumes) if volumes else Declared(),
            prices=read_prices(prices) if prices else None,
            prices_where=str(prices or ""),
            limit=limit,
        )
    )


def _parse_clouds(name: str) -> tuple[Cloud, ...]:
    found = tuple(one for one in CLOUDS if one == name.strip().lower())
    if not found:
        raise UsageError(f"--cloud {name}: expected one of {', '.join(CLOUDS)}")
    return found


def _make_demand(
    read: str | None,
    write: str | None,
    iops: str | None,
    latency: str | None,
    capacity: str | None,
    series: Path | None,
) -> Demand:
    """What the options say; of a saved series what they leave out."""
    asked = parse_demand(read, write, iops, latency, capacity)
    if series is not None:
        # The throughput of the workload with the most of it, and the IOPS of the one with the most of these:
        # workloads of a series run one after the other.
        found = read_measurements(series, option="--from")
        rates = [one for one in found if one.measure == "mb_per_s"]
        operations = [one.value for one in found if one.measure == "iops"]
        if not found:
            raise InvalidInputError(f"{series}: no workload of it reads or writes a disk")
        most = max(rates, key=lambda one: one.value, default=None)
        measured = Demand(
            read_mb_s=most.value * most.read_share if most and most.read_share else None,
            write_mb_s=most.value * (1 - most.read_share) if most and most.read_share < 1 else None,
            iops=max(operations, default=None),
        )
        fields = {
            name: getattr(measured, name)
            for name in ("read_mb_s", "write_mb_s", "iops")
            if getattr(asked, name) is None and not (name != "iops" and asked.mb_s is not None)
        }
        asked = msgspec.structs.replace(asked, **fields, measured_from=str(series))
    if asked.mb_s is None and asked.iops is None:
        raise UsageError(
            "nothing is asked for: give --read, --write or --iops, or --from FILE",
            hint="advisor size --read 8GB/s --write 3GB/s --iops 200k --latency 1ms",
        )
    return asked


# Readings of drives whose ceiling is not known: two bounded runs of fio each, which open the device for reading only.

SECONDS = 3.0
"""Of each of the two runs."""
_RUNS = (
    Pattern("stream", "Large reads in sequence", (JobSection("stream", "read", 1 << 20, depth=16),), "bandwidth", ""),
    Pattern("random", "Small reads at random", (JobSection("random", "randread", 4096, 32, 4),), "iops", ""),
)


class DriveReading(msgspec.Struct, frozen=True):
    """What one drive was read with, in MB/s and operations a second."""

    device: str
    read_mb_per_s: float
    read_iops: float


class DriveReadings(msgspec.Struct, frozen=True):
    """The readings of a host, when they began, and a drive that could not be read with the reason."""

    schema: str
    started: str
    fio: str
    drives: tuple[DriveReading, ...]
    failed: Mapping[str, str] = {}

    def figures(self) -> dict[str, Figures]:
        """By disk; of writes nothing is known."""
        return {one.device: Figures(read_mb_per_s=one.read_mb_per_s, read_iops=one.read_iops) for one in self.drives}


def unknown_drives(limits: Limits) -> tuple[str, ...]:
    """The drives and volumes at the bottom of paths of which no ceiling is known, each once."""
    rows = (one for path in limits.paths for one in path.ceilings if one.stage in ("medium", "volume"))
    return tuple(dict.fromkeys(name for one in rows if one.known == "unknown" for name in one.where))


def predicted_seconds(names: Sequence[str]) -> float:
    """How long the readings of these drives take, one after the other."""
    return len(names) * len(_RUNS) * SECONDS


def read_drives(host: Host, names: Iterable[str], *, runner: FioRunner | None = None) -> tuple[DriveReadings, str]:
    """Read each drive alone, and keep the result: the readings, and where they are kept or why not.

    Raises RefusedError for a captured host and without root, FioMissingError, StoppedError after a signal.
    """
    if not host.is_live or not host.is_root:
        raise RefusedError("--measure reads the drives of this host, as root", hint="sudo advisor limits --measure")
    runner = runner or FioProcess()
    started = datetime.now(UTC)
    drives: list[DriveReading] = []
    failed: dict[str, str] = {}
    with caught_signals() as stop:
        version = read_version(runner, stop)
        for name in names:
            size = host.read_int(f"/sys/class/block/{name}/size")
            if not isinstance(size, int) or size <= 0:
                failed[name] = "its size is not known"
                continue
            try:
                drives.append(_read_drive(runner, name, size * 512, stop))
            except AdvisorError as error:
                stop.check()
                failed[name] = error.message
    schema = "advisor.drive-readings/1"
    found = DriveReadings(schema, started.isoformat(timespec="seconds"), version, tuple(drives), failed)
    try:
        return found, f"kept in {store_result(gzip.compress(msgspec.json.encode(found)), 'drive-readings', started)}"
    except (OSError, RefusedError) as error:
        return found, f"not kept: {explain_not_stored(error)}"


def _read_drive(runner: FioRunner, name: str, size_bytes: int, stop: Stop) -> DriveReading:
    """Both runs of one drive; fio starts in /dev and refuses to write (``--readonly``)."""
    figures = []
    for pattern in _RUNS:
        job = FioJob(pattern, SECONDS, size_bytes, 0, file_name=name.replace("!", "/"), is_read_only=True)
        done = runner.run(fio_command(job), timeout=SECONDS + GRACE_SECONDS, cwd="/dev", stop=stop)
        figures.append(read_figures(job, done))
    stream, random = figures
    return DriveReading(name, stream.bandwidth_bytes_per_s / 1e6, random.iops)
