"""What causes judge: a span, the rates in it, the stack of block devices and the facts of the host."""

from __future__ import annotations

import re
from collections.abc import Container
from functools import cached_property
from itertools import pairwise

import msgspec

from advisor.facts.block.block import multipath_head
from advisor.facts.block.block_graph import BlockGraph, is_flash, read_block_graph, service_ms
from advisor.facts.host_facts import Facts, scan
from advisor.host import Host, Missing
from advisor.observe.processes import IDLE_CLASS
from advisor.observe.rates import (
    SECTOR_BYTES,
    CpuShares,
    DiskRates,
    LinkRates,
    StallShares,
    cpu_shares,
    disk_rates,
    link_rates,
    stall_shares,
)
from advisor.observe.sample import CounterSpan


class DiagnosisContext(msgspec.Struct, frozen=True):
    """What a host is, read once before its counters: the map on which a span is the measurement."""

    facts: Facts
    stack: BlockGraph


def read_context(host: Host) -> DiagnosisContext:
    facts = scan(host)
    return DiagnosisContext(facts, read_block_graph(host, facts))


_NO_SPEED = frozenset(
    {"veth", "tun", "tap", "bridge", "dummy", "netkit", "ifb", "openvswitch", "wireguard", "loopback", "virtual"}
)


class DiskLoad(msgspec.Struct, frozen=True):
    """A device that did something: ``wait_ms`` is the mean time of a request with its wait in the queue,
    ``service_ms`` what its medium takes by itself, ``pace_ms`` the busy time for each request that was completed.

    ``least_ms`` is what the device is known to take for such a request at least: what its medium does; less where it
    took less before or in another part of the span, or where so many are under way that no device serves them at once
    (Little's law).
    """

    name: str
    requests: float
    bytes_per_s: float
    queue: float
    utilisation: float
    wait_ms: float
    service_ms: float
    pace_ms: float
    least_ms: float

    @property
    def excess(self) -> float:
        """The part of a request's time that the device does not account for: 0 to 1."""
        return max(0.0, 1 - self.least_ms / self.wait_ms) if self.wait_ms else 0.0


