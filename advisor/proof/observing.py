"""A load observed on this host, as a workload file: from traced requests, or by counters alone."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from advisor.errors import PermissionDeniedError, RefusedError, UsageError
from advisor.host import Host, Missing
from advisor.host.numbers import is_count
from advisor.observe.disks import read_disks
from advisor.observe.load import LoadFigures, RoughFigures, measure_load, measure_roughly
from advisor.observe.rates import DiskRates, disk_rates
from advisor.observe.sample import CounterSpan, Reading
from advisor.observe.tracing import (
    BlockRequest,
    DeviceRequests,
    TracedRequests,
    device_number,
    events_of,
    trace_requests,
    unit_of_process,
)
from advisor.proof.pattern import KIB, AccessPattern, Arrival, DiskMeans, JobSection, LoadObservation, WorkloadFile
from advisor.proof.twin import MAX_LOST, make_section, require_steady, was_made_regular

_UNMATCHED_SHARE = 0.05
_LEAST_OF_UNIT = 0.5
"""Of the requests on the device, so many are not to be of an unknown process, where one unit is asked for."""


def observe_workload(
    host: Host,
    seconds: float,
    *,
    device: str | None = None,
    unit: str | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> WorkloadFile:
    """The twin of the load of the next ``seconds``: of one device, of one unit, or of the busiest device.

    As root from each request; else from the counters of the device, with nothing known of distributions. Raises
    UsageError for a device that there is not, RefusedError with the reason where no faithful twin can be made.
    """
    disk = None if device is None else find_disk(host, device)
    began = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        traced = trace_requests(
            seconds,
            events_of(host, disk),
            None if unit is None else lambda pid: unit_of_process(host, pid),
            sleep=sleep,
        )
    except PermissionDeniedError as error:
        if unit is not None:
            raise PermissionDeniedError(
                f"--unit {unit}: needs the trace of each request ({error.message})", hint=error.hint
            ) from error
        return _observe_counters(host, seconds, disk, began, error.message, sleep)
    disk = disk or _busiest_disk(host, traced, unit)
    requests = traced.devices.get(device_number(host, disk) or "", DeviceRequests())
    return _make_file(disk, unit, began, traced, requests)


def find_disk(host: Host, device: str) -> str:
    """The kernel's name of the whole disk that a word means: a name or a path, of a disk or a partition.

    Raises UsageError for one that there is not, RefusedError for one that has no requests of its own.
    """
    name = device
    if device.startswith("/"):
        real = host.real(device)
        name = device if isinstance(real, Missing) else real.rpartition("/")[2]
    if "/" in name or device_number(host, name) is None:
        known = [one for one in host.names("/sys/block") if not one.startswith(("ram", "loop"))]
        raise UsageError(f"--device {device}: there is no such block device", hint=f"here: {', '.join(known)}")
    if not isinstance(host.read(f"/sys/class/block/{name}/partition"), Missing):
        place = host.real(f"/sys/class/block/{name}")
        name = name if isinstance(place, Missing) else place.rstrip("/").split("/")[-2]
    members = host.names(f"/sys/class/block/{name}/slaves")
    kind = host.read(f"/sys/class/block/{name}/dm/uuid")
    if members and (isinstance(kind, Missing) or not kind.startswith("mpath-")):
        raise RefusedError(
            f"{name}: requests are those of the devices below it, which is what can be observed",
            hint=f"--device {members[0]}",
        )
    return name


def require_unit(host: Host, unit: str) -> None:
    """Raise UsageError for a unit of which no process runs: no request can be its own."""
    names = {unit, f"{unit}.service"}
    processes = (int(name) for name in host.names("/proc") if is_count(name))
    if not unit or not any(unit_of_process(host, pid) in names for pid in processes):
        raise UsageError(
            f"--unit {unit!r}: no process of such a unit is running here",
            hint="systemctl list-units --type=service,scope lists their names",
        )


def _busiest_disk(host: Host, traced: TracedRequests, unit: str | None) -> str:
    names = {device_number(host, name): name for name in host.names("/sys/block")}
    counts = {
        names[number]: sum(_is_of(one, traced, unit) for one in found.requests)
        for number, found in traced.devices.items()
        if number in names
    }
    busiest = max(counts, key=lambda name: counts[name], default="")
    if not counts.get(busiest):
        raise RefusedError(
            f"no requests in {traced.seconds:.0f} s"
            if unit is None
            else f"no requests of {unit} in {traced.seconds:.0f} s",
            hint="reads from the page cache never reach a device; writes reach it when they are written back",
        )
    return busiest


def _is_of(request: BlockRequest, traced: TracedRequests, unit: str | None) -> bool:
    return unit is None or traced.owners.get(request.pid) in (unit, f"{unit}.service")


def _make_file(disk: str, unit: str | None, began: str, traced: TracedRequests, found: DeviceRequests) -> WorkloadFile:
    mine = [one for one in found.requests if _is_of(one, traced, unit)]
    events = 2 * len(found.requests)
    if traced.lost > MAX_LOST * (events + traced.lost):
        raise RefusedError(
            f"no faithful twin: {traced.lost:,} of {events:,} events were lost",
            hint="observe one device (--device DEV), on a host with a CPU to spare",
        )
    if found.unmatched > _UNMATCHED_SHARE * len(found.requests) + 300:
        raise RefusedError(
            (
                f"no faithful twin: of {found.unmatched:,} of {found.unmatched + len(found.requests):,} "
                "completions no beginning was seen"
            ),
            hint="some drivers do not report when they begin a request",
        )
    if len(mine) < 2:
        raise RefusedError(f"no faithful twin: {len(mine)} requests on {disk}")
    load = measure_load(
        mine,
        # Flushes and discards are completed in nobody's name.
        flushes=found.flushes if len(mine) > _LEAST_OF_UNIT * len(found.requests) else (),
        discards=found.discards if unit is None else 0,
        durable_writes=found.durable_writes if unit is None else 0,
    )
    section, error = make_section(load)
    middle = load.seconds / 2 + min(one.at_seconds for one in mine)
    halves = [[one for one in mine if (one.at_seconds < middle) is early] for early in (True, False)]
    first, second = (measure_roughly(half, load.seconds / 2) for half in halves)
    require_steady(first, second)
    observation = LoadObservation(
        disk,
        began,
        traced.seconds,
        "requests",
        unit,
        socket.gethostname(),
        traced.lost,
        len(found.requests) - len(mine),
        load,
    )
    return WorkloadFile(
        title=_describe_load(disk, unit, load),
        sections=(section,),
        observed=observation,
        error=error,
        notes=(_compare_halves(first, second), *_list_notes(section, load, traced, observation, mine)),
    )


def _compare_halves(first: RoughFigures, second: RoughFigures) -> str:
    rate = abs(second.iops / first.iops - 1)
    tail = abs(second.p99_us / max(first.p99_us, 1e-9) - 1)
    return (
        f"between the halves of the observation requests/s differed by {rate:.0%} and p99 by {tail:.0%}: no twin can be"
        " nearer"
    )


def _describe_load(disk: str, unit: str | None, load: LoadFigures) -> str:
    sizes = sorted(
        ((share, name, int(size)) for name, found in load.sizes.items() for size, share in found.items()), reverse=True
    )
    main = ", ".join(f"{share:.0%} {name}s of {size / KIB:g} KiB" for share, name, size in sizes[:2])
    return f"Twin of {unit or 'all'} on {disk}: {load.iops:,.0f} requests/s, {main}"


def _list_notes(
    section: JobSection,
    load: LoadFigures,
    traced: TracedRequests,
    observation: LoadObservation,
    mine: list[BlockRequest],
) -> list[str]:
    notes = []
    if traced.is_cut:
        notes.append(f"ended after {traced.seconds:.1f} s: {len(mine):,} requests are enough")
    if traced.lost:
        notes.append(f"{traced.lost:,} events were lost")
    if observation.left_out:
        notes.append(f"{observation.left_out:,} requests of others on {observation.device} are left out")
    if was_made_regular(section, load):
        notes.append(
            "requests came at independent times; the twin has regular ones, as fio 3.33 ends with a fault on flushes"
            " between independent times"
        )
    if 0.05 < load.durable_share < 0.95:
        notes.append(
            f"{load.durable_share:.0%} of the writes are durable by themselves (FUA); fio writes all or none so"
        )
    others = {number: len(found.requests) for number, found in traced.devices.items()}
    if len(others) > 1:
        total = sum(others.values())
        notes.append(f"{total - len(mine) - observation.left_out:,} requests on other devices are left out")
    return notes


def _observe_counters(
    host: Host, seconds: float, disk: str | None, began: str, why: str, sleep: Callable[[float], None]
) -> WorkloadFile:
    """Means alone: sizes, mix and queue."""
    samples = []
    for pause in (0.0, seconds):
        sleep(pause)
        reading = Reading(time.monotonic())
        read_disks(host, reading)
        samples.append(reading.make_sample())
    span = CounterSpan(samples)
    whole = set(host.names("/sys/block"))
    rates = {name: one for name, one in disk_rates(span).items() if name in whole and one.unknown is None}
    name = disk or max(rates, key=lambda one: _requests_per_s(rates[one]), default="")
    found = rates.get(name)
    count = 0 if found is None else round(_requests_per_s(found) * span.seconds)
    if found is None or count < 100:
        raise RefusedError(
            f"no twin: {count} requests in {seconds:.0f} s", hint="observe longer, or when the device is used"
        )
    return _make_from_means(found, began, span.seconds, why)


def _requests_per_s(rates: DiskRates) -> float:
    return (rates.reads_per_s or 0.0) + (rates.writes_per_s or 0.0)


def _make_from_means(rates: DiskRates, began: str, seconds: float, why: str) -> WorkloadFile:
    total = _requests_per_s(rates)
    reads = (rates.reads_per_s or 0.0) / total
    merged = (rates.read_merges_per_s or 0.0) + (rates.write_merges_per_s or 0.0)
    merged_share = merged / (merged + total)
    queue = rates.queue or 0.0
    sizes = {
        "read": {str(_whole_blocks(rates.read_size_bytes)): 100} if rates.read_size_bytes else {},
        "write": {str(_whole_blocks(rates.write_size_bytes)): 100} if rates.write_size_bytes else {},
    }
    sizes = {name: found for name, found in sizes.items() if found}
    kind = "rw" if len(sizes) == 2 else next(iter(sizes))
    pattern: AccessPattern = msgspec.convert(kind if merged_share > 0.3 else f"rand{kind}", AccessPattern)
    depth = max(1, min(256, round(queue)))
    is_full = (rates.utilisation or 0.0) >= 0.9
    most = max(int(size) for found in sizes.values() for size in found)
    section = JobSection(
        "twin",
        pattern,
        most,
        depth=depth if is_full else max(depth, 16),
        engine="libaio" if not is_full or depth > 1 else "psync",
        read_percent=round(100 * reads),
        sizes=sizes,
        arrival=Arrival() if is_full else Arrival("poisson", rate=max(1.0, total)),
    )
    means = DiskMeans(
        rates.reads_per_s or 0.0,
        rates.writes_per_s or 0.0,
        rates.read_size_bytes,
        rates.write_size_bytes,
        rates.read_wait_ms,
        rates.write_wait_ms,
        rates.flushes_per_s,
        merged_share,
        queue,
    )
    return WorkloadFile(
        title=f"Coarse twin of {rates.name} by its counters: {total:,.0f} requests/s, {reads:.0%} reads",
        sections=(section,),
        observed=LoadObservation(rates.name, began, seconds, "counters", None, socket.gethostname(), means=means),
        notes=(
            f"from counters alone, as each request could not be traced: {why}",
            "sizes are means; order, arrival and the distribution of latency are not known, and flushes are left out",
        ),
    )


def _whole_blocks(size_bytes: float) -> int:
    return max(1, round(size_bytes / (4 * KIB))) * 4 * KIB
