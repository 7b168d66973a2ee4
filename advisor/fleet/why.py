"""What binds each of many hosts over a span, and what stands out from its peers: drives of one model, links of one
driver and speed, hosts of one size. One host's span is in memory at a time.

A figure is set against the median of its peers in units of their spread: the median absolute deviation, which up to
half of the peers can be slow without moving. Waits are compared as logarithms, because what differs between devices
multiplies them, and each against what a medium of its kind takes for requests of its size.

Sources: Iglewicz and Hoaglin, How to Detect and Handle Outliers (1993), for the modified z-score and 1.4826; Gunawi et
al., Fail-Slow at Scale, FAST 2018, for drives that are slow and do not fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Literal

import msgspec

from advisor.diagnosis.cause import BINDS_FROM, STEAL_FROM
from advisor.diagnosis.diagnose import Diagnosis, diagnose
from advisor.diagnosis.observation import DiagnosisContext, Observation, read_context
from advisor.facts.block.block_graph import service_ms
from advisor.facts.block.disks import Disk
from advisor.fleet.compare.columns import Progress, read_sources
from advisor.fleet.compare.summary import CaptureSource
from advisor.host.numbers import group_pairs
from advisor.observe.sample import CounterSpan
from advisor.snapshot.open import open_observed

Measure = Literal["read-wait", "write-wait", "lost", "resent", "steal", "storage-stall", "memory-stall"]

MIN_PEERS = 5
"""Of fewer others nothing is said: half of them could be what is wrong."""
MIN_REQUESTS = 50
"""Of one direction, by each device that is compared."""
MIN_PACKETS = 10_000
MIN_TIMES = 2.5
"""How many times slower than its peers a device must be, however alike these are."""
MIN_DEVIATIONS = 5.0
"""Spreads from the median; Iglewicz and Hoaglin take 3.5 for a single sample of which one asks once."""
_LEAST_SPREAD = 0.1
"""Of a logarithm: peers that agree to a tenth say nothing of what differs by two tenths."""
_LOADED_TIMES = 2.0
"""A device that is asked for so many times as much as its peers waits in its own queue."""
_MOST_OF = 6
"""Where more than one in so many stands out, they are a kind of their own (another role, another load) and not odd."""
_MAD_TO_DEVIATION = 1.4826

_FLOORS = {"lost": 1e-4, "resent": 5e-3, "steal": STEAL_FROM, "storage-stall": BINDS_FROM, "memory-stall": BINDS_FROM}
"""Shares below are no trouble, whatever the peers have."""


class PeerFigure(msgspec.Struct, frozen=True):
    """One figure of a device, or of a host (``device`` None): a wait in ms, or a share from 0 to 1.

    ``peers`` names those that it is compared with, ``medium_ms`` is what its medium takes for such a request.
    """

    host: str
    device: str | None
    measure: Measure
    peers: str
    value: float
    medium_ms: float | None = None
    requests_per_s: float | None = None


class Outlier(msgspec.Struct, frozen=True):
    """A figure that stands out from those of ``count`` peers.

    ``usual`` is what is usual among them: of a wait, for requests of this size. ``times`` is how many times that the
    value is (None where it is 0), ``deviations`` how many spreads of the peers lie between. ``requests_times`` is how
    many times the requests of its peers it serves: from 2 on its own load explains it, and ``is_loaded`` says so.
    """

    host: str
    device: str | None
    measure: Measure
    peers: str
    count: int
    value: float
    usual: float
    times: float | None
    deviations: float
    requests_times: float | None = None
    is_loaded: bool = False


class PeerGroup(msgspec.Struct, frozen=True):
    """Things that were compared with each other; fewer than `MIN_PEERS` + 1 are not judged."""

    peers: str
    measure: Measure
    count: int
    is_judged: bool


def measure_host(name: str, span: CounterSpan, context: DiagnosisContext) -> tuple[PeerFigure, ...]:
    """What of a host can be compared with other hosts, as far as it did enough to be judged."""
    seen = Observation(span, context)
    return (*_measure_disks(name, seen), *_measure_links(name, seen), *_measure_whole(name, seen))


def _measure_disks(host: str, seen: Observation) -> Iterator[PeerFigure]:
    seconds = seen.span.seconds_of("disk")
    for disk in seen.facts.disks:
        rates = seen.disks.get(disk.name)
        if rates is None or seen.stack.members(disk.name):
            continue
        sides: tuple[tuple[Measure, float | None, float | None, float | None], ...] = (
            ("read-wait", rates.reads_per_s, rates.read_size_bytes, rates.read_wait_ms),
            ("write-wait", rates.writes_per_s, rates.write_size_bytes, rates.write_wait_ms),
        )
        for measure, per_s, size, wait in sides:
            if per_s is not None and size is not None and wait and per_s * seconds >= MIN_REQUESTS:
                medium = service_ms(seen.stack, disk.name, size)
                yield PeerFigure(host, disk.name, measure, _name_drives(disk), wait, medium, per_s)


def _name_drives(disk: Disk) -> str:
    """The model and size: volumes of a cloud share a model, whatever they were bought as."""
    size = "" if disk.size_bytes is None else f", {disk.size_bytes / 1e9:,.0f} GB"
    return f"{disk.model or disk.kind}{size}"


def _measure_links(host: str, seen: Observation) -> Iterator[PeerFigure]:
    for link in seen.facts.links:
        rates = seen.links.get(link.name)
        if rates is None or link.driver is None or link.lower or rates.unknown is not None:
            continue
        seconds = seen.span.seconds_of("link")
        packets = sum(one or 0.0 for one in (rates.rx_packets_per_s, rates.tx_packets_per_s)) * seconds
        lost = sum(one or 0 for one in (rates.rx_dropped, rates.tx_dropped, rates.rx_errors, rates.tx_errors))
        if packets >= MIN_PACKETS:
            speed = f", {link.speed_mbps} Mbit/s" if link.speed_mbps else ""
            yield PeerFigure(host, link.name, "lost", f"{link.driver}{speed}", min(1.0, lost / packets))


def _measure_whole(host: str, seen: Observation) -> Iterator[PeerFigure]:
    cloud = seen.facts.host.cloud
    kind = (cloud and cloud.instance_type) or f"{seen.cpu_count} CPUs"
    whole, resent = seen.cpus.get("all"), seen.resent_share
    shares: dict[Measure, float | None] = {
        "steal": whole.steal if whole else None,
        "storage-stall": seen.stall("io"),
        "memory-stall": seen.stall("memory"),
        "resent": None if resent is None else min(1.0, resent),
    }
    for measure, share in shares.items():
        if share is not None:
            yield PeerFigure(host, None, measure, f"hosts of {kind}", share)


def find_outliers(figures: Iterable[PeerFigure]) -> tuple[tuple[Outlier, ...], tuple[PeerGroup, ...]]:
    """Those that stand out, the farthest from its peers first, and the groups that were compared.

    A device whose reads and writes stand out is there once, by the one that is farther out.
    """
    groups = group_pairs(((one.measure, one.peers), one) for one in figures)
    farthest: dict[tuple[str, str | None, str], Outlier] = {}
    for (measure, _), members in groups.items():
        if len(members) > MIN_PEERS:
            judge = _judge_waits if measure in ("read-wait", "write-wait") else _judge_shares
            odd = list(judge(members))
            for found in odd if len(odd) <= max(1, len(members) // _MOST_OF) else ():
                key = found.host, found.device, "wait" if found.measure.endswith("-wait") else found.measure
                before = farthest.get(key)
                if before is None or before.deviations < found.deviations:
                    farthest[key] = found
    # What its own load explains comes behind what nothing explains.
    ordered = sorted(
        farthest.values(),
        key=lambda one: (one.is_loaded, -(one.times or math.inf), one.host, one.device or "", one.measure),
    )
    judged = [
        PeerGroup(peers, measure, len(members), len(members) > MIN_PEERS)
        for (measure, peers), members in sorted(groups.items(), key=lambda item: (item[0][1], item[0][0]))
    ]
    return tuple(ordered), tuple(judged)


def _needed_deviations(count: int) -> float:
    """More of few peers, whose spread is itself a guess, and of many, among which one looks for the farthest."""
    return MIN_DEVIATIONS * (1 + 8 / count) + math.log10(count)


def _spread(values: Sequence[float], middle: float) -> float:
    return _MAD_TO_DEVIATION * median(abs(value - middle) for value in values)


def _judge_waits(members: Sequence[PeerFigure]) -> Iterator[Outlier]:
    logs = [math.log(one.value / (one.medium_ms or 1.0)) for one in members]
    middle = median(logs)
    spread = max(_LEAST_SPREAD, _spread(logs, middle))
    requests = median(one.requests_per_s or 0.0 for one in members)
    for one, own in zip(members, logs, strict=True):
        deviations, times = (own - middle) / spread, math.exp(own - middle)
        medium = one.medium_ms or 1.0
        # A difference that is small against what the medium takes anyway is no trouble.
        if deviations < _needed_deviations(len(members) - 1) or one.value * (1 - 1 / times) < medium / 2:
            continue
        if times < MIN_TIMES:
            continue
        asked = one.requests_per_s / requests if one.requests_per_s and requests else None
        yield Outlier(
            one.host,
            one.device,
            one.measure,
            one.peers,
            len(members) - 1,
            one.value,
            one.value / times,
            times,
            deviations,
            asked,
            is_loaded=asked is not None and asked >= _LOADED_TIMES,
        )


def _judge_shares(members: Sequence[PeerFigure]) -> Iterator[Outlier]:
    values = [one.value for one in members]
    floor, middle = _FLOORS[members[0].measure], median(values)
    spread = max(floor / 5, _spread(values, middle))
    for one in members:
        deviations = (one.value - middle) / spread
        if (
            one.value >= floor
            and one.value >= MIN_TIMES * middle
            and deviations >= _needed_deviations(len(members) - 1)
        ):
            times = one.value / middle if middle else None
            yield Outlier(
                *(one.host, one.device, one.measure, one.peers, len(members) - 1, one.value, middle, times, deviations)
            )


class FleetDiagnosis(msgspec.Struct, frozen=True):
    """``hosts`` with what binds each of them, in the order in which they were given; ``outliers`` stand out from their
    peers, the farthest first; ``groups`` were compared. ``failed`` could not be read, with the reason."""

    hosts: tuple[tuple[str, Diagnosis], ...]
    outliers: tuple[Outlier, ...]
    groups: tuple[PeerGroup, ...]
    failed: Mapping[str, str]

    @property
    def is_bound(self) -> bool:
        """Whether anything stands out, or binds a host."""
        return bool(self.outliers) or any(found.binds for _, found in self.hosts)


def read_observed(source: CaptureSource) -> tuple[Diagnosis, tuple[PeerFigure, ...]]:
    """What binds the host of a snapshot with a span, and what of it can be compared with others."""
    host, span, taken_at = open_observed(Path(source.path))
    context = read_context(host)
    return diagnose(span, context, taken_at), measure_host(source.name, span, context)


def diagnose_fleet(
    sources: Sequence[CaptureSource],
    failed: Mapping[str, str],
    *,
    processes: int | None = None,
    progress: Progress = lambda done, total: None,
) -> FleetDiagnosis:
    """What the spans of many hosts say together; ``failed`` are hosts that are known to have none."""
    unread = dict(failed)
    hosts = []
    figures: list[PeerFigure] = []
    for name, (diagnosis, own) in read_sources(sources, read_observed, unread, progress, processes):
        hosts.append((name, diagnosis))
        figures += own
    outliers, groups = find_outliers(figures)
    return FleetDiagnosis(tuple(hosts), outliers, groups, unread)
