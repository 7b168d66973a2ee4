"""Figures of a span as records: disks, CPUs, links, stalls. What is unknown is None, and ``unknown`` says why."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from advisor.host import Host, Missing
from advisor.observe.cgroups import read_cgroups
from advisor.observe.cpus import read_cpus, read_interrupts, read_task_table, read_thermal
from advisor.observe.disks import (
    read_allowances,
    read_arrays,
    read_disks,
    read_drives,
    read_space,
    read_volumes,
    read_zfs,
)
from advisor.observe.hardware import (
    read_adapters,
    read_clock,
    read_kills,
    read_log_errors,
    read_mappings,
    read_memory_errors,
    read_paths,
    read_scsi,
)
from advisor.observe.memory import read_memory, read_nodes, read_pressure
from advisor.observe.network import (
    read_connections,
    read_conntrack,
    read_fragments,
    read_link_errors,
    read_links,
    read_neighbours,
    read_network_spaces,
    read_nfs_mounts,
    read_nfs_server,
    read_pauses,
    read_ports,
    read_protocols,
    read_softnet,
    read_udp6,
)
from advisor.observe.processes import read_locks, read_processes
from advisor.observe.sample import CounterSpan, Reading, Sample

SECTOR_BYTES = 512
"""The kernel counts in these whatever a device's own block size."""


class DiskRates(msgspec.Struct, frozen=True):
    """A block device over a span. Waits are means per request, from its arrival at the queue to its completion.

    ``queue`` is the mean number of requests that were waiting or being served; ``utilisation`` the share of time in
    which there was any (0 to 1), which for a device that serves many at once is no measure of how full it is. A wait or
    a size is None, without a reason, where nothing of the kind was completed.
    """

    name: str
    reads_per_s: float | None = None
    writes_per_s: float | None = None
    read_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None
    read_size_bytes: float | None = None
    write_size_bytes: float | None = None
    read_wait_ms: float | None = None
    write_wait_ms: float | None = None
    read_merges_per_s: float | None = None
    write_merges_per_s: float | None = None
    discards_per_s: float | None = None
    discard_wait_ms: float | None = None
    flushes_per_s: float | None = None
    flush_wait_ms: float | None = None
    queue: float | None = None
    utilisation: float | None = None
    in_flight: float | None = None
    unknown: str | None = None


class CpuShares(msgspec.Struct, frozen=True):
    """Where a CPU's time went over a span, or that of ``all``: shares, 0 to 1. User time contains that of guests.

    Idle and iowait are None where the kernel moved time from one to the other; ``busy`` is known even then.
    """

    name: str
    busy: float | None = None
    user: float | None = None
    nice: float | None = None
    system: float | None = None
    irq: float | None = None
    softirq: float | None = None
    steal: float | None = None
    iowait: float | None = None
    idle: float | None = None
    guest: float | None = None
    unknown: str | None = None


FRAME_BYTES = 24
"""What a frame takes on the wire besides the bytes that are counted: preamble 8, check sequence 4, the gap between
frames 12 (IEEE 802.3, 3.1.1 and 4.4.2). Of small frames that is a quarter of the speed."""


class LinkRates(msgspec.Struct, frozen=True):
    """A link over a span; ``utilisation`` is that of the busier direction against the speed (0 to 1), with what each
    frame takes on the wire."""

    name: str
    rx_bytes_per_s: float | None = None
    tx_bytes_per_s: float | None = None
    rx_packets_per_s: float | None = None
    tx_packets_per_s: float | None = None
    rx_dropped: int | None = None
    tx_dropped: int | None = None
    rx_errors: int | None = None
    tx_errors: int | None = None
    carrier_changes: int | None = None
    speed_mbps: float | None = None
    utilisation: float | None = None
    unknown: str | None = None


class StallShares(msgspec.Struct, frozen=True):
    """Shares of a span in which ``some`` or all (``full``) tasks waited for a resource: 0 to 1."""

    name: str
    some: float | None = None
    full: float | None = None
    unknown: str | None = None


def disk_rates(span: CounterSpan) -> dict[str, DiskRates]:
    """Every block device and partition by name."""
    return {name: _rates_of_disk(span, name) for name in span.names("disk")}


