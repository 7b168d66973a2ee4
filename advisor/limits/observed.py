"""What was measured against what binds: shares of ceilings, and how long burst credits last at that rate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from advisor.facts.block_graph import BlockGraph
from advisor.facts.host_facts import Facts
from advisor.limits.declared import Declared
from advisor.limits.ebs import lasts_seconds
from advisor.limits.figures import MIB
from advisor.limits.media import Media, bucket_of
from advisor.limits.records import Limits, Measure, ObservedShare, PathCeiling, Rate, StoragePath

_BOTH_WAYS_AT_ONCE = frozenset({"network", "wire", "pcie"})
"""Full duplex: reads do not take from writes."""


class Measurement(msgspec.Struct, frozen=True):
    """The median of one workload on a device. ``read_share`` is the fraction of its operations that read."""

    workload: str
    device: str | None
    measure: Measure
    value: float
    read_share: float


def share(value: float, ceiling: float) -> float:
    """The fraction of a ceiling."""
    return value / ceiling


def mixed(rate: Rate, measure: Measure, read_share: float, *, duplex: bool) -> float | None:
    """The ceiling of a mix of reads and writes: each takes its time of the part, or its own direction of a link."""
    limits = (getattr(rate, f"read_{measure}"), getattr(rate, f"write_{measure}"))
    costs = [part / limit for part, limit in zip((read_share, 1 - read_share), limits, strict=True) if limit and part]
    if not costs or (None in limits and 0 < read_share < 1):
        return None
    cost: float = max(costs) if duplex else sum(costs)
    return 1 / cost


def binding(ceilings: Sequence[PathCeiling], one: Measurement, *, in_burst: bool) -> float | None:
    """The smallest known ceiling for a mix like this one."""
    rates = [(each.stage, (each.burst if in_burst else None) or each.sustained) for each in ceilings]
    found = (mixed(rate, one.measure, one.read_share, duplex=stage in _BOTH_WAYS_AT_ONCE) for stage, rate in rates)
    return min((value for value in found if value is not None), default=None)


def with_observed(limits: Limits, measured: Iterable[Measurement], facts: Facts, declared: Declared) -> Limits:
    """The limits with each measurement at the path of its device; a note names the measurements without one."""
    devices = BlockGraph(facts)
    by_path: dict[str, list[ObservedShare]] = {}
    notes: list[str] = []
    paths = {path.device: path for path in limits.paths if path.kind == "storage"}
    for one in measured:
        node = devices.node(one.device) if one.device else None
        path = paths.get(node.device) if node else None
        if path is None:
            notes.append(f"{one.workload} was measured on {one.device or 'an unknown device'}: no path of this host")
        else:
            by_path.setdefault(path.device, []).extend(_observed_shares(path, one, declared, facts))
    changed = tuple(
        msgspec.structs.replace(path, observed=tuple(by_path[path.device]))
        if path.kind == "storage" and path.device in by_path
        else path
        for path in limits.paths
    )
    return msgspec.structs.replace(limits, paths=changed, notes=(*limits.notes, *dict.fromkeys(notes)))


def _observed_shares(path: StoragePath, one: Measurement, declared: Declared, facts: Facts) -> Iterator[ObservedShare]:
    sustained = binding(path.ceilings, one, in_burst=False)
    burst = binding(path.ceilings, one, in_burst=True)
    in_burst = sustained is not None and burst is not None and one.value > sustained and burst > sustained
    ceiling = burst if in_burst else sustained
    part = share(one.value, ceiling) if ceiling else None
    # How long the bucket of the one volume below a path lasts, gp2's in I/Os and st1's and sc1's in MiB; None for an
    # array.
    if len(path.disks) != 1 or path.layers:
        seconds: float | None = None
    else:
        volume = Media(facts, declared).declared(path.disks[0])
        bucket = bucket_of(volume) if volume else None
        if bucket is None or (bucket.unit == "I/O") != (one.measure == "iops"):
            seconds = None
        else:
            lasting = lasts_seconds(bucket, one.value if bucket.unit == "I/O" else one.value / MIB)
            seconds = lasting if lasting is not None and math.isfinite(lasting) else None
    yield ObservedShare(one.workload, one.measure, one.read_share, one.value, ceiling, part, in_burst, seconds)
