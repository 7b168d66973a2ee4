"""Samples of a host, one each interval: everything at the first and the last, in between what is cheap to read."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from advisor.host import Host
from advisor.observe.cpus import read_cpus, read_interrupts, read_thermal
from advisor.observe.disks import read_disks
from advisor.observe.links import read_link_errors, read_links
from advisor.observe.memory import read_memory, read_nodes
from advisor.observe.network import read_conntrack, read_protocols, read_softnet
from advisor.observe.pressure import read_pressure
from advisor.observe.sample import Reading, Sample
from advisor.observe.span import CounterSpan

Source = Callable[[Host, Reading], None]

EACH_SAMPLE: Final[tuple[Source, ...]] = (
    read_disks,
    read_cpus,
    read_pressure,
    read_links,
    read_protocols,
    read_softnet,
    read_memory,
)
"""A few reads each, whatever the size of the host."""
AT_THE_ENDS: Final[tuple[Source, ...]] = (
    read_conntrack,
    read_interrupts,
    read_thermal,
    read_nodes,
    read_link_errors,
)
"""A read for each device, CPU, process or service: rates of these run from the first sample to the last."""


def take_sample(host: Host, *, whole: bool = True, clock: Callable[[], float] = time.monotonic) -> Sample:
    """What the host counts now; without ``whole`` only what each sample of a series holds."""
    reading = Reading(clock())
    for read in (*EACH_SAMPLE, *(AT_THE_ENDS if whole else ())):
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