def cpu_shares(span: CounterSpan) -> dict[str, CpuShares]:
    """``all`` and each CPU by number."""
    return {name: _shares_of_cpu(span, name) for name in span.names("cpu")}


def link_rates(span: CounterSpan) -> dict[str, LinkRates]:
    """Every link by name."""
    return {name: _rates_of_link(span, name) for name in span.names("link")}


def stall_shares(span: CounterSpan) -> dict[str, StallShares]:
    """Stalls of the whole host by resource: ``cpu``, ``io``, ``memory``, ``irq``."""
    return {name: stall_share(span, "pressure", name, "") for name in span.names("pressure")}


def stall_share(span: CounterSpan, kind: str, name: str, prefix: str) -> StallShares:
    """Stalls that counters named PREFIXsome_us and PREFIXfull_us hold."""
    found = known_deltas(span, kind, name)
    window_us = span.seconds_of(kind) * 1e6
    some, full = found(f"{prefix}some_us"), found(f"{prefix}full_us")
    # Counters of both are brought up to date a moment after the clock was read.
    some_share = None if some is None else min(1.0, some / window_us)
    full_share = None if full is None else min(1.0, full / window_us)
    return StallShares(name, some_share, full_share, span.why_unknown(kind, name))


def known_deltas(span: CounterSpan, kind: str, name: str) -> Callable[[str], int | None]:
    """A function from a counter of one thing to its rise; None where that is unknown."""

    def find(field: str) -> int | None:
        found = span.delta(kind, name, field)
        return None if isinstance(found, Missing) else found

    return find


def _divide(part: float | None, whole: float | None, times: float = 1) -> float | None:
    return None if part is None or not whole else part * times / whole


def _rates_of_disk(span: CounterSpan, name: str) -> DiskRates:
    rose, seconds = known_deltas(span, "disk", name), span.seconds_of("disk")
    reads, writes, discards, flushes = rose("reads"), rose("writes"), rose("discards"), rose("flushes")
    read, written = rose("sectors_read"), rose("sectors_written")
    busy = _divide(rose("busy_ms"), seconds * 1000)
    in_flight = span.level("disk", name, "in_flight")
    return DiskRates(
        name,
        reads_per_s=_divide(reads, seconds),
        writes_per_s=_divide(writes, seconds),
        read_bytes_per_s=_divide(read, seconds, SECTOR_BYTES),
        write_bytes_per_s=_divide(written, seconds, SECTOR_BYTES),
        read_size_bytes=_divide(read, reads, SECTOR_BYTES),
        write_size_bytes=_divide(written, writes, SECTOR_BYTES),
        read_wait_ms=_divide(rose("read_ms"), reads),
        write_wait_ms=_divide(rose("write_ms"), writes),
        read_merges_per_s=_divide(rose("reads_merged"), seconds),
        write_merges_per_s=_divide(rose("writes_merged"), seconds),
        discards_per_s=_divide(discards, seconds),
        discard_wait_ms=_divide(rose("discard_ms"), discards),
        flushes_per_s=_divide(flushes, seconds),
        flush_wait_ms=_divide(rose("flush_ms"), flushes),
        queue=_divide(rose("weighted_ms"), seconds * 1000),
        # Milliseconds are counted in steps of the clock's tick.
        utilisation=None if busy is None else min(1.0, busy),
        in_flight=None if isinstance(in_flight, Missing) else in_flight,
        unknown=span.why_unknown("disk", name),
    )


def _shares_of_cpu(span: CounterSpan, name: str) -> CpuShares:
    rose = known_deltas(span, "cpu", name)
    working = {field: rose(f"{field}_ticks") for field in ("user", "nice", "system", "irq", "softirq", "steal")}
    resting = rose("resting_ticks")
    total = None if resting is None else resting + sum(ticks for ticks in working.values() if ticks is not None)
    shares = {field: _divide(ticks, total) for field, ticks in working.items()}
    stolen = working["steal"] or 0
    why = span.why_unknown("cpu", name) or (f"cpu {name}: no tick passed" if total == 0 else None)
    return CpuShares(
        name,
        busy=None if total is None or resting is None else _divide(total - resting - stolen, total),
        **shares,
        iowait=_divide(rose("iowait_ticks"), total),
        idle=_divide(rose("idle_ticks"), total),
        guest=_divide(rose("guest_ticks"), total),
        unknown=why,
    )


