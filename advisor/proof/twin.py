"""The fio twin of an observed load: a workload that behaves like it, with its error, or the reason why there is none.

A twin is made of what the block layer saw: direct I/O of the sizes, order, depth and arrival that were observed, on a
scratch file. It never replays addresses. What fio cannot make is refused rather than approximated in silence.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec

from advisor.errors import RefusedError
from advisor.observe.load import DIRECTIONS, LoadFigures, RoughFigures, ThreadFigures, joint_sizes, total_variation
from advisor.proof.pattern import AccessPattern, Arrival, ArrivalKind, JobSection, TwinError, divides_by_zero

LEAST_REQUESTS = 1000
_FEW = 50
"""With fewer, how long an observation has to be is not known."""
SIZES_BOUND = 0.05
READ_BOUND = 0.02
ORDER_BOUND = 0.05
MAX_LOST = 0.01
_MAX_DISCARDS = 0.05
_MAX_DEPTH = 256
_MAX_STREAMS = 16
_MOST_SIZES = 60
_SEQUENTIAL = 0.98
_STREAMS_FROM = 0.9
_REACTION_US = 60.0
"""As long as an application may take, after a completion, to ask again without having waited for anything else."""
_FIO_REACTION_US = 15.0
"""What fio itself takes: it comes on top of a pause that it is asked for."""
_FULL_DEPTH = 0.6
_IDLE_SHARE = 0.1
_REGULAR = 0.5
_ALIKE = 0.5
"""The lower spread of times to think; independent arrivals have 0.58."""
_MAX_THREADS = 64
_TOGETHER = 1.5
"""Threads that think ask for no more than this times what was observed, or they are no such threads."""
_POISSON_QUARTILES = 0.55
"""The lower quartile of the gaps over the upper: 0.21 where arrivals are independent, 1 where they are regular."""
_UNEVEN = 0.6
_CHANGED = 2.0


def make_section(load: LoadFigures) -> tuple[JobSection, TwinError]:
    """The job that is like the load, and how far its distributions are from it.

    Raises RefusedError, with the reason, where no faithful one can be made.
    """
    _require_load(load)
    reads, writes = load.read_share > 0.005, load.read_share < 0.995
    weights = {"read": load.read_share, "write": 1 - load.read_share}
    used = [name for name in DIRECTIONS if (reads if name == "read" else writes)]
    sizes: dict[str, dict[str, int]] = {name: _split_sizes(load.sizes[name]) for name in used}
    in_order = all(load.sequential[name] >= _SEQUENTIAL for name in used)
    kind = "rw" if len(used) == 2 else used[0]
    pattern = msgspec.convert(kind if in_order else f"rand{kind}", AccessPattern)
    random_percents = tuple(0 if name not in used else round(100 * (1 - load.sequential[name])) for name in DIRECTIONS)
    streams = _count_streams(load, used)
    threads = _find_threads(load)
    jobs = streams if threads is None else threads.count
    arrival, depth = _choose_arrival(load, streams) if threads is None else (_think(threads.think_us), 1)
    read_percent = round(100 * load.read_share) if len(used) == 2 else 100 * reads
    most = max(((size, share) for name in used for size, share in load.sizes[name].items()), key=lambda one: one[1])
    section = JobSection(
        "twin",
        pattern,
        int(most[0]),
        depth=depth,
        jobs=jobs,
        engine="libaio" if depth > 1 else "psync",
        read_percent=read_percent,
        random_percent=None if in_order else max(random_percents),
        random_percents=() if in_order or len(used) < 2 else random_percents,
        own_regions=jobs > 1 and streams > 1,
        sizes=sizes,
        arrival=arrival,
        flush_every=_flush_every(load) if writes else 0,
        durable=writes and (load.flushes_per_write > 1.5 or load.durable_share > 0.5),
        zones=_choose_zones(load) if not in_order else (),
    )
    if divides_by_zero(section):
        section = msgspec.structs.replace(section, arrival=Arrival("steady", rate=arrival.rate))
    shares = {"read": read_percent / 100, "write": 1 - read_percent / 100}
    made = {name: {size: shares[name] * part / 100 for size, part in found.items()} for name, found in sizes.items()}
    error = TwinError(
        sizes=total_variation(joint_sizes(load.sizes), joint_sizes(made)),
        read_share=abs(read_percent / 100 - load.read_share),
        sequential=max(
            weights[name] * abs((1.0 if in_order else 1 - percent / 100) - load.sequential[name])
            for name, percent in zip(DIRECTIONS, random_percents, strict=True)
            if name in used
        ),
    )
    if error.sizes > SIZES_BOUND:
        raise RefusedError(
            (
                "no faithful twin: the sizes of requests are too many for fio "
                f"({sum(map(len, load.sizes.values()))} sizes; distance {error.sizes:.3f}, bound {SIZES_BOUND})"
            ),
            hint="advisor observe --seconds N at a time when the load is simpler, or --unit NAME for one service",
        )
    return section, error


def was_made_regular(section: JobSection, load: LoadFigures) -> bool:
    """Whether the requests came at independent times and the job has regular ones, since fio ends with a fault on
    flushes between independent times (axboe/fio, change 2028)."""
    independent = Arrival("poisson", rate=section.arrival.rate)
    return (
        section.arrival.kind == "steady"
        and load.gap_quartiles < _POISSON_QUARTILES
        and divides_by_zero(msgspec.structs.replace(section, arrival=independent))
    )


def require_steady(first: RoughFigures, second: RoughFigures) -> None:
    """Raise RefusedError where the load of the second half of an observation is another than that of the first."""
    low, high = sorted((first.iops, second.iops))
    sizes = total_variation(joint_sizes(first.sizes), joint_sizes(second.sizes))
    if high > _CHANGED * low or sizes > 0.2:
        raise RefusedError(
            (
                f"no faithful twin: the load changed while it was observed ({first.iops:,.0f} requests/s, then "
                f"{second.iops:,.0f}; distance of sizes {sizes:.2f})"
            ),
            hint="observe a shorter time, or one in which the load is steady",
        )


def _require_load(load: LoadFigures) -> None:
    if load.requests < LEAST_REQUESTS:
        raise RefusedError(
            f"no faithful twin: {load.requests} requests in {load.seconds:.0f} s; {LEAST_REQUESTS:,} are needed",
            hint=f"observe longer: --seconds {math.ceil(1.5 * load.seconds * LEAST_REQUESTS / load.requests)}"
            if load.requests >= _FEW
            else "observe it while it works",
        )
    if load.discard_share > _MAX_DISCARDS:
        raise RefusedError(
            f"no faithful twin: {100 * load.discard_share:.0f} % of the requests are discards",
            hint="observe at a time when nothing is trimmed",
        )


def _split_sizes(found: Mapping[str, float]) -> dict[str, int]:
    """Whole percents of each size, as fio takes them, that add up to 100; sizes without one are left out."""
    whole = sum(found.values())
    exact = {size: 100 * share / whole for size, share in found.items()}
    kept = dict(sorted(exact.items(), key=lambda one: -one[1])[:_MOST_SIZES])
    parts = {size: math.floor(share) for size, share in kept.items()}
    by_rest = sorted(kept, key=lambda size: parts[size] - kept[size])
    for size in (by_rest * 100)[: 100 - sum(parts.values())]:
        parts[size] += 1
    return {size: part for size, part in sorted(parts.items(), key=lambda one: int(one[0])) if part}


def _count_streams(load: LoadFigures, used: Iterable[str]) -> int:
    """Sequential runs that go on at once become jobs, each with a region of its own."""
    in_order = [name for name in used if load.sequential[name] >= _STREAMS_FROM]
    if not in_order or load.streams < 2:
        return 1
    return max(1, min(_MAX_STREAMS, load.streams // len(in_order)))


def _find_threads(load: LoadFigures) -> ThreadFigures | None:
    """Several threads of which each asks, waits, and thinks for about the same time: each becomes a job."""
    found = load.threads
    if found is None or not 1 < found.count <= _MAX_THREADS or found.spread > _ALIKE:
        return None
    # A journal writes in the name of a thread of its own, which does not wait as the others do.
    each_us = found.think_us + _waiting_us(load)
    return found if found.count * 1e6 <= _TOGETHER * load.iops * each_us else None


def _waiting_us(load: LoadFigures) -> float:
    """The mean microseconds that a request and the flushes that follow it are waited for."""
    return load.latency["all"].mean_us + load.flush_us * load.flushes_per_write * (1 - load.read_share)


def _think(think_us: float) -> Arrival:
    own = round(think_us - _FIO_REACTION_US)
    return Arrival("think", think_us=own) if own > 0 else Arrival()


def _choose_arrival(load: LoadFigures, streams: int) -> tuple[Arrival, int]:
    """How requests arrive, and the depth of each job."""
    busy_depth = load.depth_mean / load.busy_share if load.busy_share else 0.0
    is_full = busy_depth >= _FULL_DEPTH * load.depth_high
    high = max(1, min(_MAX_DEPTH, math.ceil(load.depth_high / streams)))
    most = max(1, min(_MAX_DEPTH, math.ceil(load.depth_max / streams)))
    bursts = load.bursts if load.bursts is not None and load.bursts.idle_share >= _IDLE_SHARE else None
    if bursts is not None and max(bursts.requests_spread, bursts.pause_spread) <= _REGULAR:
        return Arrival("bursts", think_us=round(bursts.pause_us), think_blocks=max(1, round(bursts.requests))), high
    if (is_full and load.reaction.p50_us <= _REACTION_US) or load.depth_mean >= 0.8 * load.depth_high:
        return Arrival(), high
    if load.window_variation > _UNEVEN:
        raise RefusedError(
            (
                "no faithful twin: requests come in irregular bursts (their number in 0.1 s varies by "
                f"{100 * load.window_variation:.0f} %)"
            ),
            hint="fio makes bursts of one size with pauses of one length",
        )
    if load.depth_high == 1 and _is_thinking(load):
        return _think(load.reaction.p50_us), 1
    kind: ArrivalKind = "poisson" if load.gap_quartiles < _POISSON_QUARTILES else "steady"
    return Arrival(kind, rate=load.iops / streams), most


def _is_thinking(load: LoadFigures) -> bool:
    """Whether the time after a completion is steadier than that between arrivals, which has the latencies in it. By a
    clock it is the other way round; times to think that vary as much differ from independent arrivals in their
    lower quartile.
    """
    thinking = load.reaction.spread * load.reaction.p50_us
    between = load.gap_spread * load.gap_p50_us
    alike = load.threads is not None and load.threads.spread <= _ALIKE
    return thinking < (1.05 if alike else 0.9) * between


def _flush_every(load: LoadFigures) -> int:
    """After how many writes a flush comes; 0 where there is none, or one with each write (``durable``)."""
    if not 0.002 <= load.flushes_per_write <= 1.5:
        return 0
    return max(1, round(1 / load.flushes_per_write))


def _choose_zones(load: LoadFigures) -> tuple[int, ...]:
    """Whole percents of the requests in twentieths of the range, where they are not even."""
    even = 1 / len(load.zones)
    if sum(abs(share - even) for share in load.zones) / 2 < 0.1:
        return ()
    parts = _split_sizes({str(number): share for number, share in enumerate(load.zones)})
    return tuple(parts.get(str(number), 0) for number in range(len(load.zones)))
