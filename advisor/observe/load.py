"""What a stream of requests is like: sizes by direction, order, depth, arrival, latency. Pure figures of a list.

Means mislead (a mean of 77 KiB where four reads in five have 32 KiB), so distributions are kept.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, count, pairwise
from typing import Literal

import msgspec

from advisor.observe.tracing import SECTOR_BYTES, BlockRequest

Direction = Literal["read", "write"]
DIRECTIONS: tuple[Direction, ...] = ("read", "write")
ZONES = 20
_RECENT = 64
"""As many streams at once are distinguished: a request is in order where it begins at the end of one of them."""
_LONG_RUN = 8
_BINS_PER_OCTAVE = 8
_PAUSE_SECONDS = 0.002
_PAUSE_GAPS = 20
_WINDOW_SECONDS = 0.1
_MAIN_THREAD = 0.02
_SERIAL = 0.9
"""As large a share of all requests, at least, comes from threads that wait for each of theirs."""


class LatencyFigures(msgspec.Struct, frozen=True):
    """Latency in microseconds, from the beginning of a request to its completion. ``bins`` are counts by the upper
    end of a class in microseconds, eight classes an octave."""

    mean_us: float = 0.0
    p50_us: float = 0.0
    p95_us: float = 0.0
    p99_us: float = 0.0
    bins: Mapping[str, int] = {}


class BurstFigures(msgspec.Struct, frozen=True):
    """Requests in groups with pauses between: the median size and pause, each with its spread (between the quartiles,
    over the median). ``idle_share`` is the time within pauses, 0 to 1."""

    count: int
    requests: float
    requests_spread: float
    pause_us: float
    pause_spread: float
    idle_share: float


class ReactionFigures(msgspec.Struct, frozen=True):
    """Microseconds from a completion to the next request, where one comes before the next completion: the median and
    the spread."""

    p50_us: float = 0.0
    spread: float = 0.0


class ThreadFigures(msgspec.Struct, frozen=True):
    """Threads that ask for one request at a time: how many, and the microseconds (median) from the end of what one has
    waited for, a request or a flush, to its next request. ``spread`` is the distance of the lower quartile over the
    median, as above it is also what a scheduler takes the CPU away for: 0.58 where times are independent."""

    count: int
    think_us: float
    spread: float


class LoadFigures(msgspec.Struct, frozen=True):
    """A load on one device. Shares run from 0 to 1; ``sizes`` are shares of all requests by direction and bytes.

    ``sequential`` is the share of a direction's requests that begin where an earlier one of it ended, ``streams`` how
    many such runs go on at once. ``depth_mean`` and ``depth_max`` are requests in flight over time; ``depth_high`` is
    exceeded in 5 % of the time in which there are any.
    ``gap_quartiles`` is the lower quartile of the times between arrivals over the upper one: 0.21 where arrivals are
    independent, 1 where they are regular; ``gap_spread`` the distance of these quartiles over the median
    (``gap_p50_us``);
    ``window_variation`` the deviation of arrivals in tenths of a second over their mean.
    ``zones`` are the shares of requests in twentieths of the range that was touched. ``flush_us`` is how long a flush
    takes (the median); ``threads`` are known where nearly all requests come from such that wait for each of theirs.
    """

    seconds: float
    requests: int
    iops: float
    bytes_per_s: float
    read_share: float
    sizes: Mapping[str, Mapping[str, float]]
    sequential: Mapping[str, float]
    streams: int
    depth_mean: float
    depth_high: int
    depth_max: int
    busy_share: float
    gap_quartiles: float
    gap_spread: float
    window_variation: float
    reaction: ReactionFigures
    bursts: BurstFigures | None
    latency: Mapping[str, LatencyFigures]
    zones: tuple[float, ...]
    flushes_per_write: float = 0.0
    durable_share: float = 0.0
    discard_share: float = 0.0
    gap_p50_us: float = 0.0
    flush_us: float = 0.0
    threads: ThreadFigures | None = None


Spans = Sequence[tuple[float, float]]
"""Beginnings and ends in seconds."""


def measure_load(
    requests: Iterable[BlockRequest], *, flushes: Spans = (), discards: int = 0, durable_writes: int = 0
) -> LoadFigures:
    """The figures of the requests of one device. Raises ValueError for fewer than two, or for none that takes time."""
    ordered = sorted(requests)
    if len(ordered) < 2:
        raise ValueError("a load needs two requests or more")
    first = ordered[0].at_seconds
    seconds = max(one.end_seconds for one in ordered) - first
    if seconds <= 0:
        raise ValueError("the requests take no time")
    total = len(ordered)
    writes = sum(one.is_write for one in ordered)
    sequential, streams = _measure_order(ordered)
    # Beginnings and ends: of both in the same microsecond, the end came first.
    moments = sorted([(one[0], 1) for one in ordered] + [(one[0] + one[1], -1) for one in ordered])
    depths = _time_by_depth(moments)
    low, middle, high = quartiles([after.at_seconds - before.at_seconds for before, after in pairwise(ordered)])
    return LoadFigures(
        seconds=seconds,
        requests=total,
        iops=total / seconds,
        bytes_per_s=sum(one.size_bytes for one in ordered) / seconds,
        read_share=1 - writes / total,
        sizes=_measure_sizes(ordered),
        sequential=sequential,
        streams=streams,
        depth_mean=sum(one.seconds for one in ordered) / seconds,
        depth_high=_quantile_of({depth: time for depth, time in depths.items() if depth}, 0.95),
        depth_max=max(depths),
        busy_share=1 - depths.get(0, 0.0) / sum(depths.values()),
        gap_quartiles=low / high if high else 0.0,
        gap_spread=(high - low) / middle if middle else 0.0,
        window_variation=_vary_by_window(ordered, seconds),
        reaction=_measure_reaction(moments, flushes),
        bursts=_measure_bursts(ordered, flushes, seconds),
        latency={
            "all": _measure_latency([one.seconds for one in ordered]),
            **{
                name: _measure_latency([one.seconds for one in ordered if _direction(one) == name])
                for name in DIRECTIONS
            },
        },
        zones=_measure_zones(ordered),
        flushes_per_write=len(flushes) / writes if writes else 0.0,
        durable_share=durable_writes / writes if writes else 0.0,
        discard_share=discards / (total + discards),
        gap_p50_us=middle * 1e6,
        flush_us=quartiles([end - began for began, end in flushes])[1] * 1e6 if flushes else 0.0,
        threads=_measure_threads(ordered, sorted(end for _, end in flushes)),
    )


class RoughFigures(msgspec.Struct, frozen=True):
    """What parts of an observation are compared by, at a tenth of the cost of all figures."""

    iops: float
    sizes: Mapping[str, Mapping[str, float]]
    p99_us: float


def measure_roughly(requests: Sequence[BlockRequest], seconds: float) -> RoughFigures:
    """The rough figures of what began in some seconds; there may be none."""
    taken = sorted(one.seconds for one in requests)
    p99 = taken[math.ceil(0.99 * len(taken)) - 1] if taken else 0.0
    return RoughFigures(len(requests) / seconds, _measure_sizes(requests), p99 * 1e6)


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile of one value or more."""
    ranked = sorted(values)
    low, middle, high = (ranked[min(len(ranked) - 1, len(ranked) * part // 4)] for part in (1, 2, 3))
    return low, middle, high


def spread_of(values: Sequence[float]) -> float:
    """The distance of the quartiles over the median."""
    low, middle, high = quartiles(values)
    return (high - low) / middle if middle else 0.0


def total_variation(first: Mapping[object, float], second: Mapping[object, float]) -> float:
    """Half the sum of differences of two distributions, each of which adds up to 1: 0 for equal ones, 1 for others."""
    return sum(abs(first.get(key, 0.0) - second.get(key, 0.0)) for key in first.keys() | second.keys()) / 2


def joint_sizes(sizes: Mapping[str, Mapping[str, float]]) -> dict[object, float]:
    """Sizes by direction as one distribution."""
    return {(name, size): share for name, found in sizes.items() for size, share in found.items()}


def _direction(request: BlockRequest) -> Direction:
    return "write" if request.is_write else "read"


def _measure_sizes(requests: Sequence[BlockRequest]) -> dict[str, dict[str, float]]:
    found = Counter((one.is_write, one.size_bytes) for one in requests)
    return {
        name: {
            str(size): number / len(requests) for (is_write, size), number in sorted(found.items()) if is_write == at
        }
        for at, name in enumerate(DIRECTIONS)
    }


def _measure_order(ordered: Sequence[BlockRequest]) -> tuple[dict[str, float], int]:
    """The sequential share of each direction, and how many long runs went on at a time (the median)."""
    seen, following = Counter[Direction](), Counter[Direction]()
    # Where a run of a direction would go on, and how long it is, the latest last.
    ends: dict[Direction, OrderedDict[int, tuple[int, int]]] = {name: OrderedDict() for name in DIRECTIONS}
    together = Counter[int]()
    for number, one in enumerate(ordered):
        name = _direction(one)
        runs = ends[name]
        seen[name] += 1
        length = runs.pop(one.sector, (0, 0))[0]
        following[name] += length > 0
        runs[one.sector + one.size_bytes // SECTOR_BYTES] = length + 1, number
        if len(runs) > _RECENT:
            runs.popitem(last=False)
        if number % _RECENT == _RECENT - 1:
            lively = [length for found in ends.values() for length, last in found.values() if number - last < _RECENT]
            together[sum(length >= _LONG_RUN for length in lively)] += 1
    shares: dict[str, float] = {name: following[name] / seen[name] if seen[name] else 0.0 for name in DIRECTIONS}
    return shares, max(1, _quantile_of(together, 0.5)) if together else 1


def _time_by_depth(moments: Sequence[tuple[float, int]]) -> dict[int, float]:
    """Seconds with each number of requests in flight."""
    found: dict[int, float] = {}
    depth = 0
    for (at, change), (until, _) in pairwise(moments):
        depth += change
        found[depth] = found.get(depth, 0.0) + until - at
    return found


def _quantile_of(weights: Mapping[int, float], share: float) -> int:
    keys = sorted(weights)
    passed = list(accumulate(weights[key] for key in keys))
    return keys[min(len(keys) - 1, bisect_right(passed, share * passed[-1]))]


def _measure_reaction(moments: list[tuple[float, int]], flushes: Spans) -> ReactionFigures:
    # Who waits for a flush asks after its end: it is no time to think.
    if flushes:
        moments = sorted([*moments, *((began, 0) for began, _ in flushes), *((end, -1) for _, end in flushes)])
    found = [after - before for (before, ended), (after, began) in pairwise(moments) if ended < 0 < began]
    return ReactionFigures(quartiles(found)[1] * 1e6, spread_of(found)) if found else ReactionFigures()


def _measure_threads(ordered: Sequence[BlockRequest], flush_ends: Sequence[float]) -> ThreadFigures | None:
    counts = Counter(one.pid for one in ordered)
    main = {pid for pid, number in counts.items() if number >= _MAIN_THREAD * len(ordered)}
    if not main or sum(counts[pid] for pid in main) < _SERIAL * len(ordered):
        return None
    ends: dict[int, float] = {}
    pauses = []
    for at, took, pid, *_ in ordered:
        if pid in main:
            before = ends.get(pid)
            if before is not None and before <= at:
                flushed = bisect_right(flush_ends, at)
                pauses.append(at - (max(before, flush_ends[flushed - 1]) if flushed else before))
            ends[pid] = max(at + took, before or 0.0)
    if not pauses or len(pauses) < _SERIAL * (len(ordered) - len(main)):
        return None
    low, middle, _ = quartiles(pauses)
    return ThreadFigures(len(main), middle * 1e6, (middle - low) / middle if middle else 0.0)


def _measure_bursts(ordered: Sequence[BlockRequest], flushes: Spans, seconds: float) -> BurstFigures | None:
    """Groups between pauses in which nothing was in flight, where these are much longer than what is usual.

    Half of the pause in which half of all idle time lies is the least that counts: a scheduler that takes the CPU away
    for some milliseconds divides no burst.
    """
    idle = []
    end = ordered[0].end_seconds
    number = 0
    # What is flushed is no pause either.
    busy = [(one[0], one[0] + one[1], 1) for one in ordered]
    for began, until, requests in sorted([*busy, *((*one, 0) for one in flushes)]) if flushes else busy:
        if began > end:
            idle.append((number, began - end))
        end = max(end, until)
        number += requests
    usual = quartiles([after.at_seconds - before.at_seconds for before, after in pairwise(ordered)])[1]
    least = max(_PAUSE_SECONDS, _PAUSE_GAPS * usual)
    lengths = sorted(gap for _, gap in idle if gap > least)
    if not lengths:
        return None
    passed = list(accumulate(lengths))
    least = max(least, lengths[bisect_right(passed, passed[-1] / 2)] / 2)
    pauses = [(number, gap) for number, gap in idle if gap > least]
    if len(pauses) < 4:
        return None
    groups = [float(after - before) for (before, _), (after, _) in pairwise(pauses)]
    gaps = [gap for _, gap in pauses]
    return BurstFigures(
        count=len(pauses) + 1,
        requests=quartiles(groups)[1],
        requests_spread=spread_of(groups),
        pause_us=quartiles(gaps)[1] * 1e6,
        pause_spread=spread_of(gaps),
        idle_share=math.fsum(gaps) / seconds,
    )


def _vary_by_window(ordered: Sequence[BlockRequest], seconds: float) -> float:
    """How far the number of arrivals in tenths of a second varies: the deviation over the mean, whole windows only."""
    counts = [0] * int(seconds / _WINDOW_SECONDS)
    for one in ordered:
        place = int((one.at_seconds - ordered[0].at_seconds) / _WINDOW_SECONDS)
        if place < len(counts):
            counts[place] += 1
    if len(counts) < 2:
        return 0.0
    mean = sum(counts) / len(counts)
    return math.sqrt(sum((count - mean) ** 2 for count in counts) / (len(counts) - 1)) / mean if mean else 0.0


def _measure_latency(values: list[float]) -> LatencyFigures:
    if not values:
        return LatencyFigures()
    values.sort()
    bins: dict[str, int] = {}
    for key in count():
        end_us = 2 ** (key / _BINS_PER_OCTAVE)
        passed = bisect_right(values, end_us / 1e6)
        if number := passed - sum(bins.values()):
            bins[f"{end_us:.4g}"] = number
        if passed == len(values):
            break
    p50, p95, p99 = (
        values[min(len(values) - 1, math.ceil(share * len(values)) - 1)] * 1e6 for share in (0.5, 0.95, 0.99)
    )
    return LatencyFigures(math.fsum(values) / len(values) * 1e6, p50, p95, p99, bins)


def _measure_zones(ordered: Sequence[BlockRequest]) -> tuple[float, ...]:
    # A journal far from the data has few requests, and is not to squeeze all others into one zone.
    sectors = sorted(one.sector for one in ordered)
    rare = len(sectors) // 200
    low = sectors[rare]
    span = sectors[-1 - rare] - low + 1
    counts = [0] * ZONES
    for sector in sectors:
        counts[min(max((sector - low) * ZONES // span, 0), ZONES - 1)] += 1
    return tuple(number / len(ordered) for number in counts)
