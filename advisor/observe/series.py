"""Samples of a host, one each interval: everything at the first and the last, in between what is cheap to read."""

from __future__ import annotations

import time
from collections.abc import Callable

from advisor.host import Host
from advisor.observe.cgroups import read_cgroups
from advisor.observe.cpus import read_cpus, read_interrupts, read_task_table, read_thermal
from advisor.observe.disks import read_arrays, read_disks, read_space, read_zfs
from advisor.observe.drives import read_drives
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
from advisor.observe.sample import Reading, Sample
from advisor.observe.span import CounterSpan
from advisor.observe.volumes import read_allowances, read_volumes

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