def _rates_of_link(span: CounterSpan, name: str) -> LinkRates:
    rose, seconds = known_deltas(span, "link", name), span.seconds_of("link")
    received, sent = _divide(rose("rx_bytes"), seconds), _divide(rose("tx_bytes"), seconds)
    speed = span.level("link-errors", name, "speed_mbps")
    speed_mbps = None if isinstance(speed, Missing) else speed
    frames = [_divide(rose(f"{way}_packets"), seconds) for way in ("rx", "tx")]
    on_wire = [
        one + FRAME_BYTES * (count or 0.0) for one, count in zip((received or 0.0, sent or 0.0), frames, strict=True)
    ]
    busier = None if received is None or sent is None else max(on_wire)
    return LinkRates(
        name,
        rx_bytes_per_s=received,
        tx_bytes_per_s=sent,
        rx_packets_per_s=_divide(rose("rx_packets"), seconds),
        tx_packets_per_s=_divide(rose("tx_packets"), seconds),
        rx_dropped=rose("rx_dropped"),
        tx_dropped=rose("tx_dropped"),
        rx_errors=rose("rx_errors"),
        tx_errors=rose("tx_errors"),
        carrier_changes=known_deltas(span, "link-errors", name)("carrier_changes"),
        speed_mbps=speed_mbps,
        utilisation=_divide(busier, speed_mbps and speed_mbps * 1e6 / 8),
        unknown=span.why_unknown("link", name),
    )


# Samples of a host, one each interval: everything at the first and the last, in between what is cheap to read.

Source = Callable[[Host, Reading], None]

EACH_SAMPLE: tuple[Source, ...] = (
    read_disks,
    read_cpus,
    read_pressure,
    read_links,
    read_protocols,
    read_softnet,
    read_memory,
)
"""A few reads each, whatever the size of the host."""
AT_THE_ENDS: tuple[Source, ...] = (
    read_conntrack,
    read_udp6,
    read_fragments,
    read_neighbours,
    read_ports,
    read_connections,
    read_interrupts,
    read_task_table,
    read_thermal,
    read_nodes,
    read_link_errors,
    read_network_spaces,
    read_cgroups,
    read_memory_errors,
    read_adapters,
    read_scsi,
    read_paths,
    read_mappings,
    read_arrays,
    read_volumes,
    read_allowances,
    read_clock,
    read_kills,
    read_log_errors,
    read_drives,
    read_space,
    read_zfs,
    read_nfs_server,
    read_nfs_mounts,
    read_pauses,
    read_processes,
    read_locks,
)
"""A read for each device, CPU, process or service: rates of these run from the first sample to the last."""
COSTLY = frozenset({read_cgroups, read_thermal, read_link_errors, read_network_spaces, read_scsi, read_log_errors})
"""Those of them that take nine tenths of the time of a whole sample: a file or more for each service, CPU, link,
process and drive, and the kernel's log, which change seldom or are wanted over seconds."""


def take_sample(
    host: Host, *, whole: bool = True, costly: bool = True, clock: Callable[[], float] = time.monotonic
) -> Sample:
    """What the host counts now; without ``whole`` only what each sample of a series holds, without ``costly`` all but
    that."""
    reading = Reading(clock())
    for read in (*EACH_SAMPLE, *(AT_THE_ENDS if whole else ())):
        if costly or read not in COSTLY:
            read(host, reading)
    return reading.make_sample()


def observe_host(
    host: Host,
    seconds: float,
    interval: float = 1.0,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> CounterSpan:
    """The span of the next ``seconds``, sampled each ``interval``; both in seconds and above 0."""
    start = clock()
    samples = [take_sample(host, clock=clock)]
    count = max(1, round(seconds / interval))
    for number in range(1, count + 1):
        sleep(max(0.0, start + seconds * number / count - clock()))
        samples.append(take_sample(host, whole=number == count, clock=clock))
    return CounterSpan(samples)