class Observation:
    """A span with what is read from it more than once. What is unknown is None."""

    def __init__(self, span: CounterSpan, context: DiagnosisContext) -> None:
        self.span = span
        self.facts = context.facts
        self.stack = context.stack

    @cached_property
    def disks(self) -> dict[str, DiskRates]:
        return disk_rates(self.span)

    @cached_property
    def cpus(self) -> dict[str, CpuShares]:
        return cpu_shares(self.span)

    @cached_property
    def links(self) -> dict[str, LinkRates]:
        """Every link; the speed that the kernel names for a virtual one (10 Gbit/s of each veth, 10 Mbit/s of a tap)
        is no limit of it, so its use is unknown."""
        virtual = {one.name for one in self.facts.links if one.kind in _NO_SPEED}
        return {
            name: msgspec.structs.replace(one, speed_mbps=None, utilisation=None) if name in virtual else one
            for name, one in link_rates(self.span).items()
        }

    @cached_property
    def stalls(self) -> dict[str, StallShares]:
        return stall_shares(self.span)

    @cached_property
    def cpu_count(self) -> int:
        return len(self.cpus) - ("all" in self.cpus)

    def stall(self, resource: str) -> float | None:
        """The share of time in which some task waited for ``io``, ``memory`` or ``cpu``; None where it is unknown."""
        found = self.stalls.get(resource)
        return found.some if found else None

    @cached_property
    def tasks_ready(self) -> float:
        """The mean number of tasks that run or could run, without the one that counted them; 0 where it is unknown.

        Source: fs/proc/stat.c and nr_running() of kernel/sched/core.c: who reads procs_running runs at that moment.
        """
        running = self.span.levels("scheduler", "host", "running")
        return max(0.0, sum(running) / len(running) - 1) if running else 0.0

    def rose(self, kind: str, name: str, field: str) -> int | None:
        found = self.span.delta(kind, name, field)
        return None if isinstance(found, Missing) else found

    def per_second(self, kind: str, name: str, field: str) -> float | None:
        found = self.span.rate(kind, name, field)
        return None if isinstance(found, Missing) else found

    def level(self, kind: str, name: str, field: str) -> float | None:
        found = self.span.level(kind, name, field)
        return None if isinstance(found, Missing) else found

    def word(self, kind: str, name: str, field: str) -> str | None:
        found = self.span.word(kind, name, field)
        return None if isinstance(found, Missing) else found

    @cached_property
    def niced(self) -> float:
        """The share of all CPU time that niced tasks and those of SCHED_IDLE have; /proc/stat counts the latter as user
        time unless they are niced, too (kernel/sched/cputime.c, account_user_time)."""
        whole, seconds = self.cpus.get("all"), self.span.seconds_of("process")
        idle = (name for name in self.span.names("process") if self.level("process", name, "nice") == IDLE_CLASS)
        idle_ms = sum(self.rose("process", name, "cpu_ms") or 0 for name in idle)
        share = idle_ms / (seconds * 1000 * self.cpu_count) if idle_ms and self.cpu_count else 0.0
        return min((whole.busy if whole else None) or 0.0, ((whole.nice if whole else None) or 0.0) + share)

    @cached_property
    def resent_share(self) -> float | None:
        """Retransmitted of all sent TCP segments; None for so few that a share says nothing."""
        sent, resent = (self.rose("protocol", "Tcp", name) for name in ("OutSegs", "RetransSegs"))
        return resent / sent if resent is not None and sent is not None and sent >= MIN_SEGMENTS else None

    @cached_property
    def loads(self) -> dict[str, DiskLoad]:
        """Every whole block device that completed requests and whose counters are known."""
        found: dict[str, DiskLoad] = {}
        for name in self.disks:
            head = self.disks.get(multipath_head(name) or "")
            # Linux 6.x counts requests at the head of a multipath device, too: older kernels at the path alone.
            load = self._measure_load(name) if head is None or not head.queue else None
            found |= {name: load} if load else {}
        return found

    @cached_property
    def path_loads(self) -> dict[str, tuple[DiskLoad, ...]]:
        """The paths of NVMe's own multipath by their head, each as far as its counters are known."""
        found: dict[str, tuple[DiskLoad, ...]] = {}
        for name in self.disks:
            head, load = multipath_head(name), self._measure_load(name)
            if head and load:
                found[head] = (*found.get(head, ()), load)
        return found

    def _measure_load(self, name: str) -> DiskLoad | None:
        rates = self.disks[name]
        if rates.queue is None or rates.utilisation is None or _is_partition(name, self.disks):
            return None
        per_s = sum(one or 0.0 for one in (rates.reads_per_s, rates.writes_per_s, rates.discards_per_s))
        moved = (rates.read_bytes_per_s or 0.0) + (rates.write_bytes_per_s or 0.0)
        if per_s * self.span.seconds_of("disk") < MIN_REQUESTS:
            return None
        medium, pace = service_ms(self.stack, name, moved / per_s), rates.utilisation * 1000 / per_s
        return DiskLoad(
            name,
            requests=per_s,
            bytes_per_s=moved,
            queue=rates.queue,
            utilisation=rates.utilisation,
            wait_ms=rates.queue * 1000 / per_s,
            service_ms=medium,
            pace_ms=pace,
            least_ms=self._find_least(name, rates, moved / per_s, medium, pace) if rates.queue >= DEEP else medium,
        )

    def _find_least(self, name: str, rates: DiskRates, size: float, medium: float, pace: float) -> float:
        """The least that a device with a deep queue is known to take for a request of a size, in ms: never less than
        one that serves a request at a time."""
        # An arm is far faster in order than at random.
        if not is_flash(self.stack, (name,)):
            return medium
        found = [medium, len(self.stack.bottom(name)) * AT_ONCE * pace]
        sides = (("read", rates.reads_per_s), ("write", rates.writes_per_s))
        known = [(side, per_s) for side, per_s in sides if per_s]
        waits = [self._least_waits(name, side, size) for side, _ in known]
        if known and all(waits):
            every = sum(per_s for _, per_s in known)
            found.append(sum(per_s * min(one) for one, (_, per_s) in zip(waits, known, strict=True)) / every)
        return max(pace, min(found))

    def _least_waits(self, name: str, side: str, size: float) -> list[float]:
        """The mean ms of the reads or writes of a device since it began to count until the span, and in each step of
        it; of smaller requests with what the medium takes for the rest of ``size``."""
        looks = [sample.counters["disk"].get(name, {}) for sample in self.span.samples if "disk" in sample.counters]
        found = []
        for before, after in pairwise([{}, *looks]):
            gone = [after.get(f, 0) - before.get(f, 0) for f in (f"{side}s", f"{side}_ms", f"sectors_{_MOVED[side]}")]
            if min(gone) > 0 and gone[0] >= MIN_REQUESTS:
                own = service_ms(self.stack, name, gone[2] * SECTOR_BYTES / gone[0])
                found.append(gone[1] / gone[0] + max(0.0, service_ms(self.stack, name, size) - own))
        return found


DEEP = 4
"""A queue of fewer is what a medium takes at once."""
AT_ONCE = 32
"""Requests that a device serves at once, at most: of twice as many that are always under way half wait."""
_MOVED = {"read": "read", "write": "written"}
MIN_REQUESTS = 20
"""Means of fewer say nothing."""
MIN_SEGMENTS = 1_000
"""Of fewer no share is said: a connection that ends sends a dozen again, and little else."""


def _is_partition(name: str, names: Container[str]) -> bool:
    """Whether a name is that of a disk with a number behind: sda1 of sda, nvme0n1p2 of nvme0n1."""
    found = re.fullmatch(r"(.*?[a-z])[0-9]+|(.*[0-9])p[0-9]+", name)
    return bool(found and (found[1] or found[2]) in names)
